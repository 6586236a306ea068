"""What every command shares: its home, its form of output, and its node."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import platformdirs

from bnw.cli.files import read_file, unreadable
from bnw.cli.parameters import any_path
from bnw.cli.reporting import reporting
from bnw.cli.steps import step_text
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.printable import printable

if TYPE_CHECKING:
    from bnw.api.client import ApiClient
    from bnw.node.home import Home

MAX_PASSPHRASE_FILE = 4096
"""Bytes."""
STARTS = 5
"""How often a node is started that finds another one at home which does not answer yet. Each takes about a second."""


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
            return os.environ.get("BNW_PASSPHRASE") or None
        data = read_file(self.passphrase_file, MAX_PASSPHRASE_FILE)
        try:
            passphrase = data.decode().rstrip("\r\n")
        except UnicodeDecodeError:
            raise unreadable(str(self.passphrase_file), "not UTF-8 text") from None
        if not passphrase:
            raise unreadable(str(self.passphrase_file), "there is no passphrase in it")
        return passphrase

    def new_passphrase(self) -> str:
        """The passphrase that was given, or else one that is asked for twice. Raises `LocalError`."""
        passphrase = self.passphrase()
        if passphrase is None and not sys.stderr.isatty():
            raise LocalError(
                "passphrase-needed",
                "there is no terminal on which to ask for the passphrase",
                place="--protect",
                cure="set BNW_PASSPHRASE or give --passphrase-file",
                exit_status=ExitStatus.USAGE,
            )
        return passphrase or self._ask("New passphrase", twice=True)

    def passphrase_for_keystore(self) -> str | None:
        """The passphrase, asked for on the terminal if the keystore needs one and none was given."""
        from bnw.identity.keystore import is_protected

        passphrase = self.passphrase()
        if passphrase is None and is_protected(self.home.keystore) and sys.stderr.isatty():
            passphrase = self._ask("Passphrase")
        return passphrase

    def _ask(self, question: str, *, twice: bool = False) -> str:
        answer: str = click.prompt(question, hide_input=True, confirmation_prompt=twice, err=True)
        return answer

    def running_node(self) -> ApiClient:
        """The node that runs on this home. Raises `LocalError` (`home-missing`, `no-node`)."""
        from bnw.api.client import ApiClient

        self.require_home()
        return ApiClient(self.home.socket)

    @contextmanager
    def node(self, *, settled: bool = False, spreading: bool = False) -> Iterator[ApiClient]:
        """The running node, or one that runs as long as the body does.

        A node that had to be started hears from its peers first if `settled`, and with `spreading` does not end before
        they have what it said. Raises `LocalError`.
        """
        client = self._answering_node()
        if client is not None:
            yield client
            return
        self.note("no node runs on this home; starting one for this command")
        with ExitStack() as stack:
            client = self._start_node(stack)
            if settled:
                self._follow(client, "/v1/settle")
            yield client
            if spreading:
                self._follow(client, "/v1/spread")

    def _answering_node(self) -> ApiClient | None:
        try:
            client = self.running_node()
            client.get("/v1/status")
        except LocalError as error:
            if error.code != "no-node":
                raise
            return None
        return client

    def _start_node(self, stack: ExitStack) -> ApiClient:
        from bnw.cli.node_process import NodeProcess

        passphrase = self.passphrase_for_keystore()
        for start in range(1, STARTS + 1):
            try:
                return stack.enter_context(NodeProcess.started(self.home, passphrase=passphrase)).client()
            except LocalError as error:
                if error.code != "home-in-use" or start == STARTS:
                    raise
            # The other node may have been starting too, and answer by now.
            client = self._answering_node()
            if client is not None:
                return client
        raise AssertionError("the last start returns or raises")

    def _follow(self, client: ApiClient, path: str) -> None:
        with client.lines("POST", path) as events:
            for event in events:
                if event["event"] == "step":
                    self.note(step_text(event))
                elif without := event.get("without"):
                    self.note(f"{len(without)} peers have not taken it yet; they get it when a node runs on this home")

    def require_home(self) -> None:
        """Raises `LocalError`: `home-missing`, or `home` if the place cannot be looked at."""
        try:
            exists = self.home.keystore.exists()
        except OSError as error:
            raise LocalError(
                "home",
                f"cannot be opened: {error.strerror or error}",
                place=str(self.home.path),
                cure="--home or BNW_HOME chooses another place",
                exit_status=ExitStatus.USAGE,
            ) from None
        if not exists:
            raise LocalError(
                "home-missing",
                "there is no node home",
                place=str(self.home.path),
                cure="`bnw init` makes one; --home or BNW_HOME chooses another place",
                exit_status=ExitStatus.USAGE,
            )


def node_command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that all have, and end it with its error's message and exit status."""

    @click.option("--home", type=any_path, envvar="BNW_HOME", help="Node home. [env: BNW_HOME]")
    @click.option("--passphrase-file", type=any_path, help="Reads the keystore's passphrase.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @functools.wraps(function)
    def run(*args: Any, home: Path | None, as_json: bool, passphrase_file: Path | None, **options: Any) -> None:
        from bnw.node.home import Home

        with reporting(as_json):
            chosen = Home(home or Path(platformdirs.user_data_dir("bnw", appauthor=False)))
            function(Session(chosen, as_json, passphrase_file), *args, **options)

    return run
