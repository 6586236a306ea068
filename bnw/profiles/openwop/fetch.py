"""Getting the capabilities document of a live host: `GET /.well-known/openwop`, with everything bounded.

Whoever types a URL may have been given it by a stranger, so the request must not become a way to reach what only this
machine can reach. The host's name is resolved once; the request goes to the very address that was checked, so that a
name that answers differently the second time gains nothing; every address that it resolves to must be public, unless
the caller allows private ones. The same holds for each redirect, of which none is followed unless the caller says how
many. The document comes back as bytes, unread: the profile judges it.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from socket import SOCK_STREAM
from typing import Final
from urllib.parse import urljoin, urlsplit, urlunsplit

import anyio
import httpcore

from bnw.wire.errors import BnwError, ExitStatus, LocalError, RemoteError
from bnw.wire.limits import MAX_DESCRIPTOR

WELL_KNOWN: Final = "/.well-known/openwop"
MAX_REDIRECTS: Final = 5
MAX_URL: Final = 2048
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_NAT64: Final = ip_network("64:ff9b::/96")


def document_url(url: str) -> str:
    """The address of the document on the host that `url` names: a base URL, or the document's own.

    Raises `LocalError` (`url`) for anything but plain http or https.
    """
    cure = "use a URL such as https://host.example"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise LocalError("url", "is not an http or https URL", place=url[:80], cure=cure, exit_status=ExitStatus.USAGE)
    if parts.username is not None or parts.password is not None:
        raise LocalError("url", "a URL with a user name is not fetched", cure=cure, exit_status=ExitStatus.USAGE)
    path = parts.path if parts.path.endswith(WELL_KNOWN) else parts.path.rstrip("/") + WELL_KNOWN
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


async def fetch_capabilities(
    url: str,
    *,
    allow_private: bool = False,
    redirects: int = 0,
    timeout: float = 10.0,
    max_bytes: int = MAX_DESCRIPTOR,
    tls: ssl.SSLContext | None = None,
) -> bytes:
    """The document of the host at `url`, at most `max_bytes` of it, within `timeout` seconds in all.

    `redirects` (at most `MAX_REDIRECTS`) is how many are followed. Raises `LocalError`: `url`, `private-address`; and
    `RemoteError`: `http-unreachable`, `http-deadline`, `http-redirect`, `http-status`, `http-encoding`,
    `http-content-type`, `http-too-large`.
    """
    target = document_url(url)
    try:
        with anyio.fail_after(timeout):
            for _ in range(min(redirects, MAX_REDIRECTS) + 1):
                answer = await _get(target, allow_private, max_bytes, tls)
                if isinstance(answer, bytes):
                    return answer
                target = _next(target, answer)
    except TimeoutError:
        raise RemoteError(
            "http-deadline", f"did not answer in {timeout:g} seconds", place=target, exit_status=ExitStatus.DEADLINE
        ) from None
    cure = "fetch that address itself, or allow redirects" if redirects < 1 else None
    raise RemoteError("http-redirect", f"redirects to {target[:200]!r}", place=url, cure=cure)


async def _get(url: str, allow_private: bool, max_bytes: int, tls: ssl.SSLContext | None) -> bytes | str:
    """One request: the body, or where a redirect leads."""
    headers = [("Accept", "application/json"), ("Accept-Encoding", "identity"), ("User-Agent", "bnw")]
    backend = _CheckedBackend(allow_private)
    try:
        async with (
            httpcore.AsyncConnectionPool(ssl_context=tls, network_backend=backend, max_connections=1) as pool,
            pool.stream("GET", url, headers=headers) as response,
        ):
            received = {name.lower(): value.decode("latin-1") for name, value in response.headers}
            if response.status in _REDIRECTS:
                return received.get(b"location", "")
            if response.status != 200:
                raise RemoteError("http-status", f"answers with status {response.status}", place=url)
            if received.get(b"content-encoding", "identity") != "identity":
                raise RemoteError("http-encoding", "answers in an encoding that was not asked for", place=url)
            _check_type(url, received.get(b"content-type", "application/json"))
            length = received.get(b"content-length", "")
            if length.isdecimal() and len(length) < 20 and int(length) > max_bytes:
                raise _too_large(url, max_bytes)
            body = bytearray()
            async for chunk in response.aiter_stream():
                body += chunk
                if len(body) > max_bytes:
                    raise _too_large(url, max_bytes)
            return bytes(body)
    except BnwError:
        raise
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
        cause = f"can't be reached: {str(error)[:200] or type(error).__name__}"
        raise RemoteError("http-unreachable", cause, place=url, exit_status=ExitStatus.UNREACHABLE) from None


def _check_type(url: str, content_type: str) -> None:
    """Refuse what says that it is no JSON, such as the page of a site that answers everything with one."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json" and not media_type.endswith("+json"):
        cause = f"answers with {media_type[:80]!r} where JSON is expected"
        cure = "is this an OpenWOP host? If the document is right all the same, save it and import the file"
        raise RemoteError("http-content-type", cause, place=url, cure=cure)


def _too_large(url: str, max_bytes: int) -> RemoteError:
    return RemoteError("http-too-large", f"sends more than {max_bytes:,} bytes", place=url)


def _next(url: str, location: str) -> str:
    target = urljoin(url, location)
    parts = urlsplit(target)
    if not location or len(target) > MAX_URL or parts.scheme not in ("http", "https") or parts.username is not None:
        raise RemoteError("http-redirect", f"redirects to {location[:80]!r}, which can't be fetched", place=url)
    if url.startswith("https:") and parts.scheme != "https":
        raise RemoteError("http-redirect", "redirects from https to http", place=url)
    return target


def is_public(address: str) -> bool:
    """Whether an IP address is one that anybody on the internet could reach."""
    ip: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        # Four ways to write an IPv4 address as an IPv6 one; what counts is where it leads.
        embedded = ip.ipv4_mapped or ip.sixtofour
        if ip.teredo is not None:
            embedded = ip.teredo[1]
        if ip in _NAT64:
            embedded = IPv4Address(int(ip) & 0xFFFFFFFF)
        if embedded is not None:
            return is_public(str(embedded))
    return ip.is_global and not ip.is_multicast


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Resolves a name, checks what it resolves to, and connects to just that."""

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        found = await anyio.getaddrinfo(host, port, type=SOCK_STREAM)
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not self._allow_private:
            for address in addresses:
                if not is_public(address):
                    raise LocalError(
                        "private-address",
                        f"{address} is not a public address",
                        place=host,
                        cure="allow private addresses if you mean to reach a host on your own network",
                    )
        failure: Exception = OSError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except httpcore.NetworkError as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise LocalError("url", "a socket in the file system is not a host")

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)
