"""Routes about calls that were made: list, show, wait, cancel, prove; and the progress of calls that run here."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from bnw.api.render import Json
from bnw.api.requests import (
    Emit,
    LineStream,
    answer,
    bad_request,
    blamed_on,
    bytes_of,
    content_id_of,
    read_json_body,
    text_of,
)
from bnw.api.routes_calls import follow_call
from bnw.identity.keys import did_key
from bnw.invoke.asked import AskedCall
from bnw.node.node import Node
from bnw.objects.calls import Receipt
from bnw.objects.catalog import CapabilityManifest
from bnw.objects.signed import trusted_object
from bnw.wire.content_id import ContentId
from bnw.wire.limits import MAX_PAYLOAD, MAX_PAYLOAD_IN_MEMORY

MAX_SHOWN = 1000


def invocation_routes(node: Node) -> list[Route]:
    async def found(request: Request) -> tuple[ContentId, AskedCall]:
        with blamed_on("the invocation's id"):
            return await node.calls.find(request.path_params["id"])

    async def all_calls(request: Request) -> Response:
        calls = await node.calls.all()
        return answer({"invocations": [asked_json(id, call) for id, call in calls[:MAX_SHOWN]], "total": len(calls)})

    async def show(request: Request) -> Response:
        return answer(asked_json(*await found(request)))

    async def cancel(request: Request) -> Response:
        id, _ = await found(request)
        phase = await node.calls.cancel(id)
        _, call = await node.calls.find(id.hex())
        return answer({**asked_json(id, call), "phase": phase})

    async def wait(request: Request) -> Response:
        id, _ = await found(request)
        most = bytes_of(request.query_params, "max_output", MAX_PAYLOAD_IN_MEMORY, most=MAX_PAYLOAD)

        async def produce(emit: Emit) -> None:
            await follow_call(emit, lambda on_step: node.calls.wait(id, on_step, max_output=most))

        return LineStream(produce)

    async def output(request: Request) -> Response:
        """The output of a call that has completed, as it is. Ends early if it is not what the provider declared."""
        _, call = await found(request)
        stored = node.calls.outputs.stored(call)

        async def pieces() -> AsyncIterator[bytes]:
            async with node.calls.outputs.opened(stored) as opened:
                async for piece in opened:
                    yield piece

        headers = {"content-length": str(stored.size)}
        return StreamingResponse(pieces(), headers=headers, media_type="application/octet-stream")

    async def let_go(request: Request) -> Response:
        id, call = await found(request)
        await node.calls.outputs.let_go(node.calls.outputs.stored(call))
        return answer({"invocation_id": id.hex()})

    async def proof(request: Request) -> Response:
        _, call = await found(request)
        return Response(await node.calls.export(call), media_type="application/cbor")

    async def progress(request: Request) -> Response:
        id = content_id_of(request.path_params["id"], "the call's id")
        body = await read_json_body(request)
        fraction, note = body.get("fraction"), body.get("note")
        if fraction is not None and not isinstance(fraction, int | float):
            raise bad_request("a number is needed", "fraction")
        with blamed_on("progress"):
            node.report_progress(id, text_of(body, "stage"), fraction, note)
        return answer({"reported": id.hex()})

    return [
        Route("/v1/invocations", all_calls),
        Route("/v1/invocations/{id}", show),
        Route("/v1/invocations/{id}/cancel", cancel, methods=["POST"]),
        Route("/v1/invocations/{id}/wait", wait, methods=["POST"]),
        Route("/v1/invocations/{id}/output", output),
        Route("/v1/invocations/{id}/output/let-go", let_go, methods=["POST"]),
        Route("/v1/invocations/{id}/proof", proof),
        Route("/v1/calls/{id}/progress", progress, methods=["POST"]),
    ]


def asked_json(id: ContentId, call: AskedCall) -> Json:
    body, receipt, update = call.body, call.signed_receipt, call.latest_update
    manifest = trusted_object(call.manifest).body
    assert isinstance(manifest, CapabilityManifest)
    return {
        "invocation_id": id.hex(),
        "capability": body.capability.hex(),
        "name": manifest.name,
        "provider": did_key(body.provider),
        "state": call.state,
        "created": body.created,
        "deadline": body.deadline,
        "expires": body.expires,
        "inactivity_ms": body.inactivity,
        "delegations": [link.hex() for link in body.delegations],
        "cancellation_id": None if call.cancellation is None else trusted_object(call.cancellation).id.hex(),
        "updates": len(call.updates),
        "stage": None if update is None else update.stage,
        "fraction": None if update is None or update.fraction is None else update.fraction / 1000,
        "note": None if update is None else update.note,
        **_receipt_json(call),
        "receipt_id": None if receipt is None else receipt.id.hex(),
        "contradicted": call.second_receipt is not None,
    }


def _receipt_json(call: AskedCall) -> Json:
    receipt = call.signed_receipt
    if receipt is None:
        return {"status": None, "code": None, "received": None, "started": None, "finished": None}
    body = receipt.body
    assert isinstance(body, Receipt)
    return {
        "status": body.status,
        "code": None if body.fault is None else body.fault.code,
        "received": body.received,
        "started": body.started,
        "finished": body.finished,
    }
