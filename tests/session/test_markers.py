"""Every field of the carry is in the prompt of each of its readers, and in no other."""

from pathlib import Path

from panda.session.file import write_session
from panda.store.carry import (
    FIELDS,
    Archive,
    ArchiveEntry,
    CachedStep,
    Carry,
    Constraint,
    Decision,
    Engagement,
    Entity,
    Flow,
    History,
    Note,
    Pending,
    RecentTurn,
    Registry,
    StepRecord,
    TurnSummary,
)
from panda.store.records import Session, SessionTurn
from tests.script import PRICE_NODE, Script, step_of
from tests.scripted_turns import USER, laptop_store, run_turn
from tests.session.conversations import CALL, DONE, SESSION, TOOLS

_PHASES = {
    "analyzer": 0,
    "reflection": 1,
    "retrieval": 2,
    "planner": 3,
    "coordinator": 4,
    "answer": 5,
    "validator": 6,
}
AT = "2026-01-03T10:00:00Z"


def mark(field: str) -> str:
    """A word that stands in one field alone."""
    return f"zq{field.replace('_', '')}qz"


def filled() -> Carry:
    """A carry with a mark in every field."""
    said = mark("turn_summaries")
    step = StepRecord(
        step=1, tool="memory.query", step_type="read", subdomain="memory", outcome=said, record_count=1
    )
    recent = RecentTurn(
        turn=1,
        user=mark("recent_turns"),
        assistant="a",
        assistant_summary="a",
        summary_kind="verbatim",
        timestamp=AT,
    )
    cached = CachedStep(
        turn=1,
        step=1,
        tool="doc.search",
        call="0",
        asked=mark("step_cache"),
        outcome="o",
        record_count=1,
        detail="full",
        path="turns/turn_000001/steps/step_01.json",
    )
    entry = ArchiveEntry(
        key="t1_s1_poem_1",
        turn=1,
        step=1,
        type="poem",
        description=mark("content_archive"),
        path="turns/turn_000001/artifacts/t1_s1_poem_1.md",
        chars=1,
    )
    note = Note(kind="conclusion", text=mark("carry_notes"), turn=1, step=1, expires_after_turn=9)
    asked = mark("pending_clarification")
    return Carry(
        recent_turns=(recent,),
        history_summary=History(text=mark("history_summary"), through_turn=1),
        engagement_summary=Engagement(text=mark("engagement_summary"), turn=1),
        turn_summaries=(TurnSummary(turn=1, steps=(step,), errors=(said,), turn_summary=said),),
        step_cache=(cached,),
        carry_notes=(note,),
        content_archive=Archive(entries=(entry,)),
        decision_log=(Decision(turn=1, action="demote", ref="e1", reason=mark("decision_log")),),
        registry=Registry(records=(entity("e2", mark("registry")), entity("e3", "Haddock"))),
        flow=Flow(user_expressed=mark("flow")),
        pending_clarification=Pending(id="q1", asked_turn=1, asked_by=3, type="question", message=asked),
        constraints=(Constraint(key="budget_max", value="USD 1", text=mark("constraints"), turn=1),),
    )


def entity(ref: str, label: str) -> Entity:
    """An active entity of turn 1."""
    return Entity(ref=ref, type="item", label=label, target=None, state="active", turns=(1,), source="t1")


def test_every_field_reaches_its_readers(tmp_path: Path) -> None:
    """A mark in each field is found in the prompts of exactly the phases that the table names."""
    layout = laptop_store(tmp_path)
    carry = filled()
    turns = (SessionTurn(turn=1, directory="turn_000001"),)
    session = Session(
        session_id=SESSION,
        user_id=USER,
        created_at=AT,
        last_active_at=AT,
        head_turn=1,
        turns=turns,
        carry=carry,
    )
    write_session(layout, session)
    reason = mark("entity_curation")
    script = Script(
        reflection={
            "decision": "PROCEED",
            "question": "",
            "curation": [{"ref": "e3", "action": "retain", "reason": reason}],
        },
        planner=TOOLS,
        coordinator=[CALL, DONE],
        answer={"items": [{"text": "The Lenovo LOQ 15 costs $697.", "node_ids": [PRICE_NODE]}]},
    )
    ran = run_turn(
        layout, "What does the Lenovo LOQ 15 cost? Show t1_s1_poem_1 too.", script, session=SESSION
    )
    assert ran.error is None
    seen: dict[str, set[int]] = {name: set() for name in FIELDS}
    for asked in ran.model.asked:
        step = step_of(asked)
        for name in FIELDS:
            if step in _PHASES and mark(name) in asked.text:
                seen[name].add(_PHASES[step])
            assert step in (*_PHASES, "session") or mark(name) not in asked.text, (name, step)
    assert {name: sorted(phases) for name, phases in seen.items()} == {
        name: sorted(field.read_by) for name, field in FIELDS.items()
    }
    assert set(FIELDS) == set(Carry.__struct_fields__)
