"""The lab's private baselines as mechanisms: the report that their compiled people send.

They have no device: reports exist in simulations only, with a simulation's generator and in
floating point. So they are attacked, and no exact ratio is claimed for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from sottovoce.device.encode import encode
from sottovoce.lab.audit.claims import Answer, Floats, Person, Scene, Scores
from sottovoce.lab.baselines.sphere import keep_chance
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.experiment import Experiment

STEEP = 50.0
"""Parameters that a hostile server releases: predictions are as wrong as can be for some people,
and their gradients as long as they can be."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """``linear`` or ``nn``: a person's gradient as a point on a sphere."""

    name: str

    def reports(self, scene: Scene, person: Person, count: int) -> list[Answer]:
        """Return so many independent reports of the same person."""
        state, send = _begun(self.name, scene.release.experiment)
        arm, reward = _place(scene, person, state)
        rng = np.random.default_rng()
        found: list[Answer] = []
        for _ in range(count):
            send(state, rng, scene.population, arm, reward)
            found.append(tuple(state.report.tolist()))
        return found

    def log_ratios(self, scene: Scene, one: Person, other: Person) -> Scores:
        """Return ln p(Z | one)/p(Z | other), by the mechanism's density on the sphere."""
        state, send = _begun(self.name, scene.release.experiment)
        gradients = []
        for person in (one, other):
            arm, reward = _place(scene, person, state)
            send(state, np.random.default_rng(), scene.population, arm, reward)
            whole = np.zeros(state.report.size)
            size = state.gradient.size
            whole[arm * size : (arm + 1) * size] = state.gradient
            gradients.append(whole)

        def scores(answers: Sequence[Answer]) -> Floats:
            table = np.array(answers, dtype=np.float64)
            clip = state.settings.clip
            likely = [_density(table, each, clip, scene.epsilon) for each in gradients]
            ratio: Floats = np.log(likely[0] / likely[1])
            return ratio[:, np.newaxis]

        return scores


def _density(table: Floats, gradient: Floats, clip: float, epsilon: float) -> Floats:
    """Return the density of reports, relative to the uniform law (``baselines/sphere.py``)."""
    keep = keep_chance(epsilon)
    norm = float(np.linalg.norm(gradient))
    if norm == 0:
        return np.ones(len(table))
    towards = 0.5 + min(norm, clip) / (2 * clip)
    same = table @ gradient > 0
    high, low = 2 * keep, 2 * (1 - keep)
    with_it = np.where(same, high, low)
    against = np.where(same, low, high)
    density: Floats = towards * with_it + (1 - towards) * against
    return density


@cache
def _begun(name: str, experiment: Experiment) -> tuple[Any, Any]:
    """Return the learner's state with hostile parameters, and what makes one report."""
    # Compiled code is loaded only where something is played.
    from sottovoce.lab.baselines.descent import send
    from sottovoce.lab.methods import baseline_from

    state: Any = baseline_from(name)(experiment).state
    state.theta[:] = 0.0
    if state.settings.width == 0:
        state.theta[:, -1] = STEEP
    else:  # one hidden unit says on which side of the middle the person is
        state.theta[:, 1] = STEEP
        state.theta[:, 1 + state.settings.width + experiment.dimension] = STEEP
    return state, send


def _place(scene: Scene, person: Person, state: Any) -> tuple[int, float]:
    """Fill in a person's features; return the person's arm and reward."""
    from sottovoce.lab.baselines.models import features

    experiment = scene.release.experiment
    if person.arm is None or person.reward is None:
        raise ExperimentError(must("people of a baseline", "have an arm and an outcome", "none"))
    features(np.array(encode(experiment, person.place)), state.phi)
    return experiment.arms.index(person.arm), person.reward
