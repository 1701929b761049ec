"""Files of the store: whole or not at all, errors with path and reason, locks that name their holder."""

import fcntl
import json
import logging
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from panda.errors import FileFormatError, LockHeldError, StoreError
from panda.store.files import (
    append_json_line,
    held_lock,
    read_json,
    read_text,
    write_atomic,
    write_json,
)
from panda.store.lines import load_lines


def test_a_written_file_holds_exactly_the_text_and_nothing_else_is_left(tmp_path: Path) -> None:
    """Line breaks stay as they are; the directory holds only the file."""
    path = tmp_path / "deep" / "a.md"
    write_atomic(path, "former")
    write_atomic(path, "a\r\nb\rc\n\u202e")
    assert read_text(path) == "a\r\nb\rc\n\u202e"
    assert [one.name for one in path.parent.iterdir()] == ["a.md"]


def test_a_write_that_fails_names_path_and_reason_and_leaves_nothing(tmp_path: Path) -> None:
    """A directory in the way is a StoreError; the temporary file is gone."""
    path = tmp_path / "a.md"
    path.mkdir()
    with pytest.raises(StoreError, match=r"cannot write .*a\.md: Is a directory"):
        write_atomic(path, "text")
    assert [one.name for one in tmp_path.iterdir()] == ["a.md"]


def test_a_parent_that_is_a_file_is_a_store_error(tmp_path: Path) -> None:
    """Missing directories cannot be made below a file."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"Not a directory|File exists"):
        write_json(tmp_path / "file" / "a.json", {})


def test_reading_tells_missing_files_from_broken_ones(tmp_path: Path) -> None:
    """Missing: StoreError. Not UTF-8, not JSON, NaN: FileFormatError with file and line."""
    with pytest.raises(StoreError, match="No such file"):
        read_text(tmp_path / "none.json")
    (tmp_path / "a.json").write_bytes(b'{\n"a": "\xff"}')
    with pytest.raises(FileFormatError, match="0xff at offset 8") as caught:
        read_json(tmp_path / "a.json")
    assert caught.value.where == f"{tmp_path / 'a.json'}:2"
    for text, line in (('{\n"a" 1}', 2), ('{"a": NaN}', 1)):
        (tmp_path / "b.json").write_text(text)
        with pytest.raises(FileFormatError, match="not valid JSON") as caught:
            read_json(tmp_path / "b.json")
        assert caught.value.where == f"{tmp_path / 'b.json'}:{line}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, [{"n": 1}]),
        ('{"n": 0}\n', [{"n": 0}, {"n": 1}]),
        ('{"n": 0}\n{"n": ', [{"n": 0}, {"n": 1}]),
        ('{"n": 0}\n{"n": 5}', [{"n": 0}, {"n": 5}, {"n": 1}]),
        ('{"n"', [{"n": 1}]),
    ],
)
def test_appending_repairs_what_a_crash_left(tmp_path: Path, before: str | None, after: list[object]) -> None:
    """A torn last line goes, a whole one without its line break is completed."""
    path = tmp_path / "calls.jsonl"
    if before is not None:
        path.write_text(before)
    append_json_line(path, {"n": 1})
    assert [json.loads(line) for line in path.read_text().splitlines()] == after


def test_reading_lines_leaves_out_a_torn_last_line_and_names_a_broken_one(tmp_path: Path) -> None:
    """Only the last line may be torn."""
    path = tmp_path / "calls.jsonl"
    path.write_text('{"n": 0}\n{"n"')
    assert load_lines(dict, path) == [{"n": 0}]
    path.write_text('{"n": 0}\nnonsense\n')
    with pytest.raises(FileFormatError) as caught:
        load_lines(dict, path)
    assert caught.value.where == f"{path}:2"


def test_a_held_lock_names_its_holder_and_is_free_afterwards(tmp_path: Path) -> None:
    """A second taker waits the time given, then is told who holds it; later it succeeds."""
    path = tmp_path / "sessions" / "lock"
    with held_lock(path, holder="panda turn 812", wait_seconds=0):
        with (
            pytest.raises(LockHeldError, match="held by panda turn 812; waited 0 s"),
            held_lock(path, holder="other", wait_seconds=0),
        ):
            pytest.fail("two hold the lock")
        assert path.read_text() == "panda turn 812"
    with held_lock(path, holder="other", wait_seconds=0):
        assert path.read_text() == "other"


def test_a_waiting_taker_hears_who_holds_the_lock_and_gets_it_when_it_is_free(tmp_path: Path) -> None:
    """The holder is logged once; the lock is taken as soon as the holder lets go."""
    path = tmp_path / "lock"
    told: list[str] = []
    asked = threading.Event()

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())
            asked.set()

    def wait_for_it() -> None:
        with held_lock(path, holder="second", wait_seconds=20):
            told.append(path.read_text())

    waiter, log, handler = threading.Thread(target=wait_for_it), logging.getLogger("panda"), Handler()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    with held_lock(path, holder="first", wait_seconds=0):
        waiter.start()
        assert asked.wait(20)
    waiter.join(20)
    log.removeHandler(handler)
    assert told == ["waiting for first", "second"]


@pytest.mark.parametrize("text", ["1e999", "-1e999", "[" * 100_000, "9" * 10_000])
def test_numbers_and_nesting_beyond_reason(tmp_path: Path, text: str) -> None:
    """A number that no float holds, and JSON nested too deeply, are invalid JSON."""
    (tmp_path / "a.json").write_text(f'{{"a": {text}}}', encoding="utf-8")
    with pytest.raises(FileFormatError, match="not valid JSON"):
        read_json(tmp_path / "a.json")


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    """A named pipe would block for ever; it is a StoreError."""
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(StoreError, match="not a regular file"):
        read_json(tmp_path / "a.json")


def test_half_a_surrogate_pair_is_read_as_a_character(tmp_path: Path) -> None:
    """Half of a character is written as a JSON escape; read, it is U+FFFD, so that nothing after fails."""
    write_json(tmp_path / "a.json", {"a": "\udcff"})
    append_json_line(tmp_path / "a.jsonl", {"a": "\ud800"})
    assert read_json(tmp_path / "a.json") == {"a": "\ufffd"}
    assert load_lines(dict, tmp_path / "a.jsonl") == [{"a": "\ufffd"}]


def test_a_line_that_waited_goes_into_the_file_that_is_there(tmp_path: Path) -> None:
    """A log that is replaced while a command waits for its lock gets the line; the former file does not."""
    log = tmp_path / "users" / "ann" / "memory.jsonl"
    words = ["memory", "set", "budget", "900", "--root", str(tmp_path), "--user", "ann"]
    command = [sys.executable, "-c", "from panda.cli.main import main; main()", *words]
    (tmp_path / "users" / "ann").mkdir(parents=True)
    log.touch()
    with log.open("rb") as former:
        fcntl.flock(former, fcntl.LOCK_EX)
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        while not is_waiting(process.pid) and process.poll() is None:
            time.sleep(0.01)
        write_atomic(log, "")
        fcntl.flock(former, fcntl.LOCK_UN)
        assert process.communicate(timeout=60)[1].decode().endswith("remembered: 1\n")
        assert former.read() == b""
    assert [one["value"]["v"] for one in load_lines(dict, log)] == ["900"]


def is_waiting(pid: int) -> bool:
    """Whether a process waits for a lock of a file."""
    locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return any("->" in line and f" {pid} " in line for line in locks)
