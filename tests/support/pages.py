"""The status page as a browser would see it."""

from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

import sottovoce as sv
from factories import experiment
from sottovoce.server.page import render
from sottovoce.server.status import ExperimentStatus, Snapshot
from sottovoce.shared.partition import Partition
from sottovoce.shared.release import uniform

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Collects what a browser would see; every tag must be closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.titles: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["title"]:
            self.titles.append(data)
        elif self.open[-1:] != ["style"] and data.strip():
            self.words.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def count(self, tag: str, kind: str) -> int:
        return sum(
            name == tag and kind in (given.get("class") or "").split() for name, given in self.tags
        )


def release_of(
    bins: Sequence[tuple[int, ...]] = (),
    *,
    cuts: dict[str, int] | None = None,
    sets: dict[str, set[int]] | None = None,
    ask: tuple[int, ...] = (),
    **settings: Any,
) -> sv.Release:
    """A release with the given live arms, bin by bin.

    sets: of each bin that is split by levels, those of the upper part.
    """
    of = experiment(**{"method": "ldpmab", **settings})
    upper = {path: frozenset(levels) for path, levels in (sets or {}).items()}
    partition = Partition(of.dimension, cuts or {}, of.settings.levels_in_sets(of), upper)
    leaves = list(partition.leaves())
    arms = bins or [tuple(range(len(of.arms)))] * len(leaves)
    policies = tuple(uniform(path, live) for path, live in zip(leaves, arms, strict=True))
    return sv.Release(of, 3, partition, policies, ask=ask)


def page_of(
    release: sv.Release, *, stored: int = 0, learned: int = 0, snapshot: Snapshot | None = None
) -> Page:
    return Page(render(ExperimentStatus(release, stored, learned, snapshot or Snapshot())))
