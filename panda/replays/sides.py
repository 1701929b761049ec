"""The two sides of a comparison: a run, or the saved turns that the other side is of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from panda.errors import UsageError
from panda.replays.outcomes import Outcome, read_outcome
from panda.replays.runs import RunFolder, open_run
from panda.replays.selection import place_of
from panda.storage.layout import Layout

SAVED = "saved"


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str
    """Id of the run, or "saved"."""
    outcomes: Sequence[Outcome]
    """What each turn came to, by user and number."""
    directories: Mapping[tuple[str, int], Path]
    """User and number of a turn to its directory, where the text of its sections is."""


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
        FileFormatError: A file of a run or turn is damaged.
    """
    if before == after == SAVED:
        raise UsageError("the saved turns are compared with themselves", where="RUN", fix="name a run")
    if before == SAVED:
        two = open_run(layout, after)
        return _saved(two), _of_run(two)
    if after == SAVED:
        one = open_run(layout, before)
        return _of_run(one), _saved(one)
    return _of_run(open_run(layout, before)), _of_run(open_run(layout, after))


def _of_run(run: RunFolder) -> Side:
    lines = sorted(run.lines(), key=lambda line: (line.user, line.turn))
    directories = {}
    for line in lines:
        kept = run.kept_turn(line.user, line.turn)
        directories[line.user, line.turn] = kept if kept.is_dir() else Path(line.directory)
    return Side(run.id, [line.outcome for line in lines if line.outcome is not None], directories)


def _saved(run: RunFolder) -> Side:
    """The saved turns that a run is of."""
    places = [place_of(Path(line.directory)) for line in run.lines()]
    places.sort(key=lambda place: (place.user, place.number))
    return Side(
        SAVED,
        [read_outcome(place.folder()) for place in places],
        {(place.user, place.number): place.directory for place in places},
    )
