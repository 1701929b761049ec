"""
A saved turn judged again without a model: hashes, gates, budgets, route and evidence.

What a check needs is taken from the turn itself (its calls, its sections, its steps) and from the store as it
was then, so that a memory that has changed since finds nothing wrong with an old turn.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from panda.documents import json_schema
from panda.documents.context import SECTIONS, ContextDocument, Phase, render_section
from panda.errors import MemoryNodeError, Problem, SchemaError, Verdict
from panda.memory.gathered import answer_items
from panda.memory.markdown_files import Bound
from panda.memory.node import Node
from panda.memory.reader import PastReader
from panda.models.cl100k import count_tokens
from panda.phases.cited import Cited
from panda.phases.running_turn import MOST_EXECUTIONS, Turn
from panda.phases.tool_outcome import attachments, kept_again, render_response
from panda.phases.validator import check_items
from panda.recipes.calls import text_digest
from panda.recipes.reply import find_fault, parse_object
from panda.session.file import rebuild_session
from panda.store.layout import (
    CALLS_JSONL,
    CONTEXT_MD,
    PLAN_JSON,
    REFLECTION_JSON,
    RESPONSE_MD,
    Layout,
    UserStore,
    turn_number,
)
from panda.store.records import (
    ChoiceCall,
    GatheredContext,
    GeneratedCall,
    Line,
    MessageRecord,
    Metadata,
    ModelCall,
    Plan,
    Prefix,
    QueryAnalysis,
    ReflectionRecord,
)
from panda.store.turns import TurnFolder

_JUDGE = "phase2_5_context_validator"


def judge_turn(directory: Path) -> list[Problem]:
    """
    All that is wrong with a saved turn whose files read. What rests on a source that has changed or gone, and
    does not stand in the turn's own files, is not judged; nothing is said of a turn that lies in no store or
    has lost something to `panda forget`.
    """
    number = turn_number(directory.name)
    users = directory.parent.parent.parent
    if number is None or directory.parent.name != "turns" or users.name != "users":
        return []
    store = Layout(users.parent).of(directory.parent.parent.name)
    try:
        folder = store.open(number)
        metadata = folder.read_metadata()
        if metadata.forgotten_at is not None:
            return []
        calls = folder.load_calls()
        document = folder.read_context()
        return [
            *_check_calls(str(folder.paths / CALLS_JSONL), metadata, calls),
            *_check_judgement(folder, calls),
            *_check_sections(folder, document),
            *_check_route(folder, metadata),
            *_check_answer(store, folder, metadata, document),
        ]
    except Problem as exc:
        return [exc]


def _check_calls(path: str, metadata: Metadata, calls: Sequence[ModelCall]) -> Iterator[Problem]:
    """
    Yield a problem where a text does not hash to its name, a hash is not spelt out once, a line is missing,
    or a reply that a turn went on with was not allowed.
    """
    spelt_out = set()
    last = {}
    for line, call in enumerate(calls, 1):
        if call.n != line:
            yield Problem(f"is call {call.n}, not {line}: a line is missing", path, line=line)
        parts: Sequence[Prefix | MessageRecord] = ()
        if isinstance(call, ChoiceCall):
            parts = [call.prefix]
        elif isinstance(call, GeneratedCall):
            parts = call.messages
        for part in parts:
            if part.sha256 is None:
                continue
            if part.content and text_digest(part.content) != part.sha256:
                yield Problem("a prompt is not the text of its hash", path, line=line, key="sha256")
            if not part.content and part.sha256 not in spelt_out:
                yield Problem(f"no line spells out {part.sha256[:12]}…", path, line=line, key="sha256")
            spelt_out.add(part.sha256)
        if isinstance(call, ChoiceCall):
            if any(option.logprob > 0 or option.tokens < 1 for option in call.options):
                yield Problem("an option has no log-probability", path, line=line, key="options")
        elif isinstance(call, GeneratedCall):
            last[call.execution, call.recipe] = line, call  # an earlier one was asked again
            written = call.usage.output
            most = call.parameters.get("max_tokens")
            if written is not None and most is not None and written > most:
                message = f"{written} tokens were written, {most} were allowed"
                yield Problem(message, path, line=line, key="usage")
    steps = json_schema.Steps()
    for line, call in last.values():
        try:
            fault = _fault(call, steps)
        except SchemaError as exc:
            key = f"parameters.schema{exc.key or ''}"
            message = f"the reply cannot be judged by its schema: {exc.message}"
            yield Problem(message, path, line=line, key=key, fix=exc.fix)
            if steps.are_used_up:
                break
            continue
        if fault and metadata.status in ("approved", "clarify", "failed"):
            message = f"{call.recipe}: the turn went on with a reply that fails its gate: {fault}"
            yield Problem(message, path, line=line, key="output")
    executions = max((call.execution for call in calls), default=0)
    if executions > MOST_EXECUTIONS:
        message = f"{executions} recipe executions, the most is {MOST_EXECUTIONS}"
        yield Problem(message, path, key="execution")


def _check_judgement(folder: TurnFolder, calls: Sequence[ModelCall]) -> Iterator[Problem]:
    """
    Yield a problem if gathered_context.json says pass where the model that judged §2 last said something
    else.
    """
    gathered = folder.find(GatheredContext)
    judged = [call for call in calls if isinstance(call, GeneratedCall) and _JUDGE in call.recipe]
    if gathered is None or gathered.verdict.status != "pass" or not judged:
        return
    values, _ = parse_object(judged[-1].output)
    status = values.get("verdict", "pass")
    if status != "pass":
        path = str(folder.paths / GatheredContext.FILE)
        yield Problem(f"says pass, but phase 2.5 said {status}", path, key="verdict.status")


def _fault(call: GeneratedCall, steps: json_schema.Steps) -> str | None:
    """
    Return what is wrong with a reply, None if nothing is. Raises SchemaError: it cannot be judged by its
    schema.
    """
    if call.finish_reason == "length":
        return "cut off at max_tokens"
    if (schema := call.parameters.get("schema")) is None:
        return None
    json_schema.check_schema(schema)
    values, error = parse_object(call.output)
    if error or not isinstance(schema, Mapping):
        return error
    return find_fault(values, schema, lenient=call.lenient or (), steps=steps)


def _check_sections(folder: TurnFolder, document: ContextDocument) -> Iterator[Problem]:
    for section in document.sections:
        most = SECTIONS[section.number].budget_tokens
        size = count_tokens(render_section(section))
        if size > most and section.number > Phase.QUERY_ANALYZER:  # the query's own section is never cut
            over = f"{size:,} tokens, {size - most:,} more than its budget of {most:,}"
            yield Problem(f"§{section.number} has {over}", str(folder.paths / CONTEXT_MD))


def _check_route(folder: TurnFolder, metadata: Metadata) -> Iterator[Problem]:
    """Yield a problem where the turn did not go where its own decisions send it."""
    wrong: list[tuple[str, str, str]] = []
    reflection = folder.find(ReflectionRecord)
    plan = folder.find(Plan)
    if reflection is not None and reflection.decision == "CLARIFY" and metadata.status == "approved":
        wrong.append((REFLECTION_JSON, "decision", reflection.decision))
    last_plan = max((n for n, phase in enumerate(metadata.route) if phase == Phase.PLANNER), default=-1)
    if (
        plan is not None
        and plan.next_step == "synthesis"
        and Phase.COORDINATOR in metadata.route[last_plan + 1 :]
    ):
        wrong.append((PLAN_JSON, "next_step", plan.next_step))
    for name, key, value in wrong:
        message = f"{value} does not lead to status {metadata.status} by route {list(metadata.route)}"
        yield Problem(message, str(folder.paths / name), key=key)


def _check_answer(
    store: UserStore, folder: TurnFolder, metadata: Metadata, document: ContextDocument
) -> Iterator[Problem]:
    """
    Yield a problem if an approved answer is not that of §5, or phase 6's own check of its items finds one.
    """
    answer = document.section(Phase.SYNTHESIZER)
    if metadata.status != "approved" or answer is None:
        return
    analysis = folder.find(QueryAnalysis)
    session = None
    kept_key = analysis.kept_content if analysis else None
    if analysis is not None and (kept_key is not None or analysis.reading.recap):  # it shows something of it
        session = rebuild_session(store, metadata.session_id, before_turn=folder.number)
    turn = Turn(folder, store, session=session)
    kept_items = kept_again(turn)
    response = folder.read_text(RESPONSE_MD).strip()
    expected = render_response(answer.text, [*attachments(turn), *kept_items]).strip()
    if response != expected:
        lost = kept_key is not None and not kept_items and response.startswith(expected)
        message = f"the kept content {kept_key} is gone" if lost else "is not the answer of §5 in context.md"
        verdict = Verdict.NOT_JUDGED if lost else Verdict.UNSOUND
        yield Problem(message, str(folder.paths / RESPONSE_MD), verdict=verdict)
    path = str(folder.paths / CONTEXT_MD)
    judgement = document.section(Phase.VALIDATOR)
    if judgement is not None and judgement.meta.get("verdict") not in (None, "APPROVE"):
        message = f"§6 says {judgement.meta['verdict']}, but the turn is approved"
        yield Problem(message, path, key="verdict")
    past = _RecordedNodes(store, folder, metadata)
    for issue, text in zip(*check_items(Cited(past, turn), turn, items := answer_items(answer)), strict=True):
        cited = {node_id for item in items if item.text == text for node_id in item.node_ids}
        verdict = Verdict.NOT_JUDGED if cited & past.unsure else Verdict.UNSOUND
        yield Problem(issue, path, key="items", verdict=verdict)


class _RecordedNodes:
    """Nodes as they were, and the lines of §2 that the turn itself holds of them."""

    def __init__(self, store: UserStore, folder: TurnFolder, metadata: Metadata) -> None:
        self._past = PastReader(store, Bound(folder.number, metadata.created_at, folder.snapshot()))
        self._held: dict[str, list[Line]] = {}
        gathered = folder.find(GatheredContext)
        sections = gathered.sections if gathered else ()
        for section in sections:
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
