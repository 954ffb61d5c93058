"""The state → what people see of it: the release; and back, from a release."""

from sottovoce.estimate.ldpmab.constants import constants
from sottovoce.estimate.ldpmab.state import State, initial_state, with_room
from sottovoce.estimate.ldpmab.step import split
from sottovoce.estimate.tree import leaves_of, node_paths, partition_of
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import BinPolicy, Release


def release_of(experiment: Experiment, state: State) -> Release:
    """Return the release of now: the tree, and the policy of each leaf from low to high."""
    paths = node_paths(state)
    bins = []
    for node in leaves_of(state.tree, paths):
        live = state.live[node]
        arms, propensities = state.arms[node, :live], state.propensities[node, :live]
        bins.append(BinPolicy(paths[node], tuple(arms.tolist()), tuple(propensities.tolist())))
    version = int(state.totals[0].release)
    return Release(experiment, version, partition_of(state.tree, paths), tuple(bins))


def state_of(release: Release) -> State:
    """Return a state with the tree and the policy of a release, and no sums."""
    fixed = constants(release.experiment)
    cuts = release.partition.cuts
    state = initial_state(fixed, nodes=1 + 2 * len(cuts))
    nodes = {"": 0}
    for path in sorted(cuts, key=len):
        node, lower = nodes[path], int(state.totals[0].nodes)
        nodes[path + "0"], nodes[path + "1"] = lower, lower + 1
        split(state, node, cuts[path])
    for policy in release.bins:
        node, live = nodes[policy.path], len(policy.arms)
        state.live[node] = live
        state.arms[node, :live] = policy.arms
        state.propensities[node, :live] = policy.propensities
    contested = [nodes[policy.path] for policy in release.contested]
    totals = state.totals[0]
    totals.events, totals.contested, totals.release = 0, len(contested), release.version
    state.contested[: len(contested)] = contested
    return with_room(state, fixed)
