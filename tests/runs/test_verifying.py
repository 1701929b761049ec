"""Saved turns of every kind judged by the check that phase 6 made of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.api import LAPTOPS, Panda, ScriptedPanda, Turn
from tests.code_mode import CodeProject, code_script
from tests.code_mode import project as project
from tests.script import Asked, Script, pick
from tests.store_files import write_note

DRAFT = "Dear [name],\n\nthe laptop is fine.\n"
NOTE = "---\nupdated: 2026-01-01\n---\n\nThe LOQ is grey.\n\nThe LOQ weighs 2.4 kg.\n"


def writing() -> Callable[[Asked], Any]:
    """Return the replies of a model that plans one draft, writes it and says so."""
    call = {"tool": "content.generate", "arguments": {"type": "email", "brief": "praise the laptop"}}
    script = Script(
        planner={"tools": [], "next_step": "coordinator"},
        coordinator=[{"calls": [call]}, {"tool": "done"}],
        answer={"items": [{"text": "a draft was written", "node_ids": ["step:1"]}]},
    )
    return lambda asked: script(asked) if getattr(asked.params, "schema", None) else DRAFT


def verdicts_on(panda: Panda, turn: Turn) -> list[str]:
    """Return the verdict of each problem that `panda validate` names in a turn."""
    ended = panda("validate", str(turn.number), "--json")
    assert ended.code in (0, 3), ended.out
    return [problem["verdict"] for problem in ended.data["problems"]]


def test_a_turn_in_code_mode_is_sound(project: CodeProject) -> None:
    """The result of a step of this turn supports its answer, and the diff below the answer belongs to it."""
    turn = project.work(code_script())
    assert "```diff" in turn.response
    assert verdicts_on(project, turn) == []


def test_a_turn_with_a_draft_is_sound_while_the_draft_is_there(ann: ScriptedPanda) -> None:
    """The draft below an answer is that of its file; once the file says otherwise, the turn is unsound."""
    turn = ann.turn("Write an email that praises the laptop.", script=writing())
    assert DRAFT.strip() in turn.response
    assert verdicts_on(ann, turn) == []
    (turn.directory / "artifacts" / "t3_s1_email_1.md").write_text("Dear all,\n", encoding="utf-8")
    assert verdicts_on(ann, turn) == ["unsound"]


def test_kept_content_that_is_shown_again_is_sound(ann: ScriptedPanda) -> None:
    """A letter of an earlier turn below an answer belongs to it; once that is gone, this is not judged."""
    first = ann.turn("Write an email that praises the laptop.", "--session", "mail", script=writing())
    turn = ann.turn("Show me the email again.", "--session", "mail", script=Script(answer={"items": []}))
    assert DRAFT.strip() in turn.response
    assert verdicts_on(ann, turn) == []
    (first.directory / "artifacts" / "t3_s1_email_1.md").unlink()
    assert verdicts_on(ann, turn) == ["not judged"]


def test_a_recap_is_sound(tmp_path: Path) -> None:
    """The turns of a session support the answer that tells what was said in them, though §2 has them not."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    turn = panda.turn("What have we talked about so far?", "--session", "tea")
    assert "Assam it is." in turn.response
    assert verdicts_on(panda, turn) == []


def test_a_line_of_a_note_supports_an_answer_while_the_note_has_it(ann: ScriptedPanda) -> None:
    """A line of §2 is held against its note, in figures and words; a note edited since is not judged."""
    note = write_note(ann.user_directory, "loq.md", NOTE)
    script = Script(
        retrieval={"relevant": pick("knowledge:loq.md")},
        synthesis={"lines": pick("grey", "2.4 kg")},
        answer={"items": [{"text": "The LOQ weighs 2.4 kg.", "node_ids": ["knowledge:loq.md"]}]},
    )
    turn = ann.turn("How heavy is the LOQ?", script=script)
    assert turn.status == "approved"
    assert verdicts_on(ann, turn) == []
    note.write_text("---\nupdated: 2026-02-01\n---\n\nThe LOQ is grey.\n", encoding="utf-8")
    assert verdicts_on(ann, turn) == ["not judged", "not judged"]
    note.unlink()
    assert verdicts_on(ann, turn) == ["not judged"]
