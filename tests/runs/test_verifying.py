"""Saved turns of every kind judged by the check that phase 6 made of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from panda.errors import Problem, Verdict
from panda.runs.verdict import judge_turn
from tests.code_mode import code_script, repository
from tests.code_turns import run_code
from tests.phases.test_recalling import QUERY as RECAP
from tests.script import Script, pick
from tests.scripted_model import Asked
from tests.scripted_turns import USER, Preferring, Ran, laptop_store, run_turn

DRAFT = "Dear [name],\n\nthe laptop is fine.\n"


def writing() -> Callable[[Asked], Any]:
    """A model that plans one draft, writes it and says so."""
    call = {"tool": "content.generate", "arguments": {"type": "email", "brief": "praise the laptop"}}
    script = Script(
        planner={"tools": [], "next_step": "coordinator"},
        coordinator=[{"calls": [call]}, {"tool": "done"}],
        answer={"items": [{"text": "a draft was written", "node_ids": ["step:1"]}]},
    )
    return lambda asked: script(asked) if getattr(asked.params, "schema", None) else DRAFT


def verify(ran: Ran) -> list[Problem]:
    return judge_turn(ran.folder.paths.directory)


def test_a_turn_in_code_mode_is_sound(tmp_path: Path) -> None:
    """What a step of this turn gave supports its answer, and the diff below the answer belongs to it."""
    ran = run_code(tmp_path, repository(tmp_path), code_script())
    assert "```diff" in ran.response
    assert verify(ran) == []


def test_a_turn_with_a_draft_is_sound_while_the_draft_is_there(tmp_path: Path) -> None:
    """The draft below an answer is that of its file; once the file says otherwise, the turn is unsound."""
    ran = run_turn(laptop_store(tmp_path), "Write an email that praises the laptop.", writing())
    assert DRAFT.strip() in ran.response
    assert verify(ran) == []
    (ran.folder.paths / "artifacts" / "t3_s1_email_1.md").write_text("Dear all,\n", encoding="utf-8")
    assert [one.verdict for one in verify(ran)] == [Verdict.UNSOUND]


def test_kept_content_that_is_shown_again_is_sound(tmp_path: Path) -> None:
    """A letter of an earlier turn below an answer belongs to it; once that is gone, this is not judged."""
    layout = laptop_store(tmp_path)
    first = run_turn(layout, "Write an email that praises the laptop.", writing())
    ran = run_turn(layout, "Show me the email again.", Script(answer={"items": []}))
    assert DRAFT.strip() in ran.response
    assert verify(ran) == []
    (first.folder.paths / "artifacts" / "t3_s1_email_1.md").unlink()
    assert [one.verdict for one in verify(ran)] == [Verdict.NOT_JUDGED]


def test_a_recap_is_sound(tmp_path: Path) -> None:
    """What was said in the turns of a session supports the answer that tells them, though §2 has them not."""
    scripted = Preferring("PROCEED")
    ran = run_turn(laptop_store(tmp_path), RECAP, scripted, writes=False, scores=True, session="tea")
    assert verify(ran) == []


def asked_for_a_weight(root: Path) -> tuple[Ran, Path]:
    """A turn that tells what a line of a note says, and the note."""
    layout = laptop_store(root)
    note = layout.of(USER).knowledge / "loq.md"
    note.parent.mkdir(parents=True)
    text = "---\nupdated: 2026-01-01\n---\n\nThe LOQ is grey.\n\nThe LOQ weighs 2.4 kg.\n"
    note.write_text(text, encoding="utf-8")
    said: dict[str, Any] = {"items": [{"text": "The LOQ weighs 2.4 kg.", "node_ids": ["knowledge:loq.md"]}]}
    script = Script(
        retrieval={"relevant": pick("knowledge:loq.md")},
        synthesis={"lines": pick("grey", "2.4 kg")},
        answer=said,
    )
    return run_turn(layout, "How heavy is the LOQ?", script), note


def test_the_cited_lines_support_an_item(tmp_path: Path) -> None:
    """An item is held against the lines that it cites, as phase 6 did."""
    ran, _ = asked_for_a_weight(tmp_path)
    assert ran.metadata.status == "approved"
    assert verify(ran) == []


def test_what_stood_in_a_source_is_kept_with_the_turn(tmp_path: Path) -> None:
    """A line that §2 holds supports an answer, also when its note was edited or deleted since."""
    ran, note = asked_for_a_weight(tmp_path)
    note.write_text("---\nupdated: 2026-02-01\n---\n\nThe LOQ is grey.\n", encoding="utf-8")
    assert verify(ran) == []
    note.unlink()
    assert verify(ran) == []
