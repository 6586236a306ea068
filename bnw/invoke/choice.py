"""In which order the providers of a capability are tried. Pure but for what it remembers; randomness is handed in.

Nothing that a provider says about itself counts, for anybody could say it: not the sequence of an offer, which would
let whoever offers last be first. First come those who have answered this requester before, then those it is connected
with; those who were not there the last time come after all others, and those who said that they are busy wait until
the time they named; and among equals, chance decides.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bnw.identity.keys import IdentityId
from bnw.objects.catalog import ProviderOffer
from bnw.objects.signed import SignedObject
from bnw.wire.environment import Environment, random_below

MAX_REMEMBERED = 1024
"""Providers whose last answer is remembered."""
_CHANCE = 1 << 48


@dataclass(slots=True)
class _Experience:
    answered: bool = False
    failed: bool = False
    busy_until: float = 0.0


class Experience:
    """What this node's calls have shown of providers. Times are in monotonic seconds."""

    def __init__(self) -> None:
        self._of: OrderedDict[IdentityId, _Experience] = OrderedDict()

    def has_answered(self, provider: IdentityId) -> bool:
        """Whether the last that was seen of it was a good answer."""
        known = self._of.get(provider)
        return known is not None and known.answered

    def answered(self, provider: IdentityId) -> None:
        known = self._at(provider)
        known.answered, known.failed = True, False

    def failed(self, provider: IdentityId) -> None:
        """It was not there, or what it sent could not be verified."""
        known = self._at(provider)
        known.answered, known.failed = False, True

    def busy(self, provider: IdentityId, *, until: float) -> None:
        self._at(provider).busy_until = until

    def order(
        self, offers: Sequence[SignedObject], *, connected: Collection[str], environment: Environment, now: float
    ) -> list[SignedObject]:
        """`offers`, the best first. `connected` are peer ids."""
        return sorted(offers, key=lambda offer: self._rank(offer, connected, environment, now))

    def _rank(
        self, offer: SignedObject, connected: Collection[str], environment: Environment, now: float
    ) -> tuple[bool, bool, bool, bool, int]:
        assert isinstance(offer.body, ProviderOffer)
        known = self._of.get(offer.signer, _Experience())
        is_connected = any(endpoint.endswith(peer) for endpoint in offer.body.endpoints for peer in connected)
        chance = random_below(environment, _CHANCE)
        return known.busy_until > now, known.failed, not known.answered, not is_connected, chance

    def _at(self, provider: IdentityId) -> _Experience:
        known = self._of.setdefault(provider, _Experience())
        self._of.move_to_end(provider)
        if len(self._of) > MAX_REMEMBERED:
            self._of.popitem(last=False)
        return known
