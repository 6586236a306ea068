"""Names and texts on the wire: operation names, progress stages, capability names, media types, plain text.

Operation names, stages and capability names share one alphabet (design section 6): lowercase ASCII letters, digits and
`. _ - /`, starting with a letter or digit, 1 to 64 characters, no empty segment between slashes.
"""

from __future__ import annotations

import re

from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_MEDIA_TYPE

MAX_NAME = 64
NAME_PATTERN = r"[a-z0-9][a-z0-9._-]*(?:/[a-z0-9._-]+)*"
_NAME = re.compile(NAME_PATTERN)

# RFC 6838 section 4.2: restricted-name, at most 127 characters; here in lower case, without parameters.
_RESTRICTED_NAME = r"[a-z0-9][a-z0-9!#$&\-^_.+]{0,126}"
_MEDIA_TYPE = re.compile(rf"{_RESTRICTED_NAME}/{_RESTRICTED_NAME}")

# Control characters, line and paragraph separators, and the controls of text direction. A list of code points and not a
# question to the Unicode tables: those grow with every version, and nodes must agree on what is valid.
_NOT_PLAIN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def is_name(text: str) -> bool:
    """Whether `text` is a name in the shared alphabet."""
    return 1 <= len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None


def check_name(text: str, what: str = "name") -> str:
    """Return `text`, or raise `InvalidError` if it is not a name in the shared alphabet."""
    if not is_name(text):
        shown = text if len(text) <= MAX_NAME else f"{text[:MAX_NAME]}..."
        raise InvalidError(
            "name",
            f"{shown!r} is not a valid {what}",
            cure="use 1 to 64 lowercase letters, digits and . _ - /, starting with a letter or digit, "
            "with no empty part between slashes",
        )
    return text


def is_media_type(text: str) -> bool:
    """Whether `text` is a lowercase RFC 6838 media type name without parameters."""
    return len(text) <= MAX_MEDIA_TYPE and _MEDIA_TYPE.fullmatch(text) is not None


def is_plain_text(text: str) -> bool:
    """Whether `text` has no control characters, line breaks or direction controls: it is safe to show on a line."""
    return _NOT_PLAIN.search(text) is None
