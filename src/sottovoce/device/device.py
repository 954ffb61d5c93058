"""The device: choose an arm for a person, and report the outcome under ε-LDP."""

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

from sottovoce.device.coins import Coins, OneChoice
from sottovoce.device.encode import encode
from sottovoce.device.groups import draw_baseline_arm, draw_group
from sottovoce.device.ledger import AnyLedger, OneReport
from sottovoce.device.method import Secret, device_method
from sottovoce.device.moments import ends_at_a_random_turn
from sottovoce.device.privatise import outcome_of, privatise
from sottovoce.shared import check, wire
from sottovoce.shared.amending import continues
from sottovoce.shared.amendment import RUNNING
from sottovoce.shared.baseline import BASELINE
from sottovoce.shared.errors import ContextError, DeviceError, ForkError, must
from sottovoce.shared.experiment import TARGET, Experiment
from sottovoce.shared.release import Release
from sottovoce.shared.report import Report
from sottovoce.shared.walk import walk_of


@dataclass(frozen=True, slots=True, repr=False)
class _Choice:
    """A choice that waits for its outcome: of which release, and in which process.

    fits: whether the context was usable. If not, there is an arm for nobody and nothing to tell.
    """

    release: Release
    secret: Secret
    process: int
    fits: bool


class Device:
    """One person's side. Raw data goes in; only ``Report`` comes out.

    It has one choice at a time, in memory: ``report`` is about the last ``choose``. A ``Client``
    keeps any number of them on disk.

    release: the policy to follow; give the device the next one with ``follow``.
    population: the population that the person belongs to.
    ledger: where ε is spent. Without one, the device reports once and then refuses. It cannot know
        what another device or process of the same person has reported.
    most_epsilon: the most ε that one report may spend, whatever a release asks for.
    public_arms: WEAKER PRIVACY. Agree to experiments in which the arm of each person is public.
        Without it a device chooses no arm for them.
    """

    def __init__(
        self,
        release: Release,
        *,
        population: str = TARGET,
        ledger: AnyLedger | None = None,
        most_epsilon: float | None = None,
        public_arms: bool = False,
    ) -> None:
        self._release = release
        self._population = release.experiment.population_index(population)
        self._ledger = OneReport() if ledger is None else ledger
        epsilon = release.experiment.populations[self._population].epsilon
        if most_epsilon is not None and epsilon > check.epsilon(most_epsilon, what="most_epsilon"):
            rule = f"ask for at most epsilon = {most_epsilon:g} a report"
            raise DeviceError(must("a release", rule, epsilon))
        self._public_arms = public_arms
        self._coins = OneChoice()
        self._lock = RLock()
        self._pending: _Choice | None = None

    def follow(self, release: Release) -> None:
        """Use a newer release from the next choice on."""
        self.check(release)
        self._release = release

    def check(self, release: Release) -> None:
        """Raise unless a release is of the same experiment, with all amendments seen so far.

        ε, the populations and the features are in the first form: no amendment changes them.
        """
        now, before = release.experiment, self._release.experiment
        if now.first_form != before.first_form:
            rule = f"be of experiment {before.fingerprint}"
            raise DeviceError(must("a release to follow", rule, now.fingerprint))
        if not continues(now, before):
            raise ForkError(
                "a release to follow must have all amendments that this device has seen; it has"
                " others, or fewer"
            )

    @ends_at_a_random_turn
    def choose(self, context: Mapping[str, Any]) -> str:
        """Return the arm for this person, drawn from the arms on offer in the person's bin."""
        with self._lock:
            # Forgotten first: if this context is refused, no report may be about an earlier one.
            self._pending = None
            release = self._release
            try:
                point = encode(release.experiment, context)
            except ContextError:
                # Whoever has no usable context can still report that there is nothing to tell.
                self._pending = self._chosen(
                    release, anybody(release.experiment), self._coins, fits=False
                )
                raise
            self._pending = self._chosen(release, point, self._coins)
            return release.experiment.arms[self._pending.secret.arm]

    def _chosen(
        self, release: Release, point: Sequence[float], coins: Coins, *, fits: bool = True
    ) -> _Choice:
        policy = walk_of(release).find(point)
        if release.experiment.settings.arms_are_public and not self._public_arms:
            raise DeviceError(
                "an experiment must keep arms private, unless the device agrees to public_arms;"
                " got one in which they are public"
            )
        group = draw_group(release, coins, population=self._population)
        arm, ranking = device_method(release).choose(release, policy, coins)
        if group == BASELINE:  # which is public
            arm = draw_baseline_arm(release)
        secret = Secret(tuple(point), policy.path, arm, ranking=ranking, group=group)
        return _Choice(release, secret, os.getpid(), fits)

    @ends_at_a_random_turn
    def report(self, *, reward: float | None) -> Report:
        """Return the ε-LDP report on the outcome of the last choice, and spend its ε.

        reward: None if no outcome came, or if ``choose`` refused the context. The report then tells
        nothing, and looks like any other: whether there was an outcome is private, too.
        """
        # An outcome that cannot be used costs nothing, and the choice stays.
        outcome_of(self._release.experiment, reward)
        with self._lock:
            choice = self._waiting_choice()
            if reward is not None and not choice.fits:
                raise DeviceError(
                    "choose must come before each report; the last context was refused: the reward"
                    " of such a report must be None"
                )
            # Gone before the report is made: whatever happens now, there is no second report on it.
            self._pending = None
            report = self._privatise(choice.release, choice.secret, reward=reward)
            self._coins.use()
            return report

    def _waiting_choice(self) -> _Choice:
        if self._pending is None:
            raise DeviceError(
                "choose must come before each report; nothing was chosen since the last one"
            )
        # A fork copies the choice, and each copy would make a report on it.
        if self._pending.process != os.getpid():
            raise DeviceError("a choice must be reported where it was made; got another process")
        return self._pending

    @ends_at_a_random_turn
    def report_logged(self, context: Mapping[str, Any], *, arm: str, reward: float) -> Report:
        """Return the ε-LDP report on a logged row, whose arm some other policy chose."""
        release = self._release
        experiment = release.experiment
        if arm not in experiment.arms:
            rule = f"be one of {list(experiment.arms)}"
            raise DeviceError(must("a logged arm", rule, "another name"))
        point = encode(experiment, context)
        path = walk_of(release).find(point).path
        secret = Secret(point, path, experiment.arms.index(arm), logged=True)
        return self._privatise(release, secret, reward=reward)

    @ends_at_a_random_turn
    def report_nothing_logged(self) -> Report:
        """Return the ε-LDP report on a logged row that does not fit the experiment.

        It tells nothing, and looks like the report on any other row: if rows were left out, their
        number would tell what is in them.
        """
        release = self._release
        point = anybody(release.experiment)
        secret = Secret(point, walk_of(release).find(point).path, 0, logged=True)
        return self._privatise(release, secret, reward=None)

    def _privatise(self, release: Release, secret: Secret, *, reward: float | None) -> Report:
        state = release.experiment.state
        if state != RUNNING:
            raise DeviceError(must("an experiment", "be running to be reported to", state))
        answer = privatise(
            release, secret, population=self._population, reward=reward, ledger=self._ledger
        )
        return Report(
            release=wire.release_id(release),
            population=self._population,
            nonce=secrets.token_bytes(16),
            payload=answer.payload,
            question=answer.question,
            ranking=answer.ranking,
        )


def anybody(experiment: Experiment) -> tuple[float, ...]:
    """Return a point that stands for somebody: a null report does not depend on who it is."""
    return (0.5,) * experiment.dimension
