"""Phase 2: what is gathered, where it comes from, and when that halts."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from panda.errors import HaltError
from panda.models.scripted import Asked, Reply
from panda.storage.layout import Layout
from tests.builders import NOW
from tests.scripted_turns import (
    PRICE,
    PRICE_NODE,
    USER,
    Preferring,
    Ran,
    Script,
    add_research,
    laptop_store,
    loaded_lines,
    pick,
    run_turn,
)
from tests.stores import write_visit


def halted_at_gathering(ran: Ran) -> dict[str, object]:
    """The one intervention of a turn that halted in phase 2 with nothing of §2 on disk."""
    assert isinstance(ran.error, HaltError)
    assert ran.metadata.status == "halted"
    assert ran.metadata.next is not None
    assert ran.metadata.next.phase == 2
    assert ran.sections() == [0, 1]
    assert ran.problems == []
    (intervention,) = ran.interventions()
    assert intervention["id"] == ran.metadata.intervention
    assert (intervention["turn"], intervention["phase"]) == (3, 2)
    return intervention


def test_lines_are_quoted_with_their_node(tmp_path: Path) -> None:
    """§2 quotes a line of a node and binds it to the node, its file and its confidence."""
    ran = run_turn(laptop_store(tmp_path))
    section = ran.folder.read_json("gathered_context.json")["sections"][0]
    assert section["title"] == "Visit Data"
    assert section["items"] == [{"text": PRICE, "node_ids": [PRICE_NODE]}]
    assert section["confidence_avg"] == 0.92
    assert section["provenance"] == ["turns/turn_000001/webpage_cache/page-visit_loq/extracted.json"]
    assert f"- {PRICE} [1]" in ran.body(2)
    assert ran.meta(2)["node_ids"] == [PRICE_NODE]


def test_one_section_a_source_type(tmp_path: Path) -> None:
    """Each kind of source has a section of its own; a preference is a constraint as well."""
    script = Script(
        retrieval={"relevant": pick("turn:1", PRICE_NODE, "memory:budget")},
        synthesis={"lines": pick("Compared laptops", "price $697", "budget")},
    )
    ran = run_turn(laptop_store(tmp_path), "A Lenovo laptop under $800, within my budget?", script)
    sections = {s["title"]: s for s in ran.folder.read_json("gathered_context.json")["sections"]}
    titles = ["Session Preferences", "Relevant Prior Turns", "Visit Data", "Constraints"]
    assert list(sections) == titles
    assert [sections[title]["source_type"] for title in titles] == [
        "preference",
        "turn_summary",
        "visit_record",
        ["preference", "user_query"],
    ]
    assert [item["text"] for item in sections["Constraints"]["items"]] == [
        "under $800",
        "within my budget",
        "budget: $500-800",
    ]
    assert "- Turn 1: Compared laptops for games; the Lenovo LOQ 15 won. [1]" in ran.body(2)
    assert ran.problems == []


def test_nothing_relevant(tmp_path: Path) -> None:
    """If nothing is relevant, only Constraints is there, and it says that there is none."""
    script = Script(retrieval={"relevant": []}, answer={"items": []})
    ran = run_turn(laptop_store(tmp_path), "Who was Napoleon?", script)
    assert ran.body(2).split("\n\n") == ["### Constraints", "- none stated"]
    assert ran.folder.read_json("gathered_context.json")["context_quality"] == 0.0
    assert (ran.metadata.status, ran.metadata.answered) == ("approved", False)
    assert ran.problems == []


@pytest.mark.parametrize(("writes", "scores"), [(True, False), (False, True), (True, True)])
def test_empty_store(tmp_path: Path, writes: bool, scores: bool) -> None:
    """A user who has nothing saved gets no answer, whatever the model can do, and no halt."""
    script, scorer = Script(answer={"items": []}), Preferring("PROCEED", "question")

    def answer(asked: Asked) -> Reply:
        return scorer(asked) if asked.is_score else script(asked)

    ran = run_turn(Layout(tmp_path), "Who was Napoleon?", answer, writes=writes, scores=scores)
    assert (ran.metadata.status, ran.metadata.answered) == ("approved", False)
    assert ran.problems == []


def test_clarify_ends_the_turn(tmp_path: Path) -> None:
    """2.5 may ask the user; then the turn ends without §2."""
    script = Script(context={"verdict": "clarify", "question": "Which Lenovo?"})
    ran = run_turn(laptop_store(tmp_path), answer=script)
    assert (ran.metadata.status, ran.metadata.question) == ("clarify", "Which Lenovo?")
    assert ran.metadata.route == (0, 1, 7)
    assert ran.sections() == [0, 1]
    assert ran.folder.read_json("gathered_context.json")["verdict"]["status"] == "clarify"
    assert ran.response == "Which Lenovo?\n"
    assert ran.problems == []


def test_retry_looks_further_once(tmp_path: Path) -> None:
    """A judgement `retry` loads further candidates and passes its guidance on, once."""
    script = Script(
        retrieval={"relevant": pick("memory:budget")},
        synthesis=[{"lines": pick("budget")}, {"lines": pick("budget", "price $697")}],
        context={"verdict": "retry", "guidance": "Look for a price."},
    )
    ran = run_turn(laptop_store(tmp_path), answer=script)
    first, second = ran.asked("synthesis")
    assert (PRICE_NODE, PRICE) not in loaded_lines(first)
    assert (PRICE_NODE, PRICE) in loaded_lines(second)
    assert "Look for a price." in second.text
    assert len(ran.asked("context")) == 2
    gathered = ran.folder.read_json("gathered_context.json")
    assert gathered["gaps"] == ["nothing that was gathered seems to answer the query"]
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_linked_document_that_is_missing(tmp_path: Path) -> None:
    """Research that links a visit which is not there halts the turn."""
    layout = laptop_store(tmp_path)
    add_research(layout, "visit_gone")
    ran = run_turn(layout, answer=Script(retrieval={"relevant": pick("research:")}))
    intervention = halted_at_gathering(ran)
    assert intervention["type"] == "memory_error"
    assert intervention["severity"] == "critical"
    assert intervention["recipe"] is None
    assert intervention["details"] == {"node_id": "visit:visit_gone"}


def test_linked_document_that_is_corrupt(tmp_path: Path) -> None:
    """Research that links a visit whose file is broken halts the turn and names the file."""
    layout = laptop_store(tmp_path)
    add_research(layout, "visit_loq")
    path = layout.turn(USER, 1).webpage_cache / "page-visit_loq" / "extracted.json"
    path.write_text('{"price": ')
    ran = run_turn(layout, answer=Script(retrieval={"relevant": pick("research:")}))
    assert isinstance(ran.error, HaltError)
    assert ran.metadata.status == "halted"
    assert str(path) in str(ran.interventions()[0]["where"])
    assert [problem.path for problem in ran.problems] == [str(path)]


def test_two_visits_of_one_name(tmp_path: Path) -> None:
    """A visit id that two directories claim halts the turn: neither is taken by chance."""
    layout = laptop_store(tmp_path)
    write_visit(layout, 2, "visit_loq", {"title": "Another", "price": "$1"}, quality=0.9, user=USER)
    ran = run_turn(layout, answer=Script(retrieval={"relevant": pick(PRICE_NODE)}))
    assert isinstance(ran.error, HaltError)
    assert ran.interventions()[0]["type"] == "memory_error"


def test_source_that_was_not_offered(tmp_path: Path) -> None:
    """A model cannot choose a source that does not exist; insisting on it halts the turn."""
    ran = run_turn(laptop_store(tmp_path), answer=Script(retrieval={"relevant": ["visit:made_up"]}))
    intervention = halted_at_gathering(ran)
    assert intervention["type"] == "invalid_reply"
    assert intervention["recipe"] == "pipeline/phase2_1_retrieval"
    assert json.loads(str(intervention["raw_output"])) == {"relevant": ["visit:made_up"]}


def test_expired_price_is_left_out(tmp_path: Path) -> None:
    """A price that is too old to be believed is not offered; what ages slowly still is."""
    layout = laptop_store(tmp_path)
    fields = {"title": "HP Victus", "price": "$799", "specs": {"gpu": "RTX 4050"}}
    write_visit(layout, 2, "visit_old", fields, quality=0.9, at=NOW - timedelta(days=30), user=USER)
    script = Script(retrieval={"relevant": pick("visit_old")}, answer={"items": []})
    ran = run_turn(layout, "How much is the HP Victus?", script)
    texts = [text for _, text in loaded_lines(ran.asked("synthesis")[0])]
    assert "HP Victus: gpu RTX 4050" in texts
    assert not any("$799" in text for text in texts)


def test_named_turn_is_taken(tmp_path: Path) -> None:
    """A turn that the query names is loaded even if the model leaves it out."""
    script = Script(retrieval={"relevant": []}, synthesis={"lines": []}, answer={"items": []})
    ran = run_turn(laptop_store(tmp_path), "What was turn 2 about?", script)
    plan = ran.folder.read_json("retrieval_plan.json")
    assert plan["relevant_turns"] == [2]
    assert [c["by"] for c in plan["candidates"] if c["chosen"]] == ["always_include"]


def test_named_turn_that_does_not_exist(tmp_path: Path) -> None:
    """A turn that the query names and that does not exist is a warning."""
    script = Script(retrieval={"relevant": []}, answer={"items": []})
    ran = run_turn(laptop_store(tmp_path), "What was turn 77 about?", script)
    assert ran.turn.warnings == ["the query names turn:77, which does not exist"]
    assert ran.metadata.status == "approved"


def test_questions_are_not_evidence(tmp_path: Path) -> None:
    """What somebody asked earlier states nothing and is not offered as a line."""
    ran = run_turn(laptop_store(tmp_path), answer=Script(retrieval={"relevant": pick("turn:1")}))
    texts = [text for _, text in loaded_lines(ran.asked("synthesis")[0])]
    assert "The Lenovo LOQ 15 was the best laptop." in texts
    assert "Find me a laptop for games." not in texts
