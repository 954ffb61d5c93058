"""Many devices and one ``ldpmab`` learner at once, compiled.

crowd (the learner's state, and noise that is owed) → people (who come, and what they add) → noise
(drawn when somebody looks; then the learner's own step) → policy.
"""

from sottovoce.lab.ldpmab.policy import LdpmabPolicy

begin = LdpmabPolicy
"""The name by which the lab asks for it."""
