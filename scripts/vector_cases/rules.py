"""Vectors of rules beyond an object's own bytes: time, scope, sequence, contradiction (design sections 6 and 10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bnw.identity.keys import SigningKey
from bnw.objects.body import Body
from bnw.objects.calls import Cancellation
from bnw.objects.catalog import CapabilityManifest, ProviderOffer, Withdrawal
from bnw.objects.signed import SignedObject, sign_object
from bnw.wire.limits import CANCELLING_LIFETIME_MIN, HOUR, SECOND
from vector_cases.forms import NOW, PROVIDER, PUBLISHER, REQUESTER, Json, an_id

FIVE_MINUTES = 300_000

OFFER = ProviderOffer(
    created=NOW, expires=NOW + HOUR, available=True, capability=an_id("manifest"), endpoints=(), sequence=NOW
)
MAIL = Cancellation(
    created=NOW, expires=NOW + HOUR, invocation=an_id("invocation"), reason=None, recipient=PROVIDER.identity
)


def rules() -> Json:
    offer, mail = sign_object(OFFER, PROVIDER), sign_object(MAIL, REQUESTER)
    broken = offer.data[:-1] + bytes([offer.data[-1] ^ 1])
    admitted = [
        ("at the moment of its creation", offer.data, "catalog", NOW),
        ("by a clock that is five minutes slow", offer.data, "catalog", NOW - FIVE_MINUTES),
        ("in its last millisecond", offer.data, "catalog", NOW + HOUR - 1),
        ("mail in an inbox", mail.data, "inbox", NOW + SECOND),
        ("with a broken signature, which is checked last", broken, "catalog", NOW),
    ]
    turned_away = [
        ("by a clock that is slower than that by a millisecond", offer.data, "catalog", NOW - FIVE_MINUTES - 1,
         "from-the-future", "nobody", "it was created more than five minutes from now; one clock is wrong, and who "
         "knows which"),
        ("at the moment of its expiry", offer.data, "catalog", NOW + HOUR, "expired", "nobody",
         "there is no allowance; it may have expired on its way"),
        ("long after its expiry", offer.data, "catalog", NOW + 1000 * HOUR, "expired", "nobody",
         "it may have expired on its way"),
        ("mail in the catalog", mail.data, "catalog", NOW, "wrong-scope", "sender", "a cancellation is private"),
        ("an offer in an inbox", offer.data, "inbox", NOW, "wrong-scope", "sender", "an offer is public"),
        ("mail in the catalog when it has expired", mail.data, "catalog", NOW + HOUR, "wrong-scope", "sender",
         "the scope is judged before the time: the sender knew it"),
        ("half of it", offer.data[: len(offer.data) // 2], "catalog", NOW, "cbor", "sender", "it is cut short"),
    ]  # fmt: skip
    return {
        "about": "Rules about objects in time. `admitted` and `turned_away` are judged as they come in from a peer, "
        "before the signature; `blame` says whether the sender must have known. `precedence` says what becomes of "
        "`new` where `held` has its slot. `sequences` are those that a signer gives a new object.",
        "admitted": [
            {"name": name, "hex": data.hex(), "scope": scope, "now": now} for name, data, scope, now in admitted
        ],
        "turned_away": [
            {
                "name": name, "hex": data.hex(), "scope": scope, "now": now, "code": code, "blame": blame,
                "reason": reason,
            }
            for name, data, scope, now, code, blame, reason in turned_away
        ],
        "precedence": _precedence(),
        "sequences": [
            {"name": name, "previous": previous, "now": now, "next": following}
            for name, previous, now, following in (
                ("the first one", None, NOW, NOW),
                ("time has passed", NOW - 1000, NOW, NOW),
                ("twice in one millisecond", NOW, NOW, NOW + 1),
                ("the clock was set back", NOW + HOUR, NOW, NOW + HOUR + 1),
                ("a backup had an older one", 7, NOW, NOW),
                ("a signer that counts from 1, at the beginning of time", 1, 1, 2),
            )
        ],
    }  # fmt: skip


def _signed(body: Body, key: SigningKey = PROVIDER, **change: Any) -> SignedObject:
    return sign_object(replace(body, **change), key)


def _precedence() -> list[Json]:
    manifest = CapabilityManifest(
        created=NOW, expires=NOW + HOUR, descriptor=an_id("descriptor"), name="finance/lookup", provide="publisher",
        sequence=NOW,
    )  # fmt: skip
    withdrawal = Withdrawal(created=NOW, expires=NOW + CANCELLING_LIFETIME_MIN, name="finance/lookup", sequence=NOW + 1)
    older, newer = _signed(OFFER), _signed(OFFER, sequence=NOW + 1)
    shorter = _signed(OFFER, sequence=NOW + 1, expires=NOW + 1)
    low, high = sorted((_signed(OFFER, available=True), _signed(OFFER, available=False)), key=lambda obj: obj.id)
    published, gone = _signed(manifest, PUBLISHER), _signed(withdrawal, PUBLISHER)
    republished = _signed(manifest, PUBLISHER, sequence=NOW + 2)
    contradicted = _signed(withdrawal, PUBLISHER, sequence=NOW)
    clash = "equivocation-wins" if contradicted.id < published.id else "equivocation-loses"
    cases = [
        ("a higher sequence", older, newer, "replaces"),
        ("a lower sequence", newer, older, "superseded"),
        ("a higher sequence with an earlier expiry", older, shorter, "replaces"),
        ("the same sequence and a lower id", high, low, "equivocation-wins"),
        ("the same sequence and a higher id", low, high, "equivocation-loses"),
        ("a withdrawal after the manifest", published, gone, "replaces"),
        ("a manifest from before the withdrawal", gone, published, "superseded"),
        ("a manifest after the withdrawal", gone, republished, "replaces"),
        ("a withdrawal with the sequence of the manifest", published, contradicted, clash),
    ]
    return [
        {"name": name, "held": held.data.hex(), "new": new.data.hex(), "outcome": outcome}
        for name, held, new, outcome in cases
    ]
