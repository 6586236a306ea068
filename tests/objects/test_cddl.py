"""The CDDL of `proto/` says what the code does, as far as CDDL has words for it."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import cbor2
import cddl
import pycddl
import pytest
from bodies import bodies
from golden_vectors import from_json, vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bodies import EXAMPLES, WRONG, places, with_value

from bnw.inbox.access import AccessRecord
from bnw.objects.authority import Caveats
from bnw.objects.calls import Fault
from bnw.objects.catalog import ENDPOINT, Mailbox, PublicInboxKey
from bnw.objects.fields import MEDIA_TYPE, NAME, Codec, codecs_of, text
from bnw.objects.mail import SealedAccess
from bnw.objects.signed import KINDS
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_NOTE_LENGTH


def test_the_kinds_are_those_of_the_code_with_their_content_types() -> None:
    expected = {kind: (f"application/bnw.{kind}+cbor", f"{kind}-body") for kind in KINDS}
    assert cddl.kinds() == expected


def test_object_is_any_of_the_kinds() -> None:
    found = re.search(r"^object = (.*?)\n\n", cddl.source(), re.MULTILINE | re.DOTALL)
    assert found is not None
    assert re.split(r"\s*/\s*", found[1]) == list(KINDS)


def test_every_rule_that_is_named_is_defined_and_every_other_is_a_way_in() -> None:
    text_alone = re.sub(r'"[^"]*"|;.*|\'[^\']*\'', "", cddl.source())
    used = set(re.findall(r"(?<![\w.-])[a-z][a-z-]+(?![\w-]*\s*(?::|=>|=|<[a-z, -]+> =))", text_alone))
    prelude = {"bstr", "tstr", "bool", "null"}
    generic = {"content-type", "body"}
    assert used - prelude - generic <= cddl.rules()
    ways_in = {"object", "signed-bytes", "blob-request", "blob-answer", "delivery-request", "delivery-answer"}
    assert cddl.rules() - used == ways_in | {"access-record", "payload-binding", "encoded-object"} - used


@pytest.mark.parametrize(
    ("rule", "cls"),
    [
        *((f"{kind}-body", cls) for kind, cls in KINDS.items()),
        ("inbox-key", PublicInboxKey),
        ("mailbox", Mailbox),
        ("caveats", Caveats),
        ("sealed-access", SealedAccess),
        ("fault", Fault),
        ("access-record", AccessRecord),
    ],
)
def test_a_map_has_the_fields_of_its_class(rule: str, cls: type[Any]) -> None:
    source = re.sub(r";.*", "", cddl.source())
    common = {"version", "created", "expires"} if rule.endswith("-body") else set()

    def fields(name: str) -> list[set[str]]:
        found = re.search(rf"^{name} = (.*?)\n\n", source + "\n\n", re.MULTILINE | re.DOTALL)
        assert found is not None, name
        if not found[1].startswith("{"):
            return [each for other in found[1].split("/") for each in fields(other.strip())]
        return [set(re.findall(r"([a-z_]+): ", found[1])) | (common if "common," in found[1] else set())]

    expected = {*codecs_of(cls), *common}
    assert fields(rule)
    assert all(found == expected for found in fields(rule))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_whatever_the_code_builds_the_cddl_accepts(kind: str, data: st.DataObject) -> None:
    payload = data.draw(bodies(kind)).encode()
    assert cddl.accepts_body(f"{kind}-body", payload)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_cddl_refuses_the_code_refuses_and_types_are_refused_by_both(kind: str) -> None:
    seen = set()
    for example in EXAMPLES[kind]:
        for path in places(example):
            for wrong in WRONG:
                payload = cbor2.dumps(with_value(example, path, wrong), canonical=True)
                by_cddl = bool(path) and cddl.accepts_body(f"{kind}-body", payload)
                by_code = accepts(kind, payload)
                assert by_cddl or not by_code, (path, wrong)
                seen.add((by_cddl, by_code))
    assert (False, False) in seen


def accepts(kind: str, payload: bytes) -> bool:
    try:
        KINDS[kind].decode(payload)
    except InvalidError:
        return False
    return True


def reads(codec: Codec[Any], value: Any) -> bool:
    try:
        codec.read(value, "here")
    except InvalidError:
        return False
    return True


TEXTS = [
    ("name", NAME, "names"),
    ("media-type", MEDIA_TYPE, "media_types"),
    ("note", text(1, MAX_NOTE_LENGTH), "texts"),
]


@pytest.mark.parametrize(("rule", "codec", "section"), TEXTS, ids=[rule for rule, _, _ in TEXTS])
def test_golden_texts_are_judged_alike(rule: str, codec: Codec[Any], section: str) -> None:
    for accepted, given_section in ((True, section), (False, f"refused_{section}")):
        for vector in vectors("names.json", given_section):
            value = from_json(vector["text"])
            assert reads(codec, value) == accepted, value
            assert cddl.accepts(rule, cbor2.dumps(value)) == accepted, value


letters = st.sampled_from("ab0/._-+!A \n\x00\x7f\x85\u2028\u202e\u061c\u200eé世🙂")


@pytest.mark.parametrize(
    ("rule", "codec"),
    [*((rule, codec) for rule, codec, _ in TEXTS), ("endpoint", ENDPOINT)],
    ids=["name", "media-type", "note", "endpoint"],
)
@given(value=st.text(letters, max_size=12) | st.text(max_size=5))
def test_any_text_is_judged_alike(rule: str, codec: Codec[Any], value: str) -> None:
    assert cddl.accepts(rule, cbor2.dumps(value)) == reads(codec, value)


def test_what_is_signed_has_the_form_of_the_cddl() -> None:
    vector = vectors("objects-catalog.json", "accepted")[0]
    parts = [vector.bytes_of("protected"), b"bnw/1", vector.bytes_of("payload")]
    assert cddl.accepts("signed-bytes", cbor2.dumps(["Signature1", *parts]))
    assert not cddl.accepts("signed-bytes", cbor2.dumps(["Signature", *parts]))
    assert not cddl.accepts("signed-bytes", cbor2.dumps(["Signature1", *parts, b""]))
    assert "external-aad: 'bnw/1'" in cddl.source()


# What pycddl gets wrong. Each of these fails as soon as it no longer does, and then its adaptation in cddl.py can go


@dataclasses.dataclass(frozen=True)
class LibraryFault:
    schema: str
    value: Any
    wrongly: str


FAULTS = {
    "a pattern is looked for anywhere": LibraryFault('a = tstr .regexp "[a-z]"', "A1b", "accepted"),
    "any map passes for the empty one": LibraryFault("a = {}", {"x": 1}, "accepted"),
    "unknown fields pass in arrays": LibraryFault("a = [1*2 b]\nb = { x: int }", [{"x": 1, "y": 2}], "accepted"),
    "text passes for bytes": LibraryFault("a = bstr .size 3", "abc", "accepted"),
    "cbor in an array is asked of all items": LibraryFault("a = [bstr .cbor b, int]\nb = int", [b"\x01", 1], "refused"),
    "literal bytes": LibraryFault("a = 'bnw/1'", b"bnw/1", "panics"),
    "bytes for a literal text": LibraryFault('a = "x" / "y"', b"x", "panics"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_pycddl_still_has_this_fault(fault: LibraryFault) -> None:
    assert judged(fault.schema, cbor2.dumps(fault.value)) == fault.wrongly


def test_pycddl_still_passes_over_bytes_behind_an_item() -> None:
    assert judged("a = int", b"\x00\x00") == "accepted"


def judged(schema: str, data: bytes) -> str:
    try:
        pycddl.Schema(schema).validate_cbor(data)
    except pycddl.ValidationError:
        return "refused"
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            return "panics"
        raise
    return "accepted"
