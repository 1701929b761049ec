"""Full and read-only disks: an error that names the path, every file whole, nothing left behind."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from panda.errors import MemoryNodeError, StoreError
from panda.index.index import Index
from panda.store.files import append_json_line, write_atomic, write_json
from panda.store.interventions import write_intervention
from panda.store.layout import Layout, UserStore
from panda.store.lines import load_lines
from panda.store.turns import claim_turn
from tests.api import run_here
from tests.builders import build_store, still_clock, tree
from tests.stores import write_turn

KILOBYTES = 256


def mount(*words: str) -> None:
    """Run mount; without the right to, the test is skipped."""
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs the right to mount a small disk: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own of 256 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount("-t", "tmpfs", "-o", f"size={KILOBYTES}k", "tmpfs", str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def fill(disk: Path, *, leave: int = 0) -> None:
    """Leave only so many kilobytes free."""
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 1024):
            pass
    os.truncate(filler, filler.stat().st_size - leave * 1024)


def test_full_disk_and_whole_files(disk: Path) -> None:
    """A file that does not fit leaves the former one and no temporary file."""
    write_atomic(disk / "a.md", "former")
    fill(disk, leave=8)
    with pytest.raises(StoreError, match="No space left on device") as caught:
        write_atomic(disk / "a.md", "x" * 60_000)
    assert str(disk) in (caught.value.where or "")
    assert (disk / "a.md").read_text(encoding="utf-8") == "former"
    assert sorted(one.name for one in disk.iterdir()) == ["a.md", "filler"]


def test_full_disk_and_lines(disk: Path) -> None:
    """A line that does not fit leaves those before it whole; with room again the next one follows them."""
    append_json_line(disk / "calls.jsonl", {"n": 1})
    before = (disk / "calls.jsonl").read_bytes()
    fill(disk, leave=8)
    with pytest.raises(StoreError, match="No space left on device"):
        append_json_line(disk / "calls.jsonl", {"n": "x" * 60_000})
    assert (disk / "calls.jsonl").read_bytes() == before
    (disk / "filler").unlink()
    append_json_line(disk / "calls.jsonl", {"n": 2})
    assert load_lines(dict, disk / "calls.jsonl") == [{"n": 1}, {"n": 2}]


def test_full_disk_and_claims(disk: Path) -> None:
    """A turn that cannot be written claims nothing: no directory stays, and the next number is free."""
    layout = build_store(disk / "store")
    before = tree(layout.of("demo").turns)
    fill(disk)
    with pytest.raises(StoreError, match="No space left on device"):
        claim_turn(UserStore(layout.root, "demo", still_clock), "default", "chat", "query " * 5000)
    assert tree(layout.of("demo").turns) == before
    (disk / "filler").unlink()
    assert claim_turn(UserStore(layout.root, "demo", still_clock), "default", "chat", "q").number >= 4


def test_full_disk_and_commands(disk: Path) -> None:
    """On a full disk what reads works; what writes ends with 74 and names the file."""
    layout = build_store(disk / "store")
    id_ = write_intervention(
        UserStore(layout.root, "demo", still_clock), MemoryNodeError("gone"), turn=2, phase=2, recipe=None
    )
    fill(disk)
    common = ["--root", str(layout.root), "--user", "demo"]
    assert run_here(["list", *common]).code == 0
    assert run_here(["show", "2", *common]).code == 0
    assert run_here(["validate", str(layout.users), *common]).code == 0
    words = ["intervention", "resolve", id_, "--note", "x" * 9000, *common]
    ended = run_here(words)
    assert (ended.code, "No space left on device" in ended.err) == (74, True)
    assert len(run_here(["intervention", "list", *common]).rows) == 1


def limit_files() -> None:
    """Let no file of this process grow beyond 8 kB, as on a disk that is full for the larger ones."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def test_what_is_in_the_log_is_remembered(tmp_path: Path) -> None:
    """A value whose line in the log fits is stored: exit 0, a warning that its file lacks it, later shown."""
    preferences = tmp_path / "users" / "ann" / "preferences.md"
    preferences.parent.mkdir(parents=True)
    preferences.write_text("# Preferences\n\n" + "Words of my own.\n" * 1000)
    words = [sys.executable, "-c", "from panda.cli.main import main; main()", "memory"]
    place = ["--root", str(tmp_path), "--user", "ann"]
    done = subprocess.run(
        [*words, "set", "budget", "900", *place],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")},  # which are cut short
        preexec_fn=limit_files,
    )
    assert (done.returncode, "warning: it is remembered; cannot write" in done.stderr) == (0, True), (
        done.stderr
    )
    assert "budget" not in preferences.read_text()
    done = subprocess.run([*words, "get", "budget", *place], capture_output=True, text=True, check=True)
    assert done.stdout == "900\n"
    assert 'budget: {value: "900"' in preferences.read_text()
    assert len((preferences.parent / "memory.jsonl").read_text().splitlines()) == 1


def test_read_only_disk(disk: Path) -> None:
    """On a read-only disk what reads works; what writes ends with 74, and nothing is different afterwards."""
    layout = build_store(disk / "store")
    append_json_line(layout.executions_log, {"user_id": "demo"})
    id_ = write_intervention(
        UserStore(layout.root, "demo", still_clock), MemoryNodeError("gone"), turn=2, phase=2, recipe=None
    )
    mount("-o", "remount,ro", str(disk))
    before = tree(disk)
    common = ["--root", str(layout.root), "--user", "demo"]
    for words in (
        ["list"],
        ["show", "2"],
        ["validate", str(layout.users)],
        ["log"],
        ["intervention", "list"],
    ):
        assert run_here([*words, *common]).code == 0, words
    ended = run_here(["intervention", "resolve", id_, "--note", "x", *common])
    assert (ended.code, "Read-only file system" in ended.err) == (74, True)
    with pytest.raises(StoreError, match="Read-only file system"):
        write_json(layout.root / "a.json", {})
    with pytest.raises(StoreError, match="Read-only file system"):
        append_json_line(layout.executions_log, {})
    with pytest.raises(StoreError, match="Read-only file system"):
        claim_turn(UserStore(layout.root, "demo", still_clock), "default", "chat", "q")
    assert tree(disk) == before


def test_a_full_disk_is_no_reason_to_find_less(disk: Path) -> None:
    """Without room for the index what reads has a copy of its own, and the files stay as they are."""
    layout = Layout(disk / "store")
    write_turn(layout, 1, query="apple", response="x")
    index = Index(layout)
    index.rebuild(["ann"])["ann"]
    index.close()
    write_turn(layout, 2, query="apple last " * 50, response="x")
    fill(disk)
    before = tree(layout.indexes)
    with closing(Index(layout)) as again:
        again.freshen("ann")
        assert again.read("ann", lambda view: view.turns.tolist()) == [1, 2]
    assert tree(layout.indexes) == before
