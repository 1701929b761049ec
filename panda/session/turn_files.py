"""The files of one turn that its session's state is made of, and what its tool steps say."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from panda.documents.context import Phase, parse_context
from panda.documents.safe_text import one_line, strip_citations
from panda.documents.times import render_time
from panda.messages.questions import plain_recap
from panda.messages.reading import Reading
from panda.store.carry import StepRecord, StepType, clip
from panda.store.files import read_text
from panda.store.layout import CONTEXT_MD, TurnPaths, turn_name
from panda.store.records import Plan, QueryAnalysis, ReflectionRecord, Step, Summary, find
from panda.store.turns import load_steps

_LINE_CHARS = 160
_ASKED_CHARS = 120
_NOTE_CHARS = 300
_TYPES: Mapping[str, StepType] = {
    "create": "write", "write": "write", "edit": "write", "update": "write", "delete": "write",
    "commit": "write", "save": "write", "generate": "generate", "analyze": "analyze", "compare": "analyze",
}  # fmt: skip
"""Kind of work by the last word of a tool's name; any other tool reads."""


@dataclass(frozen=True)
class TurnFiles:
    turn: int
    session_id: str  # its session
    at: str  # when it was claimed
    query: str
    reply: str = ""  # §5 without marks and sources; "" if there is none
    statements: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The statements of the reply with the nodes they cite."""
    analysis: QueryAnalysis | None = None
    reflection: ReflectionRecord | None = None
    plan: Plan | None = None
    steps: tuple[Step, ...] = ()
    summary: Summary | None = None
    artifacts: Mapping[str, int] = field(default_factory=dict)
    """Length in characters of the files that steps made, by path relative to the turn's directory."""

    @property
    def reading(self) -> Reading:
        """Return what the query means; of a turn without a reading only whether it looks back."""
        return self.analysis.reading if self.analysis else Reading(recap=plain_recap(self.query))

    @property
    def directory(self) -> str:
        return f"turns/{turn_name(self.turn)}"


def load_turn_files(paths: TurnPaths, number: int) -> TurnFiles:
    place = paths / CONTEXT_MD
    context = parse_context(read_text(place), where=str(place))
    steps = tuple(load_steps(paths))
    query = context.section(Phase.QUERY_ANALYZER)
    answer = context.section(Phase.SYNTHESIZER)
    items: Any = answer.meta.get("items", ()) if answer else ()
    names = [name for step in steps for name in step.artifacts]
    sizes = {name: len(read_text(paths / name)) for name in names if (paths / name).is_file()}
    return TurnFiles(
        turn=number,
        session_id=context.front.session_id,
        at=render_time(context.front.created_at),
        query=query.text if query else "",
        reply=strip_citations(answer.text).strip() if answer else "",
        statements=tuple((str(item["text"]), tuple(map(str, item["node_ids"]))) for item in items),
        analysis=find(QueryAnalysis, paths.directory),
        reflection=find(ReflectionRecord, paths.directory),
        plan=find(Plan, paths.directory),
        steps=steps,
        summary=find(Summary, paths.directory),
        artifacts=sizes,
    )


def call_digest(tool: str, arguments: Mapping[str, object]) -> str:
    """
    Return the digest by which equal tool calls are recognised, in whatever order their arguments are given.
    """
    text = json.dumps([tool, arguments], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def step_type(step: Step) -> StepType:
    return step.kind or type_of_tool(step.tool)


def type_of_tool(name: str) -> StepType:
    return _TYPES.get(name.rpartition(".")[2], "read")


def step_records(files: TurnFiles) -> tuple[StepRecord, ...]:
    return tuple(
        StepRecord(
            step=step.step,
            tool=step.tool,
            step_type=step_type(step),
            subdomain=step.tool.partition(".")[0],
            outcome=outcome_line(step),
            record_count=record_count(step),
            entities=tuple(clip(label, _LINE_CHARS) for label, _ in entity_ops(step))[:8],
            note=clip(step.note, _NOTE_CHARS) if step.note else None,
            conclusion=clip(step.conclusion, _NOTE_CHARS) if step.conclusion else None,
            result=f"{files.directory}/{step.file_name}",
        )
        for step in files.steps
    )


def outcome_line(step: Step) -> str:
    if step.status != "success":
        return clip(f"{step.status}: {step.error}", _LINE_CHARS)
    claims = [one_line(claim.text) for claim in step.claims]
    return clip("; ".join(claims), _LINE_CHARS) if claims else "nothing found"


def record_count(step: Step) -> int:
    return max(len(step.claims), len(step.entities)) if step.status == "success" else 0


def entity_ops(step: Step) -> Iterator[tuple[str, str]]:
    """Label of every entity of a call, and what was done to it."""
    if step.status == "success":
        yield from ((entity.label, entity.op) for entity in step.entities)


def blocked_reason(files: TurnFiles) -> str | None:
    progress = files.plan.progress if files.plan else None
    progress_reason = progress.reason if progress and progress.ending == "blocked" else None
    reason = progress_reason or next((step.error for step in files.steps if step.status == "blocked"), None)
    return clip(reason, 2 * _LINE_CHARS) if reason else None
