"""What every command shares: its home, its form of output, its node, and how it ends."""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import platformdirs

from bnw.cli.files import read_file, unreadable
from bnw.wire.errors import BnwError, ExitStatus, LocalError
from bnw.wire.printable import printable

if TYPE_CHECKING:
    from bnw.api.client import ApiClient
    from bnw.node.home import Home

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells count it: 128 and the signal's number."""
MAX_PASSPHRASE_FILE = 4096
"""Bytes."""


@dataclass(frozen=True, slots=True)
class Session:
    """One run of one command."""

    home: Home
    as_json: bool
    passphrase_file: Path | None

    def show(self, value: Mapping[str, Any], lines: Callable[[], Sequence[str]]) -> None:
        """Print the outcome: one JSON document, or lines for people."""
        if self.as_json:
            click.echo(json.dumps(value, indent=2, ensure_ascii=True))
        else:
            for line in lines():
                click.echo(line)

    def note(self, text: str) -> None:
        """Tell people about progress, on standard error."""
        if not self.as_json:
            click.echo(printable(text), err=True)

    def passphrase(self) -> str | None:
        """The passphrase from --passphrase-file or BNW_PASSPHRASE. Raises `LocalError` (`unreadable`)."""
        if self.passphrase_file is None:
            return os.environ.get("BNW_PASSPHRASE")
        data = read_file(self.passphrase_file, MAX_PASSPHRASE_FILE)
        try:
            return data.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise unreadable(str(self.passphrase_file), "not UTF-8 text") from None

    def passphrase_for_keystore(self) -> str | None:
        """The passphrase, asked for on the terminal if the keystore needs one and none was given."""
        from bnw.identity.keystore import is_protected

        passphrase = self.passphrase()
        if passphrase is None and is_protected(self.home.keystore) and sys.stderr.isatty():
            passphrase = click.prompt("Passphrase", hide_input=True, err=True)
        return passphrase

    def running_node(self) -> ApiClient:
        """The node that runs on this home. Raises `LocalError` (`home-missing`, `no-node`)."""
        from bnw.api.client import ApiClient

        self.require_home()
        return ApiClient(self.home.socket)

    @contextmanager
    def node(self, *, settled: bool = False) -> Iterator[ApiClient]:
        """The running node, or one that runs as long as the body does.

        `settled` lets a node that had to be started hear from its peers first. Raises `LocalError`.
        """
        from bnw.cli.node_process import NodeProcess

        try:
            client = self.running_node()
            client.get("/v1/status")
        except LocalError as error:
            if error.code != "no-node":
                raise
        else:
            with client:
                yield client
            return
        self.note("no node runs on this home; starting one for this command")
        with (
            NodeProcess.started(self.home, passphrase=self.passphrase_for_keystore()) as process,
            process.client() as client,
        ):
            if settled:
                client.post("/v1/settle")
            yield client

    def require_home(self) -> None:
        if not self.home.keystore.exists():
            raise LocalError(
                "home-missing",
                "there is no node home",
                place=str(self.home.path),
                cure="`bnw init` makes one; --home or BNW_HOME chooses another place",
                exit_status=ExitStatus.USAGE,
            )


def node_command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that all have, and end it with its error's message and exit status."""

    @click.option("--home", type=click.Path(path_type=Path), envvar="BNW_HOME", help="Node home. [env: BNW_HOME]")
    @click.option("--passphrase-file", type=click.Path(path_type=Path), help="Reads the keystore's passphrase.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @functools.wraps(function)
    def run(*args: Any, home: Path | None, as_json: bool, passphrase_file: Path | None, **options: Any) -> None:
        from bnw.node.home import Home

        with reporting(as_json):
            chosen = Home(home or Path(platformdirs.user_data_dir("bnw", appauthor=False)))
            function(Session(chosen, as_json, passphrase_file), *args, **options)

    return run


@contextmanager
def reporting(as_json: bool) -> Iterator[None]:
    """End the process with an error's message and exit status.

    SIGTERM ends it by an exception too, so that what the command started and made is taken away.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    except BnwError as error:
        if as_json:
            click.echo(json.dumps({"error": error.to_json()}, indent=2))
        else:
            click.echo(f"bnw: {printable(str(error))}", err=True)
        sys.exit(int(error.exit_status))
    except KeyboardInterrupt:
        click.echo("bnw: interrupted", err=True)
        sys.exit(INTERRUPTED)
