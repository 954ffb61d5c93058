"""Exact worst ratios: laws in fractions, compared with e^ε without rounding."""

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

from sottovoce.lab.audit.claims import Exactly

Law = dict[bytes, Fraction]
"""Everything that one person may send, and its exact probability."""

_DIGITS = 120


def worst_ratio(laws: Sequence[Law]) -> Fraction | None:
    """Return the greatest ratio of probabilities of any message between any two people.

    None stands for infinity: somebody never sends what somebody else may send.
    """
    worst = Fraction(1)
    for message in set().union(*laws):
        chances = [law.get(message, Fraction(0)) for law in laws]
        if min(chances) == 0:
            return None
        worst = max(worst, max(chances) / min(chances))
    return worst


def judge(worst: Fraction | None, *, epsilon: float, how: str) -> Exactly:
    """Compare a worst ratio with e^ε."""
    if worst is None:
        return Exactly(math.inf, False, how)
    return Exactly(log_above(worst), worst <= power_of_e(epsilon), how)


def judge_exponent(worst: Fraction, *, epsilon: float, how: str) -> Exactly:
    """Compare the exponent of a worst ratio, where it is a power of e, with ε."""
    return Exactly(_float_above(worst), worst <= Fraction(epsilon), how)


def power_of_e(epsilon: float) -> Fraction:
    """Return a fraction just below e^ε: ``decimal`` rounds exp correctly in the last digit."""
    with localcontext() as context:
        context.prec = _DIGITS
        value = Fraction(Decimal(epsilon).exp())
    return value * (1 - Fraction(1, 10 ** (_DIGITS - 2)))


def log_above(ratio: Fraction) -> float:
    """Return the logarithm of a ratio, rounded up to a float."""
    with localcontext() as context:
        context.prec = _DIGITS
        logarithm = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    return _float_above(Fraction(logarithm) + Fraction(1, 10 ** (_DIGITS - 10)))


def _float_above(number: Fraction) -> float:
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)
