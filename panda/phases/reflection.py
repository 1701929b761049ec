"""Phase 1: is the query clear enough to go on (S1 §3.2), and which of the session's entities count."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from panda.choosing.decision import Option
from panda.documents.carry import Curation
from panda.documents.context import Meta, Section, Text
from panda.documents.records import encode
from panda.memory.reader import NodeReader
from panda.phases.contract import Advance, Outcome, Stop
from panda.phases.recall import recalled
from panda.phases.request import ask, question_of, quote
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.recipes.reply import Reply
from panda.retrieval.relevance import find_query_words
from panda.session.registry import curation_of_reading, with_written
from panda.storage.layout import REFLECTION_JSON

_RECENT, _OFFERED = 3, 24


@dataclass(frozen=True)
class Reflection:
    """Writes §1 and reflection.json; CLARIFY ends the turn with a question."""

    number = 1
    name = "reflection"
    layer = "REFLEX"

    executor: RecipeExecutor  # asks the recipes
    reader: NodeReader  # loads the lists that the session has shown

    def run(self, turn: Turn) -> Outcome:
        """
        Decide PROCEED or CLARIFY.

        A CLARIFY below the recipe's threshold proceeds and says so; with `below_threshold: clarify` anything
        below it asks back. What a model that writes decides is not overruled, but nothing is asked twice.
        """
        recent = turn.recent(_RECENT)
        reply = ask(
            self.executor,
            "phase1_reflection",
            turn,
            variables={"quoted": quote(turn.query), "mode": turn.mode},
            options={"entities": _entities(turn)},
            extra={"turn_summaries": "\n".join(f"Turn {number}: {said}" for number, said in recent)},
        )
        decided = "CLARIFY" if reply.asks_back else reply.values["decision"]
        unsure = decided == "CLARIFY" and reply.below_threshold and not reply.asks_back
        analysis = turn.analysis
        resolved = analysis["reference_resolution"]["status"] == "resolved"
        answers = _answers(turn, analysis)
        clear = unsure or bool(answers)
        if not self.executor.writes(reply.recipe.key):
            stated = turn.reading.mood == "tells"  # nothing is asked for
            ordered = turn.mode == "code" and turn.reading.mood == "orders"
            commanded = ordered and len(find_query_words(turn.query)) > 1
            recalls = bool(recalled(turn, self.reader, False))  # the session is what it is about
            clear = clear or resolved or stated or commanded or recalls
        decision = "PROCEED" if clear else decided
        question = question_of(reply, turn) if decision == "CLARIFY" else None
        said = None if reply.asks_back else reply.values.get("reasoning")
        reasoning = said or answers or _reason(decision, unsure, resolved)
        values = {
            "decision": decision,
            "confidence": reply.confidence,
            "reasoning": reasoning,
            "question": question,
        }
        curation = self._curate(turn, reply)
        if curation != Curation():
            values["entity_curation"] = encode(replace(curation, turn=turn.turn))
        body = f"**Decision:** {decision}\n\n{reasoning}" + (
            f"\n\n**Question:** {question}" if question else ""
        )
        meta = {"decision": decision, "confidence": reply.confidence, "provenance": ["§0.raw_query"]}
        section = Section(1, (Meta(meta), Text(body)))
        if decision == "CLARIFY":
            return Stop("clarify", section, {REFLECTION_JSON: values}, question=question)
        return Advance(section, {REFLECTION_JSON: values})

    def _curate(self, turn: Turn, reply: Reply) -> Curation:
        """What the query decides on the session's entities: its reading first, then what a model adds."""
        if not turn.carry.registry.records:
            return Curation()
        return with_written(
            curation_of_reading(turn.reading), reply.values.get("curation") or (), turn.carry, turn.query
        )


def _entities(turn: Turn) -> list[Option]:
    """The entities that a model may decide on: those that were touched last."""
    records = sorted(turn.carry.registry.records, key=lambda one: one.turns[-1:], reverse=True)
    return [Option(one.ref, f"{one.label} ({one.state})") for one in records[:_OFFERED]]


def _answers(turn: Turn, analysis: Mapping[str, Any]) -> str | None:
    """Why nothing is asked back whatever the query looks like: a question was asked already."""
    pending = turn.carry.pending_clarification
    if (analysis.get("pending") or {}).get("status") == "answered" and pending:
        return f"The query answers the question of turn {pending.asked_turn}."
    if pending and pending.status == "open" and pending.asked_by == 1 and pending.other_turns == 0:
        return f"Turn {pending.asked_turn} asked back already; the query is taken as it stands."
    return None


def _reason(decision: str, unsure: bool, resolved: bool) -> str:
    if decision == "CLARIFY":
        return "The query does not say what it is about."
    if resolved:
        return "What the query refers to is known from the session."
    if unsure:
        return "The query may be unclear, but not surely enough to ask back; it is taken as it stands."
    return "The query is clear enough to go on."
