"""The exact law of whole reports of ``whisper``, by following every draw of the device's own code.

A report is what ``privatise`` returns: the question, the ranking and the packed set.
"""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import sottovoce as sv
from sottovoce.device import ask, privatise, subset
from sottovoce.device.whisper.answer import Secret
from sottovoce.shared.whisper.subset import SignedSubset, pack
from support.answering import Purse
from support.subset import Following, exact_law

Input = tuple[Secret, float]
Part = bytes | tuple[SignedSubset, int | None, float]
# What everybody sees in the clear (question and ranking), and the payloads that may go with it.
Law = dict[tuple[int, tuple[int, ...]], dict[tuple[Part, ...], Fraction]]

# Other shares, for fewer ways to follow. The questions are the same.
FEW_WAYS = {
    "SHARES": 4,
    "COUNT_SHARE_UNKNOWN": 2,
    "MASS_SHARE": 1,
    "LEVEL_SHARE": 1,
    "COUNT_SHARE": 1,
    "TONE_SHARE": 1,
}


class Sealed(bytes):
    """A payload that is not drawn yet: packed sets, and bytes that are the same each time."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, *parts: Part) -> "Sealed":
        sealed = cls()
        sealed.parts = parts
        return sealed

    def __add__(self, other: Any) -> "Sealed":
        return Sealed.of(*self.parts, *(other.parts if isinstance(other, Sealed) else (other,)))


@lru_cache(maxsize=4096)
def law_of_set(mechanism: SignedSubset, cell: int | None, value: float) -> dict[bytes, Fraction]:
    """The exact law of the device's own sampler; test_subset.py compares it with its definition."""
    law = exact_law(subset.whisper, mechanism, cell, value)
    return {pack(mechanism, values): chance for values, chance in law.items()}


@lru_cache(maxsize=4096)
def law_of_payload(parts: tuple[Part, ...]) -> dict[bytes, Fraction]:
    """The exact law of all parts together, each drawn on its own."""
    law = {b"": Fraction(1)}
    for part in parts:
        drawn = {part: Fraction(1)} if isinstance(part, bytes) else law_of_set(*part)
        law = {
            before + data: chance * more
            for before, chance in law.items()
            for data, more in drawn.items()
        }
    return law


class Code:
    """The code of the device, with pieces of its text replaced."""

    def __init__(self, *mutations: tuple[str, str], few_ways: bool = True) -> None:
        texts = {module: Path(str(module.__file__)).read_text() for module in (ask, privatise)}
        for old, new in mutations:
            (where,) = [module for module, text in texts.items() if old in text]
            assert texts[where].count(old) == 1
            texts[where] = texts[where].replace(old, new)
        self.ask: Any = ModuleType("mutant of ask")
        self.door: Any = ModuleType("mutant of privatise")
        for module, text in ((self.ask, texts[ask]), (self.door, texts[privatise])):
            exec(compile(text, module.__name__, "exec"), module.__dict__)  # noqa: S102
        vars(self.door).update(ask=self.ask, subset=SimpleNamespace(whisper=whisper))
        self.few_ways = few_ways
        for name, share in FEW_WAYS.items() if few_ways else ():
            assert hasattr(self.ask, name)
            setattr(self.ask, name, share)
        if few_ways:
            assert hasattr(self.ask, "feature_share")
            vars(self.ask).update(feature_share=lambda law, *, logged: 4 if law.halves else 1)

    def ways(
        self, release: sv.Release, person: Input, *, population: int = 0
    ) -> list[tuple[Any, Fraction, Purse]]:
        """Every answer that a person may give, its probability, and what was spent for it."""
        secret, outcome = person
        if self.few_ways:  # the release says how many are asked how it went: one share, or none
            release = replace(release, reward_share=min(1, release.reward_share))
        found = []
        untried: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
        while untried:
            draws, purse = Following(*untried.pop()), Purse()
            self.ask.OPERATING_SYSTEM = draws
            told = self.door.privatise(
                release, secret, population=population, reward=outcome, ledger=purse
            )
            found.append((told, draws.probability, purse))
            untried += draws.untried
        assert sum(probability for _, probability, _ in found) == 1
        return found

    def law(self, release: sv.Release, person: Input, *, population: int = 0) -> Law:
        """Everything that a person may send, and how often."""
        law: Law = {}
        for told, probability, _ in self.ways(release, person, population=population):
            parts = told.payload.parts if isinstance(told.payload, Sealed) else (told.payload,)
            payloads = law.setdefault((told.question, told.ranking), {})
            payloads[parts] = payloads.get(parts, Fraction(0)) + probability
        return law


def whisper(mechanism: SignedSubset, *, cell: int | None, value: float) -> Sealed:
    """Stands for the device's sampler, and lets it draw later; what it refuses is refused now."""
    subset.whisper(mechanism, cell=cell, value=value)
    return Sealed.of((mechanism, cell, value))


def worst_ratio(laws: list[Law]) -> Fraction | None:
    """The greatest likelihood ratio of anything said; None if it is infinite."""
    worst = Fraction(1)
    for coins in set().union(*laws):
        # Many people have the same law: each is looked at once.
        ways = {frozenset(law.get(coins, {}).items()) for law in laws}
        said = [spelled_out(dict(way)) for way in ways]
        for payload in set().union(*said):
            chances = [each.get(payload, Fraction(0)) for each in said]
            if min(chances) == 0:
                return None
            worst = max(worst, max(chances) / min(chances))
    return worst


def spelled_out(payloads: dict[tuple[Part, ...], Fraction]) -> dict[bytes, Fraction]:
    """The law of the bytes themselves."""
    law: dict[bytes, Fraction] = {}
    for parts, share in payloads.items():
        for payload, chance in law_of_payload(parts).items():
            law[payload] = law.get(payload, Fraction(0)) + share * chance
    return law


def shares_of(law: Law) -> dict[tuple[int, tuple[int, ...]], Fraction]:
    """How often each question is asked."""
    return {coins: sum(payloads.values(), Fraction(0)) for coins, payloads in law.items()}
