"""Logged trials: a context, the arm that somebody's policy chose, and the reward of that arm alone.

log.py is a log in memory, reading.py makes one of files, values.py estimates what another policy
would have brought, learning.py lets methods learn on a log, comparison.py sets all side by side.
"""
