"""The Laplace mechanism, by OpenDP (the extra "laplace").

OpenDP samples the discrete Laplace distribution exactly, on a grid of 2^GRID, without
floating-point numbers. Its random bits come from the generator of OpenSSL: a cryptographic one, in
the memory of this process, which takes its seed from the operating system. All other draws of a
device come from the operating system itself. OpenDP's privacy map accounts for the rounding to that
grid. The device checks the map before the first use, and never uses a measurement that would spend
more than ε.

Proof sketch, in full in docs/explanation/privacy.md: two people's (V, U) vectors differ by at most
4 in ℓ1 norm, and Laplace noise of scale b is (4/b)-DP at that distance, hence ε-LDP for b = 4/ε.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from sottovoce.shared.errors import DeviceError
from sottovoce.shared.ldpmab.laplace import SENSITIVITY, laplace_scale

# 2^-60: far finer than any reward or noise, and three times faster than OpenDP's finest grid.
GRID = -60


@lru_cache(maxsize=64)
def mechanism(length: int, *, epsilon: float) -> Callable[[Sequence[float]], Sequence[float]]:
    """Return a function that adds independent Laplace(4/ε) noise to every number of a vector.

    It is OpenDP's measurement for vectors of this length, with its privacy map checked against ε.
    """
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise DeviceError(
            "the Laplace mechanism needs OpenDP: pip install 'sottovoce[laplace]'"
        ) from error
    dp.enable_features("contrib")
    vectors = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=length)
    scale = laplace_scale(epsilon)
    # Rounding to the grid costs a little privacy: the scale grows until the map agrees.
    for step in range(60):
        candidate = dp.m.make_laplace(vectors, dp.l1_distance(T=float), scale, GRID)
        if candidate.map(SENSITIVITY) <= epsilon:
            return candidate
        scale = laplace_scale(epsilon) * (1 + math.ldexp(1.0, step - 52))
    raise DeviceError(f"no Laplace scale gives epsilon = {epsilon} for {length} numbers")
