"""The database → what a policy would bring, from the stored reports alone.

The learner is worked out again from the log, as ``replay.py`` does; nothing is written.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sottovoce.estimate.learner import Learner
from sottovoce.server.following import learn, pieces, stretches, take
from sottovoce.server.replay import begin_at
from sottovoce.server.store.store import Store
from sottovoce.shared.allocation import ReadPolicy
from sottovoce.shared.errors import ExperimentError, PolicyError, WireError, must
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.policy import SignedPolicy, policy_from_json
from sottovoce.shared.signed import SignedRelease
from sottovoce.shared.wire import parsed, release_from_json

RELEASE = "release:"


def fingerprint_of(store: Store, experiment: str | None) -> str:
    """Return the fingerprint of an experiment: itself, a name, a TOML file, or the only one."""
    if experiment is not None and experiment.endswith(".toml"):
        experiment = Experiment.from_toml(experiment).fingerprint
    names = {fingerprint: json.loads(text)["name"] for fingerprint, text in store.experiments()}
    found = [each for each, name in names.items() if experiment in (None, each, name)]
    if len(found) != 1:
        listed = ", ".join(f"{name} ({each})" for each, name in names.items())
        rule = f"name one of the database ({listed or 'which has none'})"
        came = "none" if experiment is None else repr(experiment)
        raise PolicyError(must("the experiment", rule, came))
    return found[0]


def learner_of(
    store: Store, fingerprint: str, *, each: Callable[[int], object] = lambda reports: None
) -> Learner:
    """Count all stored reports once more.

    each: told how many reports have been counted, now and then.
    """
    tables = dict(store.experiments())
    experiment = Experiment.from_table(json.loads(tables[fingerprint]))
    folds, length = store.folds(fingerprint), store.length(fingerprint)
    amendments = [one for one in store.amendments(fingerprint) if not one.waits]
    learner, position, _ = begin_at(store, experiment, folds)
    for end, amendment in stretches(amendments[len(learner.experiment.amendments) :], until=length):
        for reports in pieces(partial(store.read, fingerprint), after=position, until=end):
            for _ in learn(learner, reports, position=position):
                pass
            position += len(reports)
            each(position)
        if amendment is not None:
            take(learner, amendment, position=position)
    return learner


def named_policy(store: Store, learner: Learner, name: str) -> object:
    """Return the policy that a name stands for: always:ARM, release:NUMBER or a file."""
    if name.startswith("always:"):
        return name
    if not name.startswith(RELEASE):
        return read_policy(Path(name))
    number, newest = name.removeprefix(RELEASE), learner.release().version
    rule = f"name one of release:1 to release:{newest}"
    if not number.isascii() or not number.isdigit() or len(number) > 10:
        raise PolicyError(must("the release of a policy to value", rule, repr(name)))
    logged = store.release(learner.experiment.fingerprint, int(number))
    if logged is None:
        raise PolicyError(must("the release of a policy to value", rule, repr(name)))
    return release_from_json(logged.text)


def read_policy(path: Path) -> ReadPolicy:
    """Read a policy file or a signed release. To value it is not to follow it, whoever signed."""
    what, rule = str(path), "be always:ARM, release:NUMBER or a policy file that can be read"
    try:
        document = path.read_bytes()
    except OSError as error:
        raise PolicyError(must(what, rule, type(error).__name__)) from None
    try:
        table = parsed(document, kind="policy file")
        if isinstance(table, dict) and table.get("kind") == "signed release":
            return ReadPolicy(release_from_json(SignedRelease.from_json(document).text), {})
        return ReadPolicy(*policy_from_json(SignedPolicy.from_json(document).text))
    except (WireError, ExperimentError) as error:
        raise PolicyError(must(what, "be a policy file", f"something else ({error})")) from None
