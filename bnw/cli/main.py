"""The `bnw` command: joins the commands of the other modules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

import bnw
from bnw.cli.blob import blob
from bnw.cli.calls import invoke, provide
from bnw.cli.catalog import catalog, catalog_inspect, publish, withdraw
from bnw.cli.delegation import delegate, delegation, revoke
from bnw.cli.demo.command import demo
from bnw.cli.follow import follow, unfollow
from bnw.cli.inbox import inbox
from bnw.cli.invocation import invocation
from bnw.cli.mailbox import mailbox
from bnw.cli.node import id_, init, peers, run, status
from bnw.cli.openwop import openwop
from bnw.cli.policy import policy
from bnw.cli.reporting import end_by_signals, reporting
from bnw.cli.simulate import simulate
from bnw.cli.testnet.command import testnet


class CommandGroup(click.Group):
    """A group that reports wrong usage as commands report their errors."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:  # for a caller who handles errors and signals
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        given = list(sys.argv[1:] if args is None else args)
        end_by_signals()
        # Whether --json was meant is not known for sure before the arguments have been read, which may fail.
        with reporting("--json" in given):
            status = super().main(given, "bnw", complete_var, standalone_mode=False, **extra)
        sys.exit(status if isinstance(status, int) else 0)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(bnw.__version__, prog_name="bnw")
def main() -> None:
    """Publish, discover and privately invoke capabilities of agents, without a server that anyone must trust.

    \b
    A first look:        bnw demo
    A node of your own:  bnw init && bnw run
    Then, beside it:     bnw catalog

    Exit status: 0 done; 1 refused or failed; 2 wrong usage or unreadable input; 3 no node or peer reachable;
    4 deadline passed.
    """


for command in (
    init,
    run,
    status,
    peers,
    id_,
    publish,
    withdraw,
    catalog,
    catalog_inspect,
    provide,
    invoke,
    invocation,
    delegate,
    revoke,
    delegation,
    policy,
    follow,
    unfollow,
    openwop,
    blob,
    mailbox,
    inbox,
    demo,
    testnet,
    simulate,
):
    main.add_command(command)
