"""The exact law of whole reports of ``whisper``, by following every draw of the device's own code.

A report is what ``privatise`` returns: the question, the ranking and the packed set. Of a decision
that waits for its outcome, ``prepare`` keeps three sets on the device, and ``finish`` sends one.
"""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import sottovoce as sv
from factories import BIN_MASS, BIN_REWARD, COUNT, LEVEL, LOGGED_LEVEL, MASS, Purse
from sottovoce.device import privatise
from sottovoce.device import whisper as method
from sottovoce.device.method import Secret
from sottovoce.device.whisper import answer, draw, subset
from sottovoce.shared.whisper import axes, questions
from sottovoce.shared.whisper.subset import SignedSubset, pack
from support.subset import Following, exact_law

Input = tuple[Secret, float]
Part = bytes | tuple[SignedSubset, int | None, float]
# What everybody sees in the clear (question and ranking), and the payloads that may go with it.
Law = dict[tuple[int, tuple[int, ...]], dict[tuple[Part, ...], Fraction]]

# What decides on a report, up to the sampler; each module uses those before it.
MODULES = {
    "axes": axes,
    "questions": questions,
    "answer": answer,
    "draw": draw,
    "method": method,
    "door": privatise,
}

# Other shares, for fewer ways to follow. The questions are the same. Axes always have these.
FEW = 4
FEW_SHARES = {MASS: 1, LEVEL: 1, COUNT: 1, LOGGED_LEVEL: 1, BIN_REWARD: 1, BIN_MASS: 1}
FEW_UNKNOWN = {COUNT: 2}


class Sealed(bytes):
    """A payload that is not drawn yet: packed sets, and bytes that are the same each time."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, *parts: Part) -> "Sealed":
        sealed = cls()
        sealed.parts = parts
        return sealed

    def __bool__(self) -> bool:
        return bool(self.parts)

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
    """The code of the device and its table of questions, with pieces of their text replaced.

    The text of a mutation may use ``Kind`` and ``Question`` wherever it stands.
    """

    def __init__(self, *mutations: tuple[str, str], few_ways: bool = True) -> None:
        texts = {name: Path(str(each.__file__)).read_text() for name, each in MODULES.items()}
        for old, new in mutations:
            (where,) = [name for name, text in texts.items() if old in text]
            assert texts[where].count(old) == 1
            texts[where] = texts[where].replace(old, new)
        self.modules: dict[str, Any] = {}
        for name, text in texts.items():
            module: Any = ModuleType(f"mutant of {name}")
            exec(compile(text, module.__name__, "exec"), module.__dict__)  # noqa: S102
            self._use_mutants(module)
            self.modules[name] = module
        self._draws = self.modules["draw"]
        self._door = self.modules["door"]
        stand_ins = {"whisper": whisper, "turned": turned, "rounded_up": self._rounded_up}
        vars(self.modules["method"]).update(subset=SimpleNamespace(**stand_ins))
        vars(self._door).update(device_method=lambda release: self.modules["method"])
        for each in (self.modules["answer"], self._draws):
            assert each.ASK == 1024
            each.ASK = FEW
        self.few_ways = few_ways
        if few_ways:
            self._ask_in_few_ways()
        self._releases: dict[int, tuple[sv.Release, sv.Release]] = {}

    def _use_mutants(self, module: Any) -> None:
        """Let a module use the mutants of the modules that it imports from."""
        for name, mutant in self.modules.items():
            for each, original in vars(MODULES[name]).items():
                if vars(module).get(each) is original and not each.startswith("__"):
                    setattr(module, each, getattr(mutant, each))
        if "questions" in self.modules:
            asked = self.modules["questions"]
            vars(module).update(Kind=asked.Kind, Question=asked.Question)

    def _ask_in_few_ways(self) -> None:
        asked = self.modules["questions"]
        for shares in (FEW_SHARES, FEW_UNKNOWN):
            assert shares.keys() <= {entry.kind for entry in asked.TABLE}
        asked.TABLE = tuple(
            entry._replace(
                share=FEW_SHARES.get(entry.kind, entry.share),
                share_unknown=FEW_UNKNOWN.get(entry.kind, entry.share_unknown),
            )
            for entry in asked.TABLE
        )
        for module in (asked, self._draws):
            assert module.SHARES == 160
            module.SHARES = FEW

    def ways(
        self, release: sv.Release, person: Input, *, population: int = 0
    ) -> list[tuple[Any, Fraction, Purse]]:
        """Every answer that a person may give, its probability, and what was spent for it."""
        secret, outcome = person
        release = self._own(release)
        found = []
        untried: list[tuple[tuple[int, ...], int, int]] = [((), 1, 1)]
        while untried:
            draws, purse = Following(*untried.pop()), Purse()
            self._draws.OPERATING_SYSTEM = draws
            told = self._door.privatise(
                release, secret, population=population, reward=outcome, ledger=purse
            )
            found.append((told, draws.probability, purse))
            untried += draws.untried
        assert sum(probability for _, probability, _ in found) == 1
        return found

    def kept(self, release: sv.Release, person: Input) -> Law:
        """Everything that may lie on a person's device before the outcome comes, and how often.

        The set for another outcome follows from the first one. The set for none is drawn by itself:
        where it is nobody's it is told by its mechanism alone, which keeps the laws small.
        """
        law: Law = {}
        for coins, (good, other, none), probability in self._prepared(release, person):
            nobodys = isinstance(none, tuple) and none[1] is None
            last = repr(none[0]).encode() if nobodys else none
            parts = (good, b"turned" if other is TURNED else b"the same", last)
            payloads = law.setdefault(coins, {})
            payloads[parts] = payloads.get(parts, Fraction(0)) + probability
        return law

    def finished(self, release: sv.Release, person: Input) -> dict[Any, dict[bytes, Fraction]]:
        """Everything that a person may send when the outcome has come, and how often."""
        sent: dict[Any, dict[bytes, Fraction]] = {}
        chances = self._sent_of_three(person[1])
        for coins, (good, other, none), probability in self._prepared(release, person):
            yes = law_of_payload((good,))
            no = yes
            if other is TURNED:
                assert isinstance(good, tuple)
                no = {subset.turned(good[0], data): chance for data, chance in yes.items()}
            laws = {b"y": yes, b"n": no, b"-": law_of_payload((none,))}
            law = sent.setdefault(coins, {})
            for which, share in chances.items():
                for data, chance in laws[which].items():
                    law[data] = law.get(data, Fraction(0)) + probability * share * chance
        return sent

    def _prepared(
        self, release: sv.Release, person: Input
    ) -> list[tuple[Any, tuple[Part, Part, Part], Fraction]]:
        """The three sets that may be kept: for yes, for no, for no outcome."""
        release = self._own(release)
        found = []
        untried: list[tuple[tuple[int, ...], int, int]] = [((), 1, 1)]
        while untried:
            draws, purse = Following(*untried.pop()), Purse()
            self._draws.OPERATING_SYSTEM = draws
            told = self._door.prepare(release, person[0], population=0, ledger=purse)
            parts = told.kept.parts if isinstance(told.kept, Sealed) else (b"", b"", b"")
            good, other, none = parts
            assert other is TURNED or other is good  # each set is drawn once, and paid for once
            assert len(purse.spent) == (good != b"")
            found.append(((told.question, told.ranking), (good, other, none), draws.probability))
            untried += draws.untried
        assert sum(probability for _, _, probability in found) == 1
        return found

    def _sent_of_three(self, outcome: float | None) -> dict[bytes, Fraction]:
        """How often each of three kept sets is sent."""
        found: dict[bytes, Fraction] = {}
        untried: list[tuple[tuple[int, ...], int, int]] = [((), 1, 1)]
        while untried:
            draws = Following(*untried.pop())
            self._draws.OPERATING_SYSTEM = draws
            sent = self.modules["method"].finish(b"yn-", outcome=outcome)
            found[sent] = found.get(sent, Fraction(0)) + draws.probability
            untried += draws.untried
        return found

    def _rounded_up(self, value: float) -> bool:
        return subset.rounded_up(value, draws=self._draws.OPERATING_SYSTEM)

    def _own(self, release: sv.Release) -> sv.Release:
        """The release for this code alone: experiments and releases keep what was worked out."""
        if id(release) not in self._releases:
            # The release says how many are asked: here one share, or none.
            share = min(1, release.reward_share) if self.few_ways else release.reward_share
            about = [min(1, each) for each in release.ask[1:]]
            assert sum(about) <= FEW
            own = replace(
                release,
                experiment=replace(release.experiment),
                reward_share=share,
                scale_share=min(1, release.scale_share) if self.few_ways else release.scale_share,
                ask=(FEW - sum(about), *about),
            )
            self._releases[id(release)] = (release, own)
        return self._releases[id(release)][1]

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


TURNED: Part = b"turned"


def turned(mechanism: SignedSubset, packed: Sealed) -> Sealed:
    """Stands for a set that follows from another one."""
    (part,) = packed.parts
    assert isinstance(part, tuple)
    assert part[0] == mechanism
    return Sealed.of(TURNED)


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
