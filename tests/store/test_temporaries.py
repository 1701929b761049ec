"""Temporary files and directories: who holds them, and when they are swept."""

import os
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from panda.store.files import (
    begin_writing,
    end_writing,
    held_temporary,
    is_abandoned,
    is_temporary,
    sweep,
    sweep_below,
    watch_store,
    work_directory,
    write_atomic,
)
from panda.store.validate import check_store
from tests.builders import build_store

HOUR = 3_600.0


def left_by(act: Callable[[], object], *, kill: bool = True) -> int:
    """Run something in a process of its own that then waits; returns its number, dead or alive."""
    ready, done = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            kept = act()  # noqa: F841 - what it holds is held until the process ends
            os.write(done, b"x")
            time.sleep(120)
        finally:
            os._exit(1)
    os.close(done)
    assert os.read(ready, 1)
    os.close(ready)
    if kill:
        end(child)
    return child


def entered(context: AbstractContextManager[object]) -> object:
    """The context, entered and never left."""
    context.__enter__()
    return context


def end(child: int) -> None:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def temporaries(directory: Path) -> list[Path]:
    return [path for path in directory.rglob(".*") if is_temporary(path)]


@pytest.mark.parametrize("is_directory", [False, True])
def test_swept_once_its_process_is_dead(tmp_path: Path, is_directory: bool) -> None:
    """What a living process holds is neither swept nor a leftover, however old; of a dead one it is both."""

    def act() -> object:
        made = held_temporary(tmp_path / "a", directory=is_directory)
        path = made.__enter__()
        if is_directory:
            (path / "file").write_text("x")
        return made

    child = left_by(act, kill=False)
    (path,) = temporaries(tmp_path)
    os.utime(path, (0, 0))
    sweep(tmp_path)
    assert (path.exists(), is_abandoned(path)) == (True, False)
    end(child)
    assert is_abandoned(path)
    sweep(tmp_path)
    assert not path.exists()


def test_a_child_that_lives_on_holds_it(tmp_path: Path) -> None:
    """A forked process that has it open holds it as well: it may be writing."""

    def act() -> None:
        with held_temporary(tmp_path / "a"):
            (tmp_path / "grandchild").write_text(str(left_by(lambda: True, kill=False)))
            os.kill(os.getpid(), signal.SIGSTOP)

    child = os.fork()
    if child == 0:
        act()
        os._exit(0)
    os.waitpid(child, os.WUNTRACED)
    sweep(tmp_path)
    assert temporaries(tmp_path)
    end(child)
    sweep(tmp_path)
    assert temporaries(tmp_path)
    os.kill(int((tmp_path / "grandchild").read_text()), signal.SIGKILL)
    while temporaries(tmp_path):
        sweep(tmp_path)


def test_nothing_else_is_swept(tmp_path: Path) -> None:
    """Files with other names, links, and what lies deeper stay."""
    names = (
        "notes.md",
        ".hidden",
        ".a.tmp",
        ".a.0123456789ab.tmp.md",
        ".tmp-abcdefgh",
        "a.0123456789ab.panda.tmp",
    )
    for name in names:
        (tmp_path / name).write_text("x")
    (tmp_path / ".link.0123456789ab.panda.tmp").symlink_to(tmp_path / "notes.md")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / ".a.0123456789ab.panda.tmp").write_text("x")
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*names, ".link.0123456789ab.panda.tmp", "below"]
    )
    assert (tmp_path / "below" / ".a.0123456789ab.panda.tmp").exists()


def test_leftovers_of_earlier_versions_go_too(tmp_path: Path) -> None:
    """What a version before this one left in a store, by another name, is swept alike."""
    (tmp_path / ".a.0123456789ab.tmp").write_text("x")
    (tmp_path / ".b.0123456789ab.tmp").mkdir()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_work_directories_are_private_and_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of a store among the system's temporary files are for the user alone, and go after a kill."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left_by(lambda: entered(work_directory("judge")))
    (dead,) = temporaries(tmp_path)
    with work_directory("judge") as made:
        assert made.stat().st_mode & 0o777 == 0o700
        assert temporaries(tmp_path) == [made]
        assert made != dead
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_walked_after_a_kill(tmp_path: Path) -> None:
    """What a killed writer left deep in a store or in the project goes when the next one begins."""
    layout = build_store(tmp_path / "store")
    outside = tmp_path / "project"
    outside.mkdir()
    deep = layout.of("demo").turn(2) / "attempts"
    deep.mkdir()

    def act() -> object:
        begin_writing(layout.root)
        kept = [held_temporary(path) for path in (deep / "a.md", outside / "b.py")]
        for one in kept:
            one.__enter__()
        return kept

    left_by(act)
    assert len(temporaries(tmp_path)) == 3  # with the mark
    assert [problem.message.split()[0] for problem in check_store(layout)] == ["temporary"]
    begin_writing(layout.root, outside)
    end_writing()
    assert temporaries(tmp_path) == []
    assert check_store(layout) == []


@pytest.mark.parametrize("way", ["{outside}", "{store}/../outside", "{store}/users/link"])
def test_a_mark_names_nothing_outside(way: str, tmp_path: Path) -> None:
    """A mark that a stranger left in a store has nothing swept but in the store and the project."""
    root, outside, project = build_store(tmp_path / "store").root, tmp_path / "outside", tmp_path / "project"
    left = [place / ".a.0123456789ab.panda.tmp" for place in (outside, project)]
    for path in left:
        write_atomic(path, "a stranger's")
    (root / "users/link").symlink_to(outside)
    names = [way.format(outside=outside, store=root), str(project)]
    (root / ".writing.0123456789ab.panda.tmp").write_bytes("".join(f"{name}\0" for name in names).encode())
    os.mkfifo(root / ".writing.aaaaaaaaaaaa.panda.tmp")
    watch_store(root, lambda link, target: False)
    begin_writing(root, project)
    end_writing()
    assert [path.exists() for path in left] == [True, False]


def test_a_living_writer_is_left_alone(tmp_path: Path) -> None:
    """A second writer sweeps nothing of one that is at work, and the user's notes are never looked at."""
    layout = build_store(tmp_path / "store")
    note = layout.of("demo").knowledge / ".a.0123456789ab.panda.tmp"
    write_atomic(note, "the user's own")

    def act() -> object:
        begin_writing(layout.root)
        made = held_temporary(layout.of("demo").turn(1) / "a.md")
        made.__enter__()
        return made

    child = left_by(act, kill=False)
    begin_writing(layout.root)
    end_writing()
    sweep_below(layout.root)
    assert check_store(layout) == []
    assert len(temporaries(layout.root)) == 3  # its mark, its file, the note
    end(child)
    begin_writing(layout.root)
    end_writing()
    assert temporaries(layout.root) == [note]


def test_long_names_have_temporaries(tmp_path: Path) -> None:
    """A file whose name is as long as names may be can be written."""
    path = tmp_path / ("ä" * 127)
    write_atomic(path, "x")
    assert path.read_text() == "x"
    assert temporaries(tmp_path) == []


@pytest.mark.parametrize("is_directory", [False, True])
def test_sweeping_while_others_begin(tmp_path: Path, is_directory: bool) -> None:
    """What is swept between being made and being held is made again: whoever writes notices nothing."""
    sweepers = [_sweeping(tmp_path) for _ in range(2)]
    try:
        for number in range(1_000):
            with held_temporary(tmp_path / "a", directory=is_directory) as made:
                made.rename(tmp_path / f"{number}")
    finally:
        for child in sweepers:
            end(child)
    assert len(list(tmp_path.iterdir())) == 1_000


def _sweeping(directory: Path) -> int:
    """A process that sweeps a directory until it is killed."""
    child = os.fork()
    while child == 0:
        sweep(directory)
    return child
