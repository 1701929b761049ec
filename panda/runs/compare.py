"""Two runs, or a run and the saved turns, compared: decisions flipped, answers changed, their cost."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from panda.errors import Problem, UsageError, Verdict
from panda.runs.ledger import (
    OUTCOME,
    Outcome,
    PhaseCost,
    RunFolder,
    TurnKey,
    in_order,
    open_run,
    read_outcome,
)
from panda.store.layout import Layout

SAVED = "saved"
_NAMED_TURNS = 10
_N = TypeVar("_N", int, float)
_Pairs = Sequence[tuple[Outcome, Outcome]]


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str  # id of the run, or "saved"
    outcomes: Sequence[Outcome]  # what each turn came to, by user and number
    directories: Mapping[TurnKey, Path]
    """User and number of a turn to its directory, where the text of its sections is."""
    unfinished: Mapping[TurnKey, str] = field(default_factory=dict)
    """Turns that it was to hold and that came to no end, and why."""
    fault: str | None = None
    """Why the side as a whole is not what it was to be; None for a run that has finished."""


def load_sides(layout: Layout, before: str, after: str) -> tuple[Side, Side]:
    """Both sides: each a run's id or directory, "last", or "saved" for one of the two."""
    if before == after == SAVED:
        raise UsageError("the saved turns are compared with themselves", where="RUN", fix="name a run")
    first_run, second_run = (None if name == SAVED else open_run(layout, name) for name in (before, after))
    return (_of_run(first_run) if first_run else _saved(second_run)), (
        _of_run(second_run) if second_run else _saved(first_run)
    )


def _of_run(run: RunFolder) -> Side:
    plan = run.plan()
    places = run.places()
    lines = {line.key: line for line in run.lines()}
    directories = {}
    unfinished = {}
    for key in in_order({*places, *lines}):
        line = lines.get(key)
        if line is None:
            unfinished[key] = "the run ended before it"
            continue
        directory = run.kept_turn(line.user, line.turn)
        if directory.is_dir():
            directories[key] = directory
        elif plan.mode != "batch" or plan.saves:  # else its number is that of another turn of the store
            store = places[key].layout if key in places else run.store
            directories[key] = store.of(line.user).turn(line.turn).directory
        if line.unfinished is not None:
            unfinished[key] = line.unfinished
    fault = None
    if plan.finished_at is None:
        fault = f"run {run.id} is not finished: {len(lines)} of its {len(places)} turns have come to an end"
    outcomes = [outcome for key in in_order(lines) if (outcome := lines[key].outcome) is not None]
    return Side(run.id, outcomes, directories, unfinished, fault)


def _saved(run: RunFolder | None) -> Side:
    """The saved turns that a run is of. Raises UsageError: it is a batch that saved none."""
    assert run is not None
    plan = run.plan()
    if plan.mode == "batch" and not plan.saves:
        message = f"the turns of {run.id} stayed in the run: no saved turn is one of them"
        raise UsageError(message, where="RUN", fix="compare two runs, or run the batch with --save")
    outcomes = []
    directories = {}
    unfinished = {}
    for key, place in sorted(run.places().items(), key=lambda pair: (pair[1].user, pair[1].number)):
        directories[key] = place.directory
        try:
            item = key[1] if isinstance(key[1], str) else None  # its key in this run
            outcomes.append(structs.replace(read_outcome(place.folder()), item=item))
        except Problem as exc:
            unfinished[key] = exc.message
    return Side(SAVED, outcomes, directories, unfinished)


@dataclass(frozen=True)
class Flip:
    """A decision that came out otherwise."""

    user: str  # whose turn
    turn: int | str  # the turn, or the item of a batch
    phase: int  # phase that decided
    recipe: str  # recipe that was asked
    name: str  # what was decided
    before: object  # value in the first run; None if it was not decided there
    after: object  # value in the second run
    first: bool  # whether no earlier decision of the turn flipped: the others may follow from it


@dataclass(frozen=True)
class Change:
    """An answer that came out otherwise."""

    user: str  # whose turn
    turn: int | str  # the turn, or the item of a batch
    phase: int  # first phase whose section or decision differs
    recipe: str  # the recipe of that phase: where the change began
    before: str | None  # answer in the first run; None if there was none
    after: str | None  # answer in the second run


@dataclass(frozen=True)
class Unjudged:
    """A turn that could not be compared."""

    user: str  # whose turn
    turn: int | str  # the turn, or the item of a batch
    side: str  # the side that lacks it: id of a run, or "saved"
    reason: str  # why


@dataclass(frozen=True)
class Cost:
    """What something took in both runs, over the turns that both hold."""

    name: str  # phase by number, or recipe
    tokens_before: int | None  # prompt and output tokens in the first run; None if one turn's are unknown
    tokens_after: int | None  # the same in the second
    seconds_before: float | None  # wall time in the first run
    seconds_after: float | None  # the same in the second


@dataclass(frozen=True)
class RunDiff:
    """What two runs differ in."""

    turns: int  # turns that both hold
    not_judged: tuple[Unjudged, ...]  # turns that one side alone holds, or that came to no end on one
    faults: tuple[str, ...]
    """Why a side as a whole, or the comparison, is not what it was to be, a sentence each."""
    flips: tuple[Flip, ...]  # decisions that differ, by turn and phase
    answers: tuple[Change, ...]  # answers that differ
    recipes_changed: Mapping[str, tuple[str | None, str | None]]
    """Recipe to its versions before and after, where they differ; None: not asked there, or not known."""
    models_changed: Mapping[str, tuple[str | None, str | None]]
    """Recipe to the digests of its models, where they differ."""
    phases: tuple[Cost, ...]  # costs by phase
    recipes: tuple[Cost, ...]  # costs of the phases that one recipe alone serves, by recipe

    @property
    def verdict(self) -> Verdict:
        """Sound if every decision and every answer of every turn was compared and is the same."""
        if self.flips or self.answers:
            return Verdict.UNSOUND
        return Verdict.NOT_JUDGED if self.not_judged or self.faults or not self.turns else Verdict.SOUND


@dataclass(frozen=True)
class Thresholds:
    """From where on a difference is a regression; None: never."""

    flips: int | None = 0  # most decisions flipped
    answers: int | None = 0  # most answers changed
    tokens: float | None = None  # most growth of tokens in per cent
    seconds: float | None = None  # most growth of seconds in per cent
    missing: bool = False  # whether turns that were not compared are let pass; at least one must be compared


def compare_runs(before: Side, after: Side) -> RunDiff:
    """Return how two runs differ; costs count the turns that both hold."""
    first = {outcome.key: outcome for outcome in before.outcomes}
    second = {outcome.key: outcome for outcome in after.outcomes}
    shared = [(first[key], second[key]) for key in first if key in second]
    not_judged = []
    for key in in_order({*first, *second, *before.unfinished, *after.unfinished}):
        for side, held in ((before, first), (after, second)):
            if key in side.unfinished or key not in held:
                reason = side.unfinished.get(key, "it does not hold the turn")
                not_judged.append(Unjudged(*key, side.name, reason))
    return RunDiff(
        turns=len(shared),
        not_judged=tuple(not_judged),
        faults=tuple(side.fault for side in (before, after) if side.fault is not None),
        flips=tuple(flip for pair in shared for flip in _flips(*pair)),
        answers=tuple(_change(*pair) for pair in shared if pair[0].compared != pair[1].compared),
        recipes_changed=_changed(shared, "version"),
        models_changed=_changed(shared, "model"),
        phases=_costs(shared, by_recipe=False),
        recipes=_costs(shared, by_recipe=True),
    )


def find_regressions(diff: RunDiff, thresholds: Thresholds) -> list[str]:
    """Return what of a difference is more than the thresholds allow, a sentence each; recipes are named."""
    sentences = find_faults(diff, thresholds)
    if diff.not_judged and not thresholds.missing:
        turns = [
            str(turn)
            for _, turn in dict.fromkeys((unjudged.user, unjudged.turn) for unjudged in diff.not_judged)
        ]
        named = ", ".join(turns[:_NAMED_TURNS]) + (", …" if len(turns) > _NAMED_TURNS else "")
        noun = "turn" if len(turns) == 1 else "turns"
        sentences.append(f"{len(turns)} {noun} could not be compared: {named}")
    if thresholds.flips is not None and len(diff.flips) > thresholds.flips:
        recipes = _named(flip.recipe for flip in diff.flips if flip.first)
        sentences.append(f"{len(diff.flips)} decisions flipped, {thresholds.flips} allowed: {recipes}")
    if thresholds.answers is not None and len(diff.answers) > thresholds.answers:
        recipes = _named(change.recipe for change in diff.answers)
        sentences.append(f"{len(diff.answers)} answers changed, {thresholds.answers} allowed: {recipes}")
    return sentences + find_growth(diff, thresholds)


def find_faults(diff: RunDiff, thresholds: Thresholds) -> list[str]:
    """Why the runs as a whole say less than they were to; that nothing was compared always."""
    faults = [] if thresholds.missing else list(diff.faults)
    if not diff.turns:
        faults.append("no turn was compared")
    return faults


def find_growth(diff: RunDiff, thresholds: Thresholds) -> list[str]:
    """
    Return a sentence each where all tokens or seconds grew past the thresholds; an unknown number is past
    any.
    """
    sentences = []
    tokens = [(cost.tokens_before, cost.tokens_after) for cost in diff.phases]
    seconds = [(cost.seconds_before, cost.seconds_after) for cost in diff.phases]
    for what, costs, most in (
        ("tokens", tokens, thresholds.tokens),
        ("seconds", seconds, thresholds.seconds),
    ):
        if most is None:
            continue
        pairs = [(old, new) for old, new in costs if old is not None and new is not None]
        before = sum(old for old, _ in pairs)
        after = sum(new for _, new in pairs)
        growth = 0.0
        if before:
            growth = 100 * (after - before) / before
        elif after:
            growth = math.inf
        if not pairs:
            sentences.append(f"{what} are not known of both runs, {most:g} % of growth allowed")
        elif growth > most:
            sentences.append(f"{what} grew by {growth:.1f} %, {most:g} % allowed")
    return sentences


def _named(recipes: Iterable[str]) -> str:
    return ", ".join(f"{recipe} ({count})" for recipe, count in Counter(recipes).most_common())


def _flips(before: Outcome, after: Outcome) -> list[Flip]:
    if "imported" in (before.status, after.status):
        return []  # what another program decided is not known
    first, second = (
        {(decision.phase, decision.name): decision for decision in side.decisions} for side in (before, after)
    )
    flips: list[Flip] = []
    for phase, name in sorted(first.keys() | second.keys()):
        old = first.get((phase, name))
        new = second.get((phase, name))
        if old is not None and new is not None and old.value == new.value:
            continue
        if name == OUTCOME and (old is None or new is None):
            continue  # its status tells, or the line is from before outcomes
        sides = [side for side in (new, old) if side is not None]
        recipe = next((side.recipe for side in sides if "/" in side.recipe), sides[0].recipe)
        values = (old.value if old else None, new.value if new else None)
        is_first = not any(flip.phase < phase for flip in flips)
        flips.append(Flip(*after.key, phase, recipe, name, *values, first=is_first))
    return flips


def changed_sections(before: Outcome, after: Outcome) -> list[int]:
    """The sections of context.md that differ, by number."""
    old = before.sections
    new = after.sections
    return [n for n in sorted(old.keys() | new.keys()) if old.get(n) != new.get(n)]


def _change(before: Outcome, after: Outcome) -> Change:
    flips = _flips(before, after)
    phase = min([*changed_sections(before, after), *(flip.phase for flip in flips)], default=5)
    recipe = next((flip.recipe for flip in flips if flip.phase == phase), None)
    recipe = recipe or next((key for key in after.recipes if f"phase{phase}" in key), f"phase {phase}")
    return Change(*after.key, phase, recipe, before.answer, after.answer)


def _changed(pairs: _Pairs, part: str) -> dict[str, tuple[str | None, str | None]]:
    """Recipes whose hash of that name differs between the runs."""
    changed: dict[str, tuple[str | None, str | None]] = {}
    for before, after in pairs:
        for key in before.recipes.keys() & after.recipes.keys():
            old = before.recipes[key].get(part)
            new = after.recipes[key].get(part)
            if old != new and old is not None and new is not None:
                changed[key] = (old, new)
    return dict(sorted(changed.items()))


def _costs(pairs: _Pairs, *, by_recipe: bool) -> tuple[Cost, ...]:
    """The costs of both sides by phase, or by the recipe that alone serves it."""
    spent: dict[str, tuple[list[PhaseCost], list[PhaseCost]]] = defaultdict(lambda: ([], []))
    for pair in pairs:
        for side, outcome in enumerate(pair):
            for cost in outcome.phases:
                if not by_recipe or len(cost.recipes) == 1:
                    spent[cost.recipes[0] if by_recipe else str(cost.phase)][side].append(cost)
    return tuple(
        Cost(
            name,
            *(_sum(cost.tokens for cost in side) for side in both),
            *(_sum(cost.seconds for cost in side) for side in both),
        )
        for name, both in sorted(spent.items())
    )


def _sum(values: Iterable[_N | None]) -> _N | None:
    """The sum; None if one is unknown."""
    total: _N = 0
    for value in values:
        if value is None:
            return None
        total += value
    return round(total, 3)
