"""A long-lived service on this machine that answers calls over HTTP: one POST per call.

The body is the input, `Content-Type` its media type, and the headers that begin with `BNW-` say the rest
(`docs/calls.md`). An answer of 200 is the output; any other is a failure. When the call is to stop, the connection is
closed. Progress is reported to the node's local API, at `/v1/calls/<invocation>/progress`.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from bnw.identity.keys import did_key
from bnw.invoke.handler import Answer, Call, HandlerFailure
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
            "Content-Type": call.input.media_type,
            "BNW-Capability": call.capability.hex(),
            "BNW-Deadline": str(call.deadline),
            "BNW-Invocation": call.invocation.hex(),
            "BNW-Requester": did_key(call.requester),
        }
        timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT)
        output = bytearray()
        try:
            async with (
                httpx.AsyncClient(timeout=timeout, trust_env=False, follow_redirects=False) as client,
                client.stream("POST", self._url, content=call.input.data, headers=headers) as response,
            ):
                good = response.status_code == httpx.codes.OK
                async for piece in response.aiter_raw():
                    output += piece
                    if len(output) > (call.max_output if good else MAX_DETAIL):
                        break
        except httpx.HTTPError as error:
            raise HandlerFailure(
                "service-unreachable",
                "the provider's service did not answer",
                detail=f"{type(error).__name__}: {error}",
            ) from error
        if not good:
            detail = bytes(output[:MAX_DETAIL]).decode(errors="replace")
            raise HandlerFailure("service-status", f"the service answered {response.status_code}", detail=detail)
        if len(output) > call.max_output:
            raise HandlerFailure("output-too-large", f"the service sent more than {call.max_output:,} bytes")
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return Answer(bytes(output), media_type if is_media_type(media_type) else None)
