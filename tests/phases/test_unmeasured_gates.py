"""Models without log-probabilities: their own decision stands, and what asks back asks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panda.recipes.checks import check_recipes
from panda.store.layout import asset
from tests.loopback import Server
from tests.script import Script
from tests.scripted_turns import Preferring, Ran, laptop_store, run_turn
from tests.served_turns import Served

CLARIFY = {"decision": "CLARIFY", "question": "Which thing do you mean?"}


@pytest.fixture
def server() -> Iterator[Server]:
    """A model server on loopback."""
    running = Server()
    yield running
    running.close()


def say(server: Server, tmp_path: Path, query: str = "Do the thing.", **replies: Any) -> Ran:
    """One turn with a served model."""
    return run_turn(laptop_store(tmp_path), query, model=Served(server, Script(**replies)))


def gates(ran: Ran) -> dict[str, str | None]:
    """The gates of the executions log by recipe."""
    found = [json.loads(line) for line in ran.layout.executions_log.read_text().splitlines()]
    return {one["recipe"]: one.get("gate") for one in found if "gate" in one}


def test_clarify_stays_clarify(server: Server, tmp_path: Path) -> None:
    """A served model that asks back asks back; the gate it could not be measured against is logged."""
    ran = say(server, tmp_path, reflection=CLARIFY)
    assert (ran.metadata.status, ran.metadata.question) == ("clarify", "Which thing do you mean?")
    assert gates(ran)["reflection"] == "not_measured"
    assert ran.problems == []


@pytest.mark.parametrize("query", ["I live in Bern.", "What did we talk about?", "How much is it?"])
def test_rules_do_not_overrule_it(server: Server, tmp_path: Path, query: str) -> None:
    """What looks like a statement, a look back or a known reference is asked about if the model says so."""
    ran = say(server, tmp_path, query, reflection=CLARIFY)
    assert ran.metadata.status == "clarify"


def test_nothing_is_asked_twice(server: Server, tmp_path: Path) -> None:
    """Right after a question the query is taken as it stands."""
    layout = laptop_store(tmp_path)
    script = Script(reflection=CLARIFY, answer={"items": []})
    run_turn(layout, "Do the thing.", model=Served(server, script))
    ran = run_turn(layout, "The thing!", model=Served(server, script))
    assert ran.metadata.status == "approved", ran.error


@pytest.mark.parametrize(
    ("step", "reply"),
    [
        ("reflection", {"decision": "CLARIFY", "question": ""}),
        ("context", {"verdict": "clarify"}),
        ("context", {"verdict": "clarify", "question": " "}),
        ("planner", {"tools": [], "next_step": "clarify"}),
    ],
)
def test_a_missing_question_is_a_template(
    server: Server, tmp_path: Path, step: str, reply: dict[str, Any]
) -> None:
    """A clarify without a question asks one that quotes the query."""
    script = Script(**{step: reply})
    ran = run_turn(laptop_store(tmp_path), "Do the thing.", model=Served(server, script))
    assert ran.error is None, ran.error
    assert ran.metadata.status == "clarify"
    assert "“Do the thing.”" in str(ran.metadata.question)


GATE = "quality_gates:\n  confidence_threshold: 0.99\n  below_threshold: clarify\n"


@pytest.mark.parametrize("name", ["phase0_query_analyzer", "phase5_synthesizer_chat", "phase6_validator"])
def test_only_phases_that_ask_may_clarify(tmp_path: Path, name: str) -> None:
    """`below_threshold: clarify` in a recipe whose phase cannot ask back is an error of the check."""
    text = (asset("recipes") / "pipeline" / f"{name}.yaml").read_text(encoding="utf-8")
    text = text.partition("quality_gates:")[0] + GATE
    path = tmp_path / "pipeline" / f"{name}.yaml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    problems = check_recipes([tmp_path, asset("recipes")], [asset("prompts")], None, ["memory.query"])
    (found,) = [one for one in problems if one.path == str(path) and "below_threshold" in str(one.key)]
    assert "cannot ask the user back" in found.message
    assert "phase3_planner" in str(found.fix)


def test_an_unsure_phase_asks_back(tmp_path: Path) -> None:
    """With `clarify` what is measured and below the threshold asks, in phase 1 whatever was decided."""
    layout = laptop_store(tmp_path / "store")
    text = (asset("recipes") / "pipeline" / "phase1_reflection.yaml").read_text(encoding="utf-8")
    own = tmp_path / "project" / "recipes" / "pipeline" / "phase1_reflection.yaml"
    own.parent.mkdir(parents=True)
    own.write_text(text.partition("quality_gates:")[0] + GATE, encoding="utf-8")
    nobody_prefers = Preferring()
    ran = run_turn(
        layout, "Do the thing.", nobody_prefers, writes=False, scores=True, project=tmp_path / "project"
    )
    assert ran.metadata.status == "clarify"
    assert "“Do the thing.”" in str(ran.metadata.question)
