"""Hostile names, texts and JSON in a store: every command ends cleanly, and what is sound is still found."""

import json
import os
import random
import re
import shutil
import sys
import traceback
from pathlib import Path

import pytest

from panda.cli.boundary import run
from panda.cli.main import build_program
from panda.store.layout import Layout
from tests.cli.test_mutations import limited
from tests.hostile_files import file_name, plant
from tests.script import Script, pick
from tests.scripted_turns import USER, laptop_store, run_turn

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


def make_sound_store(root: Path) -> Layout:
    """A store with a turn that was run, a visit, a preference and a note."""
    layout = laptop_store(root)
    note = layout.of(USER).knowledge / NOTE
    note.parent.mkdir(parents=True)
    note.write_text(f"# Ferries\n\n{WITNESS}\n", encoding="utf-8")
    assert run_turn(layout).error is None
    return layout


def commands(root: Path, seed: int) -> list[list[str]]:
    """Every command that needs no model, with a hostile word wherever it takes one."""
    draw = random.Random(seed)
    word, turn = file_name(draw), root / "users" / USER / "turns" / "turn_000003"
    beside = root.parent / word
    for ending, text in BESIDE.items():
        beside.with_name(word + ending).write_bytes(text)
    files = sorted(str(path.relative_to(turn)) for path in turn.rglob("*"))
    values = {
        "WORD": word,
        "BESIDE": str(beside),
        "HOME": str(turn.parent.parent),
        "FILE": draw.choice(files),
    }
    lines = [re.split(r" +", line) for line in COMMANDS.strip().split("\n")]
    return [[re.sub("[A-Z]{4,}", lambda found: values[found[0]], part) for part in line] for line in lines]


def misses(root: Path, seed: int) -> list[str]:
    """Commands that end with a bug."""
    environ = {"HOME": str(root.parent), "XDG_CACHE_HOME": str(root.parent.parent / "cache"), "NO_COLOR": "1"}
    found = []
    for words in commands(root, seed):
        own = [] if "--root" in words else [f"--root={root}"]
        own += [] if any(word.startswith("--user=") for word in words) else [f"--user={USER}"]
        end = words.index("--") if "--" in words else len(words)
        code = run(build_program(), [*words[:end], *own, *words[end:]], environ)
        if code not in CLEAN:
            found.append(f"{words!r:.200} ends with {code}")
    return found


def finds_witness(root: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> bool:
    capsysbinary.readouterr()
    words = ["index", "search", "zanzibar ferry", f"--root={root}", f"--user={USER}", "--json"]
    run(build_program(), words, {"HOME": "/nowhere"})
    hits = json.loads(capsysbinary.readouterr().out)["data"]["results"]
    return any(hit["node_id"] == f"knowledge:{NOTE}" for hit in hits)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sound") / "store"
    make_sound_store(root)
    return root


@pytest.mark.parametrize("seed", range(4))
def test_hostile_files(
    sound: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], seed: int
) -> None:
    """Among twenty hostile files no command has a bug, a sound note is found, and a turn answers from it."""
    root = tmp_path / os.fsdecode(b"st\xe9re\n%41")
    shutil.copytree(sound, root, symlinks=True)
    done = plant(root, USER, seed, 20)
    found = misses(root, seed)
    assert (found, b"Traceback" in capsysbinary.readouterr().err) == ([], False), done
    assert finds_witness(root, capsysbinary), done
    ran = run_turn(Layout(root), QUERY, FERRY, session="ferries")
    assert (ran.error, WITNESS in ran.response) == (None, True), done


def test_a_file_of_any_name_is_shown(
    sound: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A file of a turn is shown by its bytes, and by the name that the list of files gives it."""
    root = Path(shutil.copytree(sound, tmp_path / "store"))
    path = Layout(root).of(USER).turn(1) / os.fsdecode(b"caf\xe9\n.md")
    path.write_bytes(b"Lavazza")
    for name in (path.name, "caf%E9%0A.md"):
        words = ["show", "1", f"--file={name}", f"--root={root}", f"--user={USER}"]
        assert run(build_program(), words, {"HOME": "/nowhere"}) == 0
        assert capsysbinary.readouterr().out == b"Lavazza"
    assert run(build_program(), [*words[:2], "--file=x", *words[3:]], {"HOME": "/nowhere"}) == 2
    assert b"caf%E9%0A.md" in capsysbinary.readouterr().err


def main(first: int, count: int, directory: Path) -> None:
    """Many more: `python -m tests.cli.test_hostile_files FIRST COUNT DIRECTORY`."""
    out, directory = sys.stdout, directory.resolve()
    sound = make_sound_store(directory / "sound").root
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        for seed in range(first, first + count):
            root = directory / "at" / os.fsdecode((b"store", b"st\xe9re\n%41")[seed % 2])
            shutil.rmtree(root.parent, ignore_errors=True)
            shutil.copytree(sound, root)
            plant(root, USER, seed, 20)
            found: list[str] = []
            sys.stdout = sys.stderr = nowhere
            try:
                with limited(120):
                    found += misses(root, seed)
                    ran = run_turn(Layout(root), QUERY, FERRY, session="ferries")
                    if ran.error is not None:
                        out.write(f"seed {seed}: turn: {ran.error!r:.300} {ran.error.where!r}\n")
            except BaseException as exc:
                frames = [one for one in traceback.extract_tb(exc.__traceback__) if "/panda/" in one.filename]
                found += [repr(exc)[:200], *(f"{one.filename}:{one.lineno}" for one in frames[-3:])]
            finally:
                sys.stdout, sys.stderr = out, sys.__stderr__
            for one in found:
                out.write(f"seed {seed}: {one}\n".encode("utf-8", "backslashreplace").decode())
            out.flush()
    out.write(f"{count} from {first} done\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
