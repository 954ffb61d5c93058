"""Where things are."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The repository."""

SHARED = ROOT.parent / "shared"
"""Data sets and published figures, which are no part of the repository."""
