"""The crowd: many devices and one ``ldpmab`` learner at once, compiled.

state (arrays) → people (who come, and what they add) → steps (noise, then the decisions).

Equal in law to real ``Device`` and ``Learner`` objects (tests/statistical/test_crowd.py), and the
decisions are the learner's own rules, compiled as they stand (lab/compiled.py). Two things are done
at once instead of one by one, both exact: see ``steps``.
"""
