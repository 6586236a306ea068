"""Valid bodies of every kind, for hypothesis: any value that the rules allow, up to the limits."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from bnw.objects.authority import Caveats, Delegation, Revocation
from bnw.objects.body import Body
from bnw.objects.calls import (
    STATUS_COMPLETED,
    STATUSES,
    Cancellation,
    Fault,
    Invocation,
    InvocationUpdate,
    Receipt,
)
from bnw.objects.catalog import CapabilityManifest, IdentityRecord, Mailbox, ProviderOffer, PublicInboxKey, Withdrawal
from bnw.objects.mail import SEALED_ACCESS_RECORD_SIZE, Acknowledgement, PayloadManifest, SealedAccess
from bnw.objects.signed import KINDS
from bnw.wire.limits import MAX_INTEGER, MAX_PAYLOAD, PAYLOAD_CHUNK
from bnw.wire.names import is_plain_text

LATEST = MAX_INTEGER - 2**40
"""The latest creation in these bodies; any lifetime still fits behind it."""

raw32 = st.binary(min_size=32, max_size=32)
sequences = st.integers(1, MAX_INTEGER)
times = st.integers(1, LATEST)
names = st.from_regex(r"\A[a-z0-9][a-z0-9._-]{0,12}(/[a-z0-9._-]{1,12}){0,3}\Z")


def plain(longest: int) -> st.SearchStrategy[str]:
    """Plain text of at most `longest` bytes."""
    safe = st.characters(codec="utf-8").filter(is_plain_text)
    return st.text(safe, min_size=1, max_size=longest).filter(lambda text: len(text.encode()) <= longest)


def ascending(item: st.SearchStrategy[Any], smallest: int, largest: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(item, min_size=smallest, max_size=largest, unique=True).map(lambda items: tuple(sorted(items)))


def tuples(item: st.SearchStrategy[Any], smallest: int, largest: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(item, min_size=smallest, max_size=largest).map(tuple)


def optional(item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | item


inbox_keys = st.builds(
    lambda key, start, length: PublicInboxKey(key, start + length, start), raw32, times, st.integers(1, 2**40)
)
mailboxes = st.builds(Mailbox, tuples(plain(40), 0, 8), plain(40))
caveats = st.builds(
    Caveats,
    optional(raw32),
    optional(sequences),
    optional(sequences),
    optional(st.integers(0, MAX_PAYLOAD)),
    optional(raw32),
)
faults = st.builds(Fault, names, plain(60))
sealed = st.builds(
    SealedAccess, raw32, st.binary(min_size=4, max_size=4).map(lambda raw: raw * (SEALED_ACCESS_RECORD_SIZE // 4))
)


@st.composite
def bodies(draw: st.DrawFn, kind: str) -> Body:
    """A valid body of `kind`."""
    cls = KINDS[kind]
    created = draw(times)
    expires = created + draw(st.integers(cls.MIN_LIFETIME, cls.MAX_LIFETIME))
    make: Any = cls
    return make(created=created, expires=expires, **draw(_FIELDS[cls](created, expires)))  # type: ignore[no-any-return]  # a strategy's draw is untyped


def _identity_record(_: int, __: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"inbox_keys": tuples(inbox_keys, 1, 4), "mailboxes": tuples(mailboxes, 0, 4), "sequence": sequences}
    )


def _manifest(_: int, __: int) -> st.SearchStrategy[dict[str, Any]]:
    provide = st.sampled_from(["publisher", "delegated", "anyone"])
    return st.fixed_dictionaries({"descriptor": raw32, "name": names, "provide": provide, "sequence": sequences})


def _withdrawal(_: int, __: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"name": names, "sequence": sequences})


def _offer(_: int, __: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "available": st.booleans(),
            "capability": raw32,
            "endpoints": tuples(plain(256), 0, 8),
            "sequence": sequences,
        }
    )


def _delegation(_: int, expires: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "audience": raw32,
            "caveats": caveats,
            "not_before": st.integers(1, expires - 1),
            "parent": optional(raw32),
            "rights": ascending(st.sampled_from(["delegate", "invoke", "provide"]), 1, 3),
        }
    )


def _revocation(_: int, __: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"delegation": raw32})


@st.composite
def _payload(draw: st.DrawFn, _: int, __: int) -> dict[str, Any]:
    public = draw(optional(st.binary(min_size=1, max_size=1024)))
    recipients = draw(ascending(raw32, 1, 16))
    access = () if public is not None else draw(tuples(sealed, len(recipients), len(recipients)))
    chunks = draw(tuples(raw32, 1, 20))
    full = PAYLOAD_CHUNK + (0 if public is not None else 16)
    size = draw(st.integers((len(chunks) - 1) * full + 1, len(chunks) * full))
    return {"access": access, "chunks": chunks, "public": public, "recipients": recipients, "size": size}


def _invocation(created: int, expires: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "capability": raw32,
            "deadline": st.integers(created + 1, expires),
            "delegations": st.lists(raw32, max_size=8, unique=True).map(tuple),
            "inactivity": optional(sequences),
            "input": raw32,
            "provider": raw32,
        }
    )


def _update(_: int, __: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "fraction": optional(st.integers(0, 1000)),
            "invocation": raw32,
            "note": optional(plain(512)),
            "recipient": raw32,
            "sequence": sequences,
            "stage": names,
        }
    )


def _cancellation(_: int, __: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"invocation": raw32, "reason": optional(plain(512)), "recipient": raw32})


@st.composite
def _receipt(draw: st.DrawFn, _: int, __: int) -> dict[str, Any]:
    status = draw(st.sampled_from(STATUSES))
    completed = status == STATUS_COMPLETED
    received, started, finished = sorted(draw(st.tuples(times, times, times)))
    return {
        "fault": None if completed else draw(faults),
        "finished": finished,
        "invocation": draw(raw32),
        "output": draw(raw32 if completed else optional(raw32)),
        "received": received,
        "recipient": draw(raw32),
        "started": started if completed or draw(st.booleans()) else None,
        "status": status,
    }


def _acknowledgement(_: int, __: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"objects": ascending(raw32, 1, 30), "recipient": raw32})


_FIELDS: dict[type[Body], Any] = {
    IdentityRecord: _identity_record,
    CapabilityManifest: _manifest,
    Withdrawal: _withdrawal,
    ProviderOffer: _offer,
    Delegation: _delegation,
    Revocation: _revocation,
    PayloadManifest: _payload,
    Invocation: _invocation,
    InvocationUpdate: _update,
    Cancellation: _cancellation,
    Receipt: _receipt,
    Acknowledgement: _acknowledgement,
}
