"""What tools gave, as §4 and as toolresults.md."""

from collections.abc import Mapping, Sequence
from typing import Any

from panda.documents.context import Block, Meta, Section, Text
from panda.documents.text import one_line
from panda.storage.layout import step_name

_SHOWN_CLAIMS = 8
_SHOWN_LINES = 120

Steps = Sequence[Mapping[str, Any]]


def render_section(steps: Steps, progress: Mapping[str, Any] | None) -> Section:
    """
    §4: a `_meta` block and the findings of every call, and at the end how the loop ended.

    Args:
        steps: The steps, as in steps/.
        progress: As in plan.json; None while the loop runs.
    """
    blocks: list[Block] = []
    for step in steps:
        blocks += [Meta(_meta(step)), Text("\n".join(_step_lines(step)))]
    if not steps:
        blocks.append(Text("No tool was called."))
    if progress is not None:
        ending = {key: progress[key] for key in ("ending", "rounds", "calls")}
        blocks += [Meta(ending), Text("\n".join(ending_lines(progress)))]
    return Section(4, tuple(blocks))


def _meta(step: Mapping[str, Any]) -> dict[str, object]:
    claims = step["claims"]
    return {
        "step": step["step"],
        "tool": step["tool"],
        "goal": step["goal"],
        "status": step["status"],
        "node_ids": list(dict.fromkeys(claim["node_id"] for claim in claims if claim["node_id"])),
        "provenance": list(dict.fromkeys(claim["source"] for claim in claims)),
    }


def _step_lines(step: Mapping[str, Any]) -> list[str]:
    file = step_name(step["step"])
    lines = [f"- {one_line(claim['text'])} [{claim['source']}]" for claim in step["claims"][:_SHOWN_CLAIMS]]
    more = len(step["claims"]) - _SHOWN_CLAIMS
    lines += [f"- […] {more} more in {file}"] if more > 0 else []
    lines += [f"- error: {one_line(step['error'])}"] if step["error"] else []
    shown = step["text"].splitlines()
    lines += [f"    {line}" for line in shown[:_SHOWN_LINES]]
    more = len(shown) - _SHOWN_LINES
    lines += [f"    […] {more} more lines in {file}"] if more > 0 else []
    lines += [f"- note: {one_line(step['note'])}"] if step["note"] else []
    lines += [f"- conclusion: {one_line(step['conclusion'])}"] if step["conclusion"] else []
    return lines or ["- nothing found"]


def ending_lines(progress: Mapping[str, Any]) -> list[str]:
    """
    How a loop of tools ended, and how far each goal came.

    >>> ending_lines({"ending": "limited", "reason": "10 rounds", "goals": []})
    ['**Ended:** limited (10 rounds)']
    """
    reason = f" ({progress['reason']})" if progress["reason"] else ""
    goals = [
        f"- {goal['id']}: {goal['status']}" + (f" ({one_line(goal['reason'])})" if goal["reason"] else "")
        for goal in progress["goals"]
    ]
    return [f"**Ended:** {progress['ending']}{reason}", *goals]


def render_results(steps: Steps) -> str:
    """
    toolresults.md: every call with its whole findings; what tools quote is indented, so that no line of a
    file or page can pass for one of ours.
    """
    parts = []
    for step in steps:
        lines = [f"## Step {step['step']}: {step['tool']} ({step['status']})", ""]
        lines += [f"- {one_line(claim['text'])} ({claim['source']})" for claim in step["claims"]]
        lines += [f"- error: {one_line(step['error'])}"] if step["error"] else []
        lines += [f"    {line}" for line in step["text"].splitlines()]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n" if parts else ""
