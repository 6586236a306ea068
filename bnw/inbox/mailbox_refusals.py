"""Why a mailbox does not take mail: the codes that it tells the sender, and what they mean."""

from __future__ import annotations

from typing import Final

from bnw.inbox.delivery import REFUSED_BUSY, REFUSED_INVALID, REFUSED_NOT_HERE, REFUSED_TRY_LATER

REFUSED_FULL: Final = "mailbox-full"
REFUSED_UNAVAILABLE: Final = "unavailable"

MAILBOX_REFUSALS: Final = {
    REFUSED_NOT_HERE: "the recipient has no mailbox here",
    REFUSED_INVALID: "an object is invalid, expired, or from the future",
    REFUSED_BUSY: "it takes in as much as it can at once; try again soon",
    REFUSED_TRY_LATER: "it has a problem of its own; try again later",
    REFUSED_FULL: "it holds as much for the recipient as it may; try again when the recipient has collected its mail",
    REFUSED_UNAVAILABLE: "it could not fetch the chunks of a payload from this node",
}
