"""The crowd: many devices and one learner at once, compiled; a folder for each method.

Equal in law to real ``Device`` and ``Learner`` objects (tests/statistical), and the decisions are
the learner's own rules, compiled as they stand (lab/compiled.py).
"""
