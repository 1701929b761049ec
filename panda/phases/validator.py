"""Phase 6: is the answer supported, and does it answer (S3 §7). Code checks cannot be out-voted."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import UNSET

from panda.documents.context import Meta, Phase, Section, Text
from panda.documents.evidence import check_evidence, quote_item, tell_claims
from panda.documents.safe_text import one_line
from panda.memory.gathered import answer_items
from panda.memory.reader import NodeReader
from panda.messages.wording import claims_done, without_greeting
from panda.phases.cited import Cited
from panda.phases.from_session import recalled_options, recalled_turns
from panda.phases.goals import GoalVerdict, goal_verdicts
from panda.phases.phase_contract import PhaseOutcome, PhaseResult, Retry, Stop
from panda.phases.recipe_request import ask, is_served
from panda.phases.running_turn import Turn
from panda.phases.statements import render_noted
from panda.phases.tool_outcome import render_calls, shortfall
from panda.phases.turn_evidence import (
    ClosestLines,
    as_options,
    label_lines,
    ordered_findings,
    render_lines,
)
from panda.recipes.executor import RecipeExecutor
from panda.session.turn_files import step_type
from panda.steps.all_steps import VALIDATION
from panda.steps.options import Option
from panda.steps.reply_contents import GoalVerdictReply, ItemVerdictReply
from panda.store.node_id import NodeKind
from panda.store.reason import Reason
from panda.store.records import Evidence, GatheredItem, StagedMemory

_MOST_REVISIONS = 2
_MOST_RETRIES = 1


@dataclass(frozen=True)
class ItemVerdict:
    """What the model that judges says of one item beside the lines of its nodes."""

    n: int
    item: GatheredItem
    supported: bool
    why: str

    @property
    def issue(self) -> str:
        mismatch = f"{quote_item(self.item.text)} is not what {', '.join(self.item.node_ids)} says"
        return f"{mismatch}: {self.why}" if self.why else mismatch


@dataclass(frozen=True)
class Validator:
    """Writes §6; sends the turn back to phase 5 or 3, or lets it fail."""

    number = Phase.VALIDATOR
    layer = "MIND"

    executor: RecipeExecutor  # asks the recipe
    reader: NodeReader  # loads the cited nodes
    closest: ClosestLines  # says how close the items are to the query

    def run(self, turn: Turn) -> PhaseOutcome:
        statements = {statement.text for statement in turn.reading.statements}
        answered = answer_items(turn.context.section(Phase.SYNTHESIZER))
        items = [item for item in answered if item.text not in statements]
        if not items:
            return PhaseResult(_section("APPROVE", "Nothing is claimed, so nothing needs support."))
        cited = Cited(self.reader, turn)
        issues, rejected = check_items(cited, turn, items)
        plan = turn.plan
        judgements: Sequence[GoalVerdictReply] = ()
        judged_items: Sequence[ItemVerdict] = ()
        is_last = turn.attempt >= _MOST_REVISIONS
        if issues:
            verdict = "REVISE"
            confidence = None
            reason = "; ".join(issues)
        elif not is_served(self.executor, VALIDATION, turn):  # quoted lines support themselves
            verdict = "APPROVE"
            confidence = None
            reason = _REASONS["APPROVE"]
        else:
            lines = self.closest.scored(turn.meant, [cited.line(item) for item in items])
            goals = [goal for goal in plan.goals if goal.goal != turn.analysis.resolved_query]
            parts = [Option(goal.id, goal.goal) for goal in goals]  # of the query itself the verdict tells
            ordered_ids = ordered_findings(turn, turn.steps())
            reply = ask(
                self.executor,
                VALIDATION,
                turn,
                options={
                    "answer": as_options(lines),
                    "goals": parts,
                    "recalled": recalled_options(turn),
                    "ordered": [
                        dataclasses.replace(o, prior=1.0)
                        for o in as_options(lines)
                        if ordered_ids & {*o.node_ids}
                    ],
                },
                variables={"today": turn.today},
                extra={
                    "items": cited.render(items),
                    "beside_items": partial(_beside_items, turn),
                    "other_lines": partial(self._other_lines, turn, cited, items),
                    "tool_calls": partial(render_calls, turn.steps()),
                },
            )
            judgements = reply.content.goals
            judged_items = _item_verdicts(items, reply.content.items)
            verdict = reply.content.verdict
            confidence = reply.confidence
            reason = reply.content.reason or _REASONS[verdict]
            if reply.below_threshold and verdict == "APPROVE":
                verdict = "REVISE"
                reason = f"The approval is unsure: its confidence is {confidence}."
            rejected = [] if verdict == "APPROVE" else [item.text for item in items]
            denied = [item_verdict for item_verdict in judged_items if not item_verdict.supported]
            if denied and verdict in ("APPROVE", "REVISE"):
                issues = [item_verdict.issue for item_verdict in denied]
                rejected = [item_verdict.item.text for item_verdict in denied]
                verdict = "REVISE"
                confidence = None
                reason = "; ".join(issues)
            elif verdict == "REVISE" and is_last and not reply.below_threshold:
                turn.warn(f"a better answer was asked for and not found, what is supported stays: {reason}")
                verdict = "APPROVE"
                rejected = []
        left_out = verdict == "REVISE" and is_last and 0 < len(rejected) < len(items)
        is_spent = (verdict == "REVISE" and is_last) or (verdict == "RETRY" and turn.round >= _MOST_RETRIES)
        if is_spent and not left_out:
            verdict = "FAIL"
        judged = goal_verdicts(plan, answered, verdict, judgements)
        best = _best_attempt(turn, len(issues)) if verdict == "FAIL" else None
        section = _section(
            verdict,
            reason,
            confidence=confidence,
            issues=issues,
            rejected=rejected,
            goals=judged,
            best=best,
            items=judged_items,
            left_out=left_out,
        )
        match verdict:
            case "APPROVE":
                return PhaseResult(section)
            case "REVISE":
                return Retry(Phase.SYNTHESIZER, reason, section)
            case "RETRY":
                return Retry(Phase.PLANNER, reason, section)
        return Stop("failed", section, reason=reason)

    def _other_lines(self, turn: Turn, cited: Cited, items: Sequence[GatheredItem]) -> str:
        """Return the lines that the answer could have cited and does not."""
        record = turn.folder.find(Evidence)
        unclaimed = {NodeKind.STEP.id(step.step) for step in turn.steps() if not step.claims}
        offered = record.offered if record else ()
        passed_over = [
            line
            for line in offered
            if line.left_out == Reason.OTHERS_ANSWER_BETTER
            and not cited.rests_on(line, items)
            and line.node not in (NodeKind.TURN.id(turn.turn), *unclaimed)
        ]
        return render_lines(passed_over, label_lines(self.reader, turn.context.front.created_at))


def _beside_items(turn: Turn) -> str:
    """Return what an answer says beside its items: what was noted, what was not done, what is missing."""
    staged = turn.folder.find(StagedMemory)
    noted = staged.noted if staged and staged.noted is not UNSET else ()
    answer = turn.context.section(Phase.SYNTHESIZER)
    note = str(answer.meta.get("note", "")) if answer else ""
    return "\n".join(filter(None, [render_noted(noted), *shortfall(turn), note]))


def check_items(cited: Cited, turn: Turn, items: Sequence[GatheredItem]) -> tuple[list[str], list[str]]:
    """
    Return what is wrong with the items of a running or saved answer, a sentence each, and the texts of those
    items: each item has to be supported by the nodes that it cites.
    """
    issues = []
    rejected = []
    steps = turn.steps()
    wrote = any(step.status == "success" and step_type(step) != "read" for step in steps)
    done = recalled_turns(turn) or turn.reading.turns or turn.reading.statements or wrote
    for item in items:
        sources = cited.texts(item)
        values, faults = cited.computed(item)
        cited_text = "\n".join(text for text in sources if text)
        is_quoted = item.text in one_line(cited_text)
        held = [*sources, *values]
        about = [turn.query, *item.node_ids]
        missing = check_evidence(without_greeting(item.text), held, about=about)
        if not cited_text:
            issues.append(f"{quote_item(item.text)} cites nothing that exists")
        elif faults:
            issues.append(f"{quote_item(item.text)} computes wrongly: {'; '.join(faults)}")
        elif missing:
            issues.append(tell_claims(missing, item.text, item.node_ids))
        elif not is_quoted and claims_done(item.text) and not done:
            issues.append(f"{quote_item(item.text)} tells of something that no tool has done")
        else:
            continue
        rejected.append(item.text)
    return issues, rejected


_REASONS = {
    "APPROVE": "Every item is supported by the node it cites.",
    "REVISE": "The answer is supported but does not seem to answer the query.",
    "RETRY": "The plan did not lead to an answer.",
    "FAIL": "The query is not answered.",
}


def _item_verdicts(items: Sequence[GatheredItem], verdicts: Sequence[ItemVerdictReply]) -> list[ItemVerdict]:
    """The last verdict on each item that has any; numbers of no item count for nothing."""
    by_number = {verdict.n: verdict for verdict in verdicts}
    return [
        ItemVerdict(n, item, by_number[n].supported, one_line(by_number[n].why or ""))
        for n, item in enumerate(items, 1)
        if n in by_number
    ]


def _best_attempt(turn: Turn, issues: int) -> str:
    judged = [document.section(Phase.VALIDATOR) for document in turn.superseded()]
    issue_lists: list[Any] = [judgement.meta.get("issues", []) if judgement else [] for judgement in judged]
    counts = [len(issue_list) for issue_list in issue_lists]
    best = min(range(len(counts)), key=lambda place: (counts[place], -place), default=None)
    return "§5" if best is None or issues <= counts[best] else f"attempts/{best + 1}/context.md"


def _section(
    verdict: str,
    reason: str,
    *,
    confidence: float | None = None,
    issues: Sequence[str] = (),
    rejected: Sequence[str] = (),
    goals: Sequence[GoalVerdict] = (),
    best: str | None = None,
    items: Sequence[ItemVerdict] = (),
    left_out: bool = False,
) -> Section:
    meta: dict[str, object] = {"verdict": verdict, "confidence": confidence}
    meta |= {"issues": list(issues), "rejected": list(rejected)}
    if goals:
        meta["goals"] = {goal.id: goal.verdict for goal in goals}
    if items:
        meta["items"] = {str(item.n): item.supported for item in items}
    if left_out:
        meta["left_out"] = True
    if best:
        meta["best_attempt"] = best
    lines = [f"**Verdict:** {verdict}", reason]
    lines += ["\n".join(f"- {g.id}: {g.verdict}" + (f" ({g.why})" if g.why else "") for g in goals)]
    if items:
        supported = sum(item.supported for item in items)
        lines += [f"Items that their sources support, as the model judges: {supported} of {len(items)}"]
    if best:
        lines.append(f"The best attempt, not approved: {best}")
    return Section(Phase.VALIDATOR, (Meta(meta), Text("\n\n".join(line for line in lines if line))))
