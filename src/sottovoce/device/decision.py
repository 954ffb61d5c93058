"""A decision: the arm that a person gets, and what is needed to report on it later."""

from dataclasses import dataclass, field
from datetime import datetime

NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class Decision:
    """What ``Client.choose`` returns.

    id: by which the outcome may be reported, also by another process and after a restart. It stays
        on the device. To send it anywhere beside the person's reports would tie them together.
    arm: what the person gets. It is private, and not shown with the decision.
    expires: the outcome may be reported until then.
    asked: whether there will be a report. There is none once the person's budget is spent, while
        the experiment is paused or after it has ended, and before the first release has come. The
        outcome of such a decision is ignored.
    """

    id: str
    arm: str = field(repr=False)
    expires: datetime
    asked: bool = True

    def __str__(self) -> str:
        """Return the arm."""
        return self.arm
