"""Phase 3: answer from what is gathered, or use tools first (S3 §16.2)."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from panda.documents.context import Meta, Section, Text
from panda.documents.sentences import one_line
from panda.errors import ReplyError
from panda.phases.asking import ask, quote
from panda.phases.carry_document import present_carry
from panda.phases.contract import Advance, Outcome, Stop
from panda.phases.evidence_spans import gathered_spans
from panda.phases.goals import plan_goals
from panda.phases.pages import live_pages, named_pages
from panda.phases.recalling import recalled_turns
from panda.phases.turn import Turn
from panda.recipes.choices import Option
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.recent import recent_turns
from panda.session.curating import uses_excluded
from panda.storage.layout import GATHERED_CONTEXT_JSON, PLAN_JSON, QUERY_ANALYSIS_JSON
from panda.tools.contract import ToolContext
from panda.tools.statements import find_statements
from panda.tools.table import TOOLS, describe_tools, why_unavailable

_AFTER_TOOLS = 5
_RECENT = 3


class Planner:
    """
    Writes §3 and plan.json.

    Args:
        executor: Asks the recipe.
        context_of: Gives what the tools of a turn may touch.
    """

    number = 3
    name = "planner"
    layer = "MIND"

    def __init__(self, executor: RecipeExecutor, context_of: Callable[[Turn], ToolContext]) -> None:
        self._executor = executor
        self._context_of = context_of

    def run(self, turn: Turn) -> Outcome:
        """
        Choose the next step; `synthesis` skips phase 4, `clarify` ends the turn.

        A plan that uses what the user ruled out, or asks what the user has just answered, is refused once;
        the former twice is a halt.
        """
        plan = self._plan(turn, None)
        refusal = _refusal(turn, plan)
        if refusal is not None:
            plan = self._plan(turn, refusal)
            _check_excluded(turn, plan)
        section = Section(
            3,
            (
                Meta({key: plan[key] for key in ("next_step", "confidence", "round")}),
                Text("\n\n".join(_lines(plan))),
            ),
        )
        files = {PLAN_JSON: json.loads(json.dumps(plan))}
        if plan["next_step"] == "clarify":
            return Stop("clarify", section, files, question=plan["question"])
        return Advance(section, files, to=_AFTER_TOOLS if plan["next_step"] == "synthesis" else None)

    def _plan(self, turn: Turn, refusal: str | None) -> dict[str, Any]:
        recipe = self._executor.book.recipe_for("phase3_planner", turn.mode)
        context = self._context_of(turn)
        missing = {name: why_unavailable(name, context) for name in recipe.tools_available if name in TOOLS}
        names = [name for name, reason in missing.items() if reason is None]
        told = [f"- {name} cannot be used: {reason}" for name, reason in missing.items() if reason]
        failures = _failures(turn)
        guidance = [turn.reason, *failures] if turn.reason else []
        reply = ask(
            self._executor,
            "phase3_planner",
            turn,
            options={
                "tools": [Option(name, name) for name in names],
                "evidence": gathered_spans(turn),
                "pages": live_pages(turn, context.reader),
                "statements": _statements(turn.query),
                "recalled": [Option(f"turn:{n}", f"Turn {n}", (), 1.0) for n in recalled_turns(turn)],
            },
            variables={"tools": "\n".join([describe_tools(names), *told]), "quoted": quote(turn.query)},
            extra={"turn_summaries": _known(turn)},
            guidance="\n".join(filter(None, [*guidance, refusal])) or None,
        )
        values = reply.values
        if not self._executor.writes(recipe.key) and "web.fetch" in names and named_pages(turn.query):
            values = {**values, "tools": list(dict.fromkeys(["web.fetch", *values["tools"]]))}
        return _plan(turn, values, reply.confidence, failures)


def _excluded(turn: Turn, plan: Mapping[str, Any]) -> list[str]:
    """What the user ruled out and the plan uses all the same; what the query itself says does not count."""
    texts = [plan["goal"], plan["approach"], *plan["tasks"], *(goal["goal"] for goal in plan["goals"])]
    query = turn.read(QUERY_ANALYSIS_JSON)["resolved_query"]
    found = uses_excluded([text for text in texts if text and text not in query], present_carry(turn))
    return [f"{one.ref} ({one.label}): {one.reason}" for one in found]


def _refusal(turn: Turn, plan: Mapping[str, Any]) -> str | None:
    """Why a plan is not taken, for the next attempt."""
    excluded = _excluded(turn, plan)
    if excluded:
        return f"Your last plan was refused: it uses what the user ruled out: {'; '.join(excluded)}"
    pending = present_carry(turn).pending_clarification
    answered = turn.read(QUERY_ANALYSIS_JSON).get("pending") or {}
    if plan["next_step"] == "clarify" and pending and answered.get("status") == "answered":
        return f"The user has answered the question of turn {pending.asked_turn}: plan, do not ask again."
    return None


def _check_excluded(turn: Turn, plan: Mapping[str, Any]) -> None:
    """Raises ReplyError if the second plan uses what the user ruled out."""
    excluded = _excluded(turn, plan)
    if excluded:
        raise ReplyError(
            f"the plan uses what the user ruled out: {excluded[0]}",
            where=str(turn.folder.paths / PLAN_JSON),
            fix="ask again, naming what may be used; `panda session show` lists what is excluded",
            expected="a plan without excluded entities",
            received="; ".join(excluded),
        )


def _statements(query: str) -> list[Option]:
    """What the user states: to be remembered, which only phase 4 can do."""
    return [Option(one.relation, f"{one.relation}: {one.value}", (), 1.0) for one in find_statements(query)]


def _plan(
    turn: Turn, values: Mapping[str, Any], confidence: float | None, failures: Sequence[str]
) -> dict[str, Any]:
    """The content of plan.json; what a model that does not write leaves out comes from the query."""
    query = turn.read(QUERY_ANALYSIS_JSON)["resolved_query"]
    clarify = values["next_step"] == "clarify"
    return {
        "next_step": values["next_step"],
        "goal": values.get("goal"),
        "goals": plan_goals(values.get("goals") or (), query, turn.warn),
        "approach": values.get("approach"),
        "success_criteria": list(values.get("success_criteria") or ()),
        "constraints": list(values.get("constraints") or _stated_constraints(turn)),
        "tasks": list(values.get("tasks") or ()),
        "tools": list(values["tools"]) if values["next_step"] == "coordinator" else [],
        "question": (values.get("question") or f"What exactly do you mean by “{quote(turn.query)}”?")
        if clarify
        else None,
        "question_kind": values.get("question_kind", "question") if clarify else None,
        "confidence": confidence,
        "reason": turn.reason,
        "failed": list(failures),
        "round": turn.round,
        "progress": None,
    }


def _lines(plan: Mapping[str, Any]) -> list[str]:
    """§3 as text."""
    lines = [f"**Next step:** {plan['next_step']}"]
    lines += [f"**Goal:** {plan['goal']}"] if plan["goal"] else []
    goals = [
        f"- {goal['id']} (priority {goal['priority']}{_after(goal)}): {goal['goal']}{_measure(goal)}"
        for goal in plan["goals"]
    ]
    lines += ["**Goals:**\n" + "\n".join(goals)]
    lines += [f"**Approach:** {plan['approach']}"] if plan["approach"] else []
    for name in ("success_criteria", "constraints"):
        items = "\n".join(f"- {item}" for item in plan[name])
        lines += [f"**{name.replace('_', ' ').capitalize()}:**\n{items}"] if items else []
    lines += ["\n".join(f"- {task}" for task in plan["tasks"])] if plan["tasks"] else []
    lines += [f"**Tools:** {', '.join(plan['tools'])}"] if plan["tools"] else []
    lines += [f"**Tried before:** {plan['reason']}"] if plan["reason"] else []
    kind = "Proposal" if plan["question_kind"] == "proposal" else "Question"
    return [*lines, f"**{kind}:** {plan['question']}"] if plan["question"] else lines


def _after(goal: Mapping[str, Any]) -> str:
    return f", after {', '.join(goal['depends_on'])}" if goal["depends_on"] else ""


def _measure(goal: Mapping[str, Any]) -> str:
    return f" Done when: {goal['success_criteria']}" if goal["success_criteria"] else ""


def _stated_constraints(turn: Turn) -> list[str]:
    """What §2 holds the answer to."""
    sections = turn.read(GATHERED_CONTEXT_JSON)["sections"]
    return [item["text"] for part in sections if part["title"] == "Constraints" for item in part["items"]]


def _failures(turn: Turn) -> list[str]:
    """What did not work in the rounds before: calls that failed, and the answer that was refused."""
    if not turn.round:
        return []
    failed = [
        f"Failed: {step['tool']} {json.dumps(step['arguments'], ensure_ascii=False):.200}: {step['error']}"
        for step in turn.steps()
        if step["status"] in ("error", "blocked")
    ]
    refused = [document.section(5) for document in turn.superseded()[-1:]]
    return [*failed, *(f"Refused answer: {one_line(answer.text):.300}" for answer in refused if answer)]


def _known(turn: Turn) -> str:
    """What the session is about: its latest turns, and what the query refers to."""
    recent = recent_turns(turn.layout, turn.user_id, turn.earlier, limit=_RECENT)
    lines = [f"Turn {number}: {said}" for number, said in recent]
    reference = turn.read(QUERY_ANALYSIS_JSON)["content_reference"]
    return "\n".join([*lines, reference["title"]] if reference else lines)
