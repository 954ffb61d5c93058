"""Simulated problems beyond the paper's own two.

``tuning`` has a fixed set, which may be looked at when the rules of a method are chosen.
``generated`` draws problems from a digest of the rules, so that nobody can know them before the
rules are fixed.
"""
