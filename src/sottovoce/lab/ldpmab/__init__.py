"""Many devices and one ``ldpmab`` learner at once, compiled.

state (arrays) → people (who come, and what they add) → steps (noise, then the decisions) → policy.
Two things are done at once instead of one by one, both exact: see ``steps``.
"""

from sottovoce.lab.ldpmab.policy import LdpmabPolicy

begin = LdpmabPolicy
"""The name by which the lab asks for it."""
