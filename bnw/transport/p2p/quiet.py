"""Keeps the log messages of libp2p and its libraries away from the user's terminal.

libp2p 0.8.1 logs what peers do wrong as warnings and errors, and takes away the handlers of its logger when it is
imported, so that Python prints them on standard error: anybody on the network could fill the terminal. One module logs
through the root logger, and so also makes Python install a handler there. What concerns BNW's user, BNW says itself. An
operator who wants the details can attach handlers to the `libp2p` logger, or set `LIBP2P_DEBUG`.
"""

from __future__ import annotations

import logging

from libp2p.network.connection import swarm_connection


def quieten() -> None:
    for name in ("libp2p", "multiaddr", "noise"):
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    # The module calls `logging.debug` and `logging.warning`, which a logger has as well.
    vars(swarm_connection)["logging"] = logging.getLogger(swarm_connection.__name__)
