"""Checks for an object that arrives from a peer, from cheap to dear (design section 10). Pure.

`Blame` tells faults that the sender must have caused from those that clocks, lateness or our own limits explain; only
the first cost a peer its reputation.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from bnw.objects.body import Body
from bnw.objects.rules import check_time, is_catalog_object
from bnw.objects.signed import UnverifiedObject, parse_object
from bnw.wire.errors import InvalidError

_NOT_THE_SENDERS_FAULT = frozenset({"expired", "from-the-future"})


class Blame(Enum):
    SENDER = "sender"
    NOBODY = "nobody"


def blame_for(error: InvalidError) -> Blame:
    """Whether the peer that sent the bytes must have known that they would be refused."""
    return Blame.NOBODY if error.code in _NOT_THE_SENDERS_FAULT else Blame.SENDER


def check_catalog_object(data: bytes, now: int) -> UnverifiedObject:
    """Size, form, kind and time of an object for the catalog scope; the signature is still to be checked."""
    return _check(data, now, is_catalog_object, "catalog")


def check_inbox_object(data: bytes, now: int) -> UnverifiedObject:
    """The same for an object for somebody's inbox."""
    return _check(data, now, lambda body: not is_catalog_object(body), "inbox")


def _check(data: bytes, now: int, belongs: Callable[[Body], bool], scope: str) -> UnverifiedObject:
    obj = parse_object(data)
    if not belongs(obj.body):
        raise InvalidError("wrong-scope", f"objects of kind {obj.kind} do not belong in the {scope} scope")
    check_time(obj.body, now)
    return obj
