"""The page of a turn: question, answer and what that rests on, then how the turn came to it."""

import base64
import bisect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import SimpleNamespace

from markupsafe import Markup

from panda.addons.view.answer import MOST_CHARS, render_markdown
from panda.addons.view.attempts import read_attempts
from panda.addons.view.call_table import show_calls
from panda.addons.view.evidence_page import (
    ShownStatement,
    cited_nodes,
    find_evidence,
    find_statements,
    split_answer,
    texts_of,
    turn_at,
)
from panda.addons.view.past_notes import PastNotes
from panda.addons.view.runs import is_run_name
from panda.addons.view.shelf import PageQuery, RowsPage, Shelf
from panda.addons.view.shown_turn import ShownTurn, find_shown_turn
from panda.addons.view.steps import StepNodes, read_steps
from panda.addons.view.turn_reader import TurnReader
from panda.documents.context import SECTIONS, Phase, render_section
from panda.errors import Problem
from panda.index.executions import TurnExecutions, turn_executions
from panda.memory.markdown_files import Bound
from panda.memory.reader import PastReader
from panda.store.files import read_beneath
from panda.store.interventions import list_interventions
from panda.store.layout import RESPONSE_MD, UserStore
from panda.store.outcome import UNANSWERED, outcome_of
from panda.store.records import (
    Evidence,
    GatheredContext,
    Image,
    Metadata,
    Metrics,
    ModelCall,
    PhaseMetrics,
    Plan,
    QueryAnalysis,
    ReflectionRecord,
    RetrievalPlan,
    Snapshot,
    StagedMemory,
    TurnDocuments,
)
from panda.store.turns import TurnFolder

_MOST_STATEMENTS = 200
_IMAGE_BYTES = 4_194_304


def load_turn(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The page of a turn. What a file lacks is None or empty. Raises NotFoundError: there is no such turn."""
    turn = find_shown_turn(shelf, query)
    user = turn.user
    folder = turn.folder
    reader = TurnReader(folder)
    metadata = reader.record(Metadata)
    front, sections = reader.context()
    at = None
    if metadata:
        at = metadata.created_at
    elif front:
        at = front.created_at
    response = reader.text(RESPONSE_MD)
    question = ""
    if metadata:
        question = metadata.query
    elif 0 in sections:
        question = sections[0].text
    written = sections[5].text if 5 in sections else ""
    is_refused = metadata is not None and metadata.status == "failed" and bool(written)
    stated, listed = split_answer(written if is_refused else response or written)
    answer = (response or "") if is_refused else stated
    gathered = reader.record(GatheredContext)
    evidence = reader.record(Evidence)
    outcome = outcome_of(metadata) if metadata else None
    is_unanswered = outcome in UNANSWERED
    closest = evidence.closest if evidence and is_unanswered else ()
    section = sections.get(5)
    nodes = cited_nodes(section, listed)
    texts: Sequence[tuple[str, Sequence[str]]] = find_statements(section, stated, listed)
    if closest:
        nodes = {passage.node_id: passage.provenance for passage in closest}
        texts = [(passage.best, [passage.node_id]) for passage in closest]
    issues = texts_of(sections[6].meta.get("issues")) if 6 in sections else []
    part = RowsPage(texts, _MOST_STATEMENTS)
    statements = _evidence(
        shelf, turn, reader, at=at, statements=part, nodes=nodes, gathered=gathered, issues=issues
    )
    metrics = reader.record(Metrics)
    retrieval = reader.record(RetrievalPlan)
    candidates = sorted(
        retrieval.candidates if retrieval else (), key=lambda row: (not row.chosen, -(row.score or 0.0))
    )
    numbers = shelf.numbers(user) if turn.run is None else ()
    place = bisect.bisect_left(numbers, folder.number)
    calls = reader.calls()
    return SimpleNamespace(
        user=user,
        number=folder.number,
        run=turn.run,
        address=turn.address,
        older=numbers[place - 1] if place > 0 else None,
        newer=next((number for number in numbers[place : place + 2] if number > folder.number), None),
        directory=folder.paths.directory,
        metadata=metadata,
        run_is_here=metadata is not None and _has_run(shelf, metadata.run),
        status=metadata.status if metadata else "unreadable",
        ending=outcome or (metadata.status if metadata else "unreadable"),
        is_unanswered=is_unanswered,
        closest=closest,
        at=at,
        question=question,
        answer=_shown_answer(answer, statements, is_refused=is_refused) if answer else None,
        is_refused=is_refused,
        draft=render_markdown(stated, statements) if is_refused else None,
        answer_left=max(0, len(answer) - MOST_CHARS),
        listed=listed,
        first_anchor={  # of each cited node the first place
            source.node_id: source.anchor
            for statement in reversed(statements)
            for source in reversed(statement.sources)
        },
        statements=statements,
        statements_left=part.left,
        metrics=metrics,
        phases=_timeline(metrics, [call for _, call in calls.sound]) if metrics else [],
        phase_names=[phase.label for phase in Phase],
        retrieval=retrieval,
        candidates=candidates,
        plan=reader.record(Plan),
        gathered=gathered,
        evidence=evidence,
        staged=reader.record(StagedMemory),
        sections=[
            (number, SECTIONS[number].title, render_section(section).partition("\n\n")[2])
            for number, section in sections.items()
        ],
        verdict=sections[6].meta if 6 in sections else {},
        analysis=reader.record(QueryAnalysis),
        reflection=reader.record(ReflectionRecord),
        steps=list(read_steps(reader)),
        halts=list_interventions(turn.store, f"*-{user}-{folder.number}-*"),
        attempts=read_attempts(reader, sections),
        image=_image(folder, metadata),
        documents=documents.documents if (documents := reader.record(TurnDocuments)) else (),
        image_text=image.description if (image := reader.record(Image)) else "",
        calls=calls,
        asked=list(show_calls(calls.sound)),
        executions=_executions(turn.store, folder.number, metadata),
        files=list(reader.files()),
        problems=reader.problems,
    )


def _shown_answer(answer: str, statements: Sequence[ShownStatement], *, is_refused: bool) -> Markup:
    """An answer; one that only tells of a refusal leads to the draft and to what was found in it."""
    if not is_refused:
        return render_markdown(answer, statements)
    html = str(render_markdown(answer))
    for section, place in (("§5", "draft"), ("§6", "validation")):
        html = html.replace(section, f'<a href="#{place}">{section}</a>')
    return Markup(html)


def _evidence(
    shelf: Shelf,
    shown_turn: ShownTurn,
    reader: TurnReader,
    *,
    at: datetime | None,
    statements: Sequence[tuple[str, Sequence[str]]],
    nodes: Mapping[str, str],
    gathered: GatheredContext | None,
    issues: Sequence[str],
) -> tuple[ShownStatement, ...]:
    """Return statements with what their nodes say of them, in its surroundings as the turn read it."""
    moment = at or shelf.store.clock()
    number = reader.folder.number
    among = {number, *(turn for place in nodes.values() if (turn := turn_at(place)) is not None)}
    snapshot = reader.record(Snapshot)
    bound = shown_turn.bound(Bound(number, moment, snapshot))
    past = PastReader(shown_turn.store, bound, among=frozenset(among))
    return find_evidence(
        statements,
        nodes,
        StepNodes(reader, past).load,
        moment,
        past=PastNotes(shown_turn.store.knowledge, snapshot, gathered, moment),
        issues=issues,
    )


def _executions(store: UserStore, number: int, metadata: Metadata | None) -> TurnExecutions:
    if metadata is None:
        return TurnExecutions()
    begun = metadata.created_at
    ended = metadata.updated_at
    with suppress(Problem):
        return turn_executions(store, number, begun, max(begun, ended))
    return TurnExecutions()


def _has_run(shelf: Shelf, run: str | None) -> bool:
    return run is not None and is_run_name(run) and (shelf.store.runs / run).is_dir()


def _image(folder: TurnFolder, metadata: Metadata | None) -> str | None:
    if metadata is None or metadata.image is None:
        return None
    with suppress(Problem):
        data = read_beneath(folder.paths.directory, metadata.image.split("/"), most_bytes=_IMAGE_BYTES + 1)
        if data is not None and len(data) <= _IMAGE_BYTES:
            kind = "png" if metadata.image.endswith(".png") else "jpeg"
            return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return None


def _timeline(metrics: Metrics, calls: Sequence[ModelCall]) -> list[tuple[PhaseMetrics, str, float, float]]:
    """
    The phases, each with the models that its calls asked, and with the place where its bar begins and its
    width, in percent of the turn's time.
    """
    whole = sum(row.seconds or 0.0 for row in metrics.phases) or 1.0
    bars = []
    start = 0.0
    for row in metrics.phases:
        width = 100 * (row.seconds or 0.0) / whole
        models = dict.fromkeys(call.model for call in calls if call.phase == row.phase and call.model)
        bars.append((row, ", ".join(models), start, width))
        start += width
    return bars
