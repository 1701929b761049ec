"""Phase 1: is the query clear enough to go on (S1 §3.2), and which of the session's entities count."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from msgspec.structs import replace

from panda.documents.context import Meta, Phase, Section, Text
from panda.language.wording import content_stems
from panda.memory.reader import NodeReader, find_node
from panda.phases.contract import Advance, PhaseOutcome, Stop
from panda.phases.evidence import ClosestLines, as_options, score_of
from panda.phases.from_session import recalled_turns, session_answer
from panda.phases.kept import forget_question
from panda.phases.request import ask, question_of, quote, subjects
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.candidates import Retriever
from panda.session.registry import curation_of_reading, with_written
from panda.steps.all_steps import REFLECTION
from panda.steps.inputs import ReflectionInputs
from panda.steps.options import Option
from panda.store.carry import Curation
from panda.store.records import Line
from panda.store.records import Reflection as Decided

_RECENT, _OFFERED = 3, 24
_LOOKED_AT, _TOLD = 8, 3
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
        Decide PROCEED or CLARIFY. What a reply decides is not overruled, but nothing is asked twice, and a
        CLARIFY below the recipe's threshold proceeds and says so, unless with `below_threshold: clarify`.
        """
        if turn.reading.is_about_memory:
            return self._of_forgetting(turn)
        summaries = "\n".join(f"Turn {number}: {said}" for number, said in turn.recent(_RECENT))
        reply = ask(
            self.executor,
            REFLECTION,
            turn,
            variables={"quoted": quote(turn.query), "mode": turn.mode},
            options={"entities": _entities(turn)},
            extra={"turn_summaries": summaries, "found": partial(self._found, turn)},
            inputs=ReflectionInputs(
                quoted=quote(turn.query),
                history=subjects(summaries),
                find_reason=partial(self._find_antecedent, turn),
            ),
        )
        decided = "CLARIFY" if reply.asks_back else reply.content.decision
        unsure = decided == "CLARIFY" and reply.below_threshold and not reply.asks_back
        clear = _answers(turn) or (_REASONS["unsure"] if unsure else None)
        decision: Literal["PROCEED", "CLARIFY"] = "PROCEED" if clear else decided
        question = question_of(reply.content.question, turn) if decision == "CLARIFY" else None
        said = None if reply.asks_back else reply.content.reasoning
        reasoning = said or clear or _REASONS[decision]
        shown = {"decision": decision, "confidence": reply.confidence}
        record = Decided(decision, reply.confidence, reasoning, question)
        curation, entities = Curation(), turn.carry.registry.records
        if entities:  # the reading first, then what a model adds
            written = reply.content.curation
            curation = with_written(curation_of_reading(turn.reading), written, turn.carry, turn.query)
        if curation != Curation():
            record = replace(record, entity_curation=replace(curation, turn=turn.turn))
        asked = f"\n\n**Question:** {question}" if question else ""
        body = f"**Decision:** {decision}\n\n{reasoning}{asked}"
        section = Section(Phase.REFLECTION, (Meta({**shown, "provenance": ["§0.raw_query"]}), Text(body)))
        if decision == "CLARIFY":
            return Stop("clarify", section, (record,), question=question)
        return Advance(section, (record,))

    def _of_forgetting(self, turn: Turn) -> PhaseOutcome:
        question = forget_question(turn, self.reader)
        decision: Literal["PROCEED", "CLARIFY"] = "CLARIFY" if question else "PROCEED"
        reasoning = "It is about what memory keeps."
        record = Decided(decision, None, reasoning, question)
        meta = {"decision": decision, "confidence": None, "provenance": ["§0.raw_query"]}
        section = Section(Phase.REFLECTION, (Meta(meta), Text(f"**Decision:** {decision}\n\n{reasoning}")))
        if question:
            return Stop("clarify", section, (record,), question=question)
        return Advance(section, (record,), to=Phase.SYNTHESIZER)

    def _found(self, turn: Turn) -> str:
        lines = [line.near for line in as_options(self._look(turn)[:_TOLD])]
        return "\n".join(lines) or "Nothing was found."

    def _find_antecedent(self, turn: Turn) -> str | None:
        """Return why nothing has to be asked back; None where a reference has none and nothing is near."""
        if turn.documents:
            return "Something to work on was handed over with the query."
        analysis, words = turn.analysis, content_stems(turn.query)
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
        looked_at = [*turn.document_nodes, *(one.node_id for one in ranked)]
        nodes = [node for node_id in looked_at if (node := find_node(self.reader, node_id))]
        return self.closest.best_lines(turn.meant, nodes)


def _entities(turn: Turn) -> list[Option]:
    records = sorted(turn.carry.registry.records, key=lambda one: one.turns[-1:], reverse=True)
    return [Option(one.ref, f"{one.label} ({one.state})") for one in records[:_OFFERED]]


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
