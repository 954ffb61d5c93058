"""The public thresholds at which people are asked where they are along an axis of numbers.

They are the same on every axis, and closer together towards both ends, where a long tail crowds
people. All are dyadic numbers, so that every device has the very same ones.
"""

_LOW = (1, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768)  # of 2048

THRESHOLDS: tuple[float, ...] = (
    *(each / 2048 for each in _LOW),
    0.5,
    *(1 - each / 2048 for each in reversed(_LOW)),
)
"""Positions, from low to high; the middle one is 1/2. A guess, and not tuned."""
