"""The finance example is what it says: real prices, a valid descriptor, and a program that answers or refuses."""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bnw.identity.keys import IdentityId
from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Call, HandlerFailure, ProgramHandler
from bnw.profiles.capability.parse import parse
from bnw.profiles.service import ProfileService
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.limits import KIB

EXAMPLE = Path(__file__).parents[2] / "docs/examples/finance"
DESCRIPTOR = (EXAMPLE / "lookup.profile.json").read_bytes()
INPUT_SCHEMA = (EXAMPLE / "input.schema.json").read_bytes()
OUTPUT_SCHEMA = (EXAMPLE / "output.schema.json").read_bytes()
SCHEMAS = {content_id(data): data for data in (INPUT_SCHEMA, OUTPUT_SCHEMA)}
JSON = "application/json"

KNOWN_PRICES = {
    ("MSFT", "2005-03"): 22.24,
    ("AMZN", "2009-12"): 134.52,
    ("IBM", "2000-01"): 100.52,
    ("GOOG", "2004-08"): 102.37,
    ("AAPL", "2010-03"): 223.02,
}
"""Read by eye from the source file, not through the code under test."""


def lookup(data: bytes) -> subprocess.CompletedProcess[bytes]:
    """Run the program as a provider would: another process, with nothing but its input."""
    return subprocess.run(
        [sys.executable, "-I", str(EXAMPLE / "lookup.py")], input=data, capture_output=True, timeout=30, check=False
    )


def question(symbol: object, month: object, **others: object) -> bytes:
    return json.dumps({"symbol": symbol, "month": month, **others}).encode()


def validator(schema: bytes) -> Any:
    document = json.loads(schema)
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


def test_the_descriptor_is_valid_and_names_the_schemas_by_their_content() -> None:
    parsed = parse(DESCRIPTOR)
    assert parsed.errors == ()
    assert parsed.value is not None
    operation = parsed.value.operation
    assert (parsed.value.name, operation.name) == ("Finance lookup", "tools/call")
    assert operation.input.schema == content_id(INPUT_SCHEMA)
    assert operation.output.schema == content_id(OUTPUT_SCHEMA)


def test_the_descriptor_passes_the_published_schema_of_its_format() -> None:
    schema = Path(__file__).parents[2] / "proto/capability-profile-1.schema.json"
    validator(schema.read_bytes()).validate(json.loads(DESCRIPTOR))


@pytest.mark.parametrize("schema", [INPUT_SCHEMA, OUTPUT_SCHEMA], ids=["input", "output"])
def test_a_schema_allows_no_other_member_and_lets_none_be_left_out(schema: bytes) -> None:
    document = json.loads(schema)
    assert document["additionalProperties"] is False
    assert sorted(document["required"]) == sorted(document["properties"])


def test_the_example_question_is_a_valid_input_and_the_starter_document_says_the_same() -> None:
    data = (EXAMPLE / "question.json").read_bytes()
    validator(INPUT_SCHEMA).validate(json.loads(data))
    with ProfileService(mode="inline") as service:
        assert service.check_input(DESCRIPTOR, SCHEMAS, JSON, data) == ()
        starter = service.starter(DESCRIPTOR, SCHEMAS)
    assert starter is not None
    assert json.loads(starter) == json.loads(data)


@pytest.mark.parametrize(("symbol", "month"), KNOWN_PRICES)
def test_the_program_answers_with_the_known_price(symbol: str, month: str) -> None:
    result = lookup(question(symbol, month))
    assert (result.returncode, result.stderr) == (0, b"")
    answer = json.loads(result.stdout)
    validator(OUTPUT_SCHEMA).validate(answer)
    with ProfileService(mode="inline") as service:
        assert service.check_output(DESCRIPTOR, SCHEMAS, JSON, result.stdout) == ()
    assert answer == {
        "symbol": symbol,
        "month": month,
        "close": KNOWN_PRICES[symbol, month],
        "currency": "USD",
        "source": "stocks.csv of vega_datasets 0.9.0",
    }


def test_the_page_shows_what_the_program_prints() -> None:
    result = lookup((EXAMPLE / "question.json").read_bytes())
    assert result.stdout.decode() in (EXAMPLE / "README.md").read_text()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (question("XYZ", "2005-03"), "no prices of 'XYZ'; there are those of AAPL, AMZN, GOOG, IBM, MSFT"),
        (question("msft", "2005-03"), "no prices of 'msft'"),
        (question("GOOG", "2004-07"), "there are those from 2004-08 to 2010-03"),
        (question("MSFT", "2005-3"), "no price of MSFT in '2005-3'"),
        (question("\x1b[2J" * 100, "2005-03"), "no prices of '\\x1b[2J"),
    ],
    ids=["symbol", "case", "before_the_first", "month", "hostile_text"],
)
def test_the_program_refuses_what_is_not_in_its_table(data: bytes, words: str) -> None:
    result = lookup(data)
    assert (result.returncode, result.stdout) == (1, b"")
    assert words in result.stderr.decode()
    assert result.stderr.isascii()
    assert len(result.stderr) < 300


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"[]",
        b'{"symbol": "MSFT"}',
        question("MSFT", "2005-03", more=1),
        question("MSFT", 200503),
        b'{"symbol": "MSFT", "symbol": "IBM", "month": "2005-03"}',
        question("MSFT", "2005-03") + b"{}",
        b'{"symbol": "\xff", "month": "2005-03"}',
        b"[" * 4000,
        b" " * 5000,
    ],
    ids=["empty", "text", "array", "missing", "extra", "number", "twice", "trailing", "encoding", "deep", "long"],
)
def test_the_program_refuses_an_input_that_is_no_question(data: bytes) -> None:
    result = lookup(data)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.startswith(b"lookup: the input ") or b"must be text" in result.stderr
    assert b"Traceback" not in result.stderr
    with ProfileService(mode="inline") as service:
        assert service.check_input(DESCRIPTOR, SCHEMAS, JSON, data), "a provider would not even run it"


@pytest.mark.anyio
async def test_a_provider_that_runs_the_program_reports_an_unknown_symbol_as_the_page_says() -> None:
    handler = ProgramHandler([sys.executable, str(EXAMPLE / "lookup.py")], environment={})
    answer = await handler(_call(question("MSFT", "2005-03")))
    assert json.loads(answer.data)["close"] == 22.24
    with pytest.raises(HandlerFailure) as failure:
        await handler(_call(question("XYZ", "2005-03")))
    assert failure.value.code == "program-exit"
    assert "`program-exit`: the program ended with status 1" in (EXAMPLE / "README.md").read_text()
    assert "no prices of 'XYZ'" in failure.value.detail


def _call(data: bytes) -> Call:
    return Call(
        invocation=ContentId(bytes(32)),
        capability=ContentId(bytes(32)),
        requester=IdentityId(bytes(31) + b"\x01"),
        deadline=1,
        input=Payload(data, JSON),
        max_output=4 * KIB,
    )


def test_the_table_has_the_known_prices_and_every_month_once() -> None:
    with (EXAMPLE / "prices.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    prices = {(row["symbol"], row["month"]): float(row["close"]) for row in rows}
    assert len(rows) == len(prices) == 560
    assert KNOWN_PRICES.items() <= prices.items()
    for symbol in ("MSFT", "AMZN", "IBM", "GOOG", "AAPL"):
        months = [month for ticker, month in prices if ticker == symbol]
        assert months == sorted(months)
        assert len(months) == (68 if symbol == "GOOG" else 123)


def test_the_page_about_the_source_has_the_right_hashes() -> None:
    page = (EXAMPLE / "SOURCE.md").read_text()
    data = (EXAMPLE / "prices.csv").read_bytes()
    (row,) = [line for line in page.splitlines() if line.startswith("| `prices.csv`")]
    assert f"{len(data):,}" in row
    assert hashlib.sha256(data).hexdigest() in row
    assert content_id(data).hex() in row


def test_the_recipe_on_the_page_makes_the_table_from_the_published_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("vega_datasets") is None:
        pytest.skip("the PyPI package vega_datasets, where the prices are from, is not installed")
    page = (EXAMPLE / "SOURCE.md").read_text()
    (recipe,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    variables: dict[str, Any] = {}
    exec(recipe, variables)
    source = variables["source"].read_bytes()
    (row,) = [line for line in page.splitlines() if line.startswith("| `stocks.csv`")]
    assert f"{len(source):,}" in row
    assert hashlib.sha256(source).hexdigest() in row
    assert content_id(source).hex() in row
    assert (tmp_path / "prices.csv").read_bytes() == (EXAMPLE / "prices.csv").read_bytes()
