"""The pages of sessions: which there are, what each carries to its next turn, and from where."""

import re
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace

from panda.addons.view.shelf import PageQuery, Shelf
from panda.errors import NotFoundError, Problem
from panda.session.file import closed_at, fold_turns, load_session
from panda.session.session_lines import field_rows
from panda.store.carry import FIELDS
from panda.store.files import why_unread
from panda.store.layout import check_id, turn_number
from panda.store.records import Session
from panda.store.turns import read_row
from panda.store.visit_records import SAVED_STATUSES

_PAGE_ROWS = 50
_MOST_LOOKED = 2_000
"""So many of the newest turns are looked at for sessions that have no file yet."""
_MOST_FOLDED = 200
_MOST_TURNS = 100
_PLACE = re.compile(r"turns/(turn_\d+)/(.+)")


def session_names(shelf: Shelf, user: str) -> list[str]:
    """All sessions that are known of a user, by their files or turns, the last active first."""
    store = shelf.turns(user)
    times = dict[str, float]()
    for name in shelf.sessions(user):
        with suppress(OSError):
            times[name] = store.session(name).stat().st_mtime
    for number, name in _recent(shelf, user):
        times.setdefault(name, number - 1e12)  # behind all files, the newest first
    return sorted(times, key=lambda name: (-times[name], name))


def _recent(shelf: Shelf, user: str) -> Iterator[tuple[int, str]]:
    """The newest saved turns with their sessions, newest first; each is read once."""
    store = shelf.turns(user)
    sessions_by_turn = shelf.get_reader(("sessions", user), dict[int, str])
    for number in shelf.numbers(user)[: -_MOST_LOOKED - 1 : -1]:
        if number not in sessions_by_turn:
            row = read_row(store, number)
            if row is None or row.session is None or row.status not in SAVED_STATUSES:
                continue
            sessions_by_turn[number] = row.session
        yield number, sessions_by_turn[number]


def load_session_list(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The list of a user's sessions. Raises UsageError: its place is no number."""
    user = query.parameters["user"]
    names = query.part(session_names(shelf, user), _PAGE_ROWS)
    numbers = shelf.numbers(user)
    return SimpleNamespace(
        user=user,
        users=shelf.users(),
        names=names,
        rows=[_read(shelf, user, name) for name in names],
        looked_to=numbers[-_MOST_LOOKED] if len(numbers) > _MOST_LOOKED else None,
    )


def load_session_page(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The page of a session. Raises NotFoundError: there is none of that name."""
    user = query.parameters["user"]
    name = query.parameters["session"]
    store = shelf.turns(user)
    check_id(name, what="session")
    row = _read(shelf, user, name)
    session = row.session
    turns = []
    if session is None and row.problem is None:
        raise NotFoundError(f"user {user} has no session {name}", where=str(store.home))
    if session is not None:
        newest = session.turns[: -_MOST_TURNS - 1 : -1]
        turns = [turn for entry in newest if (turn := read_row(store, entry.turn))]
    return SimpleNamespace(
        user=user,
        row=row,
        fields=_carried(shelf, user, session) if session else {},
        described=FIELDS,
        turns=turns,
        turns_left=len(session.turns) - len(turns) + session.turns_cut if session else 0,
    )


def _read(shelf: Shelf, user: str, name: str) -> SimpleNamespace:
    """A session as far as it can be read, made of its turns where its file is not there, or damaged."""
    store = shelf.turns(user)
    closed = None
    session = None
    problem = None
    try:
        session = load_session(store, name)
    except (Problem, OSError) as exc:
        problem = why_unread(exc)
    is_made = session is None
    if session is None:
        numbers = [number for number, of in _recent(shelf, user) if of == name][:_MOST_FOLDED]
        try:
            session = fold_turns(store, name, numbers[::-1])
        except (Problem, OSError) as exc:
            message = f"{exc.where}: {exc.message}" if isinstance(exc, Problem) else str(exc)
            problem = problem or message
    try:
        closed = closed_at(store, name)
    except (Problem, OSError, KeyError, TypeError):
        problem = problem or "closed.json cannot be read"
    return SimpleNamespace(name=name, session=session, problem=problem, is_made=is_made, closed=closed)


_Place = tuple[int | None, str]
"""A turn and the name of its file; no turn and a path below the user's directory."""


def _carried(shelf: Shelf, user: str, session: Session) -> dict[str, list[tuple[str, list[_Place]]]]:
    """
    Return the texts that each field carries, [] of an empty one, each with the files that it comes from.
    """
    home = shelf.turns(user).home
    rows = field_rows(session.carry, lambda name: "\0" not in name and (home / name).exists())
    carried: dict[str, list[tuple[str, list[_Place]]]] = {name: [] for name in FIELDS}
    for field, text, source in rows:
        if (text, source) != ("(nothing)", ""):
            carried[field].append((text, [_place(path) for path in filter(None, source.split(", "))]))
    return carried


def _place(path: str) -> _Place:
    match = _PLACE.fullmatch(path)
    turn = turn_number(match[1]) if match else None
    return (turn, match[2]) if match and turn is not None else (None, path)
