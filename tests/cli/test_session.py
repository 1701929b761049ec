"""`panda session`, and `panda import` into sessions: as a user types it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from panda.cli.main import build_program
from panda.documents.times import render_time
from panda.store.layout import Layout
from tests.builders import NOW, import_line
from tests.cli.programs import Ended, run_words
from tests.script import Script
from tests.scripted_turns import run_turn

LAPTOPS = "I found:\n1. Lenovo LOQ 15: $697\n2. ASUS TUF A15: $749"


class Shell:
    """
    Runs `panda` on a store of its own.

    Args:
        root: Where the store is made.
        capsys: Catches what is printed.
    """

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.layout = Layout(root / "store")
        self.layout.of("ann").home.mkdir(parents=True)
        self._lines = root / "lines.jsonl"
        self._capsys = capsys

    def __call__(self, *words: str, user: str = "ann") -> Ended:
        options = ["--root", str(self.layout.root), "--user", user]
        return run_words(build_program(), [*words, *options], self._capsys, {"PANDA_NOW": render_time(NOW)})

    def take_in(self, *lines: dict[str, object]) -> Ended:
        """Import lines of ann's session talk."""
        texts = [json.dumps(import_line(**{"user": "ann", "session": "talk", **line})) for line in lines]
        self._lines.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return self("import", str(self._lines))

    def file(self) -> Any:
        """The value of session.json."""
        return json.loads(self.layout.of("ann").session("talk").read_text(encoding="utf-8"))

    def alter(self, value: Any) -> None:
        """Write session.json by hand."""
        self.layout.of("ann").session("talk").write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture
def panda(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A store with an imported conversation of two turns."""
    shell = Shell(tmp_path, capsys)
    first = {"turn": 1, "query": "Which laptops are there?", "response": LAPTOPS}
    second = {"turn": 2, "query": "How much is the second one?", "response": "ASUS TUF A15: $749"}
    assert shell.take_in(first, second).code == 0
    return shell


def test_list(panda: Shell) -> None:
    """Each session is a row: turns, head, when it was active, whether it is open, what it is about."""
    at = "2026-01-03T10:00:00Z"
    assert panda("session", "list").rows == [f"talk\t2\t2\t{at}\topen\tWhich laptops are there?"]
    (row,) = panda("session", "list", "--json").value["data"]["sessions"]
    assert (row["session_id"], row["turns"], row["head_turn"], row["closed_at"]) == ("talk", 2, 2, None)


def test_list_without_the_file(panda: Shell) -> None:
    """Its turns tell the same; one that is damaged is a warning."""
    before = panda("session", "list").rows
    panda.layout.of("ann").session("talk").unlink()
    assert panda("session", "list").rows == before
    (panda.layout.of("ann").turn(2).directory / "context.md").write_text("damaged", encoding="utf-8")
    ended = panda("session", "list")
    assert (ended.code, ended.rows, "warning: session talk: " in ended.err) == (0, [], True)


def test_list_of_nobody(panda: Shell) -> None:
    """A user without sessions has an empty list, which is said."""
    panda.layout.of("bob").home.mkdir()
    ended = panda("session", "list", user="bob")
    assert (ended.code, ended.out) == (0, "")
    assert "user bob has no sessions" in ended.err


def test_show(panda: Shell) -> None:
    """Every field is shown with where it comes from: the last list in its order, what "it" would mean."""
    rows = [line.split("\t") for line in panda("session", "show", "talk").rows]
    shown = {(row[0], row[1]): row[2] for row in rows}
    source = "turns/turn_000001/context.md"
    listed = next(text for field, text in shown if field == "registry" and "the last list" in text)
    assert listed == "the last list, of turn 1, in its order: Lenovo LOQ 15; ASUS TUF A15"
    assert shown["registry", listed] == source
    assert ("pending_clarification", "(nothing)") in shown
    data = panda("session", "show", "talk", "--json").value["data"]
    assert data["carry"]["recent_turns"][1]["asked_about"] == ["t1_item_2"]
    assert {row["field"] for row in data["shown"]} == set(data["fields"]) == set(data["carry"])


@pytest.mark.parametrize("words", [("show", "other"), ("close", "other"), ("verify", "other")])
def test_no_such_session(panda: Shell, words: tuple[str, ...]) -> None:
    """A session without turns is an error with the way out."""
    ended = panda("session", *words)
    assert (ended.code, ended.out) == (2, "")
    assert "error: user ann has no session other" in ended.err
    assert "fix: `panda session list` shows the sessions" in ended.err
    assert panda("session", *words, "--json").value["error"]["type"] == "NotFoundError"


def test_a_wrong_id(panda: Shell) -> None:
    """What cannot be a session id is refused before anything is looked up."""
    ended = panda("session", "show", "../talk", "--json")
    assert (ended.code, ended.value["ok"]) == (2, False)


def test_close_and_reopen(panda: Shell) -> None:
    """A closed session takes no turn and claims no number; closed twice is closed, reopened twice fails."""
    assert panda("session", "close", "talk").code == 0
    assert panda("session", "close", "talk", "--json").value["data"]["closed_at"] == render_time(NOW)
    assert "\tclosed\t" in panda("session", "list").out
    refused = panda("turn", "And the first one?", "--session", "talk")
    assert refused.code == 2
    assert "panda session close talk --reopen" in refused.err
    assert not has_turn(panda, 3)
    assert panda("session", "close", "talk", "--reopen").code == 0
    assert "\topen\t" in panda("session", "list").out
    again = panda("session", "close", "talk", "--reopen")
    assert (again.code, "session talk is not closed" in again.err) == (2, True)


def has_turn(panda: Shell, number: int) -> bool:
    """Whether there is a turn of that number."""
    return panda.layout.of("ann").turn(number).directory.exists()


def test_verify(panda: Shell) -> None:
    """A session that says what its turns say is well; without its file it is made of them, the same."""
    assert panda("session", "verify").code == 0
    before = panda.file()
    panda.layout.of("ann").session("talk").unlink()
    assert panda("session", "verify", "talk", "--json").value["data"]["problems"] == []
    assert panda("session", "show", "talk", "--json").value["data"]["carry"] == before["carry"]


def test_verify_finds_what_was_altered(panda: Shell) -> None:
    """A text that was changed by hand is named by its place; exit code 3."""
    value = panda.file()
    value["carry"]["recent_turns"][1]["user"] = "How much is the first one?"
    panda.alter(value)
    ended = panda("session", "verify", "talk", "--json")
    (problem,) = ended.value["data"]["problems"]
    assert (ended.code, problem["key"]) == (3, "carry.recent_turns[1].user")
    assert "the turns say 'How much is the second one?'" in problem["message"]
    assert panda("session", "verify").code == 3


def test_verify_finds_a_lost_turn(panda: Shell) -> None:
    """A saved turn that the file does not list is lost; so is one that is listed and not there."""
    value = panda.file()
    panda.alter({**value, "turns": value["turns"][:1]})
    found = panda("session", "verify", "talk", "--json").value["data"]["problems"]
    assert found[0]["message"] == "turn 2 is saved but not in the session"
    panda.alter(value)
    shutil.rmtree(panda.layout.of("ann").turn(1).directory)
    ended = panda("session", "verify", "talk")
    assert ended.code == 3
    assert "turn_000001" in ended.out


def test_verify_finds_a_key_that_nothing_knows(panda: Shell) -> None:
    """A file with an unknown key is not read, by no command."""
    panda.alter({**panda.file(), "mood": "good"})
    ended = panda("session", "verify", "talk")
    assert (ended.code, "unknown key 'mood'" in ended.out) == (3, True)
    assert panda("session", "show", "talk").code == 2


def test_import_into_a_session_that_goes_on(panda: Shell) -> None:
    """Old turns can be imported before and after those of a session: it stays what its turns say."""
    nothing: dict[str, Any] = {
        "retrieval": {"relevant": []},
        "synthesis": {"lines": []},
        "answer": {"items": []},
    }
    third = run_turn(panda.layout, "And tea?", Script(**nothing), session="talk")
    assert (third.error, third.turn.turn) == (None, 3)
    assert (
        panda.take_in({"turn": 7, "query": "And tea?", "response": "Assam."}, {"query": "Or cake?"}).code == 0
    )
    assert panda("session", "verify").code == 0
    assert (
        panda.take_in({"turn": 5, "query": "What is on?", "response": "Films: Arrival and Heat."}).code == 0
    )
    assert [one["turn"] for one in panda.file()["turns"]] == [1, 2, 3, 5, 7, 8]
    assert panda("session", "verify").code == 0
    last = run_turn(panda.layout, "And the first one?", Script(**nothing), session="talk")
    assert (last.error, last.turn.turn) == (None, 9)
    assert panda("session", "verify").code == 0
