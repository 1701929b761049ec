"""A turn without --session begins a session of its own; -c goes on with the user's newest."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.api import PRICE_QUESTION, VAGUE_QUESTION, Panda, ScriptedPanda, Turn
from tests.script import Script
from tests.store_files import import_line, write_json

CLARIFY = {"reflection": {"decision": "CLARIFY", "question": "Which one?"}}
GATHER = ("gather", "--query", PRICE_QUESTION, "--json")


def session_of(turn: Turn) -> str:
    """The session that a turn is in."""
    return str(turn.metadata["session_id"])


def carries(turn: Turn, text: str) -> bool:
    """Return whether the analyzer was told a text of an earlier turn."""
    (request,) = turn.asked("analyzer")
    return text in request.text


def test_each_turn_begins_a_session(ann: ScriptedPanda) -> None:
    """Two questions without --session see nothing of each other's carry; each is named after its turn."""
    first = ann.turn()
    second = ann.turn("How heavy is it?")
    assert [session_of(turn) for turn in (first, second)] == ["t000003", "t000004"]
    assert not carries(second, PRICE_QUESTION)
    path = ann.user_directory / "sessions/t000004/session.json"
    assert json.loads(path.read_bytes())["turns"][0]["turn"] == 4
    assert ann("session", "verify").code == 0
    assert ann.problems() == []


def test_continue_goes_on(ann: ScriptedPanda) -> None:
    """With -c, and with --continue, the newest session goes on, and its carry is known; the data names it."""
    ann.turn()
    second = ann.turn("How heavy is it?", "-c")
    assert carries(second, PRICE_QUESTION)
    third = ann.turn("And how old?", "--continue")
    assert [session_of(turn) for turn in (second, third)] == ["t000003"] * 2
    assert third.data["session"] == "t000003"


def test_gather_begins_and_goes_on(ann: ScriptedPanda) -> None:
    """`gather --query` has the same two ways; what is gathered and not saved yet is no newest session."""
    ann.turn()
    assert ann(*GATHER).code == 0
    assert ann(*GATHER, "-c").code == 0
    turns = ann.json("list")["turns"]
    assert [turn["session"] for turn in turns[-2:]] == ["t000004", "t000003"]


def test_the_newest_is_that_of_the_newest_saved_turn(ann: ScriptedPanda) -> None:
    """Numbers decide, not the times of files; a turn that halted is in no session yet."""
    for session in ("b", "a"):
        ann.turn(PRICE_QUESTION, "--session", session)
    os.utime(ann.user_directory / "sessions/b/session.json", (4e9, 4e9))
    assert ann.turn(script=Script(planner="no JSON")).code == 20
    assert session_of(ann.turn(PRICE_QUESTION, "-c")) == "a"
    rows = ann.json("session", "list", "--limit", "2")["sessions"]
    assert [row["session_id"] for row in rows] == ["b", "a"]
    assert ann.json("session", "show")["session_id"] == "a"
    assert ann("session", "show").err.startswith("session a\n")


def test_a_turn_that_was_killed_after_it_joined_is_the_newest(ann: ScriptedPanda) -> None:
    """Its session knows it already: -c goes on there, and brings it to its end."""
    killed = ann.turn()
    unsaved = {"status": "running", "next": {"phase": 7, "round": 0, "attempt": 0}, "saved_at": None}
    write_json(killed.directory / "metadata.json", {**killed.metadata, **unsaved, "seal": None})
    assert session_of(ann.turn("How heavy is it?", "-c")) == "t000003"
    assert killed.status == "approved"


def test_nothing_to_go_on_with(tmp_path: Path) -> None:
    """Without a saved turn -c ends with 2 and says what to do; no number is claimed."""
    panda = Panda(tmp_path)
    assert panda("init").code == 0
    for words in (("turn", PRICE_QUESTION, "-c"), (*GATHER[:-1], "-c")):
        ended = panda(*words)
        assert ended.code == 2
        for part in ("user default has no session yet", "where: --continue", "fix: leave it out"):
            assert part in ended.err
    assert [path.name for path in panda.user_directory.iterdir()] == ["knowledge"]


@pytest.mark.parametrize(
    "words",
    [
        ("turn", PRICE_QUESTION, "-c", "--session", "tea"),
        ("turn", "-c", "--resume", "2"),
        ("turn", "-c", "--resume-all"),
        ("turn", "-c", "--discard", "2"),
        (*GATHER[:-1], "-c", "--session", "tea"),
        ("gather", "2", "-c"),
    ],
)
def test_two_sessions_are_wrong_usage(words: tuple[str, ...], tmp_path: Path) -> None:
    """-c stands neither beside --session nor with a turn that has its session."""
    ended = Panda(tmp_path)(*words)
    assert (ended.code, "--continue" in ended.err) == (2, True)


def test_a_question_says_how_to_answer_it(ann: ScriptedPanda) -> None:
    """Of a question that is asked back stderr tells the command; the answer reaches the session of it."""
    ann.server.script = Script(**CLARIFY)
    ended = ann("turn", "How old is it?")
    assert (ended.code, ended.out) == (21, "Which one?\n")
    assert 'to answer: panda turn -c "…"' in ended.err
    assert carries(ann.turn("The Lenovo.", "-c"), "Which one?")
    ann.server.script = Script(**CLARIFY)
    gathered = ann("gather", "--query", VAGUE_QUESTION)
    assert (gathered.code, 'to answer: panda turn -c "…"' in gathered.err) == (21, True)


def test_a_resumed_question_names_its_session(ann: ScriptedPanda) -> None:
    """A turn that was taken up again and asks back need not be the newest: its session is named."""
    ann.turn("How old is it?", script=Script(reflection="no JSON"))
    calls = ann.turn_file(3, "calls.jsonl")
    calls.write_text("")  # as if it had been killed before the reflection was asked
    write_json(
        ann.turn_file(3, "metadata.json"),
        {**json.loads(ann.turn_file(3, "metadata.json").read_bytes()), "status": "interrupted"},
    )
    ann.turn()
    resumed = ann.resume(3, script=Script(**CLARIFY))
    assert resumed.code == 21
    assert 'to answer: panda turn --session t000003 "…"' in resumed.err


def test_a_session_that_is_set_is_joined(ann: ScriptedPanda) -> None:
    """`session` of panda.toml names the session as a flag does; -c goes before it."""
    ann.write("panda.toml", 'session = "kitchen"\n')
    assert session_of(ann.turn()) == "kitchen"
    ann.turn(PRICE_QUESTION, "--session", "other")
    assert session_of(ann.turn(PRICE_QUESTION, "-c")) == "other"


def test_a_name_that_is_taken(ann: ScriptedPanda) -> None:
    """If a session that was named or imported has the name, the new one has a name beside it."""
    ann.turn(PRICE_QUESTION, "--session", "t000006")
    ann.write_lines("lines.jsonl", import_line(user="ann", session="t000005"))
    assert ann("import", "lines.jsonl").code == 0
    shutil.rmtree(ann.user_directory / "sessions/t000005")  # as an import of many leaves it
    assert [session_of(ann.turn()) for _ in range(3)] == ["t000005-2", "t000006-2", "t000007"]


def test_one_question_has_one_answer(tmp_path: Path) -> None:
    """A question asked three times without --session ends the same each time, word for word."""
    panda = Panda(tmp_path)
    panda.write("store/users/default/knowledge/bees.md", "# Bees\n\nThe bees cost 240 euros in May.\n")
    ends: set[tuple[int, Any]] = set()
    for _ in range(3):
        ended = panda("turn", "How much did the bees cost?", "--quiet")
        ends.add((ended.code, ended.out))
    ((code, answer),) = ends
    assert (code, "240 euros" in answer) == (0, True)
