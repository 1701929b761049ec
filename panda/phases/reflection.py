"""Phase 1: is the query clear enough to go on (S1 §3.2)."""

from panda.documents.context import Meta, Section, Text
from panda.phases.asking import ask, quote
from panda.phases.contract import Advance, Outcome, Stop
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.recent import recent_turns
from panda.storage.layout import QUERY_ANALYSIS_JSON, REFLECTION_JSON
from panda.tools.statements import statement_values

_RECENT = 3


class Reflection:
    """
    Writes §1 and reflection.json; CLARIFY ends the turn with a question.

    Args:
        executor: Asks the recipe.
    """

    number = 1
    name = "reflection"
    layer = "REFLEX"

    def __init__(self, executor: RecipeExecutor) -> None:
        self._executor = executor

    def run(self, turn: Turn) -> Outcome:
        """Decide PROCEED or CLARIFY; a CLARIFY below the recipe's threshold proceeds and says so."""
        recent = recent_turns(turn.layout, turn.user_id, turn.session_id, turn.turn, limit=_RECENT)
        reply = ask(
            self._executor,
            "phase1_reflection",
            turn,
            variables={"quoted": quote(turn.query)},
            extra={"turn_summaries": "\n".join(f"Turn {number}: {said}" for number, said in recent)},
        )
        unsure = reply.values["decision"] == "CLARIFY" and reply.below_threshold
        resolved = turn.read(QUERY_ANALYSIS_JSON)["reference_resolution"]["status"] == "resolved"
        stated = bool(statement_values(turn.query))  # there is something to remember
        decision = "PROCEED" if unsure or resolved or stated else reply.values["decision"]
        question = reply.values["question"] if decision == "CLARIFY" else None
        reasoning = reply.values.get("reasoning") or _reason(decision, unsure, resolved)
        values = {
            "decision": decision,
            "confidence": reply.confidence,
            "reasoning": reasoning,
            "question": question,
        }
        body = f"**Decision:** {decision}\n\n{reasoning}" + (
            f"\n\n**Question:** {question}" if question else ""
        )
        meta = {"decision": decision, "confidence": reply.confidence, "provenance": ["§0.raw_query"]}
        section = Section(1, (Meta(meta), Text(body)))
        if decision == "CLARIFY":
            return Stop("clarify", section, {REFLECTION_JSON: values}, question=question)
        return Advance(section, {REFLECTION_JSON: values})


def _reason(decision: str, unsure: bool, resolved: bool) -> str:
    if decision == "CLARIFY":
        return "The query does not say what it is about."
    if resolved:
        return "What the query refers to is known from the session."
    if unsure:
        return "The query may be unclear, but not surely enough to ask back; it is taken as it stands."
    return "The query is clear enough to go on."
