"""Routes about the catalog: publish, withdraw, list, inspect."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bnw.api.render import entry_json, manifest_json, view_json
from bnw.api.requests import (
    answer,
    blamed_on,
    flag_of,
    milliseconds_of,
    read_body,
    read_json_body,
    reference_of,
    text_of,
)
from bnw.node.node import DEFAULT_PATIENCE, Node
from bnw.objects.catalog import PROVIDE_PUBLISHER
from bnw.wire.limits import MAX_DESCRIPTOR, MINUTE
from bnw.wire.names import check_name

LONGEST_PATIENCE = 60 * MINUTE


def catalog_routes(node: Node) -> list[Route]:
    async def entries(request: Request) -> Response:
        mine = flag_of(request.query_params, "mine")
        found = [entry for entry in await node.entries() if not mine or entry.manifest.signer == node.identity]
        return answer({"capabilities": [entry_json(entry) for entry in found]})

    async def publish(request: Request) -> Response:
        name = text_of(request.query_params, "name")
        provide = text_of(request.query_params, "provide", PROVIDE_PUBLISHER)
        descriptor = await read_body(request, MAX_DESCRIPTOR)
        with blamed_on("name"):
            check_name(name, "capability name")
        with blamed_on("parameters"):
            manifest = await node.publish(name, descriptor, provide=provide)
        return answer(manifest_json(manifest))

    async def withdraw(request: Request) -> Response:
        name = text_of(await read_json_body(request), "name")
        with blamed_on("name"):
            check_name(name, "capability name")
        withdrawal = await node.withdraw(name)
        return answer({"withdrawal_id": withdrawal.id.hex()})

    async def inspect(request: Request) -> Response:
        parameters = request.query_params
        default = int(DEFAULT_PATIENCE * 1000)
        patience = milliseconds_of(parameters, "patience_ms", default, most=LONGEST_PATIENCE)
        view = await node.inspect(reference_of(parameters), patience=patience / 1000)
        return answer(view_json(view))

    return [
        Route("/v1/catalog", entries),
        Route("/v1/catalog", publish, methods=["POST"]),
        Route("/v1/catalog/withdraw", withdraw, methods=["POST"]),
        Route("/v1/catalog/inspect", inspect),
    ]
