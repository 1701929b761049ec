"""The page of a turn: question, answer and what that rests on, then how the turn came to it."""

import base64
import bisect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup
from msgspec import UNSET

from panda.documents.context import PHASES, SECTIONS, Section, render_section
from panda.errors import Problem
from panda.index.executions import TurnExecutions, turn_executions
from panda.memory.past import Bound
from panda.memory.reader import PastReader
from panda.store.files import read_beneath
from panda.store.interventions import list_interventions
from panda.store.layout import (
    CALLS_JSONL,
    GATHERED_CONTEXT_JSON,
    IMAGE_JSON,
    METRICS_JSON,
    PLAN_JSON,
    REFLECTION_JSON,
    RESPONSE_MD,
    RETRIEVAL_PLAN_JSON,
    STAGED_MEMORY_JSON,
    UserStore,
)
from panda.store.records import (
    Document,
    GatheredContext,
    Image,
    Intervention,
    JudgedCandidate,
    Metadata,
    Metrics,
    Plan,
    QueryAnalysis,
    Reflection,
    RetrievalPlan,
    Totals,
    TurnRelevance,
)
from panda.store.turns import TurnFolder
from panda.view.answer import MOST_CHARS, render_markdown
from panda.view.attempts import Attempt, read_attempts
from panda.view.calls import MOST_CALLS, Calls, read_calls
from panda.view.evidence import (
    Listed,
    Statement,
    cited_nodes,
    find_evidence,
    find_statements,
    split_answer,
    texts_of,
    turn_at,
)
from panda.view.past_notes import PastNotes
from panda.view.runs import is_run_name
from panda.view.shelf import Query, Shelf
from panda.view.steps import StepNodes, StepRow, read_steps
from panda.view.turn_reader import TurnReader

_MOST_FILES = 500
_MOST_STATEMENTS = 200
_MOST_CANDIDATES = 200
_SECTION_CHARS = 60_000
_IMAGE_BYTES = 4_194_304


@dataclass(frozen=True)
class PhaseBar:
    """One phase of the timeline."""

    number: int
    name: str
    layer: str  # "" where no model was asked
    calls: int
    prompt_tokens: int | None
    reused_tokens: int | None
    output_tokens: int | None
    seconds: float | None
    start: float  # where its bar begins, in percent of the turn's time
    width: float  # how long it is
    times: int  # how often the phase was passed


@dataclass(frozen=True)
class CandidateRow:
    """One candidate of the retrieval."""

    node_id: str
    score: float | None  # how far the model and the index find it to matter
    index: float | None  # score of the index alone
    chosen: bool
    by: str  # model, index, always_include, …
    share: float  # its score in percent of the highest
    turn: int | None  # the turn that it is
    reason: str


@dataclass(frozen=True)
class Note:
    """One thing that the turn noted for memory."""

    text: str
    node_id: str  # as "memory:budget"
    replaces: str  # the value that held before; "" if there was none
    state: str  # noted: told by the user; staged or written: what tools would remember, and what they did


@dataclass(frozen=True)
class File:
    """One file of the turn."""

    name: str
    bytes: int
    problem: str | None  # what is wrong with it, if it was read for this page


@dataclass(frozen=True)
class TurnPage:
    """What the page of a turn shows. What a file lacks is None or empty."""

    user: str
    number: int
    older: int | None  # the turn before it
    newer: int | None  # the turn after it
    directory: str  # where its files are
    metadata: Metadata | None  # None if that file is damaged
    run_is_here: bool  # whether the store has the batch that made it
    status: str  # as in metadata.json; "unreadable" without
    at: datetime | None  # when it was claimed
    question: str
    answer: Markup | None
    draft: Markup | None  # an answer that was not approved, where another text was given instead
    answer_left: int  # how many of its characters are not shown
    listed: tuple[Listed, ...]  # the list of sources below the answer
    first_anchor: Mapping[str, str]  # where a cited node is first shown, by its id
    statements: tuple[Statement, ...]
    statements_left: int  # how many of the answer's statements are not shown
    phases: tuple[PhaseBar, ...]
    totals: Totals | None  # of all phases
    candidates: tuple[CandidateRow, ...]
    candidates_left: int
    plan: Plan | None  # plan.json
    gathered: GatheredContext | None  # gathered_context.json
    cut: tuple[Document, ...]  # documents that were shortened
    notes: tuple[Note, ...]  # what the turn noted for memory
    sections: tuple[tuple[int, str, str, int], ...]
    """Number, title and text of each section of context.md, and how many characters of it are left out."""
    verdict: Mapping[str, Any]  # what phase 6 decided: `_meta` of §6
    verdict_confidence: float | None  # how sure it was
    analysis: QueryAnalysis | None  # query_analysis.json: what the query was taken to mean
    reflection: Reflection | None  # reflection.json
    steps: tuple[StepRow, ...]  # calls of tools
    halts: tuple[Intervention | Problem, ...]  # its interventions
    attempts: tuple[Attempt, ...]  # what was replaced
    image: str | None  # the image given with the query as a data: URL
    image_text: str  # what the model of EYES says of it
    calls: Calls
    executions: TurnExecutions  # what the log says of it
    files: tuple[File, ...]
    files_left: int
    problems: Mapping[str, str]  # what is wrong with damaged files, by name


def load_turn(shelf: Shelf, query: Query) -> TurnPage:
    """The page of a turn. Raises NotFoundError: there is no such turn."""
    user = query.parameters["user"]
    folder = shelf.turn(user, query.parameters["turn"])
    reader = TurnReader(folder)
    metadata = reader.metadata()
    front, sections = reader.context()
    at = metadata.created_at if metadata else front.created_at if front else None
    response = reader.text(RESPONSE_MD)
    written = sections[5].text if 5 in sections else ""
    is_refused = metadata is not None and metadata.status == "failed" and bool(written and response)
    stated, listed = split_answer(written if is_refused else response or written)
    answer = (response or "") if is_refused else stated
    gathered = reader.record(GatheredContext, GATHERED_CONTEXT_JSON)
    statements, statements_left = _evidence(shelf, user, reader, at, sections, stated, listed, gathered)
    phases, totals = _timeline(reader.record(Metrics, METRICS_JSON), metadata)
    candidates = _candidates(reader.record(RetrievalPlan, RETRIEVAL_PLAN_JSON))
    numbers = shelf.numbers(user)
    place = bisect.bisect_left(numbers, folder.number)
    files = tuple(reader.files())
    calls = read_calls(reader.lines(CALLS_JSONL, MOST_CALLS))
    verdict = sections[6].meta if 6 in sections else {}
    sure = verdict.get("confidence")
    return TurnPage(
        user=user,
        number=folder.number,
        older=numbers[place - 1] if place > 0 else None,
        newer=next((one for one in numbers[place : place + 2] if one > folder.number), None),
        directory=str(folder.paths.directory),
        metadata=metadata,
        run_is_here=metadata is not None and _has_run(shelf, metadata.run),
        status=metadata.status if metadata else "unreadable",
        at=at,
        question=metadata.query if metadata else sections[0].text if 0 in sections else "",
        answer=_shown_answer(answer, statements, is_refused=is_refused) if answer else None,
        draft=render_markdown(stated, statements) if is_refused else None,
        answer_left=max(0, len(answer) - MOST_CHARS),
        listed=listed,
        first_anchor=_first_anchors(statements),
        statements=statements,
        statements_left=statements_left,
        phases=phases,
        totals=totals,
        candidates=tuple(candidates[:_MOST_CANDIDATES]),
        candidates_left=max(0, len(candidates) - _MOST_CANDIDATES),
        plan=reader.record(Plan, PLAN_JSON),
        gathered=gathered,
        cut=tuple(one for one in gathered.documents or () if one.cut) if gathered else (),
        notes=_notes(reader.json(STAGED_MEMORY_JSON)),
        sections=tuple(_sections(sections)),
        verdict=verdict,
        verdict_confidence=float(sure) if isinstance(sure, int | float) and 0 <= sure <= 1 else None,
        analysis=reader.record(QueryAnalysis, QueryAnalysis.FILE),
        reflection=reader.record(Reflection, REFLECTION_JSON),
        steps=tuple(read_steps(reader)),
        halts=tuple(list_interventions(shelf.store, f"*-{user}-{folder.number}-*")),
        attempts=read_attempts(reader, sections),
        image=_image(folder, metadata),
        image_text=(image.description if (image := reader.record(Image, IMAGE_JSON)) else ""),
        calls=calls,
        executions=_executions(shelf.store.of(user), folder.number, metadata),
        files=tuple(File(name, size, reader.problems.get(name)) for name, size in files[:_MOST_FILES]),
        files_left=max(0, len(files) - _MOST_FILES),
        problems=reader.problems,
    )


def _shown_answer(answer: str, statements: Sequence[Statement], *, is_refused: bool) -> Markup:
    """An answer; one that only tells of a refusal leads to the draft and to what was found in it."""
    if not is_refused:
        return render_markdown(answer, statements)
    shown = str(render_markdown(answer))
    for section, place in (("§5", "draft"), ("§6", "validation")):
        shown = shown.replace(section, f'<a href="#{place}">{section}</a>')
    return Markup(shown)


def _evidence(
    shelf: Shelf,
    user: str,
    reader: TurnReader,
    at: datetime | None,
    sections: Mapping[int, Section],
    answer: str,
    listed: Sequence[Listed],
    gathered: GatheredContext | None,
) -> tuple[tuple[Statement, ...], int]:
    section = sections.get(5)
    nodes = cited_nodes(section, listed)
    stated = find_statements(section, answer, listed)
    moment = at or shelf.store.clock()
    number = reader.folder.number
    among = {number, *(turn for place in nodes.values() if (turn := turn_at(place)) is not None)}
    snapshot = reader.snapshot()
    past = PastReader(shelf.turns(user), Bound(number, moment, snapshot), among=frozenset(among))
    found = find_evidence(
        stated[:_MOST_STATEMENTS],
        nodes,
        StepNodes(reader, past).load,
        moment,
        past=PastNotes(shelf.turns(user).knowledge, snapshot, gathered, moment),
        issues=texts_of(sections[6].meta.get("issues")) if 6 in sections else (),
    )
    return found, max(0, len(stated) - _MOST_STATEMENTS)


def _first_anchors(statements: Sequence[Statement]) -> dict[str, str]:
    found: dict[str, str] = {}
    for statement in statements:
        for source in statement.sources:
            found.setdefault(source.node_id, source.anchor)
    return found


def _executions(store: UserStore, number: int, metadata: Metadata | None) -> TurnExecutions:
    if metadata is None:
        return TurnExecutions()
    begun, ended = metadata.created_at, metadata.updated_at
    with suppress(Problem):
        return turn_executions(store, number, begun, max(begun, ended))
    return TurnExecutions()


def _has_run(shelf: Shelf, run: str | None) -> bool:
    return run is not None and is_run_name(run) and (shelf.store.runs / run).is_dir()


def _sections(sections: Mapping[int, Section]) -> Iterator[tuple[int, str, str, int]]:
    for number, section in sections.items():
        text = render_section(section).partition("\n\n")[2]
        yield number, SECTIONS[number].title, text[:_SECTION_CHARS], max(0, len(text) - _SECTION_CHARS)


def _image(folder: TurnFolder, metadata: Metadata | None) -> str | None:
    if metadata is None or metadata.image is None:
        return None
    with suppress(Problem):
        data = read_beneath(folder.paths.directory, metadata.image.split("/"), most_bytes=_IMAGE_BYTES + 1)
        if data is not None and len(data) <= _IMAGE_BYTES:
            kind = "png" if metadata.image.endswith(".png") else "jpeg"
            return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return None


def _notes(staged: Mapping[str, Any] | None) -> tuple[Note, ...]:
    if staged is None:
        return ()
    told = [
        Note(one["text"], one["node_id"], str(one["replaces"] or ""), "noted")
        for one in staged.get("noted", ())
    ]
    state = "written" if staged["applied"] else "staged"
    known = {note.text for note in told}
    kept = [Note(one["text"], one["relation"], "", state) for one in staged["staged"]]
    return (*told, *(note for note in kept if note.text not in known))


def _timeline(
    metrics: Metrics | None, metadata: Metadata | None
) -> tuple[tuple[PhaseBar, ...], Totals | None]:
    rows = metrics.phases if metrics else ()
    route = metadata.route if metadata else ()
    whole = sum(row.seconds or 0.0 for row in rows) or 1.0
    bars, start = [], 0.0
    for row in rows:
        width = 100 * (row.seconds or 0.0) / whole
        bars.append(
            PhaseBar(
                number=row.phase,
                name=PHASES[row.phase],
                layer=row.layer or "",
                calls=row.calls,
                prompt_tokens=row.prompt_tokens,
                reused_tokens=row.reused_tokens,
                output_tokens=row.output_tokens,
                seconds=row.seconds,
                start=start,
                width=width,
                times=route.count(row.phase),
            )
        )
        start += width
    return tuple(bars), metrics.totals if metrics else None


def _candidates(plan: RetrievalPlan | None) -> list[CandidateRow]:
    if plan is None:
        return []
    most = max((row.score or 0.0 for row in plan.candidates), default=0.0) or 1.0
    found = [_candidate(row, plan.turn_relevance, most) for row in plan.candidates]
    return sorted(found, key=lambda row: (not row.chosen, -(row.score or 0.0)))


def _candidate(row: JudgedCandidate, reasons: Mapping[str, TurnRelevance], most: float) -> CandidateRow:
    kind, _, name = row.node_id.partition(":")
    turn = int(name) if kind == "turn" and name.isascii() and name.isdigit() and len(name) < 16 else None
    reason = reasons.get(name) if turn is not None else None
    return CandidateRow(
        node_id=row.node_id,
        score=row.score,
        index=None if row.index is UNSET else row.index,
        chosen=row.chosen,
        by=row.by,
        share=100 * max(0.0, row.score or 0.0) / most,
        turn=turn,
        reason=(reason.reason or "") if reason else "",
    )
