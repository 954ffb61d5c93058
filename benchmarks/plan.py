"""How good plans are: the rule of thumb is fitted, and plans are held to worlds they have not seen.

    python -m benchmarks.plan                                  both parts, as JSON
    python -m benchmarks.plan --measure FILE.json [--reps N]   losses in many settings, for --fit
    python -m benchmarks.plan --fit                            fit the rule; say how far it is off
    python -m benchmarks.plan --check FILE.json [--settings N] [--worlds N]   plans against worlds

**The check.** A plan knows the experiment and the effect; it does not know the world. So a setting
is an experiment with an effect, drawn at random. Its plan is made from worlds of seeds below
1,000,000. Then worlds happen that the plan has not seen, of seeds above: drawn from the same
declared family. Their median number of people and their mean loss are set beside what was
predicted. Beside that stands how many single worlds lie within the plan's own range, which should
be 8 in 10.
"""

import argparse
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy.optimize import least_squares

from sottovoce.lab.plan.plan import MOST_PEOPLE_SUITED, line_of
from sottovoce.lab.plan.runs import Case, Followed, follow
from sottovoce.shared.experiment import Experiment
from sottovoce.shared.schema import Boolean, Categorical, Feature, Numeric, Ordinal
from sottovoce.shared.whisper.axes import slots_of
from sottovoce.shared.whisper.outlook import Powers, people_for_half, share_of_random
from sottovoce.shared.whisper.planned import BINS, REFERENCE, expected_loss
from sottovoce.shared.whisper.subset import signed_subset

KEPT = Path(__file__).parents[1] / "docs" / "figures" / "results" / "plan.json"

HELD_OUT = 1_000_000
"""Seeds from here on are of worlds that no plan sees."""

SETTINGS = {"fit": 300, "check": 72}
"""How many settings there are."""

SETTINGS_SEED = {"fit": 1, "check": 2}
"""Settings are drawn anew for each purpose."""

WITHIN = 0.25
"""How far a prediction may be off."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A setting."""

    arms: int
    kinds: tuple[str, ...]
    epsilon: float
    effect: float
    people: int

    @property
    def case(self) -> Case:
        """The case that is planned."""
        features = [_feature(kind, f"{kind} {n}") for n, kind in enumerate(self.kinds)]
        experiment = Experiment(
            arms=[f"arm {k}" for k in range(self.arms)],
            context=features,
            epsilon=self.epsilon,
            horizon=self.people,
        )
        return Case(experiment, self.effect, 0)


def _feature(kind: str, name: str) -> Feature:
    match kind:
        case "number":
            return Numeric(name, 0, 1)
        case "optional number":
            return Numeric(name, 0, 1, optional=True)
        case "ordinal":
            return Ordinal(name, ("low", "middling", "high"))
        case "boolean":
            return Boolean(name)
        case _:
            return Categorical(name, tuple(f"level {n}" for n in range(int(kind.split()[0]))))


KINDS = (
    "number",
    "number",
    "number",
    "optional number",
    "ordinal",
    "boolean",
    "4 levels",
    "8 levels",
)


CHOICES: dict[str, dict[str, Sequence[float]]] = {
    "fit": {
        "arms": (2, 2, 3, 4, 6),
        "effect": (0.05, 0.1, 0.2, 0.4),
        "people": (2_000, 5_000, 20_000, 80_000),
    },
    "check": {
        "arms": (2, 2, 3, 4),
        "effect": (0.1, 0.2, 0.4),
        "people": (5_000, 20_000, 80_000),
    },
}
"""What settings are drawn from. In a check, more of them reach what is predicted."""


def drawn(purpose: str, count: int) -> list[Drawn]:
    """Draw settings; always the same ones."""
    rng, choices = np.random.default_rng(SETTINGS_SEED[purpose]), CHOICES[purpose]
    found = []
    for _ in range(count):
        features = int(rng.choice([1, 2, 3, 4, 6, 8]))
        found.append(
            Drawn(
                arms=int(rng.choice(choices["arms"])),
                kinds=tuple(str(kind) for kind in rng.choice(KINDS, features)),
                epsilon=float(rng.choice([0.5, 1.0, 2.0, 4.0])),
                effect=float(rng.choice(choices["effect"])),
                people=int(rng.choice(choices["people"])),
            )
        )
    return found


def played(settings: Sequence[Drawn], seeds: Sequence[int], workers: int) -> list[list[Followed]]:
    """Play each setting with each seed."""
    jobs = (joblib.delayed(follow)(each.case, seed) for each in settings for seed in seeds)
    runs = iter(joblib.Parallel(n_jobs=workers)(jobs))
    return [[next(runs) for _ in seeds] for _ in settings]


def measured(settings: Sequence[Drawn], *, reps: int, workers: int) -> list[dict[str, Any]]:
    """Return what each setting loses as a share of random."""
    found = []
    for each, runs in zip(settings, played(settings, range(reps), workers), strict=True):
        line = line_of(each.case, runs, share=0.1)
        found.append({**asdict(each), "share": round(line.lost_share, 4)})
    return found


def fit(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Fit the numbers of the rule to shares of random, by least squares."""
    settings = [_setting(row) for row in rows]
    shares = np.array([min(row["share"], 1.0) for row in rows])
    sizes = [_size(each) for each in settings]

    def told(values: Any) -> Any:
        people, arms, axes, levels, effects, fall = values
        powers = Powers(math.exp(people), arms, axes, levels)
        return np.array(
            [
                share_of_random(
                    each.people,
                    half=people_for_half(**size, powers=powers)
                    * (REFERENCE / each.effect) ** effects,
                    fall=fall,
                )
                for each, size in zip(settings, sizes, strict=True)
            ]
        )

    found = least_squares(lambda values: told(values) - shares, [5.0, 1.5, 1.0, 0.5, 2.0, 0.7])
    people, arms, axes, levels, effects, fall = found.x.tolist()
    return {
        "people": math.exp(people),
        "arms": arms,
        "axes": axes,
        "levels": levels,
        "EFFECTS": effects,
        "FALL": fall,
        "root mean square error": math.sqrt(2 * found.cost / len(shares)),
        "that of the rule as it is": rule_error(rows),
    }


def rule_error(rows: Sequence[dict[str, Any]]) -> float:
    """Return the root mean square error of the rule as it is."""
    errors = [
        expected_loss(each.case.experiment, effect=each.effect) - min(row["share"], 1.0)
        for row, each in zip(rows, map(_setting, rows), strict=True)
    ]
    return math.sqrt(statistics.fmean(error**2 for error in errors))


def _setting(row: dict[str, Any]) -> Drawn:
    return Drawn(row["arms"], tuple(row["kinds"]), row["epsilon"], row["effect"], row["people"])


def _size(each: Drawn) -> dict[str, Any]:
    experiment = each.case.experiment
    return {
        "variance": signed_subset(each.epsilon, BINS).variance,
        "arms": each.arms,
        "axes": experiment.dimension,
        "levels": sum(slots_of(experiment).levels),
    }


def checked(settings: Sequence[Drawn], *, worlds: int, workers: int) -> list[dict[str, Any]]:
    """Set plans beside worlds that they have not seen."""
    planned = played(settings, range(worlds), workers)
    happened = played(settings, range(HELD_OUT, HELD_OUT + worlds), workers)
    found = []
    for each, before, after in zip(settings, planned, happened, strict=True):
        plan, world = (line_of(each.case, runs, share=0.1) for runs in (before, after))
        until = [min(line.people_until_most.middle, math.inf) for line in (plan, world)]
        single = [run.people_until(MOST_PEOPLE_SUITED) for run in after]
        low, high = plan.people_until_most.low, plan.people_until_most.high
        found.append(
            {
                **asdict(each),
                "people_planned": _finite(until[0]),
                "people_happened": _finite(until[1]),
                "reached_planned": plan.reached,
                "lost_planned": plan.lost,
                "lost_happened": world.lost,
                "worse_planned": plan.worse_in_all,
                "worse_happened": world.worse_in_all,
                "share_planned": plan.lost_share,
                "within_range": statistics.fmean(low <= value <= high for value in single),
                "rule": expected_loss(each.case.experiment, effect=each.effect),
            }
        )
    return found


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Say how many predictions are within a quarter."""
    people = [off_people(row) for row in rows]
    loss = [off_loss(row) for row in rows]
    sides = [reached(row) for row in rows]
    known = [each for each, times in zip(people, sides, strict=True) if times == 2]
    lines = [
        f"{len(rows)} settings",
        f"people: within {WITHIN:.0%} in {sum(each <= WITHIN for each in people)};"
        f" in {sides.count(0)} both say: more than those who come, in {sides.count(1)} one of them;"
        f" of the {len(known)} others {sum(each <= WITHIN for each in known)},"
        f" median error {statistics.median(known):.1%}",
        f"loss: within {WITHIN:.0%} in {sum(each <= WITHIN for each in loss)};"
        f" median error {statistics.median(loss):.1%}, worst {max(loss):.1%}",
        "single worlds within the plan's range of 8 in 10:"
        f" {statistics.fmean(row['within_range'] for row in rows):.1%}",
    ]
    for row, of_people, of_loss in zip(rows, people, loss, strict=True):
        if max(of_people, of_loss) > WITHIN:
            lines.append(f"outside: {json.dumps(row)}")
    return lines


def off_people(row: dict[str, Any]) -> float:
    """Return by how much the people were predicted wrongly.

    None is "more than those who come". Where only one of the two says so, the error is at least
    that of all who come; more cannot be known, and less would be unfair.
    """
    planned, happened = row["people_planned"], row["people_happened"]
    if planned is None and happened is None:
        return 0.0
    if happened is None:
        return float(1 - planned / row["people"])
    return float(abs((planned or row["people"]) / happened - 1))


def off_loss(row: dict[str, Any]) -> float:
    """Return by how much the loss was predicted wrongly."""
    return float(abs(row["lost_planned"] / row["lost_happened"] - 1))


def reached(row: dict[str, Any]) -> int:
    """Say on how many of the two sides most people are suited before the end."""
    return sum(row[name] is not None for name in ("people_planned", "people_happened"))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def main() -> None:
    """Do what was asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--measure", type=Path, help="measure settings for the rule, into a file")
    parser.add_argument("--fit", action="store_true", help="fit the rule to what was measured")
    parser.add_argument("--check", type=Path, help="hold plans to other worlds, into a file")
    parser.add_argument("--from", dest="source", type=Path, default=KEPT, help="what --fit reads")
    parser.add_argument("--settings", type=int, help="how many settings; 300, and 72 of --check")
    parser.add_argument("--worlds", type=int, default=120, help="worlds on either side; 120")
    parser.add_argument(
        "--reps", type=int, default=4, help="worlds of each setting of --measure; 4"
    )
    parser.add_argument("--workers", type=int, default=2, help="processes; 2")
    given = parser.parse_args()
    if given.fit:
        kept = json.loads(given.source.read_text(encoding="utf-8"))
        for name, value in fit(kept["result"]["rule"] if isinstance(kept, dict) else kept).items():
            print(f"{name} = {value:.3g}")
        return
    both = given.measure is None and given.check is None
    made = {}
    if both or given.measure is not None:
        settings = drawn("fit", given.settings or SETTINGS["fit"])
        made["rule"] = measured(settings, reps=given.reps, workers=given.workers)
        _keep(made["rule"], given.measure)
    if both or given.check is not None:
        settings = drawn("check", given.settings or SETTINGS["check"])
        made["check"] = checked(settings, worlds=given.worlds, workers=given.workers)
        _keep(made["check"], given.check)
    if both:
        print(json.dumps(made))
    elif given.check is not None:
        print("\n".join(summary(made["check"])))


def _keep(rows: list[dict[str, Any]], path: Path | None) -> None:
    if path is not None:
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
