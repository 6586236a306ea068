"""Every limit that a peer, a file or a caller can run into, by name (design section 15).

Sizes are bytes, times are milliseconds unless the name says otherwise.
"""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

SECOND: Final = 1000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

# What is signed, stored and sent.
MAX_SIGNED_OBJECT: Final = 64 * KIB
MAX_DESCRIPTOR: Final = 1 * MIB
MAX_BLOB: Final = 16 * MIB
MAX_PAYLOAD: Final = 1 * GIB
# What is larger is sealed from a file and opened into one, a few chunks at a time.
MAX_PAYLOAD_IN_MEMORY: Final = 16 * MIB
PAYLOAD_CHUNK: Final = 1 * MIB
MIN_PADDED_PAYLOAD: Final = 4 * KIB
# Padmé adds at most 1/(2·log2 n) above 1 MiB, under 3.4 % at 1 GiB; 1,064 leaves room for the tags as well.
MAX_PAYLOAD_CHUNKS: Final = 1064
MAX_RECIPIENTS: Final = 16
MAX_DELEGATION_CHAIN: Final = 8
MAX_ENDPOINTS: Final = 8
MAX_ENDPOINT_LENGTH: Final = 256
MAX_INBOX_KEYS: Final = 4
MAX_MAILBOXES: Final = 4
MAX_ACKNOWLEDGED: Final = 1024
MAX_NOTE_LENGTH: Final = 512
MAX_FILE_NAME: Final = 255
MAX_MEDIA_TYPE: Final = 127
MAX_MEDIA_TYPES: Final = 16

# Lifetimes. A withdrawal or revocation must outlive whatever it can cancel, so its shortest lifetime is the longest
# lifetime of a manifest or delegation plus the skew between the two clocks.
CLOCK_SKEW: Final = 5 * MINUTE
OFFER_LIFETIME: Final = 24 * HOUR
IDENTITY_RECORD_LIFETIME: Final = 30 * DAY
MANIFEST_LIFETIME: Final = 366 * DAY
DELEGATION_LIFETIME: Final = 366 * DAY
CANCELLING_LIFETIME_MIN: Final = 366 * DAY + 2 * CLOCK_SKEW
CANCELLING_LIFETIME_MAX: Final = 2 * 366 * DAY
INBOX_OBJECT_LIFETIME: Final = 30 * DAY

# CBOR (design section 5).
MAX_CBOR_DEPTH: Final = 16
MAX_INTEGER: Final = 2**53 - 1

# Messages between peers.
MAX_FRAME: Final = 256 * KIB
