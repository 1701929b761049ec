"""Phase 1: is the query clear enough to go on (S1 §3.2), and which of the session's entities count."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from msgspec import structs

from panda.documents.context import Meta, Phase, Section, Text
from panda.memory.reader import NodeReader, find_node
from panda.messages.wording import content_stems
from panda.phases.from_session import recalled_turns, session_answer
from panda.phases.kept import forget_question
from panda.phases.phase_contract import PhaseOutcome, PhaseResult, Stop
from panda.phases.recipe_request import ask, describe_turns, question_of, quote, subjects
from panda.phases.running_turn import Turn
from panda.phases.turn_evidence import ClosestLines, as_options, score_of
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.candidates import Retriever
from panda.session.registry import CurationChange, curation_of_reading, with_written
from panda.steps.all_steps import REFLECTION
from panda.steps.inputs import ReflectionInputs
from panda.steps.options import Option
from panda.store import records
from panda.store.carry import Curation
from panda.store.records import Line

_RECENT = 3
_OFFERED = 24
_LOOKED_AT = 8
_TOLD = 3
"""So many sources are looked at before a question is asked back; so many of their lines a writer is told."""
_NEAR = 0.4
"""Closeness of a line that may answer: of questions that notes answer four in five have one."""


_NOT_FAR = 0.2
"""Closeness of a line that is enough for a query without a reference that was not found."""


@dataclass(frozen=True)
class Reflection:
    """Writes §1 and reflection.json; CLARIFY ends the turn with a question."""

    number = Phase.REFLECTION
    layer = "REFLEX"

    executor: RecipeExecutor  # asks the recipes
    reader: NodeReader  # loads nodes, and the lists that the session has shown
    retriever: Retriever  # ranks candidates
    closest: ClosestLines  # orders lines by how close they are to the query

    def run(self, turn: Turn) -> PhaseOutcome:
        """
        Decide PROCEED or CLARIFY. Nothing is asked twice, and nobody is asked where the query refers to
        nothing unknown and something is near. A CLARIFY below the recipe's threshold proceeds and says so,
        unless with `below_threshold: clarify`.
        """
        if turn.reading.is_about_memory:
            return self._of_forgetting(turn)
        reason = _answers(turn) or self._find_antecedent(turn)
        if reason is not None:
            return _proceed(turn, reason, None)
        summaries = "\n".join(f"Turn {number}: {summary}" for number, summary in turn.recent(_RECENT))
        recipe = self.executor.book.recipe_for(REFLECTION.name, turn.mode, turn.intent)
        reply = ask(
            self.executor,
            REFLECTION,
            turn,
            variables={"quoted": quote(turn.query), "mode": turn.mode},
            options={"entities": _entities(turn)},
            extra={
                "turn_summaries": describe_turns(turn, recipe, _RECENT),
                "found": partial(self._found, turn),
            },
            inputs=ReflectionInputs(quoted=quote(turn.query), history=subjects(summaries)),
        )
        content = reply.content
        is_unsure = content.decision == "CLARIFY" and reply.below_threshold
        if reply.asks_back or (content.decision == "CLARIFY" and not is_unsure):
            question = question_of(content.question, turn)
            reasoning = (None if reply.asks_back else content.reasoning) or _REASONS["CLARIFY"]
            return _clarify(turn, question, reasoning, reply.confidence, content.curation)
        reasoning = content.reasoning or _REASONS["unsure" if is_unsure else "PROCEED"]
        return _proceed(turn, reasoning, reply.confidence, content.curation)

    def _of_forgetting(self, turn: Turn) -> PhaseOutcome:
        question = forget_question(turn, self.reader)
        reasoning = "It is about what memory keeps."
        if question:
            return _clarify(turn, question, reasoning, None)
        return replace(_proceed(turn, reasoning, None), to=Phase.SYNTHESIZER)

    def _found(self, turn: Turn) -> str:
        lines = [line.near for line in as_options(self._look(turn)[:_TOLD])]
        return "\n".join(lines) or "Nothing was found."

    def _find_antecedent(self, turn: Turn) -> str | None:
        """Return why nothing has to be asked back; None where a reference has none and nothing is near."""
        if turn.documents:
            return "Something to work on was handed over with the query."
        analysis = turn.analysis
        words = content_stems(turn.query)
        if analysis.reference_resolution.status == "resolved":
            return "What the query refers to is known from the session."
        if turn.reading.turns:
            return "The query names a turn."
        if turn.reading.mood == "tells" or analysis.intent == "greeting":
            return "Nothing is asked for."
        if turn.mode == "code" and turn.reading.mood == "orders" and words:
            return "The order names what it is about."
        if recalled_turns(turn) or session_answer(turn, self.reader):
            return "The session is what it is about."
        names_it = analysis.reference_resolution.status == "not_needed"
        least = _NOT_FAR if names_it else _NEAR
        if words and any(score_of(line) >= least for line in self._look(turn)[:1]):
            return "The store holds something close to it."
        return None

    def _look(self, turn: Turn) -> Sequence[Line]:
        ranked = self.retriever.find(turn.meant, limit=_LOOKED_AT, before_turn=turn.turn, fill_up=True)
        looked_at = [*turn.document_nodes, *(candidate.node_id for candidate in ranked)]
        nodes = [node for node_id in looked_at if (node := find_node(self.reader, node_id))]
        return self.closest.best_lines(turn.meant, nodes)


def _proceed(
    turn: Turn, reasoning: str, confidence: float | None, changes: Sequence[CurationChange] = ()
) -> PhaseResult:
    record = records.ReflectionRecord("PROCEED", confidence, reasoning, None)
    return PhaseResult(_section(record), (_curated(turn, record, changes),))


def _clarify(
    turn: Turn,
    question: str,
    reasoning: str,
    confidence: float | None,
    changes: Sequence[CurationChange] = (),
) -> Stop:
    record = records.ReflectionRecord("CLARIFY", confidence, reasoning, question)
    return Stop("clarify", _section(record), (_curated(turn, record, changes),), question=question)


def _section(record: records.ReflectionRecord) -> Section:
    meta = {"decision": record.decision, "confidence": record.confidence, "provenance": ["§0.raw_query"]}
    parts = [f"**Decision:** {record.decision}", record.reasoning or ""]
    if record.question:
        parts.append(f"**Question:** {record.question}")
    return Section(Phase.REFLECTION, (Meta(meta), Text("\n\n".join(parts))))


def _curated(
    turn: Turn, record: records.ReflectionRecord, changes: Sequence[CurationChange]
) -> records.ReflectionRecord:
    """Return the record with what the reading decides on the session's entities, and what a model adds."""
    if not turn.carry.registry.records or turn.reading.is_about_memory:
        return record
    curation = with_written(curation_of_reading(turn.reading), changes, turn.carry, turn.query)
    if curation == Curation():
        return record
    return structs.replace(record, entity_curation=structs.replace(curation, turn=turn.turn))


def _entities(turn: Turn) -> list[Option]:
    records = sorted(turn.carry.registry.records, key=lambda entity: entity.turns[-1:], reverse=True)
    return [Option(entity.ref, f"{entity.label} ({entity.state})") for entity in records[:_OFFERED]]


def _answers(turn: Turn) -> str | None:
    """Why nothing is asked back whatever the query looks like: a question was asked already."""
    pending = turn.carry.pending_clarification
    if (answer := turn.analysis.pending) and answer.status == "answered" and pending:
        return f"The query answers the question of turn {pending.asked_turn}."
    if pending and pending.status == "open" and pending.asked_by == 1 and pending.other_turns == 0:
        return f"Turn {pending.asked_turn} asked back already; the query is taken as it stands."
    return None


_REASONS = {
    "unsure": "The query may be unclear, but not surely enough to ask back; it is taken as it stands.",
    "CLARIFY": "The query does not say what it is about.",
    "PROCEED": "The query is clear enough to go on.",
}
