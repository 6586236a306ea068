"""What a name or description for people may contain.

Descriptors come from strangers and are shown to people, so text must not be able to hide: no control characters, no
line separators, nothing that reverses the reading direction, and one normal form (NFC), so that two names that look
alike are equal. The tables are fixed here and not taken from the Unicode library, whose version differs between nodes;
the JSON Schema in `proto/` has the same ranges.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from bnw.profiles.contract import LocatedError

MAX_NAME_LENGTH: Final = 128
MAX_DESCRIPTION_LENGTH: Final = 4096

FORBIDDEN_RANGES: Final = r"\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""Controls, line and paragraph separators, and bidirectional embeddings, overrides and isolates."""

# Spaces, soft hyphen, joiners, fillers, variation selectors, tags and other characters that print nothing.
INVISIBLE_RANGES: Final = (
    r"\u0000-\u0020\u007f-\u00a0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    r"\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)

_FORBIDDEN = re.compile(f"[{FORBIDDEN_RANGES}]")
_VISIBLE = re.compile(f"[^{INVISIBLE_RANGES}]")


def check_text(text: str, pointer: str, *, least: int, most: int) -> list[LocatedError]:
    """The faults of a text for people of `least` to `most` characters (code points, as JSON Schema counts)."""
    if least <= len(text) <= most and text.isascii() and text.isprintable() and (not least or not text.isspace()):
        return []
    faults = []
    if not least <= len(text) <= most:
        message = f"{len(text):,} characters, where {least:,} to {most:,} are allowed"
        faults.append(LocatedError(pointer, "text-length", message, "shorten it" if text else "write something"))
    bad = _FORBIDDEN.search(text)
    if bad is not None:
        message = f"holds U+{ord(bad[0]):04X}, a control, line-separator or bidirectional-override character"
        faults.append(LocatedError(pointer, "text-control", message, "remove it; text here is one plain line"))
    if not unicodedata.is_normalized("NFC", text):
        hint = "save it in Unicode normalization form NFC"
        faults.append(LocatedError(pointer, "text-not-nfc", "is not in Unicode normalization form NFC", hint))
    if least and text and _VISIBLE.search(text) is None:
        faults.append(LocatedError(pointer, "text-invisible", "has no visible character", "write a name that shows"))
    return faults
