"""The goals of a plan: read from a reply or from the query, and how far the tools have brought each. Pure."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from panda.documents.text import one_line
from panda.language.text import split_sentences
from panda.memory.gathered import GatheredItem
from panda.retrieval.relevance import share_of_words

MOST_GOALS = 4
_Goal = dict[str, Any]


def plan_goals(said: Sequence[Mapping[str, Any]], query: str, warn: Callable[[str], None]) -> list[_Goal]:
    """
    The goals of a plan.

    Args:
        said: Goals as a model wrote them; empty takes each sentence of the query for one.
        query: What the user asks, references resolved.
        warn: Told of each dependency that is dropped because it names no goal or leads in a circle.

    Returns:
        1 to 4 goals {id, goal, priority, depends_on, success_criteria}; priority 1 is first. Ids are unique:
        of goals with the same id the first keeps it, and dependencies on it mean that one.

    >>> [goal["goal"] for goal in plan_goals([], "What is my budget? I live in Oregon.", print)]
    ['What is my budget?', 'I live in Oregon.']
    >>> said = [{"goal": "a", "depends_on": ["G2"]}, {"goal": "b", "depends_on": ["G1"]}]
    >>> goals = plan_goals(said, "", print)
    the dependency of G1 on G2 is dropped: it leads in a circle
    >>> [goal["depends_on"] for goal in goals]
    [[], ['G1']]
    """
    given = [goal for goal in said if one_line(goal["goal"])]
    given = given or [{"goal": sentence} for sentence in split_sentences(query) or [query]]
    goals: list[_Goal] = [
        {
            "id": str(goal.get("id") or f"G{number}"),
            "goal": one_line(goal["goal"]),
            "priority": int(goal.get("priority") or number),
            "depends_on": list(dict.fromkeys(goal.get("depends_on") or ())),
            "success_criteria": goal.get("success_criteria"),
        }
        for number, goal in enumerate(given[:MOST_GOALS], 1)
    ]
    free = (f"G{number}" for number in count(1) if f"G{number}" not in {goal["id"] for goal in goals})
    known: dict[str, _Goal] = {}
    for goal in goals:
        goal["id"] = goal["id"] if goal["id"] not in known else next(free)
        known[goal["id"]] = goal
    for goal in goals:
        wanted, goal["depends_on"] = goal["depends_on"], []
        for other in wanted:
            if other not in known:
                warn(f"the dependency of {goal['id']} on {other} is dropped: there is no such goal")
            elif goal["id"] in _needed(other, known):
                warn(f"the dependency of {goal['id']} on {other} is dropped: it leads in a circle")
            else:
                goal["depends_on"].append(other)
    return goals


def _needed(goal: str, known: Mapping[str, _Goal]) -> set[str]:
    """A goal and all that it waits for."""
    found: set[str] = set()
    waiting = [goal]
    while waiting:
        one = waiting.pop()
        if one in known and one not in found:
            found.add(one)
            waiting += known[one]["depends_on"]
    return found


def goals_progress(
    goals: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]],
    *,
    said_done: Sequence[str] = (),
    ended: bool = False,
) -> list[_Goal]:
    """
    How far each goal has come.

    Args:
        steps: The steps made for this plan, as in steps/.
        ended: Whether no further call comes: what only failed is blocked then, and what waits for it too.

    Returns:
        For each goal {id, status, steps, reason}: done if the model says so or a call for it found something,
        blocked if its calls failed, else open. The reason is the last error.

    >>> step = {"step": 1, "goal": "G1", "status": "error", "error": "away", "claims": []}
    >>> goals_progress([{"id": "G1", "depends_on": []}], [step], ended=True)
    [{'id': 'G1', 'status': 'blocked', 'steps': [1], 'reason': 'away'}]
    """
    progress: dict[str, _Goal] = {}
    for goal in goals:
        own = [step for step in steps if step["goal"] == goal["id"]]
        failed = [step for step in own if step["status"] != "success"]
        done = goal["id"] in said_done or any(step["status"] == "success" and step["claims"] for step in own)
        last_failed = bool(own) and own[-1]["status"] != "success"
        status = "done" if done else "blocked" if ended and last_failed else "open"
        progress[goal["id"]] = {
            "id": goal["id"],
            "status": status,
            "steps": [step["step"] for step in own],
            "reason": None if done or not own else failed[-1]["error"] if failed else "nothing was found",
        }
    fresh = [name for name, one in progress.items() if one["status"] == "blocked"]
    while fresh:
        other = fresh.pop()
        for goal in goals:
            waits = progress[goal["id"]]
            if other in goal["depends_on"] and waits["status"] == "open":
                waits |= {"status": "blocked", "reason": f"waits for {other}, which is blocked"}
                fresh.append(goal["id"])
    return list(progress.values())


def ready_goals(
    goals: Sequence[Mapping[str, Any]], progress: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """
    The goals to work on now, the most important first: not done, and everything they depend on is.

    >>> goals = [{"id": "a", "priority": 2, "depends_on": []}]
    >>> goals += [{"id": "b", "priority": 1, "depends_on": ["a"]}]
    >>> status = [{"id": "a", "status": "open"}, {"id": "b", "status": "open"}]
    >>> [goal["id"] for goal in ready_goals(goals, status)]
    ['a']
    """
    done = {one["id"] for one in progress if one["status"] == "done"}
    ready = [goal for goal in goals if goal["id"] not in done and set(goal["depends_on"]) <= done]
    return sorted(ready, key=lambda goal: goal["priority"])


def goal_verdicts(
    plan: Mapping[str, Any],
    items: Sequence[GatheredItem],
    verdict: str,
    said: Sequence[Mapping[str, Any]] = (),
) -> list[_Goal]:
    """
    What the answer is worth for each goal.

    Args:
        said: {id, met, why} as the model judges them; what is not met while its tools failed is blocked.

    Returns:
        For each goal {id, verdict, why}: met, unmet or blocked. Without the model's word a goal is met if the
        answer is approved and it is the only one, or shares a word with an item; one whose tools failed
        only if it does.

    >>> plan = {"goals": [{"id": "G1", "goal": "price of the Lenovo"}], "progress": None}
    >>> goal_verdicts(plan, [GatheredItem("It is $5.", ("a",))], "APPROVE")
    [{'id': 'G1', 'verdict': 'met', 'why': None}]
    """
    blocked = {
        one["id"]: one["reason"]
        for one in (plan["progress"] or {"goals": ()})["goals"]
        if one["status"] == "blocked"
    }
    judged = {one["id"]: one for one in said}
    found = []
    for goal in plan["goals"]:
        shared = max((share_of_words(goal["goal"], item.text) for item in items), default=0.0)
        is_alone = len(plan["goals"]) == 1 and goal["id"] not in blocked
        met = verdict == "APPROVE" and bool(items) and (shared > 0 or is_alone)
        word, why = ("met" if met else "unmet"), None
        if goal["id"] in judged:
            one = judged[goal["id"]]
            word, why = ("met" if one["met"] and verdict == "APPROVE" else "unmet"), one.get("why")
        if goal["id"] in blocked and word == "unmet":
            word, why = "blocked", blocked[goal["id"]]
        found.append({"id": goal["id"], "verdict": word, "why": why})
    return found
