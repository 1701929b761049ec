"""
The conversations in the SQLite log of the command `llm`, in its older and its newer tables. Runs in a worker:
a damaged file can keep SQLite at work for ever, where no signal and no handler reaches it.
"""

import heapq
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from panda.addons.exchange.conversation import (
    Conversation,
    ImportedMessage,
    Kind,
    Watch,
    clean_text,
    objects_in,
    read_moment,
    session_of,
)
from panda.errors import ImportFileError

_NEEDED = {
    "responses": {"id", "prompt", "response", "conversation_id", "datetime_utc"},
    "turns": {"id", "thread_id", "parent_message_hash", "tip_message_hash", "datetime_utc"},
    "messages": {"hash", "parent_hash", "role"},
    "parts": {"message_hash", "position", "type", "text", "payload"},
    "attachments": {"id", "type"},
}
_GIVEN = ("prompt_fragments", "tool_calls", "tool_results", "prompt_attachments")
_PARTS = """
SELECT part.type, part.text, part.payload, attachment.type
FROM parts AS part LEFT JOIN attachments AS attachment
ON attachment.id = CASE WHEN json_valid(part.payload) THEN json_extract(part.payload, '$.attachment.id') END
WHERE part.message_hash = ? ORDER BY part.position
"""

_LEAST_ROW_BYTES = 4


class _Logged(NamedTuple):
    """One call of a model: what was asked and answered."""

    conversation: str  # id of its conversation; its own where it stands alone
    id: str  # grows with time
    messages: list[ImportedMessage]
    left: Counter[Kind]


class LlmLog:
    """A log, for reading, that errors call *name*; ImportFileError where it is none, or does not read."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name

    def count(self) -> int:
        with self._reading() as database:
            tables = [name for name in (*_NEEDED, *_GIVEN) if _columns(database, name)]
            rows = {name: self._count_rows(database, name) for name in tables}
            return rows.get("responses", 0) + rows.get("turns", 0)

    def _count_rows(self, database: sqlite3.Connection, table: str) -> int:
        """Raises ImportFileError: there are more rows than fit into the file: its pages lead in circles."""
        most = self._path.stat().st_size // _LEAST_ROW_BYTES
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} NOT INDEXED LIMIT {most + 1})"
        rows: int = database.execute(sql).fetchone()[0]
        if rows > most:
            raise self._error(
                f"the table {table} has more than {most:,} rows, the most that the file can hold"
            )
        return rows

    def conversations(self, watch: Watch = lambda: None) -> Iterator[Conversation]:
        """All conversations, in order of their ids; *watch* is called for each call that was read."""
        with self._reading() as database:
            logged = heapq.merge(_responses(database), _turns(database), key=lambda call: call[:2])
            for own_id, calls in groupby(logged, key=lambda call: call.conversation):
                messages: list[ImportedMessage] = []
                left: Counter[Kind] = Counter()
                for call in calls:
                    messages += call.messages
                    left.update(call.left)
                    watch()
                yield Conversation(session_of("llm", own_id), "", None, messages, left)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            uri = f"file:{quote(str(self._path.absolute()))}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True)) as database:
                database.execute("PRAGMA trusted_schema = OFF")  # what runs in it is nobody's here
                database.execute("PRAGMA cell_size_check = ON")
                database.row_factory = sqlite3.Row
                database.text_factory = lambda data: data.decode("utf-8", "replace")
                self._check(database)
                yield database
        except sqlite3.Error as exc:
            raise self._error(f"the log does not read: {exc}") from exc

    def _check(self, database: sqlite3.Connection) -> None:
        """Raises ImportFileError: tables or columns of them are not there, or are views."""
        views = database.execute("SELECT lower(name) FROM sqlite_master WHERE type = 'view'")
        unfit = sorted({*_NEEDED, *_GIVEN}.intersection(name for (name,) in views))
        if unfit:  # the rows of a view need not end
            raise self._error(f"{', '.join(unfit)} is no table in it")
        wanted = {"responses"} if _columns(database, "responses") else set()
        if _columns(database, "turns"):
            wanted |= _NEEDED.keys() - {"responses"}
        for table in sorted(wanted):
            if missing := _NEEDED[table] - _columns(database, table):
                raise self._error(f"the table {table} lacks {', '.join(sorted(missing))}")
        if not wanted:
            raise self._error("it has neither the table responses nor the table turns")

    def _error(self, message: str) -> ImportFileError:
        fix = "give the file that `llm logs path` names; `llm logs` brings an old one up to date"
        return ImportFileError(message, where=self._name, fix=fix)


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {row["name"] for row in database.execute(f"PRAGMA table_info({table})")}


def _responses(database: sqlite3.Connection) -> Iterator[_Logged]:
    """The calls in the table of responses, but those that the message store has too."""
    if not _columns(database, "responses"):
        return
    own = "id NOT IN (SELECT id FROM turns)" if _columns(database, "turns") else "1"
    attached = _count_attached(database)
    for row in database.execute(
        "SELECT id, prompt, response, datetime_utc, coalesce(conversation_id, id) AS conversation"
        f" FROM responses WHERE {own} ORDER BY conversation, id",
    ):
        left = attached[row["id"]]
        messages = []
        if query := clean_text(row["prompt"]):
            messages.append(ImportedMessage("user", query, read_moment(row["datetime_utc"])))
        reply = clean_text(row["response"])
        if reply or not left["tool message"]:  # else the reply is yet to come
            messages.append(ImportedMessage("assistant", reply, None))
        yield _Logged(str(row["conversation"]), str(row["id"]), messages, left)


def _count_attached(database: sqlite3.Connection) -> dict[object, Counter[Kind]]:
    """By response: what was given along with its prompt, and the calls of tools."""
    attached: dict[object, Counter[Kind]] = defaultdict(Counter)
    for table in _GIVEN:
        if "response_id" not in _columns(database, table):
            continue
        sql = f"SELECT response_id, NULL FROM {table}"
        if table == "prompt_attachments":
            sql = f"SELECT response_id, type FROM {table} LEFT JOIN attachments ON id = attachment_id"
        kind: Kind = "tool message" if table.startswith("tool") else "file"
        for response, type_ in database.execute(sql):
            attached[response]["picture" if str(type_).startswith("image/") else kind] += 1
    return attached


def _turns(database: sqlite3.Connection) -> Iterator[_Logged]:
    if not _columns(database, "turns"):
        return
    for row in database.execute(
        "SELECT id, parent_message_hash AS parent, tip_message_hash AS tip, datetime_utc,"
        " coalesce(thread_id, id) AS conversation FROM turns ORDER BY conversation, id",
    ):
        left: Counter[Kind] = Counter()
        at = read_moment(row["datetime_utc"])
        messages = []
        for role, hash_ in _added(database, row["parent"], row["tip"]):
            text, calls = _read_message(database, hash_, left)
            if role == "user" and text:
                messages.append(ImportedMessage("user", text, at))
            elif role == "assistant" and (text.strip() or not calls):
                messages.append(ImportedMessage("assistant", text, None))
        yield _Logged(str(row["conversation"]), str(row["id"]), messages, left)


def _added(database: sqlite3.Connection, parent: object, tip: object) -> list[tuple[str, object]]:
    """
    Role and hash of the messages that a call was given anew and that it added, in order. What was said before
    is known from the calls before.
    """
    added: dict[object, str] = {}
    hash_ = tip
    is_input = False
    while hash_ is not None and hash_ not in added:
        is_input = is_input or hash_ == parent
        row = database.execute("SELECT role, parent_hash FROM messages WHERE hash = ?", (hash_,)).fetchone()
        if row is None or (is_input and row["role"] not in ("user", "tool")):
            break
        added[hash_] = row["role"]
        hash_ = row["parent_hash"]
    return [(role, hash_) for hash_, role in added.items()][::-1]


def _read_message(database: sqlite3.Connection, hash_: object, left: Counter[Kind]) -> tuple[str, int]:
    """
    Return the text of a message without the files that it was given, and the number of its calls of tools.
    """
    texts = []
    calls = 0
    for type_, text, payload, attached in database.execute(_PARTS, (hash_,)).fetchall():
        if type_ == "text":
            value = None
            with suppress(TypeError, ValueError, RecursionError):
                value = json.loads(payload)
            pieces = objects_in(value.get("text_ref") if isinstance(value, dict) else None)
            literals = (piece["literal"] for piece in pieces if isinstance(piece.get("literal"), str))
            texts += [clean_text(text), clean_text("".join(literals).strip())]
            left["file"] += sum("fragment" in piece for piece in pieces)
        elif type_ == "attachment":
            left["picture" if str(attached).startswith("image/") else "file"] += 1
        elif type_ == "reasoning":
            left["thought"] += 1
        else:
            calls += type_ == "tool_call"
            left["tool message"] += 1
    return "".join(texts), calls
