"""
_log = logging.getLogger(__name__)
Turns that other programs or stores held, brought into a store, its index and its sessions.

Of an export everything is checked first; then its exchanges are written, each once.
"""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any

from panda.documents.progress import progress
from panda.documents.times import render_time
from panda.errors import ImportFileError, Problem
from panda.exchange.conversation import Conversation, ConversationError, Exchange, Kind, Watch, exchanges_of
from panda.exchange.files import ExportFile
from panda.exchange.import_file import ImportedTurn, ImportReport, NewTurn, import_turns, write_turns
from panda.index.index import Index
from panda.session.file import write_imported
from panda.store.files import held_lock, make_directory
from panda.store.layout import CLAIM_WAIT_SECONDS, RESPONSE_MD, UserStore, users_of

BATCH_TURNS = 200
"""How many turns appear together; of that many sessions at most the locks are held at once."""
MOST_SESSIONS = 200
"""Sessions whose files an import makes, the newest; those of others are made when they go on."""

_Key = bytes
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeftBehind:
    """What of one conversation does not come in."""

    session: str | None  # session of the conversation; None if it does not read
    title: str  # its title; "" if it has none
    kind: Kind  # what
    count: int  # how many
    why: str | None = None  # what is wrong with it


@dataclass
class IntakePlan:
    numbers: dict[_Key, int] = field(default_factory=dict)
    """Number of each exchange that is new, counted from 0 in order of time."""
    known: list[ImportedTurn] = field(default_factory=list)  # turns that are there already
    left: list[LeftBehind] = field(default_factory=list)  # what does not come in
    sessions: set[str] = field(default_factory=set)  # sessions of the new turns
    first: datetime | None = None  # when the oldest new query was said
    last: datetime | None = None  # when the newest was
    conversations: int = 0  # conversations that were read, damaged ones too

    @property
    def counts(self) -> dict[str, int]:
        """How much of each kind does not come in, the most first."""
        counts: Counter[str] = Counter()
        for entry in self.left:
            counts[entry.kind] += entry.count
        return dict(counts.most_common())


@dataclass(frozen=True)
class Imported:
    """What came in, or would."""

    report: ImportReport
    """What became of each turn; of a dry run those that are there already, or have a number."""
    created: int  # how many turns are new
    plan: IntakePlan | None  # what an export of another program held; None for JSON lines
    new_users: Sequence[str] = ()  # who was not there before


def import_file(file: ExportFile, store: UserStore, *, dry_run: bool) -> Imported:
    """
    The turns of a file, of an export those of this user, in the store, its index and its sessions; what a
    kill leaves undone of the latter two, their next reader does. The sessions of an export, which are
    thousands, are made when they go on. Raises ImportFileError: the file does not read; nothing was changed.
    """
    known = users_of(store)
    if file.source == "jsonl":
        clock, name = store.clock, file.name
        report = import_turns(file.path, store, clock, name=name, dry_run=dry_run)
        done = Imported(report, report.created, None)
    else:
        done = _take_in(store, file, dry_run=dry_run)
    done = replace(done, new_users=sorted({turn.user for turn in done.report.turns}.difference(known)))
    if dry_run:
        return done
    created = sorted((turn for turn in done.report.turns if turn.created), key=lambda turn: -turn.turn)
    index = Index(store)
    for user in sorted({turn.user for turn in created}):
        index.record(user, [turn.turn for turn in created if turn.user == user])
    index.close()
    if done.plan is None:
        newest = list(dict.fromkeys((turn.user, turn.session) for turn in created))
        write_imported(store, newest[:MOST_SESSIONS])
    return done


def _take_in(store: UserStore, file: ExportFile, *, dry_run: bool) -> Imported:
    if dry_run:
        plan = _plan(store, file)
        return Imported(ImportReport(tuple(plan.known)), len(plan.numbers), plan)
    make_directory(store.home)
    with held_lock(store.home / "import.lock", holder="panda import", wait_seconds=CLAIM_WAIT_SECONDS):
        plan = _plan(store, file)
        _log.info("checked: %s new turns in %s sessions", f"{len(plan.numbers):,}", f"{len(plan.sessions):,}")
        with progress("importing", len(plan.numbers)) as advance:
            written = _write(store, file, plan, advance) if plan.numbers else []
    return Imported(ImportReport((*plan.known, *written)), len(written), plan)


def _plan(store: UserStore, file: ExportFile) -> IntakePlan:
    """What there is to do; nothing is written. Raises ImportFileError: the file does not read to its end."""
    plan = IntakePlan()
    there, forgotten = _turns_there(store)
    order: list[tuple[datetime, int, _Key]] = []
    seen: set[_Key] = set()
    with progress("reading", file.size()) as advance:
        for conversation in file.conversations(advance):
            plan.conversations += 1
            if isinstance(conversation, ConversationError):
                plan.left.append(LeftBehind(None, "", "damaged conversation", 1, str(conversation)))
                continue
            session = conversation.session
            exchanges, left = exchanges_of(conversation)
            latest: datetime | None = None
            for key, exchange in _keyed(session, exchanges):
                at = exchange.at
                latest = max(latest or at, at)
                if (session, at) in forgotten:
                    left["forgotten turn"] += 1
                elif key not in seen:
                    seen.add(key)
                    if key in there:
                        plan.known.append(ImportedTurn(store.user, there[key], session, created=False))
                        continue
                    order.append((latest, len(order), key))
                    plan.sessions.add(session)
                    plan.first, plan.last = min(plan.first or at, at), max(plan.last or at, at)
            for kind, count in left.items():
                plan.left.append(LeftBehind(session, conversation.title, kind, count))
    plan.numbers = {key: number for number, (_, _, key) in enumerate(sorted(order))}
    return plan


def _write(store: UserStore, file: ExportFile, plan: IntakePlan, watch: Watch) -> list[ImportedTurn]:
    """
    Write what is new; killed midway, the next import of the file writes the rest. The new turns, in the order
    of the file. ImportFileError: it has changed since it was planned; turns that did appear are whole.
    """
    make_directory(store.turns)
    with store.numbering("panda import"):
        first = max(store.counter(), store.highest()) + 1
        store.raise_counter(first + len(plan.numbers) - 1)
    written: list[ImportedTurn] = []
    turns = _new_turns(store, file, dict(plan.numbers), first)
    while batch := list(islice(turns, BATCH_TURNS)):
        write_turns(batch, store, store.clock(), watch)
        written += [ImportedTurn(turn.user, turn.number, turn.session, created=True) for turn in batch]
    return written


def _new_turns(store: UserStore, file: ExportFile, numbers: dict[_Key, int], first: int) -> Iterator[NewTurn]:
    for conversation in file.conversations():
        if isinstance(conversation, Conversation):
            session = conversation.session
            for key, exchange in _keyed(session, exchanges_of(conversation)[0]):
                if (number := numbers.pop(key, None)) is not None:
                    said = exchange.at, exchange.query, exchange.response
                    yield NewTurn(file.name, store.user, session, *said, first + number)
    if numbers:
        message = f"the file has changed while it was read: {len(numbers)} turns are not in it any more"
        raise ImportFileError(message, where=file.name, fix="run the command again")


def _keyed(session: str, exchanges: Iterable[Exchange]) -> Iterator[tuple[_Key, Exchange]]:
    """Each exchange with what it is known by; one that was held twice is two."""
    seen: Counter[Any] = Counter()
    for exchange in exchanges:
        said = session, render_time(exchange.at), exchange.query, exchange.response
        yield hashlib.sha256(json.dumps([*said, seen[said]]).encode()).digest()[:16], exchange
        seen[said] += 1


def _turns_there(store: UserStore) -> tuple[dict[_Key, int], set[tuple[str, datetime]]]:
    """Numbers of the imported turns, and where something was forgotten; what does not read is neither."""
    sessions: dict[str, list[tuple[int, Exchange]]] = {}
    forgotten: set[tuple[str, datetime]] = set()
    for number in store.numbers():
        with suppress(Problem):
            folder = store.open(number)
            metadata = folder.read_metadata()
            session, at = metadata.session_id, metadata.created_at
            if metadata.forgotten_at:
                forgotten.add((session, at))
            elif metadata.status == "imported":
                exchange = Exchange(at, metadata.query, folder.read_text(RESPONSE_MD))
                sessions.setdefault(session, []).append((number, exchange))
    there: dict[_Key, int] = {}
    for session, turns in sessions.items():
        keys = (key for key, _ in _keyed(session, (exchange for _, exchange in turns)))
        there.update(zip(keys, (number for number, _ in turns), strict=True))
    return there, forgotten
