"""ε → the constants of the Laplace mechanism, the same for the device and the learner.

A person is in one cell. For each contested cell the device holds U (was it this cell?) and V (the
reward if so), all 0 but for that one cell. Between any two people, U changes in at most two cells
by 1 each, and so does V: 4 in all. Laplace noise of scale 4/ε in every U and every V of every
contested cell is therefore ε-LDP (docs/explanation/privacy.md has the proof).
"""

SENSITIVITY = 4.0
"""The greatest ℓ1 distance between the (V, U) vectors of any two people."""


def laplace_scale(epsilon: float) -> float:
    """Return the noise scale 4/ε (eqs. privacymechanism and privacymechanismauxiliary)."""
    return SENSITIVITY / epsilon


def largest_plausible(epsilon: float) -> float:
    """Bound what an honest device sends: Laplace noise exceeds 64 scales once in e^64 draws.

    The learner refuses larger numbers, so that one forged report cannot outweigh all others.
    """
    return 1.0 + 64.0 * laplace_scale(epsilon)
