"""Multiaddrs: what we can listen on and dial, and how we write our own.

BNW speaks TCP only, so an address is `/ip4|ip6|dns|dns4|dns6/<host>/tcp/<port>`; to dial it must end in `/p2p/<peer>`,
because the Noise handshake proves an identity and there must be one to compare it with.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from libp2p.peer.id import ID
from libp2p.utils.address_validation import get_available_interfaces
from multiaddr import Multiaddr

from bnw.transport.interface import PeerId
from bnw.wire.errors import ExitStatus, LocalError

MAX_ADDRESS_LENGTH = 512
_HOST_PROTOCOLS = ("ip4", "ip6", "dns", "dns4", "dns6")
_CURE = "write /ip4/<address>/tcp/<port>/p2p/<peer id>, or ip6, dns, dns4, dns6 in the place of ip4"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A TCP host and port."""

    host: str
    port: int

    def multiaddr(self, peer: PeerId | None = None) -> str:
        kind = "ip6" if ":" in self.host else "ip4"
        text = f"/{kind}/{self.host}/tcp/{self.port}"
        return text if peer is None else f"{text}/p2p/{peer}"


def parse_dial_address(address: str) -> tuple[Endpoint, PeerId]:
    """Where to connect, and whom to expect there. Raises `LocalError` (`address`)."""
    endpoint, rest = _parse(address)
    if len(rest) != 1 or rest[0][0] != "p2p":
        raise _error(address, "it does not end in the peer id that is expected there")
    try:
        peer = PeerId(ID.from_string(rest[0][1]).to_base58())
    except Exception:  # noqa: BLE001 - the library raises whatever its decoder raises
        raise _error(address, "it holds no valid peer id") from None
    return endpoint, peer


def parse_listen_address(address: str) -> Endpoint:
    """Where to listen. Raises `LocalError` (`address`)."""
    endpoint, rest = _parse(address)
    if rest:
        raise _error(address, "an address to listen on ends with the port")
    try:
        ipaddress.ip_address(endpoint.host)
    except ValueError:
        raise _error(address, "listening needs an IP address, not a name") from None
    return endpoint


def parse_announced_address(address: str) -> Multiaddr:
    """An address to tell others, without a peer id. Raises `LocalError` (`address`)."""
    _, rest = _parse(address)
    return Multiaddr(address.removesuffix(f"/{rest[0][0]}/{rest[0][1]}") if rest else address)


def dialable(listening: Endpoint) -> list[Endpoint]:
    """The endpoints at which a listener can be reached: a wildcard stands for all addresses of this machine."""
    if not ipaddress.ip_address(listening.host).is_unspecified:
        return [listening]
    kind = "ip6" if ":" in listening.host else "ip4"
    found = [str(a.value_for_protocol(kind)) for a in get_available_interfaces(listening.port) if kind in _names(a)]
    return [Endpoint(host, listening.port) for host in dict.fromkeys(found)] or [listening]


def endpoint_of(address: Multiaddr) -> Endpoint:
    """Host and port of an address that one of the functions above has made or accepted."""
    return _parse(str(address))[0]


def _names(address: Multiaddr) -> list[str]:
    return [protocol.name for protocol in address.protocols()]


def _parse(address: str) -> tuple[Endpoint, list[tuple[str, str]]]:
    if len(address) > MAX_ADDRESS_LENGTH:
        raise _error(f"{address[:60]}...", f"it is longer than {MAX_ADDRESS_LENGTH} characters")
    try:
        parts = [(protocol.name, str(value)) for protocol, value in Multiaddr(address).items()]
    except Exception as error:  # noqa: BLE001 - likewise
        raise _error(address, f"it is no multiaddr: {error}") from None
    if len(parts) < 2 or parts[0][0] not in _HOST_PROTOCOLS or parts[1][0] != "tcp":
        raise _error(address, "it is not a TCP address")
    return Endpoint(parts[0][1], int(parts[1][1])), parts[2:]


def _error(address: str, why: str) -> LocalError:
    return LocalError(
        "address", f"this address cannot be used: {why}", place=address, cure=_CURE, exit_status=ExitStatus.USAGE
    )
