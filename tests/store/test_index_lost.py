"""Index files that are deleted, damaged or cannot be written: made again, or read from a copy."""

import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.api import Panda, ScriptedPanda, tree
from tests.script import Asked, Script, pick, step_of
from tests.store_files import write_turn
from tests.unprivileged import unprivileged

TURNS = 20


@pytest.fixture(scope="module")
def apples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose user ann has turns that all speak of apples, with an index."""
    panda = Panda(tmp_path_factory.mktemp("apples") / "project", user="ann")
    for number in range(1, TURNS + 1):
        write_turn(panda.user_directory, number, query=f"apple {number}", response="x")
    assert panda("index", "rebuild").code == 0
    return panda.store


@pytest.fixture
def panda(apples: Path, tmp_path: Path) -> Panda:
    """A project with that store."""
    return Panda(tmp_path / "project", apples, user="ann")


def count(panda: Panda) -> tuple[int, int]:
    """Return how many turns a search finds, and how many changes the index is behind."""
    data = panda.json("index", "search", "apple", "-k", "200")
    return len(data["results"]), data["behind"]


def delete(indexes: Path) -> None:
    shutil.rmtree(indexes)


def delete_file(indexes: Path) -> None:
    (indexes / "turn_index.db").unlink()


def truncate(indexes: Path) -> None:
    os.truncate(indexes / "turn_index.db", (indexes / "turn_index.db").stat().st_size // 2)


def empty(indexes: Path) -> None:
    os.truncate(indexes / "turn_index.db", 0)


def scribble(indexes: Path) -> None:
    with (indexes / "turn_index.db").open("r+b") as file:
        file.seek(100)
        file.write(random.Random(1).randbytes((indexes / "turn_index.db").stat().st_size - 100))


def replace(indexes: Path) -> None:
    (indexes / "turn_index.db").unlink()
    (indexes / "turn_index.db").write_text(
        "this is no database, and it is longer than a header of one\n" * 99
    )


Damage = Callable[[Path], None]
DAMAGES = [delete, delete_file, truncate, empty, scribble, replace]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_between_commands(panda: Panda, damage: Damage) -> None:
    """Whatever happened to the files, the next search finds all."""
    damage(panda.store / "indexes")
    assert count(panda) == (TURNS, 0)
    assert count(panda) == (TURNS, 0)


@pytest.mark.parametrize("step", ["analyzer", "validator"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_while_a_turn_runs(ann: ScriptedPanda, damage: Damage, step: str) -> None:
    """A turn finds what it needs and is found itself, whatever became of the files meanwhile."""
    assert ann("index", "rebuild").code == 0
    script = Script()

    def reply(asked: Asked) -> str | Exception:
        if step_of(asked) == step:
            damage(ann.store / "indexes")
        return script(asked)

    assert ann.turn(script=reply).status == "approved"
    data = ann.json("index", "search", "LOQ price")
    assert {"turn:1", "turn:3", "visit:visit_loq"} <= {result["node_id"] for result in data["results"]}
    assert data["behind"] == 0


@contextmanager
def without_write_permission(root: Path) -> Iterator[None]:
    """Take the right to write from the owner of all that is in a store, and see that nothing changes."""
    paths = [root, *root.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = tree(root)
    yield
    assert tree(root) == before
    for path in paths:
        path.chmod(modes[path])


@pytest.mark.parametrize("state", ["in line", "behind", "missing", "damaged"])
def test_an_index_that_cannot_be_written_is_read_from_a_copy(panda: Panda, state: str) -> None:
    """On a store that may only be read all is found, whatever its index is, and nothing is written."""
    expected = TURNS
    if state == "behind":
        write_turn(panda.user_directory, TURNS + 1, query="apple last", response="x")
        expected = TURNS + 1
    elif state == "missing":
        delete(panda.store / "indexes")
    elif state == "damaged":
        scribble(panda.store / "indexes")
    with without_write_permission(panda.store):
        assert unprivileged(lambda: count(panda)) == f"({expected}, 0)"


def test_a_rebuild_says_that_it_cannot_write(panda: Panda) -> None:
    """`index rebuild` on a store that may only be read is an error: it would change nothing."""

    def rebuild() -> tuple[int, bool]:
        ended = panda("index", "rebuild")
        return ended.code, "the index files cannot be written" in ended.err

    with without_write_permission(panda.store):
        assert unprivileged(rebuild) == "(74, True)"


READING = [
    *("index search laptop", "index status", "list", "show 3", "stats", "log", "validate", "validate 3"),
    *("memory list", "memory get budget", "memory history budget", "memory lint", "memory conflicts"),
    *("session list", "session show default", "session verify default", "intervention list", "config show"),
    *("recipe history pipeline/phase3_planner_chat", "synthesize --scope local --query budget"),
]
MODES = re.compile(r"^.*\(mode\): warning: .*\n.*\n", re.MULTILINE)
"""The warning that others can read the store; here they have to."""


def test_commands_that_read_need_no_writing(ann: ScriptedPanda) -> None:
    """A command that only reads gives the same where nothing may be written."""
    script = Script(retrieval={"relevant": pick("visit:")})
    assert ann.turn("How much is the Lenovo LOQ 15?", script=script).status == "approved"

    def act() -> list[tuple[int, str]]:
        ended = [ann(*words.split()) for words in READING]
        return [(command.code, MODES.sub("", command.out)) for command in ended]

    act()
    expected = act()
    shutil.rmtree(ann.store / "runs", ignore_errors=True)
    with without_write_permission(ann.store):
        assert unprivileged(act) == repr(expected)
