"""The places of some arrays of a ``Board``; plain numbers, so that they compile."""

NODES, CONTESTED, EVENTS, RELEASE, REPORTS, SERVED, SMOOTHED = range(7)  # of ``board.totals``
WORTH, TARGET = range(2)  # of ``board.experience``
ANSWERS, DELIVERED, PROMISED, CHANCE = range(4)  # of ``board.audit``
