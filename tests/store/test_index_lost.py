"""Index files that are deleted, damaged or cannot be written: made again, or read from a copy."""

import os
import random
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from panda.cli.boundary import run
from panda.cli.main import build_program
from panda.documents.times import render_time
from panda.index.index import Index
from panda.index.tables import IndexView
from panda.retrieval.ranking import Bounds, rank_rows
from panda.store.layout import Layout
from tests.builders import NOW, tree
from tests.script import Script
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import USER, laptop_store, scripted_app
from tests.stores import write_turn
from tests.unprivileged import unprivileged

TURNS = 40


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """User ann with turns that all speak of apples."""
    layout = Layout(tmp_path / "store")
    for number in range(1, TURNS + 1):
        write_turn(layout, number, query=f"apple {number}", response="x")
    return layout


def found(index: Index) -> int:
    return index.read("ann", lambda view: len(rank_rows(view, "apple", bounds=Bounds())))


Damage = Callable[[Layout], None]


def delete(layout: Layout) -> None:
    shutil.rmtree(layout.indexes)


def delete_one(layout: Layout) -> None:
    layout.turn_index.unlink()


def truncate(layout: Layout) -> None:
    os.truncate(layout.turn_index, layout.turn_index.stat().st_size // 2)


def empty(layout: Layout) -> None:
    os.truncate(layout.turn_index, 0)


def scribble(layout: Layout) -> None:
    rng = random.Random(1)
    with layout.turn_index.open("r+b") as file:
        file.seek(100)
        file.write(rng.randbytes(layout.turn_index.stat().st_size - 100))


def replace(layout: Layout) -> None:
    layout.turn_index.unlink()
    layout.turn_index.write_text("this is no database, and it is longer than a header of one\n" * 99)


DAMAGES = [delete, delete_one, truncate, empty, scribble, replace]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_open", [True, False])
def test_damage_between_looking_and_reading(layout: Layout, damage: Damage, *, is_open: bool) -> None:
    """What happens to the files after they were brought in line is noticed by what reads: all is found."""
    index = Index(layout)
    index.freshen("ann")
    assert found(index) == TURNS
    if not is_open:
        index.close()
    damage(layout)
    assert found(index) == TURNS
    assert found(Index(layout)) == TURNS


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_while_it_is_read(layout: Layout, damage: Damage) -> None:
    """Files that change under a reader give what was there, or it reads again from files made anew."""
    index = Index(layout)
    index.freshen("ann")
    calls = []

    def act(view: IndexView) -> int:
        calls.append(1)
        if len(calls) == 1:
            damage(layout)
        return len(rank_rows(view, "apple", bounds=Bounds()))

    assert index.read("ann", act) == TURNS
    assert found(index) == TURNS


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_before_a_turn_is_recorded(layout: Layout, damage: Damage) -> None:
    """A turn is indexed whatever became of the files since they were opened, and so is all before it."""
    index = Index(layout)
    index.rebuild(["ann"])["ann"]
    write_turn(layout, TURNS + 1, query="apple last", response="x")
    damage(layout)
    index.record("ann", [TURNS + 1])
    assert found(index) == TURNS + 1
    assert found(Index(layout)) == TURNS + 1


@pytest.mark.parametrize("error", [KeyError("mine"), ValueError("mine"), ZeroDivisionError("mine")])
def test_an_error_of_the_caller_is_no_damage(layout: Layout, error: Exception) -> None:
    """What the caller's own function raises comes out as it is, at once; the index stays byte for byte."""
    write_turn(layout, 1, query="apple", response="x", user="bob")
    index = Index(layout)
    for user in ("ann", "bob"):
        index.freshen(user)
    index.close()
    before, calls = tree(layout.indexes), []

    def act(view: IndexView) -> int:
        calls.append(view.user)
        raise error

    with pytest.raises(type(error), match="mine"):
        index.read("ann", act)
    index.close()
    assert calls == ["ann"]
    assert tree(layout.indexes) == before
    assert found(index) == TURNS


@pytest.fixture
def unwritable(layout: Layout) -> Iterator[Layout]:
    """The store with nothing in it that its owner may write."""
    yield from _without_write_permission(layout)


def _without_write_permission(layout: Layout) -> Iterator[Layout]:
    paths = [layout.root, *layout.root.rglob("*")]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield layout
    for path in paths:
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.parametrize("state", ["in line", "behind", "missing", "damaged"])
def test_an_index_that_cannot_be_written_is_read_from_a_copy(layout: Layout, state: str) -> None:
    """On a store that may only be read all is found, whatever its index is, and nothing is written."""
    index = Index(layout)
    index.rebuild(["ann"])["ann"]
    index.close()
    if state == "behind":
        write_turn(layout, TURNS + 1, query="apple last", response="x")
    elif state == "missing":
        delete(layout)
    elif state == "damaged":
        scribble(layout)
    expected = TURNS + (state == "behind")
    for held in _without_write_permission(layout):
        before = tree(held.root)

        def act() -> tuple[int, int]:
            index = Index(layout)
            index.freshen("ann")
            return found(index), len(index.behind("ann").sources)

        assert unprivileged(act) == f"({expected}, 0)"
        assert tree(held.root) == before


def test_a_rebuild_says_that_it_cannot_write(unwritable: Layout) -> None:
    """`index rebuild` on a store that may only be read is an error: it would change nothing."""
    told = unprivileged(lambda: Index(unwritable).rebuild(["ann"]))
    assert told == "StoreError: the index files cannot be written"


READING = [
    ["index", "search", "laptop"],
    ["index", "status"],
    ["list"],
    ["show", "3"],
    ["memory", "list"],
    ["memory", "get", "budget"],
    ["memory", "history", "budget"],
    ["memory", "lint"],
    ["memory", "conflicts"],
    ["stats"],
    ["log"],
    ["session", "list"],
    ["session", "show", "default"],
    ["session", "verify", "default"],
    ["intervention", "list"],
    ["recipe", "history", "pipeline/phase3_planner_chat"],
    ["synthesize", "--scope", "local", "--query", "budget"],
    ["validate"],
    ["validate", "3"],
    ["config", "show"],
]


def test_commands_that_read_need_no_writing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What only reads gives the same on a store that may only be read as on one that may be written."""
    layout = laptop_store(tmp_path / "store")
    app = scripted_app(layout, ScriptedModel(Script(), scores=False))
    app.run_turn(app.start_turn("How much is the Lenovo LOQ 15?", "chat"))
    common = ["--root", str(layout.root), "--user", USER]
    environ = {"HOME": str(tmp_path / "home"), "PANDA_NOW": render_time(NOW)}

    def act() -> list[int]:
        return [run(build_program(), [*words, *common], environ) for words in READING]

    act()
    capfd.readouterr()
    expected, told = act(), capfd.readouterr()
    shutil.rmtree(layout.runs, ignore_errors=True)
    for held in _without_write_permission(layout):
        before = tree(held.root)
        assert unprivileged(act) == repr(expected), capfd.readouterr().err
        assert tree(held.root) == before
    warning = re.compile(r"^.*\(mode\): warning: .*\n.*\n", re.MULTILINE)  # others have to read it here
    assert warning.sub("", capfd.readouterr().out) == warning.sub("", told.out)
