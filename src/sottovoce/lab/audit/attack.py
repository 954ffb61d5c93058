"""The attacker: choose an event by half of the reports, count it in the other half.

The attacker knows everything but the person's data. Candidates for the event are

    scores      a statistic of the method's own law is at least, or at most, so much
    messages    the report, but for its nonce, is one of a set
    lengths     the report has so many bytes
    bits        a bit of the report, nonce and header included, is set
    numbers     a number of an answer that is not a report is at least, or at most, so much

The one with the greatest bound on the first half is counted on the second half. So the bound that
is reported holds at its error rate, however many candidates there are.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sottovoce.lab.audit.bounds import epsilon_bounds
from sottovoce.lab.audit.claims import Answer, Floats, Scores
from sottovoce.shared import wire
from sottovoce.shared.errors import SottovoceError

# A message that came less often says nothing of its probability.
_LEAST_COUNT = 20
# Strict enough to pass over what came by chance; the bound itself has the error rate of the audit.
_CHOOSING = 0.001
_THRESHOLDS = 400
_NO_NONCE = bytes(16)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one person sent in many runs, and the attacker's statistics of it."""

    answers: Sequence[Answer]
    scores: Floats  # (runs, statistics)

    def __len__(self) -> int:
        return len(self.answers)


@dataclass(frozen=True, slots=True)
class Event:
    """A set of reports. kind: as listed above; the other fields say which set, by its kind."""

    kind: str
    at: int = 0
    threshold: float = 0.0
    members: frozenset[bytes] = frozenset()
    flipped: bool = False  # whether it is likelier from the other person

    def __str__(self) -> str:
        text = {
            "scores": f"statistic {self.at} ≥ {self.threshold:.4g}",
            "numbers": f"number {self.at} ≥ {self.threshold:.4g}",
            "messages": f"one of {len(self.members)} messages",
            "lengths": f"{self.at} bytes",
            "bits": f"bit {self.at} is set",
        }
        return text[self.kind]

    def hits(self, sample: Sample) -> int:
        """Count the runs in which the event came."""
        if self.kind in ("scores", "numbers"):
            table = sample.scores if self.kind == "scores" else _numbers(sample)
            if self.at >= table.shape[1]:
                return 0
            return int((table[:, self.at] >= self.threshold).sum())
        if self.kind == "messages":
            return sum(without_nonce(each) in self.members for each in sample.answers)
        if self.kind == "lengths":
            return sum(len(each) == self.at for each in sample.answers)
        return sum(_bit(each, self.at) for each in sample.answers)


@dataclass(frozen=True, slots=True)
class Attacked:
    """What an attack showed.

    bound: a lower bound on ε. event: by which event. hits: of one and the other, in ``runs`` each.
    """

    bound: float
    event: Event
    hits: tuple[int, int]
    runs: tuple[int, int]


def sample_of(answers: Sequence[Answer], scores: Scores | None) -> Sample:
    """Work out the attacker's statistics; those of answers that are no reports are not known."""
    nothing = np.zeros((len(answers), 0))
    if scores is None:
        return Sample(answers, nothing)
    try:
        return Sample(answers, scores(answers))
    except SottovoceError:
        return Sample(answers, nothing)


def attack(
    train: tuple[Sample, Sample], test: tuple[Sample, Sample], *, error_rate: float
) -> Attacked:
    """Choose an event on some runs and bound ε by others."""
    best, greatest = Event("lengths", at=-1), -math.inf
    for one, other, flipped in ((*train, False), (train[1], train[0], True)):
        for event, bound in _candidates(one, other):
            if bound > greatest:
                best, greatest = replace(event, flipped=flipped), bound
    one, other = (test[1], test[0]) if best.flipped else test
    hits, runs = (best.hits(one), best.hits(other)), (len(one), len(other))
    bound = float(epsilon_bounds(hits[0], hits[1], runs=runs, error_rate=error_rate))
    return Attacked(max(0.0, bound), best, hits, runs)


def without_nonce(answer: Answer) -> bytes:
    """Return the bytes of a report without its nonce; of anything else, all of its bytes."""
    if not isinstance(answer, bytes):
        return np.array(answer).tobytes()
    try:
        wire.report_from_bytes(answer)
    except SottovoceError:
        return answer
    return wire.with_nonce(answer, _NO_NONCE)


def _candidates(one: Sample, other: Sample) -> Iterator[tuple[Event, float]]:
    """Yield the best event of each kind, and the bound that these runs give for it."""
    runs = (len(one), len(other))

    def best(events: Sequence[Event], hits: object, other_hits: object) -> tuple[Event, float]:
        found = epsilon_bounds(
            np.asarray(hits), np.asarray(other_hits), runs=runs, error_rate=_CHOOSING
        )
        index = int(np.argmax(found))
        return events[index], float(found[index])

    statistics = {
        "scores": (one.scores, other.scores),
        "numbers": (_numbers(one), _numbers(other)),
    }
    for kind, (ours, theirs) in statistics.items():
        for at in range(min(ours.shape[1], theirs.shape[1])):
            yield best(*_by_threshold(Event(kind, at=at), ours[:, at], theirs[:, at]))
    if found := _by_message(one, other):
        yield best(*found)
    lengths = sorted({len(each) for each in (*one.answers, *other.answers)})
    counts = [Counter(map(len, each.answers)) for each in (one, other)]
    events = [Event("lengths", at=length) for length in lengths]
    yield best(events, *([count[length] for length in lengths] for count in counts))
    bits = [_bit_counts(each) for each in (one, other)]
    if size := min(map(len, bits)):
        yield best([Event("bits", at=at) for at in range(size)], bits[0][:size], bits[1][:size])


def _by_threshold(event: Event, one: Floats, other: Floats) -> tuple[list[Event], Floats, Floats]:
    """Count how often a statistic is at least so much, for some thresholds."""
    values = np.unique(np.concatenate((one, other)))
    if len(values) > _THRESHOLDS:
        places = np.linspace(0, len(values) - 1, _THRESHOLDS).astype(int)
        values = values[places]
    events = [replace(event, threshold=float(value)) for value in values]
    counts = [len(each) - np.searchsorted(np.sort(each), values) for each in (one, other)]
    return events, counts[0].astype(np.float64), counts[1].astype(np.float64)


def _numbers(sample: Sample) -> Floats:
    """Return the numbers of answers that have equally many, then their negatives; or nothing."""
    lengths = {len(each) if isinstance(each, tuple) else 0 for each in sample.answers}
    if len(lengths) != 1 or 0 in lengths:
        return np.zeros((len(sample), 0))
    table = np.array(sample.answers, dtype=np.float64)
    return np.concatenate((table, -table), axis=1)


def _by_message(one: Sample, other: Sample) -> tuple[list[Event], Floats, Floats] | None:
    """Rank messages by how much likelier they are, and count each set of the first few."""
    counts = [Counter(map(without_nonce, each.answers)) for each in (one, other)]
    common = [m for m, n in (counts[0] + counts[1]).items() if n >= _LEAST_COUNT]
    if not common:
        return None
    common.sort(key=lambda m: (counts[0][m] + 0.5) / (counts[1][m] + 0.5), reverse=True)
    sums = [np.cumsum([count[m] for m in common], dtype=np.float64) for count in counts]
    places = np.unique(np.linspace(0, len(common) - 1, _THRESHOLDS).astype(int))
    events = [Event("messages", members=frozenset(common[: place + 1])) for place in places]
    return events, sums[0][places], sums[1][places]


def _bit_counts(sample: Sample) -> NDArray[np.int64]:
    """Count how often each bit is set, in messages that all have the same length."""
    messages = [each for each in sample.answers if isinstance(each, bytes)]
    if len(messages) != len(sample) or len({len(each) for each in messages}) != 1:
        return np.zeros(0, dtype=np.int64)
    table = np.frombuffer(b"".join(messages), dtype=np.uint8).reshape(len(messages), -1)
    counts = [((table >> place) & 1).sum(axis=0, dtype=np.int64) for place in range(8)]
    return np.stack(counts, axis=1).reshape(-1)


def _bit(answer: Answer, at: int) -> bool:
    if not isinstance(answer, bytes) or at // 8 >= len(answer):
        return False
    return bool(answer[at // 8] >> (at % 8) & 1)
