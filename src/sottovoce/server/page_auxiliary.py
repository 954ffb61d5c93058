"""The page's section on auxiliary data: what it brings, and whether it seems to mislead."""

from collections.abc import Mapping
from html import escape
from typing import Any

from sottovoce.server.tags import section, table

_HEAD = (
    "population",
    "ε",
    "reports",
    "worth of one",
    "effective users",
    "overlap",
    "exploration",
    "verdict",
)
_NOTE = (
    "Effective users: how many reports of the target's own people would have said as much. "
    "Overlap: 1 if its people are in the same bins as the target's. "
    "Exploration: 1 if its rows have all arms alike, 0 if one is missing."
)


def auxiliary_data(diagnosis: Mapping[str, Any] | None) -> str:
    """Write the section; nothing where there is no auxiliary population, or no diagnosis yet."""
    if not diagnosis or not diagnosis["sources"]:
        return ""
    audit = diagnosis["audit"]
    rows = "".join(_row(source, audit) for source in diagnosis["sources"])
    shown = table(_HEAD, f"<tbody>{rows}</tbody>")
    note = f'<p class="soft">{_NOTE}</p>'
    return section("Auxiliary data", _warnings(diagnosis) + shown + _told(audit) + note)


def verdict(source: Mapping[str, Any], audit: Mapping[str, Any] | None) -> str:
    """Say in a few words whether a population helps."""
    if not source["reports"]:
        return "no reports yet"
    if audit is None:
        return "not checked: nobody is asked how it went"
    if source["harmful"]:
        return "seems to mislead"
    if audit["holds"]:
        return "holds what it promises"
    # Less came than was promised, and others promised it.
    return "promises little itself" if audit["falls_short"] else "too early to say"


def _warnings(diagnosis: Mapping[str, Any]) -> str:
    items = "".join(f"<li>{escape(each)}</li>" for each in diagnosis["warnings"])
    return f'<ul class="warnings" role="alert">{items}</ul>' if items else ""


def _row(source: Mapping[str, Any], audit: Mapping[str, Any] | None) -> str:
    words = verdict(source, audit)
    kind = ' class="warn"' if source["harmful"] else ""
    hoped = f'<br><span class="soft">of {_whole(source["expected_users"])} expected</span>'
    return (
        f"<tr><td>{escape(source['population'])}</td><td>{source['epsilon']:g}</td>"
        f"<td>{source['reports']:,}</td><td>{_worth(source['worth'])}</td>"
        f"<td>{_whole(source['effective_users'])}{hoped}</td>"
        f"<td>{_number(source['overlap'])}</td><td>{_number(source['exploration'])}</td>"
        f"<td{kind}>{words}</td></tr>"
    )


def _told(audit: Mapping[str, Any] | None) -> str:
    """Set what the target's people got beside what was expected."""
    if audit is None:
        return ""
    if not audit["answers"]:
        return "<p>None of the target's people has said yet how it went.</p>"
    delivered, error = _number(audit["delivered"]), _number(audit["standard_error"])
    return (
        f"<p>Mean reward {delivered} ± {error} among {audit['answers']:,} who were asked; "
        f"{_number(audit['promised'])} was expected, {_number(audit['at_random'])} of arms at "
        "random.</p>"
    )


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.2f}".replace("-", "−")


def _worth(value: float | None) -> str:
    """Write two digits, however little a row is worth."""
    return f"{value:.2g}" if value is not None and value < 1 else _number(value)


def _whole(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.0f}".replace("-", "−")
