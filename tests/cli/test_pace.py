"""Lines that tell how far long work is where no bar can be shown."""

import io
import os
import pty

from panda.cli.command import Reporter
from panda.cli.pace import Pace


def told_lines(seconds_each: float, total: int) -> list[str]:
    """The lines about so many things that take so long each."""
    now = [0.0]
    lines = list[str]()
    pace = Pace("replaying", total, lines.append, lambda: now[0])
    for _ in range(total):
        now[0] += seconds_each
        pace.advance()
    return lines


def test_long_work_tells_rate_and_time_left() -> None:
    """The first line comes after a few seconds, then one every half minute, and one at the end."""
    lines = told_lines(0.5, 200)
    assert lines == [
        "replaying: 6 of 200, 2.0/s, 0:01:37 left",
        "replaying: 66 of 200, 2.0/s, 0:01:07 left",
        "replaying: 126 of 200, 2.0/s, 0:00:37 left",
        "replaying: 186 of 200, 2.0/s, 0:00:07 left",
        "replaying: 200 of 200, 2.0/s, 0:01:40 in all",
    ]


def test_short_work_tells_nothing() -> None:
    """Work that is done within a few seconds needs no line."""
    assert told_lines(0.01, 200) == []


def test_the_reporter_of_a_pipe_tells_the_pace() -> None:
    """Progress to what is no terminal is told as lines, and not at all if only errors are wanted."""
    for quiet, lines in ((False, "things: 1 of 1, 6.0/min, 0:00:10 in all\n"), (True, "")):
        times = iter((0.0, 10.0))
        stream = io.StringIO()
        reporter = Reporter(stream, quiet=quiet, verbosity=0, color=True, clock=times.__next__)
        with reporter.progress("things", 1) as advance:
            advance()
        assert stream.getvalue() == lines


def test_several_things_at_once_are_counted() -> None:
    """Work that is done in batches is told by the number of things, and nothing before the first."""
    lines = list[str]()
    times = iter((0.0, 10.0, 50.0))
    pace = Pace("vectors", 1000, lines.append, times.__next__)
    for count in (0, 500, 500):
        pace.advance(count)
    assert lines == [
        "vectors: 500 of 1,000, 50.0/s, 0:00:10 left",
        "vectors: 1,000 of 1,000, 20.0/s, 0:00:50 in all",
    ]


def test_a_line_beside_a_bar_stands_alone() -> None:
    """A line that is told while a bar is shown takes the bar's line, and the bar goes on below."""
    master, slave = pty.openpty()
    output = b""
    with os.fdopen(slave, "w") as stream:
        reporter = Reporter(stream, quiet=False, verbosity=0, color=True)
        with reporter.progress("replaying", 2) as advance:
            reporter.step("turn 814: error")
            advance()
        reporter.step("2 turns")
        while not output.endswith(b"2 turns\r\n"):
            output += os.read(master, 1 << 16)
    os.close(master)
    assert b"\r\x1b[2Kturn 814: error\r\n" in output
    assert b"replaying" in output.partition(b"turn 814: error")[2]
    assert reporter.bars == []
