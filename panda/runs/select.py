"""Which saved turns a command means: numbers, ranges, directories, filters by session, time, status."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from panda.errors import NotFoundError, UsageError
from panda.store.layout import LAST, Layout, UserStore, turn_number
from panda.store.records import STATUSES, Metadata
from panda.store.turns import TurnFolder, find_turn
from panda.store.visit_records import turn_directories

_WHERE = "SELECTION…"
_RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}))?")


@dataclass(frozen=True)
class TurnPlace:
    """A saved turn and the store that it is in."""

    layout: Layout  # the store
    user: str  # whose turn it is
    number: int  # its number

    @property
    def directory(self) -> Path:
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
        """Return whether a turn is taken."""
        return (
            self.session in (None, metadata.session_id)
            and (self.since is None or metadata.created_at >= self.since)
            and self.status in (None, metadata.status)
        )


def select_turns(
    words: Sequence[str], wanted: TurnFilter, *, layout: Callable[[], Layout], user: str
) -> list[TurnPlace]:
    """
    The turns that a selection means, each once, in the order given; of a range, those that exist.

    Args:
        words: Numbers, ranges such as 813-820, several of these with commas between, last for the newest
            turn, directories of turns or of many. May be empty if *wanted* says something: then all turns of
            the user are looked at.
        layout: Gives the store that numbers are of; not called if only directories are named.
    """
    if wanted.status not in (None, *STATUSES):
        fix = f"use one of: {', '.join(STATUSES)}"
        raise UsageError(f"there is no status {wanted.status!r:.80}", where="--status", fix=fix)
    takes_all = wanted == TurnFilter()
    if not words and takes_all:
        fix = "give numbers, a range such as 813-820, last, or --session"
        raise UsageError("no turns are selected", where=_WHERE, fix=fix)
    places = [] if words else _turns_of(layout().of(user))
    for word in words:
        ranges = parse_ranges(word)
        if ranges is None and word != LAST:
            places += _turns_below(word)
            continue
        root = layout().root
        store = UserStore(root, user, _no_clock)
        if ranges is None:
            places.append(TurnPlace(Layout(root), user, find_turn(store, word, where=_WHERE).number))
        for bounds in ranges or ():
            if len(bounds) == 1:
                places.append(TurnPlace(Layout(root), user, store.open(bounds.start).number))
            else:
                places += [place for place in _turns_of(store) if place.number in bounds]
    places = list(dict.fromkeys(places))
    taken = [place for place in places if takes_all or wanted.takes(place.folder().read_metadata())]
    if not taken:
        fix = "see panda list for the turns"
        raise UsageError("the selection holds no turn", where=_WHERE, fix=fix)
    return taken


def parse_ranges(word: str) -> list[range] | None:
    """
    Return the numbers that a word lists; None for a word that lists none. Raises UsageError: a range runs
    backwards.

    >>> parse_ranges("3,17-19"), parse_ranges("last")
    ([range(3, 4), range(17, 20)], None)
    """
    ranges = []
    for part in word.split(","):
        if (numbers := _RANGE.fullmatch(part)) is None:
            return None
        first = int(numbers[1])
        last = int(numbers[2] or first)
        if last < first:
            message = f"the range {part} runs backwards"
            raise UsageError(message, where=_WHERE, fix=f"write {last}-{first}")
        ranges.append(range(first, last + 1))
    return ranges


def _turns_below(word: str) -> Iterator[TurnPlace]:
    path = Path(word)
    if not path.is_dir():
        message = f"{word!r} is no turn number, range or directory"
        fix = "write 813, 813-820, 805,811, last, or the path of a turn's directory"
        raise NotFoundError(message, where=_WHERE, fix=fix)
    path = path.absolute()
    turns = [path] if turn_number(path.name) is not None else sorted(path.rglob("turns/turn_*"))
    for directory in turns or sorted(path.iterdir()):
        number = turn_number(directory.name)
        home = directory.parent
        if number is None or not directory.is_dir():
            continue
        if home.name != "turns" or home.parent.parent.name != "users":
            message = "a saved turn can only be judged in its store"
            fix = "…/users/USER/turns/turn_NNNNNN"
            raise UsageError(message, where=str(directory), fix=f"give a directory {fix}")
        yield TurnPlace(Layout(home.parent.parent.parent), home.parent.name, number)


def _turns_of(store: UserStore) -> list[TurnPlace]:
    return [TurnPlace(Layout(store.root), store.user, number) for number, _ in turn_directories(store.turns)]


def _no_clock() -> datetime:
    raise AssertionError("reading a saved turn needs no clock")
