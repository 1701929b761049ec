"""The loop over the phases: run one, apply its outcome, go on. Knows no phase by name."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from msgspec import UNSET, UnsetType, structs

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
    Problem,
    RecipeError,
)
from panda.models.contract import Usage
from panda.phases.contract import Advance, Outcome, Phase, Retry, Stop
from panda.phases.turn import Turn
from panda.recipes.calls import whose_turn
from panda.recipes.executor import RecipeExecutor, passage_rewriter
from panda.recipes.versions import version_in_force
from panda.store.files import append_json_line
from panda.store.interventions import write_intervention
from panda.store.records import (
    ContextMetrics,
    GatheredContext,
    Metrics,
    Next,
    PhaseMetrics,
    Status,
    Totals,
)

_log = logging.getLogger(__name__)


class Pipeline:
    """
    The phases in order of their numbers; the last one saves.

    Args:
        limits: What the user has set of how context.md is kept within its budgets.
        executor: Asks NERVES to word passages anew where it writes; None leaves that out.
    """

    def __init__(
        self, phases: Sequence[Phase], limits: Limits, executor: RecipeExecutor | None = None
    ) -> None:
        self._phases = {phase.number: phase for phase in phases}
        self._last = phases[-1].number
        self._limits, self._executor = limits, executor

    def run(self, turn: Turn, *, before: int | None = None) -> None:
        """
        Take a turn from where its metadata says to its end, or *before* a phase unless it is ending.

        Raises:
            HaltError: A phase cannot go on; the intervention is written, metadata says halted.
            RecipeError: The same for a recipe or model that turned out to be broken.
            StoreError: A file cannot be read or written; metadata says interrupted if it can be written.
        """
        seconds: dict[int, float] = {}
        while (metadata := turn.folder.read_metadata()).next is not None:
            turn.take_up(metadata)
            if before is not None and metadata.next.phase == before and metadata.ending is None:
                self._write_metrics(turn, seconds)
                break
            phase = self._phases[metadata.next.phase]
            with self.guard(turn, phase.number, seconds):
                _log.info("phase %d: %s (%s)", phase.number, phase.name, phase.layer)
                kept = tuple(one for one in turn.context.sections if one.number < phase.number)
                if kept != turn.context.sections:  # an earlier run of this phase or of later ones left some
                    turn.write_context(replace(turn.context, sections=kept))
                started = time.monotonic()
                try:
                    outcome = phase.run(turn)
                except HaltError as exc:
                    outcome = _put_back(turn, phase, exc)
                seconds[phase.number] = seconds.get(phase.number, 0.0) + time.monotonic() - started
                self._apply(turn, phase, outcome, seconds)

    @contextmanager
    def guard(self, turn: Turn, number: int, seconds: Mapping[int, float] | None = None) -> Iterator[None]:
        """What stops the block, some work of a phase, stops the turn; raises as run."""
        try:
            yield
        except (HaltError, FileFormatError, NotFoundError) as exc:
            error: Problem = exc
            if not isinstance(exc, HaltError | RecipeError | ModelFileError):  # a file that does not read
                error = MemoryNodeError(exc.message, where=exc.where, fix=exc.fix)
            version = None
            if self._executor is not None and turn.recipe:
                version = version_in_force(self._executor.book, turn.recipe).digest
            intervention = write_intervention(
                turn.store, error, turn=turn.turn, phase=number, recipe=turn.recipe, version=version
            )
            self._write_metrics(turn, seconds or {})
            mark_turn(turn, "halted", intervention)
            raise error from exc
        except (KeyboardInterrupt, Problem):
            with suppress(Problem):  # what stopped the turn may stop this too, and is told below
                mark_turn(turn, "interrupted", None)
            raise

    def _apply(self, turn: Turn, phase: Phase, outcome: Outcome, seconds: Mapping[int, float]) -> None:
        metadata = turn.folder.read_metadata()
        going_on = metadata.next
        assert going_on is not None
        for record in () if isinstance(outcome, Retry) else outcome.files:
            turn.folder.save(record)
        if outcome.section is not None:
            self._write_section(turn, outcome.section)
        if outcome.section is not None or not isinstance(outcome, Stop):
            metadata = structs.replace(metadata, route=(*metadata.route, phase.number))
        match outcome:
            case Advance():
                following = phase.number + 1 if outcome.to is None else outcome.to
                ending = metadata.ending or ("approved" if following == self._last else None)
                going_on = structs.replace(going_on, phase=following)
                metadata = structs.replace(metadata, status="running", next=going_on, ending=ending)
                if outcome.answered is not None:
                    metadata = structs.replace(metadata, answered=outcome.answered)
                if phase.number == self._last:
                    self._write_metrics(turn, seconds)
                    saved_at = turn.folder.clock()
                    metadata = structs.replace(
                        metadata, status=ending or "running", next=None, saved_at=saved_at
                    )
            case Stop():
                going_on = structs.replace(going_on, phase=self._last)
                metadata = structs.replace(metadata, next=going_on, ending=outcome.status, answered=False)
                metadata = structs.replace(metadata, question=outcome.question, reason=outcome.reason)
            case Retry():
                again = [one.number for one in turn.context.sections if one.number >= outcome.to]
                turn.folder.supersede(again, going_on.round + going_on.attempt + 1)
                if outcome.to == phase.number - 1:
                    going_on = Next(outcome.to, going_on.round, going_on.attempt + 1)
                else:
                    going_on = Next(outcome.to, going_on.round + 1, going_on.attempt)
                metadata = structs.replace(metadata, next=going_on, reason=outcome.reason)
        turn.folder.write_metadata(metadata)

    def _write_section(self, turn: Turn, section: Section) -> None:
        """context.md with the section, both within their budgets; what that took is warned of and logged."""
        executor = self._executor
        document, cuts = fit_context(
            turn.context.with_section(section),
            section.number,
            query=turn.query,
            limits=self._limits,
            rewriter=lambda kind: passage_rewriter(executor, kind, turn.query, turn) if executor else None,
        )
        for cut in cuts:
            turn.warn(f"{cut.name} cut from {cut.before_tokens} to {cut.after_tokens} tokens")
            now, layer, model = render_time(turn.folder.clock()), None, None
            if executor is not None and cut.method == REWRITE:
                layer, model = executor.runs(RECIPES[cut.content_type])
            line = compressed_line(cut, timestamp=now, recipe=None, layer=layer, model=model)
            append_json_line(turn.store.executions_log, {**line, **whose_turn(turn)})
        turn.write_context(document)

    def _write_metrics(self, turn: Turn, seconds: Mapping[int, float]) -> None:
        """metrics.json: calls, tokens and seconds by phase and in all, and what phase 2 measured."""
        rows: list[PhaseMetrics] = []
        total = Usage(0, 0, 0)
        for number, phase in self._phases.items():
            calls = [call for call in turn.calls if call.phase == number]
            if calls or number in seconds:
                usage = sum((Usage(**structs.asdict(call.usage)) for call in calls), Usage(0, 0, 0))
                total += usage
                row = PhaseMetrics(
                    phase=number,
                    layer=phase.layer,
                    recipes=tuple(dict.fromkeys(call.recipe for call in calls)),
                    calls=len(calls),
                    **_tokens(usage),
                    seconds=round(seconds[number], 3) if number in seconds else None,
                )
                rows.append(row)
        whole = Totals(calls=len(turn.calls), **_tokens(total), seconds=round(sum(seconds.values()), 3))
        context: ContextMetrics | UnsetType = UNSET
        with suppress(FileFormatError):  # a damaged file halts the phase that needs it, not this
            gathered = turn.folder.find(GatheredContext)
            context = gathered.metrics if gathered else UNSET
        turn.folder.save(Metrics(phases=tuple(rows), totals=whole, context=context))


def mark_turn(turn: Turn, status: Status, intervention: str | None = None) -> None:
    """Write how a turn stands that has not ended."""
    metadata = turn.folder.read_metadata()
    turn.folder.write_metadata(structs.replace(metadata, status=status, intervention=intervention))


def _tokens(usage: Usage) -> dict[str, int | None]:
    return {"prompt_tokens": usage.prompt, "reused_tokens": usage.reused, "output_tokens": usage.output}


def _put_back(turn: Turn, phase: Phase, error: HaltError) -> Advance:
    """
    The last attempt that had passed its checks, in the place of one that was to be better and halted.

    A section that asks for a retry says in `issues` what is wrong by the checks; a judgement alone leaves
    that empty. The phase that judged goes on, and judges again. Raises *error* if there is no such attempt.
    """
    attempts = turn.superseded()
    lasts = [document.sections[-1] for document in attempts]
    passed = [k for k, s in enumerate(lasts) if s.meta.get("issues") == [] and s.number > phase.number]
    if not passed:
        raise error
    judge = lasts[passed[-1]].number
    document = turn.context
    for number in range(phase.number, judge):  # what this one kept of an earlier one stands in a later one
        kept = (section for one in attempts[passed[-1] :] if (section := one.section(number)))
        if section := next(kept, None):
            document = document.with_section(section)
    turn.write_context(document)
    turn.folder.put_back_response(passed[-1] + 1)
    turn.warn(f"what was to be better failed, the answer before is kept: {error.message}")
    return Advance(to=judge)
