"""What the commands about a testnet share: its directory, the form of output, and how they end."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import platformdirs

from bnw.cli.reporting import reporting
from bnw.cli.session import Session

if TYPE_CHECKING:
    from bnw.cli.testnet.state import NetDirectory


@dataclass(frozen=True, slots=True)
class Desk:
    """One run of one command."""

    directory: NetDirectory
    session: Session


def testnet_command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that all have, and end it with its error's message and exit status."""

    @click.option(
        "--directory",
        type=click.Path(path_type=Path),
        envvar="BNW_TESTNET",
        help="Where the testnet lives; default: in your data directory. [env: BNW_TESTNET]",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @functools.wraps(function)
    def run(*args: Any, directory: Path | None, as_json: bool, **options: Any) -> None:
        from bnw.cli.testnet.state import NetDirectory

        with reporting(as_json):
            place = NetDirectory(directory or Path(platformdirs.user_data_dir("bnw-testnet", appauthor=False)))
            function(Desk(place, Session(place.home(""), as_json, None)), *args, **options)

    return run
