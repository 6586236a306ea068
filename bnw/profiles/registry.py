"""Finding the profile plug-ins: BNW's own, and those of other distributions through the entry-point group.

Only names are read here. A plug-in's code is imported where it is to run, which for those of others is never the node's
own process (see `service`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final, cast

from bnw.profiles.contract import ENTRY_POINT_GROUP, Profile
from bnw.wire.errors import LocalError

MAX_PLUGINS: Final = 32
"""Plug-ins of other distributions; each is asked about every document that nobody before it claims."""


@dataclass(frozen=True, slots=True)
class PluginSource:
    """Where a plug-in comes from. `target` is `module:attribute`, something that makes the plug-in when called.

    `own` marks BNW's plug-ins. `bounded` marks the one whose work on a document is bounded by construction, so that it
    may run in the node's process, and which judges a payload by its media type, size and schema alone. One that has
    nothing to say of payloads has no `checks`.
    """

    name: str
    target: str
    distribution: str = "bnw"
    own: bool = False
    bounded: bool = False
    checks: bool = True

    def load(self) -> Profile[Any]:
        """Import the plug-in and make it; whatever its code raises passes through."""
        module, _, attribute = self.target.partition(":")
        made: Any = import_module(module)
        for part in attribute.split("."):
            made = getattr(made, part)
        return cast(Callable[[], Profile[Any]], made)()


OWN: Final = (
    PluginSource(
        "capability-profile-1", "bnw.profiles.capability.plugin:CapabilityProfilePlugin", own=True, bounded=True
    ),
    PluginSource("openwop-capabilities", "bnw.profiles.openwop.plugin:OpenWopPlugin", own=True, checks=False),
)


def find_plugins() -> tuple[PluginSource, ...]:
    """BNW's plug-ins, then those that other installed distributions offer, by name.

    BNW's own are known without looking, so that a checkout that was never installed has them too. Raises `LocalError`
    (`too-many-plugins`).
    """
    own = {source.target for source in OWN}
    others = {
        (point.name, point.value): PluginSource(
            point.name, point.value.replace(" ", ""), point.dist.name if point.dist is not None else "unknown"
        )
        for point in entry_points(group=ENTRY_POINT_GROUP)
        if point.value not in own
    }
    if len(others) > MAX_PLUGINS:
        raise LocalError(
            "too-many-plugins",
            f"{len(others)} profile plug-ins are installed, where at most {MAX_PLUGINS} are allowed",
            cure="uninstall some of the distributions that offer one",
        )
    return (*OWN, *(others[key] for key in sorted(others)))
