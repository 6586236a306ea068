"""Protocol negotiation (multistream-select) with short lines, and proposing in one round trip.

Faults (libp2p 0.8.1): a line may claim any length up to 2^64, and its reader buffers all that comes of it; a line that
is not UTF-8 raises past every handler, which in a stream ends the program. A proposal takes two round trips.

On the stock library: `ff 0a` instead of a protocol name on a new stream ends the program
(tests/transport/test_crash_frames.py).

Can go when multistream-select bounds its lines and reports bad text as its own error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from libp2p.abc import IMultiselectCommunicator
from libp2p.custom_types import StreamHandlerFn, TProtocol
from libp2p.io.abc import ReadWriteCloser
from libp2p.io.exceptions import IOException
from libp2p.protocol_muxer.exceptions import MultiselectClientError, MultiselectError
from libp2p.protocol_muxer.generic_selector import GenericMultistreamSelector
from libp2p.protocol_muxer.multiselect import DEFAULT_NEGOTIATE_TIMEOUT, MULTISELECT_PROTOCOL_ID, Multiselect
from libp2p.protocol_muxer.multiselect_client import PROTOCOL_NOT_FOUND_MSG, MultiselectClient
from libp2p.protocol_muxer.multiselect_communicator import MultiselectCommunicator
from libp2p.utils import encode_delim

MAX_LINE = 1024
T = TypeVar("T")


class ShortLines(ReadWriteCloser):
    """Refuses to read more than a line may have."""

    def __init__(self, inner: ReadWriteCloser) -> None:
        self._inner = inner

    async def read(self, n: int | None = None) -> bytes:
        if n is None or n > MAX_LINE:
            raise IOException(f"a negotiation line has at most {MAX_LINE} bytes")
        return await self._inner.read(n)

    async def write(self, data: bytes) -> None:
        await self._inner.write(data)

    async def close(self) -> None:
        await self._inner.close()

    def get_remote_address(self) -> tuple[str, int] | None:
        return self._inner.get_remote_address()


class BoundedMultiselect(Multiselect):
    async def negotiate(
        self, communicator: IMultiselectCommunicator, negotiate_timeout: int = DEFAULT_NEGOTIATE_TIMEOUT
    ) -> tuple[TProtocol | None, StreamHandlerFn | None]:
        try:
            return await super().negotiate(_shortened(communicator), negotiate_timeout)
        except UnicodeDecodeError as error:
            raise MultiselectError("a line is not UTF-8") from error


class BoundedClient(MultiselectClient):
    async def select_one_of(
        self,
        protocols: Sequence[TProtocol],
        communicator: IMultiselectCommunicator,
        negotiate_timeout: int = DEFAULT_NEGOTIATE_TIMEOUT,
    ) -> TProtocol:
        try:
            return await super().select_one_of(protocols, _shortened(communicator), negotiate_timeout)
        except UnicodeDecodeError as error:
            raise MultiselectClientError("a line is not UTF-8") from error


def bound_lines(selector: GenericMultistreamSelector[T]) -> None:
    """Cure the selector of a security or muxer upgrade."""
    selector.multiselect = BoundedMultiselect(selector.multiselect.handlers)
    selector.multiselect_client = BoundedClient()


async def propose(stream: ReadWriteCloser, protocol: str) -> bool:
    """Ask for `protocol` on a new stream; whether the peer speaks it. Raises what the stream raises."""
    await stream.write(encode_delim(MULTISELECT_PROTOCOL_ID.encode()) + encode_delim(protocol.encode()))
    answers = MultiselectCommunicator(ShortLines(stream))
    if await answers.read() != MULTISELECT_PROTOCOL_ID:
        raise MultiselectClientError("the peer answers with something else than multistream-select")
    answer = await answers.read()
    if answer not in (protocol, PROTOCOL_NOT_FOUND_MSG):
        raise MultiselectClientError("the peer answers with another protocol")
    return answer == protocol


def _shortened(communicator: IMultiselectCommunicator) -> MultiselectCommunicator:
    assert isinstance(communicator, MultiselectCommunicator)
    return MultiselectCommunicator(ShortLines(communicator.read_writer))
