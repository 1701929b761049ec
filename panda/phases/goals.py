"""The goals of a plan: read from a reply or from the query, and how far the tools have brought each. Pure."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Literal, NamedTuple

from msgspec.structs import replace

from panda.documents.safe_text import one_line
from panda.language.text import split_sentences
from panda.retrieval.relevance import share_of_words
from panda.steps.reply_contents import GoalReply, GoalVerdictReply
from panda.store.records import GatheredItem, Goal, GoalProgress, Plan, Step

MOST_GOALS = 4


def plan_goals(
    goal_replies: Sequence[GoalReply],
    query: str,
    *,
    statements: Sequence[str],
    warn: Callable[[str], None],
) -> tuple[Goal, ...]:
    """
    1 to 4 goals, priority 1 first, as a model wrote them or each sentence of the query, less the *statements*
    that code notes; if none is left, the query. Of goals with the same id the first keeps it, and
    dependencies on it mean that one; those that name no goal or lead in a circle are dropped.
    """
    replies = [goal for goal in goal_replies if one_line(goal.goal)]
    sentences = [sentence for sentence in split_sentences(query) if sentence not in statements]
    replies = replies or [GoalReply(goal=sentence) for sentence in sentences or [query]]
    replies = replies[:MOST_GOALS]
    ids = [goal.id or f"G{number}" for number, goal in enumerate(replies, 1)]
    free = (f"G{number}" for number in count(1) if f"G{number}" not in ids)
    ids = [id_ if id_ not in ids[:at] else next(free) for at, id_ in enumerate(ids)]
    needs = {id_: list(dict.fromkeys(goal.depends_on)) for id_, goal in zip(ids, replies, strict=True)}
    for id_, wanted in needs.items():
        needs[id_] = []
        for other in wanted:
            if other not in needs:
                warn(f"the dependency of {id_} on {other} is dropped: there is no such goal")
            elif id_ in _needed(other, needs):
                warn(f"the dependency of {id_} on {other} is dropped: it leads in a circle")
            else:
                needs[id_].append(other)
    return tuple(
        Goal(
            id=id_,
            goal=one_line(goal.goal),
            priority=goal.priority or number,
            depends_on=tuple(needs[id_]),
            success_criteria=goal.success_criteria,
        )
        for number, (id_, goal) in enumerate(zip(ids, replies, strict=True), 1)
    )


def _needed(goal: str, needs: Mapping[str, Sequence[str]]) -> set[str]:
    needed: set[str] = set()
    waiting = [goal]
    while waiting:
        name = waiting.pop()
        if name in needs and name not in needed:
            needed.add(name)
            waiting += needs[name]
    return needed


def goals_progress(
    goals: Sequence[Goal], steps: Sequence[Step], *, said_done: Sequence[str] = (), ended: bool = False
) -> tuple[GoalProgress, ...]:
    """
    Return how far each goal has come: done if the model says so or a call for it found something, blocked if
    its calls failed, else open. Once no further call comes, a goal whose calls all failed is blocked, and so
    is what waits for it.
    """
    progress: dict[str, GoalProgress] = {}
    for goal in goals:
        own = [step for step in steps if step.goal == goal.id]
        failed = [step for step in own if step.status != "success"]
        done = goal.id in said_done or any(step.status == "success" and step.claims for step in own)
        is_blocked = not done and ended and bool(own) and own[-1].status != "success"
        status: Literal["open", "done", "blocked"] = "open"
        if done:
            status = "done"
        elif is_blocked:
            status = "blocked"
        reason = None
        if own and not done:
            reason = failed[-1].error if failed else "nothing was found"
        progress[goal.id] = GoalProgress(
            id=goal.id,
            status=status,
            steps=tuple(step.step for step in own),
            reason=reason,
        )
    fresh = [name for name, reached in progress.items() if reached.status == "blocked"]
    while fresh:
        other = fresh.pop()
        for goal in goals:
            if other in goal.depends_on and progress[goal.id].status == "open":
                reason = f"waits for {other}, which is blocked"
                progress[goal.id] = replace(progress[goal.id], status="blocked", reason=reason)
                fresh.append(goal.id)
    return tuple(progress.values())


def ready_goals(goals: Sequence[Goal], progress: Sequence[GoalProgress]) -> list[Goal]:
    done = {reached.id for reached in progress if reached.status == "done"}
    ready = [goal for goal in goals if goal.id not in done and done.issuperset(goal.depends_on)]
    return sorted(ready, key=lambda goal: goal.priority)


class GoalVerdict(NamedTuple):
    id: str
    verdict: Literal["met", "unmet", "blocked"]
    why: str | None


def goal_verdicts(
    plan: Plan, items: Sequence[GatheredItem], verdict: str, judgements: Sequence[GoalVerdictReply] = ()
) -> list[GoalVerdict]:
    """
    Return the verdict on each goal. Without the model's word, *judgements*, a goal is met if the answer is
    approved and it is the only one, or shares a word with an item; one whose tools failed only if it shares a
    word, else it is blocked.
    """
    reached = plan.progress.goals if plan.progress else ()
    blocked = {goal.id: goal.reason for goal in reached if goal.status == "blocked"}
    judged = {judgement.id: judgement for judgement in judgements}
    verdicts = []
    for goal in plan.goals:
        shared = max((share_of_words(goal.goal, item.text) for item in items), default=0.0)
        is_alone = len(plan.goals) == 1 and goal.id not in blocked
        met = bool(items) and (shared > 0 or is_alone)
        why = None
        if goal.id in judged:
            met = judged[goal.id].met
            why = judged[goal.id].why
        if verdict == "APPROVE" and met:
            verdicts.append(GoalVerdict(goal.id, "met", why))
        elif goal.id in blocked:
            verdicts.append(GoalVerdict(goal.id, "blocked", blocked[goal.id]))
        else:
            verdicts.append(GoalVerdict(goal.id, "unmet", why))
    return verdicts
