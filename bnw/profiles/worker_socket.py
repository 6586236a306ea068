"""Messages on the socket between a worker and its client: a length, then as many bytes."""

from __future__ import annotations

import socket
from typing import Final

from bnw.wire.errors import InvalidError

LENGTH_SIZE: Final = 4


def send_message(connection: socket.socket, data: bytes) -> None:
    connection.sendall(len(data).to_bytes(LENGTH_SIZE) + data)


def receive_message(connection: socket.socket, *, most: int) -> bytes | None:
    """The next message; None if the other side has ended.

    Raises `InvalidError` (`plugin-answer`) above `most` bytes.
    """
    head = _receive_exactly(connection, LENGTH_SIZE)
    if head is None:
        return None
    size = int.from_bytes(head)
    if size > most:
        raise InvalidError("plugin-answer", f"a message of {size:,} bytes, where at most {most:,} are allowed")
    return _receive_exactly(connection, size)


def _receive_exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray(size)
    view = memoryview(data)
    got = 0
    while got < size:
        count = connection.recv_into(view[got:])
        if count == 0:
            return None
        got += count
    return bytes(data)
