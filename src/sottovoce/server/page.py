"""The status page of one experiment: plain HTML, no script, nothing from elsewhere.

Names of arms, features and populations are whatever the experiment's owner chose: each is escaped.
The page also carries a policy by which a browser would run no script and load nothing.
"""

import base64
import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from sottovoce.server.page_auxiliary import auxiliary_data
from sottovoce.server.picture import colour, draw, ink, outline
from sottovoce.server.tags import section, table
from sottovoce.server.words import Bin, bins_of, decisions
from sottovoce.shared.experiment import Population
from sottovoce.shared.methods import MethodSettings
from sottovoce.shared.release import BinPolicy, Release

REFRESH_SECONDS = 3
MOST_BINS = 200
MOST_ESTIMATED_BINS = 40
MOST_DECISIONS = 20

_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

_LINKS = (
    ("status", "status"),
    ("estimates", "estimates"),
    ("certificates", "certificates"),
    ("diagnosis", "diagnosis"),
    ("releases/current", "release"),
)

_Interval = tuple[float | None, float | None]
"""An estimate and its radius."""
_Estimates = Mapping[str, Mapping[str, _Interval]]
"""By the bin's path, then by the arm's name."""
_UNKNOWN: _Interval = (None, None)


def render(release: Release, standing: Mapping[str, Any], *, stored: int, learned: int) -> str:
    """Write the page.

    standing: what the learner saved for this page; it may be empty, or of another release.
    stored: how many reports the log has.
    learned: how many of them the learner has counted.
    """
    bins, estimates = bins_of(release), _estimates(standing.get("estimates") or ())
    status = standing.get("status") or {}
    return "".join(
        (
            _head(release),
            _figures(release, stored=stored, learned=learned),
            _populations(release.experiment.populations, status),
            auxiliary_data(standing.get("diagnosis")),
            _bins(release, bins, estimates),
            _contested(release, bins, estimates),
            _decisions(release, standing),
            _footer(release),
        )
    )


def _head(release: Release) -> str:
    experiment = release.experiment
    name, fingerprint = escape(experiment.name), experiment.fingerprint
    policy = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">'
        f"<title>{name} · Sottovoce</title><style>{_STYLE}</style></head><body>"
        f'<header><h1>{name}</h1><p class="soft">experiment <code>{fingerprint}</code> · '
        f"{_method(experiment.settings)}</p></header><main>"
    )


def _method(method: MethodSettings) -> str:
    summary = escape(method.summary)
    return f'<span class="warn">{summary}</span>' if method.arms_are_public else summary


def _figures(release: Release, *, stored: int, learned: int) -> str:
    waiting, bins = max(stored - learned, 0), len(release.bins)
    settled, every = bins - len(release.contested), release.experiment.release_every
    figures = [
        ("release", f"{release.version:,}", f"every {every:,} reports"),
        ("reports stored", f"{stored:,}", "all randomised"),
        ("the learner's lag", f"{waiting:,}", f"{learned:,} learned" if waiting else "up to date"),
        ("bins", f"{bins:,}", f"{bins - settled:,} still compared"),
        ("settled bins", f"{settled:,}", f"{settled / bins:.0%} of all"),
    ]
    tiles = (f"<div><dt>{a}</dt><dd>{b}<small>{c}</small></dd></div>" for a, b, c in figures)
    return f'<dl class="figures">{"".join(tiles)}</dl>'


def _populations(populations: Sequence[Population], status: Mapping[str, Any]) -> str:
    counted, late = status.get("reports") or {}, status.get("late_reports", 0)
    rows = []
    for population in populations:
        came, expected = counted.get(population.name, 0), population.users
        share = min(came / expected, 1) if expected else 0
        hoped = f"of {expected:,} expected" if expected else "none expected"
        rows.append(
            f"<tr><td>{escape(population.name)}</td><td>ε = {population.epsilon:g}"
            f'<br><span class="soft">odds change at most {_odds(population.epsilon)}-fold</span>'
            f'</td><td class="bar">{_track(share)}</td><td>{came:,}'
            f'<br><span class="soft">{hoped}</span></td></tr>'
        )
    head = ("population", "privacy of one report", "", "reports learned")
    note = f'<p class="soft">{late:,} of them were made for an older release.</p>' if late else ""
    return section("Who has reported", table(head, f"<tbody>{''.join(rows)}</tbody>") + note)


def _odds(epsilon: float) -> str:
    if epsilon > 20:
        return f"e^{epsilon:g}"
    odds = math.exp(epsilon)
    return f"{odds:.3g}" if odds < 100 else f"{odds:,.0f}"


def _track(share: float) -> str:
    return (
        '<svg class="track" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        f'aria-label="{share:.0%}"><rect width="100" height="10"/>'
        f'<rect class="done" width="{100 * share:.2f}" height="10"/></svg>'
    )


def _bins(release: Release, bins: Sequence[Bin], estimates: _Estimates) -> str:
    if release.experiment.dimension <= 2:
        tips = {each.policy.path: _tip(release, each, estimates) for each in bins}
        shown = f'<div class="wide">{draw(release, bins, tips=tips)}</div>'
    else:
        shown = _table_of_bins(release, bins)
    return section("Which arm suits whom", shown + _legend(release, bins))


def _tip(release: Release, each: Bin, estimates: _Estimates) -> str:
    """Say all that is known of a bin, for when one points at it; not escaped."""
    arms, policy = release.experiment.arms, each.policy
    if policy.settled:
        return f"{each.words}: {arms[policy.arms[0]]}"
    known = estimates.get(policy.path, {})
    lines = [f"{each.words}: not decided yet"]
    for arm in policy.live:
        name = arms[arm]
        lines.append(f"{name}: {_chance(policy, arm)}, {_interval(*known.get(name, _UNKNOWN))}")
    return "\n".join(lines)


def _table_of_bins(release: Release, bins: Sequence[Bin]) -> str:
    rows = []
    for each in _largest(bins, MOST_BINS):
        policy = each.policy
        arms = "".join(_named(release, arm, waits=arm in policy.waiting) for arm in policy.live)
        share = f"<td>{_percent(each.size)}</td>"
        rows.append(f"<tr><td>{escape(each.words)}</td><td>{arms}</td>{share}</tr>")
    head = ("people", "arm, or arms still compared", "of all contexts")
    return table(head, f"<tbody>{''.join(rows)}</tbody>") + _left_out(bins, MOST_BINS)


def _legend(release: Release, bins: Sequence[Bin]) -> str:
    shares: dict[int, float] = defaultdict(float)
    for each in bins:
        shares[each.policy.arms[0] if each.policy.settled else -1] += each.size
    entries = [
        f'<li>{_named(release, arm)}<span class="soft">{_percent(shares[arm])}</span></li>'
        for arm in range(len(release.experiment.arms))
    ]
    entries.append(
        '<li><span class="arm"><span class="chip open">?</span><span>not decided yet</span></span>'
        f'<span class="soft">{_percent(shares[-1])}</span></li>'
    )
    return (
        f'<ul class="legend">{"".join(entries)}</ul><p class="soft">Shares are of all possible '
        "contexts, not of people. Full dots are arms on offer, rings are arms that wait.</p>"
    )


def _contested(release: Release, bins: Sequence[Bin], estimates: _Estimates) -> str:
    open_bins = [each for each in bins if not each.policy.settled]
    if not open_bins:
        return section("Still compared", "<p>Nothing: every bin has settled.</p>")
    bodies = [
        _rows_of_bin(release, each, estimates.get(each.policy.path, {}))
        for each in _largest(open_bins, MOST_ESTIMATED_BINS)
    ]
    head = ("people", "arm", "chance now", "mean reward", "its interval, from 0 to 1")
    shown = table(head, "".join(bodies)) + _left_out(open_bins, MOST_ESTIMATED_BINS)
    return section("Still compared", shown)


def _rows_of_bin(release: Release, each: Bin, known: Mapping[str, _Interval]) -> str:
    policy = each.policy
    first = f'<td rowspan="{len(policy.live)}">{escape(each.words)}</td>'
    rows = []
    for arm in policy.live:
        estimate, radius = known.get(release.experiment.arms[arm], _UNKNOWN)
        rows.append(
            f"<tr>{first}<td>{_named(release, arm, waits=arm in policy.waiting)}</td>"
            f'<td class="short">{_chance(policy, arm)}</td>'
            f'<td class="short">{_interval(estimate, radius)}</td>'
            f'<td class="bar">{_interval_bar(estimate, radius, arm=arm)}</td></tr>'
        )
        first = ""
    return f'<tbody class="bin">{"".join(rows)}</tbody>'


def _interval_bar(estimate: float | None, radius: float | None, *, arm: int) -> str:
    if estimate is None or radius is None:
        return ""
    low, middle, high = (
        100 * min(max(x, 0.0), 1.0) for x in (estimate - radius, estimate, estimate + radius)
    )
    return (
        '<svg class="interval" viewBox="0 0 100 16" preserveAspectRatio="none" aria-hidden="true">'
        '<path class="zero" d="M0 8H100M.5 3V13M50 5V11M99.5 3V13"/>'
        f'<path class="line {outline(arm)}" d="M{low:.1f} 8H{high:.1f}M{middle:.1f} 2V14"/></svg>'
    )


def _decisions(release: Release, standing: Mapping[str, Any]) -> str:
    items = [
        f'<li><span class="soft">{when}</span><span>{escape(what)}</span></li>'
        for when, what in decisions(release, standing, most=MOST_DECISIONS)
    ]
    if not items:
        return section("Latest decisions", "<p>None so far.</p>")
    note = f'<p class="soft">{escape(release.experiment.settings.decision_rule)}</p>'
    return section("Latest decisions", f"<ol>{''.join(items)}</ol>{note}")


def _footer(release: Release) -> str:
    experiment = release.experiment
    promise = escape(experiment.settings.promise)
    links = " · ".join(
        f'<a href="{experiment.fingerprint}/{where}">{name}</a>' for where, name in _LINKS
    )
    return (
        f"</main><footer><p>All that this page shows follows from reports that are {promise}: each "
        "was randomised before it was sent. Nothing about any single person is here.</p>"
        f"<p>As JSON: {links}</p></footer></body></html>"
    )


def _estimates(cells: Sequence[Mapping[str, Any]]) -> _Estimates:
    estimates: dict[str, dict[str, _Interval]] = defaultdict(dict)
    for cell in cells:
        estimates[cell["path"]][cell["arm"]] = cell["estimate"], cell["radius"]
    return estimates


def _named(release: Release, arm: int, *, waits: bool = False) -> str:
    """Write an arm's number in its colour, and its name."""
    kind = f"ring {outline(arm)}" if waits else f"{colour(arm)} {ink(arm)}"
    name = escape(release.experiment.arms[arm])
    return f'<span class="arm"><span class="chip {kind}">{arm + 1}</span><span>{name}</span></span>'


def _chance(policy: BinPolicy, arm: int) -> str:
    if arm in policy.waiting:
        return "waits"
    return _percent(policy.propensities[policy.arms.index(arm)])


def _interval(estimate: float | None, radius: float | None) -> str:
    if estimate is None or radius is None:
        return "not known yet"
    return f"{estimate:.2f} ± {radius:.2f}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 or share == 0 else f"{100 * share:.2g}%"


def _largest(bins: Sequence[Bin], most: int) -> list[Bin]:
    """Choose the bins with most contexts, and leave them in their order."""
    if len(bins) <= most:
        return list(bins)
    ranked = sorted(range(len(bins)), key=lambda i: -bins[i].size)[:most]
    return [bins[i] for i in sorted(ranked)]


def _left_out(bins: Sequence[Bin], most: int) -> str:
    if len(bins) <= most:
        return ""
    return f'<p class="soft">The {most} largest of {len(bins):,} bins.</p>'
