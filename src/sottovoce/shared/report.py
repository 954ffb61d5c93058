"""A report: the only thing that leaves a device. The paper's Z̃."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """One randomised answer.

    release: the id of the release it was made for (``wire.release_id``). It names one text: a
        report is read by that very text, or not at all.
    population: the index m of the population, 0 for the target.
    nonce: 16 random bytes, by which a server recognises a report that is sent twice.
    payload: with ``ldpmab``, Ṽ of each contested cell of that release, in order, then Ũ of each;
        with ``whisper``, a packed set of cells (``shared/whisper/subset.py``).
    question: with ``whisper``, the number of the question that was asked: a public coin, drawn
        without a look at the data (``shared/whisper/questions.py``).
    ranking: with ``whisper`` and public arms, the order of the arms that was drawn, likewise.
    """

    release: bytes
    population: int
    nonce: bytes
    payload: tuple[float, ...] | bytes
    question: int = 0
    ranking: tuple[int, ...] = ()
