"""What people of the two groups told since the last step (``shared/baseline.py``)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sottovoce.estimate.gain import Counts, Gain, GainConstants, add_people
from sottovoce.estimate.gate import Batch
from sottovoce.estimate.whisper.past_releases import WhisperReleases

_Key = tuple[int, bool]  # the share of the release that they had, and whether all was settled there


class Groups:
    """Answers of the groups, in whole numbers, by what their releases asked for."""

    def __init__(self) -> None:
        self._others = 0
        self._told: dict[_Key, Counts] = {}

    def absorb(self, batch: Batch, group: int | None, past: WhisperReleases) -> None:
        """Add people of the target who were served. group: None for neither."""
        settled = past.settled(batch.version)
        if group is None:
            # Where nothing is asked, people come who could not have been asked: they do not count.
            self._others += 0 if settled else batch.count
            return
        key = (past.share(batch.version), settled)
        told = self._told.setdefault(key, np.zeros((2, 2), dtype=np.int64))
        if batch.values is not None:
            plus = int((batch.values > 0).sum())
            told[group] += (batch.count - plus, plus)

    def hand_over(self, gain: Gain, fixed: GainConstants) -> None:
        """Hand all of it over, and begin anew."""
        if self._others:
            add_people(gain, fixed, fixed.first, False, np.zeros((2, 2), np.int64), self._others)
        for (share, settled), told in sorted(self._told.items()):
            add_people(gain, fixed, share, settled, told, 0.0)
        self._others = 0
        self._told.clear()

    def to_table(self) -> list[Any]:
        """Write what waits for the next step."""
        told = [[*key, each.tolist()] for key, each in sorted(self._told.items())]
        return [self._others, told]

    @classmethod
    def from_table(cls, table: Sequence[Any], fixed: GainConstants, most: int) -> "Groups":
        """Read what ``to_table`` wrote. most: how many people have come since the last step."""
        groups = cls()
        groups._others, told = int(table[0]), table[1]
        for share, settled, numbers in told:
            counts = np.array(numbers, dtype=np.int64)
            if counts.shape != (2, 2) or (counts < 0).any() or not 0 < share <= fixed.first:
                raise ValueError("its groups are not counts")
            groups._told[int(share), bool(settled)] = counts
        members = sum(int(each.sum()) for each in groups._told.values())
        if groups._others < 0 or members + groups._others > most:
            raise ValueError("its groups are not those of the people who came")
        return groups
