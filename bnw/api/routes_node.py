"""Routes about the node itself: status, peers, events."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bnw.api.render import event_json, status_json
from bnw.api.requests import Emit, LineStream, answer, read_json_body, text_of, with_steps
from bnw.node.node import Node


def node_routes(node: Node) -> list[Route]:
    async def status(request: Request) -> Response:
        return answer(status_json(await node.status()))

    async def settle(request: Request) -> Response:
        async def produce(emit: Emit) -> None:
            await with_steps(emit, node.settle)
            await emit({"event": "result", **status_json(await node.status())})

        return LineStream(produce)

    async def spread(request: Request) -> Response:
        async def produce(emit: Emit) -> None:
            without = await with_steps(emit, node.spread)
            await emit({"event": "result", "without": list(without)})

        return LineStream(produce)

    async def connect(request: Request) -> Response:
        return answer({"peer": await node.connect(text_of(await read_json_body(request), "address"))})

    async def events(request: Request) -> Response:
        async def produce(emit: Emit) -> None:
            async with node.events() as news:
                await emit({"event": "listening"})
                async for event in news:
                    await emit(event_json(event))

        return LineStream(produce)

    return [
        Route("/v1/status", status),
        Route("/v1/settle", settle, methods=["POST"]),
        Route("/v1/spread", spread, methods=["POST"]),
        Route("/v1/connect", connect, methods=["POST"]),
        Route("/v1/events", events),
    ]
