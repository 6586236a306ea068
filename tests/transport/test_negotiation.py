"""multistream-select with the cures: the bytes of a proposal, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libp2p.custom_types import TProtocol
from libp2p.io.abc import ReadWriteCloser
from libp2p.protocol_muxer.exceptions import MultiselectClientError, MultiselectError
from libp2p.protocol_muxer.multiselect import Multiselect
from libp2p.protocol_muxer.multiselect_communicator import MultiselectCommunicator

from bnw.transport.p2p.cures.negotiation import MAX_LINE, BoundedClient, BoundedMultiselect, propose

pytestmark = pytest.mark.anyio

NOISE = TProtocol("/noise")
GREETING_LINE = b"\x13/multistream/1.0.0\n"


class Script(ReadWriteCloser):
    """A stream on which the other side has said everything beforehand."""

    def __init__(self, said: bytes) -> None:
        self._said = said
        self.written = b""
        self.largest_read = 0

    async def read(self, n: int | None = None) -> bytes:
        assert n is not None
        self.largest_read = max(self.largest_read, n)
        piece, self._said = self._said[:n], self._said[n:]
        return piece

    async def write(self, data: bytes) -> None:
        self.written += data

    async def close(self) -> None:
        return

    def get_remote_address(self) -> None:
        return None


async def test_a_proposal_goes_out_with_the_greeting() -> None:
    stream = Script(GREETING_LINE + b"\x07/noise\n")
    assert await propose(stream, "/noise")
    assert stream.written == GREETING_LINE + b"\x07/noise\n"


async def test_a_refused_proposal_is_no_error() -> None:
    assert not await propose(Script(GREETING_LINE + b"\x03na\n"), "/noise")


async def test_the_answering_side_takes_the_first_proposal_that_it_speaks() -> None:
    stream = Script(GREETING_LINE + b"\x05/tls\n" + b"\x07/noise\n")
    assert await BoundedMultiselect({NOISE: None}).negotiate(MultiselectCommunicator(stream)) == (NOISE, None)
    assert stream.written == GREETING_LINE + b"\x03na\n" + b"\x07/noise\n"


ENDLESS = GREETING_LINE + b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(100)
BROKEN = [
    pytest.param(b"\x05hello\n", id="another greeting"),
    pytest.param(ENDLESS, id="a line without end"),
    pytest.param(GREETING_LINE + b"\x03abc", id="no newline"),
    pytest.param(GREETING_LINE + b"\x02\xff\n", id="no text"),
    pytest.param(GREETING_LINE + b"\x00", id="an empty line"),
    pytest.param(GREETING_LINE, id="silence"),
]


@pytest.mark.parametrize("said", BROKEN)
async def test_what_breaks_the_protocol_is_refused_as_such(said: bytes) -> None:
    with pytest.raises(MultiselectError):
        await BoundedMultiselect({NOISE: None}).negotiate(MultiselectCommunicator(Script(said)))
    with pytest.raises(MultiselectClientError):
        await BoundedClient().select_one_of([NOISE], MultiselectCommunicator(Script(said)))


async def test_only_the_stock_library_reads_as_much_as_it_is_told() -> None:
    for kind, bounded in ((Multiselect, False), (BoundedMultiselect, True)):
        stream = Script(ENDLESS)
        with pytest.raises(MultiselectError):
            await kind({NOISE: None}).negotiate(MultiselectCommunicator(stream))
        assert (stream.largest_read <= MAX_LINE) == bounded


async def test_only_the_stock_library_fails_otherwise_over_a_line_that_is_no_text() -> None:
    with pytest.raises(UnicodeDecodeError):
        await Multiselect({NOISE: None}).negotiate(MultiselectCommunicator(Script(GREETING_LINE + b"\x02\xff\n")))


@given(st.binary(max_size=100))
async def test_no_bytes_make_the_answering_side_fail_otherwise(said: bytes) -> None:
    for start in (b"", GREETING_LINE):
        with pytest.raises(MultiselectError):
            await BoundedMultiselect({TProtocol("/x" * 60): None}).negotiate(
                MultiselectCommunicator(Script(start + said))
            )
