"""The files of one turn that its session's state is made of, as one value."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from panda.documents.context import ContextDocument, parse_context
from panda.documents.text import strip_citations
from panda.documents.times import render_time
from panda.language.conversation import plain_recap
from panda.language.reading import Reading, parse_reading
from panda.storage.files import read_text
from panda.storage.layout import (
    CONTEXT_MD,
    PLAN_JSON,
    QUERY_ANALYSIS_JSON,
    REFLECTION_JSON,
    SUMMARY_JSON,
    TurnPaths,
    turn_name,
)
from panda.storage.records import load_object

Json = Mapping[str, Any]

_STEP = re.compile(r"step_(\d+)\.json")


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
    analysis: Json | None = None
    reflection: Json | None = None
    plan: Json | None = None
    steps: tuple[Json, ...] = ()
    summary: Json | None = None
    artifacts: Mapping[str, int] = field(default_factory=dict)
    """Length in characters of the files that steps made, by path relative to the turn's directory."""

    @property
    def reading(self) -> Reading:
        """What the query means; of a turn without a reading only whether it looks back."""
        return stored_reading(self.analysis or {}, self.query)

    @property
    def directory(self) -> str:
        """The turn's directory, relative to the user's."""
        return f"turns/{turn_name(self.turn)}"

    def calls(self) -> Iterator[tuple[int, Json]]:
        """Every tool call with the number of its step."""
        for step in self.steps:
            yield int(step["step"]), step


def stored_reading(analysis: Json, query: str) -> Reading:
    """
    What query_analysis.json says of what a query means.

    Args:
        analysis: The file; in older stores without a reading, which then says no more than was known there.
    """
    found = analysis.get("reading")
    return parse_reading(found) if found else Reading(recap=plain_recap(query))


def load_turn_files(paths: TurnPaths, number: int) -> TurnFiles:
    """What a turn's files say. Raises FileFormatError: a file is damaged."""
    place = paths / CONTEXT_MD
    context = parse_context(read_text(place), where=str(place))
    steps = tuple(_load_steps(paths))
    made = [name for step in steps for name in step["artifacts"]]
    sizes = {name: len(read_text(paths / name)) for name in made if (paths / name).is_file()}
    return TurnFiles(
        turn=number,
        session_id=context.front.session_id,
        at=render_time(context.front.created_at),
        query=_text(context, 0),
        reply=strip_citations(_text(context, 5)).strip(),
        statements=_statements(context),
        analysis=_load(paths, QUERY_ANALYSIS_JSON),
        reflection=_load(paths, REFLECTION_JSON),
        plan=_load(paths, PLAN_JSON),
        steps=steps,
        summary=_load(paths, SUMMARY_JSON),
        artifacts=sizes,
    )


def _text(context: ContextDocument, number: int) -> str:
    section = context.section(number)
    return section.text if section else ""


def _statements(context: ContextDocument) -> tuple[tuple[str, tuple[str, ...]], ...]:
    section = context.section(5)
    items: Any = section.meta.get("items", ()) if section else ()
    return tuple((str(item["text"]), tuple(map(str, item["node_ids"]))) for item in items)


def _load(paths: TurnPaths, name: str) -> Json | None:
    path = paths / name
    return load_object(path) if path.is_file() else None


def _load_steps(paths: TurnPaths) -> Iterator[Json]:
    folder = paths / "steps"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    for name in names:
        step = _load(paths, f"steps/{name}") if _STEP.fullmatch(name) else None
        if step is not None:
            yield step
