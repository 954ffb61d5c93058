"""A policy as an SQL expression that SQLite and PostgreSQL read alike.

One row is one person, and each feature a column of its name. NULL is a missing value. A row whose
context a device would refuse gets NULL for an arm.

What the two databases do not do alike is kept out:

- SQLite takes "age" in double quotes for a text where there is no such column. So every column
  stands after the name of its table.
- A column of a table compares by the column's collation, and may ignore case. So levels are
  compared after ``|| ''``: an expression has no collation of its own.
- SQLite does not read every decimal number as the nearest double. So a cut is written as decimal
  digits only if they are the double exactly, and else as whole numbers, divided by powers of two.
- PostgreSQL has NaN, equal to itself and larger than all others. Finite is what gives 0 if it is
  taken from itself.
- In SQLite any text is larger than all numbers, so that text in place of a number is found.
"""

from collections.abc import Iterator
from fractions import Fraction

from sottovoce.device.policy.held import Numbers, Places, place_of
from sottovoce.device.policy.policy import Policy
from sottovoce.device.policy.tree import Question, Tree, same_arm, tree_of
from sottovoce.shared.schema import MISSING, OTHER, Boolean, Categorical, Feature, Numeric

LARGEST = "1.7976931348623158e308"
"""At least the largest double, by whatever rounding; less than infinity and NaN by most."""

DIGITS = 15
"""So many digits of a decimal number, at most, are read exactly by everybody."""


def sql_text(policy: Policy, *, table: str) -> str:
    """Write a policy as an expression.

    table: the name of the table, or its alias, where the columns are.
    """
    experiment = policy.release.experiment
    columns = _Columns(_identifier(table))
    lines = [
        f"-- Which arm for whom: release {policy.release.version}"
        f" of experiment {_text(experiment.name)},",
        f"-- whose fingerprint is {experiment.fingerprint}.",
        "-- NULL for a context that does not fit.",
    ]
    fits = [rule for feature in experiment.context for rule in columns.fits(feature)]
    tree = tree_of(policy, alike=same_arm)
    arms = [_text(arm) for arm in experiment.arms]
    if not fits:
        return "\n".join([*lines, *_write(tree, columns, arms, indent="")]) + "\n"
    lines += ["CASE", "  WHEN " + "\n   AND ".join(fits), "  THEN"]
    return "\n".join([*lines, *_write(tree, columns, arms, indent="    "), "END"]) + "\n"


def _write(tree: Tree, columns: "_Columns", arms: list[str], *, indent: str) -> Iterator[str]:
    """Yield the lines of a tree."""
    if not isinstance(tree, Question):
        yield indent + arms[tree.arm]
        return
    yield f"{indent}CASE"
    while isinstance(tree, Question):
        condition, first, rest = columns.question(tree)
        yield f"{indent}  WHEN {condition} THEN"
        yield from _write(first, columns, arms, indent=indent + "    ")
        tree = rest
    yield f"{indent}  ELSE {arms[tree.arm]}"
    yield f"{indent}END"


class _Columns:
    """What the columns of one table say of a person."""

    def __init__(self, table: str) -> None:
        self._table = table

    def fits(self, feature: Feature) -> Iterator[str]:
        """Yield a condition that holds if a device would take the value; it may be NULL if not."""
        raw = self._raw(feature)
        match feature:
            case Numeric():
                number = self._number(feature)
                rule = f"(+{raw} <= {LARGEST} AND {_finite(number)})"
                # NaN alone is larger than the largest number, and so is what is left without it.
                nan = f"({number} > {LARGEST} AND -{number} > {LARGEST})"
                yield f"({raw} IS NULL OR {rule} OR {nan})" if feature.optional else rule
            case Boolean():
                rule = f"({raw} = TRUE OR {raw} = FALSE)"
                yield f"({raw} IS NULL OR {rule})" if feature.optional else rule
            case Categorical() if feature.other:
                if not feature.optional:
                    yield f"{raw} IS NOT NULL"
            case _:
                every = range(len(feature.levels))
                rule = self._levels(feature, frozenset(every))
                yield f"({raw} IS NULL OR {rule})" if feature.optional else rule

    def question(self, question: Question) -> tuple[str, Tree, Tree]:
        """Return a condition, what follows if it holds, and what if it does not or is NULL."""
        feature, lower, upper = question.feature, question.lower, question.upper
        if isinstance(lower, Places) and isinstance(upper, Places):
            other = place_of(feature, OTHER)
            # Never name the place for other levels; else name the fewer.
            if other not in upper.held and (
                other in lower.held or len(upper.held) < len(lower.held)
            ):
                return self._places(feature, upper.held), question.up, question.down
            return self._places(feature, lower.held), question.down, question.up
        assert isinstance(lower, Numbers)  # noqa: S101  both sides are of one feature
        number = self._number(feature)
        if question.cut is None:
            first, rest = question.down, question.up
            return _finite(number), *((rest, first) if lower.missing else (first, rest))
        condition = f"{number} >= {_literal(question.cut)}"
        if lower.missing:  # who has no number goes down, also if it is NaN
            condition = f"({condition} AND {_finite(number)})"
        return condition, question.up, question.down

    def _places(self, feature: Feature, held: frozenset[int]) -> str:
        missing = place_of(feature, MISSING)
        named = held - {missing}
        rules = [f"{self._raw(feature)} IS NULL"] if missing in held else []
        rules += [self._levels(feature, named)] if named else []
        return rules[0] if len(rules) == 1 else f"({' OR '.join(rules)})"

    def _levels(self, feature: Feature, held: frozenset[int]) -> str:
        raw = self._raw(feature)
        if isinstance(feature, Numeric):
            raise TypeError("numbers have no levels")
        if isinstance(feature, Boolean):
            both = [f"{raw} = {('FALSE', 'TRUE')[each]}" for each in sorted(held)]
            return both[0] if len(both) == 1 else f"({' OR '.join(both)})"
        names = ", ".join(_text(feature.levels[each]) for each in sorted(held))
        return f"({raw} || '') IN ({names})"

    def _raw(self, feature: Feature) -> str:
        return f"{self._table}.{_identifier(feature.name)}"

    def _number(self, feature: Feature) -> str:
        """Return the column as a double, as a device takes it: a large whole number is rounded."""
        return f"CAST({self._raw(feature)} AS DOUBLE PRECISION)"


def _finite(number: str) -> str:
    return f"{number} - {number} = 0"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(number: float) -> str:
    """Write a double so that every database reads that very one."""
    decimal = repr(number)
    digits = len(decimal.strip("-").replace(".", ""))
    if "e" not in decimal and digits <= DIGITS and Fraction(decimal) == Fraction(number):
        return decimal
    numerator, denominator = number.as_integer_ratio()
    twos = (numerator & -numerator).bit_length() - 1
    parts = [f"CAST({numerator >> twos} AS DOUBLE PRECISION)"]
    sign, power = ("*", twos) if denominator == 1 else ("/", denominator.bit_length() - 1)
    while power:
        step = min(power, 62)
        parts.append(f"{sign} CAST({2**step} AS DOUBLE PRECISION)")
        power -= step
    return f"({' '.join(parts)}) /* {decimal} */"
