"""Single faults: the seed's example with exactly one thing wrong, and where that thing stands.

Documents are built from pairs and not from dicts, so that a member can stand twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parent / "samples"
EXAMPLE = (SAMPLES / "capability.json").read_bytes()

PAYLOADS = (("operation", "input"), ("operation", "output"))
OBJECTS = {
    (): ("profile", "name", "description", "operation"),
    ("operation",): ("name", "input", "output"),
    **dict.fromkeys(PAYLOADS, ("media_types", "schema", "max_bytes", "privacy")),
}
MISSPELT = {
    "profile": "profil",
    "name": "nmae",
    "description": "descripton",
    "operation": "Operation",
    "input": "inputs",
    "output": "ouput",
    "media_types": "mediaTypes",
    "schema": "shema",
    "max_bytes": "max-bytes",
    "privacy": "privcy",
}
FORBIDDEN_MEMBERS = ("endpoint", "secret", "price", "load", "available", "$schema")
LEAVES = [*[(name,) for name in ("profile", "name", "description")], ("operation", "name")]
LEAVES += [(*path, member) for path in PAYLOADS for member in ("media_types", "schema", "max_bytes", "privacy")]


@dataclass(frozen=True)
class Fault:
    """One faulty document. `pointer` is the only place that may be named, `code` the only code."""

    name: str
    document: bytes
    pointer: str
    code: str


Pairs = list[tuple[str, Any]]


def pairs(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, pairs(item)) for key, item in value.items()]
    return value


def text(value: Any) -> str:
    """JSON of a value in which an object is a list of pairs (no array in these documents holds a pair)."""
    if isinstance(value, Raw):
        return value.json
    if isinstance(value, list) and (not value or isinstance(value[0], tuple)) and value != []:
        return "{" + ",".join(f"{json.dumps(key)}:{text(item)}" for key, item in value) + "}"
    return json.dumps(value)


@dataclass(frozen=True)
class Raw:
    """JSON text to stand in the place of a value."""

    json: str


def _object(root: Pairs, path: tuple[str, ...]) -> Pairs:
    for name in path:
        root = next(value for key, value in root if key == name)
    return root


def changed(path: tuple[str, ...], value: Any) -> bytes:
    """The example with the member at `path` set to `value`."""
    root = pairs(json.loads(EXAMPLE))
    parent = _object(root, path[:-1])
    index = [key for key, _ in parent].index(path[-1])
    parent[index] = (path[-1], value)
    return text(root).encode()


def _pointer(path: tuple[str, ...]) -> str:
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)


def faults() -> list[Fault]:
    """All single faults; names are unique."""
    return [*_member_faults(), *_type_faults(), *_value_faults(), *_text_faults(), *_json_faults()]


def _member_faults() -> Iterator[Fault]:
    for path, members in OBJECTS.items():
        at = _pointer(path)
        for member in members:
            root = pairs(json.loads(EXAMPLE))
            parent = _object(root, path)
            index = [key for key, _ in parent].index(member)
            value = parent[index][1]
            del parent[index]
            yield Fault(f"missing {at}/{member}", text(root).encode(), f"{at}/{member}", "missing-field")
            parent.insert(index, (MISSPELT[member], value))
            misspelt = MISSPELT[member]
            yield Fault(f"misspelt {at}/{member}", text(root).encode(), f"{at}/{misspelt}", "unknown-field")
            parent[index] = (member.upper(), value)
            yield Fault(f"wrong case {at}/{member}", text(root).encode(), f"{at}/{member.upper()}", "unknown-field")
            parent[index] = (member, value)
            parent.append((member, value))
            yield Fault(f"duplicate {at}/{member}", text(root).encode(), f"{at}/{member}", "json-duplicate")
        for extra in FORBIDDEN_MEMBERS:
            root = pairs(json.loads(EXAMPLE))
            _object(root, path).append((extra, "x"))
            yield Fault(f"extra {at}/{extra}", text(root).encode(), f"{at}/{extra}", "unknown-field")
        root = pairs(json.loads(EXAMPLE))
        _object(root, path).append(("a/b~c", 1))
        yield Fault(f"extra with slash {at}", text(root).encode(), f"{at}/a~1b~0c", "unknown-field")


def _type_faults() -> Iterator[Fault]:
    for path in LEAVES:
        good = {"media_types": ("[",), "schema": ("n", '"'), "max_bytes": ("1",)}.get(path[-1], ('"',))
        for wrong in ("null", "true", "1", '"x"', "[]", "{}", "1.5"):
            if wrong[0] in good or (wrong == '"x"' and path[-1] == "profile"):
                continue
            code = "profile-identifier" if path == ("profile",) else "wrong-type"
            yield Fault(f"{_pointer(path)} is {wrong}", changed(path, Raw(wrong)), _pointer(path), code)
    for path in [("operation",), *PAYLOADS]:
        for wrong in ("null", "[]", '"x"', "7"):
            yield Fault(f"{_pointer(path)} is {wrong}", changed(path, Raw(wrong)), _pointer(path), "wrong-type")
    for wrong in ("[]", "null", '"bnw.capability-profile/1"', "1"):
        yield Fault(f"document is {wrong}", wrong.encode(), "", "wrong-type")


def _value_faults() -> Iterator[Fault]:
    for value in (
        "bnw.capability-profile/2",
        "bnw.capability-profile",
        "BNW.capability-profile/1",
        " bnw.capability-profile/1",
    ):
        yield Fault(f"identifier {value!r}", changed(("profile",), value), "/profile", "profile-identifier")
    names = (
        "",
        "Tools/call",
        "tools//call",
        "/tools",
        "tools/",
        "tools call",
        "-tools",
        "tööls",
        "a" * 65,
        "a\n",
        ".a",
        "a:b",
    )
    for value in names:
        yield Fault(f"operation {value!r}", changed(("operation", "name"), value), "/operation/name", "operation-name")
    for path in PAYLOADS:
        at = _pointer(path)
        for number in ("0", "-1", "1073741825", "9007199254740991"):
            yield Fault(
                f"{at} {number} bytes", changed((*path, "max_bytes"), Raw(number)), f"{at}/max_bytes", "max-bytes"
            )
        for number in ("1.0", "1e3", "1048576.0", '"1048576"'):
            document = changed((*path, "max_bytes"), Raw(number))
            yield Fault(f"{at} {number} bytes", document, f"{at}/max_bytes", "wrong-type")
        for number in ("9007199254740992", "1e400", "-9007199254740992", "9" * 5000, "NaN", "-Infinity"):
            document = changed((*path, "max_bytes"), Raw(number))
            yield Fault(f"{at} {number[:20]} bytes", document, f"{at}/max_bytes", "json-number")
        for value in ("Public", "private", "participant_encrypted", "", "either "):
            yield Fault(f"{at} {value!r}", changed((*path, "privacy"), value), f"{at}/privacy", "privacy")
        for value in ("", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "0x" + "a" * 62, "a" * 63 + "\n"):
            document = changed((*path, "schema"), value)
            yield Fault(f"{at} schema {value[:9]!r}{len(value)}", document, f"{at}/schema", "content-id")
        where = (*path, "media_types")
        yield Fault(f"{at} no media type", changed(where, Raw("[]")), f"{at}/media_types", "media-type-count")
        many = [f"text/x{number}" for number in range(17)]
        yield Fault(f"{at} 17 media types", changed(where, many), f"{at}/media_types", "media-type-count")
        twice = ["text/plain", "text/html", "text/plain"]
        yield Fault(f"{at} media type twice", changed(where, twice), f"{at}/media_types/2", "media-type-duplicate")
        bad = (
            "json",
            "Application/json",
            "application/",
            "a/b/c",
            "text/plain; charset=utf-8",
            "*/*",
            " text/plain",
            "",
        )
        for value in bad:
            document = changed(where, ["text/html", value])
            yield Fault(f"{at} media type {value!r}", document, f"{at}/media_types/1", "media-type")
        document = changed(where, ["text/html", 7])
        yield Fault(f"{at} media type 7", document, f"{at}/media_types/1", "wrong-type")


def _text_faults() -> Iterator[Fault]:
    for name, most in (("name", 128), ("description", 4096)):
        at = f"/{name}"
        yield Fault(f"{name} too long", changed((name,), "a" * (most + 1)), at, "text-length")
        for mark in ("\n", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\u202e", "\u202a", "\u2066"):
            yield Fault(f"{name} with U+{ord(mark):04X}", changed((name,), f"a{mark}b"), at, "text-control")
        yield Fault(f"{name} not NFC", changed((name,), "e\u0301"), at, "text-not-nfc")
        yield Fault(f"{name} half a pair", changed((name,), Raw('"a\\ud800b"')), at, "json-surrogate")
        yield Fault(f"{name} other half", changed((name,), Raw('"\\udc00"')), at, "json-surrogate")
    yield Fault("name empty", changed(("name",), ""), "/name", "text-length")
    for blank in (" ", "   ", "\u00a0", "\u200b", "\u3164", "\u2800", "\ufeff", "\u00ad\u034f"):
        yield Fault(f"name invisible {blank!r}", changed(("name",), blank), "/name", "text-invisible")


def _json_faults() -> Iterator[Fault]:
    plain = EXAMPLE.decode().strip()
    yield Fault("byte order mark", b"\xef\xbb\xbf" + EXAMPLE, "", "json-encoding")
    yield Fault("UTF-16", plain.encode("utf-16"), "", "json-encoding")
    yield Fault("UTF-16 without mark", plain.encode("utf-16-le"), "", "json-encoding")
    yield Fault("UTF-32", plain.encode("utf-32"), "", "json-encoding")
    yield Fault("Latin-1", plain.replace("public", "publïc").encode("latin-1"), "", "json-encoding")
    yield Fault("surrogate in UTF-8", EXAMPLE.replace(b"Looks", b"\xed\xa0\x80"), "", "json-encoding")
    yield Fault("overlong UTF-8", EXAMPLE.replace(b"Looks", b"\xc0\xaf"), "", "json-encoding")
    yield Fault("empty", b"", "", "json-syntax")
    yield Fault("blank", b" \n", "", "json-syntax")
    yield Fault("trailing value", EXAMPLE + b"{}", "", "json-trailing")
    yield Fault("trailing zero byte", EXAMPLE + b"\x00", "", "json-trailing")
    yield Fault("cut off", plain[:-1].encode(), "", "json-syntax")
    yield Fault("single quotes", plain.replace('"', "'").encode(), "", "json-syntax")
    yield Fault("comment", b"// a comment\n" + EXAMPLE, "", "json-syntax")
    yield Fault(
        "leading plus",
        changed(("operation", "input", "max_bytes"), Raw("+1")),
        "/operation/input/max_bytes",
        "json-syntax",
    )
    yield Fault(
        "leading zero", changed(("operation", "input", "max_bytes"), Raw("01")), "/operation/input", "json-syntax"
    )
    yield Fault(
        "True", changed(("operation", "input", "schema"), Raw("None")), "/operation/input/schema", "json-syntax"
    )
    yield Fault("bad escape", changed(("name",), Raw('"\\x41"')), "/name", "json-syntax")
    yield Fault("raw tab", changed(("name",), Raw('"a\tb"')), "/name", "json-syntax")
    yield Fault(
        "trailing comma",
        changed(("operation", "input", "media_types"), Raw('["text/html",]')),
        "/operation/input/media_types",
        "json-syntax",
    )
    deep = changed(("name",), Raw("[" * 64 + "]" * 64))
    yield Fault("too deep", deep, "/name" + "/0" * 63, "json-depth")
    yield Fault("too large", EXAMPLE + b" " * 1024 * 1024, "", "json-size")
