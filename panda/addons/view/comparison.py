"""The page of two runs compared: decisions flipped, answers changed, tokens and seconds, turn by turn."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

from panda.addons.view.attempts import DiffLine, compare_lines
from panda.addons.view.plots import share_of
from panda.addons.view.runs import find_run, run_names, turns_address
from panda.addons.view.shelf import PageQuery, RowsPage, Shelf
from panda.documents.context import SECTIONS, Phase, parse_context, render_section
from panda.documents.safe_text import shorten
from panda.errors import Problem, UsageError
from panda.runs.compare import SAVED, Cost, Flip, RunDiff, Side, changed_sections, compare_runs, load_sides
from panda.runs.ledger import Outcome, RunFolder, TurnKey
from panda.store.files import read_text
from panda.store.layout import CONTEXT_MD, is_id

_MOST_TURNS = 50  # that are shown side by side
_MOST_NAMED = 300  # of those that are the same
_MOST_LINES = 1_500  # of a text; longer ones are not compared line by line
_MOST_CHANGES = 400  # lines of a comparison
_VALUE_CHARS = 400
Pair = tuple[str, float | None, float | None, float]
"""A phase, a measure of it before and after, and the highest value of all phases."""


def load_comparison(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The page of two runs that the address or its fields name. Raises NotFoundError: one is not there."""
    names = run_names(shelf)
    parameters = {**query.fields, **query.parameters}
    before = parameters.get("before", SAVED)
    after = parameters.get("after", names[0] if names else SAVED)
    for name in {before, after} - {SAVED}:
        find_run(shelf, name)
    page = SimpleNamespace(before=before, after=after, names=names, problem=None)
    try:
        sides = load_sides(shelf.store, before, after)
        page.before = sides[0].name
        page.after = sides[1].name
        vars(page).update(_compared(shelf, sides, compare_runs(*sides)))
    except UsageError as exc:
        page.problem = exc.message
    except (Problem, OSError) as exc:
        page.problem = f"{exc.where}: {exc.message}" if isinstance(exc, Problem) else str(exc)
    return page


def _compared(shelf: Shelf, sides: tuple[Side, Side], diff: RunDiff) -> Mapping[str, object]:
    """Return the values of the page where both runs can be compared."""
    first = {outcome.key: outcome for outcome in sides[0].outcomes}
    shared = [(first[outcome.key], outcome) for outcome in sides[1].outcomes if outcome.key in first]
    flips = defaultdict[TurnKey, list[Flip]](list)
    for flip in diff.flips:
        flips[flip.user, flip.turn].append(flip)
    changed = {(change.user, change.turn) for change in diff.answers}
    is_other = [after.key in flips or after.key in changed for _, after in shared]
    differing = RowsPage([pair for pair, other in zip(shared, is_other, strict=True) if other], _MOST_TURNS)
    same = [after for (_, after), other in zip(shared, is_other, strict=True) if not other]
    named = RowsPage(same, _MOST_NAMED)
    firsts = Counter(flip.recipe for flip in diff.flips if flip.first).most_common()
    return {
        "diff": diff,
        "seconds": _pairs(diff.phases, "seconds"),
        "tokens": _pairs(diff.phases, "tokens"),
        "recipes": [(recipe, count, share_of(count, firsts[0][1])) for recipe, count in firsts],
        "differing": [_turn(shelf, sides, pair, flips[pair[1].key], changed) for pair in differing],
        "differing_left": differing.left,
        "same": [(str(outcome.key[1]), _page(shelf, outcome, sides[1])) for outcome in named],
        "same_left": named.left,
    }


def _pairs(costs: Sequence[Cost], what: str) -> list[Pair]:
    values = [(getattr(cost, f"{what}_before"), getattr(cost, f"{what}_after")) for cost in costs]
    most = max((value or 0 for pair in values for value in pair), default=0)
    names = [f"{cost.name} {Phase(int(cost.name)).label}" for cost in costs]
    return [(name, *pair, most) for name, pair in zip(names, values, strict=True)]


def _turn(
    shelf: Shelf,
    sides: tuple[Side, Side],
    pair: tuple[Outcome, Outcome],
    flips: Sequence[Flip],
    changed: set[TurnKey],
) -> SimpleNamespace:
    """One turn that differs."""
    before, after = pair
    numbers = changed_sections(before, after)
    texts = [_sections(_directory(side, after.key)) for side in sides] if numbers else [{}, {}]
    return SimpleNamespace(
        name=str(after.key[1]),
        query=after.query,
        before=_page(shelf, before, sides[0]),
        after=_page(shelf, after, sides[1]),
        statuses=(before.outcome or before.status, after.outcome or after.status),
        flips=[(flip, _value(flip.before), _value(flip.after)) for flip in flips],
        answers=(before.answer, after.answer) if after.key in changed else None,
        sections=[
            (
                f"§{n} {SECTIONS[n].title}" if 0 <= n < len(SECTIONS) else f"§{n}",
                _changes(*(text.get(n, "") for text in texts)),
            )
            for n in numbers
            if any(n in text for text in texts)
        ],
    )


def _value(value: object) -> str:
    if value is None:
        return "not decided"
    if isinstance(value, list | tuple):
        return shorten(", ".join(map(str, value)) or "none", _VALUE_CHARS)
    return shorten(str(value), _VALUE_CHARS)


def _page(shelf: Shelf, outcome: Outcome, side: Side) -> str | None:
    """The page of a turn as the side holds it: saved in the store, or kept in its run."""
    directory = _directory(side, outcome.key)
    if directory is None or not is_id(outcome.user):
        return None
    places = {
        turns_address(None, outcome.user): shelf.store.of(outcome.user).turn(outcome.turn).directory,
        turns_address(side.name, outcome.user): RunFolder(shelf.store.runs / side.name).kept_turn(
            outcome.user, outcome.turn
        ),
    }
    for address, place in places.items():
        if directory.resolve() == place.resolve() and place.is_dir():
            return f"{address}/{outcome.turn}"
    return None


def _directory(side: Side, key: TurnKey) -> Path | None:
    directory = side.directories.get(key)
    return None if directory is None or "\0" in str(directory) else directory


def _sections(directory: Path | None) -> Mapping[int, str]:
    if directory is None:
        return {}
    path = directory / CONTEXT_MD
    try:
        document = parse_context(read_text(path), where=str(path))
    except (Problem, OSError):
        return {}
    return {section.number: render_section(section) for section in document.sections}


def _changes(before: str, after: str) -> RowsPage[DiffLine]:
    """Two texts line by line; nothing if they are too long to be compared."""
    old = before.rstrip().split("\n")
    new = after.rstrip().split("\n")
    is_long = max(len(old), len(new)) > _MOST_LINES
    return RowsPage([] if is_long else list(compare_lines(old, new)), _MOST_CHANGES)
