"""Who may call a capability here. The default is nobody (design section 11). Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bnw.identity.keys import IdentityId, did_key
from bnw.wire.errors import InvalidError


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """`anyone` may call, or only the `listed` identities; with neither, nobody."""

    anyone: bool = False
    listed: frozenset[IdentityId] = frozenset()

    def check(self, requester: IdentityId) -> None:
        """Raise `InvalidError` (`not-allowed`) unless `requester` may call."""
        if not self.anyone and requester not in self.listed:
            raise InvalidError(
                "not-allowed",
                f"{did_key(requester)} may not call this capability here",
                cure="ask the provider to allow your identity",
            )

    def __str__(self) -> str:
        if self.anyone:
            return "anyone may call"
        if self.listed:
            return f"{len(self.listed)} listed identities may call"
        return "nobody may call"
