"""The page of two runs compared: decisions flipped, answers changed, tokens and seconds, turn by turn."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from panda.documents.context import PHASES, SECTIONS, parse_context, render_section
from panda.documents.text import shorten
from panda.errors import Problem, UsageError
from panda.runs.compare import (
    Change,
    Cost,
    Flip,
    RunDiff,
    Side,
    changed_sections,
    compare_runs,
    load_sides,
)
from panda.runs.ledger import Outcome, TurnKey
from panda.store.files import read_text
from panda.store.layout import CONTEXT_MD, is_id
from panda.view.attempts import DiffLine, compare_lines
from panda.view.plots import share_of
from panda.view.runs import SAVED, find_run, run_names
from panda.view.shelf import Query, Shelf

_MOST_TURNS = 50  # that are shown side by side
_MOST_NAMED = 300  # of those that could not be compared, and of those that are the same
_MOST_LINES = 1_500  # of a text; longer ones are not compared line by line
_MOST_CHANGES = 400  # lines of a comparison
_MOST_NAMES = 200
_QUERY_CHARS = 240
_VALUE_CHARS = 400


@dataclass(frozen=True)
class Pair:
    """One measure in both runs."""

    name: str
    before: float | None  # None if it is not known
    after: float | None
    before_share: float  # percent of the highest value of all
    after_share: float
    change: float | None  # percent by which it grew


@dataclass(frozen=True)
class ComparedText:
    """A text in both runs."""

    title: str
    lines: tuple[DiffLine, ...]  # () if it is too long to be compared
    left: int  # lines that are not shown


@dataclass(frozen=True)
class ComparedTurn:
    """One turn that differs."""

    name: str  # number of the turn, or the item of a batch
    query: str
    before: str | None  # path of its page as it is saved, if that is one of the sides or an item of its batch
    after: str | None
    statuses: tuple[str, str]
    flips: tuple[tuple[str, str, str, str, bool], ...]
    """Recipe, name, value before, value after, and whether no earlier decision of the turn flipped."""
    answers: tuple[str | None, str | None] | None  # None if they are the same
    sections: tuple[ComparedText, ...]


@dataclass(frozen=True)
class Compared:
    """What the page of a comparison shows."""

    before: str
    after: str
    names: tuple[str, ...]  # runs that can be chosen
    problem: str | None  # why they cannot be compared
    turns: int  # turns that both hold
    flips: int
    answers: int
    faults: tuple[str, ...]
    lacking: tuple[tuple[str, str, str], ...]  # turn, side and why it could not be compared
    lacking_left: int
    seconds: tuple[Pair, ...]
    tokens: tuple[Pair, ...]
    recipes: tuple[tuple[str, int, float], ...]  # recipe, decisions flipped there first, percent of the most
    versions: tuple[tuple[str, str, str, str], ...]  # what changed, recipe, before, after
    differing: tuple[ComparedTurn, ...]
    differing_left: int
    same: tuple[tuple[str, str | None], ...]  # name and page of the turns that are the same
    same_left: int


def load_comparison(shelf: Shelf, query: Query) -> Compared:
    """The page of two runs that the address or its fields name. Raises NotFoundError: one is not there."""
    names = run_names(shelf)
    given = {**query.fields, **query.parameters}
    before, after = given.get("before", SAVED), given.get("after", names[0] if names else SAVED)
    for one in {before, after} - {SAVED}:
        find_run(shelf, one)
    try:
        sides = load_sides(shelf.store, before, after)
        return _compared(shelf, sides, compare_runs(*sides), names)
    except UsageError as exc:
        problem = exc.message
    except (Problem, OSError) as exc:
        problem = f"{exc.where}: {exc.message}" if isinstance(exc, Problem) else str(exc)
    nothing: tuple[()] = ()
    return Compared(
        before,
        after,
        tuple(names[:_MOST_NAMES]),
        problem,
        *(0, 0, 0, nothing, nothing, 0, nothing, nothing, nothing, nothing, nothing, 0, nothing, 0),
    )


def _compared(shelf: Shelf, sides: tuple[Side, Side], diff: RunDiff, names: Sequence[str]) -> Compared:
    first = {one.key: one for one in sides[0].outcomes}
    shared = [(first[one.key], one) for one in sides[1].outcomes if one.key in first]
    flips: dict[TurnKey, list[Flip]] = {}
    for flip in diff.flips:
        flips.setdefault((flip.user, flip.turn), []).append(flip)
    changed = {(one.user, one.turn): one for one in diff.answers}
    differing = [pair for pair in shared if pair[1].key in flips or pair[1].key in changed]
    keys = {pair[1].key for pair in differing}
    same = [after for _, after in shared if after.key not in keys]
    return Compared(
        before=sides[0].name,
        after=sides[1].name,
        names=tuple(names[:_MOST_NAMES]),
        problem=None,
        turns=diff.turns,
        flips=len(diff.flips),
        answers=len(diff.answers),
        faults=diff.faults,
        lacking=tuple((f"{o.user} {o.turn}", o.side, o.reason) for o in diff.not_judged[:_MOST_NAMED]),
        lacking_left=max(0, len(diff.not_judged) - _MOST_NAMED),
        seconds=_pairs(diff.phases, "seconds"),
        tokens=_pairs(diff.phases, "tokens"),
        recipes=_recipes(diff),
        versions=tuple(_versions(diff)),
        differing=tuple(
            _turn(shelf, sides, pair, flips.get(pair[1].key, ()), changed.get(pair[1].key))
            for pair in differing[:_MOST_TURNS]
        ),
        differing_left=max(0, len(differing) - _MOST_TURNS),
        same=tuple((str(one.key[1]), _page(shelf, one, sides[1])) for one in same[:_MOST_NAMED]),
        same_left=max(0, len(same) - _MOST_NAMED),
    )


def _pairs(costs: Sequence[Cost], what: str) -> tuple[Pair, ...]:
    values = [(getattr(one, f"{what}_before"), getattr(one, f"{what}_after")) for one in costs]
    most = max((value or 0 for pair in values for value in pair), default=0)
    names = [f"{one.name} {PHASES[int(one.name)]}" for one in costs]
    return tuple(
        Pair(
            name,
            before,
            after,
            share_of(before or 0, most),
            share_of(after or 0, most),
            _growth(before, after),
        )
        for name, (before, after) in zip(names, values, strict=True)
    )


def _growth(before: float | None, after: float | None) -> float | None:
    return 100 * (after - before) / before if before and after is not None else None


def _recipes(diff: RunDiff) -> tuple[tuple[str, int, float], ...]:
    counts = Counter(flip.recipe for flip in diff.flips if flip.first).most_common()
    return tuple((recipe, count, share_of(count, counts[0][1])) for recipe, count in counts)


def _versions(diff: RunDiff) -> Iterator[tuple[str, str, str, str]]:
    for what, found in (("recipe", diff.recipes_changed), ("model", diff.models_changed)):
        for key, (before, after) in found.items():
            yield what, key, (before or "")[:12], (after or "")[:12]


def _turn(
    shelf: Shelf,
    sides: tuple[Side, Side],
    pair: tuple[Outcome, Outcome],
    flips: Sequence[Flip],
    change: Change | None,
) -> ComparedTurn:
    before, after = pair
    numbers = changed_sections(before, after)
    texts = [_sections(_directory(side, after.key)) for side in sides] if numbers else [{}, {}]
    return ComparedTurn(
        name=str(after.key[1]),
        query=shorten(after.query, _QUERY_CHARS),
        before=_page(shelf, before, sides[0]),
        after=_page(shelf, after, sides[1]),
        statuses=(before.status, after.status),
        flips=tuple(
            (one.recipe, one.name, _value(one.before), _value(one.after), one.first) for one in flips
        ),
        answers=(before.answer, after.answer) if change else None,
        sections=tuple(
            _text(
                f"§{n} {SECTIONS[n].title}" if 0 <= n < len(SECTIONS) else f"§{n}",
                *(one.get(n, "") for one in texts),
            )
            for n in numbers
            if any(n in one for one in texts)
        ),
    )


def _value(value: object) -> str:
    if value is None:
        return "not decided"
    if isinstance(value, list | tuple):
        return shorten(", ".join(map(str, value)) or "none", _VALUE_CHARS)
    return shorten(str(value), _VALUE_CHARS)


def _page(shelf: Shelf, outcome: Outcome, side: Side) -> str | None:
    """The page of a turn, if the side is what the store holds of it, and no copy that a replay made."""
    directory = _directory(side, outcome.key)
    if not is_id(outcome.user):
        return None
    own = shelf.store.of(outcome.user).turn(outcome.turn).directory
    is_own = directory is not None and directory.resolve() == own.resolve() and own.is_dir()
    return f"turns/{outcome.user}/{outcome.turn}" if is_own else None


def _directory(side: Side, key: TurnKey) -> Path | None:
    found = side.directories.get(key)
    return None if found is None or "\0" in str(found) else found


def _sections(directory: Path | None) -> Mapping[int, str]:
    if directory is None:
        return {}
    path = directory / CONTEXT_MD
    try:
        document = parse_context(read_text(path), where=str(path))
    except (Problem, OSError):
        return {}
    return {section.number: render_section(section) for section in document.sections}


def _text(title: str, before: str, after: str) -> ComparedText:
    one, two = before.rstrip().split("\n"), after.rstrip().split("\n")
    if max(len(one), len(two)) > _MOST_LINES:
        return ComparedText(title, (), 0)
    lines = tuple(compare_lines(one, two))
    return ComparedText(title, lines[:_MOST_CHANGES], max(0, len(lines) - _MOST_CHANGES))
