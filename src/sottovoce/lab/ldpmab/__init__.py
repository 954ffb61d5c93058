"""Many devices and one ``ldpmab`` learner at once, compiled.

crowd (devices, and noise that they owe) → people (who come, and what they add to the learner's own
state) → noise (drawn when somebody looks; then the learner's own step) → policy.
"""

from sottovoce.lab.ldpmab.policy import LdpmabPolicy

begin = LdpmabPolicy
"""The name by which the lab asks for it."""
