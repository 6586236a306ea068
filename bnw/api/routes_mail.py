"""Routes of mail: the mailbox that this node is for others, and the messages in its own inbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bnw.api.render import Json
from bnw.api.requests import (
    Emit,
    LineStream,
    answer,
    bad_request,
    blamed_on,
    identity_of,
    read_json_body,
    system_text_of,
    text_of,
    with_steps,
)
from bnw.blobs.offload import worker_threads
from bnw.identity.keys import did_key
from bnw.inbox.carrier import InboxStatus
from bnw.inbox.mailbox_rules import DEFAULT_AGE, DEFAULT_BYTES, DEFAULT_OBJECTS, Allowance
from bnw.invoke.asking import OnStep, byte_steps
from bnw.node.mail import MessageView
from bnw.node.node import Node


def mail_routes(node: Node) -> list[Route]:
    offload = worker_threads()

    async def mailbox(request: Request) -> Response:
        inboxes = [inbox_json(status) for status in await node.mail.carrier.status()]
        used = [{"peer": box.peer, "endpoints": list(box.endpoints)} for box in node.mail.used]
        return answer({"inboxes": inboxes, "used": used})

    async def allow(request: Request) -> Response:
        body = await read_json_body(request)
        identity = identity_of(text_of(body, "identity"), "identity")
        with blamed_on("allowance"):
            allowance = await node.mail.rules.allow(
                identity,
                now=node.environment.now_ms(),
                bytes=_whole(body, "bytes", DEFAULT_BYTES),
                objects=_whole(body, "objects", DEFAULT_OBJECTS),
                age=_whole(body, "age_ms", DEFAULT_AGE),
            )
        return answer({"identity": did_key(identity), **allowance_json(allowance)})

    async def deny(request: Request) -> Response:
        identity = identity_of(text_of(await read_json_body(request), "identity"), "identity")
        await node.mail.rules.deny(identity)
        return answer({"identity": did_key(identity), "denied": True})

    async def messages(request: Request) -> Response:
        return answer({"messages": [message_json(view) for view in await node.mail.list_messages()]})

    async def send(request: Request) -> Response:
        body = await read_json_body(request)
        recipient = identity_of(text_of(body, "recipient"), "recipient")
        path = Path(system_text_of(body, "path"))
        name = body.get("name")
        if name is not None and not isinstance(name, str):
            raise bad_request("a text is needed", "name")
        media_type = text_of(body, "media_type")

        async def work(on_step: OnStep) -> Json:
            with blamed_on("message"):
                manifest, posted = await node.mail.send_file(
                    recipient,
                    path,
                    media_type=media_type,
                    name=name,
                    offload=offload,
                    on_progress=byte_steps(on_step, "sealing"),
                )
            return {"id": manifest.id.hex(), "held_by": list(posted.mailboxes), "problems": list(posted.problems)}

        async def produce(emit: Emit) -> None:
            await emit({"event": "result", **await with_steps(emit, work)})

        return LineStream(produce)

    async def open_message(request: Request) -> Response:
        body = await read_json_body(request)
        reference = text_of(body, "reference")
        directory = Path(system_text_of(body, "directory"))

        async def work(on_step: OnStep) -> Json:
            with blamed_on("message"):
                view, path = await node.mail.open_message(
                    reference, directory, offload=offload, on_progress=byte_steps(on_step, "opening")
                )
            return {**message_json(view), "opened": True, "file": str(path)}

        async def produce(emit: Emit) -> None:
            await emit({"event": "result", **await with_steps(emit, work)})

        return LineStream(produce)

    async def acknowledge(request: Request) -> Response:
        id = await node.mail.drop_message(text_of(await read_json_body(request), "reference"))
        return answer({"id": id.hex(), "dropped": True})

    return [
        Route("/v1/mailbox", mailbox),
        Route("/v1/mailbox/allow", allow, methods=["POST"]),
        Route("/v1/mailbox/deny", deny, methods=["POST"]),
        Route("/v1/inbox", messages),
        Route("/v1/inbox/send", send, methods=["POST"]),
        Route("/v1/inbox/open", open_message, methods=["POST"]),
        Route("/v1/inbox/ack", acknowledge, methods=["POST"]),
    ]


def allowance_json(allowance: Allowance) -> Json:
    return {
        "max_bytes": allowance.bytes,
        "max_objects": allowance.objects,
        "max_age_ms": allowance.age,
        "since": allowance.since,
    }


def inbox_json(status: InboxStatus) -> Json:
    return {
        "identity": did_key(status.identity),
        "served": status.allowance is not None,
        "objects": status.objects,
        "bytes": status.bytes,
        "oldest": status.oldest,
        **({} if status.allowance is None else allowance_json(status.allowance)),
    }


def message_json(view: MessageView) -> Json:
    return {
        "id": view.id.hex(),
        "sender": did_key(view.entry.sender),
        "received": view.entry.received,
        "expires": view.entry.expires,
        "opened": view.entry.opened,
        "carried_bytes": view.carried_size,
        "bytes": view.size,
        "media_type": view.media_type,
        "name": view.name,
        "problem": view.problem,
    }


def _whole(body: Mapping[str, Any], name: str, default: int) -> int:
    value = body.get(name)
    if value is None:
        return default
    if type(value) is not int:
        raise bad_request("a whole number is needed", name)
    return value
