"""The two sides of a comparison: a run, or the saved turns that the other side is of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from panda.errors import PandaError, UsageError
from panda.replays.outcomes import Outcome, read_outcome
from panda.replays.runs import RunFolder, open_run
from panda.replays.selection import TurnPlace, place_of
from panda.storage.layout import Layout

SAVED = "saved"

TurnKey = tuple[str, int]
"""User and number of a turn."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str
    """Id of the run, or "saved"."""
    outcomes: Sequence[Outcome]
    """What each turn came to, by user and number."""
    directories: Mapping[TurnKey, Path]
    """User and number of a turn to its directory, where the text of its sections is."""
    unfinished: Mapping[TurnKey, str] = field(default_factory=dict)
    """Turns that it was to hold and that came to no end, and why."""
    fault: str | None = None
    """Why the side as a whole is not what it was to be; None for a run that has finished."""


def load_sides(layout: Layout, before: str, after: str) -> tuple[Side, Side]:
    """
    Both sides of a comparison.

    Args:
        layout: The store that runs are kept in.
        before: Id or directory of a run, "last", or "saved".
        after: The same; one of the two must be a run.

    Raises:
        UsageError: Both are "saved".
        NotFoundError: There is no such run.
        FileFormatError: A file of a run is damaged.
    """
    if before == after == SAVED:
        raise UsageError("the saved turns are compared with themselves", where="RUN", fix="name a run")
    if before == SAVED:
        two = open_run(layout, after)
        return _saved(two, layout), _of_run(two)
    if after == SAVED:
        one = open_run(layout, before)
        return _of_run(one), _saved(one, layout)
    return _of_run(open_run(layout, before)), _of_run(open_run(layout, after))


def _of_run(run: RunFolder) -> Side:
    plan = run.plan()
    lines = {(line.user, line.turn): line for line in run.lines()}
    planned = [(one["user"], one["turn"]) for one in plan["turns"]]
    directories, unfinished = {}, {}
    for key in sorted({*planned, *lines}):
        line = lines.get(key)
        if line is None:
            unfinished[key] = "the run ended before it"
            continue
        kept = run.kept_turn(*key)
        directories[key] = kept if kept.is_dir() else Path(line.directory)
        if line.unfinished is not None:
            unfinished[key] = line.unfinished
    fault = None
    if plan["finished_at"] is None:
        fault = f"run {run.id} is not finished: {len(lines)} of its {len(planned)} turns have come to an end"
    outcomes = [lines[key].outcome for key in sorted(lines)]
    return Side(run.id, [one for one in outcomes if one is not None], directories, unfinished, fault)


def _saved(run: RunFolder, layout: Layout) -> Side:
    """The saved turns that a run is of."""
    outcomes, directories, unfinished = [], {}, {}
    for place in sorted(_places(run, layout), key=lambda place: (place.user, place.number)):
        key = (place.user, place.number)
        directories[key] = place.directory
        try:
            outcomes.append(read_outcome(place.folder()))
        except PandaError as exc:
            unfinished[key] = exc.message
    return Side(SAVED, outcomes, directories, unfinished)


def _places(run: RunFolder, layout: Layout) -> Iterator[TurnPlace]:
    """Where the turns of a run are saved: said of those that were run, else in the store of the run."""
    where = {(line.user, line.turn): place_of(Path(line.directory)) for line in run.lines()}
    for one in run.plan()["turns"]:
        key = (one["user"], one["turn"])
        yield where.get(key) or TurnPlace(layout, *key)
