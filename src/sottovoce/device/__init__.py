"""RAW: the only deployed code that sees raw data. Standard library only, but for the Laplace extra.

encode → choose → privatise (the one door) → report. The ledger stands at the door.

Its modules are internal: import what is public from ``sottovoce``.
"""
