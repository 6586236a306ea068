"""Progress of a running call: handlers report as often as they like, and the requester gets some signed updates.

Reports that follow each other quickly are merged; what is sent last is what was reported last. Updates are not kept at
the provider: one that is lost is made up for by the next, or by the receipt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import anyio

from bnw.identity.keys import SigningKey
from bnw.invoke.handler import Report
from bnw.invoke.machines import provider as machine
from bnw.invoke.serving import ServedCall
from bnw.objects.calls import FRACTION_WHOLE, InvocationUpdate
from bnw.objects.rules import next_sequence
from bnw.objects.signed import SignedObject, sign_object
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError
from bnw.wire.limits import DAY, MAX_NOTE_LENGTH
from bnw.wire.names import check_name, is_plain_text

UPDATE_PERIOD = 0.25
"""Seconds between two updates of one call."""
MAX_UPDATES = 1000
"""Updates of one call; further reports only count as signs of life."""


@dataclass(slots=True)
class _Progress:
    latest: tuple[str, int | None, str | None] | None = None
    sequence: int = 0
    sent: int = 0
    is_sending: bool = False


class ProgressReporter:
    def __init__(
        self,
        key: SigningKey,
        environment: Environment,
        send: Callable[[SignedObject], None],
        reports: dict[ContentId, Report],
    ) -> None:
        """`reports` gets the function of each call that runs, for those that report from outside."""
        self._key = key
        self._environment = environment
        self._send = send
        self._reports = reports

    def report_for(self, call: ServedCall) -> Report:
        """The function that the handler of `call` reports with, for as long as the call runs."""
        progress = _Progress()

        def report(stage: str, fraction: float | None = None, note: str | None = None) -> None:
            thousandths = _check(stage, fraction, note)
            if call.state.phase != machine.RUNNING:
                return
            call.last_sign_of_life = self._environment.now_ms()
            progress.latest = (stage, thousandths, note)
            if not progress.is_sending and progress.sent < MAX_UPDATES:
                progress.is_sending = True
                call.background.start_soon(self._send_merged, call, progress)

        self._reports[call.id] = report
        return report

    async def _send_merged(self, call: ServedCall, progress: _Progress) -> None:
        """Send what was reported last, then wait, and send again if there was more."""
        while progress.latest is not None and progress.sent < MAX_UPDATES:
            (stage, fraction, note), progress.latest = progress.latest, None
            now = self._environment.now_ms()
            progress.sequence = next_sequence(progress.sequence, now)
            progress.sent += 1
            body = InvocationUpdate(
                created=now,
                expires=max(now, call.body.expires) + DAY,
                fraction=fraction,
                invocation=call.id,
                note=note,
                recipient=call.invocation.signer,
                sequence=progress.sequence,
                stage=stage,
            )
            self._send(sign_object(body, self._key))
            await anyio.sleep(UPDATE_PERIOD)
            if call.state.phase != machine.RUNNING:
                break
        progress.is_sending = False


def _check(stage: str, fraction: float | None, note: str | None) -> int | None:
    """The fraction in thousandths. Raises `InvalidError` (`name`, `field`)."""
    check_name(stage, "stage")
    if note is not None and not (
        isinstance(note, str) and 1 <= len(note.encode(errors="replace")) <= MAX_NOTE_LENGTH and is_plain_text(note)
    ):
        raise InvalidError("field", f"a note is plain text of 1 to {MAX_NOTE_LENGTH} bytes on one line", place="note")
    if fraction is None:
        return None
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
        raise InvalidError("field", "a fraction is a number from 0 to 1", place="fraction")
    return round(fraction * FRACTION_WHOLE)
