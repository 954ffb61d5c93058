"""A report: all that ever leaves a device. The paper's Z̃."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Report:
    """One randomised answer.

    experiment: the fingerprint of the experiment it belongs to.
    release: the version of the release it was made for.
    population: the index m of the population, 0 for the target.
    nonce: 16 random bytes, by which a server can tell a report that is sent twice.
    payload: Ṽ of each contested cell of that release, in order, then Ũ of each.
    """

    experiment: str
    release: int
    population: int
    nonce: bytes
    payload: tuple[float, ...]
