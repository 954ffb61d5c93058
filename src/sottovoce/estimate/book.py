"""What the learner needs of a method: sums in, releases out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sottovoce.estimate.diagnosis import Diagnosis
from sottovoce.estimate.gate import Gate, Pile
from sottovoce.estimate.history import Certificate, Event
from sottovoce.shared.release import Release


@dataclass(frozen=True, slots=True)
class CellEstimate:
    """What is known of one contested cell, or None while too little is.

    estimate: the mean reward of the arm in the bin.
    radius: half of its interval. With ``ldpmab`` the paper's confidence radius r; with ``whisper``
        95 % of what is believed, about 1.96 standard deviations, given the bin's share of the
        people: where contexts are far from uniform it is too narrow by some per cent.
    """

    path: str
    arm: str
    estimate: float | None
    radius: float | None


class Book(Protocol):
    """The sums of one method, and the releases that come of them."""

    @property
    def release(self) -> Release:
        """The current release."""

    @property
    def gate(self) -> Gate:
        """What lets reports in; it knows the current release and all before."""

    def absorb(self, pile: Pile) -> int:
        """Add reports to the sums; return how many of their cells no longer stand."""

    def step(self) -> list[Event]:
        """Drop arms and cut bins; publish the next release if anything changed."""

    def estimates(self) -> list[CellEstimate]:
        """Return what is known of each contested cell."""

    def certificates(self) -> tuple[Certificate, ...]:
        """Return why each arm was dropped, where the method can tell."""

    def diagnose(self, reports: Sequence[int]) -> Diagnosis:
        """Say what the auxiliary populations bring, given how many reports each has sent."""

    def to_table(self) -> dict[str, Any]:
        """Write all of it but the release."""
