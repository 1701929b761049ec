"""Phase 3: answer from what is gathered, or use tools first (S3 §16.2)."""

import json

from panda.documents.context import Meta, Section, Text
from panda.phases.asking import ask, quote
from panda.phases.contract import Advance, Outcome, Stop
from panda.phases.evidence_spans import gathered_spans
from panda.phases.turn import Turn
from panda.recipes.choices import Option
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.recent import recent_turns
from panda.storage.layout import PLAN_JSON, QUERY_ANALYSIS_JSON
from panda.tools.table import TOOLS

_AFTER_TOOLS = 5
_RECENT = 3


class Planner:
    """
    Writes §3 and plan.json.

    Args:
        executor: Asks the recipe.
    """

    number = 3
    name = "planner"
    layer = "MIND"

    def __init__(self, executor: RecipeExecutor) -> None:
        self._executor = executor

    def run(self, turn: Turn) -> Outcome:
        """Choose the next step; `synthesis` skips phase 4, `clarify` ends the turn."""
        recipe = self._executor.book.recipe_for("phase3_planner", turn.mode)
        tools = [Option(name, name) for name in recipe.tools_available if name in TOOLS]
        reply = ask(
            self._executor,
            "phase3_planner",
            turn,
            options={"tools": tools, "evidence": gathered_spans(turn)},
            variables={
                "tools": "\n".join(f"- {o.id}: {TOOLS[o.id].description}" for o in tools),
                "quoted": quote(turn.query),
            },
            extra={"turn_summaries": _known(turn)},
            guidance=turn.reason,
        )
        values = reply.values
        plan = {
            "next_step": values["next_step"],
            "goal": values.get("goal"),
            "tasks": list(values.get("tasks") or []),
            "tools": list(values["tools"]) if values["next_step"] == "coordinator" else [],
            "question": values.get("question") if values["next_step"] == "clarify" else None,
            "confidence": reply.confidence,
            "reason": turn.reason,
            "round": turn.round,
        }
        lines = [f"**Next step:** {plan['next_step']}"]
        lines += [f"**Goal:** {plan['goal']}"] if plan["goal"] else []
        lines += [f"- {task}" for task in plan["tasks"]]
        lines += [f"**Tools:** {', '.join(plan['tools'])}"] if plan["tools"] else []
        lines += [f"**Question:** {plan['question']}"] if plan["question"] else []
        meta = {key: plan[key] for key in ("next_step", "confidence", "round")}
        section = Section(3, (Meta(meta), Text("\n\n".join(lines))))
        files = {PLAN_JSON: json.loads(json.dumps(plan))}
        if plan["next_step"] == "clarify":
            return Stop("clarify", section, files, question=str(plan["question"]))
        return Advance(section, files, to=_AFTER_TOOLS if plan["next_step"] == "synthesis" else None)


def _known(turn: Turn) -> str:
    """What the session is about: its latest turns, and what the query refers to."""
    recent = recent_turns(turn.layout, turn.user_id, turn.session_id, turn.turn, limit=_RECENT)
    lines = [f"Turn {number}: {said}" for number, said in recent]
    reference = turn.read(QUERY_ANALYSIS_JSON)["content_reference"]
    return "\n".join([*lines, reference["title"]] if reference else lines)
