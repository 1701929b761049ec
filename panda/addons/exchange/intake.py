"""Turns that other programs or stores held, brought into a store, its index and its sessions, each once."""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count, islice
from pathlib import Path

from panda.addons.exchange.conversation import Conversation, ConversationError, Kind, exchanges_of
from panda.addons.exchange.export_files import ExportFile
from panda.documents.context import ContextDocument, FrontMatter, Phase, Section, Text, render_context
from panda.documents.json_text import load_json, may_hold_halves
from panda.documents.progress import progress
from panda.documents.record_codec import check_instant
from panda.documents.times import Clock, parse_time, render_time
from panda.errors import FileFormatError, ImportFileError, Location, Problem
from panda.index.full_text import Index
from panda.session.file import write_imported
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
from panda.store.layout import CLAIM_WAIT_SECONDS, CONTEXT_MD, RESPONSE_MD, Layout, UserStore, users_of
from panda.store.records import ImportLine, IndexSummary, Metadata, parse
from panda.store.turns import CONTEXT_SCHEMA

BATCH_TURNS = 200
"""How many turns of an export appear together; of that many sessions at most the locks are held at once."""
MOST_SESSIONS = 200
"""Sessions whose files an import makes, the newest; those of others are made when they go on."""

_BUILDERS = 16  # they wait for the disk most of their time
_HOLDER = "panda import"
_NO_LINES = (
    "write one JSON object a line; notes are no turns: put them into users/USER/knowledge/ of the store"
)
_Key = bytes
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class NewTurn:
    """A turn to be; saved ones are read as such too, to be compared."""

    where: str  # file and line, for errors
    user: str  # user id
    session: str  # session id
    at: datetime  # when it was said; whole seconds
    query: str  # what the user said
    response: str  # what was answered; may be empty
    number: int = 0  # turn number; 0 if it is still to be given
    summary: IndexSummary | None = None  # what the index is to show, if given

    def is_as(self, other: "NewTurn") -> bool:
        """Return whether the same was said, whatever the number."""
        return replace(self, where="", number=0) == replace(other, where="", number=0)


@dataclass(frozen=True)
class ImportedTurn:
    """What became of one line, or exchange."""

    user: str  # user id
    turn: int  # turn number, given or assigned
    session: str  # session id
    created: bool  # False if the same turn was there already


@dataclass(frozen=True)
class LeftBehind:
    """What of one conversation does not come in."""

    session: str | None  # session of the conversation; None if it does not read
    title: str  # its title; "" if it has none
    kind: Kind  # what
    count: int  # how many
    why: str | None = None  # what is wrong with it


@dataclass
class Imported:
    """What came in, or would; the last five are of an export of another program."""

    turns: list[ImportedTurn] = field(default_factory=list)
    """What became of each line or exchange; a dry run knows no numbers of an export's new turns."""
    created: int = 0  # how many turns are new
    new_users: Sequence[str] = ()  # who was not there before
    conversations: int | None = None  # conversations that were read, damaged ones too; None for JSON lines
    sessions: set[str] = field(default_factory=set)  # sessions of the new turns
    first: datetime | None = None  # when the oldest new query was said
    last: datetime | None = None  # when the newest was
    left: list[LeftBehind] = field(default_factory=list)  # what does not come in

    @property
    def unchanged(self) -> int:
        """Number of turns that were there already."""
        return sum(not turn.created for turn in self.turns)

    @property
    def counts(self) -> dict[str, int]:
        """Return how much of each kind does not come in, the most first."""
        counts: Counter[str] = Counter()
        for entry in self.left:
            counts[entry.kind] += entry.count
        return dict(counts.most_common())


def import_file(file: ExportFile, store: UserStore, *, dry_run: bool) -> Imported:
    """
    The turns of a file, of an export those of this user, in the store, its index and its sessions; what a
    kill leaves undone of the latter two, their next reader does. The sessions of an export, which are
    thousands, are made when they go on. Raises ImportFileError: the file does not read; nothing was changed.
    """
    users_before = users_of(store)
    if file.source == "jsonl":
        done = import_turns(file.path, store, store.clock, name=file.name, dry_run=dry_run)
    else:
        done = _import_export(store, file, dry_run=dry_run)
    done.new_users = sorted({turn.user for turn in done.turns}.difference(users_before))
    if dry_run:
        return done
    created = sorted((turn for turn in done.turns if turn.created), key=lambda turn: -turn.turn)
    index = Index(store)
    for user in sorted({turn.user for turn in created}):
        index.record(user, [turn.turn for turn in created if turn.user == user])
    index.close()
    if done.conversations is None:
        newest = list(dict.fromkeys((turn.user, turn.session) for turn in created))
        write_imported(store, newest[:MOST_SESSIONS])
    return done


def import_turns(
    source: Path | Iterable[str],
    layout: Layout,
    clock: Clock,
    *,
    name: str | None = None,
    dry_run: bool = False,
) -> Imported:
    """
    Write the turns of JSON lines, called *name* in errors, as saved turns of status imported. Given numbers
    are kept and may fill gaps; other lines get the next numbers, in the order of the file. A turn that is
    there already with the same session, time, query and response is left alone. Missing users are made. A dry
    run tells what would become of each line. After an ImportFileError (a line is wrong, or its number is
    taken by another turn) nothing was changed; after a StoreError turns that did appear are whole.
    """
    lines = list(_read_lines(source, name))
    of_users: dict[str, list[NewTurn]] = {}
    for line in lines:
        of_users.setdefault(line.user, []).append(line)
    stores = [UserStore(layout.root, user, clock) for user in sorted(of_users)]

    def plan() -> tuple[list[tuple[NewTurn, bool]], dict[str, list[NewTurn]]]:
        """Each turn with its number, and whether it is new; the new ones by user."""
        numbered = {store.user: _numbered(store, of_users[store.user]) for store in stores}
        planned = [next(numbered[line.user]) for line in lines]
        new: dict[str, list[NewTurn]] = {user: [] for user in of_users}
        for turn, is_new in planned:
            if is_new:
                new[turn.user].append(turn)
        return planned, new

    planned, new = plan()
    if any(new.values()) and not dry_run:
        with ExitStack() as locks:
            for store in stores:
                locks.enter_context(_sessions_held(store, {turn.session for turn in new[store.user]}))
            for store in stores:
                make_directory(store.turns)
                locks.enter_context(store.numbering(_HOLDER))
            planned, new = plan()
            with progress("importing", sum(map(len, new.values()))) as advance:
                for store in stores:
                    if turns := new[store.user]:
                        store.raise_counter(max(turn.number for turn in turns))
                        _write(store, turns, advance)
    done = [ImportedTurn(turn.user, turn.number, turn.session, is_new) for turn, is_new in planned]
    return Imported(done, sum(turn.created for turn in done))


def _read_lines(source: Path | Iterable[str], name: str | None) -> Iterator[NewTurn]:
    """The turns of the lines; blank ones are skipped."""
    name = name or (str(source) if isinstance(source, Path) else "<stdin>")
    try:
        if isinstance(source, Path):
            source = read_text(source, pipe=True).removeprefix("\ufeff").split("\n")
        for number, text in enumerate(source, 1):
            if text.strip():
                yield _read_line(text, name, number)
    except FileFormatError as exc:
        fix = exc.fix if exc.key else _NO_LINES
        raise ImportFileError(exc.message, name, line=exc.line, key=exc.key, fix=fix) from exc


def _read_line(text: str, name: str, number: int) -> NewTurn:
    line = parse(ImportLine, text.strip(), where=name, line=number)
    where = Location(name, line=number)
    if may_hold_halves(text) and json.loads(text) != load_json(text):
        raise FileFormatError("the line holds half a surrogate pair", where=where, fix="take it out")
    try:
        at = parse_time(line.at).replace(microsecond=0)
    except (ValueError, OverflowError) as exc:
        message = f"{line.at[:80]!r} is not an ISO 8601 time"
        raise FileFormatError(message, where=where, key="at", fix="2026-01-04T14:30:00Z") from exc
    try:
        check_instant("at", at, is_counted_from=True)
    except ValueError as exc:
        raise FileFormatError(str(exc), where=where, key="at", fix="2026-01-04T14:30:00Z") from exc
    summary = None
    if line.summary is not None or line.topics:
        summary = IndexSummary(line.summary, line.topics or (), None, has_research=False, research_topic=None)
    own_number = line.turn if isinstance(line.turn, int) else 0
    return NewTurn(
        where=where,
        user=line.user,
        session=line.session,
        at=at,
        query=line.query,
        response=line.response,
        number=own_number,
        summary=summary,
    )


def _numbered(store: UserStore, lines: Sequence[NewTurn]) -> Iterator[tuple[NewTurn, bool]]:
    """
    Each turn of a user with its number, and whether it is to be written. ImportFileError: its number is
    another one's.
    """
    there = set(store.numbers())
    wanted_numbers = {line.number for line in lines}
    free = count(max(store.counter(), *there, *wanted_numbers, 0) + 1)
    saved: dict[_Key, int] = {}
    if 0 in wanted_numbers:
        turns = filter(None, (_saved_turn(store, number) for number in sorted(there - wanted_numbers)))
        saved = {key: turn.number for key, turn in _keyed(turns)}
    keys = (key for key, _ in _keyed(line for line in lines if not line.number))
    first: dict[int, NewTurn] = {}
    for line in lines:
        number = line.number or saved.get(next(keys)) or next(free)
        by = None
        planned = first.setdefault(number, line)
        if planned is not line and not planned.is_as(line):
            by = planned.where
        elif number in there:
            turn = _saved_turn(store, number, with_summary=line.summary is not None)
            if turn is None or not turn.is_as(line):
                by = f"a turn with other content: {store.turn(number).directory}"
        if by:
            message = f"turn {number} of user {line.user} is taken by {by}"
            fix = "take the line out, or give a number that is free"
            raise ImportFileError(message, where=line.where, fix=fix)
        yield replace(line, number=number), planned is line and number not in there


def _saved_turn(store: UserStore, number: int, *, with_summary: bool = False) -> NewTurn | None:
    """None for one that does not read, so that it equals none."""
    folder = store.open(number)
    with suppress(Problem):
        metadata = folder.read_metadata()
        response = folder.read_text(RESPONSE_MD) if folder.has(RESPONSE_MD) else ""
        return NewTurn(
            where="",
            user=store.user,
            session=metadata.session_id,
            at=metadata.created_at,
            query=metadata.query,
            response=response,
            number=number,
            summary=folder.find(IndexSummary) if with_summary else None,
        )
    return None


def _keyed(turns: Iterable[NewTurn]) -> Iterator[tuple[_Key, NewTurn]]:
    """Each turn with what it is known by; what was said twice is two."""
    seen: Counter[tuple[str, ...]] = Counter()
    for turn in turns:
        content = turn.session, render_time(turn.at), turn.query, turn.response
        yield hashlib.sha256(json.dumps([*content, seen[content]]).encode()).digest()[:16], turn
        seen[content] += 1


def _import_export(store: UserStore, file: ExportFile, *, dry_run: bool) -> Imported:
    if dry_run:
        return _plan(store, file)[0]
    make_directory(store.home)
    with held_lock(store.home / "import.lock", holder=_HOLDER, wait_seconds=CLAIM_WAIT_SECONDS):
        done, numbers = _plan(store, file)
        _log.info("checked: %s new turns in %s sessions", f"{done.created:,}", f"{len(done.sessions):,}")
        if numbers:
            make_directory(store.turns)
            with store.numbering(_HOLDER):
                start = max(store.counter(), store.highest()) + 1
                store.raise_counter(start + len(numbers) - 1)
            turns = _new_turns(store, file, numbers, start)
            with progress("importing", done.created) as advance:
                while batch := list(islice(turns, BATCH_TURNS)):
                    with _sessions_held(store, {turn.session for turn in batch}):
                        _write(store, batch, advance)
                    done.turns += [ImportedTurn(t.user, t.number, t.session, created=True) for t in batch]
    return done


def _plan(store: UserStore, file: ExportFile) -> tuple[Imported, dict[_Key, int]]:
    """
    Return what there is to do, and the number of each exchange that is new, counted from 0 in order of time;
    nothing is written. Raises ImportFileError: the file does not read to its end.
    """
    done = Imported(conversations=0)
    forgotten: set[tuple[str, datetime]] = set()
    there = {key: turn.number for key, turn in _keyed(_imported_turns(store, forgotten))}
    order: list[tuple[datetime, int, _Key]] = []
    seen: set[_Key] = set()
    with progress("reading", file.size()) as advance:
        for number, conversation in enumerate(file.conversations(advance), 1):
            done.conversations = number
            if isinstance(conversation, ConversationError):
                done.left.append(LeftBehind(None, "", "damaged conversation", 1, str(conversation)))
                continue
            session = conversation.session
            turns, left = _turns_of(conversation, store.user, file.name)
            latest: datetime | None = None
            for key, turn in _keyed(turns):
                at = turn.at
                latest = max(latest or at, at)
                if (session, at) in forgotten:
                    left["forgotten turn"] += 1
                elif key in there and key not in seen:
                    done.turns.append(ImportedTurn(store.user, there[key], session, created=False))
                elif key not in seen:
                    order.append((latest, len(order), key))
                    done.sessions.add(session)
                    done.first, done.last = min(done.first or at, at), max(done.last or at, at)
                seen.add(key)
            done.left += [LeftBehind(session, conversation.title, *kind) for kind in left.items()]
    done.created = len(order)
    return done, {key: number for number, (_, _, key) in enumerate(sorted(order))}


def _imported_turns(store: UserStore, forgotten: set[tuple[str, datetime]]) -> Iterator[NewTurn]:
    """The imported turns; where something was forgotten is added. What does not read is neither."""
    for number in store.numbers():
        with suppress(Problem):
            metadata = store.open(number).read_metadata()
            if metadata.forgotten_at:
                forgotten.add((metadata.session_id, metadata.created_at))
            elif metadata.status == "imported" and (turn := _saved_turn(store, number)):
                yield turn


def _turns_of(conversation: Conversation, user: str, name: str) -> tuple[list[NewTurn], Counter[Kind]]:
    exchanges, left = exchanges_of(conversation)
    session = conversation.session
    return [
        NewTurn(
            where=name,
            user=user,
            session=session,
            at=exchange.at,
            query=exchange.query,
            response=exchange.response,
        )
        for exchange in exchanges
    ], left


def _new_turns(store: UserStore, file: ExportFile, numbers: dict[_Key, int], start: int) -> Iterator[NewTurn]:
    """The planned turns in the order of the file. ImportFileError: it has changed since it was planned."""
    for conversation in file.conversations():
        if isinstance(conversation, Conversation):
            for key, turn in _keyed(_turns_of(conversation, store.user, file.name)[0]):
                if (number := numbers.pop(key, None)) is not None:
                    yield replace(turn, number=start + number)
    if numbers:
        message = f"the file has changed while it was read: {len(numbers)} turns are not in it any more"
        raise ImportFileError(message, where=file.name, fix="run the command again")


@contextmanager
def _sessions_held(store: UserStore, sessions: Iterable[str]) -> Iterator[None]:
    """
    The locks of the sessions, with their files out of the way: from here on their turns alone say what they
    carry, until somebody writes them anew.
    """
    with ExitStack() as locks:
        for session in sorted(sessions):
            path = store.session(session)
            lock = store.session_lock(session)
            if path.parent.is_dir():
                locks.enter_context(held_lock(lock, holder=_HOLDER, wait_seconds=CLAIM_WAIT_SECONDS))
                with store_errors(path, "remove"):
                    path.unlink(missing_ok=True)
        yield


def _write(store: UserStore, turns: Sequence[NewTurn], advance: Callable[[], None]) -> None:
    """
    Builds the directories of turns, of which the numbers are nobody else's, in a temporary one, then renames
    them all to their places; after an error turns that did appear are whole.
    """
    now = store.clock()
    with ExitStack() as stack:
        with store_errors(store.turns, "write in"):
            temporary = stack.enter_context(held_temporary(store.turns / "import", directory=True))
        pool = stack.enter_context(ThreadPoolExecutor(_BUILDERS))
        stack.callback(pool.shutdown, cancel_futures=True)
        places = [store.turn(turn.number).directory for turn in turns]
        for _ in pool.map(lambda turn, place: _build(temporary / place.name, turn, now), turns, places):
            advance()
        for place in places:
            with store_errors(place, "create"):
                (temporary / place.name).rename(place)
    sync_path(store.turns)


def _build(directory: Path, turn: NewTurn, now: datetime) -> None:
    front = FrontMatter(
        CONTEXT_SCHEMA,
        turn.number,
        user_id=turn.user,
        session_id=turn.session,
        mode="chat",
        created_at=turn.at,
    )
    query = Section(Phase.QUERY_ANALYZER, (Text(turn.query),))
    answer = Section(Phase.SYNTHESIZER, (Text(turn.response),) if turn.response else ())
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
        CONTEXT_MD: render_context(ContextDocument(front, (query, answer))),
        RESPONSE_MD: turn.response,
    }
    files[metadata.FILE] = render_json(metadata.to_json())
    if turn.summary:
        files[turn.summary.FILE] = render_json(turn.summary.to_json())
    with store_errors(directory, "create"):
        directory.mkdir()
    for name, text in files.items():
        write_synced(directory / name, text.encode())
    sync_path(directory)
