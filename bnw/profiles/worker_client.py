"""The node's end of a worker process: start it, ask it, and end it when it does not answer.

One worker serves one plug-in and stays warm, so that a question costs a fraction of a millisecond and not the start of
a process. A worker that died or overstayed is started again at the next question.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Final

from bnw.profiles.messages import MAX_REPLY, MAX_REQUEST
from bnw.profiles.registry import PluginSource
from bnw.profiles.worker_socket import receive_message, send_message
from bnw.wire.cbor import Value, decode_map, encode
from bnw.wire.errors import InvalidError
from bnw.wire.limits import GIB

_START: Final = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from bnw.profiles.worker import main; main()"
_KEPT_ENVIRONMENT: Final = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "SYSTEMROOT")
"""What a worker gets to see of the environment; passphrases and tokens are not among it."""
_OUT_OF_TIME: Final = (signal.SIGALRM, signal.SIGXCPU)
_SLACK_SECONDS: Final = 1.0
"""How much longer than the worker's own alarm its parent waits."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one plug-in may use. `memory_bytes` is address space, the interpreter's own included."""

    call_seconds: float = 5.0
    start_seconds: float = 20.0
    memory_bytes: int = 1 * GIB


class PluginFailure(Exception):
    """A plug-in gave no answer. `code` is `plugin-failed` (it raised), `plugin-crashed` or `plugin-hung`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class Worker:
    """A worker process for one plug-in. Safe to use from several threads, which take turns."""

    def __init__(self, source: PluginSource, bounds: Bounds) -> None:
        self._source = source
        self._bounds = bounds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None

    def ask(self, request: dict[str, Value]) -> Value:
        """The plug-in's answer; raises `PluginFailure`."""
        try:
            message = encode(request)
        except InvalidError as error:
            raise PluginFailure("plugin-failed", f"can't be asked this: {error}") from None
        if len(message) > MAX_REQUEST:
            raise PluginFailure("plugin-failed", f"the question is {len(message):,} bytes, over {MAX_REQUEST:,}")
        with self._lock:
            if self._connection is None:
                self._start()
            return self._exchange(message, self._bounds.call_seconds + _SLACK_SECONDS)

    def close(self) -> None:
        """End the process. It is started again if it is asked again."""
        with self._lock:
            self._end()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        arguments = (str(theirs.fileno()), self._source.target, str(self._bounds.memory_bytes))
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _START, json.dumps(sys.path), *arguments, str(self._bounds.call_seconds)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # an interrupt at the terminal is for the node
            )
        except OSError as error:
            ours.close()
            raise PluginFailure("plugin-crashed", f"no worker process can be started: {error}") from None
        finally:
            theirs.close()
        self._connection = ours
        self._exchange(None, self._bounds.start_seconds)

    def _exchange(self, message: bytes | None, seconds: float) -> Value:
        """Send, and wait for the reply. Whatever goes wrong ends the process, whose state nobody knows then."""
        connection = self._connection
        assert connection is not None
        connection.settimeout(seconds)
        try:
            if message is not None:
                send_message(connection, message)
            reply = decode_map(self._receive(connection), max_size=MAX_REPLY)
        except TimeoutError:
            self._end()
            raise PluginFailure("plugin-hung", "did not answer in time and was stopped") from None
        except OSError:
            raise self._death() from None
        except InvalidError as error:
            self._end()
            raise PluginFailure("plugin-failed", f"answered nonsense: {error}") from None
        except BaseException:
            self._end()  # an interrupt: the reply may still come, and would answer the next question
            raise
        if "ok" in reply:
            return reply["ok"]
        if message is None:
            self._end()
        raise PluginFailure("plugin-failed", str(reply.get("failed", "answered nonsense")))

    def _receive(self, connection: socket.socket) -> bytes:
        reply = receive_message(connection, most=MAX_REPLY)
        if reply is None:
            raise ConnectionResetError
        return reply

    def _death(self) -> PluginFailure:
        """What became of a worker that closed the connection."""
        process = self._process
        self._end()
        status = None if process is None else process.returncode
        if status is not None and -status in _OUT_OF_TIME:
            return PluginFailure("plugin-hung", "did not answer in time and was stopped")
        return PluginFailure("plugin-crashed", f"its process ended (status {status}); out of memory, or a crash")

    def _end(self) -> None:
        connection, process = self._connection, self._process
        self._connection = self._process = None
        if connection is not None:
            connection.close()
        if process is not None:
            try:
                process.wait(timeout=0.2)  # closing the connection ends a healthy one
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
