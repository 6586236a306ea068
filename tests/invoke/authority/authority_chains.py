"""The chains of the authorization table, by name. Each is a sentence: who grants what to whom."""

from __future__ import annotations

from authority_objects import AGENCY, AGENT, MANIFEST, OTHER_MANIFEST, PROVIDER, PUBLISHER, STRANGER, Grant, chain

from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId
from bnw.wire.limits import DAY, HOUR

ROOT = Grant(PROVIDER, AGENT)
"""The provider lets the agent call, from `NOW` for a day."""
TO_AGENCY = Grant(PROVIDER, AGENCY, "invoke delegate")
BY_AGENCY = Grant(AGENCY, AGENT)


def below(parent: Grant, child: Grant) -> list[SignedObject]:
    return chain(parent, child)


NONE: list[SignedObject | ContentId] = []

# One link.
DIRECT = chain(ROOT)
BY_PUBLISHER = chain(Grant(PUBLISHER, AGENT))
BY_STRANGER = chain(Grant(STRANGER, AGENT))
BY_ITSELF = chain(Grant(AGENT, AGENT))
TO_PROVIDE = chain(Grant(PROVIDER, AGENT, "provide"))
ONLY_DELEGATE = chain(Grant(PROVIDER, AGENCY, "delegate"))
THIS_CAPABILITY = chain(ROOT.only(capability=MANIFEST.id))
OTHER_CAPABILITY = chain(ROOT.only(capability=OTHER_MANIFEST.id))
THIS_PUBLISHER = chain(ROOT.only(publisher=PUBLISHER.identity))
OTHER_PUBLISHER = chain(ROOT.only(publisher=STRANGER.identity))
SMALL_INPUT = chain(ROOT.only(max_input_bytes=100))
NO_INPUT = chain(ROOT.only(max_input_bytes=0))
THREE_CALLS = chain(ROOT.only(max_calls=3))
THREE_AN_HOUR = chain(ROOT.only(max_calls_per_hour=3))

# Two and three links.
PAIR = below(TO_AGENCY, BY_AGENCY)
STOLEN = below(TO_AGENCY, Grant(STRANGER, AGENT))
ROOT_AGAIN = below(TO_AGENCY, Grant(PROVIDER, AGENT))
NOT_DELEGABLE = below(Grant(PROVIDER, AGENCY), BY_AGENCY)
FROM_DELEGATE = below(Grant(PROVIDER, AGENCY, "delegate"), BY_AGENCY)
AND_BACK = chain(TO_AGENCY, Grant(AGENCY, AGENT, "invoke delegate"), Grant(AGENT, AGENCY))
TWO_ROOTS = [*chain(TO_AGENCY), *chain(BY_AGENCY)]

# Children against their parents.
WIDER_RIGHTS = below(TO_AGENCY, Grant(AGENCY, AGENT, "invoke provide"))
WIDER_CALLS = below(TO_AGENCY.only(max_calls=5), BY_AGENCY.only(max_calls=6))
WIDER_RATE = below(TO_AGENCY.only(max_calls_per_hour=5), BY_AGENCY.only(max_calls_per_hour=6))
WIDER_INPUT = below(TO_AGENCY.only(max_input_bytes=500), BY_AGENCY.only(max_input_bytes=501))
WIDER_CAPABILITY = below(TO_AGENCY.only(capability=MANIFEST.id), BY_AGENCY.only(capability=OTHER_MANIFEST.id))
WIDER_PUBLISHER = below(TO_AGENCY.only(publisher=PUBLISHER.identity), BY_AGENCY.only(publisher=STRANGER.identity))
WIDER_THAN_TOP = chain(
    TO_AGENCY.only(max_calls=5), Grant(AGENCY, STRANGER, "invoke delegate"), Grant(STRANGER, AGENT).only(max_calls=6)
)
WIDER_THAN_MIDDLE = chain(
    TO_AGENCY, Grant(AGENCY, STRANGER, "invoke delegate").only(max_calls=5), Grant(STRANGER, AGENT).only(max_calls=6)
)
LATER_END = below(TO_AGENCY, Grant(AGENCY, AGENT, end=DAY + 1))
EARLIER_START = below(TO_AGENCY, Grant(AGENCY, AGENT, start=-1))
JUST_AS_WIDE = below(TO_AGENCY.only(max_calls=5), BY_AGENCY.only(max_calls=5))
INHERITS = below(TO_AGENCY.only(max_input_bytes=99), BY_AGENCY)
LATER_START = below(TO_AGENCY, Grant(AGENCY, AGENT, start=2 * HOUR))
EARLIER_END = below(TO_AGENCY, Grant(AGENCY, AGENT, end=HOUR))
SHARED_CALLS = below(TO_AGENCY.only(max_calls=3), BY_AGENCY.only(max_calls=3))
OWN_SHARE = below(TO_AGENCY.only(max_calls=9), BY_AGENCY.only(max_calls=3))

# To provide.
HOST = chain(Grant(PUBLISHER, PROVIDER, "provide"))
HOSTED = below(Grant(PUBLISHER, AGENCY, "provide delegate"), Grant(AGENCY, PROVIDER, "provide"))
SELF_MADE_HOST = chain(Grant(PROVIDER, PROVIDER, "provide"))
CALLER_AS_HOST = chain(Grant(PUBLISHER, PROVIDER))
