"""Compare moving a large public blob with iroh 0.35: `python scripts/bench_iroh.py [--mebibytes N] [--json]`.

The same number of bytes goes from one process to another on this machine: with BNW over libp2p from store to store,
each chunk verified and flushed to the disk (`move` of bench_payload.py), and with two iroh nodes, once with iroh's disk
store and once with its memory store. Ratios are our rate divided by theirs; the rounds alternate, and the median
counts. The package `iroh` is installed into a temporary environment from the package index; where that is not possible,
the script says so and shows our figures alone. Takes about ten minutes with 1,024 MiB.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

IROH = "iroh==0.35.0"
GOALS = {"disk": 3.0, "memory": 1.2}
"""By what our rate is to be above iroh's."""

NODE = """
import asyncio, json, os, sys, time
import iroh

async def node(kind, directory):
    here = {"ipv4_addr": "127.0.0.1:0", "ipv6_addr": "[::1]:0"}
    options = iroh.NodeOptions(**here, node_discovery=iroh.NodeDiscoveryConfig.NONE)
    if kind == "memory":
        return await iroh.Iroh.memory_with_options(options)
    return await iroh.Iroh.persistent_with_options(directory, options)

class Quiet(iroh.DownloadCallback):
    async def progress(self, progress):
        pass

async def give(kind, directory, mebibytes):
    here = await node(kind, directory)
    piece = os.urandom(1 << 20)
    data = b"".join(piece[:-8] + number.to_bytes(8, "big") for number in range(mebibytes))
    added = await here.blobs().add_bytes(data)
    address = await here.net().node_addr()
    print(json.dumps({"hash": str(added.hash), "node": str(await here.net().node_id()),
                      "addresses": address.direct_addresses()}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

async def take(kind, directory, offer):
    offer = json.loads(offer)
    here = await node(kind, directory)
    loopback = [a for a in offer["addresses"] if a.startswith("127.")] or offer["addresses"]
    source = iroh.NodeAddr(iroh.PublicKey.from_string(offer["node"]), None, loopback)
    options = iroh.BlobDownloadOptions(iroh.BlobFormat.RAW, [source], iroh.SetTagOption.auto())
    began = time.monotonic()
    await here.blobs().download(iroh.Hash.from_string(offer["hash"]), options, Quiet())
    print(time.monotonic() - began, flush=True)

async def main():
    iroh.iroh_ffi.uniffi_set_event_loop(asyncio.get_running_loop())
    if sys.argv[1] == "give":
        await give(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        await take(sys.argv[2], sys.argv[3], sys.argv[4])
    os._exit(0)

asyncio.run(main())
"""


def install(root: Path) -> Path | None:
    """An interpreter that has iroh, or None."""
    subprocess.run([sys.executable, "-m", "venv", str(root / "venv")], check=True)
    python = root / "venv" / "bin" / "python"
    done = subprocess.run([str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", IROH], check=False)
    return python if done.returncode == 0 else None


def iroh_rate(python: Path, root: Path, kind: str, mebibytes: int, number: int) -> float:
    """MiB a second."""
    script = root / "node.py"
    script.write_text(NODE)
    give_in, take_in = root / f"give-{kind}-{number}", root / f"take-{kind}-{number}"
    give = subprocess.Popen(
        [str(python), str(script), "give", kind, str(give_in), str(mebibytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert give.stdout is not None
        offer = give.stdout.readline().strip()
        taken = subprocess.run(
            [str(python), str(script), "take", kind, str(take_in), offer],
            check=True,
            capture_output=True,
            text=True,
            timeout=900,
        )
        return mebibytes / float(taken.stdout)
    finally:
        give.kill()
        give.communicate()


def our_rate(mebibytes: int) -> float:
    script = Path(__file__).parent / "bench_payload.py"
    arguments = [sys.executable, str(script), "--mebibytes", str(mebibytes), "--blobs", "1", "--json"]
    figures = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
    return float(figures["figures"]["move"])


def measure(mebibytes: int, rounds: int) -> list[dict[str, Any]]:
    rates: dict[str, list[float]] = {"ours": [], "disk": [], "memory": []}
    with tempfile.TemporaryDirectory() as name:
        python = install(Path(name))
        for number in range(rounds):
            rates["ours"].append(our_rate(mebibytes))
            for kind in GOALS if python is not None else ():
                assert python is not None
                rates[kind].append(iroh_rate(python, Path(name), kind, mebibytes, number))
    ours = statistics.median(rates["ours"])
    rows: list[dict[str, Any]] = [{"name": "BNW, disk store", "mib_per_second": round(ours, 1)}]
    for kind, goal in GOALS.items():
        if rates[kind]:
            theirs = statistics.median(rates[kind])
            rows.append(
                {
                    "name": f"iroh 0.35, {kind} store",
                    "mib_per_second": round(theirs, 1),
                    "ratio_of_ours": round(ours / theirs, 2),
                    "goal": goal,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mebibytes", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(options.mebibytes, options.rounds)
    if options.json:
        print(json.dumps({"rows": rows}, indent=2))
        return
    for row in rows:
        ratio = f"   ours is {row['ratio_of_ours']} times as fast (goal {row['goal']})" if "goal" in row else ""
        print(f"{row['name']:<24} {row['mib_per_second']:>8.1f} MiB/s{ratio}")
    if len(rows) == 1:
        print(f"{IROH} could not be installed, so there is nothing to compare with")


if __name__ == "__main__":
    main()
