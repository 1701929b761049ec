"""Which saved turns a command means: numbers, ranges, directories, filters by session, time, status."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from panda.errors import NotFoundError, UsageError
from panda.store.layout import Layout, UserStore, turn_number
from panda.store.records import Metadata
from panda.store.turns import TurnFolder
from panda.store.visits import turn_directories


@dataclass(frozen=True)
class TurnPlace:
    """A saved turn and the store that it is in."""

    layout: Layout  # the store
    user: str  # whose turn it is
    number: int  # its number

    @property
    def directory(self) -> Path:
        """Its directory."""
        return self.layout.of(self.user).turn(self.number).directory

    def folder(self) -> TurnFolder:
        """Its files, for reading."""
        return TurnFolder(self.number, self.layout.of(self.user).turn(self.number), _no_clock)


@dataclass(frozen=True, kw_only=True)
class TurnFilter:
    """What turns must be like to be taken; None takes all."""

    session: str | None = None  # session id
    since: datetime | None = None  # claimed at this instant or later
    status: str | None = None  # status, as in metadata.json

    def takes(self, metadata: Metadata) -> bool:
        """Whether a turn is taken."""
        return (
            self.session in (None, metadata.session_id)
            and (self.since is None or metadata.created_at >= self.since)
            and self.status in (None, metadata.status)
        )

    @property
    def is_open(self) -> bool:
        """Whether it takes every turn."""
        return self == TurnFilter()


def select_turns(
    words: Sequence[str], wanted: TurnFilter, *, layout: Callable[[], Layout], user: str
) -> list[TurnPlace]:
    """
    The turns that a selection means, each once, in the order given; of a range, those that exist.

    Args:
        words: Numbers, ranges such as 813-820, directories of turns or of many. May be empty if *wanted*
            says something: then all turns of the user are looked at.
        layout: Gives the store that numbers are of; not called if only directories are named.
    """
    if not words and wanted.is_open:
        raise UsageError(
            "no turns are selected",
            where="SELECTION…",
            fix="give numbers, a range such as 813-820, or --session",
        )
    places: list[TurnPlace] = []
    if not words:
        places += _turns_of(layout().of(user))
    for word in words:
        places += _selected(word, layout, user)
    taken = [
        place
        for place in dict.fromkeys(places)
        if wanted.is_open or wanted.takes(place.folder().read_metadata())
    ]
    if not taken:
        raise UsageError(
            "the selection holds no turn", where="SELECTION…", fix="see panda list for the turns"
        )
    return taken


def _selected(word: str, layout: Callable[[], Layout], user: str) -> list[TurnPlace]:
    bounds = _range_of(word)
    if bounds is None:
        return list(_turns_below(word))
    first, last = bounds
    if first == last:
        UserStore(layout().root, user, _no_clock).open(first)  # raises if it is not there
        return [TurnPlace(Layout(layout().root), user, first)]
    return [place for place in _turns_of(layout().of(user)) if first <= place.number <= last]


def _range_of(word: str) -> tuple[int, int] | None:
    """
    The bounds of a number or range; None for anything else.

    >>> _range_of("813"), _range_of("813-820"), _range_of("turns/turn_000813")
    ((813, 813), (813, 820), None)
    """
    first, dash, last = word.partition("-")
    if not (first.isascii() and first.isdigit()) or (dash and not (last.isascii() and last.isdigit())):
        return None
    return int(first), int(last if dash else first)


def _turns_below(word: str) -> Iterator[TurnPlace]:
    path = Path(word)
    if not path.is_dir():
        raise NotFoundError(
            f"{word!r} is no turn number, range or directory",
            where="SELECTION…",
            fix="write 813, 813-820, or the path of a turn's directory",
        )
    path = path.absolute()
    turns = [path] if turn_number(path.name) is not None else sorted(path.rglob("turns/turn_*"))
    turns = turns or [one for one in sorted(path.iterdir()) if turn_number(one.name) is not None]
    for directory in turns:
        if directory.is_dir() and turn_number(directory.name) is not None:
            yield place_of(directory)


def place_of(directory: Path) -> TurnPlace:
    """The saved turn of a directory; UsageError if it is not in a store."""
    number, home = turn_number(directory.name), directory.parent
    if number is None or home.name != "turns" or home.parent.parent.name != "users":
        raise UsageError(
            "a saved turn can only be judged in its store",
            where=str(directory),
            fix="give a directory …/users/USER/turns/turn_NNNNNN",
        )
    return TurnPlace(Layout(home.parent.parent.parent), home.parent.name, number)


def _turns_of(store: UserStore) -> list[TurnPlace]:
    return [TurnPlace(Layout(store.root), store.user, number) for number, _ in turn_directories(store.turns)]


def _no_clock() -> datetime:
    raise AssertionError("reading a saved turn needs no clock")
