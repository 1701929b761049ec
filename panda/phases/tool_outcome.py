"""What tools leave for the reader besides claims: changes, drafts, and what they could not do."""

from collections.abc import Sequence

from panda.errors import StoreError
from panda.language.conversation import asks_again, orders_change
from panda.language.narrowing import orders_to_look
from panda.phases.evidence_spans import LOOKING_UP
from panda.phases.turn import Turn
from panda.storage.files import read_text
from panda.storage.layout import PLAN_JSON, QUERY_ANALYSIS_JSON, below


def attachments(turn: Turn) -> list[str]:
    """The drafts and the changes of files that this turn made, as they stand below its answer."""
    steps = [step for step in turn.steps() if step["status"] == "success"]
    drafts = [
        f"### {path.rpartition('/')[2].removesuffix('.md')}\n\n{turn.file_text(path).rstrip()}"
        for step in steps
        if step["kind"] == "generate"
        for path in step["artifacts"]
    ]
    diffs = [step["data"]["diff"] for step in steps if step["kind"] == "write" and "diff" in step["data"]]
    if not diffs:
        return drafts
    would = "Would change" if turn.dry_run else "Changed"
    fence = "`" * max(3, 1 + max(_longest_fence(diff) for diff in diffs))
    return [*drafts, "\n".join([f"{would}:\n", f"{fence}diff", *diffs, fence])]


def render_response(body: str, attached: Sequence[str]) -> str:
    """
    response.md: the answer of §5, and what stands below it.

    >>> render_response("Done.", ["### Draft"])
    'Done.\\n\\n### Draft\\n'
    """
    return "\n\n".join([body, *attached]) + "\n"


def kept_again(turn: Turn) -> list[str]:
    """The kept draft that the query asks to see again, word for word; [] if this turn wrote something."""
    key = turn.read(QUERY_ANALYSIS_JSON).get("kept_content")
    entry = next((one for one in turn.carry.content_archive.entries if one.key == key), None)
    if (
        entry is None
        or not entry.is_draft
        or not (entry.key in turn.query or any(asks_again(one.text) for one in turn.reading.clauses))
    ):
        return []
    if any(step["kind"] == "generate" and step["status"] == "success" for step in turn.steps()):
        return []
    try:
        text = read_text(below(turn.layout.user(turn.user_id), entry.path))
    except StoreError as exc:
        turn.warn(f"{entry.path} cannot be read: {exc.message}")
        return []
    return [f"### {entry.key}\n\n{text.rstrip()}"]


def is_undone(turn: Turn) -> bool:
    """
    Whether the query orders what no tool here carried out: that is no question, and nothing answers it.

    Only where every clause orders, none to find or show something, and the plan was to use tools.
    """
    clauses = turn.reading.clauses
    orders = bool(clauses) and all(one.mood == "orders" and not orders_to_look(one.text) for one in clauses)
    done = any(step["status"] == "success" and step["tool"] not in LOOKING_UP for step in turn.steps())
    planned = turn.read(PLAN_JSON)["next_step"] == "coordinator"
    return turn.mode == "chat" and orders and planned and not done


def _ordered(turn: Turn) -> list[str]:
    return [one.text for one in turn.reading.clauses if one.mood == "orders"]


def _longest_fence(text: str) -> int:
    """The most backquotes in a row."""
    return max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0)


def shortfall(turn: Turn) -> list[str]:
    """What the tools were to do and did not, a paragraph each; [] if all was done."""
    plan = turn.read(PLAN_JSON)
    progress = plan["progress"]
    wrote = any(step["kind"] == "write" and step["status"] == "success" for step in turn.steps())
    unchanged = turn.mode == "code" and not wrote and any(map(orders_change, _ordered(turn)))
    told = ["No file was changed."] if unchanged else []
    last = {step["tool"]: step for step in turn.steps() if turn.mode == "code" and step["kind"] != "read"}
    told += [f"{name} failed: {step['error']}" for name, step in last.items() if step["status"] == "error"]
    if progress is None or plan["next_step"] != "coordinator" or progress["ending"] == "done":
        return told
    goals = {goal["id"]: goal["goal"] for goal in plan["goals"]}
    open_goals = [one for one in progress["goals"] if one["status"] != "done"]
    lines = [f"- {goals[one['id']]}: {one['reason'] or 'not reached'}" for one in open_goals]
    return [*told, "\n".join([f"Not finished, {progress['ending']}: {progress['reason']}.", *lines])]
