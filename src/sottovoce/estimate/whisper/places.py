"""The places of some arrays of a ``Board``; plain numbers, so that they compile."""

# Of ``board.totals``.
NODES, CONTESTED, EVENTS, RELEASE, REPORTS, SERVED, SMOOTHED, ASKED = range(8)
WORTH, TARGET = range(2)  # of ``board.experience``
ANSWERS, DELIVERED, PROMISED, CHANCE = range(4)  # of ``board.audit``
