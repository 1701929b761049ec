"""`panda turn --discard` and `--resume-all`: turns that stopped are taken out, or all are taken up again."""

import json
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.api import (
    LAPTOPS,
    PRICE_QUESTION,
    VAGUE_QUESTION,
    Ended,
    Panda,
    ScriptedPanda,
    Turn,
    run_here,
    tree,
)
from tests.cli.test_resume import start, turn_file, wait_for
from tests.script import APPROVED, Request, Script, step_of
from tests.store_files import write_json

pytestmark = pytest.mark.usefixtures("pauses")

UNSAVED = {
    "next": {"phase": 7, "round": 0, "attempt": 0},
    "saved_at": None,
    "status": "running",
    "seal": None,
}
"""What metadata.json says of a turn that was killed before its last write."""


def halt(ann: ScriptedPanda, *words: str) -> Turn:
    """A turn that halted in the planner, with an intervention."""
    turn = ann.turn(PRICE_QUESTION, *words, script=Script(planner="no JSON"))
    assert turn.code == 20
    return turn


def change(path: Path, changes: Mapping[str, Any]) -> None:
    """Put other values into a JSON file."""
    write_json(path, {**json.loads(path.read_text(encoding="utf-8")), **changes})


def interrupt(ann: ScriptedPanda, *sessions: str, query: str = PRICE_QUESTION, step: str = "planner") -> None:
    """A turn in each session whose model server went away at a step."""
    usual = ann.server.answer
    ann.server.answer = lambda body: (503, b"") if step_of(Request(body)) == step else usual(body)
    for session in sessions:
        assert ann.turn(query, "--session", session).code == 75
    ann.server.answer = usual


def temporaries(root: Path) -> list[Path]:
    """Return the files that an unfinished writer left; a turn that goes is renamed to such a name first."""
    return [path for path in root.rglob(".*.panda.tmp*") if "writing" not in path.name]


def test_a_halted_turn_is_taken_out(ann: ScriptedPanda) -> None:
    """The turn is gone, also from the index, its intervention says why, and its number is not given again."""
    turn = halt(ann)
    assert ann("index", "rebuild").code == 0
    done = ann.json("turn", "--discard", "3")
    (intervention,) = turn.interventions
    assert done == {
        "user": "ann",
        "turn": 3,
        "status": "halted",
        "session": "default",
        "interventions": [intervention["id"]],
    } | {"session": done["session"]}
    assert (intervention["status"], intervention["resolution"]) == ("resolved", "turn 3 was discarded")
    assert not turn.directory.exists()
    status = ann.json("index", "status")
    assert (status["fresh"], status["turns_behind"]) == (True, 0)
    assert ann.problems() == []
    assert temporaries(ann.store) == []
    assert ann.turn().number == 4


def test_the_number_of_the_newest_turn_is_not_given_again_without_a_counter(ann: ScriptedPanda) -> None:
    """The counter is lost, and the discarded turn had the highest number."""
    halt(ann)
    (ann.user_directory / "turn_counter").unlink()
    assert ann("turn", "--discard", "3").code == 0
    assert ann.turn().number == 4


@pytest.mark.parametrize("status", ["gathered", "interrupted", "running"])
def test_other_unfinished_turns_too(status: str, ann: ScriptedPanda) -> None:
    """Gathered, interrupted, or killed while it ran: nobody holds its session."""
    change(halt(ann).directory / "metadata.json", {"status": status})
    assert ann("turn", "--discard", "3").code == 0


def test_saved_turns_are_refused(ann: ScriptedPanda) -> None:
    """Saved, imported, not there: 2, nothing changes, and the way out is told."""
    ann.turn()
    before = tree(ann.user_directory)
    for number, advice in ((1, "panda forget 1"), (3, "panda forget 3"), (9, "panda list")):
        done = ann("turn", "--discard", str(number))
        assert (done.code, advice in done.err) == (2, True), done.err
    after = tree(ann.user_directory)
    assert {name: after[name] for name in after if "lock" not in name} == {
        name: before[name] for name in before if "lock" not in name
    }


def test_a_turn_that_its_session_or_the_memory_knows_is_refused(ann: ScriptedPanda) -> None:
    """Killed after session.json, or after the memory was written: it is to be ended instead."""
    turn = ann.turn("My favorite tea is Assam.", "--session", "talk")
    change(turn.directory / "metadata.json", UNSAVED)
    joined = ann("turn", "--discard", "3")
    assert joined.code == 2
    assert "belongs to session talk already" in joined.err
    assert "panda turn --resume 3 ends it" in joined.err
    (ann.user_directory / "sessions/talk/session.json").unlink()
    remembered = ann("turn", "--discard", "3")
    assert (remembered.code, "is remembered already" in remembered.err) == (2, True), remembered.err


@pytest.mark.parametrize(
    "words",
    [
        ["--discard", "3", "--resume", "3"],
        ["--discard", "3", "--resume-all"],
        ["--discard", "3", "--session", "default"],
        ["--resume-all", "--resume", "3"],
        ["--resume-all", "--mode", "code"],
        ["--resume-all", "what?"],
        [],
    ],
)
def test_options_that_would_be_ignored(words: list[str], tmp_path: Path) -> None:
    """One thing at a time."""
    assert Panda(tmp_path, LAPTOPS, user="ann")("turn", *words).code == 2


def test_a_turn_that_runs_is_refused_until_it_is_killed(indexed: Path, tmp_path: Path) -> None:
    """A living process holds its session: 75 at once, whatever --wait says; after kill -9 nobody does."""
    store = Path(shutil.copytree(indexed, tmp_path / "panda-system-docs"))
    running = start(store, "hello")
    wait_for(turn_file(store, 813, "metadata.json"))
    running.send_signal(signal.SIGSTOP)
    words = ("turn", "--discard", "813", "--wait", "60", "--root", str(store), "--user", "demo", "--json")
    refused = run_here(words)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert refused.code == 75
    assert f"panda turn (pid {running.pid})" in refused.error["message"]
    assert turn_file(store, 813, "").exists()
    assert run_here(words).code == 0
    assert not turn_file(store, 813, "").exists()
    assert run_here(("validate", str(store))).code == 0


def test_another_turn_of_the_session_is_waited_for(ann: ScriptedPanda) -> None:
    """A halted turn is not what runs: the lock is waited for, as long as --wait says."""
    turn = halt(ann, "--session", "talk")
    with ann.lock("users/ann/sessions/talk/lock"):
        done = ann("turn", "--discard", "3")
    assert done.code == 75
    assert turn.directory.exists()


def test_killed_at_every_write_it_is_there_or_gone(ann: ScriptedPanda) -> None:
    """Never half: what is left is whole and can be discarded, or is swept by the next that writes."""
    whole = tree(halt(ann).directory)
    start_of_all = ann.store.rename(ann.home / "start")
    shutil.copytree(start_of_all, ann.store)
    kills = ann.kills("turn", "--discard", "3")
    assert len(kills) >= 2
    was_there = set()
    for kill in kills:
        shutil.rmtree(ann.store)
        shutil.copytree(start_of_all, ann.store)
        ann.run_killed(kill, "turn", "--discard", "3")
        is_there = ann.turn_file(3, "").exists()
        was_there.add(is_there)
        if is_there:
            assert tree(ann.turn_file(3, "")) == whole
            assert ann("turn", "--discard", "3").code == 0
        assert ann("memory", "set", "tea", "Assam").code == 0  # sweeps
        assert not ann.turn_file(3, "").exists()
        assert temporaries(ann.store) == []
        assert ann.problems() == []
        assert ann.turn().number == 4
    assert True in was_there


def resume_all(ann: ScriptedPanda, *words: str, **replies: Any) -> tuple[Ended, list[tuple[int, str, int]]]:
    """Take all up again; number, status and exit code of each turn."""
    ann.server.script = Script(**replies)
    ended = ann("turn", "--resume-all", "--json", *words)
    return ended, [(turn["turn"], turn["status"], turn["exit_code"]) for turn in ended.data["turns"]]


def test_all_that_stopped_are_taken_to_their_end(ann: ScriptedPanda) -> None:
    """In order of their numbers, of all sessions or of one; what has ended is left alone."""
    interrupt(ann, "one", "two", "three")
    assert resume_all(ann, "--session", "two")[1] == [(4, "approved", 0)]
    ended, rows = resume_all(ann)
    assert (ended.code, rows) == (0, [(3, "approved", 0), (5, "approved", 0)])
    nothing, rows = resume_all(ann)
    assert (nothing.code, rows) == (0, [])
    assert "no turn has stopped before its end" in nothing.err
    assert ann.problems() == []


def test_what_cannot_go_on_is_told_and_the_others_go_on(ann: ScriptedPanda) -> None:
    """The session has a later turn; a turn halts; one is damaged; the last is answered: 3."""
    interrupt(ann, "gone-on", "halts", "broken", "fine")
    ann.turn(PRICE_QUESTION, "--session", "gone-on")
    ann.turn_file(5, "metadata.json").write_text("{", encoding="utf-8")
    ended, rows = resume_all(ann, planner=[*["no JSON"] * 3, APPROVED["planner"]])
    assert rows == [(3, "interrupted", 2), (4, "halted", 20), (5, "unreadable", 2), (6, "approved", 0)]
    assert "its session has turn 7 since" in ended.err
    assert (ended.code, ended.error["message"]) == (3, "3 of 4 turns did not end well")


def test_all_without_a_server_try_again_later(ann: ScriptedPanda) -> None:
    """75 if that was so each time, 3 if one of them went otherwise."""
    interrupt(ann, "one")
    ann.server.die()
    ended, rows = resume_all(ann)
    assert (ended.code, rows) == (75, [(3, "interrupted", 75)])
    ann.server.start()
    interrupt(ann, "two", "halts")
    ann.turn_file(5, "metadata.json").write_text("{", encoding="utf-8")
    ann.server.die()
    ended, rows = resume_all(ann)
    assert (ended.code, [code for _, _, code in rows]) == (3, [75, 75, 2])


def test_a_question_or_a_refused_answer_did_not_end_well(ann: ScriptedPanda) -> None:
    """They end with 21 and 22 by themselves, and the whole with 3."""
    interrupt(ann, "one")
    interrupt(ann, "two", query=VAGUE_QUESTION, step="reflection")
    ended, rows = resume_all(ann, "--session", "one", validator={"verdict": "FAIL"})
    assert (ended.code, rows) == (3, [(3, "failed", 22)])
    ended, rows = resume_all(ann, reflection={"decision": "CLARIFY", "question": "Which one?"})
    assert (ended.code, rows) == (3, [(4, "clarify", 21)])
