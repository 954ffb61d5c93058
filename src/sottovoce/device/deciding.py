"""The device of a client: it makes all of a report but the outcome when it draws the arm.

So a decision can wait for its outcome for days, and nothing has to be kept of the person but what
is private already. Its ε is spent at once: the moment does not depend on what comes later.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from sottovoce.device.coins import Coins
from sottovoce.device.device import Device, anybody
from sottovoce.device.encode import encode
from sottovoce.device.method import Prepared, Secret, device_method
from sottovoce.device.moments import ends_at_a_random_turn
from sottovoce.device.privatise import prepare
from sottovoce.shared import wire
from sottovoce.shared.amendment import RUNNING
from sottovoce.shared.baseline import BASELINE
from sottovoce.shared.errors import BudgetSpent, ContextError
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.release import Release


@dataclass(frozen=True, slots=True, repr=False)
class Drawn:
    """An arm for a person, and the report on it but for the outcome.

    release: the id of the release. prepared: None if nobody is asked, or if the person has no
        budget left.
    trouble: why the context was refused. The arm is then for nobody, and the report says nothing.
    """

    arm: str
    release: bytes
    population: int
    prepared: Prepared | None
    trouble: ContextError | None


class DecidingDevice(Device):
    """A device for any number of decisions that wait."""

    @property
    def experiment(self) -> Experiment:
        """The experiment that this device takes part in."""
        return self._release.experiment

    @ends_at_a_random_turn
    def draw(self, context: Mapping[str, Any], *, coins: Coins) -> Drawn:
        """Return an arm for this person, and all of its report but the outcome; spend its ε."""
        release = self._release
        point, trouble = anybody(release.experiment), None
        try:
            point = encode(release.experiment, context)
        except ContextError as error:
            # Whether a context fits is private: the report is made and paid for all the same.
            trouble = error
        secret = self._chosen(release, point, coins).secret
        prepared = None
        if release.experiment.state == RUNNING:
            with suppress(BudgetSpent):
                prepared = prepare(
                    release, secret, population=self._population, ledger=self._ledger
                )
        if prepared is None and secret.group == BASELINE:
            # Nobody will hear of it: whoever is asked nothing is served by the policy.
            secret = replace(secret, arm=self._arm_of_policy(release, secret, coins))
        arm = release.experiment.arms[secret.arm]
        return Drawn(arm, wire.release_id(release), self._population, prepared, trouble)

    def _arm_of_policy(self, release: Release, secret: Secret, coins: Coins) -> int:
        """Draw the arm that somebody gets by the policy of their bin."""
        arm, _ = device_method(release).choose(release, release.policies[secret.path], coins)
        return arm
