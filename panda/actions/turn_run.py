"""A turn run to its end or as far as its context, what came of it, and what it would ask if it ran."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from msgspec import UNSET

from panda.app import App
from panda.documents.context import Phase, Section, render_section
from panda.documents.record_codec import encode
from panda.documents.safe_text import escape_quote
from panda.errors import FileFormatError, HaltError, Problem, UsageError
from panda.index.sources import NOTE_KINDS, list_notes
from panda.memory.gathered import answer_items
from panda.models.cl100k import count_tokens
from panda.models.model_contract import ModelInfo
from panda.phases.running_turn import Turn, check_query
from panda.pipeline import mark_turn
from panda.recipes.messages import build_messages, with_every_part
from panda.recipes.recipe_file import Recipe
from panda.retrieval.relevance import share_of_words
from panda.steps.all_steps import STEPS
from panda.steps.request import Request
from panda.store.layout import (
    CONTEXT_MD,
    GATHERED_CONTEXT_JSON,
    IMAGE_JSON,
    INDEX_SUMMARY_JSON,
    METRICS_JSON,
    PLAN_JSON,
    QUERY_ANALYSIS_JSON,
    REFLECTION_JSON,
    RESPONSE_MD,
    RETRIEVAL_PLAN_JSON,
    SESSION_JSON,
    STAGED_MEMORY_JSON,
    SUMMARY_JSON,
    TOOLRESULTS_MD,
)
from panda.store.outcome import outcome_of
from panda.store.reason import Reason
from panda.store.records import (
    Evidence,
    GatheredContext,
    GatheredItem,
    Image,
    Metadata,
    Metrics,
    Noted,
    RetrievalPlan,
    StagedMemory,
)
from panda.store.turn_documents import document_node, find_documents
from panda.store.turns import TurnFolder
from panda.store.validate import stray_notes
from panda.tools.table import describe_tools

Until = Literal["plan", "draft", "commit"]
_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_OF_DOCUMENT = ("name", "source", "content_type", "bytes", "sha256", "tokens")


@dataclass(frozen=True)
class TurnResult:
    """What came of something that was asked for."""

    data: Mapping[str, Any] | None  # plain JSON values; with an error, what there is all the same
    error: Problem | None = None


def ask(app: App, query: str, mode: str, **more: Any) -> TurnResult:
    """A new turn taken to its end; *more* as App.start_turn takes it."""
    with ExitStack() as locks:
        turn = app.start_turn(query, mode, locks=locks, **more)
        for note in stray_notes(app.store.home):
            _log.warning(note.told)
        outcome = run_turn(app, turn)
        is_answered = outcome.data is None or outcome.data["answered"] is not False
        if outcome.error is None and not is_answered and turn.reading.mood == "asks":
            _tell_where_notes_go(app)
        return outcome


def _tell_where_notes_go(app: App) -> None:
    """Say how to add notes, where there are none that could have answered."""
    knowledge = app.store.knowledge
    if not list_notes(str(knowledge)):
        _log.info(f"there are no notes yet: put {NOTE_KINDS} into {knowledge}")


def resume(app: App, number: int) -> TurnResult:
    """A turn that stopped, taken to its end; raises as App.resume_turn."""
    app = app.with_models_of(number)
    with app.hold_session(app.store.open(number).read_metadata().session_id):
        return run_turn(app, app.resume_turn(number))


def gather_query(app: App, query: str, mode: str, until: Until = "commit", **more: Any) -> TurnResult:
    """A new turn, taken as far as its context; the data is that of gather_turn; *more* as for ask."""
    with ExitStack() as locks:
        turn = app.start_turn(query, mode, locks=locks, **more)
        return gather_turn(app, turn, until)


def gather_again(app: App, number: int, until: Until = "commit") -> TurnResult:
    """A turn that is there, taken as far as its context; raises as check_gatherable."""
    check_gatherable(app, number)
    app = app.with_models_of(number)
    with app.hold_session(app.store.open(number).read_metadata().session_id):
        check_gatherable(app, number)
        return gather_turn(app, app.resume_turn(number), until)


def run_turn(app: App, turn: Turn) -> TurnResult:
    """A turn taken to its end, each phase told, with what its files say then."""
    _, error = _watched(turn, lambda: app.run_turn(turn))
    return TurnResult(turn_data(turn.folder, turn.metadata), error)


def _watched(turn: Turn, work: Callable[[], _T]) -> tuple[_T | None, Problem | None]:
    """
    Return the result of some work on a turn, or what halted it; log the turn's phases, image and warnings.
    """
    result = None
    error = None
    _log.info(f"turn {turn.turn}, session {turn.session_id}, in {turn.folder.paths.directory}")
    try:
        result = work()
    except (HaltError, FileFormatError) as exc:
        error = exc
    if (image := turn.described_image) is not None:
        _log.info(f"{image.file}, as {image.model} describes it: {image.description}")
    for warning in turn.warnings:
        _log.warning(warning)
    return result, error


def turn_data(folder: TurnFolder, metadata: Metadata) -> dict[str, Any]:
    """Return what `turn --json` says of a turn, by its metadata and its other files."""
    answer = folder.read_context().section(Phase.SYNTHESIZER)
    evidence = folder.find(Evidence)
    metrics = folder.find(Metrics)
    staged = folder.find(StagedMemory)
    image = folder.find(Image)
    noted = (staged and staged.noted) or ()
    phases = encode(metrics.phases) if metrics else []
    writes = [step.data for step in folder.load_steps() if step.kind == "write" and step.status == "success"]
    return {
        "turn": metadata.turn,
        "turn_dir": str(folder.paths.directory),
        "session": metadata.session_id,
        "status": metadata.status,
        "outcome": outcome_of(metadata),
        "answered": metadata.answered,
        "response": folder.read_text(RESPONSE_MD).rstrip("\n") if metadata.status == "approved" else None,
        "closest": encode(list(evidence.closest)) if evidence else [],
        "question": metadata.question,
        "sources": _sources(answer, evidence, is_refused=metadata.status == "failed"),
        "refused": _refused(answer, noted) if metadata.status == "failed" else [],
        "noted": encode(list(noted)),
        "changes": [
            {key: write[key] for key in ("path", "diff", "dry_run")} for write in writes if "diff" in write
        ],
        "image": encode(image),
        "documents": _documents_data(folder),
        "phases": [{"recipe" if key == "recipes" else key: row[key] for key in row} for row in phases],
        "reason": metadata.reason,
        "intervention": metadata.intervention,
    }


def render_closest(closest_passages: Sequence[Mapping[str, Any]]) -> str:
    """Return the closest passages as markdown, the best line of each in bold; "" without any."""
    lines = []
    for passage in closest_passages:
        best = passage["best"]
        texts = [
            f"**{escape_quote(text)}**" if text == best else escape_quote(text)
            for text in passage["text"].split("\n")
        ]
        place = passage["provenance"]
        if passage["line"] is not None:
            place += f":{passage['line']}"
        lines.append(f"- {' · '.join(texts)} ({place})")
    return "\n".join(["Closest:\n", *lines]) if lines else ""


def _documents_data(folder: TurnFolder) -> list[dict[str, Any]]:
    """
    Return the documents of a query as JSON values; `compressed` is None before the turn's context is
    gathered.
    """
    gathered = folder.find(GatheredContext)
    loaded = gathered.documents if gathered and gathered.documents is not UNSET else ()
    cut = {document.node_id: document.cut for document in loaded}
    return [
        {
            "node_id": (node_id := document_node(folder.number, document.name)),
            **{key: getattr(document, key) for key in _OF_DOCUMENT},
            "compressed": cut.get(node_id),
        }
        for document in find_documents(folder.paths)
    ]


def _sources(answer: Section | None, evidence: Evidence | None, *, is_refused: bool) -> list[dict[str, Any]]:
    """
    Return for each item of an answer the nodes that it cites, each with what it quotes of them.

    A quote is what the cited lines say; of a node that is cited as a whole, the line nearest to the item;
    None where that is not known. Words of a model are no quote, but for an approved answer from before
    evidence was recorded, whose items stand in for it.
    """
    if answer is None:
        return []
    meta: Mapping[str, Any] = answer.meta
    places = dict(zip(meta.get("node_ids", ()), meta.get("provenance", ()), strict=True))
    quote = _quotes(evidence)
    sources = []
    for item in answer_items(answer):
        for node_id in item.node_ids:
            text = quote(item, node_id) if evidence or is_refused else item.text
            sources.append({"node_id": node_id, "provenance": places[node_id], "quote": text})
    return sources


def _quotes(evidence: Evidence | None) -> Callable[[GatheredItem, str], str | None]:
    """Return what gives the quote of a node under an item, by the lines that were offered to phase 5."""
    offered = evidence.offered if evidence else ()
    answers = {line.item: line for line in offered}
    lines = {line.id: line for line in offered if Reason.WORDED_BY_MODEL not in line.why}

    def quote(item: GatheredItem, node_id: str) -> str | None:
        line = answers.get(item)
        if line is not None and line.rests_on:
            texts = [
                lines[id_].text for id_ in line.rests_on if id_ in lines and node_id in lines[id_].node_ids
            ]
            return "\n".join(dict.fromkeys(texts)) or None
        if line is not None and Reason.WORDED_BY_MODEL not in line.why:
            return line.text
        of_node = [line.text for line in lines.values() if node_id in line.node_ids]
        nearest = max(of_node, key=lambda text: share_of_words(item.text, text), default=None)
        return nearest if nearest is not None and share_of_words(item.text, nearest) > 0 else None

    return quote


def _refused(answer: Section | None, noted: Sequence[Noted]) -> list[str]:
    """Return the texts of a refused answer, without what it repeats of what the user told."""
    noted_texts = {note.text for note in noted}
    return [item.text for item in answer_items(answer) if item.text not in noted_texts]


@dataclass(frozen=True)
class Look:
    """What came of phase 2."""

    plan: dict[str, Any] | None  # the retrieval plan; None if the turn ended before
    gathered: dict[str, Any] | None  # gathered_context.json, on disk or as drafted; None with a plan alone
    section: str | None  # §2 as it stands in context.md or would; None with a plan alone


def check_gatherable(app: App, number: int) -> None:
    """Raises UsageError unless phase 2 of a turn is still to come."""
    folder = app.store.open(number)
    metadata = folder.read_metadata()
    if metadata.next is None or metadata.next.phase > Phase.CONTEXT_GATHERER:
        is_committed = Phase.CONTEXT_GATHERER in metadata.route
        raise UsageError(
            f"§2 of turn {number} is committed" if is_committed else f"turn {number} has ended",
            where=str(folder.paths.directory),
            fix=f"`panda show {number} --section 2` shows it; to gather anew, give the query with --query",
        )


def gather_turn(app: App, turn: Turn, until: Until) -> TurnResult:
    """A turn taken as far as its context, each phase told, with what was gathered as plain JSON values."""
    started = time.monotonic()
    look, error = _watched(turn, lambda: gather(app, turn, until))
    seconds = round(time.monotonic() - started, 3)
    metadata = turn.metadata
    gathered = (look.gathered if look else None) or {}
    verdict = gathered.get("verdict") or {}
    data = {
        "turn": turn.turn,
        "turn_dir": str(turn.folder.paths.directory),
        "session": turn.session_id,
        "status": metadata.status,
        "plan": look.plan if look else None,
        "documents": gathered.get("documents"),
        "section": look.section if look else None,
        "sections": gathered.get("sections"),
        "verdict": verdict.get("status"),
        "issues": verdict.get("issues", []),
        "gaps": gathered.get("gaps"),
        "stale": gathered.get("stale"),
        "metrics": gathered.get("metrics"),
        "question": metadata.question,
        "warnings": turn.warnings,
        "intervention": metadata.intervention,
        "seconds": seconds,
    }
    return TurnResult(data, error)


def gather(app: App, turn: Turn, until: Until) -> Look:
    """
    Take a turn through phase 2, or up to it for a look. commit writes §2 and leaves the turn with status
    gathered; plan and draft leave it before phase 2, interrupted, with its retrieval plan written. One that
    ends on the way is saved.
    """
    app.pipeline.run(turn, before=Phase.CONTEXT_GATHERER if until != "commit" else Phase.PLANNER)
    if turn.metadata.next is None:
        app.index.record(app.settings.user, [turn.turn])
        return _on_disk(turn)
    if until == "commit":
        mark_turn(turn, "gathered")
        return _on_disk(turn)
    with app.pipeline.guard(turn, Phase.CONTEXT_GATHERER):
        if until == "plan":
            look = Look(app.gatherer.plan(turn).to_json(), None, None)
        else:
            gathered = app.gatherer.gather(turn)
            look = Look(gathered.plan.to_json(), gathered.values.to_json(), render_section(gathered.section))
    mark_turn(turn, "interrupted")
    return look


def _on_disk(turn: Turn) -> Look:
    plan = turn.folder.find(RetrievalPlan)
    gathered = turn.folder.find(GatheredContext)
    section = turn.folder.read_context().section(Phase.CONTEXT_GATHERER)
    text = render_section(section) if section else None
    return Look(plan.to_json() if plan else None, gathered.to_json() if gathered else None, text)


_FILES: Mapping[str, tuple[str, ...]] = {
    "phase0_describe_image": ("images/", IMAGE_JSON),
    "phase0_query_analyzer": (f"{CONTEXT_MD} §0", QUERY_ANALYSIS_JSON),
    "phase1_reflection": (f"{CONTEXT_MD} §1", REFLECTION_JSON),
    "phase2_1_retrieval": (RETRIEVAL_PLAN_JSON,),
    "phase2_5_context_validator": (f"{CONTEXT_MD} §2", GATHERED_CONTEXT_JSON),
    "phase3_planner": (f"{CONTEXT_MD} §3", PLAN_JSON),
    "phase4_coordinator": (f"{CONTEXT_MD} §4", "steps/", TOOLRESULTS_MD, STAGED_MEMORY_JSON),
    "phase5_synthesizer": (f"{CONTEXT_MD} §5", RESPONSE_MD),
    "phase6_validator": (f"{CONTEXT_MD} §6",),
    "phase7_summarizer": (INDEX_SUMMARY_JSON, SUMMARY_JSON, f"sessions/…/{SESSION_JSON}", METRICS_JSON),
}


def plan_turn(app: App, query: str, mode: str, *, with_image: bool = False) -> list[dict[str, object]]:
    """
    The calls of a turn in order, as far as they are known before it runs; nothing is claimed, written or
    loaded but tokenizers. For each: budget tokens of what never changes (static) against its budget, the
    ceilings of input and output, their sum, the window of the model in model tokens, the files that the phase
    writes.
    """
    check_query(query)
    plan = []
    for entry in app.book.registry():
        if STEPS[entry.step].tool is not None or (STEPS[entry.step].of_image and not with_image):
            continue  # asked only while a tool runs, or of an image
        recipe = app.book.recipe_for(entry.step, mode)
        is_offline = app.layers.is_offline(recipe.model_layer)
        model = None if is_offline else app.layers.model(recipe.model_layer).info
        plan.append(_call(app, entry.step, recipe, model=model, query=query, mode=mode))
    return plan


def _call(
    app: App, step: str, recipe: Recipe, *, model: ModelInfo | None, query: str, mode: str
) -> dict[str, object]:
    """Return one call of `plan_turn`; *model* None where the layer is offline."""
    encoder = app.executor.encoder
    asked = model or (encoder.info if encoder else None)
    step_variables = dict.fromkeys(STEPS[step].variables, "") | {
        "tools": describe_tools(recipe.tools_available)
    }
    variables = {"mode": mode, "session_id": app.settings.session or "", **step_variables}
    contract = app.book.contract_of(recipe.key)
    prompt = with_every_part(app.book.prompt_of(recipe))
    messages = build_messages(recipe, contract, prompt, Request(query, variables=variables), [])
    static = count_tokens(messages[0].content)
    budget = recipe.token_budget
    return {
        "phase": int(step[len("phase")]),
        "recipe": recipe.key,
        "layer": recipe.model_layer,
        "model": asked.name if asked else None,
        "reads": [*(f"§{number}" for number in recipe.input_sections), *recipe.input_docs],
        "static": static,
        "static_budget": budget.prompt,
        "input": budget.input,
        "output": budget.output,
        "total": static + budget.input + budget.output + budget.response_reserve,
        "total_budget": budget.total,
        "window": model.n_ctx if model else None,
        "files": list(_FILES.get(step, ())),
    }
