"""Scopes as the store keys them, and the sum of ids that stands for a scope's contents (design section 9).

Inside a store a scope is a few bytes: nothing for the catalog, the 32-byte identity for an inbox. Outside it is text.
"""

from __future__ import annotations

from collections.abc import Iterable

from bnw.identity.keys import IdentityId, did_key, parse_did_key
from bnw.objects.body import Body
from bnw.objects.rules import CATALOG, is_catalog_object, recipients_of
from bnw.store.interface import ScopeSummary
from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId
from bnw.wire.errors import InvalidError

CATALOG_KEY = b""
_INBOX_PREFIX = "inbox:"
_MODULUS = 1 << (8 * CONTENT_ID_SIZE)


def inbox_scope(identity: IdentityId) -> str:
    """The text form of an identity's inbox scope."""
    return _INBOX_PREFIX + did_key(identity)


def scope_key(scope: str) -> bytes:
    """Read the text form of a scope; raises `InvalidError` (`scope`, or `did-key` for a bad identity)."""
    if scope == CATALOG:
        return CATALOG_KEY
    return parse_inbox_scope(scope)


def parse_inbox_scope(scope: str) -> IdentityId:
    """Whose inbox the text form means. Raises as `scope_key` does."""
    if scope.startswith(_INBOX_PREFIX):
        return parse_did_key(scope[len(_INBOX_PREFIX) :])
    raise InvalidError(
        "scope", f"{scope!r:.80} is not a scope", cure=f"a scope is `{CATALOG}`, or `{_INBOX_PREFIX}` and a did:key"
    )


def scope_keys_of(body: Body) -> tuple[bytes, ...]:
    """The scopes that an object belongs to: the catalog, or the inbox of every recipient."""
    return (CATALOG_KEY,) if is_catalog_object(body) else recipients_of(body)


def id_sum(ids: Iterable[ContentId]) -> int:
    """The sum of ids read as little-endian integers, not yet reduced."""
    return sum(int.from_bytes(id, "little") for id in ids)


def reduce_sum(total: int) -> bytes:
    """A sum (or difference) of ids modulo 2^256, as 32 little-endian bytes."""
    return (total % _MODULUS).to_bytes(CONTENT_ID_SIZE, "little")


def summary(count: int, total: int, expired: list[ContentId]) -> ScopeSummary:
    """The summary of a scope whose `count` objects with the sum `total` still include the `expired` ones."""
    return ScopeSummary(count - len(expired), reduce_sum(total - id_sum(expired)))
