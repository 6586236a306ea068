"""A long-lived service on this machine that answers calls over HTTP: one POST per call.

The body is the input, `Content-Type` its media type, and the headers that begin with `BNW-` say the rest
(`docs/calls.md`). An answer of 200 is the output; any other is a failure. When the call is to stop, the connection is
closed. Progress is reported to the node's local API, at `/v1/calls/<invocation>/progress`.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from urllib.parse import urlsplit

from bnw.blobs.offload import worker_threads
from bnw.identity.keys import did_key
from bnw.inbox.file_source import FileSource
from bnw.inbox.payload import PayloadFile
from bnw.invoke.handler import Answer, Call, HandlerFailure
from bnw.invoke.spool import Spool
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.limits import KIB
from bnw.wire.names import is_media_type

HERE = frozenset({"127.0.0.1", "::1", "localhost"})
MAX_DETAIL = 8 * KIB
CONNECT_TIMEOUT = 5.0


class ServiceHandler:
    """See the module docstring. Raises `LocalError` (`url`) for what is not a plain HTTP URL on this machine."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname not in HERE or parts.username is not None:
            raise LocalError(
                "url",
                "a service must be asked over http on this machine",
                place=url,
                cure="use http://127.0.0.1:PORT/PATH",
                exit_status=ExitStatus.USAGE,
            )
        self._url = url

    async def __call__(self, call: Call) -> Answer:
        import httpx  # takes a tenth of a second, and few providers need it

        headers = {
            "Accept-Encoding": "identity",  # a compressed answer could be far larger than it looks
            "Content-Length": str(call.input.size),
            "Content-Type": call.input.media_type,
            "BNW-Capability": call.capability.hex(),
            "BNW-Deadline": str(call.deadline),
            "BNW-Invocation": call.invocation.hex(),
            "BNW-Requester": did_key(call.requester),
        }
        timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT)
        detail = bytearray()
        try:
            async with AsyncExitStack() as stack:
                output = stack.enter_context(Spool(call))
                content: bytes | FileSource
                if isinstance(call.input, PayloadFile):
                    content = await stack.enter_async_context(FileSource(call.input.path, worker_threads(1)))
                else:
                    content = call.data
                client = await stack.enter_async_context(
                    httpx.AsyncClient(timeout=timeout, trust_env=False, follow_redirects=False)
                )
                response = await stack.enter_async_context(
                    client.stream("POST", self._url, content=content, headers=headers)
                )
                good = response.status_code == httpx.codes.OK
                async for piece in response.aiter_raw():
                    if not good:
                        detail += piece
                        if len(detail) > MAX_DETAIL:
                            break
                    elif not await output.add(piece):
                        raise HandlerFailure("output-too-large", f"the service sent more than {output.most:,} bytes")
        except httpx.HTTPError as error:
            raise HandlerFailure(
                "service-unreachable",
                "the provider's service did not answer",
                detail=f"{type(error).__name__}: {error}",
            ) from error
        if not good:
            said = bytes(detail[:MAX_DETAIL]).decode(errors="replace")
            raise HandlerFailure("service-status", f"the service answered {response.status_code}", detail=said)
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return output.answer(media_type if is_media_type(media_type) else None)
