"""What a call ends with, before it becomes a signed receipt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bnw.objects.calls import STATUS_CANCELLED, STATUS_EXPIRED, STATUS_INTERRUPTED


@dataclass(frozen=True, slots=True)
class Ending:
    """A status of a receipt and, unless it is `completed`, the code of the fault."""

    status: str
    code: str | None = None


CANCELLED: Final = Ending(STATUS_CANCELLED, "cancelled")
EXPIRED: Final = Ending(STATUS_EXPIRED, "deadline-passed")
INACTIVE: Final = Ending(STATUS_EXPIRED, "inactive")
INTERRUPTED: Final = Ending(STATUS_INTERRUPTED, "interrupted")
"""The node stopped after the call had begun; it may have had effects."""
RESTARTED: Final = Ending(STATUS_INTERRUPTED, "restarted")
"""The node stopped before the call had begun, as far as its store knows."""
NOT_KNOWN_TO_BE_NEW: Final = Ending(STATUS_INTERRUPTED, "not-known-to-be-new")
"""The call was made before this node started, and its store does not know it. An older store would say the same."""
