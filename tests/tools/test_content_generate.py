"""content.generate: drafts, kept word for word."""

from pathlib import Path
from typing import Any

from tests.script import Script
from tests.scripted_turns import laptop_store, run_turn

DRAFT = "Dear [name],\n\nthe laptop is fine.\n"
CALL = {"tool": "content.generate", "arguments": {"type": "email", "brief": "praise the laptop"}}


def writing(asked: Any) -> Any:
    """A model that plans one draft, writes it and says so."""
    if getattr(asked.params, "schema", None) is None:
        return DRAFT
    return SCRIPT(asked)


SCRIPT = Script(
    planner={"tools": [], "next_step": "coordinator"},
    coordinator=[{"calls": [CALL]}, {"tool": "done"}],
    answer={"items": [{"text": "a draft was written", "node_ids": ["step:1"]}]},
)


def test_draft_is_kept_word_for_word(tmp_path: Path) -> None:
    """A draft is a file of the turn under its key, and stands below the answer as it was written."""
    ran = run_turn(laptop_store(tmp_path), "Write an email that praises the laptop.", writing)
    (step,) = ran.turn.steps()
    assert step.data["key"] == "t3_s1_email_1"
    assert step.artifacts == ("artifacts/t3_s1_email_1.md",)
    assert ran.folder.read_text("artifacts/t3_s1_email_1.md") == DRAFT
    assert DRAFT.strip() in ran.response
    assert ran.metadata.status == "approved"
    assert ran.problems == []
