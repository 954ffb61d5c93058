"""Many devices and one ``whisper`` learner at once, compiled.

tables (mechanisms, and tallies that wait) → draws (one signed subset) → people (who come, and what
they answer) → policy. What a person answers is worked out by the device's own functions, and what
is learned by the learner's own, compiled as they stand.
"""

from types import ModuleType

from sottovoce.lab.whisper.policy import WhisperPolicy

begin = WhisperPolicy
"""The name by which the lab asks for it."""


def audit_part() -> ModuleType:
    """Return what a privacy audit needs to know of the method; loaded where there is one."""
    from sottovoce.lab.whisper import auditing

    return auditing
