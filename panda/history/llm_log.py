"""The conversations in the SQLite log of the command `llm`, in its older and its newer tables."""

import heapq
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from panda.errors import ImportFileError
from panda.history.conversation import (
    Conversation,
    Kind,
    Message,
    Watch,
    clean_text,
    read_moment,
    session_of,
)
from panda.store.files import uninterrupted

_RESPONSES = {"id", "prompt", "response", "conversation_id", "datetime_utc"}
_TURNS = {"id", "thread_id", "parent_message_hash", "tip_message_hash", "datetime_utc"}
_READ = {"attachments", "messages", "parts", "prompt_attachments", "prompt_fragments", "responses", "turns"}
_READ |= {"tool_calls", "tool_results"}
_STEPS = 10_000  # of SQLite's machine: some hundred microseconds
_MESSAGES, _PARTS = {"hash", "parent_hash", "role"}, {"message_hash", "position", "type", "text", "payload"}


@dataclass(frozen=True)
class _Logged:
    """One call of a model: what was asked and answered."""

    conversation: str  # id of its conversation; its own where it stands alone
    id: str  # grows with time
    messages: tuple[Message, ...]
    left: Mapping[Kind, int]


class LlmLog:
    """
    A log, for reading; *name* is what errors call it.

    Raises:
        ImportFileError: It is no log of llm, or does not read.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name

    def count(self) -> int:
        """How many calls it holds."""
        with self._reading() as database:
            tables = [name for name in ("responses", "turns") if self._columns(database, name)]
            return sum(_begun(database, f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables)

    def conversations(self, watch: Watch = lambda: None) -> Iterator[Conversation]:
        """All conversations, in order of their ids; *watch* is called for each call that was read."""
        try:
            with self._reading() as database:
                logged = heapq.merge(
                    self._responses(database),
                    self._turns(database),
                    key=lambda one: (one.conversation, one.id),
                )
                for own_id, calls in groupby(logged, key=lambda one: one.conversation):
                    messages: list[Message] = []
                    left: Counter[Kind] = Counter()
                    for one in calls:
                        messages += one.messages
                        left.update(one.left)
                        watch()
                    yield Conversation(session_of("llm", own_id), "", None, messages, left)
        except sqlite3.Error as exc:
            raise self._error(f"the log does not read: {exc}") from exc

    def _reading(self) -> "closing[sqlite3.Connection]":
        try:
            database = sqlite3.connect(f"file:{quote(str(self._path.absolute()))}?mode=ro", uri=True)
            database.row_factory = sqlite3.Row
            database.text_factory = lambda data: data.decode("utf-8", "replace")
            has_any = self._columns(database, "responses") or self._columns(database, "turns")
            views = database.execute("SELECT lower(name) FROM sqlite_master WHERE type = 'view'")
            unfit = sorted(_READ.intersection(name for (name,) in views))  # whose rows need not end
        except sqlite3.Error as exc:
            raise self._error(f"the log does not read: {exc}") from exc
        if unfit:
            database.close()
            raise self._error(f"{', '.join(unfit)} is no table in it")
        if not has_any:
            database.close()
            raise self._error("it has neither the table responses nor the table turns")
        return closing(database)

    def _error(self, message: str) -> ImportFileError:
        fix = "give the file that `llm logs path` names; `llm logs` brings an old one up to date"
        return ImportFileError(message, where=self._name, fix=fix)

    def _columns(self, database: sqlite3.Connection, table: str, needed: set[str] | None = None) -> set[str]:
        """The columns of a table; none if it is not there. Raises ImportFileError: it lacks *needed* ones."""
        columns = {row["name"] for row in database.execute(f"PRAGMA table_info({table})")}
        if needed is not None and (missing := needed - columns):
            raise self._error(f"the table {table} lacks {', '.join(sorted(missing))}")
        return columns

    def _responses(self, database: sqlite3.Connection) -> Iterator[_Logged]:
        """The calls in the table of responses, but those that the message store has too."""
        if not self._columns(database, "responses"):
            return
        self._columns(database, "responses", _RESPONSES)
        own = "id NOT IN (SELECT id FROM turns)" if self._columns(database, "turns") else "1"
        given = self._given(database)
        for row in _begun(
            database,
            "SELECT id, prompt, response, datetime_utc, coalesce(conversation_id, id) AS conversation"
            f" FROM responses WHERE {own} ORDER BY conversation, id",
        ):
            left, messages = given.get(row["id"], Counter()), []
            if query := _text(row["prompt"]):
                messages.append(Message("user", query, read_moment(row["datetime_utc"])))
            if (reply := _text(row["response"])) or not left["tool message"]:  # else the reply is yet to come
                messages.append(Message("assistant", reply, None))
            yield _Logged(str(row["conversation"]), str(row["id"]), tuple(messages), left)

    def _given(self, database: sqlite3.Connection) -> dict[object, Counter[Kind]]:
        """By response: what was given along with its prompt, and the calls of tools."""
        found: dict[object, Counter[Kind]] = {}
        for table in ("prompt_fragments", "tool_calls", "tool_results", "prompt_attachments"):
            if "response_id" not in self._columns(database, table):
                continue
            sql = f"SELECT response_id, NULL FROM {table}"
            if table == "prompt_attachments":
                sql = f"SELECT response_id, type FROM {table} LEFT JOIN attachments ON id = attachment_id"
            kind: Kind = "tool message" if table.startswith("tool") else "file"
            for response, type_ in database.execute(sql):
                is_picture = str(type_).startswith("image/")
                found.setdefault(response, Counter())["picture" if is_picture else kind] += 1
        return found

    def _turns(self, database: sqlite3.Connection) -> Iterator[_Logged]:
        """The calls in the message store."""
        if not self._columns(database, "turns"):
            return
        for table, needed in (("turns", _TURNS), ("messages", _MESSAGES), ("parts", _PARTS)):
            self._columns(database, table, needed)
        for row in _begun(
            database,
            "SELECT id, parent_message_hash AS parent, tip_message_hash AS tip, datetime_utc,"
            " coalesce(thread_id, id) AS conversation FROM turns ORDER BY conversation, id",
        ):
            left: Counter[Kind] = Counter()
            at, messages = read_moment(row["datetime_utc"]), []
            for role, text in self._said(database, row["parent"], row["tip"], left):
                if role == "user" and text:
                    messages.append(Message("user", text, at))
                elif role == "assistant" and text is not None:
                    messages.append(Message("assistant", text, None))
            yield _Logged(str(row["conversation"]), str(row["id"]), tuple(messages), left)

    def _said(
        self, database: sqlite3.Connection, parent: object, tip: object, left: Counter[Kind]
    ) -> list[tuple[str, str | None]]:
        """
        Role and text of the messages that a call was given anew and that it added, in order; None for the
        text of one that only calls tools. What was said before is known from the calls before.
        """
        found: list[tuple[str, str | None]] = []
        hash_, is_input, seen = tip, tip == parent, set[object]()
        while hash_ is not None and hash_ not in seen:
            seen.add(hash_)
            is_input = is_input or hash_ == parent
            row = database.execute(
                "SELECT role, parent_hash FROM messages WHERE hash = ?", (hash_,)
            ).fetchone()
            if row is None or (is_input and row["role"] not in ("user", "tool")):
                break
            found.append((row["role"], self._text(database, hash_, left)))
            hash_ = row["parent_hash"]
        return found[::-1]

    def _is_picture(self, database: sqlite3.Connection, payload: object) -> bool:
        attachment = _object(payload).get("attachment")
        own_id = attachment.get("id") if isinstance(attachment, dict) else None
        if not isinstance(own_id, str) or "type" not in self._columns(database, "attachments"):
            return False
        row = database.execute("SELECT type FROM attachments WHERE id = ?", (own_id,)).fetchone()
        return row is not None and str(row["type"]).startswith("image/")

    def _text(self, database: sqlite3.Connection, hash_: object, left: Counter[Kind]) -> str | None:
        """What a message says in words of its own, without the fragments of files that it was given."""
        texts, calls = [], 0
        sql = "SELECT type, text, payload FROM parts WHERE message_hash = ? ORDER BY position"
        for type_, text, payload in database.execute(sql, (hash_,)).fetchall():
            if type_ == "text":
                literals, fragments = _pieces(payload)
                texts.append(_text(text) + literals)
                left["file"] += fragments
            elif type_ == "attachment":
                left["picture" if self._is_picture(database, payload) else "file"] += 1
            elif type_ == "reasoning":
                left["thought"] += 1
            else:
                calls += type_ == "tool_call"
                left["tool message"] += 1
        said = "".join(texts)
        return None if calls and not said.strip() else said


def _begun(database: sqlite3.Connection, sql: str) -> sqlite3.Cursor:
    """A query whose first row is there: the long sorting before it ends with Ctrl-C and SIGTERM."""
    with uninterrupted() as arrived:
        database.set_progress_handler(lambda: bool(arrived), _STEPS)
        return database.execute(sql)


def _object(payload: object) -> dict[str, Any]:
    """The object in a column of JSON; empty for anything else."""
    try:
        value = json.loads(payload) if isinstance(payload, str) else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _pieces(payload: object) -> tuple[str, int]:
    """The words of a text that borrows from files, and how many pieces it borrows."""
    pieces = _object(payload).get("text_ref")
    known = [one for one in pieces if isinstance(one, dict)] if isinstance(pieces, list) else []
    literals = "".join(one["literal"] for one in known if isinstance(one.get("literal"), str))
    return clean_text(literals.strip()), sum("fragment" in one for one in known)


def _text(value: object) -> str:
    """A column that holds a text; "" for anything else."""
    return clean_text(value) if isinstance(value, str) else ""
