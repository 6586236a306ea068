"""Texts that match a regular expression of ECMA 262, from the plainest on.

Reads the common subset (alternatives, groups, classes, escapes, counted repeats, back-references) and proposes texts;
look-around and boundaries are passed over. A proposal may be wrong; whoever asks checks it with a real matcher.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

MAX_SAMPLE: Final = 4096
"""Characters of one sample."""
_MAX_PATTERN: Final = 4096
_MAX_NESTING: Final = 40
_COUNTS = re.compile(r"\{(\d{1,5})(?:(,)(\d{1,5})?)?\}")
_GROUP = re.compile(r"\(\?(?::|<([A-Za-z_$][\w$]*)>)")
_LOOK = re.compile(r"\(\?(?:[=!]|<[=!])")
_ESCAPED: Final = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "0": "\0"}
_CLASSES: Final = {"d": "0123456789", "w": "aA0_", "s": " ", "D": "a-", "W": "- ", "S": "a0"}
_PROPERTIES: Final = {"Lu": "A", "Uppercase_Letter": "A", "N": "0", "Nd": "0", "P": ".", "S": "+", "Z": " "}
_ANY: Final = "a0 -"
_PLAIN: Final = "a0A_- .~/"


class _Unreadable(Exception):
    """Outside the subset, or not a regular expression."""


class _Node(ABC):
    """A piece of the pattern. `sample` spends `more` on longer repeats and picks alternatives by `turn`."""

    @abstractmethod
    def sample(self, turn: int, more: int, groups: dict[str, str]) -> str: ...


class _Choice(_Node):
    """One of several characters, or one of several branches."""

    def __init__(self, options: list[str] | list[_Node]) -> None:
        self.options = options

    def sample(self, turn: int, more: int, groups: dict[str, str]) -> str:
        option = self.options[turn % len(self.options)]
        return option if isinstance(option, str) else option.sample(turn // len(self.options), more, groups)


class _Sequence(_Node):
    def __init__(self, items: list[_Node]) -> None:
        self.items = items

    def sample(self, turn: int, more: int, groups: dict[str, str]) -> str:
        return "".join(item.sample(turn, more, groups) for item in self.items)[: MAX_SAMPLE + 1]


class _Repeat(_Node):
    def __init__(self, item: _Node, least: int, most: int) -> None:
        self.item, self.least, self.most = item, least, most

    def sample(self, turn: int, more: int, groups: dict[str, str]) -> str:
        text = ""
        for _ in range(min(self.least + more, self.most)):
            text += self.item.sample(turn, more if self.least == self.most else 0, groups)
            if len(text) > MAX_SAMPLE:
                break
        return text


class _Group(_Node):
    def __init__(self, names: list[str], item: _Node) -> None:
        self.names, self.item = names, item

    def sample(self, turn: int, more: int, groups: dict[str, str]) -> str:
        text = self.item.sample(turn, more, groups)
        groups.update(dict.fromkeys(self.names, text))
        return text


class _Back(_Node):
    def __init__(self, name: str) -> None:
        self.name = name

    def sample(self, turn: int, more: int, groups: dict[str, str]) -> str:
        return groups.get(self.name, "")


def samples(pattern: str, length: int = 0) -> Iterator[str]:
    """Proposals for a text that matches `pattern` and has at least `length` characters; endless unless unreadable."""
    if len(pattern) > _MAX_PATTERN:
        return
    try:
        node = _Parser(pattern).parse()
    except (_Unreadable, IndexError, ValueError):
        return
    first = 0
    while first < length and len(node.sample(0, first, {})) < length:
        first = first + 1 if first < 64 else first * 2
    turn = 0
    while True:
        for more in (first, first + 1):
            text = node.sample(turn, more, {})
            if len(text) <= MAX_SAMPLE:
                yield text
        turn += 1
        first += turn % 8 == 0


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.depth = 0
        self.group_count = 0

    def parse(self) -> _Node:
        node = self.alternatives()
        if self.at < len(self.text):
            raise _Unreadable
        return node

    def alternatives(self) -> _Node:
        self.depth += 1
        if self.depth > _MAX_NESTING:
            raise _Unreadable
        branches: list[_Node] = [self.sequence()]
        while self.take("|"):
            branches.append(self.sequence())
        self.depth -= 1
        return branches[0] if len(branches) == 1 else _Choice(branches)

    def sequence(self) -> _Node:
        items: list[_Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            item = self.item()
            if item is not None:
                items.append(self.repeated(item))
        return _Sequence(items)

    def item(self) -> _Node | None:
        if self.take("^") or self.take("$") or self.take("\\b") or self.take("\\B"):
            return None
        if _LOOK.match(self.text, self.at):
            self.at = self.text.index("=", self.at) + 1 if "=" in self.text[self.at : self.at + 4] else self.at + 3
            self.alternatives()
            self.need(")")
            return None
        if self.text[self.at] == "(":
            return self.group()
        if self.take("["):
            return self.character_class()
        if self.take("."):
            return _Choice(list(_ANY))
        if self.take("\\"):
            return self.escape()
        self.at += 1
        return _Choice([self.text[self.at - 1]])

    def group(self) -> _Node:
        special = _GROUP.match(self.text, self.at)
        names: list[str] = []
        if special is None:
            self.at += 1
            if self.text.startswith("?", self.at):
                raise _Unreadable
        else:
            self.at = special.end()
        if special is None or special[1]:
            self.group_count += 1
            names = [str(self.group_count)] + ([special[1]] if special is not None else [])
        node = self.alternatives()
        self.need(")")
        return _Group(names, node)

    def repeated(self, item: _Node) -> _Node:
        unbounded = MAX_SAMPLE
        if self.take("*"):
            item = _Repeat(item, 0, unbounded)
        elif self.take("+"):
            item = _Repeat(item, 1, unbounded)
        elif self.take("?"):
            item = _Repeat(item, 0, 1)
        else:
            counts = _COUNTS.match(self.text, self.at)
            if counts is None:
                return item
            self.at = counts.end()
            least = int(counts[1])
            most = least if counts[2] is None else int(counts[3]) if counts[3] else unbounded
            item = _Repeat(item, least, most)
        self.take("?")
        return item

    def escape(self) -> _Node:
        mark = self.text[self.at]
        if mark in "123456789":
            digits = re.compile(r"\d+").match(self.text, self.at)
            name = digits[0] if digits else mark
            self.at += len(name)
            return _Back(name)
        if mark == "k":
            end = self.text.index(">", self.at)
            name = self.text[self.at + 2 : end]
            self.at = end + 1
            return _Back(name)
        return _Choice(self.escaped())

    def escaped(self) -> list[str]:
        """The characters that the escape after a backslash may stand for."""
        mark = self.text[self.at]
        self.at += 1
        if mark in _CLASSES:
            return list(_CLASSES[mark])
        if mark in "pP":
            end = self.text.index("}", self.at)
            name = self.text[self.at + 1 : end].rpartition("=")[2]
            self.at = end + 1
            options = _PROPERTIES.get(name, "a")
            return list(options if mark == "p" else _PLAIN.replace(options, ""))
        if mark == "c":
            self.at += 1
            return [chr(ord(self.text[self.at - 1]) % 32)]
        if mark in "ux":
            return [self.code_point(mark)]
        return [_ESCAPED.get(mark, mark)]

    def code_point(self, mark: str) -> str:
        if self.take("{"):
            end = self.text.index("}", self.at)
            digits, after = self.text[self.at : end], end + 1
        else:
            after = self.at + (4 if mark == "u" else 2)
            digits = self.text[self.at : after]
        self.at = after
        value = int(digits, 16)
        if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            raise _Unreadable
        return chr(value)

    def character_class(self) -> _Node:
        negated = self.take("^")
        options: list[str] = []
        ranges: list[tuple[str, str]] = []
        while not self.take("]"):
            low = self.class_atom()
            if len(low) == 1 and self.text.startswith("-", self.at) and self.text[self.at + 1] != "]":
                self.at += 1
                high = self.class_atom()
                if len(high) != 1 or high < low:
                    raise _Unreadable
                ranges.append((low[0], high[0]))
                options.append(low[0])
            else:
                options.extend(low)
        if negated:
            options = [
                mark for mark in _PLAIN if mark not in options and not any(low <= mark <= high for low, high in ranges)
            ]
        for low_mark, high_mark in [] if negated else ranges:
            options.extend(chr(code) for code in range(ord(low_mark) + 1, min(ord(high_mark), ord(low_mark) + 40) + 1))
        options = [mark for mark in options if not "\ud800" <= mark <= "\udfff"]
        if not options:
            raise _Unreadable
        return _Choice(options)

    def class_atom(self) -> list[str]:
        if self.take("\\"):
            if self.take("b"):
                return ["\b"]
            return self.escaped()
        self.at += 1
        return [self.text[self.at - 1]]

    def take(self, mark: str) -> bool:
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def need(self, mark: str) -> None:
        if not self.take(mark):
            raise _Unreadable
