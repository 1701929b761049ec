"""Models that write and score: the verdict is the one that they wrote, with its probability."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import file_of
from tests.script import Script
from tests.scripted_model import Asked
from tests.scripted_turns import Ran, laptop_store, run_turn

LOGPROB = -0.1


def scoring(script: Script) -> Callable[[Asked], Any]:
    """A script whose replies are all equally probable."""
    return lambda asked: [LOGPROB] * len(asked.cases) if asked.is_score else script(asked)


def say(tmp_path: Path, **replies: Any) -> Ran:
    """One turn with a model that writes and scores."""
    return run_turn(laptop_store(tmp_path), answer=scoring(Script(**replies)), scores=True)


def test_approved(tmp_path: Path) -> None:
    """A turn is approved with the confidence of the word APPROVE behind what was written before it."""
    ran = say(tmp_path)
    assert ran.metadata.status == "approved", ran.error
    assert ran.meta(6)["verdict"] == "APPROVE"
    assert ran.meta(6)["confidence"] == pytest.approx(0.9048)
    scored = [asked for asked in ran.model.asked if asked.is_score]
    assert all(len(asked.cases) == 1 for asked in scored)
    assert scored[-1].cases[0].continuation or ran.problems == []


def test_fail_is_reached(tmp_path: Path) -> None:
    """FAIL with a reason fails the turn."""
    ran = say(tmp_path, validator={"reason": "The answer is wrong.", "verdict": "FAIL"})
    assert (ran.metadata.status, ran.metadata.reason) == ("failed", "The answer is wrong.")


def test_retry_is_reached(tmp_path: Path) -> None:
    """RETRY plans anew, with the reason."""
    ran = say(tmp_path, validator=[{"reason": "Look again.", "verdict": "RETRY"}, {"verdict": "APPROVE"}])
    assert ran.metadata.status == "approved", ran.error
    assert "Look again." in ran.asked("planner")[1].text


@pytest.mark.parametrize(
    ("step", "reply"),
    [
        ("reflection", {"decision": "CLARIFY", "question": "Which one?"}),
        ("context", {"verdict": "clarify", "question": "Which one?"}),
        ("planner", {"tools": [], "next_step": "clarify", "question": "Which one?"}),
    ],
)
def test_clarify_is_reached(tmp_path: Path, step: str, reply: dict[str, Any]) -> None:
    """Phases 1, 2.5 and 3 ask back."""
    ran = run_turn(laptop_store(tmp_path), answer=scoring(Script(**{step: reply})), scores=True)
    assert (ran.metadata.status, ran.metadata.question) == ("clarify", "Which one?")


def test_a_proposal_is_reached(tmp_path: Path) -> None:
    """The planner's question may be a proposal."""
    plan = {"tools": [], "next_step": "clarify", "question": "Shall I?", "question_kind": "proposal"}
    ran = say(tmp_path, planner=plan)
    assert file_of(ran.folder, "plan.json")["question_kind"] == "proposal"
