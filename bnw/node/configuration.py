"""What may be set in a node's `config.toml`. Everything is optional; unknown keys are errors, with a suggestion."""

from __future__ import annotations

import difflib
import json
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bnw.identity.private_file import write_private_file
from bnw.wire.addresses import check_announced_address, check_dial_address, check_listen_address
from bnw.wire.errors import ExitStatus, InvalidError, LocalError
from bnw.wire.limits import KIB, MAX_ENDPOINT_LENGTH, MAX_ENDPOINTS, MAX_MAILBOXES
from bnw.wire.names import check_name

MAX_CONFIGURATION = 64 * KIB
MAX_PEERS = 64
LOOPBACK = "/ip4/127.0.0.1/tcp/0"
LISTEN_HERE = (LOOPBACK,)
CHECKS = {
    "listen": check_listen_address,
    "announce": check_announced_address,
    "peers": check_dial_address,
    "mailboxes": check_dial_address,
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """A node's settings.

    `network` names the network whose catalog is shared; `listen` are addresses to be dialled at, on this machine only
    unless set otherwise; `announce` replaces them in offers, for example behind a port forwarding; `peers` are
    addresses to stay connected to; `mailboxes` are those of nodes that hold this identity's mail while it is away, and
    are named in its record; `clock_offset_ms` is for testnets that try skewed clocks.

    Raises `InvalidError`: `name` for the network, `too-many` or `too-long` for addresses.
    """

    network: str = "main"
    listen: tuple[str, ...] = LISTEN_HERE
    announce: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    mailboxes: tuple[str, ...] = ()
    clock_offset_ms: int = 0

    def __post_init__(self) -> None:
        check_name(self.network, "network name")
        bounds = {"listen": MAX_ENDPOINTS, "announce": MAX_ENDPOINTS, "peers": MAX_PEERS, "mailboxes": MAX_MAILBOXES}
        for key, most in bounds.items():
            addresses = getattr(self, key)
            if len(addresses) > most:
                raise InvalidError("too-many", f"{len(addresses)} addresses; at most {most} are possible", place=key)
            if any(len(address) > MAX_ENDPOINT_LENGTH for address in addresses):
                raise InvalidError("too-long", f"an address of over {MAX_ENDPOINT_LENGTH} characters", place=key)


def load_configuration(path: Path) -> Configuration:
    """Read `config.toml`; a missing file means all defaults. Raises `LocalError` (`configuration`)."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Configuration()
    except OSError as error:
        raise _fault(path, f"cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_CONFIGURATION:
        raise _fault(path, f"more than {MAX_CONFIGURATION:,} bytes")
    try:
        settings = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _fault(path, f"not readable as TOML: {error}") from error
    return _read(settings, path)


def write_configuration(path: Path, configuration: Configuration) -> None:
    """Write a commented file for people to edit. Raises `LocalError` (`write-failed`)."""

    def array(items: tuple[str, ...]) -> str:
        return json.dumps(items)  # a JSON array of text is a TOML array of basic strings too

    text = (
        "# The network whose catalog this node shares.\n"
        f"network = {json.dumps(configuration.network)}\n\n"
        "# Where others can dial this node: 127.0.0.1 is for this machine only; port 0 is chosen by the system.\n"
        f"listen = {array(configuration.listen)}\n\n"
        "# What offers say instead of the above, for example behind a port forwarding.\n"
        f"announce = {array(configuration.announce)}\n\n"
        "# Nodes to stay connected to.\n"
        f"peers = {array(configuration.peers)}\n\n"
        "# Nodes that hold mail for this identity while it is away. They must have allowed it: `bnw mailbox allow`.\n"
        f"mailboxes = {array(configuration.mailboxes)}\n"
    )
    write_private_file(path, text.encode())


def _read(settings: dict[str, Any], path: Path) -> Configuration:
    known = [field.name for field in fields(Configuration)]
    for key in settings:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise _fault(path, f"unknown setting {key!r}", hint)
    for key in CHECKS:
        if key in settings:
            settings[key] = _addresses(settings[key], key, path)
    if not isinstance(settings.get("network", ""), str):
        raise _fault(path, "network must be text")
    if type(settings.get("clock_offset_ms", 0)) is not int:
        raise _fault(path, "clock_offset_ms must be a whole number of milliseconds")
    try:
        return Configuration(**settings)
    except InvalidError as error:
        raise _fault(path, f"{error.place}: {error.cause}", error.cure or "mend the file") from None


def _addresses(value: object, key: str, path: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _fault(path, f"{key} must be a list of addresses", f'for example {key} = ["{LOOPBACK}"]')
    try:
        for item in value:
            CHECKS[key](item)
    except InvalidError as error:
        raise _fault(path, f"{key}: {error.cause}", error.cure or "mend the file") from None
    return tuple(value)


def _fault(path: Path, cause: str, cure: str = "mend the file or remove it to use the defaults") -> LocalError:
    return LocalError("configuration", cause, place=str(path), cure=cure, exit_status=ExitStatus.USAGE)
