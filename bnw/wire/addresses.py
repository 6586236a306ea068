"""The text form of the addresses at which nodes are reached, such as `/ip4/192.0.2.7/tcp/4001/p2p/12D3KooW...`.

Only the form is checked here, so that options and configuration files can be refused without loading the network. The
transport reads an address for good when it uses it.
"""

from __future__ import annotations

import re

from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_ENDPOINT_LENGTH

_ADDRESS = re.compile(r"/(ip4|ip6|dns|dns4|dns6)/([^/]+)/tcp/(\d{1,5})(?:/p2p/([^/]+))?")
_PEER_ID = re.compile(r"[1-9A-HJ-NP-Za-km-z]{32,128}")
"""Base58. Which key it stands for, only the transport can tell."""
_HOST_NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})")
MAX_PORT = 65_535

_DIAL = "write /ip4/<address>/tcp/<port>/p2p/<peer id>, or ip6, dns, dns4, dns6 in the place of ip4"
_LISTEN = "write /ip4/<address>/tcp/<port>, or ip6 in the place of ip4"


def check_dial_address(text: str) -> None:
    """Raises `InvalidError` (`address`) unless `text` has the form of an address to connect to."""
    _, _, peer = _parts(text, _DIAL)
    if peer is None:
        raise _invalid(text, "does not end in the id of the peer that is expected there", _DIAL)


def check_listen_address(text: str) -> None:
    """Raises `InvalidError` (`address`) unless `text` has the form of an address to listen on."""
    kind, _, peer = _parts(text, _LISTEN)
    if peer is not None:
        raise _invalid(text, "goes on after the port", _LISTEN)
    if not kind.startswith("ip"):
        raise _invalid(text, "holds a name, and listening needs an IP address", _LISTEN)


def check_announced_address(text: str) -> None:
    """Raises `InvalidError` (`address`) unless `text` has the form of an address, with or without the peer's id."""
    _parts(text, _DIAL)


def _parts(text: str, cure: str) -> tuple[str, str, str | None]:
    match = _ADDRESS.fullmatch(text) if len(text) <= MAX_ENDPOINT_LENGTH else None
    if match is None:
        raise _invalid(text, "is not the address of a node", cure)
    kind, host, port, peer = match.groups()
    if not _is_host(kind, host):
        raise _invalid(text, f"holds no {'host name' if kind.startswith('dns') else kind + ' address'}", cure)
    if int(port) > MAX_PORT:
        raise _invalid(text, f"has a port above {MAX_PORT:,}", cure)
    if peer is not None and _PEER_ID.fullmatch(peer) is None:
        raise _invalid(text, "does not end in a peer id", cure)
    return kind, host, peer


def _is_host(kind: str, host: str) -> bool:
    if kind.startswith("dns"):
        return _HOST_NAME.fullmatch(host) is not None
    import ipaddress  # only an address needs it, and most commands have none

    try:
        (ipaddress.IPv4Address if kind == "ip4" else ipaddress.IPv6Address)(host)
    except ValueError:
        return False
    return True


def _invalid(text: str, why: str, cure: str) -> InvalidError:
    shown = text if len(text) <= 100 else f"{text[:97]}..."
    return InvalidError("address", f"{shown!r} {why}", cure=cure)
