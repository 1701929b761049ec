"""Damaged turn directories: commands give findings or a clean error, never a traceback, and hide nothing."""

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

import pytest

from panda.cli.boundary import run
from panda.cli.main import build_program
from panda.errors import MemoryNodeError, Problem
from panda.index.index import Index
from panda.memory.reader import NodeReader
from panda.retrieval.candidates import Retriever
from panda.store.demo import copy_demo
from panda.store.layout import Layout, UserStore, asset, turn_name
from tests.effort import tried
from tests.mutations import mutate

NOW = datetime(2026, 1, 5, tzinfo=UTC)
TURNS = (809, 811)
COUNT = 140
CLEAN = {0, 2, 3, 20, 74}
SECONDS = 20


class TooSlow(BaseException):
    """A command did not end."""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raises TooSlow in the block after that time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    former = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def make_sound_store(root: Path) -> Path:
    """A store with two turns of the demo that hold every kind of file."""
    copy_demo(asset("panda-system-docs"), root, NOW)
    turns = Layout(root).of("demo").turns
    for directory in turns.iterdir():
        if directory.name not in map(turn_name, TURNS):
            shutil.rmtree(directory)
    for number in TURNS:
        calls = turns / turn_name(number) / "calls.jsonl"
        if not calls.exists():
            calls.write_text('{"phase": 0}\n{"phase": 1}\n', encoding="utf-8")
    return root


def read_everything(root: Path, seed: int) -> dict[str, int]:
    """The exit code of each reading command that was not clean, on a store with one damaged turn."""
    layout = Layout(root)
    number = TURNS[seed % len(TURNS)]
    turn = layout.of("demo").turn(number).directory
    names = sorted(str(path.relative_to(turn)) for path in turn.rglob("*"))
    file = names[seed % len(names)] if names else "context.md"
    environ = {"HOME": str(root.parent), "XDG_CACHE_HOME": str(root.parent / "cache"), "NO_COLOR": "1"}
    common = ["--root", str(root), "--user", "demo"]
    commands = (
        ["validate", str((turn, layout.of("demo").home)[seed // 2 % 2]), *common],
        ["list", *common],
        ["show", str(number), *common],
        ["show", str(number), "--section", str(seed % 7), *common, "--json"],
        ["show", *common, f"--file={file}", "--json", str(number)],
    )
    codes = {" ".join(words): run(build_program(), words, environ) for words in commands}
    return {words: code for words, code in codes.items() if code not in CLEAN}


def write_beside(root: Path) -> dict[str, int]:
    """The exit code of each writing command that was not clean, on a store with one damaged turn."""
    environ = {"HOME": str(root.parent), "XDG_CACHE_HOME": str(root.parent / "cache"), "NO_COLOR": "1"}
    common = ["--root", str(root), "--user", "demo"]
    line = {"user": "demo", "session": "new", "at": "2026-01-04T10:00:00Z", "query": "Q?", "response": "A."}
    (root.parent / "turns.jsonl").write_text(json.dumps(line), encoding="utf-8")
    commands = (
        ["memory", "set", "color", "blue", *common],
        ["index", "rebuild", *common],
        ["import", str(root.parent / "turns.jsonl"), *common],
        ["validate", str(root), *common],
    )
    codes = {" ".join(words): run(build_program(), words, environ) for words in commands}
    return {words: code for words, code in codes.items() if code not in CLEAN}


def read_nodes(root: Path) -> None:
    """Load nodes and ask the index; only errors of ours may come."""
    layout = Layout(root)
    reader = NodeReader(UserStore(layout.root, "demo", lambda: NOW))
    for node in ("turn:809", "turn:811", "research:commerce.laptop", "visit:x"):
        with suppress(MemoryNodeError):
            reader.load(node)
    for directory in layout.of("demo").turn(811).directory.glob("webpage_cache/*"):
        with suppress(MemoryNodeError):
            reader.load(f"visit:visit_{directory.name[-10:]}")
    with suppress(Problem):
        Retriever(Index(layout), "demo").find("laptop RTX 4050", before_turn=None)


def content(turn: Path) -> dict[str, bytes | None]:
    """What stands in a turn's directory; links and the like as None."""
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in turn.rglob("*")
    }


def damage(sound: Path, root: Path, seed: int) -> str:
    """A copy of the sound store with one damaged turn; gives what was done."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(sound, root)
    return mutate(Layout(root).of("demo").turn(TURNS[seed % len(TURNS)]).directory, seed)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sound_store(tmp_path_factory.mktemp("sound") / "store")


@pytest.mark.parametrize("first", range(0, tried(40, COUNT), 20))
def test_damaged_turns(
    sound: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], first: int
) -> None:
    """
    Of damaged turns validate, list, show, nodes and index give findings or clean errors, in time; commands
    that write beside them do so too, and leave the damage as it is.
    """
    for seed in range(first, first + 20):
        done = damage(sound, tmp_path / "store", seed)
        with limited(SECONDS):
            found = read_everything(tmp_path / "store", seed)
            read_nodes(tmp_path / "store")
            turn = Layout(tmp_path / "store").of("demo").turn(TURNS[seed % len(TURNS)]).directory
            before = content(turn)
            found |= write_beside(tmp_path / "store")
        assert content(turn) == before, f"seed {seed}: {done}"
        errors = capsysbinary.readouterr().err.decode(errors="replace")
        assert (found, "Traceback" in errors) == ({}, False), f"seed {seed}: {done}\n{errors[-2000:]}"


def main(first: int, count: int, directory: Path) -> None:
    """Many more: `python -m tests.cli.test_mutations FIRST COUNT DIRECTORY`."""
    sound = make_sound_store(directory / "sound")
    out = sys.stdout
    sys.stdout = sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # to the end
    for seed in range(first, first + count):
        done = damage(sound, directory / "store", seed)
        found: object
        try:
            with limited(SECONDS):
                found = read_everything(directory / "store", seed)
                read_nodes(directory / "store")
        except (Exception, TooSlow) as exc:
            frames = [one for one in traceback.extract_tb(exc.__traceback__) if "/panda/" in one.filename]
            found = [repr(exc)[:200], *(f"{one.filename}:{one.lineno}" for one in frames[-3:])]
        if found:
            out.write(f"seed {seed}: {done}: {found}\n")
            out.flush()
    out.write(f"{count} from {first} done\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
