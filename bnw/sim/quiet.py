"""Silence for simulations: thousands of nodes have much to log, and the trace has what matters of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_logging() -> Iterator[None]:
    """Nothing is logged in this process as long as the body runs; then it is as it was before."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
