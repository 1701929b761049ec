"""Phase 4: the tool loop (S3 §16, §26). What a tool gives is kept whole in steps/, §4 shows it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panda.documents.context import Block, Meta, Section, Text
from panda.documents.sentences import one_line
from panda.phases.asking import ask
from panda.phases.contract import Advance
from panda.phases.evidence_spans import tool_spans
from panda.phases.turn import Turn
from panda.recipes.choices import Option
from panda.recipes.executor import RecipeExecutor
from panda.storage.layout import PLAN_JSON, QUERY_ANALYSIS_JSON, STAGED_MEMORY_JSON, TOOLRESULTS_MD
from panda.tools.contract import ToolContext
from panda.tools.statements import statement_values
from panda.tools.table import run_tool

_MOST_STEPS = 4
_DONE = "done"
_SHOWN_CLAIMS = 8


@dataclass(frozen=True)
class _Action:
    """One call that may be made; nothing else can be."""

    tool: str
    """The tool."""
    arguments: Mapping[str, Any]
    """Its arguments, spans of the query."""


class Coordinator:
    """
    Writes §4, steps/, toolresults.md and staged_memory.json.

    Args:
        executor: Asks the recipe.
        context_of: Gives what the tools of a turn may touch.
    """

    number = 4
    name = "coordinator"
    layer = "MIND"

    def __init__(self, executor: RecipeExecutor, context_of: Callable[[Turn], ToolContext]) -> None:
        self._executor = executor
        self._context_of = context_of

    def run(self, turn: Turn) -> Advance:
        """Choose a call, make it, look at what it gave; until done, or nothing is left to try."""
        waiting = self._actions(turn)
        context = self._context_of(turn)
        steps = turn.steps()
        while waiting and len(steps) < _MOST_STEPS:
            tool = self._choose(turn, waiting)
            if tool == _DONE:
                break
            action = next(action for action in waiting if action.tool == tool)
            waiting.remove(action)
            result = run_tool(action.tool, action.arguments, context)
            number = len(steps) + 1
            value = json.loads(
                json.dumps(result.to_json(step=number, tool=action.tool, arguments=action.arguments))
            )
            turn.write_step(number, value)
            steps = turn.steps()
        turn.folder.write_text(TOOLRESULTS_MD, _render_results(steps))
        staged = [step["data"]["staged"] for step in steps if _is_staged(step)]
        files = {STAGED_MEMORY_JSON: {"staged": staged, "applied": False}} if staged else {}
        return Advance(_render_section(steps), files)

    def _actions(self, turn: Turn) -> list[_Action]:
        recipe = self._executor.book.recipe_for("phase4_coordinator", turn.mode)
        planned = turn.read(PLAN_JSON)["tools"]
        query = turn.read(QUERY_ANALYSIS_JSON)["resolved_query"]
        order = [*planned, *(name for name in recipe.tools_available if name not in planned)]
        actions = []
        for tool in order:
            if tool == "memory.create":
                actions += [
                    _Action(
                        tool,
                        {"kind": "preference", "relation": key, "value": value, "text": one_line(turn.query)},
                    )
                    for key, value in statement_values(turn.query)
                ]
            else:
                actions.append(_Action(tool, {"query": query[:2000]}))
        return actions

    def _choose(self, turn: Turn, waiting: Sequence[_Action]) -> str:
        names = dict.fromkeys(action.tool for action in waiting)
        options = [Option(name, name) for name in names] + [Option(_DONE, _DONE)]
        results = tool_spans(turn)
        reply = ask(
            self._executor,
            "phase4_coordinator",
            turn,
            options={"tool": options, "results": results},
            extra={"toolresults.md": _render_results(turn.steps())},
        )
        return str(reply.values["tool"])


def _is_staged(step: Mapping[str, Any]) -> bool:
    return bool(step["tool"] == "memory.create" and step["status"] == "success")


def _render_section(steps: Sequence[Mapping[str, Any]]) -> Section:
    blocks: list[Block] = []
    for step in steps:
        node_ids = list(dict.fromkeys(claim["node_id"] for claim in step["claims"] if claim["node_id"]))
        sources = list(dict.fromkeys(claim["source"] for claim in step["claims"]))
        blocks.append(
            Meta(
                {
                    "step": step["step"],
                    "tool": step["tool"],
                    "status": step["status"],
                    "node_ids": node_ids,
                    "provenance": sources,
                }
            )
        )
        lines = [
            f"- {one_line(claim['text'])} [{claim['source']}]" for claim in step["claims"][:_SHOWN_CLAIMS]
        ]
        more = len(step["claims"]) - _SHOWN_CLAIMS
        lines += [f"- […] {more} more in steps/step_{step['step']:02d}.json"] if more > 0 else []
        lines += [f"- error: {one_line(step['error'])}"] if step["error"] else []
        blocks.append(Text("\n".join(lines) or "- nothing found"))
    return Section(4, tuple(blocks) or (Text("No tool was called."),))


def _render_results(steps: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for step in steps:
        lines = [f"## Step {step['step']}: {step['tool']} ({step['status']})", ""]
        lines += [f"- {one_line(claim['text'])} ({claim['source']})" for claim in step["claims"]]
        lines += [f"- error: {one_line(step['error'])}"] if step["error"] else []
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n" if parts else ""
