"""Writes of the store: whole or not at all, whatever they find, and whatever signal arrives."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import panda.store.files
from panda.store.files import (
    Terminated,
    held_temporary,
    interrupt,
    interrupt_thread,
    sweep,
    uninterrupted,
)


@pytest.mark.parametrize("is_directory", [False, True])
def test_sweeping_while_others_begin(tmp_path: Path, is_directory: bool) -> None:
    """A file that is swept between being made and being held is made again: its writer notices nothing."""
    child = os.fork()
    while child == 0:
        sweep(tmp_path)
    try:
        for number in range(500):
            with held_temporary(tmp_path / "a", directory=is_directory) as temporary:
                temporary.rename(tmp_path / f"{number}")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert len(list(tmp_path.iterdir())) == 500


BYTES = 60_000_000
WRITER = f"""
import os, signal, sys, threading
from pathlib import Path
from panda.store.files import append_json_line, interrupt, write_atomic

directory, number, how = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
path = directory / "file"

def watch():  # another thread, like those of llama.cpp: the system may hand the signal to it
    while not any(entry.stat().st_size for entry in directory.iterdir()):
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
def test_a_write_that_is_interrupted(tmp_path: Path, number: signal.Signals, how: str, size: int) -> None:
    """A signal that arrives during a write takes effect when the file is whole; nothing else is left."""
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(tmp_path), str(int(number)), how],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", "")
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("file", size)]


@pytest.fixture
def _handled() -> Iterator[None]:
    """Signals as a command has them."""
    former = [(number, signal.signal(number, interrupt)) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in former:
        signal.signal(number, handler)
    vars(panda.store.files)["_raised"].clear()  # else the next turn of this process is interrupted


@pytest.mark.usefixtures("_handled")
def test_a_signal_takes_effect_once_after_the_outermost_block() -> None:
    """A second one takes effect at once."""
    seen: list[str] = []
    with pytest.raises(Terminated), uninterrupted():  # noqa: PT012  # what happens between is the test
        with uninterrupted():
            signal.raise_signal(signal.SIGTERM)
            seen.append("inner")
        seen.append("outer")
    assert seen == ["inner", "outer"]
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
