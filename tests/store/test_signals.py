"""Signals wait until a write is done."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from panda.store.files import append_json_line, write_atomic
from panda.store.signals import signals_after

BYTES = 60_000_000

WRITER = f"""
import os, signal, sys, threading
from pathlib import Path
from panda.store.files import append_json_line, write_atomic

directory, number, how = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
path = directory / "file"

def watch():  # another thread, like those of llama.cpp: the system may hand the signal to it
    while not any(one.stat().st_size for one in directory.iterdir()):
        pass
    os.kill(os.getpid(), number)

signal.signal(signal.SIGTERM, signal.default_int_handler)
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


def test_signal_after_the_block() -> None:
    """The handler that was there before is called once, after the outermost block."""
    seen: list[str] = []
    former = signal.signal(signal.SIGTERM, lambda number, frame: seen.append("handled"))
    try:
        with signals_after():
            with signals_after():
                signal.raise_signal(signal.SIGTERM)
                seen.append("inner")
            seen.append("outer")
    finally:
        signal.signal(signal.SIGTERM, former)
    assert seen == ["inner", "outer", "handled"]


def test_second_signal() -> None:
    """A second signal takes effect at once, and the handlers are back as they were."""
    former = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), signals_after():  # noqa: PT012  # what happens between is the test
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the second signal waited")
    assert signal.getsignal(signal.SIGINT) is former


def test_other_threads(tmp_path: Path) -> None:
    """A thread other than the main one can write, too."""

    def write() -> None:
        write_atomic(tmp_path / "a", "text")
        append_json_line(tmp_path / "b", 1)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b"]
