"""Notes that are too long, too large or no files: commands end soon and say what they left out."""

import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.api import Panda

KEY = "The spare key of the cabin lies under the blue pot."
LIMIT_BYTES = 5_000_000
NOTES = "users/default/knowledge"


def write_notes(directory: Path, *, notes: int, lines: int) -> None:
    """Notes of short lines that are all different, with one line about a key at the end of the last."""
    directory.mkdir(parents=True, exist_ok=True)
    for note in range(notes):
        rows = [f"- Parcel {note}-{line} went to shelf {line * 7 + note}.\n" for line in range(lines)]
        if note == notes - 1:
            rows.append(f"- {KEY}\n")
        (directory / f"parcels_{note}.md").write_text("# Parcels\n\n" + "".join(rows), encoding="utf-8")


@pytest.mark.parametrize(("notes", "lines"), [(1, 1500), (6, 300)])
def test_a_turn_encodes_few_lines(notes: int, lines: int, tmp_path: Path) -> None:
    """However long the notes, a turn computes some 200 vectors, and quotes the line that answers."""
    panda = Panda(tmp_path / "project")
    panda("init")
    write_notes(panda.store / NOTES, notes=notes, lines=lines)
    assert KEY in panda.turn("Where is the spare key of the cabin?").response
    with closing(sqlite3.connect(panda.store / "indexes" / "vectors.db")) as database:
        ((encoded,),) = database.execute("SELECT count(*) FROM vectors")
    assert 0 < encoded <= 230


@pytest.fixture
def odd(tmp_path: Path) -> Panda:
    """A store with a sound note beside one that is too large, a pipe, a socket and a device."""
    panda = Panda(tmp_path / "project")
    panda("init")
    knowledge = panda.store / NOTES
    (knowledge / "key.md").write_text(f"- {KEY}\n", encoding="utf-8")
    with (knowledge / "huge.md").open("wb") as file:
        file.truncate(700_000_000)
    os.mkfifo(knowledge / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(knowledge)  # the name of a socket is short
        try:
            listener.bind("socket.md")
        finally:
            os.chdir(here)
    (knowledge / "device.md").symlink_to("/dev/zero")
    return panda


def test_odd_notes_are_told_and_not_read(odd: Panda) -> None:
    """A rebuild and a check name the file with both numbers, a turn says how many; all read the others."""
    told = "it has 700,000,000 bytes, and a file of notes may have 5,000,000; it is not read"
    rebuilt = odd("index", "rebuild")
    assert (rebuilt.code, rebuilt.out.count(told)) == (3, 1)
    assert "huge.md" in rebuilt.out
    checked = odd("validate", str(odd.store), "--json")
    findings = [problem for problem in checked.data["problems"] if problem["message"] == told]
    assert [Path(problem["path"]).name for problem in findings] == ["huge.md"]
    asked = odd("turn", "Where is the spare key of the cabin?")
    assert (asked.code, KEY in asked.out, asked.err.count(told)) == (0, True, 0)
    assert asked.err.count("notes that cannot be read: 4") == 1
    for name in ("pipe.md", "socket.md", "device.md"):
        assert name in rebuilt.out


@pytest.mark.parametrize(("more_bytes", "is_read"), [(0, True), (1, False)])
def test_the_limit_is_exact(more_bytes: int, tmp_path: Path, *, is_read: bool) -> None:
    """A note of the limit is read, one byte more is not."""
    panda = Panda(tmp_path / "project")
    panda("init")
    note = panda.store / NOTES / "long.md"
    text = f"- {KEY}\n"
    note.write_text(text + " " * (LIMIT_BYTES - len(text) + more_bytes), encoding="utf-8")
    assert panda("index", "rebuild").code == (0 if is_read else 3)
    assert ("long.md" in panda("index", "search", "spare key").out) is is_read


@pytest.mark.parametrize("name", ["preferences.md", "facts.md"])
def test_a_memory_file_has_the_limit_too(name: str, tmp_path: Path) -> None:
    """A memory file that is too large is told with both numbers, and is no bug."""
    panda = Panda(tmp_path / "project")
    panda("init")
    home = panda.store / "users" / "default"
    home.mkdir(parents=True, exist_ok=True)
    with (home / name).open("wb") as file:
        file.truncate(700_000_000)
    for words, code in ((("memory", "list"), 2), (("turn", "What is my budget?"), 20)):
        ended = panda(*words)
        assert ended.code == code
        assert "it has 700,000,000 bytes" in ended.err
        assert name in ended.err
