"""BOTH: the only room where raw data and reports meet, because everyone in it is simulated.

    from sottovoce.lab import Exponential, simulate

    result = simulate(Exponential(), epsilon=1, n=100_000, seed=0)
    print(result.regret[-1])  # the reward that 100,000 simulated people lost in all

    simulate   one run of a method in a simulated world: an ``Environment``
    sweep      many settings, many times, on all cores
    Table      a classification table of your own as a data set; ``play`` runs a method on it, and
               ``compare`` all methods
    Policy     a method of your own
    running    a server on this machine, for tests

These names are public; the modules of this room are internal. They need the extra "lab", and are
loaded when they are first used.
"""

from typing import TYPE_CHECKING

from sottovoce.shared.extras import load

if TYPE_CHECKING:
    from sottovoce.lab.amendments import AmendedAfter
    from sottovoce.lab.baselines import Abse, Linear, Neural
    from sottovoce.lab.comparison import Compared, Effort, compare
    from sottovoce.lab.data.playing import play, reward_at
    from sottovoce.lab.data.sample import DataSet, Sample
    from sottovoce.lab.data.table import Table
    from sottovoce.lab.drift import SlowDrift, SuddenDrift
    from sottovoce.lab.driver import Policy
    from sottovoce.lab.environments import (
        Environment,
        Exponential,
        People,
        Rows,
        Shifted,
        Slope,
        Symmetric,
        regret_at_random,
    )
    from sottovoce.lab.local_server import LocalServer, running
    from sottovoce.lab.missing import Missing
    from sottovoce.lab.simulation import Auxiliary, PlayOptions, Result, SimulateOptions, simulate
    from sottovoce.lab.sweeps import Run, sweep
    from sottovoce.lab.worlds import LevelsInTurns, LongTails, PartlyOther, Stripes, Widened, Xor

__all__ = [
    "Abse",
    "AmendedAfter",
    "Auxiliary",
    "Compared",
    "DataSet",
    "Effort",
    "Environment",
    "Exponential",
    "LevelsInTurns",
    "Linear",
    "LocalServer",
    "LongTails",
    "Missing",
    "Neural",
    "PartlyOther",
    "People",
    "PlayOptions",
    "Policy",
    "Result",
    "Rows",
    "Run",
    "Sample",
    "Shifted",
    "SimulateOptions",
    "Slope",
    "SlowDrift",
    "Stripes",
    "SuddenDrift",
    "Symmetric",
    "Table",
    "Widened",
    "Xor",
    "compare",
    "play",
    "regret_at_random",
    "reward_at",
    "running",
    "simulate",
    "sweep",
]

_MODULES = {
    "sottovoce.lab.amendments": "AmendedAfter",
    "sottovoce.lab.baselines": "Abse Linear Neural",
    "sottovoce.lab.comparison": "Compared Effort compare",
    "sottovoce.lab.data.playing": "play reward_at",
    "sottovoce.lab.data.sample": "DataSet Sample",
    "sottovoce.lab.data.table": "Table",
    "sottovoce.lab.drift": "SlowDrift SuddenDrift",
    "sottovoce.lab.driver": "Policy",
    "sottovoce.lab.environments": "Environment Exponential People Rows Shifted Slope Symmetric"
    " regret_at_random",
    "sottovoce.lab.local_server": "LocalServer running",
    "sottovoce.lab.missing": "Missing",
    "sottovoce.lab.simulation": "Auxiliary PlayOptions Result SimulateOptions simulate",
    "sottovoce.lab.sweeps": "Run sweep",
    "sottovoce.lab.worlds": "LevelsInTurns LongTails PartlyOther Stripes Widened Xor",
}
"""The public names that each module has."""


def __getattr__(name: str) -> object:
    return load(name, _MODULES, package=__name__)


def __dir__() -> list[str]:
    return [*__all__, "__doc__"]
