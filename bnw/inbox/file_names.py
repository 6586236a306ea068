"""A file name that came from somebody else, made safe to create here (design section 8).

A name in an access record is data. On the way to the disk it loses its directories, and what is merely awkward in it is
replaced; what only somebody with bad intent would send is refused, so that nothing is created under a name that its
sender has steered. What holds for a name here holds on Linux, macOS and Windows alike, because files move on.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_FILE_NAME
from bnw.wire.names import is_plain_text

_SEPARATORS: Final = re.compile(r"[/\\]")
_AWKWARD: Final = re.compile(r'[<>:"|?*]')
"""Not allowed in names on Windows; there a colon even leads into another stream of the file."""
_DEVICE: Final = re.compile(r"CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|CLOCK\$|(?:COM|LPT)[0-9]", re.IGNORECASE)
"""Names that open a device on Windows, whatever extension follows."""
_TRIMMED: Final = ". "
"""What Windows cuts off at the end of a name."""
_SUBSTITUTE: Final = "_"


def safe_file_name(name: str) -> str:
    """The last part of `name`, fit to be joined to a directory.

    At most 255 bytes of UTF-8; no separators, control or direction characters; not `.`, `..`, a device name,
    hidden, or anything that a program could take for an option. Whether there is a file of this name already is for
    whoever creates it to find out. Raises `InvalidError` (`file-name`).
    """
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise _refused("it is not Unicode text") from None
    if size > MAX_FILE_NAME:
        raise _refused(f"it has {size:,} bytes, and names have at most {MAX_FILE_NAME}")
    if not is_plain_text(name):
        raise _refused("it holds control or direction characters")
    # Some systems replace characters by plainer ones, and among those may be separators and dots.
    parts, plain_parts = (_SEPARATORS.split(form) for form in (name, unicodedata.normalize("NFKC", name)))
    if len(parts) != len(plain_parts):
        raise _refused("it holds something that looks like a separator of directories")
    if any(part.strip() == ".." for part in (*parts, *plain_parts)):
        raise _refused("it leads out of its directory")
    last = parts[-1].strip().rstrip(_TRIMMED)
    if not last:
        raise _refused("nothing is left of it without its directories")
    if _DEVICE.fullmatch(plain_parts[-1].split(".")[0].strip()):
        raise _refused("it is the name of a device on some systems")
    last = _AWKWARD.sub(_SUBSTITUTE, last)
    return _SUBSTITUTE + last[1:] if last[0] in ".-~" else last


def _refused(why: str) -> InvalidError:
    return InvalidError(
        "file-name",
        f"the name that the sender gave the file is not used: {why}",
        cure="choose a name yourself",
    )
