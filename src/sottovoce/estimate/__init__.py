"""PURE: sums in, releases out. No input or output, no randomness.

Its modules are internal: import what is public from ``sottovoce``.
"""
