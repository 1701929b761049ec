"""`panda session`, and `panda import` into sessions: as a user types it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api import NOW, Ended, ScriptedPanda
from tests.script import Script
from tests.store_files import import_line, write_json

LISTED = "I found:\n1. Lenovo LOQ 15: $697\n2. ASUS TUF A15: $749"
NOTHING: dict[str, Any] = {
    "retrieval": {"relevant": []},
    "synthesis": {"lines": []},
    "answer": {"items": []},
}


def take_in(panda: ScriptedPanda, *changes: dict[str, Any]) -> Ended:
    """Import lines of ann's session talk."""
    panda.write_lines("lines.jsonl", *(import_line(user="ann", session="talk", **line) for line in changes))
    return panda("import", "lines.jsonl")


@pytest.fixture
def panda(tmp_path: Path) -> Iterator[ScriptedPanda]:
    """A store with an imported conversation of two turns."""
    with ScriptedPanda(tmp_path / "project", store=None) as panda:
        panda.user_directory.mkdir(parents=True)
        first = {"turn": 1, "query": "Which laptops are there?", "response": LISTED}
        second = {"turn": 2, "query": "How much is the second one?", "response": "ASUS TUF A15: $749"}
        assert take_in(panda, first, second).code == 0
        yield panda


def session_file(panda: ScriptedPanda) -> Path:
    """Return the file of the session."""
    return panda.user_directory / "sessions/talk/session.json"


def load(panda: ScriptedPanda) -> Any:
    """The value of session.json."""
    return json.loads(session_file(panda).read_text(encoding="utf-8"))


def test_list(panda: ScriptedPanda) -> None:
    """Each session is a row: turns, head, when it was active, whether it is open, what it is about."""
    at = "2026-01-03T10:00:00Z"
    assert panda("session", "list").rows == [f"talk\t2\t2\t{at}\topen\tWhich laptops are there?"]
    (row,) = panda.json("session", "list")["sessions"]
    assert (row["session_id"], row["turns"], row["head_turn"], row["closed_at"]) == ("talk", 2, 2, None)


def test_list_without_the_file(panda: ScriptedPanda) -> None:
    """Its turns tell the same; one that is damaged is a warning; a user without sessions has none."""
    before = panda("session", "list").rows
    session_file(panda).unlink()
    assert panda("session", "list").rows == before
    panda.turn_file(2, "context.md").write_text("damaged", encoding="utf-8")
    ended = panda("session", "list")
    assert (ended.code, ended.rows, "warning: session talk: " in ended.err) == (0, [], True)
    (panda.store / "users/bob").mkdir()
    nobody = panda("session", "list", PANDA_USER="bob")
    assert (nobody.code, nobody.out, "user bob has no sessions" in nobody.err) == (0, "", True)


def test_show(panda: ScriptedPanda) -> None:
    """Every field is shown with where it comes from: the last list in its order, what "it" would mean."""
    rows = [line.split("\t") for line in panda("session", "show", "talk").rows]
    sources = {(row[0], row[1]): row[2] for row in rows}
    listed = "the last list, of turn 1, in its order: Lenovo LOQ 15; ASUS TUF A15"
    assert sources["registry", listed] == "turns/turn_000001/context.md"
    assert ("pending_clarification", "(nothing)") in sources
    data = panda.json("session", "show", "talk")
    assert data["carry"]["recent_turns"][1]["asked_about"] == ["t1_item_2"]
    assert {row["field"] for row in data["shown"]} == set(data["fields"]) == set(data["carry"])


@pytest.mark.parametrize("command", ["show", "close", "verify"])
def test_no_such_session(panda: ScriptedPanda, command: str) -> None:
    """A session without turns is an error with the way out; so is what cannot be a session's name."""
    ended = panda("session", command, "other", "--json")
    assert (ended.code, ended.error["type"]) == (2, "NotFoundError")
    assert ended.error["message"] == "user ann has no session other"
    assert "`panda session list` shows the sessions" in ended.error["fix"]
    assert panda("session", command, "../talk").code == 2


def test_close_and_reopen(panda: ScriptedPanda) -> None:
    """A closed session takes no turn and claims no number; closed twice is closed, reopened twice fails."""
    assert panda("session", "close", "talk").code == 0
    assert panda.json("session", "close", "talk")["closed_at"] == NOW
    assert "\tclosed\t" in panda("session", "list").out
    refused = panda("turn", "And the first one?", "--session", "talk")
    assert refused.code == 2
    assert "panda session close talk --reopen" in refused.err
    assert not panda.turn_file(3, "").exists()
    assert panda("session", "close", "talk", "--reopen").code == 0
    assert "\topen\t" in panda("session", "list").out
    again = panda("session", "close", "talk", "--reopen")
    assert (again.code, "session talk is not closed" in again.err) == (2, True)


def test_verify(panda: ScriptedPanda) -> None:
    """A session that says what its turns say is well; without its file it is made of them, the same."""
    assert panda("session", "verify").code == 0
    before = load(panda)
    session_file(panda).unlink()
    assert panda.sessions_differ("talk") == []
    assert panda.json("session", "show", "talk")["carry"] == before["carry"]


def test_verify_finds_what_was_altered(panda: ScriptedPanda) -> None:
    """A text that was changed by hand is named by its place; exit code 3."""
    value = load(panda)
    value["carry"]["recent_turns"][1]["user"] = "How much is the first one?"
    write_json(session_file(panda), value)
    ended = panda("session", "verify", "talk", "--json")
    (problem,) = ended.data["problems"]
    assert (ended.code, problem["key"]) == (3, "carry.recent_turns[1].user")
    assert "the turns say 'How much is the second one?'" in problem["message"]
    assert panda("session", "verify").code == 3


def test_verify_finds_a_lost_turn(panda: ScriptedPanda) -> None:
    """A saved turn that the file does not list is lost; so is one that is listed and not there."""
    value = load(panda)
    write_json(session_file(panda), {**value, "turns": value["turns"][:1]})
    problems = panda("session", "verify", "talk", "--json").data["problems"]
    assert problems[0]["message"] == "turn 2 is saved but not in the session"
    write_json(session_file(panda), value)
    shutil.rmtree(panda.turn_file(1, ""))
    ended = panda("session", "verify", "talk")
    assert (ended.code, "turn_000001" in ended.out) == (3, True)


def test_verify_finds_a_key_that_nothing_knows(panda: ScriptedPanda) -> None:
    """A file with an unknown key is not read, by no command."""
    write_json(session_file(panda), {**load(panda), "mood": "good"})
    ended = panda("session", "verify", "talk")
    assert (ended.code, "unknown key 'mood'" in ended.out) == (3, True)
    assert panda("session", "show", "talk").code == 2


def test_import_into_a_session_that_goes_on(panda: ScriptedPanda) -> None:
    """Old turns can be imported before and after those of a session: it stays what its turns say."""
    assert panda.turn("And tea?", "--session", "talk", script=Script(**NOTHING)).number == 3
    later = {"turn": 7, "query": "And tea?", "response": "Assam."}
    assert take_in(panda, later, {"query": "Or cake?"}).code == 0
    assert panda.sessions_differ("talk") == []
    between = {"turn": 5, "query": "What is on?", "response": "Films: Arrival and Heat."}
    assert take_in(panda, between).code == 0
    assert [turn["turn"] for turn in load(panda)["turns"]] == [1, 2, 3, 5, 7, 8]
    assert panda.sessions_differ("talk") == []
    assert panda.say("And the first one?", **NOTHING).number == 9
