"""A release as a tree of questions about raw values, without those that ask nothing new.

A question is left out where everybody who comes to it would answer alike: a bin may be narrower
than the distance of two numbers, or between two places, so that nobody is in it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sottovoce.device.policy.held import Held, divide, everybody
from sottovoce.device.policy.policy import Policy
from sottovoce.shared.partition import level_at
from sottovoce.shared.release import BinPolicy
from sottovoce.shared.schema import Feature


@dataclass(frozen=True, slots=True)
class Leaf:
    """People who all get one arm. bins: those where they are, in order."""

    arm: int
    bins: tuple[BinPolicy, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """Who goes down and who goes up, by one feature.

    lower, upper: what people have of the feature who come to this question, and go either way.
    cut: the least number that goes up, if numbers are divided here.
    """

    feature: Feature
    lower: Held
    upper: Held
    cut: float | None
    down: "Tree"
    up: "Tree"


Tree = Leaf | Question

People = tuple[Held, ...]
"""What people have of each feature, in the order of the schema."""

Alike = Callable[[Leaf, Leaf], bool]
"""Whether two neighbours can be told as one."""


def tree_of(policy: Policy, *, alike: Alike) -> Tree:
    """Return the tree of a policy."""
    context = policy.release.experiment.context
    return _Grower(policy, alike).grow("", tuple(map(everybody, context)))


def same_arm(one: Leaf, other: Leaf) -> bool:
    """Take neighbours who get the same arm as one."""
    return one.arm == other.arm


class _Grower:
    """Builds the tree of one policy."""

    def __init__(self, policy: Policy, alike: Alike) -> None:
        self._policy, self._alike = policy, alike
        context = policy.release.experiment.context
        self._axes = [  # which feature each axis is of, and which of its axes it is
            (number, axis)
            for number, feature in enumerate(context)
            for axis in range(len(feature.axes))
        ]

    def grow(self, path: str, people: People) -> Tree:
        """Return the tree of those who are in a bin, or in what was split off it."""
        release = self._policy.release
        axis = release.partition.cuts.get(path)
        if axis is None:
            policy = release.policies[path]
            return Leaf(self._policy.best(policy), (policy,))
        number, within = self._axes[axis]
        feature = release.experiment.context[number]
        halves = divide(feature, people[number], within, self._split(path, axis))
        if halves.upper.is_nobody:
            return self.grow(path + "0", people)
        if halves.lower.is_nobody:
            return self.grow(path + "1", people)
        down = self.grow(path + "0", _with(people, number, halves.lower))
        up = self.grow(path + "1", _with(people, number, halves.upper))
        if isinstance(down, Leaf) and isinstance(up, Leaf) and self._alike(down, up):
            return replace(down, bins=(*down.bins, *up.bins))
        return Question(feature, halves.lower, halves.upper, halves.cut, down, up)

    def _split(self, path: str, axis: int) -> Callable[[float], bool]:
        """Return whether a position lies in the upper part of a bin, as ``Partition.find`` does."""
        partition = self._policy.release.partition
        if path in partition.sets:
            upper, levels = partition.sets[path], partition.levels[axis]
            return lambda position: level_at(position, levels) in upper
        low, high = partition.edges(path)[axis]
        middle = partition.position(axis, (low + high) / 2)
        return lambda position: position >= middle


def _with(people: People, number: int, held: Held) -> People:
    return (*people[:number], held, *people[number + 1 :])
