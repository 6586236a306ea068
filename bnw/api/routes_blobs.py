"""Routes of blobs: keep, fetch, list, say why they are kept, and collect those that nothing needs."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bnw.api.render import Json
from bnw.api.requests import answer, content_id_of, flag_of, read_body, read_json_body, text_of
from bnw.node.keeping import GRACE, KeptBlob
from bnw.node.node import Node
from bnw.wire.limits import MAX_BLOB

MAX_LISTED = 10_000


def blob_routes(node: Node) -> list[Route]:
    async def add(request: Request) -> Response:
        data = await read_body(request, MAX_BLOB)
        return answer({"id": (await node.add_blob(data)).hex(), "size": len(data)})

    async def get(request: Request) -> Response:
        id = content_id_of(request.path_params["id"], "the blob's id")
        return Response(await node.get_blob(id), media_type="application/octet-stream")

    async def list_all(request: Request) -> Response:
        kept = await node.keeping.listed()
        return answer({"blobs": [_blob_json(blob) for blob in kept[:MAX_LISTED]], "total": len(kept)})

    async def why(request: Request) -> Response:
        id = content_id_of(request.path_params["id"], "the blob's id")
        size = await node.blob_size(id)
        reasons = await node.keeping.reasons(id)
        return answer(
            {
                "id": id.hex(),
                "size": size,
                "reasons": list(reasons),
                "unused_since": node.keeping.unused_since(id),
                "grace_ms": GRACE,
            }
        )

    async def collect(request: Request) -> Response:
        dry_run = flag_of(await read_json_body(request), "dry_run")
        collected = await node.keeping.collect(dry_run=dry_run)
        return answer(
            {
                "dry_run": dry_run,
                "removed": collected.removed,
                "removed_bytes": collected.removed_bytes,
                "waiting": collected.waiting,
                "waiting_bytes": collected.waiting_bytes,
                "grace_ms": GRACE,
            }
        )

    async def pin(request: Request) -> Response:
        id = content_id_of(text_of(await read_json_body(request), "id"), "id")
        await node.keepers.pin(id)
        return answer({"id": id.hex(), "pinned": True})

    async def unpin(request: Request) -> Response:
        id = content_id_of(text_of(await read_json_body(request), "id"), "id")
        return answer({"id": id.hex(), "was_pinned": await node.keepers.unpin(id)})

    return [
        Route("/v1/blobs", add, methods=["POST"]),
        Route("/v1/blobs", list_all),
        Route("/v1/blobs/gc", collect, methods=["POST"]),
        Route("/v1/blobs/pin", pin, methods=["POST"]),
        Route("/v1/blobs/unpin", unpin, methods=["POST"]),
        Route("/v1/blobs/{id}", get),
        Route("/v1/blobs/{id}/why", why),
    ]


def _blob_json(blob: KeptBlob) -> Json:
    return {
        "id": blob.id.hex(),
        "size": blob.size,
        "reasons": list(blob.reasons),
        "unused_since": blob.unused_since,
    }
