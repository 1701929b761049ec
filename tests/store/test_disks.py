"""Full and read-only disks: an error that names the path, every file whole, nothing left behind."""

import gc
import json
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda, tree
from tests.store_files import import_line, write_turn

KILOBYTES = 512


def mount(*words: str) -> None:
    """Run mount; without the right to, the test is skipped."""
    done = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs the right to mount a small disk: {done.stderr.strip()}")


def unmount(place: Path) -> None:
    """Unmount at once, or as soon as another process that looks at the disk leaves it."""
    gc.collect()
    if subprocess.run(["umount", str(place)], check=False).returncode:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mount("-t", "tmpfs", "-o", f"size={KILOBYTES}k", "tmpfs", str(place))
    try:
        yield place
    finally:
        unmount(place)


@pytest.fixture
def panda(disk: Path, tmp_path: Path, imported: Path) -> Panda:
    """A project whose store lies on the small disk: user demo with turns 1 to 3, an intervention, a log."""
    panda = Panda(tmp_path / "project", user="demo", PANDA_ROOT=str(disk / "store"))
    panda.store = disk / "store"
    shutil.copytree(imported / "users", panda.store / "users")
    panda.write(str(panda.store / "interventions/i1.json"), json.dumps(INTERVENTION))
    panda.write(str(panda.store / "logs/executions.jsonl"), "")
    return panda


INTERVENTION: Mapping[str, Any] = {
    **dict.fromkeys(("phase", "recipe", "where", "expected", "received", "raw_output")),
    "schema": "panda.intervention/1",
    "severity": "high",
    "details": {},
    "id": "i1",
    "created_at": "2026-01-04T14:30:00Z",
    "user_id": "demo",
    "turn": 2,
    "type": "memory_error",
    "message": "gone",
    "what_to_do": "look",
}
READING = (["list"], ["show", "2"], ["validate", "2"], ["log"], ["intervention", "list"])


def fill(disk: Path, *, leave: int = 0) -> None:
    """Leave only so many kilobytes free."""
    gc.collect()  # files that a command of this process has left open would be let go later, and make room
    filler = disk / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 1024):
            pass
    os.truncate(filler, filler.stat().st_size - leave * 1024)


def turns_of(panda: Panda) -> dict[str, bytes]:
    """Return the files of all turns."""
    files = tree(panda.store / "users")
    return {name: content for name, content in files.items() if "/turns/" in name}


@pytest.mark.parametrize("leave", [0, 8])
def test_a_turn_that_does_not_fit_claims_nothing(panda: Panda, disk: Path, leave: int) -> None:
    """No directory and no temporary file stays, and the next number is free when there is room again."""
    before = turns_of(panda)
    fill(disk, leave=leave)
    line = json.dumps(import_line(query="query " * 9000))
    ended = panda("import", "-", stdin=line)
    assert (ended.code, "No space left on device" in ended.err) == (74, True), ended.err
    assert f"{panda.store}" in ended.err
    assert turns_of(panda) == before
    (disk / "filler").unlink()
    assert panda("import", "-", "--json", stdin=line).data["turns"][0]["turn"] >= 4


def test_a_line_that_does_not_fit_leaves_those_before_it_whole(panda: Panda, disk: Path) -> None:
    """All that was remembered stays as it was; with room again the next line follows it."""
    assert panda("memory", "set", "tea", "Assam").code == 0
    log = panda.user_directory / "memory.jsonl"
    before = log.read_bytes()
    fill(disk, leave=8)
    ended = panda("memory", "set", "poem", "x" * 60_000)
    assert (ended.code, "No space left on device" in ended.err) == (74, True), ended.err
    assert log.read_bytes() == before
    (disk / "filler").unlink()
    assert panda("memory", "set", "cup", "blue").code == 0
    assert [json.loads(line)["relation"] for line in log.read_text().splitlines()] == ["tea", "cup"]


def test_full_disk_and_commands(panda: Panda, disk: Path) -> None:
    """On a full disk what reads works, with all that is found; what writes ends with 74."""
    assert panda("index", "rebuild").code == 0
    write_turn(panda.user_directory, 4, query="apple last " * 50, response="x")
    fill(disk)
    for words in READING:
        assert panda(*words).code == 0, words
    assert "turn:4" in panda("index", "search", "apple").out
    fill(disk)
    ended = panda("intervention", "resolve", "i1", "--note", "x" * 9000)
    assert (ended.code, "No space left on device" in ended.err) == (74, True)
    assert len(panda("intervention", "list").rows) == 1


def test_read_only_disk(panda: Panda, disk: Path) -> None:
    """On a read-only disk what reads works; what writes ends with 74, and nothing is different afterwards."""
    mount("-o", "remount,ro", str(disk))
    before = tree(disk)
    for words in READING:
        assert panda(*words).code == 0, words
    for words in (
        ["intervention", "resolve", "i1", "--note", "x"],
        ["memory", "set", "tea", "Assam"],
        ["turn", "--", "Which tea?"],
    ):
        ended = panda(*words)
        assert (ended.code, "Read-only file system" in ended.err) == (74, True), (words, ended.err)
    assert tree(disk) == before


def limit_files() -> None:
    """Let no file of this process grow beyond 8 kB, as on a disk that is full for the larger ones."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def test_what_is_in_the_log_is_remembered(tmp_path: Path) -> None:
    """A value whose line in the log fits is stored: exit 0, a warning that its file lacks it, later shown."""
    panda = Panda(tmp_path / "project", user="ann", PYTHONPYCACHEPREFIX=str(tmp_path / "compiled"))
    preferences = panda.write(
        "store/users/ann/preferences.md", "# Preferences\n\n" + "Words of my own.\n" * 1000
    )
    done = subprocess.run(
        [*panda.program, "memory", "set", "budget", "900"],
        capture_output=True,
        text=True,
        check=False,
        env=panda.environ,
        preexec_fn=limit_files,
    )
    assert (done.returncode, "warning: it is remembered; cannot write" in done.stderr) == (0, True), (
        done.stderr
    )
    assert "budget" not in preferences.read_text()
    assert panda("memory", "get", "budget").out == "900\n"
    assert 'budget: {value: "900"' in preferences.read_text()
    assert len((panda.user_directory / "memory.jsonl").read_text().splitlines()) == 1
