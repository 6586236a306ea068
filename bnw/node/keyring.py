"""The keys of a running node, and their rotation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from bnw.identity.inbox_keys import InboxKey
from bnw.identity.keys import IdentityId, SigningKey
from bnw.identity.keystore import Keystore, rotated
from bnw.wire.environment import Environment

SaveKeystore = Callable[[Keystore], Awaitable[None]]


class KeyRing:
    """Holds a keystore in memory. A rotation is saved before anyone hears of the new key."""

    def __init__(self, keystore: Keystore, environment: Environment, *, save: SaveKeystore) -> None:
        self._keystore = keystore
        self._environment = environment
        self._save = save
        self.signing_key: SigningKey = keystore.signing_key

    @property
    def identity(self) -> IdentityId:
        return self.signing_key.identity

    @property
    def transport_seed(self) -> bytes:
        return self._keystore.transport_seed

    def inbox_keys(self) -> tuple[InboxKey, ...]:
        """All private inbox keys that are still kept, the newest last."""
        return self._keystore.inbox_keys

    async def rotate(self) -> bool:
        """Make a new inbox key if one is due, and drop those past their grace; whether anything changed."""
        keystore = rotated(self._keystore, self._environment)
        if keystore is self._keystore:
            return False
        await self._save(keystore)
        self._keystore = keystore
        return True
