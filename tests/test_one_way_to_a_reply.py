"""Whoever replies, the turn is the same: offline replies that a model server gives make equal turns."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api import ModelServer, Panda
from tests.script import Asked, step_of

NOW = "2026-01-06T10:00:00Z"
STEPS = {
    "pipeline/phase0_query_analyzer": "analyzer",
    "pipeline/phase1_reflection": "reflection",
    "pipeline/phase2_1_retrieval": "retrieval",
    "pipeline/phase2_2_synthesis": "synthesis",
    "pipeline/phase2_5_context_validator": "context",
    "pipeline/phase3_planner_chat": "planner",
    "pipeline/phase3_planner_navigation": "planner",
    "pipeline/phase4_coordinator_chat": "coordinator",
    "pipeline/phase5_synthesizer_chat": "answer",
    "pipeline/phase7_summarizer": "summary",
}
"""The step that a scripted model is asked, by recipe."""
QUESTIONS = (
    ("a", "How much does the cheapest laptop cost?"),
    ("a", "Is it in stock?"),
    ("a", "What is my budget?"),
    ("a", "My sister plays the bassoon."),
    ("a", "What does my sister play?"),
    ("a", "Hello"),
    ("a", "thanks, that is all"),
    ("b", "What about the other one?"),
    ("b", "Which laptops have an RTX 4060?"),
    ("b", "the second one"),
    ("b", "not the ASUS please"),
    ("b", "What did we talk about?"),
    ("b", "Which brands do I prefer?"),
    ("b", "My budget is now $900"),
    ("b", "What is my budget?"),
    ("c", "Summarise my notes on hamsters"),
    ("c", "what's the cheapest laptop with nvidia gpu"),
    ("c", "How is the weather in Oslo?"),
    ("c", "Which laptop was the top pick, and is it in stock?"),
    ("c", "forget my budget"),
)


class Recorded:
    """A model that gives the recorded replies of a turn, each to the step that it was given to."""

    def __init__(self) -> None:
        self.replies: list[tuple[str, Any]] = []

    def __call__(self, asked: Asked) -> str:
        step = step_of(asked)
        for place, (own, reply) in enumerate(self.replies):
            if own == step:
                del self.replies[place]
                return json.dumps(reply)
        return json.dumps({"verdict": "APPROVE"} if step == "validator" else {})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model server on loopback."""
    server = ModelServer(Recorded())
    yield server
    server.close()


def make(home: Path) -> Panda:
    """A project with the demo store."""
    panda = Panda(home, user="demo", PANDA_NOW=NOW)
    assert panda("init", "--demo").code == 0
    return panda


def test_a_model_that_replies_as_the_program_does_makes_the_same_turns(
    tmp_path: Path, server: ModelServer
) -> None:
    """
    Sections, plan, evidence and answer of twenty turns are byte for byte those of the offline layers.

    Here a prompt of 2.1 holds every candidate that is chosen; in a large store more are compared than it has.
    """
    offline = make(tmp_path / "offline")
    served = make(tmp_path / "served")
    models = server.models().replace("encoder: null\n", "")  # the packaged one
    served.write("models.yaml", models)
    recorded = Recorded()
    server.script = recorded
    for session, question in QUESTIONS:
        alone = offline.turn(question, "--session", session)
        recorded.replies = [
            (STEPS[call["recipe"]], call["reply"]) for call in alone.calls if call["kind"] == "offline"
        ]
        other = served.turn(question, "--session", session)
        assert other.code == alone.code, other.err
        for name in ("context.md", "plan.json", "evidence.json", "response.md"):
            before, after = (
                (turn.directory / name).read_text() if (turn.directory / name).exists() else None
                for turn in (alone, other)
            )
            assert after == before, (question, name)
        assert [step for step, _ in recorded.replies if step != "summary"] == [], question
