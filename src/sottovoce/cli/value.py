"""The command that says what policies would bring: value."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from sottovoce.cli.app import AsJson, Command, argument, errors, option, say, say_json
from sottovoce.cli.service import HERE, Database

if TYPE_CHECKING:
    from sottovoce.estimate.figures import Value as Figure
    from sottovoce.shared.experiment import Experiment
    from sottovoce.shared.reward import RewardScale


class Value(Command, extra="server"):
    """Say what people would get on average by a policy, from the stored reports alone.

    A policy is one of these:

    - always:ARM gives everybody one arm.

    - release:NUMBER is what a release did, its comparisons included.

    - FILE is a policy file of sottovoce export, or a signed release. Its
    signature is not checked: nobody follows it here.

    Without --policy: the newest release, and each arm for everybody. The
    interval has the noise of the mechanism in it, and who happened to come.
    """

    experiment: str | None = argument(
        None,
        "The experiment's name, fingerprint or TOML file; not needed if there is only one.",
    )
    policy: list[str] | None = option(
        None, "always:ARM, release:NUMBER or a policy file; repeatable."
    )
    database: Database = HERE
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.server.store.store import Store
        from sottovoce.server.value import fingerprint_of, learner_of, named_policy

        store = Store.open(self.database)
        try:
            fingerprint = fingerprint_of(store, self.experiment)
            with errors.status("counting reports") as shown:
                learner = learner_of(
                    store, fingerprint, each=lambda n: shown.update(f"counting reports: {n:,}")
                )
            names = self.policy or _usual(learner.experiment, learner.release().version)
            policies = [named_policy(store, learner, name) for name in names]
        finally:
            store.close()
        values = [learner.value(policy) for policy in policies]
        if self.as_json:
            say_json(
                {
                    "experiment": fingerprint,
                    "name": learner.experiment.name,
                    "values": [asdict(each) for each in values],
                }
            )
            return
        for each in values:
            say(_line(each, learner.experiment.rewards))


def _usual(experiment: "Experiment", newest: int) -> list[str]:
    arms = [arm for k, arm in enumerate(experiment.arms) if k not in experiment.retired]
    return [f"release:{newest}", *(f"always:{arm}" for arm in arms)]


def _line(value: "Figure", rewards: "RewardScale") -> str:
    # No mean is beyond the bounds of the rewards.
    low = max(value.estimate - value.radius, rewards.low)
    high = min(value.estimate + value.radius, rewards.high)
    interval = f"{low:.4g} to {high:.4g}, {value.level:.0%} interval"
    return f"{value.policy}: {value.estimate:.4g} ({interval})"
