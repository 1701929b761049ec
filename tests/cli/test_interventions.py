"""intervention list, show and resolve, run in this process."""

import json
from pathlib import Path

import pytest

from panda.documents.times import parse_time
from panda.errors import MemoryNodeError, RecipeError, ReplyError
from panda.store.interventions import write_intervention
from panda.store.layout import Layout, UserStore
from panda.store.validate import check_store
from tests.api import Ended, run_here


class Halted:
    """A store with three interventions of the user ann and one of bob."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        self.layout.users.mkdir(parents=True)
        self.ids = [
            self._write(1, MemoryNodeError("turn:5: gone", where="turns/turn_000005", fix="restore it"), 12),
            self._write(2, ReplyError("still invalid", received="{\n  half", expected="an object"), 13),
            self._write(3, RecipeError("broken", where="r.yaml:3"), None),
            self._write(4, MemoryNodeError("another's"), 2, user="bob"),
        ]

    def _write(self, day: int, error: Exception, turn: int | None, user: str = "ann") -> str:
        assert isinstance(error, MemoryNodeError | ReplyError | RecipeError)
        now = parse_time(f"2026-01-0{day}T10:00:00Z")
        return write_intervention(
            UserStore(self.layout.root, user, lambda: now), error, turn=turn, phase=2, recipe="pipeline/x"
        )

    def __call__(self, *words: str) -> Ended:
        environ = {"PANDA_NOW": "2026-01-05T00:00:00Z"}
        words = ("intervention", *words, "--root", str(self.layout.root), "--user", "ann")
        return run_here(words, environ)


@pytest.fixture
def halted(tmp_path: Path) -> Halted:
    return Halted(tmp_path)


def test_list(halted: Halted) -> None:
    """The open interventions of the user are listed, newest last, a line each."""
    lines = halted("list").rows
    assert [line.split("\t")[0] for line in lines] == halted.ids[:3]
    assert lines[0].split("\t")[1:] == [
        "2026-01-01T10:00:00Z",
        *("12", "2", "pipeline/x", "memory_error", "critical", "turn:5: gone"),
    ]


def test_resolve(halted: Halted) -> None:
    """A resolved one has a note and a time, is listed only with --all, and validates."""
    ended = halted("resolve", "20260101", "--note", "restored the turn")
    assert ended.code == 0
    assert "panda turn --resume 12 --user ann" in ended.err
    value = json.loads((halted.layout.interventions / f"{halted.ids[0]}.json").read_bytes())
    assert (value["status"], value["resolution"]) == ("resolved", "restored the turn")
    assert value["resolved_at"] == "2026-01-05T00:00:00Z"
    assert len(halted("list").rows) == 2
    assert halted("list", "--all").rows[0].endswith("\tresolved")
    assert check_store(halted.layout) == []


def test_resolve_twice(halted: Halted) -> None:
    """Resolving what is resolved ends with 2, says when it was, and changes nothing."""
    halted("resolve", halted.ids[0], "--note", "first")
    before = (halted.layout.interventions / f"{halted.ids[0]}.json").read_bytes()
    ended = halted("resolve", halted.ids[0], "--note", "second")
    assert ended.code == 2
    assert "was resolved at 2026-01-05T00:00:00Z: first" in ended.err
    assert (halted.layout.interventions / f"{halted.ids[0]}.json").read_bytes() == before


@pytest.mark.parametrize(("words", "message"), [(["", "x"], "no intervention ''"), (["2026", " "], "empty")])
def test_resolve_nothing(halted: Halted, words: list[str], message: str) -> None:
    """An empty id or an empty note is refused."""
    ended = halted("resolve", words[0], "--note", words[1])
    assert (ended.code, message in ended.err) == (2, True)


def test_prefix_of_several(halted: Halted) -> None:
    """A beginning that several ids have is refused and names them."""
    ended = halted("show", "202601")
    assert ended.code == 2
    assert ended.err.startswith("error: 4 interventions begin with '202601': ")


def test_show(halted: Halted) -> None:
    """All that is known is shown; a text of several lines is indented; it says how to go on."""
    ended = halted("show", "20260102")
    assert "\nexpected: an object\n" in ended.out
    assert "\nraw_output:\n  {\n    half\n" in ended.out
    assert ended.err == "to go on: panda turn --resume 13 --user ann\n"


def test_show_without_turn(halted: Halted) -> None:
    """What halted before a turn was claimed cannot be resumed, and nothing says it could."""
    ended = halted("show", halted.ids[2], "--json")
    assert (ended.value["data"]["go_on"], ended.err) == (None, "")


def test_damaged_file(halted: Halted) -> None:
    """A damaged file is a warning of the list, and an error of show."""
    path = halted.layout.interventions / f"{halted.ids[1]}.json"
    path.write_text("{", encoding="utf-8")
    ended = halted("list")
    assert ended.err.startswith(f"warning: {path}:1: not valid JSON")
    assert len(ended.rows) == 2
    assert halted("show", halted.ids[1]).code == 2


def test_none(tmp_path: Path) -> None:
    """A store in which nothing halted lists nothing and says so."""
    (tmp_path / "users").mkdir()
    ended = run_here(["intervention", "list", "--root", str(tmp_path)])
    assert (ended.code, ended.out, ended.err) == (0, "", "no open interventions of user default\n")
