#!/usr/bin/env python3
"""Answers one question from prices.csv: what a share cost in a month.

Reads {"symbol": "MSFT", "month": "2005-03"} on standard input and writes the answer as JSON on standard output.
Exit status: 0 answered; 1 there is no such symbol or month; 2 the input is no such question.
"""

import csv
import json
import sys
from pathlib import Path

PRICES = Path(__file__).resolve().parent / "prices.csv"
CURRENCY = "USD"
SOURCE = "stocks.csv of vega_datasets 0.9.0"
MAX_INPUT = 4096
MAX_SHOWN = 40


class Refusal(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def read_question(data):
    """The symbol and month that are asked for."""
    if len(data) > MAX_INPUT:
        raise Refusal(2, f"the input has more than {MAX_INPUT} bytes")
    try:
        question = json.loads(data.decode("utf-8"), object_pairs_hook=without_duplicates)
    except (ValueError, RecursionError) as error:
        raise Refusal(2, f"the input is not JSON: {error}") from None
    if not isinstance(question, dict) or set(question) != {"symbol", "month"}:
        raise Refusal(2, 'the input must be an object of exactly "symbol" and "month"')
    if not all(isinstance(value, str) for value in question.values()):
        raise Refusal(2, '"symbol" and "month" must be text')
    return question["symbol"], question["month"]


def without_duplicates(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


def find_price(symbol, month):
    """The price of `symbol` in `month`."""
    with PRICES.open(newline="", encoding="utf-8") as file:
        prices = {(row["symbol"], row["month"]): float(row["close"]) for row in csv.DictReader(file)}
    if (symbol, month) in prices:
        return prices[symbol, month]
    months = sorted(known for ticker, known in prices if ticker == symbol)
    if not months:
        symbols = ", ".join(sorted({ticker for ticker, _ in prices}))
        raise Refusal(1, f"no prices of {shown(symbol)}; there are those of {symbols}")
    raise Refusal(1, f"no price of {symbol} in {shown(month)}; there are those from {months[0]} to {months[-1]}")


def shown(text):
    return ascii(text) if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]!a}..."


def main():
    try:
        symbol, month = read_question(sys.stdin.buffer.read(MAX_INPUT + 1))
        close = find_price(symbol, month)
    except Refusal as refusal:
        sys.stderr.write(f"lookup: {refusal}\n")
        return refusal.status
    answer = {"symbol": symbol, "month": month, "close": close, "currency": CURRENCY, "source": SOURCE}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
