"""The files of signed objects: valid ones of every kind, and what is refused in each."""

from __future__ import annotations

import itertools

import cbor2

from bnw.identity.keys import SigningKey
from bnw.objects.body import Body
from bnw.objects.envelope import sign_envelope
from bnw.objects.rules import recipients_of, slot_of
from bnw.objects.signed import sign_object
from vector_cases.forms import Json, to_json, value_of
from vector_cases.kinds import Example, authority_examples, call_examples, catalog_examples, mail_examples
from vector_cases.refusals import common_refusals, kind_refusals

ABOUT = (
    "Signed objects: {kinds}. `protected` and `payload` are parts of `object`; `slot` is what objects that replace "
    "each other share, null for kinds that replace nothing; `inboxes` are the identities whose inboxes it belongs in, "
    "none for the catalog. The signature of everything refused here holds: only the rule in `reason` is broken. "
    "`place` is the field that the refusal names; `cddl` says whether a CDDL validator refuses it too."
)


def object_files() -> dict[str, Json]:
    """The contents of the files, by name."""
    groups = {
        "objects-catalog.json": catalog_examples(),
        "objects-authority.json": authority_examples(),
        "objects-mail.json": mail_examples(),
        "objects-calls.json": call_examples(),
    }
    by_kind = {
        kind: list(examples)
        for kind, examples in itertools.groupby(itertools.chain(*groups.values()), lambda example: example[1].KIND)
    }
    return {name: _file(examples, by_kind) for name, examples in groups.items()}


def _file(examples: list[Example], by_kind: dict[str, list[Example]]) -> Json:
    kinds = list(dict.fromkeys(body.KIND for _, body, _ in examples))
    own = kind_refusals(by_kind)
    refused = []
    for kind in kinds:
        # A public payload is the small one; the first of the others is.
        _, body, key = by_kind[kind][-1 if kind == "payload-manifest" else 0]
        for refusal in (*common_refusals(body), *own[kind]):
            refused.append(
                {
                    "name": f"{kind}: {refusal.name}",
                    "kind": kind,
                    "hex": sign_envelope(kind, refusal.payload, key).hex(),
                    "code": refusal.code,
                    "place": refusal.place,
                    "reason": refusal.reason,
                    "cddl": "refuses" if refusal.cddl else "accepts",
                }
            )
    return {
        "about": ABOUT.format(kinds=", ".join(kinds)),
        "accepted": [_accepted(*example) for example in examples],
        "refused": refused,
    }


def _accepted(name: str, body: Body, key: SigningKey) -> Json:
    obj = sign_object(body, key)
    protected, _, payload, _ = cbor2.loads(obj.data[1:])
    slot = slot_of(obj)
    return {
        "name": name,
        "kind": obj.kind,
        "seed": key.seed.hex(),
        "signer": obj.signer.hex(),
        "body": to_json(value_of(body)),
        "protected": protected.hex(),
        "payload": payload.hex(),
        "object": obj.data.hex(),
        "id": obj.id.hex(),
        "slot": None if slot is None else slot.hex(),
        "inboxes": [identity.hex() for identity in recipients_of(body)],
    }
