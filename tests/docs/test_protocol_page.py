"""docs/protocol.md is true: its limits, kinds, fields, messages, codes and worked examples are those of the code."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path
from typing import Any

import base58
import cbor2
import pytest
from blake3 import blake3
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt, crypto_scalarmult, crypto_scalarmult_base
from nacl.signing import SigningKey as NaclSigningKey

from bnw.identity.inbox_keys import InboxKey
from bnw.identity.keys import IdentityId
from bnw.inbox.access import AccessRecord, open_access_record
from bnw.inbox.payload import open_payload, read_access
from bnw.objects.authority import Caveats
from bnw.objects.body import Body
from bnw.objects.calls import STATUSES, Fault
from bnw.objects.catalog import Mailbox, PublicInboxKey
from bnw.objects.fields import codecs_of
from bnw.objects.mail import SEALED_ACCESS_RECORD_SIZE, PayloadManifest, SealedAccess
from bnw.objects.message import Message
from bnw.objects.rules import is_catalog_object
from bnw.objects.signed import KINDS, SignedObject, verify_object
from bnw.wire import limits
from bnw.wire.content_id import ContentId, content_id

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/protocol.md").read_text()
SOURCE = "".join(path.read_text() for path in sorted((ROOT / "bnw").rglob("*.py")))
NESTED = {
    ("identity-record", "inbox_keys[]"): PublicInboxKey,
    ("identity-record", "mailboxes[]"): Mailbox,
    ("delegation", "caveats"): Caveats,
    ("payload-manifest", "access[]"): SealedAccess,
    ("receipt", "fault"): Fault,
}
PROTOCOLS = {
    "/bnw/blob/1": "bnw.blobs.protocol",
    "/bnw/deliver/1": "bnw.inbox.delivery",
    "/bnw/mailbox/1": "bnw.inbox.mailbox_protocol",
    "/bnw/sync/1": "bnw.sync.protocol",
}


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of the page and the heading that it stands under."""

    heading: str
    columns: list[str]
    rows: list[list[str]]


def _tables(page: str) -> list[Table]:
    tables: list[Table] = []
    heading, lines = "", page.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|---"):
            rows = []
            for row in lines[number + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(_cells(row))
            tables.append(Table(heading, _cells(lines[number - 1]), rows))
    return tables


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


def _quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


TABLES = _tables(PAGE)


def _table(heading: str, first_column: str) -> Table:
    (found,) = [t for t in TABLES if t.heading == heading and t.columns[0] == first_column]
    return found


# Limits


def test_every_limit_in_the_table_has_the_value_of_the_code() -> None:
    rows = _table("2. Limits", "name").rows
    assert len(rows) > 25
    for name, value, _ in rows:
        assert int(value.replace(",", "")) == getattr(limits, _quoted(name)[0]), name


def test_no_limit_of_the_code_is_left_out() -> None:
    units = {"KIB", "MIB", "GIB", "SECOND", "MINUTE", "HOUR", "DAY"}
    named = {name for name in vars(limits) if name.isupper()} - units
    assert {_quoted(row[0])[0] for row in _table("2. Limits", "name").rows} == named


def test_every_constant_that_the_page_names_exists() -> None:
    for name in set(re.findall(r"`(?:(bnw[\w.]+)\.)?([A-Z][A-Z_]+[A-Z])`", PAGE)):
        module = importlib.import_module(name[0] or "bnw.wire.limits")
        assert hasattr(module, name[1]), name


# Kinds


def test_the_table_of_kinds_has_every_kind_with_its_lifetimes_and_scope() -> None:
    rows = _table("6. The twelve kinds", "kind").rows
    assert {_quoted(row[0])[0] for row in rows} == set(KINDS)
    for kind, _, scope, slot, longest, shortest in rows:
        cls = KINDS[_quoted(kind)[0]]
        assert getattr(limits, _quoted(longest)[0]) == cls.MAX_LIFETIME, kind
        assert (getattr(limits, _quoted(shortest)[0]) if shortest else 1) == cls.MIN_LIFETIME, kind
        assert (scope == "catalog") == is_catalog_object(object.__new__(cls)), kind
        replaceable = "sequence" in codecs_of(cls) and cls.KIND != "invocation-update"
        assert (slot != "none") == replaceable, kind


def test_the_common_fields_are_those_of_every_body() -> None:
    rows = next(t for t in TABLES if t.heading == "6. The twelve kinds" and t.columns[0] == "field").rows
    assert [_quoted(row[0])[0] for row in rows] == ["version", *codecs_of(Body)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_exactly_the_fields_of_its_table(kind: str) -> None:
    listed = {_quoted(row[0])[0] for row in _table(f"`{kind}`", "field").rows}
    expected = set(codecs_of(KINDS[kind])) - {"created", "expires"}
    for (owner, name), cls in NESTED.items():
        if owner == kind:
            expected |= {f"{name}.{field}" for field in codecs_of(cls)}
    assert listed == expected


def test_the_access_record_has_exactly_the_fields_of_its_table() -> None:
    listed = {_quoted(row[0])[0] for row in _table("12. Payloads", "field").rows}
    assert listed == set(codecs_of(AccessRecord))
    assert f"`access[].sealed` | bytes | {SEALED_ACCESS_RECORD_SIZE} " in PAGE


# Messages


@pytest.mark.parametrize(("protocol", "module"), PROTOCOLS.items())
def test_a_protocol_has_exactly_the_messages_of_its_table(protocol: str, module: str) -> None:
    classes = {
        value.TYPE: set(codecs_of(value))
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, type) and issubclass(value, Message) and value is not Message
    }
    listed = {
        _quoted(message)[0]: set(re.findall(r"`(\w+)`:", fields))
        for message, _, fields in _table(f"`{protocol}`", "message").rows
    }
    assert listed == classes
    assert f'"{protocol}"' in SOURCE


# Codes


def test_every_code_that_a_table_names_is_one_of_the_code() -> None:
    codes = set()
    for table in TABLES:
        for number, column in enumerate(table.columns):
            if column.startswith("code"):
                codes |= {code for row in table.rows for code in _quoted(row[number])}
    assert len(codes) > 40
    missing = {code for code in codes if f'"{code}"' not in SOURCE}
    # Made of `output-` and the code of a failed check.
    composed = {code for code in missing if f'"{code.removeprefix("output-")}"' in SOURCE and 'f"output-{' in SOURCE}
    assert missing - composed == set()


def test_every_code_of_a_call_is_on_the_page() -> None:
    raised = re.compile(r'(?:InvalidError|HandlerFailure|not_completed)\(\s*(?:STATUS_\w+,\s*)?"([a-z-]+)"')
    modules = sorted((ROOT / "bnw/invoke").glob("*.py")) + sorted((ROOT / "bnw/inbox").glob("*.py"))
    codes = {code for path in modules for code in raised.findall(path.read_text())}
    assert len(codes) > 25
    assert sorted(code for code in codes if f"`{code}`" not in PAGE) == []


def test_every_refusal_of_a_delivery_is_in_its_table() -> None:
    delivery = importlib.import_module("bnw.inbox.delivery")
    codes = {value for name, value in vars(delivery).items() if name.startswith("REFUSED_")}
    assert {_quoted(row[0])[0] for row in _table("`/bnw/deliver/1`", "code").rows} == codes


def test_every_status_is_named_with_the_receipt() -> None:
    (row,) = [row for row in _table("`receipt`", "field").rows if row[0] == "`status`"]
    assert _quoted(row[2]) == list(STATUSES)


# Worked examples, computed here with other libraries than the code uses, or with its pieces put together anew


def _example(first_label: str) -> dict[str, str]:
    """The values of the fenced block that begins with `first_label`, by label; a value may go over several lines."""
    (block,) = [b for b in re.findall(r"```\n(.*?)```", PAGE, re.DOTALL) if b.startswith(f"{first_label} ")]
    values: dict[str, str] = {}
    label = ""
    for line in block.splitlines():
        if not line.startswith(" "):
            label = line.split()[0]
            values[label] = ""
        values[label] += line.split()[-1]
    return values


OBJECT = _example("seed")
PAYLOAD = _example("recipient")
KEY = NaclSigningKey(bytes.fromhex(OBJECT["seed"]))


def test_the_example_object_follows_from_the_page_alone() -> None:
    identity = bytes(KEY.verify_key)
    protected = cbor2.dumps({1: -8, 3: "application/bnw.withdrawal+cbor", 4: identity}, canonical=True)
    created = 1_800_000_000_000
    fields = {
        "version": 1,
        "created": created,
        "expires": created + limits.CANCELLING_LIFETIME_MIN,
        "name": "finance/lookup",
        "sequence": created,
    }
    payload = cbor2.dumps(fields, canonical=True)
    signed = cbor2.dumps(["Signature1", protected, b"bnw/1", payload])
    envelope = b"\xd2" + cbor2.dumps([protected, {}, payload, KEY.sign(signed).signature])
    assert {
        "seed": OBJECT["seed"],
        "identity": identity.hex(),
        "did": "did:key:z" + base58.b58encode(b"\xed\x01" + identity).decode(),
        "protected": protected.hex(),
        "payload": payload.hex(),
        "signed": signed.hex(),
        "object": envelope.hex(),
        "id": blake3(envelope).hexdigest(),
    } == OBJECT


def test_the_code_accepts_the_example_object() -> None:
    obj = verify_object(bytes.fromhex(OBJECT["object"]))
    assert (obj.kind, obj.id.hex(), obj.signer.hex()) == ("withdrawal", OBJECT["id"], OBJECT["identity"])


QUESTION = b'{"symbol":"MSFT","month":"2005-03"}'


def _given(label: str) -> bytes:
    return bytes.fromhex(PAYLOAD[label])


def _computed_payload() -> tuple[bytes, bytes]:
    """The chunk and the sealed record of the example, following section 12."""
    sender = bytes(KEY.verify_key)
    padded = QUESTION.ljust(4096, b"\0")
    nonce = (0).to_bytes(8) + b"\x01" + bytes(15)
    aead: Any = crypto_aead_xchacha20poly1305_ietf_encrypt
    chunk: bytes = aead(padded, b"bnw/1 payload chunk", nonce, _given("payload"))
    recipients = sorted([sender, _given("recipient")])
    binding = blake3(cbor2.dumps(["bnw/1 payload", sender, recipients, [blake3(chunk).digest()]])).digest()
    record = {
        "binding": binding,
        "hash": blake3(QUESTION).digest(),
        "key": _given("payload"),
        "media_type": "application/json",
        "name": "question.json",
        "size": len(QUESTION),
    }
    encoded = cbor2.dumps(record, canonical=True)
    ephemeral, public = _given("e"), crypto_scalarmult_base(_given("e"))
    inbox = crypto_scalarmult_base(_given("r"))
    material = public + inbox + crypto_scalarmult(ephemeral, inbox)
    key = blake3(material, derive_key_context="bnw/1 access record sealing key").digest()
    plain = (len(encoded).to_bytes(2) + encoded).ljust(640, b"\0")
    sealed: bytes = public + aead(plain, sender + _given("recipient"), bytes(24), key)
    assert {
        **{label: PAYLOAD[label] for label in ("recipient", "r", "e", "payload")},
        "R": inbox.hex(),
        "E": public.hex(),
        "chunk": blake3(chunk).hexdigest(),
        "binding": binding.hex(),
        "record": encoded.hex(),
        "key": key.hex(),
        "sealed": blake3(sealed).hexdigest(),
    } == PAYLOAD
    return chunk, sealed


def test_the_example_payload_follows_from_the_page_and_the_code_opens_it() -> None:
    chunk, sealed = _computed_payload()
    sender, recipient = IdentityId(bytes(KEY.verify_key)), IdentityId(_given("recipient"))
    access = SealedAccess(_given("R"), sealed)
    unread = SealedAccess(bytes(32), bytes(SEALED_ACCESS_RECORD_SIZE))
    recipients = tuple(sorted((sender, recipient)))
    body = PayloadManifest(
        created=1,
        expires=2,
        access=tuple(access if who == recipient else unread for who in recipients),
        chunks=(content_id(chunk),),
        public=None,
        recipients=recipients,
        size=len(chunk),
    )
    manifest = SignedObject(ContentId(bytes(32)), sender, body, b"")
    record = read_access(manifest, reader=recipient, inbox_keys=[InboxKey(_given("r"), 1, 2)])
    opened = open_payload(manifest, record, [chunk])
    assert (opened.data, opened.media_type, opened.name) == (QUESTION, "application/json", "question.json")
    direct = open_access_record(sealed, private=_given("r"), inbox_key=_given("R"), sender=sender, recipient=recipient)
    assert direct == record


def test_every_refusal_of_a_mailbox_is_in_its_table() -> None:
    refusals = importlib.import_module("bnw.inbox.mailbox_refusals")
    assert {_quoted(row[0])[0] for row in _table("`/bnw/mailbox/1`", "code").rows} == set(refusals.MAILBOX_REFUSALS)
