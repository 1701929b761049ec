"""Import of saved turns: all lines are checked first, then every turn appears as a whole."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat
from pathlib import Path

from panda.documents.context import ContextDocument, FrontMatter, Section, Text, render_context
from panda.documents.json_text import may_hold_halves
from panda.documents.progress import Progress, no_progress
from panda.documents.times import Clock, parse_time
from panda.errors import FileFormatError, ImportFileError, Location, StoreError
from panda.store.files import (
    held_lock,
    held_temporary,
    make_directory,
    parse_json,
    read_json,
    read_text,
    render_json,
    store_errors,
    sync_path,
    write_synced,
)
from panda.store.layout import (
    CLAIM_WAIT_SECONDS,
    CONTEXT_MD,
    INDEX_SUMMARY_JSON,
    METADATA_JSON,
    RESPONSE_MD,
    Layout,
    UserStore,
)
from panda.store.records import Metadata, json_problems
from panda.store.turns import CONTEXT_SCHEMA, TurnFolder

IMPORT_LINE = "import.jsonl"
_NO_LINES = (
    "write one JSON object a line; notes are no turns: put them into users/USER/knowledge/ of the store"
)
_BUILDERS = 16


@dataclass(frozen=True)
class ImportLine:
    """One turn to import."""

    where: str  # file and line, for errors
    user: str  # user id
    turn: int | None  # turn number, if the line gives one
    session: str  # session id
    at: datetime  # when it was said; whole seconds
    query: str  # what the user said
    response: str  # what was answered; may be empty
    summary: str | None  # summary for the index, if given
    topics: tuple[str, ...] | None  # topics for the index, if given

    @property
    def has_summary(self) -> bool:
        """Whether the line says anything for the index."""
        return self.summary is not None or bool(self.topics)


def read_import_lines(source: Path | Iterable[str], *, name: str | None = None) -> list[ImportLine]:
    """
    All turns of an import file; blank lines are skipped.

    Args:
        name: Name for errors; None is the path, and that of stdin if *source* is lines.

    Raises:
        ImportFileError: A line is not what it must be; names it.
    """
    if isinstance(source, Path):
        name = name or str(source)
        try:
            lines: Iterable[str] = read_text(source, pipe=True).removeprefix("\ufeff").split("\n")
        except FileFormatError as exc:
            raise ImportFileError(exc.message, name, line=exc.line, fix=exc.fix) from exc
    else:
        name, lines = name or "<stdin>", source
    return [_parse_line(text, Location(name, line=i)) for i, text in enumerate(lines, 1) if text.strip()]


def _parse_line(text: str, where: str) -> ImportLine:
    try:
        value = parse_json(text.strip(), where=where)
    except FileFormatError as exc:
        raise ImportFileError(exc.message, where=where, fix=_NO_LINES) from exc
    if may_hold_halves(text) and json.loads(text) != value:
        raise ImportFileError("the line holds half a surrogate pair", where=where)
    for problem in json_problems(IMPORT_LINE, value, path=where):
        raise ImportFileError(problem.message, where, key=problem.key)
    try:
        at = parse_time(value["at"]).replace(microsecond=0)
    except (ValueError, OverflowError) as exc:
        raise ImportFileError(
            f"{value['at'][:80]!r} is not an ISO 8601 time",
            where=Location(where, key="at"),
            fix="2026-01-04T14:30:00Z",
        ) from exc
    topics = value.get("topics")
    return ImportLine(
        where=where,
        user=value["user"],
        turn=value.get("turn"),
        session=value["session"],
        at=at,
        query=value["query"],
        response=value["response"],
        summary=value.get("summary"),
        topics=tuple(topics) if topics is not None else None,
    )


_Key = tuple[str, datetime, str, str]


@dataclass(frozen=True)
class ImportedTurn:
    """What became of one line."""

    user: str  # user id
    turn: int  # turn number, given or assigned
    session: str  # session id
    created: bool  # False if the same turn was there already


@dataclass(frozen=True)
class ImportReport:
    """What an import did."""

    turns: tuple[ImportedTurn, ...]  # one for each line, in the order of the file

    @property
    def created(self) -> int:
        """Number of turns written."""
        return sum(turn.created for turn in self.turns)

    @property
    def unchanged(self) -> int:
        """Number of lines whose turn was there already."""
        return len(self.turns) - self.created


@dataclass(frozen=True)
class NumberedLine:
    """A turn to write."""

    line: ImportLine  # what it says
    number: int  # its number


@dataclass(frozen=True)
class _Step(NumberedLine):
    create: bool


def import_turns(
    source: Path | Iterable[str],
    layout: Layout,
    clock: Clock,
    *,
    name: str | None = None,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> ImportReport:
    """
    Write the turns of an import file as saved turns of status imported.

    Given numbers are kept and may fill gaps; other lines get the next numbers, in the order of the file. A
    turn that is there already with the same session, time, query and response is left alone.

    Args:
        layout: The store; missing users are created.
        name: Name for errors, as for read_import_lines.
        dry_run: Whether nothing is written: it is told what would become of each line.
        progress: Shows how many turns are written.

    Returns:
        What became of each line.

    Raises:
        ImportFileError: A line is wrong, or its number is taken by another turn; nothing was changed.
        LockHeldError: Another process is claiming numbers for too long.
        StoreError: A file cannot be read or written; turns that did appear are whole.
    """
    lines = read_import_lines(source, name=name)
    stores = {user: UserStore(layout.root, user, clock) for user in sorted({line.user for line in lines})}
    steps = _plan(lines, stores)
    if any(step.create for step in steps) and not dry_run:
        with ExitStack() as locks:
            for one in sorted({(step.line.user, step.line.session) for step in steps if step.create}):
                locks.enter_context(_hold_session(layout, *one))
            for store in stores.values():
                make_directory(layout.of(store.user).turns)
                locks.enter_context(store.numbering("panda import"))
            steps = _plan(lines, stores)
            for user, store in stores.items():
                store.raise_counter(max(step.number for step in steps if step.line.user == user))
            created = [step for step in steps if step.create]
            with progress("importing", len(created)) as advance:
                _write(created, layout, clock(), advance)
    return ImportReport(
        tuple(ImportedTurn(step.line.user, step.number, step.line.session, step.create) for step in steps)
    )


@contextmanager
def _hold_session(layout: Layout, user: str, session: str) -> Iterator[None]:
    """
    The session's lock, with its file out of the way: from here on its turns alone say what it carries, until
    somebody writes the file anew.
    """
    if not layout.of(user).session(session).parent.is_dir():
        yield
        return
    lock = layout.of(user).session_lock(session)
    with held_lock(lock, holder="panda import", wait_seconds=CLAIM_WAIT_SECONDS):
        path = layout.of(user).session(session)
        with store_errors(path, "remove"):
            path.unlink(missing_ok=True)
        yield


def _plan(lines: list[ImportLine], stores: dict[str, UserStore]) -> list[_Step]:
    """What is to be done for each line, without doing it."""
    by_user: dict[str, list[ImportLine]] = {user: [] for user in stores}
    for line in lines:
        by_user[line.user].append(line)
    plans = {user: _UserPlan(store, by_user[user]) for user, store in stores.items()}
    return [plans[line.user].step(line) for line in lines]


class _UserPlan:
    """Numbers of one user's lines."""

    def __init__(self, store: UserStore, lines: list[ImportLine]) -> None:
        self.store = store
        self.existing = set(store.numbers())
        self.planned: dict[int, ImportLine] = {}
        given = {line.turn for line in lines if line.turn is not None}
        self.next = max(store.counter(), *self.existing, *given, 0) + 1
        self.unclaimed: dict[_Key, list[int]] = {}
        if any(line.turn is None for line in lines):
            for number in sorted(self.existing - given):
                key = _key_of(store.open(number))
                if key:
                    self.unclaimed.setdefault(key, []).append(number)

    def step(self, line: ImportLine) -> _Step:
        if line.turn is None:
            return self._unnumbered(line)
        if line.turn in self.planned:
            if not _same(self.planned[line.turn], line):
                raise _taken(line, line.turn, f"by {self.planned[line.turn].where}")
            return _Step(line, line.turn, create=False)
        self.planned[line.turn] = line
        if line.turn not in self.existing:
            return _Step(line, line.turn, create=True)
        folder = self.store.open(line.turn)
        if _key_of(folder) != _key(line) or not _summary_agrees(folder, line):
            raise _taken(line, line.turn, f"by a turn with other content: {folder.paths.directory}")
        return _Step(line, line.turn, create=False)

    def _unnumbered(self, line: ImportLine) -> _Step:
        known = self.unclaimed.get(_key(line), [])
        if known:
            number = known.pop(0)
            if not _summary_agrees(self.store.open(number), line):
                raise _taken(line, number, "by the same turn with another summary")
            return _Step(line, number, create=False)
        self.next += 1
        return _Step(line, self.next - 1, create=True)


def _taken(line: ImportLine, number: int, by: str) -> ImportFileError:
    message = f"turn {number} of user {line.user} is taken {by}"
    return ImportFileError(message, where=line.where, fix="take the line out, or give a number that is free")


def _key(line: ImportLine) -> _Key:
    return line.session, line.at, line.query, line.response


def _key_of(folder: TurnFolder) -> _Key | None:
    """What an existing turn is recognised by; None if it cannot be read, so that it equals no line."""
    try:
        metadata = folder.read_metadata()
        response = folder.read_text(RESPONSE_MD) if folder.has(RESPONSE_MD) else ""
    except (FileFormatError, StoreError):
        return None
    return metadata.session_id, metadata.created_at, metadata.query, response


def _same(one: ImportLine, other: ImportLine) -> bool:
    return _key(one) == _key(other) and (one.summary, one.topics) == (other.summary, other.topics)


def _summary_agrees(folder: TurnFolder, line: ImportLine) -> bool:
    """Whether the turn's index summary is the line's, or the line has none."""
    if not line.has_summary:
        return True
    try:
        value = read_json(folder.paths / INDEX_SUMMARY_JSON)
    except (FileFormatError, StoreError):
        return False
    return isinstance(value, dict) and value == _summary_json(line)


def _summary_json(line: ImportLine) -> dict[str, object]:
    return {
        "summary": line.summary,
        "topics": list(line.topics or ()),
        "intent": None,
        "has_research": False,
        "research_topic": None,
    }


def write_turns(
    lines: Sequence[NumberedLine], layout: Layout, now: datetime, advance: Callable[[], None]
) -> None:
    """
    Write turns of which the numbers are nobody else's, as saved turns of status imported.

    Raises:
        LockHeldError: A session of theirs that is there already is held for too long.
        StoreError: A file cannot be written; turns that did appear are whole.
    """
    with ExitStack() as locks:
        for one in sorted({(one.line.user, one.line.session) for one in lines}):
            locks.enter_context(_hold_session(layout, *one))
        _write(lines, layout, now, advance)


def _write(steps: Sequence[NumberedLine], layout: Layout, now: datetime, advance: Callable[[], None]) -> None:
    """Builds all directories in one temporary directory a user, then renames them all to their places."""
    with ExitStack() as stack:
        building: dict[str, Path] = {}
        for user in sorted({step.line.user for step in steps}):
            with store_errors(layout.of(user).turns, "write in"):
                place = layout.of(user).turns / "import"
                building[user] = stack.enter_context(held_temporary(place, directory=True))
        places = [layout.of(step.line.user).turn(step.number).directory for step in steps]
        built = [building[step.line.user] / place.name for step, place in zip(steps, places, strict=True)]
        _build_all(built, steps, now, advance)
        for directory, place in zip(built, places, strict=True):
            with store_errors(place, "create"):
                directory.rename(place)
    for directory in {place.parent for place in places}:
        sync_path(directory)


def _build_all(
    places: Sequence[Path], steps: Sequence[NumberedLine], now: datetime, advance: Callable[[], None]
) -> None:
    """Build directories side by side, since each waits for the disk most of its time."""
    with ThreadPoolExecutor(_BUILDERS) as pool:
        try:
            for _ in pool.map(_build, places, steps, repeat(now)):
                advance()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _build(directory: Path, step: NumberedLine, now: datetime) -> None:
    with store_errors(directory, "create"):
        directory.mkdir()
    for name, text in _files(step, now).items():
        write_synced(directory / name, text.encode())
    sync_path(directory)


def _files(step: NumberedLine, now: datetime) -> dict[str, str]:
    line = step.line
    front = FrontMatter(CONTEXT_SCHEMA, step.number, line.user, line.session, "chat", line.at)
    answer = Section(5, (Text(line.response),) if line.response else ())
    metadata = Metadata(
        turn=step.number,
        user_id=line.user,
        session_id=line.session,
        mode="chat",
        query=line.query,
        status="imported",
        route=(),
        next=None,
        created_at=line.at,
        updated_at=now,
        saved_at=now,
        answered=bool(line.response.strip()),
        seed=None,
    )
    files = {
        CONTEXT_MD: render_context(ContextDocument(front, (Section(0, (Text(line.query),)), answer))),
        RESPONSE_MD: line.response,
        METADATA_JSON: render_json(metadata.to_json()),
    }
    if line.has_summary:
        files[INDEX_SUMMARY_JSON] = render_json(_summary_json(line))
    return files
