"""Import of saved turns: all lines are checked first, then every turn appears as a whole."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from pathlib import Path

from panda.documents.context import ContextDocument, FrontMatter, Section, Text, render_context
from panda.documents.json_text import load_json, may_hold_halves
from panda.documents.progress import progress
from panda.documents.times import Clock, parse_time
from panda.errors import FileFormatError, ImportFileError, Location, StoreError
from panda.store.files import (
    held_lock,
    held_temporary,
    make_directory,
    read_text,
    render_json,
    store_errors,
    sync_path,
    write_synced,
)
from panda.store.layout import CLAIM_WAIT_SECONDS, CONTEXT_MD, RESPONSE_MD, Layout, UserStore
from panda.store.records import ImportLine, IndexSummary, Metadata, parse
from panda.store.turns import CONTEXT_SCHEMA

_NO_LINES = (
    "write one JSON object a line; notes are no turns: put them into users/USER/knowledge/ of the store"
)
_BUILDERS = 16  # they wait for the disk most of their time


@dataclass(frozen=True)
class NewTurn:
    where: str  # file and line, for errors
    user: str  # user id
    session: str  # session id
    at: datetime  # when it was said; whole seconds
    query: str  # what the user said
    response: str  # what was answered; may be empty
    number: int = 0  # turn number; 0 if it is still to be given
    summary: IndexSummary | None = None  # what the index is to show, if given

    @property
    def key(self) -> tuple[str, datetime, str, str]:
        """What tells it from others."""
        return self.session, self.at, self.query, self.response


def _read_turns(source: Path | Iterable[str], name: str | None) -> Iterator[NewTurn]:
    """The turns of the lines of a file that is called *name*; blank lines are skipped."""
    name = name or (str(source) if isinstance(source, Path) else "<stdin>")
    try:
        if isinstance(source, Path):
            source = read_text(source, pipe=True).removeprefix("\ufeff").split("\n")
        for number, text in enumerate(source, 1):
            if text.strip():
                yield _read_turn(text, name, number)
    except FileFormatError as exc:
        fix = exc.fix or (None if exc.key else _NO_LINES)
        raise ImportFileError(exc.message, name, line=exc.line, key=exc.key, fix=fix) from exc


def _read_turn(text: str, name: str, number: int) -> NewTurn:
    line, where = parse(ImportLine, text.strip(), where=name, line=number), Location(name, line=number)
    if may_hold_halves(text) and json.loads(text) != load_json(text):
        raise FileFormatError("the line holds half a surrogate pair", where=where, fix="take it out")
    try:
        at = parse_time(line.at).replace(microsecond=0)
    except (ValueError, OverflowError) as exc:
        message = f"{line.at[:80]!r} is not an ISO 8601 time"
        raise FileFormatError(message, where=where, key="at", fix="2026-01-04T14:30:00Z") from exc
    number = line.turn if isinstance(line.turn, int) else 0
    summary = None
    if line.summary is not None or line.topics:
        summary = IndexSummary(line.summary, line.topics or (), None, has_research=False, research_topic=None)
    return NewTurn(where, line.user, line.session, at, line.query, line.response, number, summary)


@dataclass(frozen=True)
class ImportedTurn:
    """What became of one line."""

    user: str  # user id
    turn: int  # turn number, given or assigned
    session: str  # session id
    created: bool  # False if the same turn was there already


@dataclass(frozen=True)
class ImportReport:
    turns: tuple[ImportedTurn, ...]  # one for each line, in the order of the file

    @property
    def created(self) -> int:
        return sum(turn.created for turn in self.turns)

    @property
    def unchanged(self) -> int:
        """Number of lines whose turn was there already."""
        return len(self.turns) - self.created


def import_turns(
    source: Path | Iterable[str],
    layout: Layout,
    clock: Clock,
    *,
    name: str | None = None,
    dry_run: bool = False,
) -> ImportReport:
    """
    Write the turns of an import file, called *name* in errors, as saved turns of status imported. Given
    numbers are kept and may fill gaps; other lines get the next numbers, in the order of the file. A turn
    that is there already with the same session, time, query and response is left alone. Missing users are
    made. A dry run tells what would become of each line. After an ImportFileError (a line is wrong, or its
    number is taken by another turn) nothing was changed; after a StoreError turns that did appear are whole.
    """
    turns: dict[str, list[NewTurn]] = {}
    read = list(_read_turns(source, name))
    for turn in read:
        turns.setdefault(turn.user, []).append(turn)
    stores = [UserStore(layout.root, user, clock) for user in sorted(turns)]

    def plan() -> list[tuple[NewTurn, bool]]:
        numbers = {store.user: _Numbers(store, turns[store.user]) for store in stores}
        planned = [(turn, *numbers[turn.user].of(turn)) for turn in read]
        return [(replace(turn, number=number), is_new) for turn, number, is_new in planned]

    planned = plan()
    if any(is_new for _, is_new in planned) and not dry_run:
        with ExitStack() as locks:
            locks.enter_context(_sessions_held(layout, [turn for turn, is_new in planned if is_new]))
            for store in stores:
                make_directory(store.turns)
                locks.enter_context(store.numbering("panda import"))
            planned = plan()
            highest = {turn.user: turn.number for turn, _ in sorted(planned, key=lambda one: one[0].number)}
            for store in stores:
                store.raise_counter(highest[store.user])
            new = [turn for turn, is_new in planned if is_new]
            with progress("importing", len(new)) as advance:
                _write(new, layout, clock(), advance)
    return ImportReport(
        tuple(ImportedTurn(turn.user, turn.number, turn.session, is_new) for turn, is_new in planned)
    )


def write_turns(turns: Sequence[NewTurn], layout: Layout, now: datetime, advance: Callable[[], None]) -> None:
    """
    Write turns of which the numbers are nobody else's, as saved turns of status imported; after an error
    turns that did appear are whole.
    """
    with _sessions_held(layout, turns):
        _write(turns, layout, now, advance)


@contextmanager
def _sessions_held(layout: Layout, turns: Sequence[NewTurn]) -> Iterator[None]:
    """
    The locks of the sessions, with their files out of the way: from here on their turns alone say what they
    carry, until somebody writes them anew.
    """
    with ExitStack() as locks:
        for user, session in sorted({(turn.user, turn.session) for turn in turns}):
            path = layout.of(user).session(session)
            if path.parent.is_dir():
                lock = layout.of(user).session_lock(session)
                held = held_lock(lock, holder="panda import", wait_seconds=CLAIM_WAIT_SECONDS)
                locks.enter_context(held)
                with store_errors(path, "remove"):
                    path.unlink(missing_ok=True)
        yield


class _Numbers:
    """Those that are there, and those that are to come."""

    def __init__(self, store: UserStore, turns: Sequence[NewTurn]) -> None:
        self._store, self._there = store, set(store.numbers())
        given = {turn.number for turn in turns}
        self._free = count(max(store.counter(), *self._there, *given, 0) + 1)
        self._planned: dict[int, NewTurn] = {}
        self._saved: dict[object, list[int]] = {}  # numbers, that no line gives, of turns by their keys
        for number in sorted(self._there - given) if 0 in given else ():
            self._saved.setdefault(self._key(number), []).append(number)

    def of(self, turn: NewTurn) -> tuple[int, bool]:
        """The number of a turn, and whether it is to be written. ImportFileError: it is another one's."""
        number, by = turn.number, None
        if not number:
            saved = self._saved.get(turn.key)
            number = saved.pop(0) if saved else next(self._free)
        planned = self._planned.setdefault(number, turn)
        if planned is not turn and (planned.key, planned.summary) != (turn.key, turn.summary):
            by = planned.where
        elif number in self._there and not self._is_saved(number, turn):
            by = f"a turn with other content: {self._store.turn(number).directory}"
        if by:
            message = f"turn {number} of user {turn.user} is taken by {by}"
            fix = "take the line out, or give a number that is free"
            raise ImportFileError(message, where=turn.where, fix=fix)
        return number, planned is turn and number not in self._there

    def _key(self, number: int) -> object:
        """What tells a saved turn from others; None if it cannot be read, so that it equals none."""
        folder = self._store.open(number)
        try:
            metadata = folder.read_metadata()
            response = folder.read_text(RESPONSE_MD) if folder.has(RESPONSE_MD) else ""
        except (FileFormatError, StoreError):
            return None
        return metadata.session_id, metadata.created_at, metadata.query, response

    def _is_saved(self, number: int, turn: NewTurn) -> bool:
        try:
            summary = turn.summary and self._store.open(number).find(IndexSummary)
        except (FileFormatError, StoreError):
            return False
        return self._key(number) == turn.key and summary == turn.summary


def _write(turns: Sequence[NewTurn], layout: Layout, now: datetime, advance: Callable[[], None]) -> None:
    """Builds all directories in one temporary directory a user, then renames them all to their places."""
    with ExitStack() as stack:
        built: dict[Path, Path] = {}  # by its place
        for user in sorted({turn.user for turn in turns}):
            store = layout.of(user)
            with store_errors(store.turns, "write in"):
                made = stack.enter_context(held_temporary(store.turns / "import", directory=True))
            places = [store.turn(turn.number).directory for turn in turns if turn.user == user]
            built |= {place: made / place.name for place in places}
        pool = stack.enter_context(ThreadPoolExecutor(_BUILDERS))
        stack.callback(pool.shutdown, cancel_futures=True)
        places = [layout.of(turn.user).turn(turn.number).directory for turn in turns]
        for _ in pool.map(lambda turn, place: _build(built[place], turn, now), turns, places):
            advance()
        for place, directory in built.items():
            with store_errors(place, "create"):
                directory.rename(place)
    for parent in {place.parent for place in built}:
        sync_path(parent)


def _build(directory: Path, turn: NewTurn, now: datetime) -> None:
    front = FrontMatter(CONTEXT_SCHEMA, turn.number, turn.user, turn.session, "chat", turn.at)
    answer = Section(5, (Text(turn.response),) if turn.response else ())
    metadata = Metadata(
        turn=turn.number,
        user_id=turn.user,
        session_id=turn.session,
        mode="chat",
        query=turn.query,
        status="imported",
        route=(),
        next=None,
        created_at=turn.at,
        updated_at=now,
        saved_at=now,
        answered=bool(turn.response.strip()),
        seed=None,
    )
    files = {
        CONTEXT_MD: render_context(ContextDocument(front, (Section(0, (Text(turn.query),)), answer))),
        RESPONSE_MD: turn.response,
    }
    for record in (metadata, turn.summary) if turn.summary else (metadata,):
        files[record.FILE] = render_json(record.to_json())
    with store_errors(directory, "create"):
        directory.mkdir()
    for name, text in files.items():
        write_synced(directory / name, text.encode())
    sync_path(directory)
