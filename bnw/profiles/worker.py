"""The worker process: runs one plug-in, one question at a time, within limits that the kernel enforces.

Started by `worker_client` with a socket to its parent. Memory is limited for the whole process, time for each question:
the alarm of an interval timer ends the process when the deadline passes, and the limit on processor time does when the
plug-in has found a way around that. A plug-in that raises costs one answer; one that dies takes only this process with
it. It can't write files. It is *not* jailed: a plug-in is code that someone installed, trusted not to be malicious but
not trusted to be flawless.
"""

from __future__ import annotations

import math
import resource
import signal
import socket
import sys
from typing import Any

from bnw.profiles.contract import Profile
from bnw.profiles.messages import (
    MAX_REQUEST,
    description_to_value,
    errors_to_value,
    schemas_from_value,
)
from bnw.profiles.operations import check_payload, describe_document, starter_document
from bnw.profiles.registry import PluginSource
from bnw.profiles.worker_socket import receive_message, send_message
from bnw.wire.cbor import Value, decode_map, encode

_MAX_NOTE = 200


def main() -> None:
    """Serve until the parent closes the socket. Arguments: descriptor, plug-in, bytes of memory, seconds a question."""
    descriptor, target, memory, seconds = sys.argv[2:6]
    sys.dont_write_bytecode = True
    connection = socket.socket(fileno=int(descriptor))
    resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    serve(connection, target, float(seconds))


def serve(connection: socket.socket, target: str, seconds: float) -> None:
    """Load the plug-in, say so, and answer."""
    _start_clock(seconds)
    try:
        profile = PluginSource("", target).load()
        greeting: dict[str, Value] = {"ok": str(profile.identifier)}
    except Exception as error:  # noqa: BLE001 - whatever a plug-in raises is its failure, and is reported as that
        send_message(connection, encode({"failed": _note(error)}))
        return
    send_message(connection, encode(greeting))
    signal.setitimer(signal.ITIMER_REAL, 0)
    while True:
        request = receive_message(connection, most=MAX_REQUEST)
        if request is None:
            return
        _start_clock(seconds)
        try:
            reply = encode({"ok": _answer(profile, decode_map(request, max_size=MAX_REQUEST))})
        except MemoryError:
            return  # what is left of this process can't be relied on; the parent sees it end
        except Exception as error:  # noqa: BLE001 - as above
            reply = encode({"failed": _note(error)})
        send_message(connection, reply)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(profile: Profile[Any], request: dict[str, Value]) -> Value:
    document: Any = request.get("document")
    match request["ask"]:
        case "describe":
            now: Any = request["now"]
            description = describe_document(profile, document, now, whoever=request["whoever"] is True)
            return None if description is None else description_to_value(description)
        case "check":
            media_type: Any = request["media_type"]
            data: Any = request["data"]
            schemas = schemas_from_value(request["schemas"])
            output = request["output"] is True
            return errors_to_value(check_payload(profile, document, schemas, media_type, data, output=output))
        case "starter":
            return starter_document(profile, document, schemas_from_value(request["schemas"]))
        case "draft":
            return profile.draft()
        case "identifier":
            return str(profile.identifier)
        case other:
            raise ValueError(f"no such question: {other!r}")


def _start_clock(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _note(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    return text[:_MAX_NOTE].encode("utf-8", "replace").decode()
