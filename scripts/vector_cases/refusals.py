"""Objects that must be refused though their signature holds: one rule is broken in each, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from bnw.objects.body import Body
from bnw.wire.cbor import Value, encode
from bnw.wire.limits import DAY, HOUR, MINUTE
from vector_cases.forms import NOW, an_id, value_of
from vector_cases.kinds import Example


@dataclass(frozen=True, slots=True)
class Refusal:
    """A body that is refused. `cddl` says whether the CDDL sees it too; many rules are beyond its words."""

    name: str
    payload: bytes
    code: str
    place: str | None
    reason: str
    cddl: bool = True


def common_refusals(body: Body) -> list[Refusal]:
    """What is refused in every kind, shown on one valid body of it."""
    value, kind = value_of(body), body.KIND
    longest, shortest = type(body).MAX_LIFETIME, type(body).MIN_LIFETIME
    last = sorted(value)[-1]
    backwards = _map_in_order(sorted(value, reverse=True), value)
    return [
        Refusal(
            "a later version", encode({**value, "version": 2}), "unknown-version", f"{kind}.version",
            "version 2 is not known; a field may mean something else in it"),
        Refusal(
            "no version", encode(_without(value, "version")), "unknown-version", f"{kind}.version",
            "it does not say which version it is"),
        Refusal(
            "a version that is true", encode({**value, "version": True}), "unknown-version", f"{kind}.version",
            "true is not the number 1"),
        Refusal(
            "a field more", encode({**value, "priority": 1}), "unknown-field", f"{kind}.priority",
            "a reader that passes over what it does not know may miss what matters"),
        Refusal(
            "a field less", encode(_without(value, "created")), "missing-field", f"{kind}.created",
            "every field is always there; what is absent is null"),
        Refusal(
            "created at no time", encode({**value, "created": 0}), "field", f"{kind}.created", "a time is at least 1"),
        Refusal(
            "a life that is too long", encode({**value, "expires": body.created + longest + 1}), "lifetime",
            f"{kind}.expires", f"objects of this kind live at most {longest} ms", cddl=False),
        Refusal(
            "a life that is too short", encode({**value, "expires": body.created + shortest - 1}), "lifetime",
            f"{kind}.expires", f"objects of this kind live at least {shortest} ms", cddl=False),
        Refusal(
            "fields out of order", backwards, "cbor-not-deterministic", None,
            "the keys of a map are in the order of their encodings", cddl=False),
        Refusal(
            "a byte behind the body", encode(value) + b"\0", "cbor-not-deterministic", None,
            "something follows the body"),
        Refusal(
            "a floating-point number", _with_raw(value, last, b"\xf9\x3c\x00"), "cbor-type", None,
            "floating-point numbers are not allowed in objects"),
    ]  # fmt: skip


def kind_refusals(examples: dict[str, list[Example]]) -> dict[str, list[Refusal]]:
    """What is refused in one kind alone, by kind. `examples` are the valid ones of each."""

    def base(kind: str, number: int = 0) -> dict[str, Value]:
        return value_of(examples[kind][number][1])

    def changed(kind: str, number: int = 0, /, **change: Value) -> bytes:
        return encode({**base(kind, number), **change})

    def nested(kind: str, field: str, number: int = 0, /, **change: Value) -> bytes:
        inner = base(kind, number)[field]
        assert isinstance(inner, dict)
        return encode({**base(kind, number), field: {**inner, **change}})

    def first_item(kind: str, field: str, number: int = 0, /, **change: Value) -> bytes:
        inner = base(kind, number)[field]
        assert isinstance(inner, list) and isinstance(inner[0], dict)
        return encode({**base(kind, number), field: [{**inner[0], **change}, *inner[1:]]})

    record, manifest, offer = "identity-record", "capability-manifest", "provider-offer"
    withdrawal, delegation, revocation = "withdrawal", "delegation", "revocation"
    payload, invocation, update = "payload-manifest", "invocation", "invocation-update"
    cancellation, receipt, acknowledgement = "cancellation", "receipt", "acknowledgement"
    a, b = sorted([an_id("a"), an_id("b")])
    return {
        record: [
            Refusal("no inbox key", changed(record, inbox_keys=[]), "field", f"{record}.inbox_keys",
                    "nobody could write to this identity"),
            Refusal("five inbox keys", changed(record, inbox_keys=[_first(base(record)["inbox_keys"])] * 5), "field",
                    f"{record}.inbox_keys", "there are at most four"),
            Refusal("an inbox key of 31 bytes", first_item(record, "inbox_keys", key=bytes(31)), "field",
                    f"{record}.inbox_keys[0].key", "a key has 32 bytes"),
            Refusal("an inbox key that ends as it begins", first_item(record, "inbox_keys", not_after=5, not_before=5),
                    "field", f"{record}.inbox_keys[0]", "it is valid at no time", cddl=False),
            Refusal("a field more in an inbox key", first_item(record, "inbox_keys", use="sign"), "unknown-field",
                    f"{record}.inbox_keys[0].use", "unknown fields are refused at every depth"),
            Refusal("a mailbox with nine addresses",
                    first_item(record, "mailboxes", 1, endpoints=["/dns/a.example/tcp/1"] * 9), "field",
                    f"{record}.mailboxes[0].endpoints", "there are at most eight"),
            Refusal("a mailbox of nobody", first_item(record, "mailboxes", 1, peer=""), "field",
                    f"{record}.mailboxes[0].peer", "a peer has a name"),
            Refusal("sequence 0", changed(record, sequence=0), "field", f"{record}.sequence", "sequences start at 1"),
        ],
        manifest: [
            Refusal("a name in capital letters", changed(manifest, name="Finance/Lookup"), "name", f"{manifest}.name",
                    "names are lowercase"),
            Refusal("a name with an empty part", changed(manifest, name="finance//lookup"), "name", f"{manifest}.name",
                    "no part between slashes is empty"),
            Refusal("another word for who may provide", changed(manifest, provide="everyone"), "field",
                    f"{manifest}.provide", "the words are publisher, delegated and anyone"),
            Refusal("a descriptor named in text", changed(manifest, descriptor=an_id("descriptor").hex()), "field",
                    f"{manifest}.descriptor", "an id is 32 bytes, not their text form"),
            Refusal("no descriptor", changed(manifest, descriptor=None), "field", f"{manifest}.descriptor",
                    "this field may not be null"),
        ],
        withdrawal: [
            Refusal("a life no longer than that of a manifest",
                    changed(withdrawal, expires=NOW + 366 * DAY), "lifetime", f"{withdrawal}.expires",
                    "the manifest that it cancels could outlive it and come back", cddl=False),
            Refusal("a name of 65 characters", changed(withdrawal, name="n" * 65), "name", f"{withdrawal}.name",
                    "a name has at most 64"),
            Refusal("a negative sequence", changed(withdrawal, sequence=-1), "field", f"{withdrawal}.sequence",
                    "sequences start at 1"),
        ],
        offer: [
            Refusal("nine addresses", changed(offer, endpoints=["/dns/a.example/tcp/1"] * 9), "field",
                    f"{offer}.endpoints", "there are at most eight"),
            Refusal("an address with a line break", changed(offer, endpoints=["/dns/a.example\n/tcp/1"]), "field",
                    f"{offer}.endpoints[0]", "text has no control characters"),
            Refusal("an address of 257 bytes", changed(offer, endpoints=["é" * 128 + "x"]), "field",
                    f"{offer}.endpoints[0]", "at most 256 bytes of UTF-8"),
            Refusal("availability as a number", changed(offer, available=1), "field", f"{offer}.available",
                    "1 is not true"),
        ],
        delegation: [
            Refusal("no rights", changed(delegation, rights=[]), "field", f"{delegation}.rights", "it allows nothing"),
            Refusal("a right that there is not", changed(delegation, rights=["publish"]), "field",
                    f"{delegation}.rights[0]", "the rights are delegate, invoke and provide"),
            Refusal("rights out of order", changed(delegation, rights=["provide", "invoke"]), "field",
                    f"{delegation}.rights", "one set of rights has one encoding", cddl=False),
            Refusal("a right twice", changed(delegation, rights=["invoke", "invoke"]), "field", f"{delegation}.rights",
                    "one set of rights has one encoding", cddl=False),
            Refusal("an end before the beginning", changed(delegation, 1, not_before=NOW + DAY), "field",
                    f"{delegation}.not_before", "it is valid at no time", cddl=False),
            Refusal("a caveat more", nested(delegation, "caveats", max_output_bytes=1), "unknown-field",
                    f"{delegation}.caveats.max_output_bytes",
                    "a reader that passes over a caveat it does not know grants more than was given"),
            Refusal("no calls at all", nested(delegation, "caveats", max_calls=0), "field",
                    f"{delegation}.caveats.max_calls", "a limit on calls is at least 1"),
            Refusal("more input than a payload can have", nested(delegation, "caveats", max_input_bytes=2**30 + 1),
                    "field", f"{delegation}.caveats.max_input_bytes", "a payload has at most 1 GiB"),
            Refusal("an audience of 33 bytes", changed(delegation, audience=bytes(33)), "field",
                    f"{delegation}.audience", "an identity has 32 bytes"),
        ],
        revocation: [
            Refusal("a life no longer than that of a delegation", changed(revocation, expires=NOW + 366 * DAY),
                    "lifetime", f"{revocation}.expires", "the delegation could outlive it and hold again", cddl=False),
            Refusal("nothing revoked", changed(revocation, delegation=None), "field", f"{revocation}.delegation",
                    "this field may not be null"),
        ],
        payload: [
            Refusal("a record too few", changed(payload, access=[_first(base(payload)["access"])]), "access-records",
                    f"{payload}.access", "there is one for each recipient", cddl=False),
            Refusal("neither sealed nor public", changed(payload, 1, public=None), "access-records",
                    f"{payload}.access", "without access records nobody can open it"),
            Refusal("sealed and public at once", changed(payload, 1, access=base(payload)["access"]), "access-records",
                    f"{payload}.access", "a public payload has no sealed records"),
            Refusal("recipients out of order",
                    changed(payload, 1, recipients=_reversed(base(payload, 1)["recipients"])), "field",
                    f"{payload}.recipients", "one set of recipients has one encoding", cddl=False),
            Refusal("a recipient twice",
                    changed(payload, 1, recipients=[_first(base(payload, 1)["recipients"])] * 2), "field",
                    f"{payload}.recipients", "one set of recipients has one encoding", cddl=False),
            Refusal("no recipient", changed(payload, 1, recipients=[]), "field", f"{payload}.recipients",
                    "it would belong in no inbox"),
            Refusal("17 recipients", changed(payload, 1, recipients=[bytes([n]) * 32 for n in range(17)]), "field",
                    f"{payload}.recipients", "there are at most 16"),
            Refusal("no chunks", changed(payload, 1, chunks=[]), "field", f"{payload}.chunks",
                    "even an empty payload has a chunk"),
            Refusal("more bytes than fit its chunks", changed(payload, 1, size=2**20 + 1), "payload-size",
                    f"{payload}.size", "one public chunk has at most 1,048,576 bytes", cddl=False),
            Refusal("too few bytes for its chunks", changed(payload, 1, chunks=[a, b], size=2**20), "payload-size",
                    f"{payload}.size", "these would fit one chunk", cddl=False),
            Refusal("a sealed record of another size", first_item(payload, "access", sealed=bytes(687)), "field",
                    f"{payload}.access[0].sealed", "all records have one size, so that it says nothing"),
            Refusal("the file name in the clear", changed(payload, 1, name="question.json"), "unknown-field",
                    f"{payload}.name", "names stand in access records and nowhere else"),
        ],
        invocation: [
            Refusal("a deadline at creation", changed(invocation, deadline=NOW), "field", f"{invocation}.deadline",
                    "there would be no time to answer", cddl=False),
            Refusal("a deadline after expiry", changed(invocation, deadline=NOW + HOUR + 1), "field",
                    f"{invocation}.deadline", "carriers drop the call while its answer is still wanted", cddl=False),
            Refusal("nine delegations", changed(invocation, delegations=[an_id(str(n)) for n in range(9)]), "field",
                    f"{invocation}.delegations", "a chain has at most eight"),
            Refusal("a delegation twice", changed(invocation, delegations=[a, b, a]), "field",
                    f"{invocation}.delegations", "a chain does not pass through a delegation twice", cddl=False),
            Refusal("inactivity of 0", changed(invocation, inactivity=0), "field", f"{invocation}.inactivity",
                    "it would be over at once; null says that there is no such limit"),
            Refusal("no input", changed(invocation, input=None), "field", f"{invocation}.input",
                    "this field may not be null"),
        ],
        update: [
            Refusal("more than the whole", changed(update, fraction=1001), "field", f"{update}.fraction",
                    "progress is counted in thousandths"),
            Refusal("an empty note", changed(update, note=""), "field", f"{update}.note", "no note is null"),
            Refusal("a note with an escape sequence", changed(update, note="\x1b[2J"), "field", f"{update}.note",
                    "it would command the terminal that shows it"),
            Refusal("a stage with a space", changed(update, stage="almost done"), "name", f"{update}.stage",
                    "stages are names"),
        ],
        cancellation: [
            Refusal("a reason of 513 bytes", changed(cancellation, reason="é" * 256 + "x"), "field",
                    f"{cancellation}.reason", "at most 512 bytes of UTF-8"),
            Refusal("a reason that is not text", changed(cancellation, reason=b"no longer needed"), "field",
                    f"{cancellation}.reason", "bytes are not text"),
            Refusal("to nobody", changed(cancellation, recipient=None), "field", f"{cancellation}.recipient",
                    "this field may not be null"),
        ],
        receipt: [
            Refusal("completed with a fault", changed(receipt, fault={"code": "x", "message": "x"}), "field",
                    f"{receipt}.fault", "what has a fault is not completed"),
            Refusal("completed without output", changed(receipt, output=None), "field", f"{receipt}.output",
                    "a completed call has an answer"),
            Refusal("completed and never started", changed(receipt, started=None), "field", f"{receipt}.output",
                    "a completed call was started"),
            Refusal("failed without a fault", changed(receipt, 1, fault=None), "field", f"{receipt}.fault",
                    "the requester is told why"),
            Refusal("a status that there is not", changed(receipt, 1, status="lost"), "field", f"{receipt}.status",
                    "there are six"),
            Refusal("started before it was received", changed(receipt, started=NOW - 1), "field",
                    f"{receipt}.finished", "received, started and finished are in this order", cddl=False),
            Refusal("finished before it was started", changed(receipt, finished=NOW - 1), "field",
                    f"{receipt}.finished", "received, started and finished are in this order", cddl=False),
            Refusal("refused before it was received", changed(receipt, 2, received=NOW + MINUTE), "field",
                    f"{receipt}.finished", "received and finished are in this order", cddl=False),
            Refusal("a code that is no name", nested(receipt, "fault", 1, code="Invalid Input"), "name",
                    f"{receipt}.fault.code", "codes are names"),
        ],
        acknowledgement: [
            Refusal("of nothing", changed(acknowledgement, objects=[]), "field", f"{acknowledgement}.objects",
                    "it acknowledges nothing"),
            Refusal("out of order", changed(acknowledgement, objects=[b, a]), "field", f"{acknowledgement}.objects",
                    "one set of objects has one encoding", cddl=False),
            Refusal("of the same object twice", changed(acknowledgement, objects=[a, a]), "field",
                    f"{acknowledgement}.objects", "one set of objects has one encoding", cddl=False),
            Refusal("of an id of 31 bytes", changed(acknowledgement, objects=[a[:-1]]), "field",
                    f"{acknowledgement}.objects[0]", "an id has 32 bytes"),
        ],
    }  # fmt: skip


def _without(value: dict[str, Value], field: str) -> dict[str, Value]:
    return {name: item for name, item in value.items() if name != field}


def _first(items: Value) -> Value:
    assert isinstance(items, list)
    return items[0]


def _reversed(items: Value) -> Value:
    assert isinstance(items, list)
    return items[::-1]


def _map_in_order(order: list[str], value: dict[str, Value]) -> bytes:
    """A map of fewer than 24 fields whose keys stand in `order`, whatever the rule says."""
    return bytes([0xA0 | len(value)]) + b"".join(encode(name) + encode(value[name]) for name in order)


def _with_raw(value: dict[str, Value], field: str, raw: bytes) -> bytes:
    """The encoding of `value` with other bytes in place of one field's value."""
    order = sorted(value, key=encode)
    items = (encode(name) + (raw if name == field else encode(value[name])) for name in order)
    return bytes([0xA0 | len(value)]) + b"".join(items)
