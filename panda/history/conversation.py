"""Conversations that another program held, and the exchanges in them that become turns."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from panda.documents.times import parse_time
from panda.store.layout import is_id

Kind = Literal[
    "picture",
    "file",
    "tool message",
    "thought",
    "other content",
    "message of another branch",
    "damaged message",
    "damaged conversation",
    "query without a reply",
    "reply without a query",
    "exchange without a time",
    "exchange that is too long",
    "forgotten turn",
]
"""What does not come in."""
Watch = Callable[[], None]
"""Called each time that another megabyte, or another thing, is done."""

_HALVES = re.compile("[\ud800-\udfff]")
_DIGEST_CHARS = 24
MOST_CHARS = 100_000
"""Most characters of a query or a reply: what a session carries is read out of each reply, line by line."""


class ConversationError(Exception):
    """A conversation that does not have the form of its kind; says where."""


@dataclass(frozen=True)
class Message:
    """What one side said at once."""

    role: Literal["user", "assistant"] | None  # who said it; None for a message that does not read
    text: str  # what was said; may be empty
    at: datetime | None  # when; None if it is not told


@dataclass(frozen=True)
class Conversation:
    """One conversation, as far as it can come in."""

    session: str  # session id, made of the conversation's own id
    title: str  # its title; "" if it has none
    at: datetime | None  # when it began, if it says so
    messages: Sequence[Message]  # in order
    left: Mapping[Kind, int]  # what of it does not come in, beside what the messages themselves show


@dataclass(frozen=True)
class Exchange:
    """A query and its reply: what becomes a turn."""

    at: datetime  # when the query was said; whole seconds
    query: str  # what the user said
    response: str  # what was answered


def exchanges_of(conversation: Conversation) -> tuple[list[Exchange], Counter[Kind]]:
    """
    The exchanges of a conversation, and what of it does not become one.

    Messages of the user that follow each other are one query; what the assistant says until the user speaks
    again is one reply. A message that does not read ends both: what stands before it is not joined to what
    comes after. A query without a time of its own has that of its reply, else of what was said before it,
    else of the conversation.
    """
    left = Counter(conversation.left)
    found: list[Exchange] = []
    last = conversation.at
    for asked, replied in _sides(conversation.messages):
        query, response = _joined(asked), _joined(replied)
        at = next((one.at for one in (*asked, *replied) if one.at is not None), last)
        last = at or last
        if query and response and max(len(query), len(response)) > MOST_CHARS:
            left["exchange that is too long"] += 1
        elif query and response and at is not None:
            found.append(Exchange(at.replace(microsecond=0), query, response))
        elif query and response:
            left["exchange without a time"] += 1
        elif query:
            left["query without a reply"] += 1
        elif response:
            left["reply without a query"] += 1
    return found, +left


def _sides(messages: Iterable[Message]) -> Iterator[tuple[list[Message], list[Message]]]:
    """What the user said and what was replied, time after time; one of both may be empty."""
    asked: list[Message] = []
    replied: list[Message] = []
    for message in messages:
        if message.role is None or (message.role == "user" and replied):
            yield asked, replied
            asked, replied = [], []
        if message.role == "user":
            asked.append(message)
        elif message.role == "assistant":
            replied.append(message)
    yield asked, replied


def _joined(messages: Iterable[Message]) -> str:
    return "\n\n".join(one.text for one in messages if one.text.strip())


def session_of(source: str, own_id: str) -> str:
    """
    The session of a conversation: the same one each time it is imported.

    Args:
        source: The program that held it, such as "chatgpt".
        own_id: The conversation's id there; anything.

    >>> session_of("llm", "01j5x"), session_of("claude", "Not an id!")
    ('llm-01j5x', 'claude-044be006a76279282db234ad')
    """
    name = f"{source}-{own_id}"
    if is_id(name):
        return name
    digest = hashlib.sha256(own_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{source}-{digest[:_DIGEST_CHARS]}"


def branch_to(leaf: object, parent_of: Callable[[str], object], known: Mapping[str, Any]) -> Iterator[str]:
    """The ids from a message back to the first one; ends where a parent is unknown or comes again."""
    seen: set[str] = set()
    while isinstance(leaf, str) and leaf in known and leaf not in seen:
        seen.add(leaf)
        yield leaf
        leaf = parent_of(leaf)


def read_moment(value: object) -> datetime | None:
    """
    An instant as exports write it: seconds since 1970, or ISO 8601; None for anything else.

    >>> [str(read_moment(one)) for one in (1700000000, "2024-05-01T12:00:00+02:00", "soon")]
    ['2023-11-14 22:13:20+00:00', '2024-05-01 10:00:00+00:00', 'None']
    """
    try:
        if isinstance(value, str):
            return parse_time(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def clean_text(text: str) -> str:
    """
    A text that can be written as UTF-8: halves of characters become U+FFFD.

    >>> clean_text("a\\ud83d")
    'a\ufffd'
    """
    return _HALVES.sub("\ufffd", text)


class ExportRecord(msgspec.Struct, frozen=True):
    """What is read of an object in an export; keys that are not named here are nobody's concern."""


def convert_record(value: object, cls: type[Any]) -> Any:
    """A record out of plain JSON values. Raises ConversationError: it has another form; says where."""
    try:
        return msgspec.convert(value, cls, strict=True)
    except (msgspec.ValidationError, RecursionError, OverflowError, UnicodeError) as exc:
        raise ConversationError(str(exc)) from None
