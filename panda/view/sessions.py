"""The pages of sessions: which there are, what each carries to its next turn, and from where."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from panda.documents.text import shorten
from panda.documents.times import parse_time
from panda.errors import NotFoundError, Problem
from panda.session.file import closed_at, fold_turns, load_session
from panda.session.render import field_rows
from panda.store.carry import FIELDS
from panda.store.files import why_unread
from panda.store.layout import UserStore, check_id, is_id, turn_number
from panda.store.records import Session
from panda.store.turns import TurnRow, read_row
from panda.store.visits import SAVED_STATUSES
from panda.view.shelf import Query, Shelf

PAGE_ROWS = 50
_MOST_LOOKED = 2_000
"""So many of the newest turns are looked at for sessions that have no file yet."""
_MOST_FOLDED = 200
_MOST_TURNS = 100
_ABOUT_CHARS = 200
_QUERY_CHARS = 160
_PLACE = re.compile(r"turns/(turn_\d+)/(.+)")


@dataclass(frozen=True)
class SessionRow:
    """One session of the list."""

    name: str
    turns: int | None  # how many it has; None if its file is damaged
    head: int | None  # its newest turn
    at: datetime | None  # when it was active last
    closed: str | None  # when it was closed
    about: str  # what it is about
    problem: str | None  # what is wrong with its file


@dataclass(frozen=True)
class SessionList:
    """What the list of sessions shows."""

    user: str
    users: list[str]
    rows: tuple[SessionRow, ...]  # the last active first
    total: int
    place: int  # number of this page, from 1
    places: int  # number of pages
    looked_to: int | None  # sessions without a file were looked for down to this turn; None: in all turns


@dataclass(frozen=True)
class Place:
    """Where something comes from."""

    path: str  # below the user's directory
    turn: int | None  # the turn whose file it is
    name: str  # of the file in the turn; the path if it is none of a turn
    is_file: bool  # whether it is a file of a turn, and no directory


@dataclass(frozen=True)
class CarriedRow:
    """One thing that a session carries."""

    text: str
    places: tuple[Place, ...]


@dataclass(frozen=True)
class CarriedField:
    """One field of what a session carries."""

    name: str
    what: str  # what it holds
    limit: str  # how much of it is kept
    read_by: tuple[int, ...]  # phases that read it
    rows: tuple[CarriedRow, ...]


@dataclass(frozen=True)
class SessionPage:
    """What the page of a session shows."""

    user: str
    name: str
    row: SessionRow
    created: datetime | None
    fields: tuple[CarriedField, ...]  # those that hold something
    empty: tuple[str, ...]  # what the others would hold
    turns: tuple[TurnRow, ...]  # newest first
    turns_left: int
    is_made: bool  # whether it was made of its turns just now: its file is not there, or damaged


class SessionReader:
    """Knows which sessions a user has."""

    def __init__(self, store: UserStore) -> None:
        self._layout, self._user = store, store.user
        self._known: dict[int, str | None] = {}

    def names(self, numbers: Sequence[int], store: UserStore) -> dict[str, float]:
        """Sessions with the time at which each was written last, those without a file by their turns."""
        found: dict[str, float] = {}
        folder = self._layout.of(self._user).home / "sessions"
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    if is_id(entry.name):
                        status = self._layout.of(self._user).session(entry.name).stat()
                        found[entry.name] = status.st_mtime
        for number in numbers[: -_MOST_LOOKED - 1 : -1]:
            row = self._session_of(number, store)
            if row is not None and row not in found:
                found[row] = float(number) - 1e12  # behind all files, the newest first
        return found

    def turns(self, session: str, numbers: Sequence[int], store: UserStore) -> list[int]:
        """The saved turns of a session among the newest ones, ascending."""
        looked = numbers[-_MOST_LOOKED:]
        return [number for number in looked if self._session_of(number, store) == session]

    def _session_of(self, number: int, store: UserStore) -> str | None:
        if number not in self._known:
            row = read_row(store, number)
            if row is None or row.problem is not None or row.status not in SAVED_STATUSES:
                return None
            self._known[number] = row.session
        return self._known[number]


def _reader(shelf: Shelf, user: str) -> SessionReader:
    return shelf.kept(("sessions", user), lambda: SessionReader(shelf.store.of(user)))


def session_names(shelf: Shelf, user: str) -> list[str]:
    """All sessions that are known of a user, the last active first."""
    found = _reader(shelf, user).names(shelf.numbers(user), shelf.turns(user))
    return sorted(found, key=lambda name: (-found[name], name))


def session_places(shelf: Shelf, user: str) -> Iterable[int]:
    """The pages of the list behind the first."""
    return range(2, _places(len(session_names(shelf, user))) + 1)


def load_session_list(shelf: Shelf, query: Query) -> SessionList:
    """The list of a user's sessions. Raises UsageError: its place is no number."""
    user = query.parameters.get("user") or shelf.store.user
    shelf.turns(user)
    names, place = session_names(shelf, user), max(1, query.number("place") or 1)
    shown = names[(place - 1) * PAGE_ROWS : place * PAGE_ROWS]
    numbers = shelf.numbers(user)
    return SessionList(
        user=user,
        users=shelf.users(),
        rows=tuple(_row(shelf, user, name, *_load(shelf, user, name)[:2]) for name in shown),
        total=len(names),
        place=place,
        places=_places(len(names)),
        looked_to=numbers[-_MOST_LOOKED] if len(numbers) > _MOST_LOOKED else None,
    )


def load_session_page(shelf: Shelf, query: Query) -> SessionPage:
    """The page of a session. Raises NotFoundError: there is none of that name."""
    user, name = query.parameters["user"], query.parameters["session"]
    store = shelf.turns(user)
    check_id(name, what="session")
    found, problem, is_made = _load(shelf, user, name)
    if found is None and problem is None:
        raise NotFoundError(f"user {user} has no session {name}", where=str(shelf.turns(user).home))
    turns = [one.turn for one in found.turns] if found else []
    rows = [row for number in turns[: -_MOST_TURNS - 1 : -1] if (row := read_row(store, number))]
    fields = tuple(_fields(shelf, user, found)) if found else ()
    return SessionPage(
        user=user,
        name=name,
        row=_row(shelf, user, name, found, problem),
        created=_time(found.created_at) if found else None,
        fields=tuple(one for one in fields if one.rows),
        empty=tuple(one.what for one in fields if not one.rows),
        turns=tuple(rows),
        turns_left=(len(turns) - len(rows) + found.turns_cut) if found else 0,
        is_made=is_made,
    )


def _places(rows: int) -> int:
    return max(1, -(-rows // PAGE_ROWS))


def _load(shelf: Shelf, user: str, name: str) -> tuple[Session | None, str | None, bool]:
    problem = None
    try:
        found = load_session(shelf.turns(user), name)
        if found is not None:
            return found, None, False
    except (Problem, OSError) as exc:
        problem = why_unread(exc)
    numbers = _reader(shelf, user).turns(name, shelf.numbers(user), shelf.turns(user))
    try:
        return fold_turns(shelf.turns(user), name, numbers[-_MOST_FOLDED:]), problem, True
    except (Problem, OSError) as exc:
        told = f"{exc.where}: {exc.message}" if isinstance(exc, Problem) else str(exc)
        return None, problem or told, True


def _row(shelf: Shelf, user: str, name: str, found: Session | None, problem: str | None) -> SessionRow:
    closed = None
    try:
        closed = closed_at(shelf.turns(user), name)
    except (Problem, OSError, KeyError, TypeError):
        problem = problem or "closed.json cannot be read"
    return SessionRow(
        name=name,
        turns=len(found.turns) + found.turns_cut if found else None,
        head=found.head_turn if found else None,
        at=_time(found.last_active_at) if found else None,
        closed=closed,
        about=shorten(found.carry.engagement_summary.text, _ABOUT_CHARS) if found else "",
        problem=problem,
    )


def _time(text: str) -> datetime | None:
    with suppress(ValueError):
        return parse_time(text).astimezone(UTC)
    return None


def _fields(shelf: Shelf, user: str, found: Session) -> Iterator[CarriedField]:
    directory = shelf.turns(user).home
    rows = field_rows(found.carry, lambda name: "\0" not in name and (directory / name).exists())
    for name, field in FIELDS.items():
        own = [(text, source) for of, text, source in rows if of == name]
        is_empty = len(own) == 1 and own[0] == ("(nothing)", "")
        carried = () if is_empty else tuple(CarriedRow(text, _sources(source)) for text, source in own)
        yield CarriedField(name, field.what, field.limit, field.read_by, carried)


def _sources(text: str) -> tuple[Place, ...]:
    found = []
    for path in filter(None, text.split(", ")):
        match = _PLACE.fullmatch(path)
        turn = turn_number(match[1]) if match else None
        name = match[2] if match and turn is not None else path
        found.append(Place(path, turn, name, is_file=turn is not None and not name.endswith("/")))
    return tuple(found)
