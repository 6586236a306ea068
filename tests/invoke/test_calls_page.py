"""docs/calls.md shows the machines as the code has them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from bnw.invoke.machines import provider, requester
from bnw.invoke.machines.table import diagram

PAGE = (Path(__file__).parents[2] / "docs/calls.md").read_text()
DIAGRAMS = re.findall(r"```mermaid\n(.*?)\n```", PAGE, re.DOTALL)


def provider_diagram() -> str:
    return diagram(provider.ROWS, start=provider.UNKNOWN, final=[provider.FINISHED])


def requester_diagram() -> str:
    return diagram(requester.ROWS, start=requester.SIGNED, final=[requester.ANSWERED, requester.ABANDONED])


def test_the_diagrams_are_those_of_the_tables() -> None:
    assert [provider_diagram(), requester_diagram()] == DIAGRAMS


def test_an_arrow_that_leads_elsewhere_would_be_noticed() -> None:
    rows = [replace(row, to=provider.FINISHED) if row.to == provider.ENDING else row for row in provider.ROWS]
    assert diagram(rows, start=provider.UNKNOWN, final=[provider.FINISHED]) != DIAGRAMS[0]


def test_the_durable_phases_are_named_on_the_page() -> None:
    for machine in (provider, requester):
        words = [f"`{phase}`" for phase in machine.DURABLE]
        assert f"{', '.join(words[:-1])} and {words[-1]} are on the disk" in PAGE
