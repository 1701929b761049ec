"""Phase 3: answer from what is gathered, or use tools first (S3 §16.2)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from panda.documents.context import Meta, Phase, Section, Text
from panda.documents.safe_text import one_line
from panda.errors import ReplyError
from panda.memory.gathered import CONSTRAINTS
from panda.phases.from_session import recalled_options, recalled_turns, session_answer
from panda.phases.goals import plan_goals
from panda.phases.near_passages import passages_answer
from panda.phases.pages import live_pages, named_pages
from panda.phases.phase_contract import PhaseOutcome, PhaseResult, Stop
from panda.phases.recipe_request import ask, describe_turns, question_of, quote
from panda.phases.running_turn import Turn
from panda.phases.turn_evidence import ClosestLines, as_options, gathered_lines, look_at, standing
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.passages import PassageRanker
from panda.session.registry import uses_excluded
from panda.steps.all_steps import PLANNING
from panda.steps.inputs import PlanningInputs
from panda.steps.options import Option
from panda.store.node_id import NodeKind
from panda.store.records import Evidence, GatheredContext, Plan, ResearchCacheMatch, RetrievalPlan
from panda.tools.table import TOOLS, outline_tools, why_unavailable
from panda.tools.tool_contract import ToolContext

_RECENT = 3
_MOST_STALE = 8


@dataclass(frozen=True)
class Planner:
    """Writes §3 and plan.json."""

    number = Phase.PLANNER
    layer = "MIND"

    executor: RecipeExecutor  # asks the recipes
    context_of: Callable[[Turn], ToolContext]  # gives what the tools of a turn may touch
    closest: ClosestLines  # orders lines by how close they are to the query
    ranker: PassageRanker  # tells whether a query can be compared by meaning

    def run(self, turn: Turn) -> PhaseOutcome:
        """
        Choose the next step; `synthesis` skips phase 4, `clarify` ends the turn. A plan that uses what the
        user ruled out, or asks what he has just answered, is refused once; the former twice is a halt.
        """
        plan = self._plan(turn, None)
        refusal = _refusal(turn, plan)
        if refusal is not None:
            plan = self._plan(turn, refusal)
            _check_excluded(turn, plan)
        meta = {"next_step": plan.next_step, "confidence": plan.confidence, "round": plan.round}
        text = "\n\n".join(_lines(plan, turn.analysis.resolved_query))
        section = Section(Phase.PLANNER, (Meta(meta), Text(text)))
        if plan.next_step == "clarify":
            return Stop("clarify", section, (plan,), question=plan.question)
        return PhaseResult(section, (plan,), to=Phase.SYNTHESIZER if plan.next_step == "synthesis" else None)

    def _plan(self, turn: Turn, refusal: str | None) -> Plan:
        recipe = self.executor.book.recipe_for(PLANNING.name, turn.mode, turn.intent)
        context = self.context_of(turn)
        figures, findings = _assessment(turn)
        missing = {name: why_unavailable(name, context) for name in recipe.tools_available if name in TOOLS}
        names = [name for name, reason in missing.items() if reason is None]
        lacking = [f"- {name} cannot be used: {reason}" for name, reason in missing.items() if reason]
        failures = _failures(turn)
        guidance = [turn.reason, *failures] if turn.reason else []
        pages = live_pages(turn, context.reader)
        ordered = _new_search(turn) if "internet.research" in names else []
        fresh = _fresh_research(turn)
        opens_page = bool(named_pages(turn))
        is_at_hand = turn.reading.of_documents and not opens_page and bool(turn.document_nodes)

        @cache
        def evidence() -> Sequence[Option]:
            gathered = look_at(turn, gathered_lines(turn), quotes=False)
            return as_options(self.closest.closest(turn.meant, standing(gathered)))

        def is_answered() -> bool:
            return bool(recalled_turns(turn) or session_answer(turn, context.reader)) or is_at_hand

        inputs = PlanningInputs(
            mode=turn.mode,
            tools=names,
            evidence=evidence,
            pages=pages,
            opens_page=opens_page,
            is_told=turn.reading.only_tells,
            is_answered=is_answered,
            wants_new=bool(ordered),
            is_researched=bool(fresh),
            is_enough=lambda: passages_answer(turn, turn.folder.find(Evidence), self.ranker),
        )
        reply = ask(
            self.executor,
            PLANNING,
            turn,
            options={
                "tools": [Option(name, name) for name in names],
                "evidence": evidence,
                "pages": pages,
                "recalled": recalled_options(turn),
                "ordered": ordered,
                "fresh": fresh,
            },
            variables={"tools": "\n".join([outline_tools(names), *lacking]), "quoted": quote(turn.query)},
            extra={
                "turn_summaries": describe_turns(turn, recipe, _RECENT),
                "context_assessment": "\n".join([*figures, *findings]),
            },
            guidance="\n".join(filter(None, [*guidance, refusal])) or None,
            inputs=inputs,
        )
        content = reply.content
        next_step = "clarify" if reply.asks_back else content.next_step
        question = question_of(content.question, turn) if next_step == "clarify" else None
        tools = tuple(names) if content.tools is None else content.tools
        limits = [item.text for part in turn.gathered if part.title == CONSTRAINTS for item in part.items]
        return Plan(
            next_step=next_step,
            goal=content.goal,
            goals=plan_goals(
                content.goals,
                turn.analysis.resolved_query,
                statements=[statement.text for statement in turn.reading.statements],
                warn=turn.warn,
            ),
            approach=content.approach,
            reasoning=" ".join(filter(None, [content.reasoning, *findings])) or None,
            success_criteria=content.success_criteria,
            constraints=content.constraints or tuple(limits),
            tasks=content.tasks,
            tools=tools if next_step == "coordinator" else (),
            question=question,
            question_kind=content.question_kind if question else None,
            confidence=reply.confidence,
            reason=turn.reason,
            failed=tuple(failures),
            round=turn.round,
            progress=None,
        )


def _assessment(turn: Turn) -> tuple[list[str], list[str]]:
    """Return the figures of what was gathered, then what is missing from it and what is stale (S1 §5.3)."""
    gathered = turn.folder.find(GatheredContext)
    if gathered is None or turn.reading.only_tells:
        return [], []
    figures = [f"Quality: {gathered.context_quality:.2f}."]
    match = _research_match(turn)
    if match is not None:
        figures.append(
            f"Research {match.topic}: quality {match.quality:.2f}, {match.freshness} old,"
            f" reuse {match.reuse_recommendation}."
        )
    findings = [f"Gap: {gap}" for gap in gathered.gaps]
    if gathered.stale:
        more = len(gathered.stale) - _MOST_STALE
        named = ", ".join(gathered.stale[:_MOST_STALE])
        findings.append(f"Stale: {named}{f' and {more} more' if more > 0 else ''}.")
    return figures, findings


def _research_match(turn: Turn) -> ResearchCacheMatch | None:
    """The research that 2.1 chose; None if it chose none."""
    plan = turn.folder.find(RetrievalPlan)
    match = plan.research_cache_match if plan else None
    return match if match and match.matched else None


def _fresh_research(turn: Turn) -> list[Option]:
    """Research that is to be used in full, where the user asks and phase 2.5 found that §2 suffices."""
    match = _research_match(turn)
    gathered = turn.folder.find(GatheredContext)
    if match is None or match.reuse_recommendation != "full" or turn.reading.mood != "asks":
        return []
    is_enough = gathered is not None and gathered.verdict.status == "pass"
    return [Option("f1", NodeKind.RESEARCH.id(match.topic), (), 1.0)] if is_enough else []


def _new_search(turn: Turn) -> list[Option]:
    """
    Return the query as an order that needs current data, to be searched anew whatever is saved; [] if it is
    none.
    """
    is_live = turn.analysis.data_requirements.needs_live_data and turn.reading.mood == "orders"
    return [Option("o1", turn.analysis.resolved_query, (), 1.0)] if is_live else []


def _excluded(turn: Turn, plan: Plan) -> list[str]:
    """
    Return what the user ruled out and the plan uses all the same; what the query itself says does not count.
    """
    texts = [plan.goal, plan.approach, *plan.tasks, *(goal.goal for goal in plan.goals)]
    query = turn.analysis.resolved_query
    excluded = uses_excluded([text for text in texts if text and text not in query], turn.present_carry)
    return [f"{entity.ref} ({entity.label}): {entity.reason}" for entity in excluded]


def _refusal(turn: Turn, plan: Plan) -> str | None:
    excluded = _excluded(turn, plan)
    if excluded:
        return f"Your last plan was refused: it uses what the user ruled out: {'; '.join(excluded)}"
    pending = turn.present_carry.pending_clarification
    answer = turn.analysis.pending
    if plan.next_step == "clarify" and pending and answer and answer.status == "answered":
        return f"The user has answered the question of turn {pending.asked_turn}: plan, do not ask again."
    return None


def _check_excluded(turn: Turn, plan: Plan) -> None:
    excluded = _excluded(turn, plan)
    if excluded:
        raise ReplyError(
            f"the plan uses what the user ruled out: {excluded[0]}",
            where=str(turn.folder.paths / Plan.FILE),
            fix="ask again, naming what may be used; `panda session show` lists what is excluded",
            expected="a plan without excluded entities",
            received="; ".join(excluded),
        )


def _lines(plan: Plan, query: str) -> list[str]:
    """Return the paragraphs of §3; a goal that is the query itself is not told again."""
    lines = [f"**Next step:** {plan.next_step}"]
    if plan.goal:
        lines.append(f"**Goal:** {plan.goal}")
    goals = []
    for goal in plan.goals:
        after = f", after {', '.join(goal.depends_on)}" if goal.depends_on else ""
        measure = f" Done when: {goal.success_criteria}" if goal.success_criteria else ""
        goals.append(f"- {goal.id} (priority {goal.priority}{after}): {goal.goal}{measure}")
    if [goal.goal for goal in plan.goals] != [query]:
        lines.append("\n".join(["**Goals:**", *goals]))
    if plan.approach:
        lines.append(f"**Approach:** {plan.approach}")
    if plan.reasoning:
        lines.append(f"**Reasoning:** {plan.reasoning}")
    for name, items in (("Success criteria", plan.success_criteria), ("Constraints", plan.constraints)):
        if items:
            lines.append(f"**{name}:**\n" + "\n".join(f"- {item}" for item in items))
    if plan.tasks:
        lines.append("\n".join(f"- {task}" for task in plan.tasks))
    if plan.tools:
        lines.append(f"**Tools:** {', '.join(plan.tools)}")
    if plan.reason:
        lines.append(f"**Tried before:** {plan.reason}")
    kind = "Proposal" if plan.question_kind == "proposal" else "Question"
    return [*lines, f"**{kind}:** {plan.question}"] if plan.question else lines


def _failures(turn: Turn) -> list[str]:
    if not turn.round:
        return []
    failed = [
        f"Failed: {step.tool} {json.dumps(step.arguments, ensure_ascii=False):.200}: {step.error}"
        for step in turn.steps()
        if step.status in ("error", "blocked")
    ]
    refused = [document.section(Phase.SYNTHESIZER) for document in turn.superseded()[-1:]]
    return [*failed, *(f"Refused answer: {one_line(answer.text):.300}" for answer in refused if answer)]
