"""PURE: sums in, releases out. No input or output, no randomness."""
