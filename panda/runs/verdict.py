"""
Saved turns judged again without a model: files, hashes, gates, budgets and evidence.

What a check needs is taken from the turn itself (its calls, its sections, its steps) and from the store as it
was then, so that a memory that has changed since finds nothing wrong with an old turn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from panda.documents.context import SECTIONS, ContextDocument, render_section
from panda.documents.times import render_time
from panda.errors import MemoryNodeError, Problem, Verdict
from panda.memory.gathered import answer_items
from panda.memory.node import Line, Node
from panda.memory.past import Bound
from panda.memory.reader import PastReader
from panda.models.cl100k import count_tokens
from panda.phases.tool_outcome import attachments, kept_again, render_response
from panda.phases.turn import MOST_EXECUTIONS, Turn
from panda.phases.validator import check_items
from panda.recipes.calls import text_digest
from panda.recipes.reply import find_fault, parse_object
from panda.runs.select import TurnPlace
from panda.session.file import rebuild_session
from panda.store.layout import (
    CALLS_JSONL,
    CONTEXT_MD,
    PLAN_JSON,
    REFLECTION_JSON,
    RESPONSE_MD,
)
from panda.store.records import (
    ChoiceCall,
    GatheredContext,
    GeneratedCall,
    Metadata,
    ModelCall,
    Plan,
    QueryAnalysis,
    Reflection,
    Session,
)
from panda.store.turns import TurnFolder
from panda.store.validate import check_turn

_WITHOUT_TOOLS = "synthesis"


def verify_turn(place: TurnPlace) -> list[Problem]:
    """
    Everything that is wrong with a saved turn, judged from its own files, and from its sources as they were.

    What rests on a source that has changed or gone, and does not stand in the turn's own files, is not
    judged.
    """
    folder = place.folder()
    problems = list(check_turn(folder.paths.directory))
    if problems:
        return problems  # what does not read cannot be judged further
    try:
        metadata, calls = folder.read_metadata(), folder.load_calls()
        if metadata.forgotten_at is not None:
            part = "" if metadata.status == "forgotten" else "partly "
            message = (
                f"{part}forgotten at {render_time(metadata.forgotten_at)}: what is left is as it was sealed"
            )
            return [Problem(message, str(folder.paths.directory), verdict=Verdict.NOT_JUDGED)]
        document = folder.read_context()
        path = str(folder.paths / CALLS_JSONL)
        problems += _check_hashes(path, calls)
        problems += _check_replies(path, metadata, calls)
        problems += _check_budgets(folder, document, calls)
        problems += _check_route(folder, metadata)
        problems += _check_answer(place, metadata, document)
    except Problem as exc:
        problems.append(exc)
    return problems


def _check_hashes(path: str, calls: Sequence[ModelCall]) -> Iterator[Problem]:
    """Whether what is written out hashes to its name, each hash is spelt out once, and no line is missing."""
    known = set()
    for line, call in enumerate(calls, 1):
        if call.n != line:
            yield Problem(f"is call {call.n}, not {line}: a line is missing", path, line=line)
        for part in [call.prefix] if isinstance(call, ChoiceCall) else call.messages:
            digest, content = part.sha256, part.content or None
            if digest is None:
                continue
            if content is not None and text_digest(content) != digest:
                yield Problem("a prompt is not the text of its hash", path, line=line, key="sha256")
            if content is None and digest not in known:
                yield Problem(f"no line spells out {digest[:12]}…", path, line=line, key="sha256")
            known.add(digest)


def _check_replies(path: str, metadata: Metadata, calls: Sequence[ModelCall]) -> Iterator[Problem]:
    """Whether the last completion of each execution passed its gates; an earlier one was asked again."""
    for line, call in enumerate(calls, 1):
        options = call.options if isinstance(call, ChoiceCall) else ()
        if any(option.logprob > 0 or option.tokens < 1 for option in options):
            yield Problem("an option has no log-probability", path, line=line, key="options")
    written = [(line, call) for line, call in enumerate(calls, 1) if isinstance(call, GeneratedCall)]
    for _, group in groupby(written, key=lambda one: (one[1].execution, one[1].recipe)):
        line, call = list(group)[-1]
        fault = _fault(call)
        if fault and metadata.status in ("approved", "clarify", "failed"):
            message = f"{call.recipe}: the turn went on with a reply that fails its gate: {fault}"
            yield Problem(message, path, line=line, key="output")


def _fault(call: GeneratedCall) -> str | None:
    if call.finish_reason == "length":
        return "cut off at max_tokens"
    schema = call.parameters.get("schema")
    if not schema:
        return None
    values, error = parse_object(call.output)
    return error or find_fault(values, schema, lenient=call.lenient or ())


def _check_budgets(
    folder: TurnFolder, document: ContextDocument, calls: Sequence[ModelCall]
) -> Iterator[Problem]:
    for section in document.sections:
        most, size = SECTIONS[section.number].budget_tokens, count_tokens(render_section(section))
        if size > most and section.number > 0:  # the query's own section is never cut
            over = f"{size:,} tokens, {size - most:,} more than its budget of {most:,}"
            yield Problem(f"§{section.number} has {over}", str(folder.paths / CONTEXT_MD))
    path = str(folder.paths / CALLS_JSONL)
    for line, call in enumerate(calls, 1):
        parameters = call.parameters if isinstance(call, GeneratedCall) else {}
        output, most_output = call.usage.output, parameters.get("max_tokens")
        if most_output is not None and output is not None and output > most_output:
            message = f"{output} tokens were written, {most_output} were allowed"
            yield Problem(message, path, line=line, key="usage")
    executions = max((call.execution for call in calls), default=0)
    if executions > MOST_EXECUTIONS:
        message = f"{executions} recipe executions, the most is {MOST_EXECUTIONS}"
        yield Problem(message, path, key="execution")


def _check_route(folder: TurnFolder, metadata: Metadata) -> Iterator[Problem]:
    """Whether the turn went where its own decisions send it."""
    wrong: list[tuple[str, str, str]] = []
    if folder.has(REFLECTION_JSON):
        decision = folder.load(Reflection).decision
        if decision == "CLARIFY" and metadata.status == "approved":
            wrong.append((REFLECTION_JSON, "decision", decision))
    if folder.has(PLAN_JSON):
        step = folder.load(Plan).next_step
        last_plan = max((n for n, phase in enumerate(metadata.route) if phase == 3), default=-1)
        if step == _WITHOUT_TOOLS and 4 in metadata.route[last_plan + 1 :]:
            wrong.append((PLAN_JSON, "next_step", step))
    for name, key, value in wrong:
        message = f"{value} does not lead to status {metadata.status} by route {list(metadata.route)}"
        yield Problem(message, str(folder.paths / name), key=key)


def _check_answer(place: TurnPlace, metadata: Metadata, document: ContextDocument) -> Iterator[Problem]:
    """Whether an approved answer is that of §5, and phase 6's own check of its items finds nothing."""
    answer, folder = document.section(5), place.folder()
    if metadata.status != "approved" or answer is None:
        return
    turn = Turn(folder, place.layout.of(place.user), session=_session_before(place, metadata))
    kept, response = kept_again(turn), folder.read_text(RESPONSE_MD).strip()
    shown = render_response(answer.text, [*attachments(turn), *kept]).strip()
    if response != shown:
        key = _kept_key(folder)
        lost = key is not None and not kept and response.startswith(shown)
        message = f"the kept content {key} is gone" if lost else "is not the answer of §5 in context.md"
        verdict = Verdict.NOT_JUDGED if lost else Verdict.UNSOUND
        yield Problem(message, str(folder.paths / RESPONSE_MD), verdict=verdict)
    path = str(folder.paths / CONTEXT_MD)
    judgement = document.section(6)
    if judgement is not None and judgement.meta.get("verdict") not in (None, "APPROVE"):
        message = f"§6 says {judgement.meta['verdict']}, but the turn is approved"
        yield Problem(message, path, key="verdict")
    past = _RecordedNodes(place, metadata)
    for issue, text in zip(*check_items(past, turn, items := answer_items(answer)), strict=True):
        cited = {node_id for item in items if item.text == text for node_id in item.node_ids}
        verdict = Verdict.NOT_JUDGED if cited & past.unsure else Verdict.UNSOUND
        yield Problem(issue, path, key="items", verdict=verdict)


def _session_before(place: TurnPlace, metadata: Metadata) -> Session | None:
    """The session as the turn found it, where its answer shows something of it; else None."""
    folder = place.folder()
    analysis = folder.find(QueryAnalysis)
    if analysis is None or (analysis.kept_content is None and not analysis.reading.recap):
        return None
    return rebuild_session(place.layout.of(place.user), metadata.session_id, before_turn=place.number)


def _kept_key(folder: TurnFolder) -> str | None:
    """Key of the kept content that the query speaks of."""
    analysis = folder.find(QueryAnalysis)
    return analysis.kept_content if analysis else None


class _RecordedNodes:
    """Nodes as they were, and the lines of §2 that the turn itself holds of them."""

    def __init__(self, place: TurnPlace, metadata: Metadata) -> None:
        folder = place.folder()
        at, snapshot = metadata.created_at, folder.snapshot()
        self._past = PastReader(place.layout.of(place.user), Bound(place.number, at, snapshot))
        self._held: dict[str, list[Line]] = {}
        gathered = folder.find(GatheredContext)
        for section in gathered.sections if gathered else ():
            for item in section.items:
                for node_id in item.node_ids:
                    self._held.setdefault(node_id, []).append(Line(item.text, "default", 1.0, None))
        self.unsure: set[str] = set()
        """Nodes that are gone or not as they were, so that a line that they lack may have stood in them."""

    def load(self, node_id: str) -> Node:
        """A node with all lines that are known of it; raises MemoryNodeError if there are none."""
        held = tuple(self._held.get(node_id, ()))
        try:
            node = self._past.load(node_id)
        except Problem as exc:
            if held or not isinstance(exc, MemoryNodeError):
                self.unsure.add(node_id)
            if held:
                return Node(node_id, "fact", title="", provenance="", at=None, items=held)
            raise MemoryNodeError(exc.message, where=exc.where, fix=exc.fix) from exc
        if self._past.has_changed(node):
            self.unsure.add(node_id)
        return replace(node, items=(*node.items, *held))
