"""Results → what texts quote of them: a figure, or a whole table in Markdown, for each key."""

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.expect import PEOPLE, cell_of
from benchmarks.plan import WITHIN, off_loss, off_people, reached, rule_error

from sottovoce.lab.regret.cells import LEAST_RATIO
from sottovoce.server.outlook import MOST_SHARE
from sottovoce.shared.whisper.outlook import expected_share

Figures = dict[str, str]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plus_minus(mean: float, error: float, digits: int = 2) -> str:
    """Write a mean with its standard error."""
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def mean_and_worst(cells: Iterable[Mapping[str, Any]]) -> str:
    """Write the geometric mean of the ratios to the published regret, and the worst."""
    ratios = [cell["ratio"]["published"] for cell in cells]
    mean = statistics.geometric_mean(max(ratio, LEAST_RATIO) for ratio in ratios)
    return f"{mean:.3f}, {max(ratios):.2f}"


def summary_figures(summary: Iterable[Mapping[str, Any]], group: str, against: str) -> Figures:
    """Quote one line of a summary: mean, worst and the number of cells."""
    (line,) = (each for each in summary if (each["group"], each["against"]) == (group, against))
    mean, worst = f"{line['geometric_mean']:.3f}", f"{line['worst']:.2f}"
    return {"mean": mean, "worst": worst, "cells": str(line["cells"])}


def under(prefix: str, figures: Figures) -> Figures:
    """Put a name before each key."""
    return {f"{prefix}.{key}": text for key, text in figures.items()}


def of_regret(result: Any, _: Mapping[str, Any]) -> Figures:
    """Quote the paper's cells without auxiliary data."""
    cells = {(each["world"], each["epsilon"], each["n"]): each for each in result["cells"]}
    sizes = sorted({n for _, _, n in cells})
    epsilons = sorted({epsilon for _, epsilon, _ in cells})
    lines = {
        "whisper": "`whisper`",
        "ldpmab": "`ldpmab`, the paper's method with honest noise",
        "published": "as the paper's authors published it, with noise that leaks",
    }

    def share(cell: Mapping[str, Any], line: str) -> str:
        return f"{cell['regret'][line]['mean'] / cell['regret']['random']['mean']:.2f}"

    ratios = [
        [
            world,
            f"{epsilon:g}",
            *(f"{cells[world, epsilon, n]['ratio']['published']:.2f}" for n in sizes),
        ]
        for world in dict.fromkeys(world for world, _, _ in cells)
        for epsilon in epsilons
    ]
    shares = [
        [name, *(share(cells["exponential", epsilon, 80_000], line) for epsilon in (1, 2, 4, 8))]
        for line, name in lines.items()
    ]
    head = [f"{'n = ' if n == sizes[0] else ''}{n:,}" for n in sizes]
    group = "no auxiliary data, ε "
    return {
        **summary_figures(result["summary"], group + "≤ 8", "published"),
        **under(
            "without-privacy", summary_figures(result["summary"], group + "= 1024", "published")
        ),
        "table": table(["", "ε", *head], ratios),
        "shares": table(["", "ε = 1", "2", "4", "8"], shares),
    }


def of_auxiliary(result: Any, _: Mapping[str, Any]) -> Figures:
    """Quote the paper's cells with auxiliary data."""
    cells = [each for each in result["cells"] if each["group"].startswith("auxiliary data")]
    private = [each for each in cells if each["epsilon"] <= 8]
    worlds = list(dict.fromkeys(each["world"] for each in private))
    rows = [
        [
            name,
            *(
                mean_and_worst(
                    each for each in private if (each["auxiliary"], each["world"]) == (name, world)
                )
                for world in worlds
            ),
        ]
        for name in dict.fromkeys(each["auxiliary"] for each in private)
    ]
    group = "auxiliary data, ε "
    return {
        **summary_figures(result["summary"], group + "≤ 8", "published"),
        **under(
            "without-privacy", summary_figures(result["summary"], group + "= 1024", "published")
        ),
        "table": table(["rows", *worlds], rows),
    }


def of_problems(result: Any, _: Mapping[str, Any]) -> Figures:
    """Quote the tuning problems."""
    found: Figures = {}
    for line in ("random", "ldpmab"):
        found |= under(line, summary_figures(result["summary"], "tuning problems", line))
    for cell in result["cells"]:
        if cell["n"] == 20_000 and cell["ratio"]["random"] is not None:
            kind = cell["world"].split(",")[0].replace(" ", "-")
            found[f"{kind}.{cell['epsilon']:g}"] = f"{cell['ratio']['random']:.2f}"
    worse = sum(len(cell["worse_than"]) > 0 for cell in result["cells"])
    return {**found, "cells": str(len(result["cells"])), "worse": str(worse)}


def of_presets(result: Any, results: Mapping[str, Any]) -> Figures:
    """Quote the presets; what ``authors`` loses at smaller n is that of the paper's cells."""
    shares = {(each["preset"], each["c"], each["epsilon"], each["n"]): each for each in result}
    for each in results["regret"]["result"]["cells"]:
        if each["world"] == "exponential":
            at_random, lost = each["regret"]["random"]["mean"], each["regret"]["ldpmab"]
            shares["authors", None, each["epsilon"], each["n"]] = {
                name: lost[name] / at_random for name in ("mean", "standard_error")
            }
    epsilons, sizes = (1.0, 8.0, 1024.0), (20_000, 80_000, 1_000_000)

    def line(preset: str, c: float | None) -> list[str]:
        cells = (shares[preset, c, epsilon, n] for epsilon in epsilons for n in sizes)
        figures = [plus_minus(each["mean"], each["standard_error"]) for each in cells]
        return [preset, f"{2 / math.log(2) if c is None else c:.3g}", *figures]

    head = [
        f"ε = {epsilon:g}, n = {n:,}" if n == sizes[0] else f"{n:,}"
        for epsilon in epsilons
        for n in sizes
    ]
    rows = [line("authors", None), *(line("paper", c) for c in (0.01, 0.1, 1.0, 10.0))]
    return {"table": table(["preset", "c", *head], rows)}


def of_differences(result: Any, _: Mapping[str, Any]) -> Figures:
    """Quote what each difference does: means, and factors against no difference."""
    epsilons = [cell["epsilon"] for cell in result[0]["cells"]]
    found: Figures = {}
    rows = []
    for row in result:
        cells = row["cells"]
        rows.append(
            [row["changed"], *(f"{c['mean']:.0f} ± {c['standard_error']:.0f}" for c in cells)]
        )
        key = re.sub(r"[^a-z]+", "-", row["changed"].lower()).strip("-")
        for cell, nothing in zip(cells, result[0]["cells"], strict=True):
            ratio = cell["mean"] / nothing["mean"]
            found[f"{key}.{cell['epsilon']:g}.factor"] = f"{ratio:.1f}"
            found[f"{key}.{cell['epsilon']:g}.percent"] = f"{abs(100 * (ratio - 1)):.0f} %"
    head = ["changed to what the paper prints", *(f"ε = {epsilon:g}" for epsilon in epsilons)]
    return {**found, "table": table(head, rows)}


def of_diagnosis(result: Any, _: Mapping[str, Any]) -> Figures:
    """Quote how often it warns, and what heeding brings."""
    rows, found = [], {}
    for each in result["misled"]:
        means = [f"{each[name]:.4f}" for name in ("alone", "blind", "careful")]
        gain = f"{each['gain']:+.4f} ± {each['gain_error']:.4f}".replace("-", "−")
        rows.append([f"ε = {each['epsilon']:g}", *means, gain])
        warned = [people for people in each["heeded"] if people is not None]
        key = f"street.{each['epsilon']:g}"
        found[f"{key}.warned"] = f"{len(warned)} of {each['runs']}"
        found[f"{key}.median"] = f"{statistics.median(warned):,.0f}"
        found[f"{key}.last"] = f"{max(warned):,}"
    for epsilon_aux in (1.0, 4.0):
        mine = [each for each in result["alarms"] if each["epsilon_aux"] == epsilon_aux]
        warned_in, runs = (sum(each[name] for each in mine) for name in ("warned", "runs"))
        found[f"alarms.{epsilon_aux:g}"] = f"{warned_in} of {runs}"
        worst = max(mine, key=lambda each: each["warned"])
        where = f"`{worst['dataset']}`, ε = {worst['epsilon']:g}"
        found[f"alarms.{epsilon_aux:g}.worst"] = f"{worst['warned']} of {worst['runs']} ({where})"
    head = ["", "without auxiliary data", "with it", "with it, and the warning heeded"]
    return {**found, "street.table": table([*head, "heeded less without"], rows)}


def of_curves(rows: Sequence[Mapping[str, str]]) -> Figures:
    """Quote how well leaking noise agrees with the published means: cells within a fifth."""
    ratios = [
        float(row["regret_mean"]) / float(row["published_mean"])
        for row in rows
        if row["line"] == "leaking" and row["published_mean"]
    ]
    near = sum(abs(ratio - 1) <= 0.2 for ratio in ratios)
    mean = statistics.geometric_mean(ratios)
    return {"within": f"{near} of {len(ratios)}", "ratio": f"{mean:.2f}"}


def of_table(rows: Sequence[Mapping[str, str]]) -> Figures:
    """Quote the table of real data: rank sums, leads in the mean, and where others are ahead."""
    cells: dict[tuple[str, ...], dict[str, tuple[float, float]]] = {}
    for row in rows:
        if row["rank"]:
            key = tuple(row[name] for name in ("fraction", "epsilon", "epsilon_aux", "dataset"))
            player = f"{row['method']}-{row['auxiliary']}"
            cells.setdefault(key, {})[player] = (float(row["ratio"]), float(row["rank"]))
    found: Figures = {"cells": str(len(cells))}
    for fraction, name in (("0.25", "quarter"), ("1", "all")):
        mine = [players for (at, *_), players in cells.items() if at == fraction]
        for player in mine[0]:
            found[f"ranks.{player}.{name}"] = f"{sum(each[player][1] for each in mine):g}"
    blocks: dict[tuple[str, ...], list[dict[str, tuple[float, float]]]] = {}
    for (fraction, epsilon, epsilon_aux, _), players in cells.items():
        blocks.setdefault((fraction, epsilon, epsilon_aux), []).append(players)
    for rival in ("linear-w", "nn-w"):
        leads = [
            statistics.fmean(each["whisper-w"][0] - each[rival][0] for each in block)
            for block in blocks.values()
        ]
        behind = [each[rival][0] - each["whisper-w"][0] for each in cells.values()]
        found[f"lead.{rival}"] = f"{min(leads):.3f} to {max(leads):.3f}"
        found[f"ahead.{rival}"] = str(sum(lead > 0 for lead in behind))
        found[f"ahead.{rival}.most"] = f"{max(behind):.3f}"
    return found


def of_look(look: Mapping[str, Any]) -> Figures:
    """Quote the last look at problems that nobody had seen."""
    shares = look["share_of_random"]
    methods = list(shares["all"])
    rows = [
        [
            group,
            str(each[methods[0]]["problems"]),
            # Not every method can play every group.
            *(
                f"{each[m]['mean']:.2f}, {each[m]['worst']:.2f}" if m in each else "–"
                for m in methods
            ),
        ]
        for group, each in shares.items()
    ]
    found = {name: str(look[name]) for name in ("look", "date", "problems", "reps")}
    found |= {
        f"{method.split()[0]}.mean": f"{shares['all'][method]['mean']:.2f}" for method in methods
    }
    return {**found, "table": table(["problems", "how many", *methods], rows)}


def of_expect(result: Any, _: Mapping[str, Any]) -> Figures:
    """Quote what to expect, with what an operator is warned of in bold, and the rule's errors."""
    found: Figures = {"reps": str(result[0]["reps"])}
    told = [expected_share(cell_of(row).experiment) for row in result]
    alone = [(row, share) for row, share in zip(result, told, strict=True) if not row["rows"]]
    for varied in dict.fromkeys(row["varied"] for row in result):
        mine: dict[tuple[int, float], list[str]] = {}
        for row, share in alone:
            if row["varied"] == varied:
                text = plus_minus(row["share"], row["standard_error"])
                line = mine.setdefault((row["size"], row["epsilon"]), [])
                line.append(f"**{text}**" if share > MOST_SHARE else text)
        lines = [[str(size), f"{epsilon:g}", *line] for (size, epsilon), line in mine.items()]
        head = [f"{'n = ' if n == PEOPLE[0] else ''}{n:,}" for n in PEOPLE]
        found[varied] = table([varied, "ε", *head], lines)
    rows = [
        [
            *(f"{row['rows']:,}", f"{row['rows_epsilon']:g}", f"{row['epsilon']:g}"),
            *(plus_minus(row["share"], row["standard_error"]), f"{share:.2f}"),
        ]
        for row, share in zip(result, told, strict=True)
        if row["rows"]
    ]
    found["rows"] = table(["rows", "their ε", "ε", "share", "the rule"], rows)
    errors = [share - row["share"] for row, share in alone]
    warned = [row["share"] for row, share in alone if share > MOST_SHARE]
    large = [(row["share"], share) for row, share in alone if max(row["share"], share) > 0.3]
    lost = [share for row, share in alone if row["share"] > 0.9]
    root = math.sqrt(statistics.fmean(error**2 for error in errors))
    factors = [max(share / measured, measured / share) for measured, share in large]
    return {
        **found,
        "error": f"{root:.2f}",
        "factor": f"{max(factors):.1f}",
        "cells": str(len(alone)),
        "warned": str(len(warned)),
        "warned.least": f"{min(warned):.2f}",
        "warned.median": f"{statistics.median(warned):.2f}",
        "lost": str(len(lost)),
        "lost.warned": str(sum(share > MOST_SHARE for share in lost)),
    }


def of_plan(result: Any, _: Mapping[str, Any]) -> Figures:
    """Quote how far plans were from worlds they had not seen, and how far off the rule is."""
    rows = result["check"]
    people, loss = [off_people(row) for row in rows], [off_loss(row) for row in rows]
    sides = [reached(row) for row in rows]
    known = [error for error, times in zip(people, sides, strict=True) if times == 2]
    return {
        "settings": str(len(rows)),
        "people.within": str(sum(error <= WITHIN for error in people)),
        "people.both": str(len(known)),
        "people.both.within": str(sum(error <= WITHIN for error in known)),
        "people.neither": str(sides.count(0)),
        "people.one": str(sides.count(1)),
        "people.median": f"{statistics.median(known):.0%}".replace("%", " %"),
        "loss.within": str(sum(error <= WITHIN for error in loss)),
        "loss.median": f"{statistics.median(loss):.0%}".replace("%", " %"),
        "loss.worst": f"{max(loss):.0%}".replace("%", " %"),
        "range": f"{statistics.fmean(row['within_range'] for row in rows):.0%}".replace("%", " %"),
        "rule.settings": str(len(result["rule"])),
        "rule.error": f"{rule_error(result['rule']):.2f}",
    }


MAKERS = {
    "plan": of_plan,
    "regret": of_regret,
    "auxiliary": of_auxiliary,
    "problems": of_problems,
    "presets": of_presets,
    "differences": of_differences,
    "diagnosis": of_diagnosis,
    "expect": of_expect,
}
