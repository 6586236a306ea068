"""How a call ends at the provider: a verdict, and the signed receipt and payload that carry it to the requester.

The receipt travels in the clear, so it names only a fault's code. What exactly went wrong, which may quote sizes, names
or content, is a problem document (RFC 9457) in the payload, sealed like any output. A call that is refused before its
input is looked at gets a receipt alone: whoever may not call shall not make us seal and keep payloads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bnw.identity.keys import IdentityId, SigningKey
from bnw.inbox.payload import CarriedPayload, Payload, publish_payload, seal_payload
from bnw.invoke.descriptors import PRIVACY_PUBLIC, DescriptorLimits, LocatedError
from bnw.invoke.handler import HandlerFailure
from bnw.invoke.machines.endings import (
    CANCELLED,
    EXPIRED,
    INACTIVE,
    INTERRUPTED,
    NOT_KNOWN_TO_BE_NEW,
    RESTARTED,
    Ending,
)
from bnw.objects.calls import STATUS_COMPLETED, STATUS_FAILED, STATUS_REJECTED, Fault, Receipt
from bnw.objects.signed import SignedObject, sign_object
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError
from bnw.wire.limits import INBOX_OBJECT_LIFETIME, MAX_NOTE_LENGTH
from bnw.wire.names import is_name

PROBLEM_TYPE = "application/problem+json"
MAX_LOCATED_ERRORS = 20
SEALED_DETAILS = "the details are sealed for the requester"
STANDARD: Final[Mapping[Ending, str]] = {
    CANCELLED: "the requester cancelled the call",
    EXPIRED: "the deadline passed before the call had ended",
    INACTIVE: "the provider's handler reported nothing for longer than the requester allows",
    INTERRUPTED: "the provider stopped while it ran this call; it may have had effects",
    RESTARTED: "the provider started anew before this call had begun, as far as its store knows",
    NOT_KNOWN_TO_BE_NEW: "the call is older than the provider's last start and not in its store; it may have run",
}
"""What the endings that no handler and no check gives are in words. None of them says anything about the call."""
_RETRY = re.compile(r"try again after (\d{1,9}) ms")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a call ended, and the payload for the requester: the output, or a problem document.

    What came from a file is sealed already. Without a payload the receipt says `message` in the clear.
    """

    ending: Ending
    payload: Payload | CarriedPayload | None = field(default=None, repr=False)
    message: str = SEALED_DETAILS


def completed(output: Payload | CarriedPayload) -> Verdict:
    return Verdict(Ending(STATUS_COMPLETED), output)


NO_INBOX_KEY: Final = Verdict(
    Ending(STATUS_FAILED, "no-inbox-key"), None, "the requester has no inbox key to seal the output to"
)


def not_completed(
    status: str, code: str, title: str, *, detail: str = "", errors: Sequence[LocatedError] = ()
) -> Verdict:
    """A call that did not complete, with everything that the requester should know about why."""
    code = code if is_name(code) else "failed"
    problem = {
        "type": f"urn:bnw:fault:{code}",
        "title": title,
        **({"detail": detail} if detail else {}),
        **({"errors": [_located(error) for error in errors[:MAX_LOCATED_ERRORS]]} if errors else {}),
    }
    data = json.dumps(problem, ensure_ascii=False).encode(errors="replace")
    return Verdict(Ending(status, code), Payload(data, PROBLEM_TYPE))


def standard(ending: Ending) -> Verdict:
    """The verdict on an ending that needs no details."""
    return Verdict(ending, None, STANDARD[ending])


def refused(code: str, message: str, *, retry_after: int | None = None) -> Verdict:
    """A call that the cheap checks refuse; `message` is in the clear, and `retry_after` (ms) is a hint in it."""
    hint = "" if retry_after is None else f"; try again after {retry_after} ms"
    return Verdict(Ending(STATUS_REJECTED, code), None, message[: MAX_NOTE_LENGTH - len(hint)] + hint)


def retry_hint(receipt: Receipt) -> int | None:
    """After how many milliseconds the provider suggests to call again, if it does."""
    found = None if receipt.fault is None else _RETRY.search(receipt.fault.message)
    return None if found is None else int(found[1])


def rejected(error: InvalidError, errors: Sequence[LocatedError] = ()) -> Verdict:
    return not_completed(STATUS_REJECTED, error.code, str(error), errors=errors)


def failed(failure: HandlerFailure) -> Verdict:
    return not_completed(STATUS_FAILED, failure.code, failure.message, detail=failure.detail)


def _located(error: LocatedError) -> dict[str, str]:
    return {"pointer": error.pointer, "detail": error.message}


@dataclass(frozen=True, slots=True)
class SignedAnswer:
    """A receipt, and the payload it names if there is one and there was a key to seal it to."""

    receipt: SignedObject
    payload: CarriedPayload | None


def sign_answer(
    verdict: Verdict,
    *,
    invocation: ContentId,
    requester: IdentityId,
    received: int,
    started: int | None,
    recipients: dict[IdentityId, bytes] | None,
    limits: DescriptorLimits | None,
    key: SigningKey,
    environment: Environment,
) -> SignedAnswer:
    """Sign the receipt for `verdict`; `recipients` are the participants' inbox keys, None if one has none."""
    payload = None
    code = verdict.ending.code
    is_public = limits is not None and limits.output.privacy == PRIVACY_PUBLIC and code is None
    if isinstance(verdict.payload, CarriedPayload):
        payload = verdict.payload
    elif verdict.payload is not None and is_public:
        everyone = (requester, key.identity)
        payload = publish_payload(verdict.payload, sender=key, recipients=set(everyone), environment=environment)
    elif verdict.payload is not None and recipients is not None:
        payload = seal_payload(verdict.payload, sender=key, recipients=recipients, environment=environment)
    elif code is None:
        verdict = NO_INBOX_KEY
    # The clock may have been set back while the call ran; the receipt keeps the order of events all the same.
    finished = max(environment.now_ms(), started or received)
    ending = verdict.ending
    body = Receipt(
        created=finished,
        expires=finished + INBOX_OBJECT_LIFETIME,
        fault=None if ending.code is None else Fault(ending.code, verdict.message),
        finished=finished,
        invocation=invocation,
        output=None if payload is None else payload.manifest.id,
        received=received,
        recipient=requester,
        started=started,
        status=ending.status,
    )
    return SignedAnswer(sign_object(body, key), payload)
