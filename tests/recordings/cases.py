"""The recorded cases: experiments whose reports are replayed, and simulations with fixed seeds."""

from dataclasses import dataclass, field
from typing import Any

import sottovoce as sv

_CONTEXT = [sv.Numeric("x1", 0, 1), sv.Numeric("x2", 0, 1)]
_LEVELS = sv.Ordinal("dose", ("none", "low", "middle", "high"))


def _experiment(arms: int, epsilon: float, **settings: Any) -> sv.Experiment:
    defaults: dict[str, Any] = {
        "arms": [f"arm {k}" for k in range(arms)],
        "context": _CONTEXT,
        "epsilon": epsilon,
        "horizon": 4000,
        "release_every": 50,
        "seed": 7,
    }
    return sv.Experiment(**{**defaults, **settings})


@dataclass(frozen=True)
class Log:
    """Reports of simulated people: ``rows`` of each auxiliary population first, then ``people``."""

    experiment: sv.Experiment
    people: int
    rows: tuple[int, ...] = ()


_KNOWN = sv.Population("clinic b", 4.0, 1500, [0.5, 0.5])
_UNKNOWN = sv.Population("trial", 2.0, 800)
_THREE = sv.Population("three", 4.0, 1500, [0.5, 0.25, 0.25])

LOGS = {
    "whisper-2-arms-eps-1": Log(_experiment(2, 1.0), 4000),
    "whisper-2-arms-eps-4": Log(_experiment(2, 4.0), 4000),
    "whisper-3-arms-eps-2": Log(_experiment(3, 2.0), 4000),
    "whisper-3-arms-eps-16": Log(_experiment(3, 16.0, context=[*_CONTEXT, _LEVELS]), 3000),
    "whisper-2-arms-auxiliary": Log(
        _experiment(2, 2.0, auxiliary=[_KNOWN, _UNKNOWN]), 2500, (1500, 800)
    ),
    "whisper-3-arms-auxiliary": Log(
        _experiment(3, 4.0, auxiliary=[_THREE, _UNKNOWN]), 2500, (1500, 800)
    ),
    "whisper-certified": Log(_experiment(2, 4.0, method=sv.Whisper("certified")), 4000),
    "whisper-certified-3-arms": Log(_experiment(3, 8.0, method=sv.Whisper("certified")), 4000),
    "whisper-public-arms": Log(_experiment(3, 2.0, method=sv.Whisper(public_arms=True)), 3000),
    "whisper-public-arms-eps-8": Log(
        _experiment(3, 8.0, method=sv.Whisper(public_arms=True)), 3000
    ),
    "ldpmab-authors": Log(
        _experiment(3, 16.0, method=sv.Ldpmab("authors"), horizon=800, release_every=20), 800
    ),
    "ldpmab-authors-auxiliary": Log(
        _experiment(
            2,
            64.0,
            method=sv.Ldpmab("authors"),
            horizon=600,
            release_every=20,
            auxiliary=[sv.Population("trial", 16.0, 400)],
        ),
        600,
        (400,),
    ),
    "ldpmab-paper": Log(
        _experiment(3, 64.0, method=sv.Ldpmab("paper", 0.02), horizon=800, release_every=20), 800
    ),
}


@dataclass(frozen=True)
class Simulation:
    """One run of ``simulate``; ``world`` names one of the environments of ``record.WORLDS``."""

    world: str
    settings: dict[str, Any] = field(default_factory=dict)


def _simulations() -> dict[str, Simulation]:
    cases = {}
    for world in ("exponential", "symmetric", "two arms"):
        for epsilon in (0.5, 1.0, 4.0, 1024.0):
            cases[f"whisper {world} eps {epsilon:g}"] = Simulation(
                world, {"method": "whisper", "epsilon": epsilon}
            )
    points = [[0.2, 0.7], [0.9, 0.1]]
    auxiliary: list[dict[str, Any]] = [
        {"users": 5000, "epsilon": 4.0},
        {"users": 3333, "epsilon": 1.0, "kappa": 0.5, "known": False, "name": "unknown"},
    ]
    for world in ("exponential", "symmetric"):
        for name in ("whisper", "ldpmab"):
            cases[f"{name} {world} auxiliary"] = Simulation(
                world,
                {"method": name, "epsilon": 2.0, "auxiliary": auxiliary, "points": points},
            )
    cases["whisper auto order"] = Simulation(
        "exponential",
        {"method": "whisper", "epsilon": 1.0, "auxiliary": auxiliary, "order": "auto"},
    )
    misleading = [{"users": 8000, "epsilon": 4.0, "environment": "upside down"}]
    cases["whisper heeding"] = Simulation(
        "two arms",
        {"method": "whisper", "epsilon": 2.0, "auxiliary": misleading, "heed": True},
    )
    for guarantee in ("certified", "public"):
        method: dict[str, Any] = {"name": "whisper"}
        method |= {"public_arms": True} if guarantee == "public" else {"guarantee": "certified"}
        for epsilon in (1.0, 8.0):
            cases[f"whisper {guarantee} eps {epsilon:g}"] = Simulation(
                "exponential", {"method": method, "epsilon": epsilon, "points": points}
            )
    for preset in ("authors", "paper"):
        method = {"name": "ldpmab", "preset": preset}
        for epsilon in (1.0, 64.0):
            cases[f"ldpmab {preset} eps {epsilon:g}"] = Simulation(
                "exponential", {"method": method, "epsilon": epsilon, "points": points}
            )
    cases["ldpmab leaking"] = Simulation(
        "exponential",
        {
            "method": {"name": "ldpmab", "preset": "authors"},
            "epsilon": 4.0,
            "not_private_leaking_noise": True,
        },
    )
    for baseline in ("abse", "linear", "nn"):
        cases[baseline] = Simulation(
            "exponential",
            {"method": baseline, "epsilon": 2.0, "auxiliary": auxiliary, "points": points},
        )
    cases["short steps"] = Simulation(
        "two arms", {"method": "whisper", "epsilon": 8.0, "n": 3001, "release_every": 7}
    )
    return cases


SIMULATIONS = _simulations()
