"""Two runs compared: decisions flipped, answers changed, tokens and seconds, by phase and recipe."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from panda.replays.outcomes import Decision, Outcome, PhaseCost


@dataclass(frozen=True)
class Flip:
    """A decision that came out otherwise."""

    user: str
    """Whose turn."""
    turn: int
    """The turn."""
    phase: int
    """Phase that decided."""
    recipe: str
    """Recipe that was asked."""
    name: str
    """What was decided."""
    before: object
    """Value in the first run; None if it was not decided there."""
    after: object
    """Value in the second run."""
    first: bool
    """Whether no earlier decision of the turn flipped: the others may follow from it."""


@dataclass(frozen=True)
class Change:
    """An answer that came out otherwise."""

    user: str
    """Whose turn."""
    turn: int
    """The turn."""
    phase: int
    """First phase whose section or decision differs."""
    recipe: str
    """The recipe of that phase: where the change began."""
    before: str | None
    """Answer in the first run; None if there was none."""
    after: str | None
    """Answer in the second run."""


@dataclass(frozen=True)
class Cost:
    """What something took in both runs, over the turns that both hold."""

    name: str
    """Phase by number, or recipe."""
    tokens_before: int | None
    """Prompt and output tokens in the first run; None if one turn's are unknown."""
    tokens_after: int | None
    """The same in the second."""
    seconds_before: float | None
    """Wall time in the first run."""
    seconds_after: float | None
    """The same in the second."""


@dataclass(frozen=True)
class RunDiff:
    """What two runs differ in."""

    turns: int
    """Turns that both hold."""
    only_before: tuple[int, ...]
    """Turns that only the first holds."""
    only_after: tuple[int, ...]
    """Turns that only the second holds."""
    flips: tuple[Flip, ...]
    """Decisions that differ, by turn and phase."""
    answers: tuple[Change, ...]
    """Answers that differ."""
    recipes_changed: Mapping[str, tuple[str | None, str | None]]
    """Recipe to its versions before and after, where they differ; None: not asked there, or not known."""
    models_changed: Mapping[str, tuple[str | None, str | None]]
    """Recipe to the digests of its models, where they differ."""
    phases: tuple[Cost, ...]
    """Costs by phase."""
    recipes: tuple[Cost, ...]
    """Costs of the phases that one recipe alone serves, by recipe."""

    @property
    def is_empty(self) -> bool:
        """Whether every decision and every answer is the same, for the same turns."""
        return not (self.flips or self.answers or self.only_before or self.only_after)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Thresholds:
    """From where on a difference is a regression; None: never."""

    flips: int | None = 0
    """Most decisions flipped."""
    answers: int | None = 0
    """Most answers changed."""
    tokens: float | None = None
    """Most growth of tokens in per cent."""
    seconds: float | None = None
    """Most growth of seconds in per cent."""


def compare_runs(before: Sequence[Outcome], after: Sequence[Outcome]) -> RunDiff:
    """
    What two runs differ in.

    Args:
        before: Outcomes of the first run, each turn of a user once.
        after: The same of the second.

    Returns:
        The differences; costs count the turns that both hold.
    """
    one = {(outcome.user, outcome.turn): outcome for outcome in before}
    two = {(outcome.user, outcome.turn): outcome for outcome in after}
    shared = [(one[key], two[key]) for key in one if key in two]
    flips = [flip for pair in shared for flip in _flips(*pair)]
    return RunDiff(
        turns=len(shared),
        only_before=tuple(turn for user, turn in one if (user, turn) not in two),
        only_after=tuple(turn for user, turn in two if (user, turn) not in one),
        flips=tuple(flips),
        answers=tuple(_change(*pair) for pair in shared if pair[0].answer != pair[1].answer),
        recipes_changed=_changed(shared, "version"),
        models_changed=_changed(shared, "model"),
        phases=_costs(shared, lambda cost: [str(cost.phase)]),
        recipes=_costs(shared, lambda cost: list(cost.recipes) if len(cost.recipes) == 1 else []),
    )


def find_regressions(diff: RunDiff, thresholds: Thresholds) -> list[str]:
    """
    What of a difference is more than the thresholds allow, a sentence each; recipes are named.

    Args:
        diff: As compare_runs gives it.
        thresholds: What is allowed.
    """
    found = []
    if thresholds.flips is not None and len(diff.flips) > thresholds.flips:
        recipes = _named(flip.recipe for flip in diff.flips if flip.first)
        found.append(f"{len(diff.flips)} decisions flipped, {thresholds.flips} allowed: {recipes}")
    if thresholds.answers is not None and len(diff.answers) > thresholds.answers:
        recipes = _named(change.recipe for change in diff.answers)
        found.append(f"{len(diff.answers)} answers changed, {thresholds.answers} allowed: {recipes}")
    for what, most in (("tokens", thresholds.tokens), ("seconds", thresholds.seconds)):
        growth = _growth(diff.phases, what)
        if most is not None and growth is not None and growth > most:
            found.append(f"{what} grew by {growth:.1f} %, {most:g} % allowed")
    return found


def _named(recipes: Iterable[str]) -> str:
    return ", ".join(f"{recipe} ({count})" for recipe, count in Counter(recipes).most_common())


def _growth(costs: Sequence[Cost], what: str) -> float | None:
    pairs = [(getattr(cost, f"{what}_before"), getattr(cost, f"{what}_after")) for cost in costs]
    known = [(one, two) for one, two in pairs if one is not None and two is not None]
    before, after = sum(one for one, _ in known), sum(two for _, two in known)
    return 100 * (after - before) / before if before else None


def _flips(before: Outcome, after: Outcome) -> list[Flip]:
    one, two = _by_name(before), _by_name(after)
    found: list[Flip] = []
    for key in sorted(one.keys() | two.keys()):
        old, new = one.get(key), two.get(key)
        if old is not None and new is not None and old.value == new.value:
            continue
        made = new or old
        assert made is not None
        earlier = any(flip.phase < made.phase for flip in found)
        values = (old.value if old else None, new.value if new else None)
        recipe = next((one.recipe for one in (new, old) if one and "/" in one.recipe), made.recipe)
        found.append(Flip(after.user, after.turn, made.phase, recipe, made.name, *values, first=not earlier))
    return found


def _by_name(outcome: Outcome) -> dict[tuple[int, str], Decision]:
    return {(one.phase, one.name): one for one in outcome.decisions}


def _change(before: Outcome, after: Outcome) -> Change:
    numbers = sorted(before.sections.keys() | after.sections.keys())
    sections = [n for n in numbers if before.sections.get(n) != after.sections.get(n)]
    flips = _flips(before, after)
    phase = min([*sections, *(flip.phase for flip in flips)], default=5)
    recipe = next((flip.recipe for flip in flips if flip.phase == phase), None)
    recipe = recipe or next((key for key in after.recipes if f"phase{phase}" in key), f"phase {phase}")
    return Change(after.user, after.turn, phase, recipe, before.answer, after.answer)


def _changed(pairs: Sequence[tuple[Outcome, Outcome]], part: str) -> dict[str, tuple[str | None, str | None]]:
    """Recipes whose hash of that name differs between the runs."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for before, after in pairs:
        for key in before.recipes.keys() & after.recipes.keys():
            old, new = before.recipes[key].get(part), after.recipes[key].get(part)
            if old != new and old is not None and new is not None:
                found[key] = (old, new)
    return dict(sorted(found.items()))


def _costs(pairs: Sequence[tuple[Outcome, Outcome]], names: Any) -> tuple[Cost, ...]:
    sums: dict[str, list[list[Any]]] = {}
    for pair in pairs:
        for side, outcome in enumerate(pair):
            for cost in outcome.phases:
                for name in names(cost):
                    held = sums.setdefault(name, [[0, 0], [0.0, 0.0]])
                    _add(held, side, cost)
    return tuple(
        Cost(name, tokens[0], tokens[1], _rounded(seconds[0]), _rounded(seconds[1]))
        for name, (tokens, seconds) in sorted(sums.items())
    )


def _add(held: list[list[Any]], side: int, cost: PhaseCost) -> None:
    for kind, value in enumerate((cost.tokens, cost.seconds)):
        so_far = held[kind][side]
        held[kind][side] = None if so_far is None or value is None else so_far + value


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
