"""How a command ends: its exit status, and one line or one JSON document about what went wrong (design section 14)."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import click

from bnw.wire.errors import BnwError, ExitStatus, LocalError
from bnw.wire.printable import printable

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells count it: 128 and the signal's number."""
TRACEBACK = "BNW_TRACEBACK"
"""With this variable set, an error that nobody foresaw shows where it happened."""
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def reporting(as_json: bool) -> Iterator[None]:
    """End the process with the message and exit status of an error that the body raises, whatever it is."""
    try:
        yield
    except (click.exceptions.Exit, BrokenPipeError):
        raise  # click ends both without a word
    except (Exception, KeyboardInterrupt) as raised:  # noqa: BLE001 - the last to hear of it; nobody wants a traceback
        _end(raised, as_json)


def report(error: BnwError, *, as_json: bool) -> None:
    """Print an error: for programs on standard output, for people on standard error."""
    if as_json:
        click.echo(json.dumps({"error": error.to_json()}, indent=2))
    else:
        click.echo(f"bnw: {printable(str(error))}", err=True)


def end_by_signals() -> None:
    """Let SIGTERM and SIGHUP end the process by an exception, so that what it started and made is taken away.

    Only the first one counts; a second must not interrupt the clearing up. What is ignored, as under `nohup`, stays so.
    """

    def end(number: int, frame: FrameType | None) -> NoReturn:
        for each in ENDING_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)

    for each in ENDING_SIGNALS:
        if signal.getsignal(each) is signal.SIG_DFL:
            signal.signal(each, end)


@contextmanager
def signals_held() -> Iterator[None]:
    """Let signals that would end the process wait for the body. For short work that must not be cut in two."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *ENDING_SIGNALS})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(raised: BaseException, as_json: bool) -> NoReturn:
    found = list(_leaves(raised))
    # Of several errors at once, one that says what to do about it is worth most.
    first = next((each for each in found if isinstance(each, BnwError)), found[0])
    match first:
        case KeyboardInterrupt() | click.Abort():
            click.echo("bnw: interrupted", err=True)
            sys.exit(INTERRUPTED)
        case click.exceptions.NoArgsIsHelpError():
            first.show()
            sys.exit(int(ExitStatus.USAGE))
        case BnwError():
            error: BnwError = first
        case click.ClickException():
            error = _usage(first)
        case OSError():
            error = _refused_by_system(first)
        case _:
            if TRACEBACK in os.environ:
                raise raised
            error = _unforeseen(first)
    try:
        report(error, as_json=as_json)
    except OSError:
        # Nobody can be told. What is still in the buffers must not fail a second time when Python ends.
        _discard_output()
    sys.exit(int(error.exit_status))


def _leaves(raised: BaseException) -> Iterable[BaseException]:
    if isinstance(raised, BaseExceptionGroup):
        for each in raised.exceptions:
            yield from _leaves(each)
    else:
        yield raised


def _usage(error: click.ClickException) -> LocalError:
    context = getattr(error, "ctx", None) or click.get_current_context(silent=True)
    path = "bnw" if context is None else context.command_path
    return LocalError(
        "usage",
        " ".join(error.format_message().split()).rstrip("."),
        place=path.removeprefix("bnw").strip() or None,
        cure=f"`{path} --help` shows how",
        exit_status=ExitStatus.USAGE,
    )


def _refused_by_system(error: OSError) -> LocalError:
    if error.filename is None:
        _discard_output()
    return LocalError(
        "system",
        error.strerror or str(error),
        place=None if error.filename is None else os.fsdecode(error.filename),
        cure="check paths, permissions and free space",
    )


def _unforeseen(error: BaseException) -> LocalError:
    return LocalError(
        "internal",
        f"unforeseen {type(error).__name__}: {' '.join(str(error).split())}",
        cure=f"a fault of BNW; please report it, with what {TRACEBACK}=1 shows",
    )


def _discard_output() -> None:
    """Standard output may be full or gone, and Python would say so once more when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
