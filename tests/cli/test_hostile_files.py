"""Hostile and damaged files in a store: commands end cleanly and in time, and what is sound is found."""

import json
import os
import random
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

from tests.api import LAPTOPS, Panda, ScriptedPanda
from tests.effort import tried
from tests.hostile_files import file_name, plant
from tests.mutations import mutate
from tests.script import Script, pick
from tests.store_files import import_line, write_note

WITNESS = "The zanzibar ferry leaves at 7:45 from pier 9."
NOTE = "Ferries/zanzibar.md"
QUERY = "When does the zanzibar ferry leave?"
FERRY = Script(
    retrieval={"relevant": pick("knowledge:Ferries")},
    synthesis={"lines": pick("zanzibar")},
    answer={"items": [{"text": WITNESS, "node_ids": [f"knowledge:{NOTE}"]}]},
)
BESIDE = {
    ".txt": b"A caf\xc3\xa9. The laptop costs $5.\n" * 20,
    ".jsonl": b'{"user": "ann", "session": "s", "at": "2026-01-01", "query": "\\ud800"}',
    ".json": b'{"facts": [{"id": "\\ud800", "entity": "\\udce9"}], "conflicts": []}',
}
COMMANDS = """
validate
validate HOME
validate BESIDE
list
list --user=WORD
show 3
show 1 --json
show 3 --file=FILE --json
show 3 --file=WORD
index rebuild
index status --json
index search --json -- WORD
memory list --json
memory lint
memory conflicts
memory history -- WORD
memory set -- colour WORD
memory set -- WORD blue
memory get -- WORD
memory retract -- WORD
memory merge BESIDE.jsonl
compress BESIDE.txt --budget 4000 --query=WORD
import BESIDE.jsonl
session list --json
session show default --json
session show -- WORD
session verify default
validate 3
validate -- WORD
diff saved WORD
synthesize --scope local --json
synthesize --scope=WORD
synthesize --scope local --facts BESIDE.json
stats
log --json
log --recipe=WORD
tool list
tool run doc.search --json --args {"query":"laptop"}
tool run doc.search --args {"query":"WORD"}
tool run memory.query --args {"query":"\\ud800"}
tool run WORD
recipe show -- WORD
recipe failures -- WORD
config show
intervention list
intervention show -- WORD
gather WORD
turn --image=BESIDE what?
turn --session WORD what?
init --root BESIDE.d
eval -- WORD
"""
CLEAN = {0, 2, 3, 4, 20, 21, 22, 74}
SECONDS = 60


class TooSlowError(BaseException):
    """A command did not end."""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raises TooSlowError in the block after that time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlowError

    former = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


def check(panda: Panda, *words: str, about: object) -> str:
    """A command ends with a clean code, in time and without a traceback; returns its stdout."""
    with limited(SECONDS):
        ended = panda(*words)
    assert ended.code in CLEAN, (words, about, ended.err[-2000:])
    assert "Traceback" not in ended.err, (words, about)
    return ended.out


def hostile_commands(panda: Panda, seed: int) -> list[list[str]]:
    """Every command that needs no model, with a hostile word wherever it takes one."""
    draw = random.Random(seed)
    word = file_name(draw)
    turn = panda.turn_file(3, "")
    beside = panda.home / word
    for ending, text in BESIDE.items():
        beside.with_name(word + ending).write_bytes(text)
    files = sorted(str(path.relative_to(turn)) for path in turn.rglob("*"))
    values = {
        "WORD": word,
        "BESIDE": str(beside),
        "HOME": str(panda.user_directory),
        "FILE": draw.choice(files),
    }
    lines = [re.split(r" +", line) for line in COMMANDS.strip().split("\n")]
    return [[re.sub("[A-Z]{4,}", lambda match: values[match[0]], part) for part in line] for line in lines]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a turn that was run, a visit, a preference and a note."""
    with ScriptedPanda(tmp_path_factory.mktemp("sound") / "project") as ann:
        write_note(ann.user_directory, NOTE, f"# Ferries\n\n{WITNESS}\n")
        assert ann.turn().status == "approved"
        return ann.store


@pytest.mark.parametrize("seed", range(tried(3, 40)))
def test_hostile_files(sound: Path, tmp_path: Path, seed: int) -> None:
    """Among twenty hostile files no command has a bug, a sound note is found, and a turn answers from it."""
    with ScriptedPanda(tmp_path / os.fsdecode(b"pr\xe9ject\n%41"), sound) as ann:
        planted = plant(ann.store, "ann", seed, 20)
        for words in hostile_commands(ann, seed):
            check(ann, *words, about=planted)
        results = json.loads(check(ann, "index", "search", "zanzibar ferry", "--json", about=planted))
        assert any(hit["node_id"] == f"knowledge:{NOTE}" for hit in results["data"]["results"]), planted
        turn = ann.turn(QUERY, "--session", "ferries", script=FERRY)
        assert (turn.code, WITNESS in turn.data["response"]) == (0, True), planted


def test_a_file_of_any_name_is_shown(tmp_path: Path) -> None:
    """A file of a turn is shown by its bytes, and by the name that the list of files gives it."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    path = panda.turn_file(1, os.fsdecode(b"caf\xe9\n.md"))
    path.write_bytes(b"Lavazza")
    for name in (path.name, "caf%E9%0A.md"):
        ended = panda("show", "1", f"--file={name}")
        assert (ended.code, ended.out) == (0, "Lavazza")
    missing = panda("show", "1", "--file=x")
    assert (missing.code, "caf%E9%0A.md" in missing.err) == (2, True)


def content(turn: Path) -> dict[str, bytes | None]:
    """Return the content of a turn's directory; links and the like as None."""
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in turn.rglob("*")
    }


@pytest.mark.parametrize("seed", range(tried(12, 140)))
def test_damaged_turns(recorded: Path, tmp_path: Path, seed: int) -> None:
    """
    Of damaged turns validate, list, show, nodes and index give findings or clean errors; commands that write
    beside them do so too, and leave the damage as it is.
    """
    panda = Panda(tmp_path, user="demo")
    for number in (811, 814):
        name = f"users/demo/turns/turn_{number:06d}"
        shutil.copytree(recorded / name, panda.store / name)
    number = (811, 814)[seed % 2]
    turn = panda.turn_file(number, "")
    done = mutate(turn, seed)
    names = sorted(str(path.relative_to(turn)) for path in turn.rglob("*"))
    before = content(turn)
    file = names[seed % len(names)] if names else "context.md"
    panda.write_lines("lines.jsonl", import_line(session="new"))
    for words in (
        ["validate", str((turn, panda.user_directory)[seed // 2 % 2])],
        ["list"],
        ["show", str(number)],
        ["show", str(number), "--section", str(seed % 7), "--json"],
        ["show", f"--file={file}", "--json", str(number)],
        ["index", "search", "laptop RTX 4050"],
        ["memory", "set", "color", "blue"],
        ["index", "rebuild"],
        ["import", "lines.jsonl"],
        ["validate", str(panda.store)],
    ):
        check(panda, *words, about=done)
    assert content(turn) == before, done
