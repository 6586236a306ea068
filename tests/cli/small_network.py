"""Three nodes, and programs that a provider among them runs for calls: good ones, and ones that fail in each way."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from bnw.cli.demo.example import find_example
from bnw.cli.node_process import NodeProcess

PROGRAMS = {
    "exit-3": "import sys; sys.stderr.write('the table is missing'); sys.exit(3)",
    "too-much": "import sys; [sys.stdout.write('x' * 1000000) for _ in range(20)]",
    "slow": "import time; time.sleep(60)",
    "echo": "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())",
}


@dataclass(frozen=True)
class Network:
    """A carrier, and a provider and a requester who know only the carrier. `manifests` are ids by name."""

    carrier: NodeProcess
    provider: NodeProcess
    requester: NodeProcess
    manifests: dict[str, str]


def provide_programs(provider: NodeProcess) -> dict[str, str]:
    example = find_example()
    client = provider.client()
    for path in example.schemas:
        client.post_bytes("/v1/blobs", path.read_bytes())
    manifests = {}
    programs = {name: [sys.executable, "-c", program] for name, program in PROGRAMS.items()}
    for name, arguments in {**programs, "finance/lookup": example.arguments, "closed": [sys.executable]}.items():
        descriptor = example.descriptor.read_bytes() if "/" in name else f"opaque {name}".encode()
        manifests[name] = client.post_bytes("/v1/catalog", descriptor, name=name)["manifest_id"]
        body = {"reference": manifests[name], "arguments": arguments, "anyone": name != "closed", "detach": True}
        client.post("/v1/provide", body)
    return manifests
