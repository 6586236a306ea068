"""The trace: lines in, bytes and their hash out."""

from __future__ import annotations

from blake3 import blake3

from bnw.sim.trace import BUFFER_LINES, EventTrace


def test_the_digest_is_the_hash_of_the_bytes_that_are_written() -> None:
    written: list[bytes] = []
    trace = EventTrace(written.append)
    for number in range(2 * BUFFER_LINES + 7):
        trace.add(f"{number}.000000 somebody does something")
    assert trace.digest == blake3(b"".join(written)).digest()
    assert len(trace) == b"".join(written).count(b"\n") == 2 * BUFFER_LINES + 8


def test_a_small_trace_is_known_to_the_byte() -> None:
    written: list[bytes] = []
    trace = EventTrace(written.append)
    trace.add("1.500000 carrier up provider")
    trace.flush()
    assert b"".join(written) == b"bnw-trace/1\n1.500000 carrier up provider\n"
    assert trace.digest == blake3(b"".join(written)).digest()


def test_asking_for_the_digest_on_the_way_changes_nothing() -> None:
    asked, unasked = EventTrace(), EventTrace()
    for trace in (asked, unasked):
        trace.add("one")
        if trace is asked:
            assert trace.digest != blake3(b"").digest()
        trace.add("two")
    assert asked.digest == unasked.digest


def test_text_of_any_kind_stays_one_line_and_never_ends_a_run() -> None:
    written: list[bytes] = []
    trace = EventTrace(written.append)
    trace.add("an error\nof two lines \ud800 é")
    trace.flush()
    assert written == ["bnw-trace/1\nan error\\nof two lines \\ud800 é\n".encode()]
