"""The places of ``board.totals`` and ``board.experience``; plain numbers, so that they compile."""

NODES, CONTESTED, EVENTS, RELEASE, REPORTS, SERVED, SMOOTHED = range(7)
WORTH, TARGET = range(2)
