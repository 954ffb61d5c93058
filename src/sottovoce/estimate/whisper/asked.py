"""What the people of each past release were asked, and the tallies of their answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sottovoce.estimate.whisper.past_releases import WhisperReleases
from sottovoce.estimate.whisper.tally import Tally
from sottovoce.shared.whisper.cells import CellLayout
from sottovoce.shared.whisper.questions import EVERYBODY, Entry, question_of, questions_of

Key = tuple[int, int, int]
"""A tally's release, population and question."""

NOT_ASKED = "it has answers to a question that nobody was asked"


class Asked:
    """What each release asked."""

    def __init__(self, past: WhisperReleases) -> None:
        self._past = past

    def entry(self, version: int, number: int) -> Entry:
        """Return what the table says of a question, by its number on the wire."""
        experiment = self._past.experiment(version)
        return questions_of(experiment)[question_of(number, experiment).kind]

    def layout(self, version: int, population: int, entry: Entry) -> CellLayout:
        """Return the cells of a question in a release; a report with bytes is about some."""
        layout = self._past.layout(
            version, population=population, by_arm=entry.by_arm, settled=entry.settled
        )
        if layout is None:
            raise ValueError(NOT_ASKED)
        return layout

    def empty_tally(self, key: Key) -> Tally:
        """Return the tally of a question before its first answer."""
        version, population, number = key
        entry, experiment = self.entry(version, number), self._past.experiment(version)
        question = question_of(number, experiment)
        layout = self.layout(version, population, entry)
        of_halves = layout.halves.parts == 2 and question.axis is None
        of_others = entry.settled and (population != 0 or layout.whole == 1)
        if entry.cells == EVERYBODY or of_halves or of_others:
            raise ValueError(NOT_ASKED)
        columns = len(experiment.arms) if entry.ranked else 1
        cells = layout.mechanism(question.axis).mechanism.cells
        zeros = (np.zeros((n, columns), np.int64) for n in (len(layout.indices), cells, cells))
        return Tally(
            population, -1 if question.axis is None else question.axis, question.row, *zeros
        )

    def read_tally(self, key: Key, numbers: Sequence[Any]) -> Tally:
        """Read a saved tally; what cannot be raises ValueError."""
        fresh = self.empty_tally(key)
        asked, sums, named = (np.array(each, dtype=np.int64) for each in numbers)
        shapes = [each.shape for each in (asked, sums, named)]
        if shapes != [each.shape for each in (fresh.asked, fresh.sums, fresh.named)]:
            raise ValueError("its answers do not fit their release")
        if (
            (asked < 0).any()
            or (named < 0).any()
            or (named > asked.max(axis=0)).any()
            or (np.abs(sums) > named).any()
        ):
            raise ValueError("its answers are not counts")
        return fresh._replace(asked=asked, sums=sums, named=named)
