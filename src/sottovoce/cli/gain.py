"""The command that says what the policy brings over the baseline: gain."""

from sottovoce.cli.app import AsJson, Command, argument, say, say_json
from sottovoce.cli.service import HERE, Database
from sottovoce.shared.errors import ExperimentError, must


class Gain(Command, extra="server"):
    """Say what the policy brings over the experiment's baseline, with its interval.

    It is measured by people whom a public coin gave the baseline's arm, and as
    many others, without any model. The interval holds at every moment at once:
    look as often as you like. It is read from the server's database, as of the
    learner's last look, in the unit of the rewards.
    """

    experiment: str | None = argument(
        None, "The experiment's name, or its fingerprint; not needed if there is only one."
    )
    database: Database = HERE
    as_json: AsJson = False

    def __call__(self) -> None:
        from sottovoce.server.gain import gain_in, gain_table, gain_words
        from sottovoce.server.store.store import Store

        store = Store.open(self.database)
        try:
            learned, experiment, gain = gain_in(store, self.experiment)
        finally:
            store.close()
        if experiment.compared_with is None:
            rule = "have a baseline, so that its gain is measured"
            hint = 'begin one with baseline = { arm = "…", share = 0.1 } in its file'
            raise ExperimentError(must("the experiment", rule, "none", hint=hint))
        words = gain_words(gain, experiment)
        if self.as_json:
            table = None if gain is None else gain_table(gain, experiment)
            say_json({"learned": learned, "gain": table, "words": words})
            return
        for line in words or ["The learner has not looked yet."]:
            say(line)
