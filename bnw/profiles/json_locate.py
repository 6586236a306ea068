"""The slow half of the strict JSON reader: says what is wrong with a document, and where.

Reads the text once, left to right, knowing the path to where it is. Faults that leave no doubt how to go on (a
duplicate key, a number out of range, NaN, half a surrogate pair) are noted and read past; any other ends the reading.
It accepts exactly what `json_reader` accepts, which a test holds it to.
"""

from __future__ import annotations

import re
from typing import Final

from bnw.profiles.contract import MAX_ERRORS, LocatedError
from bnw.profiles.json_reader import BOM, MAX_DEPTH, MAX_INTEGER_DIGITS, JsonValue
from bnw.profiles.pointer import pointer
from bnw.wire.limits import MAX_INTEGER

_SPACE = re.compile(r"[ \t\n\r]*+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(\.[0-9]++)?([eE][+-]?[0-9]++)?")
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*+')
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_WORDS: Final[dict[str, JsonValue]] = {"true": True, "false": False, "null": None}
_NOT_NUMBERS = re.compile(r"-?(?:NaN|Infinity)")
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_REPLACEMENT: Final = "\ufffd"
_RANGE_HINT: Final = "use a number within ±(2^53−1), which every JSON parser reads alike"


class _Stop(Exception):
    """Nothing further can be read."""


def locate(data: bytes, max_bytes: int) -> tuple[JsonValue, tuple[LocatedError, ...]]:
    """What can be read of `data`, and its faults (none exactly if `data` is strict JSON)."""
    if len(data) > max_bytes:
        message = f"{len(data):,} bytes, where at most {max_bytes:,} are allowed"
        return None, (LocatedError("", "json-size", message, "shorten the document"),)
    if data.startswith(BOM):
        return None, (LocatedError("", "json-encoding", "starts with a byte order mark", "save it without one"),)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in data[:4]:
        return None, (LocatedError("", "json-encoding", "is UTF-16 or UTF-32, not UTF-8", "save it as UTF-8"),)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not valid UTF-8"
        return None, (LocatedError("", "json-encoding", message, "save it as UTF-8"),)
    reader = _Reader(text)
    try:
        value = reader.document()
    except _Stop:
        value = None
    return value, tuple(reader.faults)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.path: list[str | int] = []
        self.faults: list[LocatedError] = []

    def document(self) -> JsonValue:
        value = self.value()
        self.space()
        if self.at != len(self.text):
            raise self.stop("json-trailing", "something follows the value", "a document is exactly one JSON value")
        return value

    def note(self, code: str, message: str, hint: str | None, *, at: int | None = None) -> None:
        if len(self.faults) >= MAX_ERRORS:
            self.faults.append(
                LocatedError("", "too-many-errors", f"more than {MAX_ERRORS} errors; the rest is unread")
            )
            raise _Stop
        position = self.at if at is None else at
        line = self.text.count("\n", 0, position) + 1
        column = position - self.text.rfind("\n", 0, position)
        where = f" (line {line}, column {column})"
        self.faults.append(LocatedError(pointer(self.path), code, message + where, hint))

    def stop(self, code: str, message: str, hint: str | None = None) -> _Stop:
        self.note(code, message, hint)
        return _Stop()

    def space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def value(self) -> JsonValue:
        self.space()
        head = self.text[self.at : self.at + 1]
        if head in ("{", "["):
            if len(self.path) >= MAX_DEPTH:
                raise self.stop("json-depth", f"nested more than {MAX_DEPTH} levels deep", "flatten the document")
            return self.object() if head == "{" else self.array()
        if head == '"':
            return self.string()
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return value
        bad = _NOT_NUMBERS.match(self.text, self.at)
        if bad is not None:
            self.note("json-number", f"{bad[0]} is not a JSON number", "use null or leave the member out")
            self.at = bad.end()
            return None
        return self.number()

    def number(self) -> JsonValue:
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise self.unexpected("a value")
        start, self.at = self.at, match.end()
        if match[1] is not None or match[2] is not None:
            number = float(match[0])
            if not -MAX_INTEGER <= number <= MAX_INTEGER:
                self.note("json-number", "the number is out of range", _RANGE_HINT, at=start)
                return None
            return number
        if len(match[0]) > MAX_INTEGER_DIGITS + 1 or not -MAX_INTEGER <= int(match[0]) <= MAX_INTEGER:
            self.note("json-number", "the number is out of range", _RANGE_HINT, at=start)
            return None
        return int(match[0])

    def array(self) -> JsonValue:
        self.at += 1
        items: list[JsonValue] = []
        self.space()
        if self.take("]"):
            return items
        while True:
            self.path.append(len(items))
            items.append(self.value())
            self.path.pop()
            self.space()
            if self.take("]"):
                return items
            if not self.take(","):
                raise self.unexpected("a comma or the array's end")
            self.space()
            if self.text.startswith("]", self.at):
                raise self.unexpected("another item after the comma", "remove the comma before the bracket")

    def object(self) -> JsonValue:
        self.at += 1
        members: dict[str, JsonValue] = {}
        self.space()
        if self.take("}"):
            return members
        while True:
            self.space()
            start = self.at
            if not self.text.startswith('"', self.at):
                raise self.unexpected("a member's name in double quotes")
            key = self.string()
            self.path.append(key)
            self.space()
            if not self.take(":"):
                raise self.unexpected("a colon after the member's name")
            value = self.value()
            if key in members:
                self.note("json-duplicate", f"the member {shown(key)} stands here twice", "keep one of them", at=start)
            else:
                members[key] = value
            self.path.pop()
            self.space()
            if self.take("}"):
                return members
            if not self.take(","):
                raise self.unexpected("a comma or the object's end")

    def string(self) -> str:
        start = self.at
        self.at += 1
        parts: list[str] = []
        lone = False
        while True:
            plain = _PLAIN.match(self.text, self.at)
            if plain is not None:
                parts.append(plain[0])
                self.at = plain.end()
            if self.take('"'):
                break
            if not self.take("\\"):
                raise self.unterminated(start)
            part, is_lone = self.escape()
            parts.append(part)
            lone = lone or is_lone
        if lone:
            hint = "write the character itself, or both halves of the pair"
            self.note("json-surrogate", "an escape is only one half of a surrogate pair", hint, at=start)
        return "".join(parts)

    def escape(self) -> tuple[str, bool]:
        """The character after a backslash, and whether it is half a surrogate pair (then replaced)."""
        mark = self.text[self.at : self.at + 1]
        if mark in _ESCAPES:
            self.at += 1
            return _ESCAPES[mark], False
        if mark != "u":
            raise self.stop("json-syntax", "a backslash before a character that needs none", "remove the backslash")
        unit = self.code_unit()
        if not 0xD800 <= unit <= 0xDFFF:
            return chr(unit), False
        if unit < 0xDC00 and self.text.startswith("\\u", self.at):
            before = self.at
            self.at += 1
            low = self.code_unit()
            if 0xDC00 <= low <= 0xDFFF:
                return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)), False
            self.at = before
        return _REPLACEMENT, True

    def code_unit(self) -> int:
        match = _HEX4.match(self.text, self.at + 1)
        if match is None:
            raise self.stop("json-syntax", "\\u must be followed by four hexadecimal digits", "complete the escape")
        self.at = match.end()
        return int(match[0], 16)

    def take(self, mark: str) -> bool:
        if self.text.startswith(mark, self.at):
            self.at += 1
            return True
        return False

    def unterminated(self, start: int) -> _Stop:
        if self.at < len(self.text):
            message = f"the control character U+{ord(self.text[self.at]):04X} stands in a string"
            return self.stop("json-syntax", message, "write it as an escape")
        self.at = start
        return self.stop("json-syntax", "the string is not closed", "add the closing quote")

    def unexpected(self, wanted: str, hint: str | None = None) -> _Stop:
        if self.at >= len(self.text):
            return self.stop("json-syntax", f"the document ends where {wanted} is expected", hint or "complete it")
        if self.text.startswith(("//", "/*"), self.at):
            hint = "JSON has no comments; `bnw-profile strip` removes comment lines"
        return self.stop("json-syntax", f"{shown(self.text[self.at])} stands where {wanted} is expected", hint)


def shown(text: str, limit: int = 64) -> str:
    """`text` in quotes for a message: escaped, and shortened if it is long."""
    return ascii(text if len(text) <= limit else text[: limit - 3] + "...")
