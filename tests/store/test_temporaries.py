"""Files of commands that run, wait or were killed: held while they live, swept by the next that writes."""

import fcntl
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.api import LAPTOPS, PRICE_QUESTION, Panda, ScriptedPanda, tree
from tests.script import Asked, Script

LEFT = ".a.0123456789ab.panda.tmp"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with ann's laptops, whose links are not followed."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann", PANDA_TRUST="")


def write_something(panda: Panda) -> None:
    """Run a command that writes and so sweeps."""
    assert panda("memory", "set", "tea", f"at {time.monotonic()}").code == 0


def temporaries(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.rglob(".*.tmp"))


@contextmanager
def running_turn(ann: ScriptedPanda) -> Iterator[None]:
    """Run a turn in a process of its own that waits for its model, kill it at the end."""
    is_asked = threading.Event()
    may_end = threading.Event()
    script = Script()

    def reply(asked: Asked) -> str | Exception:
        is_asked.set()
        may_end.wait(60)
        return script(asked)

    ann.server.script = reply
    with ann.start("turn", "--json", "--", PRICE_QUESTION) as process:
        try:
            assert process.stdin is not None
            process.stdin.close()
            assert is_asked.wait(60)
            yield
        finally:
            process.send_signal(signal.SIGKILL)
            may_end.set()


def test_a_living_writer_is_left_alone(ann: ScriptedPanda) -> None:
    """Another command sweeps nothing of one that is at work; once it is killed, the next one sweeps all."""
    with running_turn(ann):
        (mark,) = temporaries(ann.store)
        os.utime(ann.store / mark, (0, 0))
        write_something(ann)
        assert temporaries(ann.store) == [mark]
        assert ann.problems() == []
    write_something(ann)
    assert temporaries(ann.store) == []
    assert ann.problems() == []


def test_only_temporaries_are_swept(panda: Panda) -> None:
    """Anywhere in the store, of this version and of earlier ones; other names, links and notes stay."""
    swept = (f"users/ann/{LEFT}", f"users/ann/turns/turn_000002/attempts/{LEFT}", ".b.0123456789ab.tmp")
    staying = (
        *("notes.md", ".hidden", ".a.tmp", ".a.0123456789ab.tmp.md", ".tmp-abcdefgh"),
        *("a.0123456789ab.panda.tmp", f"users/ann/knowledge/{LEFT}"),
    )
    for name in (*swept, *staying):
        panda.write(f"store/{name}", "x")
    (panda.store / ".c.0123456789ab.tmp").mkdir()
    panda.write("store/.writing.0123456789ab.panda.tmp", "")  # of a command that was killed
    (panda.store / ".link.0123456789ab.panda.tmp").symlink_to(panda.store / "notes.md")
    reported = [problem for problem in panda.problems() if "temporary file left" in problem]
    assert len(reported) == 4
    write_something(panda)
    assert [name for name in swept if (panda.store / name).exists()] == []
    assert [name for name in staying if not (panda.store / name).exists()] == []
    assert not (panda.store / ".c.0123456789ab.tmp").exists()
    assert (panda.store / ".link.0123456789ab.panda.tmp").is_symlink()


@pytest.mark.parametrize("way", ["{outside}", "{store}/../../outside", "{store}/users/link"])
def test_a_mark_names_nothing_outside(way: str, panda: Panda, tmp_path: Path) -> None:
    """A mark that a stranger left in a store has nothing swept but in the store; a pipe is no mark."""
    outside = tmp_path / "outside"
    outside.mkdir()
    left = [place / LEFT for place in (outside, panda.user_directory)]
    for path in left:
        path.write_text("a stranger's")
    (panda.store / "users" / "link").symlink_to(outside)
    named = f"{way.format(outside=outside, store=panda.store)}\0"
    panda.write("store/.writing.0123456789ab.panda.tmp", named)
    os.mkfifo(panda.store / ".writing.aaaaaaaaaaaa.panda.tmp")
    write_something(panda)
    assert [path.exists() for path in left] == [True, False]


def test_a_file_of_the_longest_name_is_written(panda: Panda) -> None:
    """A name as long as names may be needs no longer one beside it."""
    name = "ä" * 127
    panda.write("notes.md", "# Fans\n\nFans are loud.\n")
    assert panda("compress", "notes.md", "--budget", "200", "--out", name).code == 0
    assert "Fans are loud." in (panda.home / name).read_text(encoding="utf-8")
    assert temporaries(panda.home) == []


@pytest.mark.parametrize("kind", ["directory", "pipe"])
def test_what_stands_in_the_way_is_told(panda: Panda, kind: str) -> None:
    """A directory or pipe in the place of a memory file is an error of it; nothing else is written."""
    path = panda.user_directory / "facts.md"
    if kind == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    before = tree(panda.user_directory)
    ended = panda("memory", "set", "pet", "cat", "--kind", "fact")
    assert ended.code in (2, 74), ended.err
    assert str(path) in ended.err
    assert tree(panda.user_directory) == {**before, "memory.lock": b""}
    assert temporaries(panda.store) == []


def is_waiting(pid: int) -> bool:
    """Say whether a process waits for a lock of a file."""
    locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return any("->" in line and f" {pid} " in line for line in locks)


def test_a_waiting_command_says_so_and_goes_on(panda: Panda) -> None:
    """The command takes the lock as soon as its holder lets go."""
    with panda.lock("users/ann/memory.lock"):
        process = panda.start("memory", "set", "tea", "Assam", "--wait", "60", "-v")
        assert process.stderr is not None
        reported = process.stderr.readline()
    with process:
        err = process.communicate(timeout=60)[1]
    assert (process.returncode, "waiting for" in reported, "remembered" in err) == (0, True, True), (
        reported + err
    )


def test_a_line_that_waited_goes_into_the_file_that_is_there(panda: Panda) -> None:
    """A log that is replaced while a command waits for its lock gets the line; the former file does not."""
    log = panda.user_directory / "memory.jsonl"
    log.touch()
    with log.open("rb") as former:
        fcntl.flock(former, fcntl.LOCK_EX)
        process = panda.start("memory", "set", "budget", "900")
        while not is_waiting(process.pid) and process.poll() is None:
            time.sleep(0.01)
        log.with_name("new").touch()
        log.with_name("new").rename(log)
        fcntl.flock(former, fcntl.LOCK_UN)
        with process:
            assert process.communicate(timeout=60)[1].endswith("remembered: 1\n")
        assert former.read() == b""
    assert '"900"' in log.read_text(encoding="utf-8")
