"""The files of one turn that its session's state is made of, and what its tool steps say."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from panda.documents.context import parse_context
from panda.documents.text import one_line, strip_citations
from panda.documents.times import render_time
from panda.language.reading import Reading, plain_recap
from panda.store.carry import StepRecord, StepType, clip
from panda.store.files import read_text
from panda.store.layout import (
    CONTEXT_MD,
    PLAN_JSON,
    REFLECTION_JSON,
    SUMMARY_JSON,
    TurnPaths,
    step_name,
    turn_name,
)
from panda.store.records import QueryAnalysis, find
from panda.store.visits import load_object

Json = Mapping[str, Any]
_STEP = re.compile(r"step_(\d+)\.json")
_LINE_CHARS, _ASKED_CHARS, _NOTE_CHARS = 160, 120, 300
_TYPES: Mapping[str, StepType] = {
    "create": "write", "write": "write", "edit": "write", "update": "write", "delete": "write",
    "commit": "write", "save": "write", "generate": "generate", "analyze": "analyze", "compare": "analyze",
}  # fmt: skip
"""Kind of work by the last word of a tool's name; any other tool reads."""


@dataclass(frozen=True)
class TurnFiles:
    """What a turn's own files say."""

    turn: int
    session_id: str  # its session
    at: str  # when it was claimed
    query: str
    reply: str = ""  # §5 without marks and sources; "" if there is none
    statements: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The statements of the reply with the nodes they cite."""
    analysis: QueryAnalysis | None = None
    reflection: Json | None = None
    plan: Json | None = None
    steps: tuple[Json, ...] = ()
    summary: Json | None = None
    artifacts: Mapping[str, int] = field(default_factory=dict)
    """Length in characters of the files that steps made, by path relative to the turn's directory."""

    @property
    def reading(self) -> Reading:
        """What the query means; of a turn without a reading only whether it looks back."""
        return self.analysis.reading if self.analysis else Reading(recap=plain_recap(self.query))

    @property
    def directory(self) -> str:
        """The turn's directory, relative to the user's."""
        return f"turns/{turn_name(self.turn)}"


def load_turn_files(paths: TurnPaths, number: int) -> TurnFiles:
    """What a turn's files say. Raises FileFormatError: a file is damaged."""
    place = paths / CONTEXT_MD
    context = parse_context(read_text(place), where=str(place))
    folder = paths / "steps"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    steps = tuple(load_object(folder / name) for name in names if _STEP.fullmatch(name))
    query, answer = context.section(0), context.section(5)
    items: Any = answer.meta.get("items", ()) if answer else ()
    made = [name for step in steps for name in step["artifacts"]]
    sizes = {name: len(read_text(paths / name)) for name in made if (paths / name).is_file()}
    return TurnFiles(
        turn=number,
        session_id=context.front.session_id,
        at=render_time(context.front.created_at),
        query=query.text if query else "",
        reply=strip_citations(answer.text).strip() if answer else "",
        statements=tuple((str(item["text"]), tuple(map(str, item["node_ids"]))) for item in items),
        analysis=find(QueryAnalysis, paths.directory),
        reflection=_load(paths, REFLECTION_JSON),
        plan=_load(paths, PLAN_JSON),
        steps=steps,
        summary=_load(paths, SUMMARY_JSON),
        artifacts=sizes,
    )


def _load(paths: TurnPaths, name: str) -> Json | None:
    path = paths / name
    return load_object(path) if path.is_file() else None


def call_digest(tool: str, arguments: Mapping[str, object]) -> str:
    """
    What makes a tool call the same again.

    >>> call_digest("a.b", {"x": 1, "y": 2}) == call_digest("a.b", {"y": 2, "x": 1})
    True
    """
    text = json.dumps([tool, arguments], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def step_type(call: Json) -> StepType:
    """What kind of work a call did."""
    return call.get("kind") or _TYPES.get(str(call["tool"]).rpartition(".")[2], "read")


def step_records(files: TurnFiles) -> tuple[StepRecord, ...]:
    """The tool calls of a turn, in short."""
    return tuple(
        StepRecord(
            step=call["step"],
            tool=call["tool"],
            step_type=step_type(call),
            subdomain=str(call["tool"]).partition(".")[0],
            outcome=outcome_line(call),
            record_count=record_count(call),
            entities=tuple(clip(label, _LINE_CHARS) for label, _ in entity_ops(call))[:8],
            note=clip(note, _NOTE_CHARS) if (note := call["note"]) else None,
            conclusion=clip(told, _NOTE_CHARS) if (told := call["conclusion"]) else None,
            result=f"{files.directory}/{step_name(call['step'])}",
        )
        for call in files.steps
    )


def outcome_line(call: Json) -> str:
    """One line on what a call gave."""
    if call["status"] != "success":
        return clip(f"{call['status']}: {call['error']}", _LINE_CHARS)
    said = [one_line(claim["text"]) for claim in call["claims"]]
    return clip("; ".join(said), _LINE_CHARS) if said else "nothing found"


def record_count(call: Json) -> int:
    """How many records or statements a call gave."""
    return max(len(call["claims"]), len(call["entities"])) if call["status"] == "success" else 0


def entity_ops(call: Json) -> Iterator[tuple[str, str]]:
    """Label of every entity of a call, and what was done to it."""
    if call["status"] == "success":
        yield from ((entity["label"], entity["op"]) for entity in call["entities"])


def errors_of(files: TurnFiles) -> tuple[str, ...]:
    """Every failed call with its error."""
    failed = (call for call in files.steps if call["error"])
    return tuple(clip(f"{call['tool']}: {call['error']}", 2 * _LINE_CHARS) for call in failed)


def blocked_reason(files: TurnFiles) -> str | None:
    """Why a step could not be done; None if none was blocked."""
    found = (call["error"] for call in files.steps if call["status"] == "blocked")
    progress = (files.plan or {}).get("progress") or {}
    given = progress.get("reason") if progress.get("ending") == "blocked" else None
    reason = given or next(found, None)
    return clip(reason, 2 * _LINE_CHARS) if reason else None
