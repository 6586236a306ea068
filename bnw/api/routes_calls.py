"""Routes about calls, from both sides. Both stream, so that a caller sees each step and a provider each call."""

from __future__ import annotations

import stat
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bnw.api.render import event_json, offer_json, result_json
from bnw.api.requests import (
    Emit,
    LineStream,
    answer,
    bad_request,
    blamed_on,
    bytes_of,
    content_id_of,
    flag_of,
    identity_of,
    milliseconds_of,
    read_body,
    read_json_body,
    reference_of,
    system_text,
    system_text_of,
    text_of,
    texts_of,
    with_steps,
)
from bnw.api.routes_catalog import LONGEST_PATIENCE
from bnw.inbox.payload import Payload, PayloadFile
from bnw.invoke.handlers import Handler, ProgramHandler, ServiceHandler
from bnw.invoke.policy import CallPolicy
from bnw.invoke.policy_file import CapabilityPolicy
from bnw.invoke.requester import DEFAULT_DEADLINE, CallResult, OnStep
from bnw.node.node import DEFAULT_PATIENCE, Node
from bnw.node.policy_file import PolicyFile
from bnw.node.views import CallEnded
from bnw.objects.catalog import CapabilityManifest, ProviderOffer
from bnw.transport.tasks import background_tasks
from bnw.wire.errors import ExitStatus, LocalError, RemoteError
from bnw.wire.limits import DAY, MAX_PAYLOAD, MAX_PAYLOAD_IN_MEMORY

MAX_ARGUMENTS = 256
MAX_LISTED = 4096
"""Identities that one `provide` may allow."""
MAX_VARIABLES = 256
LONGEST_DEADLINE = 30 * DAY
DEFAULT_MEDIA_TYPE = "application/octet-stream"


def call_routes(node: Node) -> list[Route]:
    async def provide(request: Request) -> Response:
        body = await read_json_body(request)
        reference = reference_of(body)
        file = await _policy_file(node, body, reference)
        provide_it = partial(
            node.provide,
            reference,
            _handler(body, None if file is None else file[1]),
            policy=_policy(body) if file is None else file[0],
            idempotent=flag_of(body, "idempotent"),
        )
        if flag_of(body, "detach"):
            return answer(offer_json(await provide_it()))

        async def produce(emit: Emit) -> None:
            async with node.events() as events:
                offer = await provide_it()
                assert isinstance(offer.body, ProviderOffer)
                try:
                    await emit({"event": "providing", "capability": offer.body.capability.hex(), **offer_json(offer)})
                    async for event in events:
                        if isinstance(event, CallEnded) and event.capability == offer.body.capability:
                            await emit(event_json(event))
                finally:
                    with anyio.CancelScope(shield=True):
                        await node.stop_providing(offer.body.capability)

        return LineStream(produce)

    async def stop_providing(request: Request) -> Response:
        capability = content_id_of(text_of(await read_json_body(request), "capability"), "capability")
        await node.stop_providing(capability)
        return answer({"stopped": capability.hex()})

    async def invoke(request: Request) -> Response:
        parameters = request.query_params
        reference = reference_of(parameters)
        provider = text_of(parameters, "provider", "")
        patience = milliseconds_of(parameters, "patience_ms", int(DEFAULT_PATIENCE * 1000), most=LONGEST_PATIENCE)
        call = partial(
            node.invoke,
            reference,
            public=flag_of(parameters, "public"),
            inactivity=_optional_milliseconds(parameters, "inactivity_ms"),
            any_order=flag_of(parameters, "any_order"),
            provider=identity_of(provider, "provider") if provider else None,
            max_output=bytes_of(parameters, "max_output", MAX_PAYLOAD_IN_MEMORY, most=MAX_PAYLOAD),
            deadline_in=milliseconds_of(parameters, "deadline_ms", DEFAULT_DEADLINE, most=LONGEST_DEADLINE),
            patience=patience / 1000,
        )
        detach = flag_of(parameters, "detach")
        data = await read_body(request, MAX_PAYLOAD_IN_MEMORY)
        path = system_text_of(parameters, "input_file", default="")
        if path and data:
            raise bad_request("either a body or an input_file is needed", "input_file")
        media_type, name = parameters.get("media_type"), parameters.get("name")

        async def produce(emit: Emit) -> None:
            given = media_type or await _usual_media_type(node, reference, patience / 1000)
            payload = await _input_file(Path(path), given, name) if path else Payload(data, given, name)
            follow = follow_until_confirmed if detach else follow_call
            with blamed_on("input"):
                await follow(emit, lambda on_step: call(payload, on_step=on_step))

        return LineStream(produce)

    return [
        Route("/v1/provide", provide, methods=["POST"]),
        Route("/v1/provide/stop", stop_providing, methods=["POST"]),
        Route("/v1/invoke", invoke, methods=["POST"]),
    ]


async def follow_call(emit: Emit, run: Callable[[OnStep], Awaitable[CallResult]]) -> None:
    """Emit each step of a call, then its result."""
    result = await with_steps(emit, run)
    await emit({"event": "result", **result_json(result)})


async def follow_until_confirmed(emit: Emit, run: Callable[[OnStep], Awaitable[CallResult]]) -> None:
    """The same, but end as soon as the provider or a mailbox of it has the call. `wait` takes it up again."""
    confirmed = anyio.Event()
    known: dict[str, str] = {}

    async def until_confirmed(on_step: OnStep) -> CallResult | None:
        def told(step: str, details: Mapping[str, str]) -> None:
            on_step(step, details)
            if step == "signed":
                known["invocation_id"] = details["invocation"]
            elif step in {"delivered", "mailed"}:
                known["confirmed"] = step
                confirmed.set()

        result: CallResult | None = None
        async with background_tasks() as tasks:

            async def call() -> None:
                nonlocal result
                result = await run(told)
                confirmed.set()

            tasks.start_soon(call)
            await confirmed.wait()
        return result

    result = await with_steps(emit, until_confirmed)
    if result is not None:
        await emit({"event": "result", **result_json(result)})
    else:
        await emit({"event": "detached", **known})


async def _policy_file(
    node: Node, body: Mapping[str, Any], reference: str
) -> tuple[Callable[[], CallPolicy], CapabilityPolicy] | None:
    """The policy of the file that `policy` names, if any: for calls, and for the program."""
    path = system_text_of(body, "policy", default="")
    if not path:
        return None
    file = PolicyFile(Path(path))
    manifest = await node.find(reference)
    assert isinstance(manifest.body, CapabilityManifest)
    return file.calls_of(manifest.body.name, manifest.id), file.of(manifest.body.name, manifest.id)


def _policy(body: Mapping[str, Any]) -> CallPolicy:
    listed = [identity_of(text, "listed") for text in texts_of(body, "listed", most=MAX_LISTED)]
    return CallPolicy(anyone=flag_of(body, "anyone"), listed=frozenset(listed), delegated=flag_of(body, "delegated"))


def _handler(body: Mapping[str, Any], program: CapabilityPolicy | None) -> Handler:
    url = text_of(body, "url", "")
    arguments = [system_text(text, "arguments") for text in texts_of(body, "arguments", most=MAX_ARGUMENTS)]
    if bool(url) == bool(arguments):
        raise bad_request("either a program or a url is needed", "arguments")
    if url:
        return ServiceHandler(url)
    variables = body.get("environment", {})
    if not isinstance(variables, dict) or len(variables) > MAX_VARIABLES:
        raise bad_request(f"an object of at most {MAX_VARIABLES} variables is needed", "environment")
    environment = {name: system_text_of(variables, name, "environment.") for name in variables}
    if any(not name or "=" in name or "\0" in name for name in environment):
        raise bad_request("names without '=' are needed", "environment")
    directory = system_text_of(body, "directory", default="/")
    if program is not None:
        environment |= program.environment or {}
        directory = program.directory or directory
    return ProgramHandler(arguments, environment=environment, directory=Path(directory))


async def _input_file(path: Path, media_type: str, name: str | None) -> PayloadFile:
    """An input that is a file on this machine, of which the node reads a few chunks at a time."""
    file = anyio.Path(path)
    try:
        status = await file.stat()
    except OSError as error:
        raise LocalError(
            "unreadable", error.strerror or str(error), place=str(path), exit_status=ExitStatus.USAGE
        ) from error
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_PAYLOAD:
        cause = "is no plain file" if not stat.S_ISREG(status.st_mode) else f"has more than {MAX_PAYLOAD:,} bytes"
        raise LocalError("unreadable", cause, place=str(path), exit_status=ExitStatus.USAGE)
    return PayloadFile(path, status.st_size, media_type, name)


def _optional_milliseconds(values: Mapping[str, Any], name: str) -> int | None:
    return None if name not in values else milliseconds_of(values, name, 1, most=LONGEST_DEADLINE)


async def _usual_media_type(node: Node, reference: str, patience: float) -> str:
    """What the descriptor names first for the input."""
    try:
        view = await node.inspect(reference, patience=patience)
    except RemoteError:
        # The call needs the descriptor too, and will say whom it could not reach.
        return DEFAULT_MEDIA_TYPE
    limits = None if view.description is None else view.description.limits
    return DEFAULT_MEDIA_TYPE if limits is None else limits.input.media_types[0]
