"""The loop over the phases: run one, apply its outcome, go on. Knows no phase by name."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TypeVar

from panda.compression.budgets import Limits
from panda.compression.documents import RECIPES, REWRITE, compressed_line
from panda.compression.sections import fit_context
from panda.documents.context import Section
from panda.documents.times import render_time
from panda.errors import (
    FileFormatError,
    HaltError,
    MemoryNodeError,
    ModelFileError,
    NotFoundError,
    PandaError,
    RecipeError,
)
from panda.models.contract import Usage
from panda.phases.contract import Advance, Outcome, Phase, Retry, Stop
from panda.phases.turn import Turn
from panda.recipes.calls import whose_turn
from panda.recipes.executor import RecipeExecutor, passage_rewriter
from panda.storage.formats import Next, Status
from panda.storage.layout import GATHERED_CONTEXT_JSON, METRICS_JSON

Result = TypeVar("Result")
Watch = Callable[[Phase], None]
"""Told of each phase before it runs."""


class Pipeline:
    """
    The phases in order of their numbers; the last one saves.

    Args:
        on_halt: Writes the intervention of a halt and gives its id.
        log: Takes one line of the executions log.
        limits: What the user has set of how context.md is kept within its budgets.
        executor: Asks NERVES to word passages anew where it writes; None leaves that out.
    """

    def __init__(
        self,
        phases: Sequence[Phase],
        on_halt: Callable[[Turn, Phase, PandaError], str],
        *,
        count: Callable[[str], int],
        log: Callable[[Mapping[str, object]], None],
        limits: Limits,
        executor: RecipeExecutor | None = None,
    ) -> None:
        self._phases = {phase.number: phase for phase in phases}
        self._last = phases[-1].number
        self._on_halt = on_halt
        self._count = count
        self._log = log
        self._limits = limits
        self._executor = executor

    def run(self, turn: Turn, watch: Watch = lambda phase: None, *, before: int | None = None) -> None:
        """
        Take a turn from where its metadata says to its end.

        Args:
            before: Stop before this phase, unless the turn is ending; None does not stop.

        Raises:
            HaltError: A phase cannot go on; the intervention is written, metadata says halted.
            RecipeError: The same for a recipe or model that turned out to be broken.
            StoreError: A file cannot be read or written; metadata says interrupted if it can be written.
        """
        seconds: dict[int, float] = {}
        while (metadata := turn.folder.read_metadata()).next is not None:
            turn.take_up(metadata)
            if before is not None and metadata.next.phase == before and metadata.ending is None:
                turn.folder.write_json(METRICS_JSON, self._metrics(turn, seconds))
                break
            phase = self._phases[metadata.next.phase]
            with self._guarded(turn, phase, seconds):
                watch(phase)
                _drop_sections(turn, phase.number)
                started = time.monotonic()
                try:
                    outcome = phase.run(turn)
                except HaltError as exc:
                    outcome = _put_back(turn, phase, exc)
                seconds[phase.number] = seconds.get(phase.number, 0.0) + time.monotonic() - started
                self._apply(turn, phase, outcome, seconds)

    def look(self, turn: Turn, number: int, work: Callable[[], Result]) -> Result:
        """What some of a phase's work gives, nothing of it applied; what halts is handled as in run."""
        with self._guarded(turn, self._phases[number], {}):
            return work()

    @contextmanager
    def _guarded(self, turn: Turn, phase: Phase, seconds: Mapping[int, float]) -> Iterator[None]:
        try:
            yield
        except (HaltError, FileFormatError, NotFoundError) as exc:
            raise self._halted(turn, phase, exc, seconds) from exc
        except (KeyboardInterrupt, PandaError):
            with suppress(PandaError):  # what stopped the turn may stop this too, and is told below
                mark_turn(turn, "interrupted", None)
            raise

    def _halted(
        self, turn: Turn, phase: Phase, error: PandaError, seconds: Mapping[int, float]
    ) -> PandaError:
        """What the turn ends with: a file of the store that does not read is a halt, a recipe stays one."""
        if not isinstance(error, HaltError | RecipeError | ModelFileError):
            error = MemoryNodeError(error.message, where=error.where, fix=error.fix)
        intervention = self._on_halt(turn, phase, error)
        turn.folder.write_json(METRICS_JSON, self._metrics(turn, seconds))
        mark_turn(turn, "halted", intervention)
        return error

    def _apply(self, turn: Turn, phase: Phase, outcome: Outcome, seconds: Mapping[int, float]) -> None:
        metadata = turn.folder.read_metadata()
        assert metadata.next is not None
        for name, value in getattr(outcome, "files", {}).items():
            turn.folder.write_json(name, value)
        if outcome.section is not None:
            self._write_section(turn, outcome.section)
        route = (*metadata.route, phase.number)
        match outcome:
            case Advance():
                following = outcome.to if outcome.to is not None else phase.number + 1
                done = phase.number == self._last
                if done:
                    turn.folder.write_json(METRICS_JSON, self._metrics(turn, seconds))
                ending = metadata.ending or ("approved" if following == self._last else None)
                turn.folder.write_metadata(
                    replace(
                        metadata,
                        route=route,
                        next=None if done else replace(metadata.next, phase=following),
                        status=ending if done and ending else "running",
                        ending=ending,
                        saved_at=turn.folder.clock() if done else None,
                        answered=metadata.answered if outcome.answered is None else outcome.answered,
                    )
                )
            case Stop():
                passed = route if outcome.section is not None else metadata.route
                turn.folder.write_metadata(
                    replace(
                        metadata,
                        route=passed,
                        next=replace(metadata.next, phase=self._last),
                        ending=outcome.status,
                        answered=False,
                        question=outcome.question,
                        reason=outcome.reason,
                    )
                )
            case Retry():
                numbers = [
                    section.number for section in turn.context.sections if section.number >= outcome.to
                ]
                turn.folder.supersede(numbers, metadata.next.round + metadata.next.attempt + 1)
                near = outcome.to == phase.number - 1
                again, round_ = metadata.next.attempt + near, metadata.next.round + (not near)
                turn.folder.write_metadata(
                    replace(
                        metadata,
                        route=route,
                        next=Next(phase=outcome.to, round=round_, attempt=again),
                        reason=outcome.reason,
                    )
                )

    def _write_section(self, turn: Turn, section: Section) -> None:
        """context.md with the section, both within their budgets; what that took is warned of and logged."""
        document = turn.context.with_section(section)
        executor = self._executor
        document, cuts = fit_context(
            document,
            section.number,
            query=turn.query,
            count=self._count,
            limits=self._limits,
            rewriter=lambda kind: passage_rewriter(executor, kind, turn.query, turn) if executor else None,
        )
        for cut in cuts:
            turn.warn(f"{cut.name} cut from {cut.before_tokens} to {cut.after_tokens} tokens")
            now, layer, model = render_time(turn.folder.clock()), None, None
            if executor is not None and cut.method == REWRITE:
                layer, model = executor.runs(RECIPES[cut.content_type])
            line = compressed_line(cut, timestamp=now, recipe=None, layer=layer, model=model)
            self._log({**line, **whose_turn(turn)})
        turn.write_context(document)

    def _metrics(self, turn: Turn, seconds: Mapping[int, float]) -> dict[str, object]:
        phases, total = [], Usage(0, 0, 0)
        for number, phase in self._phases.items():
            calls = [call for call in turn.calls if call["phase"] == number]
            if number not in seconds and not calls:
                continue
            usage = Usage(0, 0, 0)
            for call in calls:
                usage += Usage(**call["usage"])
            total += usage
            phases.append(
                {
                    "phase": number,
                    "layer": phase.layer,
                    "recipes": list(dict.fromkeys(call["recipe"] for call in calls)),
                    "calls": len(calls),
                    **_tokens(usage),
                    "seconds": round(seconds[number], 3) if number in seconds else None,
                }
            )
        whole = {"calls": len(turn.calls), **_tokens(total), "seconds": round(sum(seconds.values()), 3)}
        return {"phases": phases, "totals": whole, **_context_metrics(turn)}


def _context_metrics(turn: Turn) -> dict[str, object]:
    """What phase 2 measured, if it has run."""
    with suppress(FileFormatError):  # a damaged file halts the phase that needs it, not this
        if turn.folder.has(GATHERED_CONTEXT_JSON):
            found = turn.read(GATHERED_CONTEXT_JSON).get("metrics")
            return {"context": found} if found else {}
    return {}


def _tokens(usage: Usage) -> dict[str, int | None]:
    return {"prompt_tokens": usage.prompt, "reused_tokens": usage.reused, "output_tokens": usage.output}


def _put_back(turn: Turn, phase: Phase, error: HaltError) -> Advance:
    """
    The last attempt that had passed its checks, in the place of one that was to be better and halted.

    A section that asks for a retry says in `issues` what is wrong by the checks; a judgement alone leaves
    that empty. The phase that judged goes on, and judges again.

    Raises:
        HaltError: *error*, if there is no such attempt.
    """
    attempts = turn.superseded()
    lasts = [document.sections[-1] for document in attempts]
    passed = [k for k, s in enumerate(lasts) if s.meta.get("issues") == [] and s.number > phase.number]
    if not passed:
        raise error
    judge = lasts[passed[-1]].number
    document = turn.context
    for number in range(phase.number, judge):  # what this one kept of an earlier one stands in a later one
        found = [section for one in attempts[passed[-1] :] if (section := one.section(number))]
        document = document.with_section(found[0]) if found else document
    turn.write_context(document)
    turn.folder.put_back_response(passed[-1] + 1)
    turn.warn(f"what was to be better failed, the answer before is kept: {error.message}")
    return Advance(to=judge)


def mark_turn(turn: Turn, status: Status, intervention: str | None = None) -> None:
    """Write how a turn stands that has not ended."""
    metadata = turn.folder.read_metadata()
    turn.folder.write_metadata(replace(metadata, status=status, intervention=intervention))


def _drop_sections(turn: Turn, first: int) -> None:
    """Take out what an earlier run of this phase or of later ones left in context.md."""
    document = turn.context
    for section in turn.context.sections:
        if section.number >= first:
            document = document.without(section.number)
    if document != turn.context:
        turn.write_context(document)
