"""How a call ends at the provider: a verdict, and the signed receipt and payload that carry it to the requester.

The receipt travels in the clear, so it names only a fault's code. What exactly went wrong, which may quote sizes, names
or content, is a problem document (RFC 9457) in the payload, sealed like any output.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from bnw.identity.keys import IdentityId, SigningKey
from bnw.inbox.payload import CarriedPayload, Payload, publish_payload, seal_payload
from bnw.invoke.descriptors import PRIVACY_PUBLIC, DescriptorLimits, LocatedError
from bnw.invoke.handlers import HandlerFailure
from bnw.invoke.journal import CallEntry
from bnw.objects.calls import STATUS_COMPLETED, STATUS_FAILED, STATUS_REJECTED, Fault, Receipt
from bnw.objects.signed import SignedObject, sign_object
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError
from bnw.wire.limits import INBOX_OBJECT_LIFETIME
from bnw.wire.names import is_name

PROBLEM_TYPE = "application/problem+json"
MAX_LOCATED_ERRORS = 20
SEALED_DETAILS = "the details are sealed for the requester"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a call ended, and the payload for the requester: the output, or a problem document."""

    status: str
    payload: Payload = field(repr=False)
    code: str | None = None


def completed(output: Payload) -> Verdict:
    return Verdict(STATUS_COMPLETED, output)


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
    return Verdict(status, Payload(data, PROBLEM_TYPE), code)


def rejected(error: InvalidError, errors: Sequence[LocatedError] = ()) -> Verdict:
    return not_completed(STATUS_REJECTED, error.code, str(error), errors=errors)


def failed(failure: HandlerFailure) -> Verdict:
    return not_completed(STATUS_FAILED, failure.code, failure.message, detail=failure.detail)


def _located(error: LocatedError) -> dict[str, str]:
    return {"pointer": error.pointer, "detail": error.message}


@dataclass(frozen=True, slots=True)
class SignedAnswer:
    """A receipt, and the payload it names if there was a key to seal it to."""

    receipt: SignedObject
    payload: CarriedPayload | None


def sign_answer(
    verdict: Verdict,
    *,
    invocation: ContentId,
    requester: IdentityId,
    entry: CallEntry,
    recipients: dict[IdentityId, bytes] | None,
    limits: DescriptorLimits | None,
    key: SigningKey,
    environment: Environment,
) -> SignedAnswer:
    """Sign the receipt for `verdict`; `recipients` are the participants' inbox keys, None if one has none."""
    payload = None
    is_public = limits is not None and limits.output.privacy == PRIVACY_PUBLIC and verdict.code is None
    if is_public:
        everyone = (requester, key.identity)
        payload = publish_payload(verdict.payload, sender=key, recipients=set(everyone), environment=environment)
    elif recipients is not None:
        payload = seal_payload(verdict.payload, sender=key, recipients=recipients, environment=environment)
    elif verdict.code is None:
        verdict = not_completed(STATUS_FAILED, "no-inbox-key", "the requester has no inbox key to seal the output to")
    # The clock may have been set back while the call ran; the receipt keeps the order of events all the same.
    finished = max(environment.now_ms(), entry.started or entry.received)
    body = Receipt(
        created=finished,
        expires=finished + INBOX_OBJECT_LIFETIME,
        fault=None if verdict.code is None else Fault(verdict.code, SEALED_DETAILS),
        finished=finished,
        invocation=invocation,
        output=None if payload is None else payload.manifest.id,
        received=entry.received,
        recipient=requester,
        started=entry.started,
        status=verdict.status,
    )
    return SignedAnswer(sign_object(body, key), payload)
