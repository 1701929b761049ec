"""The loop over the phases: run one, apply its outcome, go on. Knows no phase by name."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from msgspec import UNSET, structs

from panda.compression.budgets import Limits
from panda.compression.fit import fit_context
from panda.documents.context import Phase, Section
from panda.errors import (
    FileFormatError,
    HaltError,
    MemoryNodeError,
    ModelFileError,
    NotFoundError,
    Problem,
    RecipeError,
)
from panda.phases.phase_contract import PhaseOutcome, PhaseResult, PipelinePhase, Retry, Stop
from panda.phases.running_turn import Turn, ask_unnoticed
from panda.recipes.calls import whose_turn
from panda.recipes.executor import RecipeExecutor, passage_rewriter
from panda.recipes.versions import version_in_force
from panda.store.execution_log import append_executions
from panda.store.files import raise_lost_interrupt
from panda.store.interventions import write_intervention
from panda.store.outcome import ANSWERED
from panda.store.records import GatheredContext, Metrics, ModelCall, Next, PhaseMetrics, Status, Totals

_log = logging.getLogger(__name__)


class Pipeline:
    """The phases in order of their numbers, the last of which saves; *executor* words passages anew."""

    def __init__(
        self, phases: Sequence[PipelinePhase], limits: Limits, executor: RecipeExecutor | None = None
    ) -> None:
        self._phases = {phase.number: phase for phase in phases}
        self._last = phases[-1].number
        self._limits = limits
        self._executor = executor

    def run(self, turn: Turn, *, before: int | None = None) -> None:
        """
        Take a turn from where its metadata says to its end, or *before* a phase unless it is ending.

        Raises:
            HaltError: A phase cannot go on; the intervention is written, metadata says halted.
            RecipeError: The same for a recipe or model that turned out to be broken.
            StoreError: A file cannot be read or written; metadata says interrupted if it can be written.
        """
        seconds: dict[int, float] = {}
        while (metadata := turn.metadata).next is not None:
            turn.begin_phase()
            if before is not None and metadata.next.phase == before and metadata.ending is None:
                self._write_metrics(turn, seconds)
                break
            phase = self._phases[Phase(metadata.next.phase)]
            with self.guard(turn, phase.number, seconds), self._telling(turn, phase):
                sections = tuple(
                    section for section in turn.context.sections if section.number < phase.number
                )
                if (
                    sections != turn.context.sections
                ):  # an earlier run of this phase or of later ones left some
                    turn.write_context(replace(turn.context, sections=sections))
                started = time.monotonic()
                try:
                    outcome = phase.run(turn)
                except HaltError as exc:
                    outcome = _put_back(turn, phase, exc)
                raise_lost_interrupt()
                seconds[phase.number] = seconds.get(phase.number, 0.0) + time.monotonic() - started
                self._apply(turn, phase, outcome, seconds)

    @contextmanager
    def _telling(self, turn: Turn, phase: PipelinePhase) -> Iterator[None]:
        """Tell of a phase once: with what serves it when that is first asked, at its end if nobody is."""
        is_of_run = turn.store.apart is not None or turn.metadata.run is not None
        if is_of_run:  # of which it is told which turn ended
            yield
            return
        served_by = self._executor.served_by(phase.layer) if self._executor else phase.layer
        is_asked = False

        def tell_asked() -> None:
            nonlocal is_asked
            if not is_asked:
                _log.info("phase %d: %s (%s)", phase.number, phase.number.label, served_by)
            is_asked = True

        turn.on_ask = tell_asked
        try:
            yield
        finally:
            turn.on_ask = ask_unnoticed
            if not is_asked:
                _log.info("phase %d: %s", phase.number, phase.number.label)

    @contextmanager
    def guard(self, turn: Turn, number: int, seconds: Mapping[int, float] | None = None) -> Iterator[None]:
        """Stop the turn if anything stops the block, some work of a phase; raises as run."""
        try:
            raise_lost_interrupt()
            yield
        except (HaltError, FileFormatError, NotFoundError) as exc:
            error: Problem = exc
            if not isinstance(exc, HaltError | RecipeError | ModelFileError):  # a file that does not read
                error = MemoryNodeError(exc.message, where=exc.where, fix=exc.fix)
            version = None
            if self._executor is not None and turn.recipe:
                version = version_in_force(self._executor.book, turn.recipe).version
            halt = write_intervention(
                turn.store, error, turn=turn.turn, phase=number, recipe=turn.recipe, version=version
            )
            self._write_metrics(turn, seconds or {})
            mark_turn(turn, "halted", halt)
            raise error from exc
        except (KeyboardInterrupt, Problem):
            with suppress(Problem):  # what stopped the turn may stop this too, and is told below
                mark_turn(turn, "interrupted")
            raise

    def _apply(
        self, turn: Turn, phase: PipelinePhase, outcome: PhaseOutcome, seconds: Mapping[int, float]
    ) -> None:
        metadata = turn.metadata
        changes: dict[str, object] = {}
        at = metadata.next
        assert at is not None
        if not isinstance(outcome, Retry):
            for record in outcome.files:
                turn.folder.save(record)
        if outcome.section is not None:
            self._write_section(turn, outcome.section)
        if outcome.section is not None or not isinstance(outcome, Stop):
            again = outcome.put_back if isinstance(outcome, PhaseResult) else ()
            changes["route"] = (*metadata.route, phase.number, *again)
        match outcome:
            case PhaseResult():
                following = phase.number + 1 if outcome.to is None else outcome.to
                ending = metadata.ending or ("approved" if following == self._last else None)
                changes |= {
                    "status": "running",
                    "next": Next(following, at.round, at.attempt),
                    "ending": ending,
                }
                if outcome.outcome is not None:
                    changes |= {"outcome": outcome.outcome, "answered": outcome.outcome in ANSWERED}
                if phase.number == self._last:
                    self._write_metrics(turn, seconds)
                    saved_at = turn.folder.clock()
                    changes |= {"status": ending or "running", "next": None, "saved_at": saved_at}
            case Stop():
                changes |= {"next": Next(self._last, at.round, at.attempt), "ending": outcome.status}
                changes |= {"answered": False, "question": outcome.question, "reason": outcome.reason}
            case Retry():
                gone = [section.number for section in turn.context.sections if section.number >= outcome.to]
                turn.folder.supersede(gone, at.round + at.attempt + 1)
                is_attempt = outcome.to == phase.number - 1
                again_at = Next(outcome.to, at.round + (not is_attempt), at.attempt + is_attempt)
                changes |= {"next": again_at, "reason": outcome.reason}
        turn.write_metadata(structs.replace(metadata, **changes))

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
            if executor is not None:
                line = structs.replace(executor.compressed(cut, None), **whose_turn(turn))
                append_executions(turn.store, [line])
        turn.write_context(document)

    def _write_metrics(self, turn: Turn, seconds: Mapping[int, float]) -> None:
        """metrics.json: calls, tokens and seconds by phase and in all, and what phase 2 measured."""
        by_phase = {number: [call for call in turn.calls if call.phase == number] for number in self._phases}
        rows = tuple(
            PhaseMetrics(
                phase=number,
                layer=self._phases[number].layer,
                recipes=tuple(dict.fromkeys(call.recipe for call in calls)),
                calls=len(calls),
                **_tokens(calls),
                seconds=round(seconds[number], 3) if number in seconds else None,
            )
            for number, calls in by_phase.items()
            if calls or number in seconds
        )
        spent = round(sum(seconds.values()), 3)
        whole = Totals(calls=len(turn.calls), **_tokens(turn.calls), seconds=spent)
        gathered = None
        with suppress(FileFormatError):  # a damaged file halts the phase that needs it, not this
            gathered = turn.folder.find(GatheredContext)
        context = gathered.metrics if gathered else UNSET
        turn.folder.save(Metrics(phases=rows, totals=whole, context=context))


def mark_turn(turn: Turn, status: Status, intervention: str | None = None) -> None:
    """Write how a turn stands, unless it has ended."""
    # Read anew: an interrupt may have come right after the rename that ended a phase, or the turn.
    metadata = turn.folder.read_metadata()
    if metadata.next is not None:
        turn.write_metadata(structs.replace(metadata, status=status, intervention=intervention))


def _tokens(calls: Sequence[ModelCall]) -> dict[str, int | None]:
    """Return the tokens of calls in all; a number that one call lacks is None."""
    kinds = ("prompt", "reused", "output")
    counts = {kind: [getattr(call.usage, kind) for call in calls] for kind in kinds}
    return {f"{kind}_tokens": None if None in each else sum(each) for kind, each in counts.items()}


def _put_back(turn: Turn, phase: PipelinePhase, error: HaltError) -> PhaseResult:
    """
    The last attempt that had passed its checks, in the place of one that was to be better and halted.

    A section that asks for a retry says in `issues` what is wrong by the checks; a judgement alone leaves
    that empty. The phase that judged goes on, and judges again. Raises *error* if there is no such attempt.
    """
    attempts = turn.superseded()
    passed = [
        (attempt, last.number)
        for attempt, last in enumerate(document.sections[-1] for document in attempts)
        if last.meta.get("issues") == [] and last.number > phase.number
    ]
    if not passed:
        raise error
    attempt, judge = passed[-1]
    document = turn.context
    put_back: list[Phase] = []
    for number in range(phase.number, judge):  # what this one kept of an earlier one stands in a later one
        sections = (section for later in attempts[attempt:] if (section := later.section(number)))
        if section := next(sections, None):
            document = document.with_section(section)
            if number > phase.number:
                put_back.append(Phase(number))
    turn.write_context(document)
    turn.folder.put_back_response(attempt + 1)
    turn.warn(f"what was to be better failed, the answer before is kept: {error.message}")
    return PhaseResult(to=Phase(judge), put_back=tuple(put_back))
