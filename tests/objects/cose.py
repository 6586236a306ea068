"""Signatures of objects as an independent COSE library sees them. No code of BNW takes part.

pycose 1.1 expects of cbor2 a list within a tag, where cbor2 6 gives a tuple; so the four parts are handed to it as a
list. It reads the headers, builds what was signed and verifies the signature.
"""

from __future__ import annotations

from typing import Any

import cbor2
from pycose.exceptions import CoseException
from pycose.keys import OKPKey
from pycose.keys.curves import Ed25519
from pycose.messages import Sign1Message

EXTERNAL_AAD = b"bnw/1"


def read(data: bytes) -> Any:
    """The COSE_Sign1 message in `data`, or None if there is none."""
    try:
        match cbor2.loads(data):
            case cbor2.CBORTag(tag=18, value=[protected, unprotected, payload, signature]):
                parts = [protected, dict(unprotected), payload, signature]
                return Sign1Message.from_cose_obj(parts, allow_unknown_attributes=True)
    except (CoseException, cbor2.CBORDecodeError, TypeError, ValueError):
        pass
    return None


def holds(data: bytes, identity: bytes) -> bool:
    """Whether `data` is a COSE_Sign1 whose signature is by `identity`."""
    message = read(data)
    if message is None:
        return False
    message.key = OKPKey(crv=Ed25519, x=identity)
    message.external_aad = EXTERNAL_AAD
    try:
        return bool(message.verify_signature())
    except (CoseException, AttributeError, TypeError, ValueError):
        return False
