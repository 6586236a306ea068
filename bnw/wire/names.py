"""Names that appear on the wire: operation names, progress stages, capability names, media types.

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
