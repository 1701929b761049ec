"""`panda turn --discard` and `--resume-all`: turns that stopped are taken out, or all are taken up again."""

import json
import logging
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from panda.actions.unfinished import ResumedTurn, discard_turn, error_of, resume_all
from panda.errors import CheckError, LockHeldError, ModelAwayError, TryAgainError
from panda.settings import Settings, load_settings
from panda.store.files import begin_writing, end_writing, held_lock, is_temporary, write_json
from panda.store.interventions import list_interventions
from panda.store.layout import Layout, UserStore
from panda.store.records import Intervention
from panda.store.turns import claim_turn
from panda.store.validate import check_store
from tests.api import Ended, run_here
from tests.builders import NOW, still_clock, tree
from tests.cli.test_resume import start, turn_file, wait_for
from tests.kills import kills_of, run_killed
from tests.script import APPROVED, Script
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import USER, laptop_store, run_turn, scripted_app


def panda(root: Path, *words: str) -> Ended:
    return run_here([*words, "--root", str(root), "--user", USER])


def halted_store(root: Path) -> Layout:
    """Turn 3 halted in the planner, with an intervention."""
    layout = laptop_store(root)
    assert run_turn(layout, answer=Script(planner="no JSON")).error is not None
    return layout


def settings_of(layout: Layout) -> Settings:
    given = {"root": str(layout.root), "user": USER, "now": NOW, "trust": True, "wait_seconds": 0.0}
    return load_settings(given, {"HOME": "/nowhere"}, layout.root)


def discard(root: Path, number: int = 3) -> None:
    """What is killed below."""
    layout = Layout(root)
    begin_writing(root)
    discard_turn(settings_of(layout).store, number)


def test_a_halted_turn_is_taken_out(tmp_path: Path) -> None:
    """Its directory is gone, its intervention says why, nothing is wrong, its number is not given again."""
    layout = halted_store(tmp_path)
    done = panda(tmp_path, "turn", "--discard", "3", "--json")
    (intervention,) = list_interventions(layout)
    assert isinstance(intervention, Intervention)
    assert done.value["data"] == {
        "user": USER,
        "turn": 3,
        "status": "halted",
        "session": "default",
        "interventions": [intervention.id],
    }
    assert (intervention.is_open, intervention.resolution) == (False, "turn 3 was discarded")
    assert not layout.of(USER).turn(3).directory.exists()
    assert check_store(layout) == []
    assert not [path for path in tmp_path.rglob(".*") if is_temporary(path) and "writing" not in path.name]
    assert run_turn(layout).turn.turn == 4


def test_the_number_of_the_newest_turn_is_not_given_again_without_a_counter(tmp_path: Path) -> None:
    """The counter is lost, and the discarded turn had the highest number."""
    layout = halted_store(tmp_path)
    layout.of(USER).turn_counter.unlink()
    discard(tmp_path)
    assert claim_turn(UserStore(layout.root, USER, still_clock), "default", "chat", "next").number == 4


def test_the_index_does_not_know_it(tmp_path: Path) -> None:
    halted_store(tmp_path)
    assert panda(tmp_path, "index", "rebuild").code == 0
    assert panda(tmp_path, "turn", "--discard", "3").code == 0
    status = panda(tmp_path, "index", "status", "--json").value["data"]
    assert (status["fresh"], status["turns_behind"]) == (True, 0)


@pytest.mark.parametrize("status", ["gathered", "interrupted", "running"])
def test_other_unfinished_turns_too(status: str, tmp_path: Path) -> None:
    """Gathered, interrupted, or killed while it ran: nobody holds its session."""
    layout = halted_store(tmp_path)
    path = layout.of(USER).turn(3).directory / "metadata.json"
    write_json(path, {**json.loads(path.read_text(encoding="utf-8")), "status": status})
    assert panda(tmp_path, "turn", "--discard", "3").code == 0


def test_saved_turns_are_refused(tmp_path: Path) -> None:
    """Saved, forgotten, not there: 2, nothing changes, and the way out is told."""
    layout = laptop_store(tmp_path)
    run_turn(layout)
    before = tree(tmp_path / "users")
    for number, told in ((1, "panda forget 1"), (3, "panda forget 3"), (9, "panda list")):
        done = panda(tmp_path, "turn", "--discard", str(number))
        assert (done.code, told in done.err) == (2, True), done.err
    assert {name: data for name, data in tree(tmp_path / "users").items() if "lock" not in name} == {
        name: data for name, data in before.items() if "lock" not in name
    }


def test_a_turn_that_its_session_knows_is_refused(tmp_path: Path) -> None:
    """Killed between session.json and its last write: it belongs to the conversation, and is ended."""
    layout = laptop_store(tmp_path)
    run_turn(layout)
    path = layout.of(USER).turn(3).directory / "metadata.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    unsaved = {
        "next": {"phase": 7, "round": 0, "attempt": 0},
        "saved_at": None,
        "status": "running",
        "seal": None,
    }
    write_json(path, {**value, **unsaved})
    done = panda(tmp_path, "turn", "--discard", "3")
    assert done.code == 2
    assert "belongs to session default already" in done.err
    assert "panda turn --resume 3 ends it" in done.err


def test_a_turn_of_which_something_is_remembered_is_refused(tmp_path: Path) -> None:
    """Killed in phase 7 after the memory was written: a fact would have no turn that said it."""
    layout = laptop_store(tmp_path)
    run_turn(layout, "My favorite tea is Assam.")
    layout.of(USER).session("default").unlink()
    path = layout.of(USER).turn(3).directory / "metadata.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    unsaved = {
        "next": {"phase": 7, "round": 0, "attempt": 0},
        "saved_at": None,
        "status": "running",
        "seal": None,
    }
    write_json(path, {**value, **unsaved})
    done = panda(tmp_path, "turn", "--discard", "3")
    assert (done.code, "is remembered already" in done.err) == (2, True), done.err


def test_options_that_would_be_ignored(tmp_path: Path) -> None:
    """One thing at a time."""
    halted_store(tmp_path)
    for words in (
        ["--discard", "3", "--resume", "3"],
        ["--discard", "3", "--resume-all"],
        ["--discard", "3", "--session", "default"],
        ["--resume-all", "--resume", "3"],
        ["--resume-all", "--mode", "code"],
        ["--resume-all", "what?"],
        [],
    ):
        assert panda(tmp_path, "turn", *words).code == 2, words


def test_a_turn_that_runs_is_refused(demo: Path, tmp_path: Path) -> None:
    """A living process holds its session: 75 at once, naming it, whatever --wait says; nothing is lost."""
    store = Path(shutil.copytree(demo, tmp_path / "panda-system-docs"))
    running = start(store, "hello")
    wait_for(turn_file(store, 813, "metadata.json"))
    running.send_signal(signal.SIGSTOP)
    refused = start(store, "--discard", "813")
    out, _ = refused.communicate(timeout=60)
    running.send_signal(signal.SIGCONT)
    running.communicate(timeout=120)
    assert refused.returncode == 75
    assert f"panda turn (pid {running.pid})" in json.loads(out)["error"]["message"]
    assert running.returncode == 0
    assert turn_file(store, 813, "response.md").exists()


def test_a_killed_turn_is_taken_out(demo: Path, tmp_path: Path) -> None:
    """kill -9 while it runs: nobody holds it any more."""
    store = Path(shutil.copytree(demo, tmp_path / "panda-system-docs"))
    process = start(store, "hello")
    wait_for(turn_file(store, 813, "metadata.json"))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    gone = start(store, "--discard", "813")
    gone.communicate(timeout=60)
    assert gone.returncode == 0
    assert not turn_file(store, 813, "").exists()
    assert check_store(Layout(store)) == []


def test_another_turn_of_the_session_is_waited_for(tmp_path: Path) -> None:
    """A halted turn is not what runs: the lock is waited for, as long as --wait says."""
    layout = halted_store(tmp_path)
    with (
        held_lock(layout.of(USER).session_lock("default"), holder="another turn", wait_seconds=0),
        pytest.raises(LockHeldError, match="the lock is held by another turn"),
    ):
        discard(tmp_path)
    assert layout.of(USER).turn(3).directory.exists()


def test_killed_at_every_write_it_is_there_or_gone(tmp_path: Path) -> None:
    """Never half: what is left is whole and can be discarded, or is swept by the next that writes."""
    halted_store(tmp_path / "store")
    begin_writing(tmp_path)
    end_writing()
    work = tmp_path / "work"
    shutil.copytree(tmp_path / "store", work)
    whole = tree(work / "users" / USER / "turns" / "turn_000003")
    kills = list(kills_of(discard, work))
    assert len(kills) >= 2
    seen = set()
    for kill in kills:
        shutil.rmtree(work)
        shutil.copytree(tmp_path / "store", work)
        run_killed(kill, discard, work)
        layout = Layout(work)
        is_there = layout.of(USER).turn(3).directory.exists()
        seen.add(is_there)
        if is_there:
            assert tree(layout.of(USER).turn(3).directory) == whole
            discard(work)
        begin_writing(work)
        assert not layout.of(USER).turn(3).directory.exists()
        assert not [path for path in layout.of(USER).turns.iterdir() if is_temporary(path)]
        assert check_store(layout) == []
        assert claim_turn(UserStore(layout.root, USER, still_clock), "s", "chat", "next").number == 4
        end_writing()
    assert True in seen


AWAY = ModelAwayError("connection refused")


def interrupted_store(root: Path, *sessions: str) -> Layout:
    """A turn in each session, from 3 on, whose model server went away in the planner."""
    layout = laptop_store(root)
    for session in sessions:
        assert run_turn(layout, answer=Script(planner=AWAY), session=session).error is AWAY
    return layout


def resumed(layout: Layout, session: str | None = None, **replies: Any) -> list[ResumedTurn]:
    model = ScriptedModel(Script(**replies), writes=True, scores=False)
    return resume_all(scripted_app(layout, model), session)


def test_all_that_stopped_are_taken_to_their_end(tmp_path: Path) -> None:
    """In order of their numbers, of all sessions or of one; what has ended is left alone."""
    layout = interrupted_store(tmp_path, "one", "two", "three")
    (only,) = resumed(layout, "two")
    assert only == ResumedTurn(4, "two", "interrupted", "approved", 0)
    done = resumed(layout)
    assert [(one.turn, one.status) for one in done] == [(3, "approved"), (5, "approved")]
    assert error_of(done) is None
    assert resumed(layout) == []
    assert check_store(layout) == []


def test_what_cannot_go_on_is_told_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The session has a later turn; a turn halts; one is damaged; the last is answered: 3."""
    layout = interrupted_store(tmp_path, "gone-on", "halts", "broken", "fine")
    run_turn(layout, session="gone-on")
    (layout.of(USER).turn(5).directory / "metadata.json").write_text("{", encoding="utf-8")
    script = Script(planner=[*["no JSON"] * 3, APPROVED["planner"]])
    app = scripted_app(layout, ScriptedModel(script, writes=True, scores=False))
    with caplog.at_level(logging.INFO, "panda"):
        done = resume_all(app, None)
    assert [(one.turn, one.status, one.exit_code) for one in done] == [
        (3, "interrupted", 2),
        (4, "halted", 20),
        (5, "unreadable", 2),
        (6, "approved", 0),
    ]
    assert any("its session has turn 7 since" in line for line in caplog.messages)
    error = error_of(done)
    assert isinstance(error, CheckError)
    assert (error.exit_code, error.message) == (3, "3 of 4 turns did not end well")


def test_all_without_a_server_try_again_later(tmp_path: Path) -> None:
    """75 if that was so each time, 3 if one of them went otherwise."""
    layout = interrupted_store(tmp_path, "one", "two")
    done = resumed(layout, planner=AWAY)
    assert [(one.status, one.exit_code) for one in done] == [("interrupted", 75)] * 2
    assert isinstance(error_of(done), TryAgainError)
    done = resumed(layout, planner=[AWAY, APPROVED["planner"]])
    assert [one.status for one in done] == ["interrupted", "approved"]
    assert isinstance(error_of(done), CheckError)


def test_a_question_or_a_refused_answer_did_not_end_well(tmp_path: Path) -> None:
    """They end with 21 and 22 by themselves, and the whole with 3."""
    layout = interrupted_store(tmp_path, "one")
    run_turn(layout, answer=Script(reflection=AWAY), session="two")
    (refused,) = resumed(layout, "one", validator={"verdict": "FAIL"})
    assert (refused.status, refused.exit_code) == ("failed", 22)
    (asks,) = resumed(layout, "two", reflection={"decision": "CLARIFY", "question": "Which one?"})
    assert (asks.status, asks.exit_code) == ("clarify", 21)
    for one in (refused, asks):
        assert isinstance(error_of([one]), CheckError)


def test_rows_and_exit_code_of_the_command(demo: Path, tmp_path: Path) -> None:
    """Two turns killed in two sessions; one of these went on. The embedded model ends the other."""
    store = Path(shutil.copytree(demo, tmp_path / "panda-system-docs"))
    for number, session in ((813, "a"), (814, "b")):
        process = start(store, "hello", "--session", session)
        wait_for(turn_file(store, number, "query_analysis.json"))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    start(store, "hello", "--session", "a").communicate(timeout=120)
    done = start(store, "--resume-all")
    out, _ = done.communicate(timeout=120)
    assert done.returncode == 3
    rows = [(one["turn"], one["was"], one["status"]) for one in json.loads(out)["data"]["turns"]]
    assert rows == [(813, "running", "running"), (814, "running", "approved")]
    start(store, "--discard", "813").communicate(timeout=60)
    done = start(store, "--resume-all")
    out, err = done.communicate(timeout=60)
    assert (done.returncode, json.loads(out)["data"]["turns"]) == (0, [])
    assert "no turn has stopped before its end" in err
