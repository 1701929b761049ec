"""What tools gave: §4, toolresults.md, and what stands below an answer, or why it was not done."""

import json
import re
from collections.abc import Sequence

from msgspec.structs import replace

from panda.documents.context import Block, Meta, Phase, Section, Text
from panda.documents.safe_text import one_line, shorten
from panda.errors import StoreError
from panda.messages.list_items import orders_to_look
from panda.messages.questions import asks_again, orders_change
from panda.phases.running_turn import Turn
from panda.phases.turn_evidence import LOOKING_UP
from panda.session.turn_files import step_type
from panda.store.files import read_text
from panda.store.records import Progress, Step
from panda.tools.table import TOOLS

_SHOWN_CLAIMS = 8
_SHOWN_LINES = 120
_CALL_CHARS = 120
_NOTHING = "- nothing found"


def render_section(steps: Sequence[Step], progress: Progress | None) -> Section:
    blocks: list[Block] = []
    for step in steps:
        meta: dict[str, object] = {"step": step.step, "tool": step.tool, "goal": step.goal}
        meta |= {"status": step.status}
        meta["node_ids"] = list(dict.fromkeys(claim.node_id for claim in step.claims if claim.node_id))
        meta["provenance"] = list(dict.fromkeys(claim.source for claim in step.claims))
        blocks += [Meta(meta), Text("\n".join(_step_lines(step)))]
    if not steps:
        blocks.append(Text("No tool was called."))
    if progress is not None:
        lines = [f"**Ended:** {progress.ending}" + (f" ({progress.reason})" if progress.reason else "")]
        for goal in progress.goals:
            lines.append(f"- {goal.id}: {goal.status}{f' ({one_line(goal.reason)})' if goal.reason else ''}")
        ending = {"ending": progress.ending, "rounds": progress.rounds, "calls": progress.calls}
        blocks += [Meta(ending), Text("\n".join(lines))]
    return Section(Phase.COORDINATOR, tuple(blocks))


def _step_lines(step: Step) -> list[str]:
    lines = [f"- {one_line(claim.text)} [{claim.source}]" for claim in step.claims[:_SHOWN_CLAIMS]]
    more = len(step.claims) - _SHOWN_CLAIMS
    if more > 0:
        lines.append(f"- […] {more} more in {step.file_name}")
    if step.error:
        lines.append(f"- error: {one_line(step.error)}")
    text_lines = step.text.splitlines()
    lines += [f"    {line}" for line in text_lines[:_SHOWN_LINES]]
    more = len(text_lines) - _SHOWN_LINES
    if more > 0:
        lines.append(f"    […] {more} more lines in {step.file_name}")
    if step.note:
        lines.append(f"- note: {one_line(step.note)}")
    if step.conclusion:
        lines.append(f"- conclusion: {one_line(step.conclusion)}")
    return lines or [_NOTHING]


def render_results(steps: Sequence[Step]) -> str:
    """toolresults.md: every call with its findings; quotes are indented, so that none passes for ours."""
    parts = []
    for step in steps:
        lines = [f"## Step {step.step}: {step.tool} ({step.status})", ""]
        lines += [f"- {one_line(claim.text)} ({claim.source})" for claim in step.claims]
        if step.error:
            lines.append(f"- error: {one_line(step.error)}")
        lines += [f"    {line}" for line in step.text.splitlines()]
        if not (step.claims or step.error or step.text):
            lines.append("- nothing found")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n" if parts else ""


def is_empty_search(step: Step) -> bool:
    """Return whether a step only looked for something, and gave nothing."""
    return step_type(step) == "read" and _step_lines(step) == [_NOTHING]


def render_unclaimed(steps: Sequence[Step]) -> str:
    """Return what tools gave besides claims, a part for each step that gave anything; "" if none did."""
    parts = []
    for step in steps:
        bare = replace(step, claims=())
        lines = _step_lines(bare)
        if lines != [_NOTHING]:
            parts.append("\n".join([f"## Step {step.step}: {step.tool} ({step.status})", "", *lines]))
    return "\n\n".join(parts)


def render_calls(steps: Sequence[Step]) -> str:
    """Return the calls of tools, a line each: how each ended, and its error."""
    lines = []
    for step in steps:
        arguments = json.dumps(step.arguments, ensure_ascii=False)
        error = f": {one_line(step.error)}" if step.error else ""
        lines.append(
            f"- step {step.step}, {step.tool} {shorten(arguments, _CALL_CHARS)}: {step.status}{error}"
        )
    return "\n".join(lines)


def attachments(turn: Turn) -> list[str]:
    steps = [step for step in turn.steps() if step.status == "success"]
    drafts = [
        f"### {path.rpartition('/')[2].removesuffix('.md')}\n\n{turn.file_text(path).rstrip()}"
        for step in steps
        if step.kind == "generate"
        for path in step.artifacts
    ]
    diffs = [step.data["diff"] for step in steps if step.kind == "write" and "diff" in step.data]
    if not diffs:
        return drafts
    would = "Would change" if turn.dry_run else "Changed"
    fence = "`" * max(3, 1 + max(len(run) for diff in diffs for run in re.findall("`*", diff)))
    return [*drafts, "\n".join([f"{would}:\n", f"{fence}diff", *diffs, fence])]


def render_response(answer: str, attached: Sequence[str]) -> str:
    """response.md: the answer of §5, and what stands below it."""
    return "\n\n".join([answer, *attached]) + "\n"


def kept_again(turn: Turn) -> list[str]:
    """The kept draft that the query asks to see again, word for word; [] if this turn wrote something."""
    key = turn.analysis.kept_content
    entry = next((archived for archived in turn.carry.content_archive.entries if archived.key == key), None)
    if entry is None or not entry.is_draft:
        return []
    if entry.key not in turn.query and not any(asks_again(clause.text) for clause in turn.reading.clauses):
        return []
    if any(step.kind == "generate" and step.status == "success" for step in turn.steps()):
        return []
    try:
        text = read_text(turn.store.place(entry.path))
    except StoreError as exc:
        turn.warn(f"{entry.path} cannot be read: {exc.message}")
        return []
    return [f"### {entry.key}\n\n{text.rstrip()}"]


def is_undone(turn: Turn) -> bool:
    """
    Return whether tools were planned, every clause orders something other than finding or showing, and no
    tool did it.
    """
    clauses = turn.reading.clauses
    orders = bool(clauses) and all(
        clause.mood == "orders" and not orders_to_look(clause.text) for clause in clauses
    )
    done = any(step.status == "success" and step.tool not in LOOKING_UP for step in turn.steps())
    planned = turn.plan.next_step == "coordinator"
    return turn.mode == "chat" and orders and planned and not done


def shortfall(turn: Turn) -> list[str]:
    """
    Return what the tools were to do and did not, a paragraph each; [] if all was done. It stands above the
    answer, which rests on what was known before.
    """
    plan = turn.plan
    progress = plan.progress
    wrote = any(step.kind == "write" and step.status == "success" for step in turn.steps())
    ordered = [clause.text for clause in turn.reading.clauses if clause.mood == "orders"]
    unchanged = turn.mode == "code" and not wrote and any(map(orders_change, ordered))
    shortfalls = ["No file was changed."] if unchanged else []
    last = {step.tool: step for step in turn.steps() if turn.mode == "code" and step.kind != "read"}
    shortfalls += [f"{name} failed: {step.error}" for name, step in last.items() if step.status == "error"]
    if progress is None or plan.next_step != "coordinator":
        return shortfalls
    goals = {goal.id: goal.goal for goal in plan.goals}
    if progress.ending != "done":
        missed = [goal for goal in progress.goals if goal.status != "done"]
        lines = [f"- {goals[goal.id]}: {goal.reason or 'not reached'}" for goal in missed]
        return [*shortfalls, "\n".join([f"Not finished, {progress.ending}: {progress.reason}.", *lines])]
    if turn.mode != "chat":
        return shortfalls
    steps = {step.step: step for step in turn.steps()}
    reasons = []
    for goal in progress.goals:
        outward = [steps[number] for number in goal.steps if TOOLS[steps[number].tool].reaches_out]
        has_failed = bool(outward) and all(step.status != "success" for step in outward)
        if goal.status != "done" and has_failed:
            reasons.append(f"Not looked up: {one_line(goal.reason or outward[-1].error or '')}.")
    return [*shortfalls, *dict.fromkeys(reasons)]
