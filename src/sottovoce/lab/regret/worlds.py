"""Regret in worlds beyond the paper's, and the limits that it has to keep.

Each world is measured by its share: what people lose, divided by what arms at random lose.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sottovoce.lab.drift import SlowDrift, SuddenDrift
from sottovoce.lab.environments import Environment, Exponential
from sottovoce.lab.means import Mean
from sottovoce.lab.methods import method_of
from sottovoce.lab.missing import Missing
from sottovoce.lab.regret.cells import RANDOM, Options, Place, RegretCell, measure
from sottovoce.lab.simulation import Auxiliary, SimulateOptions, simulate
from sottovoce.lab.sweeps import Setting
from sottovoce.lab.worlds import LevelsInTurns, Linear, LongTails, PartlyOther, Stripes, Xor
from sottovoce.shared import check
from sottovoce.shared.errors import ExperimentError, must
from sottovoce.shared.whisper import Whisper

METHODS = ("whisper",)
"""What is run unless other methods are asked for."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that may be lost: a share of random, or a multiple of another world's at this ε.

    of: the name of that world; None for a share of random.
    """

    most: float
    of: str | None = None


@dataclass(frozen=True, slots=True)
class World:
    """Where to measure, and how much may be lost.

    auxiliary: rows that come before the target.
    since: only people after so many others are judged.
    half_life: of ``whisper``, which then lets fade what it learned.
    limits: by ε.
    """

    environment: Environment
    n: int
    epsilons: Sequence[float] = (1.0, 4.0)
    auxiliary: Sequence[Auxiliary] = ()
    since: int = 0
    half_life: int | None = None
    limits: Mapping[float, Limit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shared:
    """What one method lost in one world at one ε, as a share of random, and whether that is fine.

    limit: None where there is none.
    allowed: the limit as a share of random.
    """

    world: str
    method: str
    epsilon: float
    share: Mean
    limit: Limit | None = None
    allowed: float | None = None

    @property
    def holds(self) -> bool | None:
        """Say whether the mean keeps its limit; None where there is none."""
        return None if self.allowed is None else self.share.mean <= self.allowed


def _shares(**shares: float) -> dict[float, Limit]:
    """Limits by ε: e1 for ε = 1, and so on."""
    return {float(name[1:]): Limit(most) for name, most in shares.items()}


def _times(of: str, **factors: float) -> dict[float, Limit]:
    """Limits by ε, as multiples of another world's share."""
    return {float(name[1:]): Limit(most, of) for name, most in factors.items()}


BASE = Exponential()
"""Three arms and two features, the first of which matters."""

UNIFORM, NO_ROWS, PLANE = "exponential, uniform", "rows: none", "linear, 2 of 2 features"
"""The worlds that others are measured by."""


def _with_rows(wrong: float, limits: Mapping[float, Limit]) -> World:
    rows = Auxiliary(20_000, 4.0, PartlyOther(BASE, wrong))
    return World(BASE, 40_000, auxiliary=(rows,), limits=limits)


def _exponential(dimension: int, **shares: float) -> World:
    return World(Exponential(dimension=dimension), 80_000, limits=_shares(**shares))


_MISLED = _times(NO_ROWS, e1=1.15, e4=1.5)
_SUDDEN = SuddenDrift(BASE, 40_000, 0.5)
_SLOW = SlowDrift(BASE, 80_000, 0.5)
_STILL = "exponential, 1 of 2 features"
_LEVELS = (1.0, 4.0, 8.0)

WORLDS: Mapping[str, World] = {
    _STILL: _exponential(2),
    "exponential, 1 of 5 features": _exponential(5),
    "exponential, 1 of 10 features": _exponential(10),
    "exponential, 1 of 20 features": _exponential(20, e1=0.42, e4=0.07),
    "exponential, 1 of 40 features": _exponential(40, e1=0.55, e4=0.11),
    PLANE: World(Linear(), 80_000),
    "linear, 2 of 20 features": World(
        Linear(dimension=20), 80_000, limits=_times(PLANE, e1=1.6, e4=2)
    ),
    "6 levels in turns": World(
        LevelsInTurns(6), 40_000, _LEVELS, limits=_shares(e1=0.32, e4=0.05, e8=0.04)
    ),
    "6 levels, sorted": World(LevelsInTurns(6, in_turns=False), 40_000, _LEVELS),
    "12 levels in turns": World(LevelsInTurns(12), 40_000, _LEVELS),
    "30 levels in turns": World(
        LevelsInTurns(30), 40_000, _LEVELS, limits=_shares(e4=0.35, e8=0.10)
    ),
    UNIFORM: World(BASE, 40_000),
    "exponential, long tails": World(
        LongTails(BASE), 40_000, limits=_times(UNIFORM, e1=1.3, e4=1.3)
    ),
    NO_ROWS: World(BASE, 40_000),
    "rows: right": _with_rows(0, _shares(e1=0.02, e4=0.01)),
    "rows: wrong in 25 %": _with_rows(0.25, _MISLED),
    "rows: wrong in 50 %": _with_rows(0.5, _MISLED),
    "rows: wrong in 75 %": _with_rows(0.75, _MISLED),
    "sudden drift, 2nd half": World(
        _SUDDEN, 80_000, since=40_000, half_life=20_000, limits=_shares(e1=0.6, e4=0.3)
    ),
    "slow drift, 2nd half": World(_SLOW, 80_000, since=40_000, half_life=20_000),
    "no drift, but a half-life": World(
        BASE, 80_000, half_life=20_000, limits=_times(_STILL, e1=1.15, e4=1.15)
    ),
    "a value missing at random": World(Missing(BASE, 0.3), 40_000),
    "a value missing, not at random": World(Missing(BASE, 0.3, matters=True), 40_000),
    "4 stripes": World(Stripes(4), 40_000),
    "8 stripes": World(Stripes(8), 40_000),
    "xor of 2 of 6 features": World(Xor(), 40_000),
}
"""All worlds by name. The rows are 20,000 at ε = 4, with arms at random."""


def chosen_worlds(only: str | None = None) -> dict[str, World]:
    """Return the worlds with a text in their name, and those that their limits ask for."""
    wanted = "" if only is None else only.casefold()
    names = [name for name in WORLDS if wanted in name.casefold()]
    if not names:
        raise ExperimentError(must("only", "be in the name of a world", f"{only!r}: none has it"))
    asked = {limit.of for name in names for limit in WORLDS[name].limits.values()}
    return {name: world for name, world in WORLDS.items() if name in {*names, *asked}}


def in_worlds(options: Options, *, only: str | None = None) -> list[Shared]:
    """Measure in all worlds, or in those with a text in their name."""
    check.whole_number(options.reps, what="reps in the worlds", least=2)
    for method in options.methods:
        method_of(method)
    places = []
    for name, world in chosen_worlds(only).items():
        for epsilon in world.epsilons:
            setting = {"world": name, "epsilon": epsilon}
            settings = {method: {"method": method, **setting} for method in options.methods}
            # The cell has as many people as are judged, so that its share is theirs.
            cell = RegretCell("worlds", name, "", epsilon, world.n - world.since, {})
            places.append(Place(cell, world.environment, settings))
    return judged(measure(places, options, task=regret_in_world))


def judged(cells: Sequence[RegretCell]) -> list[Shared]:
    """Turn what was lost into shares of random, and put the limits beside them."""
    shares = {
        (cell.world, method, cell.epsilon): _share(cell, method)
        for cell in cells
        for method in cell.methods
    }
    found = []
    for (name, method, epsilon), share in shares.items():
        limit, allowed = WORLDS[name].limits.get(epsilon), None
        if limit is not None:
            yardstick = 1.0 if limit.of is None else shares[limit.of, method, epsilon].mean
            allowed = limit.most * yardstick
        found.append(Shared(name, method, epsilon, share, limit, allowed))
    return found


def _share(cell: RegretCell, method: str) -> Mean:
    lost, at_random = cell.lost[method], cell.lost[RANDOM].mean
    return Mean(lost.mean / at_random, lost.sd / at_random, lost.reps)


def regret_in_world(setting: Setting, seed: int) -> dict[str, float]:
    """Make one run of a sweep."""
    world = WORLDS[setting["world"]]
    options: SimulateOptions = {"auxiliary": world.auxiliary}
    method = setting["method"]
    if world.half_life is not None and method == "whisper":
        method = Whisper(half_life=world.half_life)
    result = simulate(
        world.environment,
        method=method,
        epsilon=setting["epsilon"],
        n=world.n,
        seed=seed,
        **options,
    )
    return {"regret": result.regret_since(world.since)}


def as_json(found: Sequence[Shared]) -> dict[str, Any]:
    """Write all figures as one JSON object."""
    return {
        "worlds": [
            {
                "world": each.world,
                "method": each.method,
                "epsilon": each.epsilon,
                "n": WORLDS[each.world].n,
                "share_of_random": each.share.mean,
                "standard_error": each.share.standard_error,
                "reps": each.share.reps,
                "limit": None if each.limit is None else asdict(each.limit),
                "allowed": each.allowed,
                "holds": each.holds,
            }
            for each in found
        ],
        "limits": sum(each.holds is not None for each in found),
        "kept": sum(each.holds is True for each in found),
    }
