"""Every field of the carry is in the prompt of each of its readers, and in no other."""

import re
from typing import Any

from tests.api import PRICE_QUESTION, ROOT, ScriptedPanda
from tests.script import PRICE_NODE, Script, step_of
from tests.session.conversations import CALL, DONE, TOOLS, load_session, write_session

PHASES = {
    "analyzer": 0,
    "reflection": 1,
    "retrieval": 2,
    "planner": 3,
    "coordinator": 4,
    "answer": 5,
    "validator": 6,
}


def documented_readers() -> dict[str, list[int]]:
    """Return the phases that read each field, as the table in docs/sessions.md names them."""
    rows = re.findall(r"(?m)^\| `(\w+)` \| ([\d–, ]+) \|", (ROOT / "docs/sessions.md").read_text("utf-8"))
    readers = {}
    for field, phases in rows:
        first, _, last = phases.strip().partition("–")
        readers[field] = list(range(int(first), int(last) + 1)) if last else [*map(int, phases.split(","))]
    return readers


def mark(field: str) -> str:
    """Return a word that stands in one field alone."""
    return f"zq{field.replace('_', '')}qz"


def entity(ref: str, label: str) -> dict[str, Any]:
    """Return an active entity of turn 3."""
    return {"ref": ref, "type": "item", "label": label, "state": "active", "turns": [3], "source": "t3"} | {
        "target": None
    }


def filled(carry: dict[str, Any]) -> dict[str, Any]:
    """Return a carry of turn 3 with a mark in every field."""
    step = {"step": 1, "tool": "memory.query", "step_type": "read", "subdomain": "memory", "record_count": 1}
    summary = mark("turn_summaries")
    cached = {"turn": 3, "step": 1, "tool": "doc.search", "call": "0", "asked": mark("step_cache")}
    entry = {"key": "t3_s1_poem_1", "turn": 3, "step": 1, "type": "poem", "chars": 1}
    asked = {"id": "q1", "asked_turn": 3, "asked_by": 3, "type": "question"}
    return {
        **carry,
        "recent_turns": [
            {
                **carry["recent_turns"][0],
                "user": mark("recent_turns"),
                "assistant": "a",
                "assistant_summary": "a",
                "entities_mentioned": [],
                "asked_about": [],
            }
        ],
        "history_summary": {"text": mark("history_summary"), "through_turn": 1},
        "engagement_summary": {"text": mark("engagement_summary"), "turn": 3},
        "turn_summaries": [
            {
                "turn": 3,
                "steps": [{**step, "outcome": summary}],
                "errors": [summary],
                "turn_summary": summary,
            }
        ],
        "step_cache": [
            {
                **cached,
                "outcome": "o",
                "record_count": 1,
                "detail": "full",
                "path": "turns/turn_000003/steps/step_01.json",
            }
        ],
        "carry_notes": [
            {"kind": "conclusion", "text": mark("carry_notes"), "turn": 3, "step": 1, "expires_after_turn": 9}
        ],
        "content_archive": {
            "entries": [
                {
                    **entry,
                    "description": mark("content_archive"),
                    "path": "turns/turn_000003/artifacts/t3_s1_poem_1.md",
                }
            ]
        },
        "decision_log": [{"turn": 3, "action": "demote", "ref": "e1", "reason": mark("decision_log")}],
        "registry": {"records": [entity("e2", mark("registry")), entity("e3", "Haddock")]},
        "flow": {"user_expressed": mark("flow")},
        "pending_clarification": {**asked, "message": mark("pending_clarification")},
        "constraints": [{"key": "budget_max", "value": "USD 1", "text": mark("constraints"), "turn": 3}],
    }


def test_every_field_reaches_its_readers(ann: ScriptedPanda) -> None:
    """A mark in each field is found in the prompts of exactly the phases that the documentation names."""
    readers = documented_readers()
    ann.say(PRICE_QUESTION)
    session = load_session(ann)
    assert list(session["carry"]) == list(readers)
    write_session(ann, {**session, "carry": filled(session["carry"])})
    curation = [{"ref": "e3", "action": "retain", "reason": mark("entity_curation")}]
    script = Script(
        reflection={"decision": "PROCEED", "question": "", "curation": curation},
        planner=TOOLS,
        coordinator=[CALL, DONE],
        answer={"items": [{"text": "The Lenovo LOQ 15 costs $697.", "node_ids": [PRICE_NODE]}]},
    )
    query = "What does the Lenovo LOQ 15 cost? Show t3_s1_poem_1 too."
    turn = ann.turn(query, "--session", "talk", script=script)
    assert turn.code == 0, turn.err
    phases: dict[str, set[int]] = {field: set() for field in readers}
    for request in turn.prompts:
        step = step_of(request)
        for field in readers:
            if mark(field) in request.text and step in PHASES:
                phases[field].add(PHASES[step])
            assert step in (*PHASES, "session") or mark(field) not in request.text, (field, step)
    assert {field: sorted(numbers) for field, numbers in phases.items()} == readers
