"""A policy as a Python function that imports nothing of this package.

It takes the contexts that a device takes, refuses those that a device refuses, and gives the best
arm of the bin. Names of features, levels and arms stand in it as Python writes strings, and in
comments on one line: a name holds no line break.
"""

import keyword
import re
from collections.abc import Iterator, Sequence

from sottovoce.device.policy.held import Held, Numbers, Places, place_of, values_of
from sottovoce.device.policy.policy import Policy
from sottovoce.device.policy.tree import Leaf, Question, Tree, same_arm, tree_of
from sottovoce.shared.schema import OTHER, Boolean, Categorical, Feature, Numeric, Ordinal

_HEAD = '''\
# Which arm for whom: release {version} of experiment {name!r},
# whose fingerprint is {fingerprint}.

import math
from collections.abc import Mapping
from numbers import Real


def choose(context):
    """Return the arm for a person. The context maps names of features to their values.

    What is missing may be None, NaN or left out. Raises ValueError for a context that does not fit.
    """
    _check(context, needed={needed!r}, optional={optional!r})
'''

_CHECK = """

def _check(context, *, needed, optional):
    if not isinstance(context, Mapping):
        raise ValueError("a context must map feature names to values")
    lacking = [name for name in needed if name not in context]
    if lacking or context.keys() - {*needed, *optional}:
        raise ValueError(f"a context must have {needed}, may have {optional}, and no other")


def _is_missing(value, optional):
    return optional and (value is None or (isinstance(value, Real) and bool(value != value)))
"""

_NUMBER = """

def _number(context, name, *, optional=False):
    value = context.get(name)
    if _is_missing(value, optional):
        return None
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except (ArithmeticError, TypeError, ValueError):
            pass
    if not math.isfinite(number):
        raise ValueError(f"feature {name!r} must be a finite number")
    return number
"""

_LEVEL = """

def _level(context, name, levels, *, optional=False, other=False):
    value = context.get(name)
    if _is_missing(value, optional):
        return None
    if not isinstance(value, str) or not (other or value in levels):
        raise ValueError(f"feature {name!r} must be one of its levels")
    return value
"""

_TRUTH = """

def _truth(context, name, *, optional=False):
    value = context.get(name)
    if _is_missing(value, optional):
        return None
    if type(value) is bool:
        return value
    try:  # a truth value of NumPy
        if value.dtype.kind == "b" and value.shape == ():
            return bool(value)
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        pass
    raise ValueError(f"feature {name!r} must be True or False")
"""


def python_text(policy: Policy) -> str:
    """Write a policy as the text of a Python module with one function, ``choose``."""
    experiment = policy.release.experiment
    context = experiment.context
    writer = _Writer(experiment.arms, _variables(context))
    head = _HEAD.format(
        version=policy.release.version,
        name=experiment.name,
        fingerprint=experiment.fingerprint,
        needed=[each.name for each in context if not each.optional],
        optional=[each.name for each in context if each.optional],
    )
    reading = [f"    {writer.variables[each]} = {_reading(each)}" for each in context]
    body = writer.write(tree_of(policy, alike=same_arm), depth=1)
    kinds = {_NUMBER: Numeric, _LEVEL: Ordinal | Categorical, _TRUTH: Boolean}
    helpers = [
        text for text, kind in kinds.items() if any(isinstance(each, kind) for each in context)
    ]
    return head + "\n".join([*reading, *body]) + "\n" + _CHECK + "".join(helpers)


class _Writer:
    """Writes questions as if-statements: after one whose people all got an arm, go on below it."""

    def __init__(self, arms: Sequence[str], variables: dict[Feature, str]) -> None:
        self._arms, self.variables = arms, variables

    def write(self, tree: Tree, *, depth: int) -> Iterator[str]:
        """Yield the lines of a tree. Python allows 100 indents; a release is 96 splits deep."""
        indent = "    " * depth
        while isinstance(tree, Question):
            # The shorter side stands inside, so that most lines are near the margin.
            goes_up = _height(tree.up) < _height(tree.down)
            yield f"{indent}if {self._condition(tree, goes_up=goes_up)}:"
            yield from self.write(tree.up if goes_up else tree.down, depth=depth + 1)
            tree = tree.down if goes_up else tree.up
        yield f"{indent}return {self._arms[tree.arm]!r}{_standing(tree)}"

    def _condition(self, question: Question, *, goes_up: bool) -> str:
        """Say who goes one way, of all who come to a question."""
        name = self.variables[question.feature]
        these, others = question.lower, question.upper
        if goes_up:
            these, others = others, these
        if isinstance(these, Places) and isinstance(others, Places):
            return _of_places(question.feature, name, these, others)
        assert isinstance(these, Numbers)  # noqa: S101  both sides are of one feature
        if question.cut is None:
            return f"{name} is None" if these.missing else f"{name} is not None"
        # Who has no number goes down: it lies at the lower bound.
        if question.lower == these:
            return f"{name} is None or " * these.missing + f"{name} < {question.cut!r}"
        return f"{name} is not None and " * _missing(others) + f"{name} >= {question.cut!r}"


def _missing(held: Held) -> bool:
    return isinstance(held, Numbers) and held.missing


def _of_places(feature: Feature, name: str, these: Places, others: Places) -> str:
    """Name the fewer places, and never the one for other levels: anything may be in it."""
    other = place_of(feature, OTHER)
    turned = other in these.held or (
        other not in others.held and len(others.held) < len(these.held)
    )
    values = values_of(feature)
    named = tuple(values[each] for each in sorted((others if turned else these).held))
    if len(named) > 1:
        return f"{name} {'not in' if turned else 'in'} {named!r}"
    (only,) = named
    if isinstance(only, str):
        return f"{name} {'!=' if turned else '=='} {only!r}"
    return f"{name} {'is not' if turned else 'is'} {only!r}"


def _reading(feature: Feature) -> str:
    optional = ", optional=True" * feature.optional
    match feature:
        case Numeric():
            return f"_number(context, {feature.name!r}{optional})"
        case Boolean():
            return f"_truth(context, {feature.name!r}{optional})"
        case Categorical():
            other = ", other=True" * feature.other
            return f"_level(context, {feature.name!r}, {feature.levels!r}{optional}{other})"
        case Ordinal():
            return f"_level(context, {feature.name!r}, {feature.levels!r}{optional})"


def _standing(leaf: Leaf) -> str:
    settled = [each.settled for each in leaf.bins]
    if all(settled):
        return ""
    return "  # not settled yet" if not any(settled) else "  # not settled yet for some of them"


def _height(tree: Tree) -> int:
    return 0 if isinstance(tree, Leaf) else 1 + max(_height(tree.down), _height(tree.up))


_TAKEN = {"context", "choose", "math", "float", "bool", "isinstance", "type", "Real", "Mapping"}


def _variables(context: Sequence[Feature]) -> dict[Feature, str]:
    """Name a variable like each feature, as far as Python allows it."""
    found: dict[Feature, str] = {}
    for feature in context:
        name = re.sub(r"[^a-z0-9]+", "_", feature.name.lower()).strip("_")
        if not name or name[0].isdigit() or keyword.iskeyword(name) or name in _TAKEN:
            name = f"feature_{name}".rstrip("_")
        number, taken = 2, set(found.values())
        base = name
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        found[feature] = name
    return found
