"""The steps of which the node tells while it works on something, in words."""

from __future__ import annotations

from typing import Any

from bnw.cli.units import size_text


def step_text(step: dict[str, Any]) -> str:
    """A step in words."""
    match step["step"]:
        case "dialling":
            return f"connecting to {counted(step['peers'])}"
        case "asking":
            return f"asking {counted(step['peers'])} for news"
        case "spreading":
            return f"telling {counted(step['peers'])}"
        case "connected":
            return f"connected to provider {step['provider']}"
        case "found":
            return f"found manifest {step['manifest']}"
        case "signed":
            return f"sealed the input for it and signed invocation {step['invocation']}"
        case "delivered":
            return "delivered; waiting for the answer"
        case "offline":
            return f"provider {step['provider']} is away; its mailboxes are asked"
        case "mailed":
            return f"left at mailbox {step['mailboxes']}; the answer comes when the provider has been there"
        case "sealing" | "opening" | "fetching":
            return _progress_text(step)
        case "waiting":
            return f"not delivered yet: {step['reason']}"
        case "answered":
            return f"answered: {step['status']}"
        case "progress":
            fraction = f" {float(step['fraction']):.0%}" if "fraction" in step else ""
            return f"progress: {step['stage']}{fraction} {step['note']}".rstrip()
        case "next":
            return f"{step['status']} [{step['code']}]; asking the next provider"
        case other:
            return str(other)


def _progress_text(step: dict[str, Any]) -> str:
    done = size_text(int(step["done"]))
    if "total" not in step:
        return f"{step['step']}: {done}"
    total = int(step["total"])
    share = 1.0 if total == 0 else int(step["done"]) / total
    return f"{step['step']}: {done} of {size_text(total)} ({share:.0%})"


def counted(peers: str) -> str:
    return "1 peer" if peers == "1" else f"{peers} peers"
