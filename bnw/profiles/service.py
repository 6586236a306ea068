"""The one door to the profiles: whatever a node wants to know of a descriptor, it asks here.

The service finds the plug-in that claims a document and puts the question to it. Nothing that a document or a plug-in
does comes back as an exception: an unknown format is None (the node treats it as opaque bytes), and a plug-in that
crashed, hung or ate its memory is a fault that is written down, and a failed check where a check was wanted.

Where plug-ins run, in `contained` mode:

- `bnw.capability-profile/1` is parsed in this process: its work is linear in a document of at most 1 MiB, without
  recursion beyond 64 levels, without patterns, and with at most `MAX_ERRORS` faults to report.
- Everything else is put to worker processes with limits on memory and time: the checks against a JSON Schema that
  someone else wrote (its patterns and references can make any validator work for ever), OpenWOP documents (listing the
  faults of a hostile one takes gigabytes), and all that plug-ins of other distributions do.

In `inline` mode everything runs in this process, deterministically and without bounds, for simulations and tests.

Calls block, for a fraction of a millisecond as a rule and for the worker's deadline at worst: call from a thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Literal, Self, TypeVar

from bnw.profiles.contract import Description, DescriptorLimits, LocatedError
from bnw.profiles.operations import DESCRIPTOR_INVALID
from bnw.profiles.payload_check import MAX_CHECKED, has_schema, outer_faults, too_large_to_check
from bnw.profiles.registry import PluginSource, find_plugins
from bnw.profiles.runners import InlineRunner, Runner, WorkerRunner
from bnw.profiles.worker_client import Bounds, PluginFailure
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.limits import DAY, MAX_DESCRIPTOR

MAX_REMEMBERED: Final = 512
"""Descriptions kept, so that asking again about the same descriptor costs nothing."""
MAX_FAULTS: Final = 64
"""Failures of plug-ins that are remembered for people to look at."""
MAX_FAILURES: Final = 5
"""Failures in a row after which a plug-in of another distribution is no longer asked."""


_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class PluginState:
    """A plug-in as people see it. `identifier` is None if it could not be loaded."""

    identifier: str | None
    name: str
    distribution: str
    working: bool
    last_failure: str | None


@dataclass(frozen=True, slots=True)
class PluginFault:
    """A failure of a plug-in. `code` as in `PluginFailure`."""

    plugin: str
    code: str
    message: str


class _Plugin:
    def __init__(self, source: PluginSource, runner: Runner) -> None:
        self.source = source
        self.runner = runner
        self.failures = 0
        self.last_failure: str | None = None

    @property
    def working(self) -> bool:
        # BNW's own are asked for ever: a hostile document must not be able to switch them off.
        return self.source.own or self.failures < MAX_FAILURES


class ProfileService:
    """Answers questions about descriptors. Use as a context manager, or close it; safe to use from several threads."""

    def __init__(
        self,
        *,
        mode: Literal["contained", "inline"] = "contained",
        now_ms: Callable[[], int] | None = None,
        sources: Sequence[PluginSource] | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        """`now_ms` gives the time in milliseconds since the Unix epoch, for formats with dates in them; without it
        dates go unjudged. `sources` are the plug-ins to use instead of those that are installed."""
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._remembered: OrderedDict[tuple[ContentId, int | None], tuple[Description | None, str | None]] = (
            OrderedDict()
        )
        # A failure may be the machine's (it was busy, say): it is final for a document only when it happens again.
        self._suspects: OrderedDict[tuple[ContentId, int | None], None] = OrderedDict()
        self._faults: deque[PluginFault] = deque(maxlen=MAX_FAULTS)
        self._plugins: list[_Plugin] = []
        for source in find_plugins() if sources is None else sources:
            runner: Runner = InlineRunner(source)
            if mode == "contained":
                runner = WorkerRunner(source, bounds or Bounds())
            self._plugins.append(_Plugin(source, runner))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes."""
        for plugin in self._plugins:
            plugin.runner.close()

    def describe(self, descriptor: bytes) -> Description | None:
        """What the plug-in that claims `descriptor` says of it, or None: then it is opaque."""
        return self._find(descriptor)[0]

    def links(self, descriptor: bytes) -> tuple[ContentId, ...]:
        """Content ids of the further blobs that belong to `descriptor`; none for an opaque or invalid one."""
        description = self.describe(descriptor)
        return () if description is None else description.links

    def limits(self, descriptor: bytes) -> DescriptorLimits | None:
        """What a call of the capability may carry, or None if nothing is known."""
        description = self.describe(descriptor)
        return None if description is None else description.limits

    def check_input(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> tuple[LocatedError, ...]:
        """The faults of an input, with pointers into `data`; none for an opaque descriptor, which asks for nothing."""
        return self._check(descriptor, schemas, media_type, data, output=False)

    def check_output(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> tuple[LocatedError, ...]:
        """The faults of an output, as for an input."""
        return self._check(descriptor, schemas, media_type, data, output=True)

    def check_unread(self, descriptor: bytes, media_type: str, size: int, *, output: bool) -> tuple[LocatedError, ...]:
        """The faults of a payload of more than `MAX_CHECKED` bytes, which no plug-in looks into."""
        assert size > MAX_CHECKED
        return self._check(descriptor, {}, media_type, size, output=output)

    def starter(self, descriptor: bytes, schemas: Mapping[ContentId, bytes]) -> bytes | None:
        """An input to start from, or None if none can be built."""
        plugin = self._plugin(self._find(descriptor)[1])
        if plugin is None:
            return None
        try:
            document = plugin.runner.starter(descriptor, schemas)
        except PluginFailure as failure:
            self._failed(plugin, failure)
            return None
        plugin.failures = 0
        return document

    def read_as(self, descriptor: bytes, identifier: str) -> Description | None:
        """Judge `descriptor` by the named profile, claimed or not; None if there is no such plug-in."""
        for plugin in self._plugins:
            if self._identifier(plugin) == identifier:
                return self._described(plugin, descriptor, whoever=True)[0]
        return None

    def draft(self, identifier: str) -> str | None:
        """The named profile's commented starting point; None without such a plug-in, or if it has none."""
        for plugin in self._plugins:
            if self._identifier(plugin) == identifier:
                try:
                    return plugin.runner.draft()
                except PluginFailure as failure:
                    self._failed(plugin, failure)
        return None

    def plugins(self) -> tuple[PluginState, ...]:
        """The plug-ins, in the order in which they are asked. Loads those that have not been yet."""
        return tuple(
            PluginState(
                self._identifier(plugin),
                plugin.source.name,
                plugin.source.distribution,
                plugin.working,
                plugin.last_failure,
            )
            for plugin in self._plugins
        )

    def faults(self) -> tuple[PluginFault, ...]:
        """The latest failures of plug-ins, oldest first."""
        with self._lock:
            return tuple(self._faults)

    def _find(self, descriptor: bytes) -> tuple[Description | None, str | None]:
        """The description of `descriptor`, and the name of the plug-in that claims it."""
        if len(descriptor) > MAX_DESCRIPTOR:
            return None, None
        now = None if self._now_ms is None else self._now_ms()
        # Verdicts on dates hold for a day at most.
        key = (content_id(descriptor), None if now is None else now // DAY)
        with self._lock:
            known = self._remembered.get(key)
            if known is not None:
                self._remembered.move_to_end(key)
                return known
        found: tuple[Description | None, str | None] = (None, None)
        failed = False
        for plugin in self._plugins:
            if not plugin.working:
                continue
            description, failure = self._described(plugin, descriptor, whoever=False)
            failed = failed or failure
            if description is not None:
                found = (description, plugin.source.name)
                break
        with self._lock:
            if failed and key not in self._suspects:
                _remember(self._suspects, key, None)
            else:
                _remember(self._remembered, key, found)
        return found

    def _described(self, plugin: _Plugin, descriptor: bytes, *, whoever: bool) -> tuple[Description | None, bool]:
        """What `plugin` says of `descriptor`, and whether it failed to say anything."""
        now = None if self._now_ms is None else self._now_ms()
        try:
            if not whoever and not plugin.runner.may_claim(descriptor):
                return None, False
            description = plugin.runner.describe(descriptor, now, whoever=whoever)
        except PluginFailure as failure:
            self._failed(plugin, failure)
            if not (plugin.source.own or whoever):
                return None, True
            identifier = self._identifier(plugin) or plugin.source.name
            return Description(identifier, errors=(_as_error(failure),)), True
        plugin.failures = 0
        return description, False

    def _check(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes | int, *, output: bool
    ) -> tuple[LocatedError, ...]:
        """Of what is too large to be looked into, `data` is the size."""
        size = data if isinstance(data, int) else len(data)
        description, name = self._find(descriptor)
        plugin = self._plugin(name)
        if description is None or plugin is None:
            return ()
        if description.errors:
            return (DESCRIPTOR_INVALID,)
        if description.limits is not None:
            limits = description.limits.output if output else description.limits.input
            faults = outer_faults(limits, media_type, size)
            if faults or (plugin.source.bounded and not has_schema(limits, media_type)):
                return faults
        if not plugin.source.checks:
            return ()
        if isinstance(data, int) or size > MAX_CHECKED:
            return (too_large_to_check(size),)
        try:
            errors = plugin.runner.check(descriptor, schemas, media_type, data, output=output)
        except PluginFailure as failure:
            self._failed(plugin, failure)
            return (_as_error(failure),)
        plugin.failures = 0
        return errors

    def _plugin(self, name: str | None) -> _Plugin | None:
        return next((plugin for plugin in self._plugins if plugin.source.name == name), None)

    def _identifier(self, plugin: _Plugin) -> str | None:
        try:
            return plugin.runner.identifier()
        except PluginFailure as failure:
            self._failed(plugin, failure)
            return None

    def _failed(self, plugin: _Plugin, failure: PluginFailure) -> None:
        with self._lock:
            plugin.failures += 1
            plugin.last_failure = f"{failure.code}: {failure.message}"
            self._faults.append(PluginFault(plugin.source.name, failure.code, failure.message))


def _remember(memory: OrderedDict[_Key, _Kept], key: _Key, value: _Kept) -> None:
    memory[key] = value
    while len(memory) > MAX_REMEMBERED:
        memory.popitem(last=False)


def _as_error(failure: PluginFailure) -> LocatedError:
    return LocatedError("", failure.code, f"the profile plug-in {failure.message}", "try a smaller or simpler document")
