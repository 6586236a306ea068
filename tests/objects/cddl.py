"""The CDDL of `proto/`, put to pycddl: does a rule accept some bytes?

pycddl 0.6 reads the files as they are but gets some of what they say wrong, so they are adapted first. Each adaptation
gives up as little as it can, and `test_cddl.py` shows each fault, so that an adaptation goes when its fault does:

- it looks for a pattern anywhere in a text, where RFC 8610 section 3.8.3 means all of it: anchors are added;
- it takes any map for the empty one: that is written as one of no entries of the two kinds of key in use;
- it passes over bytes behind an item: that none are there is seen to here;
- it passes over unknown fields of maps in arrays: such items are put to their own rule as well;
- it takes text of the right size for bytes of that size: that they are bytes is asked once more, save in the
  four rules in which it then refuses everything;
- it panics on literal bytes: their size stands for them;
- it panics where bytes stand in the place of a literal text: that is a refusal;
- it applies `.cbor` in an array to the other items too: it is left out, and what the bytes hold is put to its own rule.
"""

from __future__ import annotations

import functools
import io
import re
from pathlib import Path
from typing import Any

import cbor2
import pycddl

PROTO = Path(__file__).parents[2] / "proto"
FILES = ("objects.cddl", "protocols.cddl", "values.cddl")

_KIND = re.compile(r'^([a-z-]+) = signed<"([^"]+)", ([a-z-]+)>$', re.MULTILINE)
_ASKED_ONCE = {"envelope", "signed-bytes", "payload-binding", "sealed-access-record"}
_BYTE_LITERAL = re.compile(r"(?<=: )'([^']*)'")


@functools.cache
def source() -> str:
    """The files as they are."""
    return "\n".join((PROTO / name).read_text() for name in FILES)


@functools.cache
def kinds() -> dict[str, tuple[str, str]]:
    """For each kind of object, its content type and the rule of its body, as the CDDL pairs them."""
    return {kind: (content_type, body) for kind, content_type, body in _KIND.findall(source())}


@functools.cache
def rules() -> frozenset[str]:
    return frozenset(re.findall(r"^([a-z-]+)(?:<[^>]*>)? = ", source(), re.MULTILINE))


def accepts(rule: str, data: bytes) -> bool:
    """Whether `data` is an instance of `rule`."""
    try:
        _schema(rule).validate_cbor(data)
    except pycddl.ValidationError:
        return False
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # of Rust; Python has no name for it to import
            return False
        raise
    stream = io.BytesIO(data)
    cbor2.load(stream)
    return stream.tell() == len(data)


def accepts_object(data: bytes) -> bool:
    """Whether `data` is an instance of `object`: an envelope whose header and body belong to the same kind."""
    if not accepts("envelope", data):
        return False
    tag: Any = cbor2.loads(data)
    protected, _, payload, _ = tag.value
    return any(
        accepts(f'protected-header<"{content_type}">', protected) and accepts_body(body, payload)
        for content_type, body in kinds().values()
    )


def accepts_body(rule: str, data: bytes) -> bool:
    """Whether `data` is an instance of the rule of a body."""
    if not accepts(rule, data):
        return False
    body: Any = cbor2.loads(data)
    return all(
        accepts(item_rule, cbor2.dumps(item))
        for field, item_rule in _maps_in_arrays().items()
        for item in body.get(field, [])
    )


@functools.cache
def _maps_in_arrays() -> dict[str, str]:
    """Fields that hold an array of maps, with the rule of the items."""
    found = re.findall(r"^  ([a-z_]+): \[\d+\*\d+ ([a-z-]+)\]", source(), re.MULTILINE)
    return {field: rule for field, rule in found if f"\n{rule} = {{\n" in source()}


@functools.cache
def _schema(rule: str) -> pycddl.Schema:
    text = _adapted()
    if rule not in _ASKED_ONCE:
        text = re.sub(r"bstr \.size (\d+|\(\d+\.\.\d+\))", r"((bstr .size \1) .and bstr)", text)
    return pycddl.Schema(f"root = {rule}\n{text}")


@functools.cache
def _adapted() -> str:
    text = re.sub(r";.*", "", source())
    text = _KIND.sub("", text)
    text = re.sub(r"^object = [^=]*?(?=^\S+ = |^signed)", "", text, flags=re.MULTILINE | re.DOTALL)
    text = text.replace("signed<content-type, body> =", "envelope =")
    text = re.sub(r'\.regexp "(.*)"', r'.regexp "^(\1)$"', text)
    text = text.replace("{}", "{ 0*0 int => any, 0*0 tstr => any }")
    text = _BYTE_LITERAL.sub(lambda found: f"bstr .size {len(found[1])}", text)
    return re.sub(r"bstr \.cbor [a-z-]+(<[^>]*>)?", "bstr", text)
