"""Kinds of parameters that are checked while the command line is read, before anything is started or sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bnw.wire.addresses import check_dial_address, check_listen_address
from bnw.wire.content_id import parse_content_id
from bnw.wire.errors import InvalidError
from bnw.wire.names import check_name

ANYONE = "anyone"
DELEGATED = "delegated"


class Checked(click.ParamType[str]):
    """Text for which `check` raises `InvalidError` if it is wrong; that becomes a `LocalError` at the parameter."""

    def __init__(self, name: str, check: Callable[[str], object]) -> None:
        self.name = name
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        try:
            self._check(text)
        except InvalidError as error:
            raise error.at(_place(param)) from None
        return text


def _place(param: click.Parameter | None) -> str:
    if isinstance(param, click.Option):
        return param.opts[0]
    return "arguments" if param is None else param.human_readable_name


def _check_identity(text: str) -> None:
    from bnw.identity.keys import parse_did_key  # loads the library for signatures

    parse_did_key(text)


def _check_caller(text: str) -> None:
    if text not in {ANYONE, DELEGATED}:
        _check_identity(text)


any_path = click.Path(path_type=Path, readable=False)
"""Whatever is wrong with a path, whoever uses it says."""
peer_address = Checked("address", check_dial_address)
listen_address = Checked("address", check_listen_address)
blob_id = Checked("id", parse_content_id)
identity = Checked("identity", _check_identity)
caller = Checked("who", _check_caller)
capability_name = Checked("name", lambda text: check_name(text, "capability name"))
network_name = Checked("name", lambda text: check_name(text, "network name"))
