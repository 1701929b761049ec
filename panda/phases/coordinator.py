"""Phase 4: the tool loop (S3 §16, §26). What a tool gives is kept whole in steps/, §4 shows it."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

from msgspec import convert, structs

from panda.compression.fit import fit_section
from panda.documents.context import Phase
from panda.documents.record_codec import encode
from panda.documents.times import parse_time
from panda.errors import FileFormatError, StoreError
from panda.memory.budget import LONGEST_LINE_CHARS
from panda.memory.reader import NodeReader
from panda.phases.goals import goals_progress, ready_goals
from panda.phases.pages import OPENING, live_pages
from panda.phases.phase_contract import PhaseResult
from panda.phases.recipe_request import ask
from panda.phases.running_turn import Turn
from panda.phases.tool_outcome import render_results, render_section
from panda.phases.turn_evidence import as_options, look_at, standing, tool_lines
from panda.recipes.executor import RecipeExecutor
from panda.recipes.reply import Reply
from panda.session.registry import uses_excluded
from panda.session.turn_files import call_digest, step_type, type_of_tool
from panda.steps.all_steps import COORDINATION
from panda.steps.inputs import CoordinationInputs
from panda.steps.options import Option
from panda.steps.reply_contents import CoordinationReply
from panda.steps.step_contract import R, StepContract
from panda.store.carry import CachedStep
from panda.store.layout import TOOLRESULTS_MD
from panda.store.records import (
    FileRecord,
    GoalProgress,
    Plan,
    Progress,
    Reused,
    Staged,
    StagedMemory,
    Step,
    load,
)
from panda.tools.table import TOOLS, describe_tools, fill_arguments, run_tool, why_unavailable
from panda.tools.tool_contract import ToolContext, ToolResult

MOST_ROUNDS = 10
MOST_CALLS = 20
MOST_FAILURES = 3
_DONE = "done"
Arguments = Mapping[str, Any]
Calls = Sequence[Arguments]


def reused_step(turn: Turn, step: Step, reader: NodeReader) -> Step | None:
    """
    A step with the result that an earlier turn of the session got for the same call; None if none did, it
    does not read, something was written since, it has expired, or is wanted anew.
    """
    digest = call_digest(step.tool, step.arguments)
    cached = next((entry for entry in reversed(turn.carry.step_cache) if entry.call == digest), None)
    earlier_step = _result(turn, cached) if cached else None
    if earlier_step is None or cached is None or _written_since(turn, cached, reader):
        return None
    return structs.replace(with_result(step, earlier_step), reused=earlier_step.reused)


def reused_steps(turn: Turn) -> list[Step]:
    newest = (_result(turn, cached) for cached in turn.carry.step_cache if cached.detail == "full")
    return [
        structs.replace(step, step=n, plan=turn.round, round=1, note=None, conclusion=None)
        for n, step in enumerate(filter(None, newest), 1)
    ]


def with_result(step: Step, result: ToolResult | Step) -> Step:
    result_fields = {name: getattr(result, name) for name in ToolResult.__dataclass_fields__}
    return structs.replace(step, **{**result_fields, "data": encode(result.data)})


def _result(turn: Turn, cached: CachedStep) -> Step | None:
    try:
        step = load(Step, turn.store.place(cached.path))
    except (StoreError, FileFormatError):
        turn.warn(f"{cached.path} cannot be read; the call is made again")
        return None
    if step.status != "success" or step_type(step) not in ("read", "analyze"):
        return None
    now = turn.context.front.created_at
    expiries = [parse_time(claim.expires_at) for claim in step.claims if claim.expires_at]
    if any(at <= now for at in expiries) or turn.analysis.data_requirements.needs_live_data:
        return None
    return structs.replace(step, artifacts=(), seconds=None, reused=Reused(cached.turn, cached.step))


def _written_since(turn: Turn, cached: CachedStep, reader: NodeReader) -> bool:
    later = [
        entry for entry in turn.carry.step_cache if (entry.turn, entry.step) > (cached.turn, cached.step)
    ]
    if any(type_of_tool(entry.tool) == "write" for entry in later):
        return True
    if any(step_type(step) == "write" for step in turn.steps()):
        return True
    got = next((recent.timestamp for recent in turn.carry.recent_turns if recent.turn == cached.turn), None)
    return got is None or reader.asserted_since(parse_time(got))


@dataclass(frozen=True)
class Coordinator:
    """Writes §4, steps/, toolresults.md and staged_memory.json, and the progress in plan.json."""

    number = Phase.COORDINATOR
    layer = "MIND"

    executor: RecipeExecutor  # asks the recipe
    context_of: Callable[[Turn], ToolContext]  # gives what the tools of a turn may touch

    def run(self, turn: Turn) -> PhaseResult:
        plan = turn.plan
        loop = _Loop(self.executor, self.context_of(turn), turn, plan)
        ending, reason = loop.run()
        goals = goals_progress(plan.goals, loop.current, said_done=loop.said_done, ended=True)
        progress = Progress(
            ending=ending, reason=reason, rounds=loop.rounds, calls=len(loop.current), goals=goals
        )
        turn.folder.write_text(TOOLRESULTS_MD, render_results(loop.steps))
        memory_steps = [
            step for step in loop.steps if step.tool == "memory.create" and step.status == "success"
        ]
        staged = [step.data["staged"] for step in memory_steps if step.data["staged"] is not None]
        files: list[FileRecord] = [structs.replace(plan, progress=progress)]
        if staged:
            files.append(StagedMemory(staged=convert(staged, tuple[Staged, ...]), applied=False))
        return PhaseResult(render_section(loop.steps, progress), tuple(files))


@dataclass(frozen=True)
class _PlannedCall:
    tool: str
    arguments: Arguments
    goal: str  # id of the goal that it serves
    is_worded: bool = False  # whether the reply has the arguments; else the tool suggests them


class _Loop:
    """The rounds of one run of the phase; a resumed one takes the steps that a killed one has made."""

    def __init__(self, executor: RecipeExecutor, context: ToolContext, turn: Turn, plan: Plan) -> None:
        self._executor = executor
        pages = tuple(page.text for page in live_pages(turn, context.reader))
        statements = tuple(statement.text for statement in turn.reading.statements)
        self._context = dataclasses.replace(
            context, pages=pages, noted_texts=statements, ask=self._ask_for_tool
        )
        self._turn = turn
        self._plan = plan
        self._recipe = executor.book.recipe_for(COORDINATION.name, turn.mode, turn.intent)
        self._available = [n for n in self._recipe.tools_available if why_unavailable(n, context) is None]
        self._carry = turn.present_carry
        self._query = turn.analysis.resolved_query
        on_disk = turn.steps()
        self.steps: list[Step] = [step for step in on_disk if step.plan < turn.round]
        self._made: Sequence[Step] = on_disk[len(self.steps) :]
        self.current: list[Step] = []
        self.rounds = 0
        self.said_done: list[str] = []
        self._notices: list[str] = []
        self._failures: list[tuple[str, str | None]] = []

    def run(self) -> tuple[Literal["done", "blocked", "limited"], str | None]:
        while self.rounds < MOST_ROUNDS and self._available:
            suggested = self._suggested()
            reply = self._ask(suggested)
            self.rounds += 1
            self.said_done = list(dict.fromkeys([*self.said_done, *reply.content.goals_done]))
            for call in self._calls_of(reply, suggested):
                if call.tool == _DONE:
                    self._take_over()
                    self._conclude(reply.content.conclusion)
                    return "done", None
                if len(self.current) >= MOST_CALLS:
                    return "limited", f"{MOST_CALLS} tool calls"
                self._make(call, reply)
                blocked = self._blocked()
                if blocked:
                    return "blocked", blocked
        if not self._available:
            return "done", None
        return "limited", f"{MOST_ROUNDS} rounds"

    def _suggested(self) -> Mapping[str, Calls]:
        """Return what each tool that can be used suggests for the query, those of the plan first."""
        planned = [name for name in self._plan.tools if name in self._available]
        names = dict.fromkeys([*planned, *self._available])
        return {name: fill_arguments(TOOLS[name], self._query, self._context) for name in names}

    def _not_made(self, suggested: Mapping[str, Calls]) -> Mapping[str, Calls]:
        """Return the suggested calls that were not made yet, of tools that have any."""
        opened = [step.arguments["url"] for step in self.steps if step.tool in OPENING]
        left = {
            name: [
                arguments
                for arguments in calls
                if self._twin(name, arguments) is None and arguments.get("url") not in opened
            ]
            for name, calls in suggested.items()
        }
        return {name: calls for name, calls in left.items() if calls}

    def _ask(self, suggested: Mapping[str, Calls]) -> Reply[CoordinationReply]:
        progress = goals_progress(self._plan.goals, self.current, said_done=self.said_done)
        goal_states = [f"{goal.id}: {self._state_of(goal)}" for goal in progress] + self._notices
        pages = live_pages(self._turn, self._context.reader) if "web.fetch" in suggested else []
        results = cache(self._results)
        not_made = self._not_made(suggested)
        return ask(
            self._executor,
            COORDINATION,
            self._turn,
            options={
                "tool": [Option(name, name) for name in (*suggested, _DONE)],
                "goal": [Option(goal.id, goal.goal) for goal in self._plan.goals],
                "results": results,
                "pages": pages,
            },
            inputs=CoordinationInputs(
                mode=self._turn.mode,
                planned=self._plan.tools,
                waiting=[*not_made],
                tried=[step.tool for step in self.current],
                pages=pages if "web.fetch" in not_made else [],
                results=results,
            ),
            variables={
                "tools": describe_tools(self._available, self._context),
                "today": self._turn.today,
            },
            arguments={name: TOOLS[name].argument_schema for name in suggested},
            extra={
                "toolresults.md": partial(render_results, tuple(self.steps)),
                "progress": "\n".join(goal_states),
            },
        )

    def _state_of(self, goal: GoalProgress) -> str:
        """Return a goal's state for a prompt: whether results fulfil it is for the reply to say."""
        is_unjudged = goal.status == "done" and goal.id not in self.said_done
        return "open, something was found" if is_unjudged else goal.status

    def _results(self) -> list[Option]:
        claims = tool_lines(self._turn, self._context.reader, self.steps)
        return as_options(standing(look_at(self._turn, claims, quotes=False)))

    def _ask_for_tool(self, contract: StepContract[R], /, **request_parts: Any) -> R:
        return ask(self._executor, contract, self._turn, **request_parts).content

    def _calls_of(
        self, reply: Reply[CoordinationReply], suggested: Mapping[str, Calls]
    ) -> Iterator[_PlannedCall]:
        goals = self._plan.goals
        progress = goals_progress(goals, self.current, said_done=self.said_done)
        (first, *_) = ready_goals(goals, progress) or goals
        for call in reply.content.calls:
            goal = call.goal or first.id
            if call.arguments is not None:
                yield _PlannedCall(call.tool, call.arguments, goal, is_worded=True)
                continue
            for arguments in self._not_made(suggested).get(call.tool) or suggested.get(call.tool) or [{}]:
                yield _PlannedCall(call.tool, arguments, goal)

    def _make(self, planned: _PlannedCall, reply: Reply[CoordinationReply]) -> None:
        tool = planned.tool
        arguments = planned.arguments
        twin = self._twin(tool, arguments)
        refused = ""
        worded = map(str, arguments.values()) if planned.is_worded else ()
        excluded = uses_excluded(worded, self._carry)
        if twin is not None:
            refused = f"{tool} was called like that in step {twin.step}; see what it gave"
        elif excluded:
            refused = f"{tool} would use what the user ruled out: {excluded[0].label}"
        if refused:
            self._notices.append(refused)
            self._failures.append((tool, refused))
            return
        step = Step(
            step=len(self.steps) + 1,
            plan=self._turn.round,
            round=self.rounds,
            goal=planned.goal,
            tool=tool,
            kind=TOOLS[tool].kind if tool in TOOLS else None,
            arguments=dict(arguments),
            note=reply.content.note,
            conclusion=reply.content.conclusion,
            status="started",
        )
        reader = self._context.reader
        settled = self._taken_up(step) or reused_step(self._turn, step, reader) or self._recorded(step)
        step = settled or with_result(step, self._run(step))
        self._keep(step)
        self._failures.append((tool, None if step.status == "success" else step.error))
        self._append()

    def _keep(self, step: Step) -> None:
        self._turn.folder.save(step)
        self.steps.append(step)
        self.current.append(step)

    def _take_over(self) -> None:
        """Without a call of its own, a turn that has enough rests on what the session's last calls gave."""
        if not self.steps:
            for step in reused_steps(self._turn):
                self._keep(step)
        if self.steps:
            self._append()

    def _conclude(self, conclusion: str | None) -> None:
        """Keep with the last step what the reply that ends the phase says of the results."""
        if conclusion and self.current and self.current[-1].conclusion is None:
            concluded = structs.replace(self.current[-1], conclusion=conclusion)
            self._turn.folder.save(concluded)
            self.steps[-1] = concluded
            self.current[-1] = concluded
            self._append()

    def _run(self, step: Step) -> ToolResult:
        def intend(result: ToolResult) -> None:
            self._turn.folder.save(structs.replace(with_result(step, result), status="started"))

        context = dataclasses.replace(self._context, step=step.step, intend=intend)
        with self._turn.as_one_execution():
            result = run_tool(step.tool, step.arguments, context)
        if isinstance(result.data, dict):
            for fault in result.data.get("faults", ()):
                self._turn.warn(fault)
        for claim in result.claims:
            if len(claim.text) > LONGEST_LINE_CHARS:
                message = f"a line of {len(claim.text):,} characters is too long to quote ({claim.source})"
                self._turn.warn(f"{step.tool}: {message}")
        quotable = tuple(claim for claim in result.claims if len(claim.text) <= LONGEST_LINE_CHARS)
        return dataclasses.replace(result, claims=quotable)

    def _taken_up(self, step: Step) -> Step | None:
        made_step = self._made[len(self.current)] if len(self.current) < len(self._made) else None
        workspace = self._context.workspace
        if made_step is None or (made_step.tool, made_step.arguments) != (step.tool, step.arguments):
            return None
        if workspace is not None and workspace.dry and step.kind == "write":
            return None  # the change was in memory alone and has to be made there again
        if workspace is None or made_step.status != "started":
            return made_step
        return workspace.settle_change(made_step)

    def _recorded(self, step: Step) -> Step | None:
        tool = TOOLS.get(step.tool)
        is_recorded = tool is not None and tool.reaches_out
        recorded = self._turn.recordings.step(step.tool, step.arguments) if is_recorded else None
        return with_result(step, recorded) if recorded is not None else None

    def _append(self) -> None:
        section, _ = fit_section(render_section(self.steps, None), query=self._turn.query)
        self._turn.write_context(self._turn.context.without(4).with_section(section))
        self._turn.folder.write_text(TOOLRESULTS_MD, render_results(self.steps))

    def _twin(self, tool: str, arguments: Arguments) -> Step | None:
        for step in reversed(self.steps):
            if (step.tool, step.arguments) == (tool, dict(arguments)):
                return step
            if any(entity.type == "file" and entity.op != "read" for entity in step.entities):
                return None
        return None

    def _blocked(self) -> str | None:
        last = self._failures[-MOST_FAILURES:]
        if len(last) == MOST_FAILURES and all(error for _, error in last):
            return f"{MOST_FAILURES} calls in a row failed, at last {last[-1][0]}: {last[-1][1]}"
        tool, error = self._failures[-1]
        failed = sum(failed_tool == tool and fault is not None for failed_tool, fault in self._failures)
        return f"{tool} failed {failed} times: {error}" if error and failed >= MOST_FAILURES else None
