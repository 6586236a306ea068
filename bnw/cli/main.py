"""The `bnw` command: joins the commands of the other modules."""

from __future__ import annotations

import click

import bnw
from bnw.cli.blob import blob
from bnw.cli.calls import invoke, provide
from bnw.cli.catalog import catalog, catalog_inspect, publish, withdraw
from bnw.cli.delegation import delegate, delegation, revoke
from bnw.cli.demo.command import demo
from bnw.cli.follow import follow, unfollow
from bnw.cli.invocation import invocation
from bnw.cli.node import id_, init, peers, run, status
from bnw.cli.openwop import openwop
from bnw.cli.policy import policy


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
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
    demo,
):
    main.add_command(command)
