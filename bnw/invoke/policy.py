"""Who may call a capability here, and how much. The default is nobody (design section 11). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bnw.identity.keys import IdentityId, did_key
from bnw.wire.errors import InvalidError

DEFAULT_AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """`anyone` may call, or the `listed` identities, or with `delegated` whoever shows a chain of delegations from the
    provider or the publisher; with none of them, nobody.

    The rest bounds what one identity, or one call, may use; None is no bound beyond the descriptor's and the node's.
    `calls_per_minute` and `at_once` (waiting and running) are per identity; times are milliseconds, sizes bytes.
    """

    anyone: bool = False
    listed: frozenset[IdentityId] = frozenset()
    delegated: bool = False
    calls_per_minute: int | None = None
    at_once: int = DEFAULT_AT_ONCE
    max_input_bytes: int | None = None
    max_output_bytes: int | None = None
    max_run_time: int | None = None

    def may_call(self, requester: IdentityId) -> bool:
        """Whether `requester` may call without showing a delegation."""
        return self.anyone or requester in self.listed

    def check(self, requester: IdentityId, *, shows_delegations: bool = False) -> None:
        """Raise `InvalidError` (`not-allowed`) unless `requester` may call, or may once its delegations are judged."""
        if self.may_call(requester) or (self.delegated and shows_delegations):
            return
        raise InvalidError(
            "not-allowed",
            f"{did_key(requester)} may not call this capability here",
            cure="ask the provider for a delegation" if self.delegated else "ask the provider to allow your identity",
        )

    def check_input(self, size: int) -> None:
        """Raise `InvalidError` (`too-large`) for an input of more bytes than the provider takes."""
        if self.max_input_bytes is not None and size > self.max_input_bytes:
            raise InvalidError(
                "too-large", f"the input has {size:,} bytes; this provider takes at most {self.max_input_bytes:,}"
            )

    def __str__(self) -> str:
        if self.anyone:
            return "anyone may call"
        words = [f"{len(self.listed)} listed identities may call"] if self.listed else []
        if self.delegated:
            words.append("whoever shows a delegation may call")
        return " and ".join(words) or "nobody may call"
