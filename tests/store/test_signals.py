"""Signals wait until a write is done."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from panda.store.files import (
    Terminated,
    append_json_line,
    interrupt,
    interrupt_thread,
    uninterrupted,
    write_atomic,
)

BYTES = 60_000_000

WRITER = f"""
import os, signal, sys, threading
from pathlib import Path
from panda.store.files import append_json_line, interrupt, write_atomic

directory, number, how = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
path = directory / "file"

def watch():  # another thread, like those of llama.cpp: the system may hand the signal to it
    while not any(one.stat().st_size for one in directory.iterdir()):
        pass
    os.kill(os.getpid(), number)

signal.signal(number, interrupt)
threading.Thread(target=watch).start()
try:
    write_atomic(path, b"x" * {BYTES}) if how == "atomic" else append_json_line(path, "x" * {BYTES})
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("how", "size"), [("atomic", BYTES), ("append", BYTES + 3)])
def test_write_that_is_interrupted(tmp_path: Path, number: signal.Signals, how: str, size: int) -> None:
    """A signal that arrives during a write takes effect when the file is whole; nothing else is left."""
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(tmp_path), str(int(number)), how],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
    assert [(one.name, one.stat().st_size) for one in tmp_path.iterdir()] == [("file", size)]


@pytest.fixture
def _handled() -> Iterator[None]:
    """Signals as a command has them."""
    former = [(number, signal.signal(number, interrupt)) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in former:
        signal.signal(number, handler)


@pytest.mark.usefixtures("_handled")
def test_signal_after_the_block() -> None:
    """A signal takes effect once, after the outermost block."""
    seen: list[str] = []
    with pytest.raises(Terminated), uninterrupted():  # noqa: PT012  # what happens between is the test
        with uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            seen.append("inner")
        seen.append("outer")
    assert seen == ["inner", "outer"]
    with uninterrupted():
        seen.append("later")


@pytest.mark.usefixtures("_handled")
def test_second_signal() -> None:
    """A second signal takes effect at once."""
    with pytest.raises(KeyboardInterrupt), uninterrupted():  # noqa: PT012  # what happens between is the test
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the second signal waited")


def test_another_thread_is_interrupted_after_its_write() -> None:
    """In a thread whose call is cancelled a write at hand is finished, and nothing comes after it."""
    steps: list[str] = []
    began = threading.Event()

    def work() -> None:
        with suppress(KeyboardInterrupt):
            with uninterrupted():
                began.set()
                time.sleep(0.3)
                steps.append("written")
            steps.append("went on")

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    interrupt_thread(thread)
    thread.join()
    assert steps == ["written"]


def test_other_threads(tmp_path: Path) -> None:
    """A thread other than the main one can write, too."""

    def write() -> None:
        write_atomic(tmp_path / "a", "text")
        append_json_line(tmp_path / "b", 1)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b"]
