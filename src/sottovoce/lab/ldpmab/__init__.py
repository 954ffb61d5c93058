"""Many devices and one ``ldpmab`` learner at once, compiled.

people (who come, and what they add to the learner's own state) → noise (that devices owe, drawn
when somebody looks; then the learner's own step) → policy.
"""

from types import ModuleType

from sottovoce.lab.ldpmab.policy import LdpmabPolicy

begin = LdpmabPolicy
"""The name by which the lab asks for it."""


def audit_part() -> ModuleType:
    """Return what a privacy audit needs to know of the method; loaded where there is one."""
    from sottovoce.lab.ldpmab import auditing

    return auditing
