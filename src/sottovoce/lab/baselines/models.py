"""What the private baselines think of an arm: a score, and the gradient of the logistic loss.

Both models see φ(x) = (1, 2x - 1) of a context x of [0, 1]^d, P parameters θ for each arm, and say
that the arm brings 1 with probability σ(score).

width 0: score = θ·φ/√(d+1), P = d + 1. As ‖φ‖ <= √(d+1), the gradient (σ - y)·φ/√(d+1) is never
    longer than 1.
width H: score = b + Σ_h v_h·tanh(w_h·φ), P = H(d+2) + 1; in θ first b, then v, then the w_h one
    after the other. The gradient has no bound of its own and is shortened to ``clip``.
"""

import numpy as np

from sottovoce.lab.compiled import inlined
from sottovoce.lab.environments import Floats


@inlined
def sigmoid(score: float) -> float:
    """σ(score), without overflow."""
    shrunk = np.exp(-abs(score))
    value: float = 1.0 / (1.0 + shrunk) if score >= 0.0 else shrunk / (1.0 + shrunk)
    return value


@inlined
def features(context: Floats, phi: Floats) -> None:
    """Fill in φ(x), (d+1,)."""
    phi[0] = 1.0
    for axis in range(len(context)):
        phi[axis + 1] = 2.0 * context[axis] - 1.0


@inlined
def score_of(theta: Floats, phi: Floats, width: int, hidden: Floats) -> float:
    """Return the score of the arm with parameters theta (P,); fill in ``hidden`` (H,)."""
    if width == 0:
        score = 0.0
        for j in range(len(phi)):
            score += theta[j] * phi[j]
        normed: float = score / np.sqrt(len(phi))
        return normed
    score = float(theta[0])
    at = 1 + width
    for h in range(width):
        inner = 0.0
        for j in range(len(phi)):
            inner += theta[at + j] * phi[j]
        at += len(phi)
        hidden[h] = np.tanh(inner)
        score += theta[1 + h] * hidden[h]
    return score


@inlined
def gradient_of(
    theta: Floats, phi: Floats, width: int, hidden: Floats, reward: float, gradient: Floats
) -> None:
    """Fill in the gradient (P,) of -y·ln σ - (1 - y)·ln(1 - σ) at theta."""
    error = sigmoid(score_of(theta, phi, width, hidden)) - reward
    if width == 0:
        for j in range(len(phi)):
            gradient[j] = error * phi[j] / np.sqrt(len(phi))
        return
    gradient[0] = error
    at = 1 + width
    for h in range(width):
        gradient[1 + h] = error * hidden[h]
        inward = error * theta[1 + h] * (1.0 - hidden[h] * hidden[h])
        for j in range(len(phi)):
            gradient[at + j] = inward * phi[j]
        at += len(phi)
