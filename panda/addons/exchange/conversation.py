"""Conversations that another program held, and the exchanges in them that become turns."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import msgspec

from panda.documents.json_text import whole_characters
from panda.documents.record_codec import check_instant
from panda.documents.times import parse_time
from panda.store.layout import is_id

Role = Literal["user", "assistant"]
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

_DIGEST_CHARS = 24
_MAX_TIME_CHARS = 64
MOST_CHARS = 100_000
"""Most characters of a query or a reply: what a session carries is read out of each reply, line by line."""
_Record = TypeVar("_Record", bound="ExportRecord")


class ConversationError(Exception):
    """A conversation that does not have the form of its kind; says where."""


class ExportRecord(msgspec.Struct, frozen=True):
    """What is read of an object in an export; keys that are not named are nobody's concern."""

    @classmethod
    def of(cls: type[_Record], value: object) -> _Record:
        """Raises ConversationError: a JSON value has another form; says where."""
        try:
            return msgspec.convert(value, cls, strict=True)
        except (msgspec.ValidationError, RecursionError, OverflowError, UnicodeError) as exc:
            raise ConversationError(str(exc)) from None


@dataclass(frozen=True)
class ImportedMessage:
    """What one side said at once."""

    role: Role | None  # who said it; None for a message that does not read
    text: str  # what was said; may be empty
    at: datetime | None  # when; None if it is not told


@dataclass(frozen=True)
class Conversation:
    """One conversation, as far as it can come in."""

    session: str  # session id, made of the conversation's own id
    title: str  # its title; "" if it has none
    at: datetime | None  # when it began, if it says so
    messages: Sequence[ImportedMessage]  # in order
    left: Mapping[Kind, int]  # what of it does not come in, beside what the messages themselves show


@dataclass(frozen=True)
class Exchange:
    """A query and its reply: what becomes a turn."""

    at: datetime  # when the query was said; whole seconds
    query: str
    response: str


def exchanges_of(conversation: Conversation) -> tuple[list[Exchange], Counter[Kind]]:
    """
    The exchanges of a conversation, and what of it does not become one. Messages of the user that follow each
    other are one query; what the assistant says until the user speaks again is one reply. A message that does
    not read ends both: what stands before it is not joined to what comes after. A query without a time of its
    own has that of its reply, else of what was said before it, else of the conversation.
    """
    left = Counter(conversation.left)
    exchanges: list[Exchange] = []
    last = conversation.at
    for asked, replied in _sides(conversation.messages):
        query, response = ("\n\n".join(m.text for m in side if m.text.strip()) for side in (asked, replied))
        at = next((message.at for message in (*asked, *replied) if message.at is not None), last)
        last = at or last
        if not (query and response):
            left["query without a reply"] += bool(query)
            left["reply without a query"] += bool(response)
        elif max(len(query), len(response)) > MOST_CHARS:
            left["exchange that is too long"] += 1
        elif at is None:
            left["exchange without a time"] += 1
        else:
            exchanges.append(Exchange(at.replace(microsecond=0), query, response))
    return exchanges, +left


def _sides(
    messages: Iterable[ImportedMessage],
) -> Iterator[tuple[list[ImportedMessage], list[ImportedMessage]]]:
    """Yield the messages of the user with the replies to them, in order; one of both may be empty."""
    asked: list[ImportedMessage] = []
    replied: list[ImportedMessage] = []
    for message in messages:
        if message.role is None or (message.role == "user" and replied):
            yield asked, replied
            asked = []
            replied = []
        if message.role is not None:
            (asked if message.role == "user" else replied).append(message)
    yield asked, replied


def session_of(source: str, own_id: str) -> str:
    """
    The session of a conversation that a program held: the same one each time it is imported.

    >>> session_of("llm", "01j5x"), session_of("claude", "Not an id!")
    ('llm-01j5x', 'claude-044be006a76279282db234ad')
    """
    name = f"{source}-{own_id}"
    digest = hashlib.sha256(own_id.encode("utf-8", "surrogatepass")).hexdigest()
    return name if is_id(name) else f"{source}-{digest[:_DIGEST_CHARS]}"


def branch_to(leaf: object, parents: Mapping[str, object]) -> list[str]:
    """The ids from the first message to one; begins where a parent is unknown or comes again."""
    branch: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in parents and leaf not in branch:
        branch[leaf] = None
        leaf = parents[leaf]
    return [*branch][::-1]


def read_moment(value: object) -> datetime | None:
    """Return an instant as exports write it (seconds since 1970, ISO 8601); None if no turn can have it."""
    moment = None
    try:
        if isinstance(value, str) and len(value) <= _MAX_TIME_CHARS:
            moment = parse_time(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value, UTC)
        check_instant("time", moment, is_counted_from=True)
    except (ValueError, OverflowError, OSError):
        return None
    return moment


def clean_text(text: object) -> str:
    """A text that can be written as UTF-8: halves of characters become U+FFFD. "" for what is no text."""
    whole: str = whole_characters(text) if isinstance(text, str) else ""
    return whole


def objects_in(value: object) -> list[dict[str, Any]]:
    """The objects of a JSON list; [] for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
