"""What a node says, as JSON for the API and for `--json`. Names here are stable; programs rely on them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from bnw.identity.keys import did_key
from bnw.inbox.payload import Payload, StoredPayload
from bnw.invoke.descriptors import Description
from bnw.invoke.requester import CallResult
from bnw.node.views import CallEnded, CapabilityView, CatalogEntry, NodeEvent, NodeStatus
from bnw.objects.calls import Receipt
from bnw.objects.catalog import CapabilityManifest, ProviderOffer
from bnw.objects.signed import SignedObject
from bnw.profiles.json_reader import JsonError, read_json
from bnw.wire.errors import BnwError, InvalidError, RemoteError

Json = dict[str, Any]


def encode_json(value: Mapping[str, Any]) -> bytes:
    """One line of JSON. It is ASCII, so that text from elsewhere, lone surrogates included, can neither break the
    encoding nor reach a terminal raw."""
    return json.dumps(value, allow_nan=False).encode() + b"\n"


def error_json(error: BnwError) -> Json:
    """An error as it crosses the API: with its exit status and who is to blame."""
    blame = "remote" if isinstance(error, RemoteError) else "invalid" if isinstance(error, InvalidError) else "local"
    return {"error": {**error.to_json(), "exit_status": int(error.exit_status), "blame": blame}}


def status_json(status: NodeStatus) -> Json:
    return {
        "identity": did_key(status.identity),
        "peer": status.peer,
        "network": status.network,
        "addresses": list(status.addresses),
        "peers": [
            {"peer": info.peer, "addresses": list(info.addresses), "inbound": info.inbound} for info in status.peers
        ],
        "unreachable": dict(status.unreachable),
        "catalog_objects": status.catalog_objects,
        "objects": status.store.objects,
        "object_bytes": status.store.object_bytes,
        "blobs": status.store.blobs,
        "blob_bytes": status.store.blob_bytes,
        "providing": [id.hex() for id in status.providing],
        "started": status.started,
    }


def manifest_json(manifest: SignedObject) -> Json:
    body = manifest.body
    assert isinstance(body, CapabilityManifest)
    return {
        "manifest_id": manifest.id.hex(),
        "name": body.name,
        "publisher": did_key(manifest.signer),
        "descriptor": body.descriptor.hex(),
        "provide": body.provide,
        "expires": body.expires,
    }


def entry_json(entry: CatalogEntry) -> Json:
    return {**manifest_json(entry.manifest), "providers": entry.providers}


def offer_json(offer: SignedObject) -> Json:
    body = offer.body
    assert isinstance(body, ProviderOffer)
    return {
        "offer_id": offer.id.hex(),
        "provider": did_key(offer.signer),
        "endpoints": list(body.endpoints),
        "expires": body.expires,
    }


def view_json(view: CapabilityView) -> Json:
    return {
        **manifest_json(view.manifest),
        "offers": [offer_json(offer) for offer in view.offers],
        "descriptor_bytes": None if view.descriptor is None else len(view.descriptor),
        "profile": None if view.description is None else _description_json(view.description),
        "linked": {id.hex(): len(data) for id, data in sorted(view.schemas.items())},
        "missing": [id.hex() for id in view.missing],
        "input_template": None if view.input_template is None else _parsed(view.input_template),
    }


def result_json(result: CallResult) -> Json:
    receipt = result.receipt.body
    assert isinstance(receipt, Receipt)
    return {
        "invocation_id": result.invocation.id.hex(),
        "receipt_id": result.receipt.id.hex(),
        "provider": did_key(result.receipt.signer),
        "status": result.status,
        "code": result.code,
        "problem": None if result.problem is None else dict(result.problem),
        # A result exists only once receipt and output have been verified; see `Requester.call`.
        "receipt_verified": True,
        "received": receipt.received,
        "started": receipt.started,
        "finished": receipt.finished,
        **({} if result.output is None else _payload_json(result.output)),
    }


def event_json(event: NodeEvent) -> Json:
    if isinstance(event, CallEnded):
        return {
            "event": "call",
            "invocation_id": event.invocation.hex(),
            "requester": did_key(event.requester),
            "capability": event.capability.hex(),
            "status": event.status,
            "code": event.code,
        }
    return {"event": "news", "kind": event.kind, "id": event.id.hex(), "signer": did_key(event.signer)}


def _payload_json(payload: Payload | StoredPayload) -> Json:
    if isinstance(payload, StoredPayload):
        # Too large for a document; `GET /v1/invocations/<id>/output` streams it.
        return {"media_type": payload.media_type, "output": None, "output_bytes": payload.size}
    return {
        "media_type": payload.media_type,
        "output": _shown(payload),
        "output_base64": base64.b64encode(payload.data).decode(),
        "output_bytes": len(payload.data),
    }


def _shown(payload: Payload) -> Any:
    """JSON as a value and text as text; None for everything else, which is there in base64 only."""
    if payload.media_type == "application/json" or payload.media_type.endswith("+json"):
        return _parsed(payload.data)
    if payload.media_type.startswith("text/"):
        try:
            return payload.data.decode()
        except UnicodeDecodeError:
            return None
    return None


def _description_json(description: Description) -> Json:
    limits = description.limits
    return {
        "identifier": description.profile,
        "title": description.title,
        "facts": {fact.label: fact.value for fact in description.facts},
        "errors": [{"pointer": error.pointer, "message": error.message} for error in description.errors],
        "links": [id.hex() for id in description.links],
        "input_media_types": None if limits is None else list(limits.input.media_types),
        "output_media_types": None if limits is None else list(limits.output.media_types),
    }


def _parsed(data: bytes) -> Any:
    """The JSON value for display; None if it is none or too large to show. Nothing is decided by it."""
    try:
        return read_json(data)
    except JsonError:
        return None
