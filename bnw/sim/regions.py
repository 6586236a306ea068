"""Round-trip times between regions of the world, as one operator published them.

Source: IBM Cloud Docs, "Network latency" of the VPC documentation (repository ibm-cloud-docs/vpc, file
_include-segments/network-latency.md), inter-region averages of 19 October to 17 November 2024, in milliseconds.
The table there is measured in both directions; where these differ, by 3 ms at most, the higher one stands here.
Within a region, availability zones are 1.5 to 2.3 ms apart in the same document; 2 ms stands for all.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = "IBM Cloud VPC inter-region averages, 19 October to 17 November 2024"

REGIONS: Final = (
    "dallas",
    "toronto",
    "washington",
    "frankfurt",
    "london",
    "madrid",
    "osaka",
    "sydney",
    "tokyo",
    "sao-paulo",
)

WITHIN: Final = 2.0
"""Milliseconds of a round trip within a region."""

_ROUND_TRIPS: Final = (
    (34,),
    (31, 19),
    (123, 93, 91),
    (113, 83, 76, 13),
    (119, 106, 89, 29, 27),
    (149, 171, 175, 233, 244, 259),
    (186, 215, 214, 250, 261, 276, 122),
    (143, 163, 168, 230, 244, 256, 9, 115),
    (144, 131, 119, 198, 189, 208, 292, 328, 288),
)
"""Row by row below the diagonal: from the second region on, to each one before it."""


def round_trip(one: str, other: str) -> float:
    """Seconds of a round trip between two of `REGIONS`."""
    low, high = sorted((REGIONS.index(one), REGIONS.index(other)))
    milliseconds = WITHIN if low == high else _ROUND_TRIPS[high - 1][low]
    return milliseconds / 1000
