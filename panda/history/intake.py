"""Conversations of other programs taken in as turns: all of them checked first, then written, each once."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from panda.documents.times import Clock, parse_time, render_time
from panda.errors import FileFormatError, ImportFileError, StoreError
from panda.history.conversation import (
    Conversation,
    ConversationError,
    Exchange,
    Kind,
    Watch,
    exchanges_of,
)
from panda.history.export_file import ExportFile
from panda.history.import_file import ImportedTurn, NewTurn, write_turns
from panda.store.files import held_lock, make_directory, read_text
from panda.store.layout import CLAIM_WAIT_SECONDS, METADATA_JSON, RESPONSE_MD, Layout, UserStore
from panda.store.visits import load_object, turn_directories

BATCH_TURNS = 200
"""How many turns appear together; of that many sessions at most the locks are held at once."""

_Key = bytes


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
    """What an import is to do."""

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
        found: Counter[str] = Counter()
        for one in self.left:
            found[one.kind] += one.count
        return dict(found.most_common())


class Intake:
    """
    The import of one file for one user.

    Args:
        file: What is read, twice.
    """

    def __init__(self, file: ExportFile, layout: Layout, user: str, clock: Clock) -> None:
        self._file, self._layout, self._clock = file, layout, clock
        self._store = UserStore(layout.root, user, clock)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While the block runs no other import of this kind plans or writes for the user."""
        place = self._layout.of(self._store.user).home
        make_directory(place)
        with held_lock(place / "import.lock", holder="panda import", wait_seconds=CLAIM_WAIT_SECONDS):
            yield

    def plan(self, watch: Watch = lambda: None) -> IntakePlan:
        """
        What there is to do; nothing is written.

        Raises:
            ImportFileError: The file does not read to its end.
        """
        plan = IntakePlan()
        here = _TurnsHere(self._layout, self._store.user)
        order: list[tuple[datetime, int, _Key]] = []
        for conversation in self._file.conversations(watch):
            plan.conversations += 1
            if isinstance(conversation, ConversationError):
                plan.left.append(LeftBehind(None, "", "damaged conversation", 1, str(conversation)))
                continue
            exchanges, left = exchanges_of(conversation)
            latest: datetime | None = None
            for key, exchange in _keyed(conversation.session, exchanges):
                latest = max(latest or exchange.at, exchange.at)
                if (conversation.session, exchange.at) in here.forgotten:
                    left["forgotten turn"] += 1
                elif key in here.numbers:
                    number = here.numbers.pop(key)
                    plan.known.append(ImportedTurn(self._store.user, number, conversation.session, False))
                    plan.numbers[key] = -1
                elif key not in plan.numbers:
                    plan.numbers[key] = 0
                    order.append((latest, len(order), key))
                    plan.sessions.add(conversation.session)
                    plan.first = min(plan.first or exchange.at, exchange.at)
                    plan.last = max(plan.last or exchange.at, exchange.at)
            for kind, count in left.items():
                plan.left.append(LeftBehind(conversation.session, conversation.title, kind, count))
        order.sort()
        plan.numbers = {key: number for number, (_, _, key) in enumerate(order)}
        return plan

    def write(self, plan: IntakePlan, watch: Watch = lambda: None) -> list[ImportedTurn]:
        """
        Write what is new, under `alone`. Killed midway, the next import of the file writes the rest.

        Returns:
            The new turns, in the order of the file.

        Raises:
            ImportFileError: The file has changed since it was planned; turns that did appear are whole.
            LockHeldError: A session that goes on, or the numbers, are held for too long.
        """
        if not plan.numbers:
            return []
        make_directory(self._layout.of(self._store.user).turns)
        with self._store.numbering("panda import"):
            first = max(self._store.counter(), self._store.highest()) + 1
            self._store.raise_counter(first + len(plan.numbers) - 1)
        written: list[ImportedTurn] = []
        batch: list[NewTurn] = []
        for line in self._lines(dict(plan.numbers), first):
            batch.append(line)
            if len(batch) == BATCH_TURNS:
                written += self._write(batch, watch)
                batch = []
        return written + self._write(batch, watch)

    def _lines(self, left: dict[_Key, int], first: int) -> Iterator[NewTurn]:
        for conversation in self._file.conversations():
            if not isinstance(conversation, Conversation):
                continue
            for key, exchange in _keyed(conversation.session, exchanges_of(conversation)[0]):
                if (number := left.pop(key, None)) is not None:
                    yield NewTurn(
                        self._file.name,
                        self._store.user,
                        conversation.session,
                        exchange.at,
                        exchange.query,
                        exchange.response,
                        first + number,
                    )
        if left:
            message = f"the file has changed while it was read: {len(left)} turns are not in it any more"
            raise ImportFileError(message, where=self._file.name, fix="run the command again")

    def _write(self, batch: list[NewTurn], watch: Watch) -> list[ImportedTurn]:
        write_turns(batch, self._layout, self._clock(), watch)
        return [ImportedTurn(turn.user, turn.number, turn.session, True) for turn in batch]


def _keyed(session: str, exchanges: list[Exchange]) -> Iterator[tuple[_Key, Exchange]]:
    """Each exchange with what it is known by; one that was held twice is two."""
    seen: Counter[_Key] = Counter()
    for exchange in exchanges:
        plain = _digest(session, exchange.at, exchange.query, exchange.response, 0)
        yield _digest(session, exchange.at, exchange.query, exchange.response, seen[plain]), exchange
        seen[plain] += 1


def _digest(session: str, at: datetime, query: str, response: str, repeated: int) -> _Key:
    text = json.dumps([session, render_time(at), query, response, repeated])
    return hashlib.sha256(text.encode()).digest()[:16]


class _TurnsHere:
    """The imported turns of a user, and where something was forgotten; turns that do not read are neither."""

    def __init__(self, layout: Layout, user: str) -> None:
        self.numbers: dict[_Key, int] = {}
        self.forgotten: set[tuple[str, datetime]] = set()
        seen: Counter[_Key] = Counter()
        for number, directory in turn_directories(layout.of(user).turns):
            with suppress(FileFormatError, StoreError, ValueError, KeyError, TypeError, AttributeError):
                metadata: Mapping[str, Any] = load_object(directory / METADATA_JSON)
                session, at = str(metadata["session_id"]), parse_time(metadata["created_at"])
                if metadata.get("forgotten_at"):
                    self.forgotten.add((session, at))
                elif metadata.get("status") == "imported":
                    said = (session, at, metadata["query"], read_text(directory / RESPONSE_MD))
                    plain = _digest(*said, 0)
                    self.numbers[_digest(*said, seen[plain])] = number
                    seen[plain] += 1
