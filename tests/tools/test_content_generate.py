"""content.generate: drafts, kept word for word."""

from typing import Any

from tests.api import ScriptedPanda
from tests.script import Script

DRAFT = "Dear [name],\n\nthe laptop is fine.\n"
CALL = {"tool": "content.generate", "arguments": {"type": "email", "brief": "praise the laptop"}}
SCRIPT = Script(
    planner={"tools": [], "next_step": "coordinator"},
    coordinator=[{"calls": [CALL]}, {"tool": "done"}],
    answer={"items": [{"text": "a draft was written", "node_ids": ["step:1"]}]},
)


def write(asked: Any) -> Any:
    """A model that plans one draft, writes it and says so."""
    return DRAFT if asked.params.schema is None else SCRIPT(asked)


def test_draft_is_kept_word_for_word(ann: ScriptedPanda) -> None:
    """A draft is a file of the turn under its key, and stands below the answer as it was written."""
    turn = ann.turn("Write an email that praises the laptop.", script=write)
    (step,) = turn.steps
    assert step["data"]["key"] == "t3_s1_email_1"
    assert step["artifacts"] == ["artifacts/t3_s1_email_1.md"]
    assert turn.text("artifacts/t3_s1_email_1.md") == DRAFT
    assert DRAFT.strip() in turn.response
    assert turn.status == "approved"
    assert ann.problems() == []
