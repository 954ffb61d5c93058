"""PUBLIC: what both sides may know. Standard library only."""
