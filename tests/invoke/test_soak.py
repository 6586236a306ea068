"""A short run of scripts/soak-calls: real processes, killed at random, and no call runs twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts/soak-calls"


def test_killed_at_random_every_call_ends_in_one_receipt_and_none_runs_twice(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--invocations", "20", "--seed", "1", "--directory", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["invocations"] >= 20
    assert sum(result["kills"].values()) >= 1
