"""Saved turns taken out of a store: as queries for a batch, as lines for an import, as a transcript."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from panda.documents.context import Phase
from panda.documents.memory_file import is_statement
from panda.documents.progress import progress
from panda.documents.safe_text import UNSAFE, visible
from panda.documents.times import render_time
from panda.errors import FileFormatError, UsageError
from panda.memory.gathered import answer_items
from panda.runs.select import TurnPlace
from panda.store.layout import DOCUMENTS_JSON, RESPONSE_MD
from panda.store.outcome import UNANSWERED, outcome_of
from panda.store.records import IndexSummary, Metadata
from panda.store.turns import TurnFolder
from panda.store.visit_records import SAVED_STATUSES

Format = Literal["queries", "jsonl", "markdown"]
FORMATS: tuple[Format, ...] = ("queries", "jsonl", "markdown")

_AGAIN = "-again"
_MOST_ID_CHARS = 64
_STABLE = ("knowledge", "memory", "fact")
"""Kinds of nodes that a later answer to the same query finds under the same id, statements apart: of those,
turns, visits and research there are newer ones by then."""
_EXIT_CODES = {"approved": 0, "clarify": 21}
_BACKTICKS = re.compile(r"`{3,}")


@dataclass(frozen=True)
class PastTurn:
    """One turn as its files say it."""

    metadata: Metadata  # number, user, session, query, status, times
    reply: str  # what the user saw; "" if nothing was answered, or the answer was not approved
    summary: IndexSummary | None  # what the index shows of it; None if nothing is written
    cited: frozenset[str]  # ids of the nodes that the answer cites
    has_documents: bool  # whether documents were handed over with its query

    @property
    def key(self) -> tuple[str, int]:
        return self.metadata.user_id, self.metadata.turn


@dataclass(frozen=True)
class LeftOut:
    """A turn that is not exported."""

    user: str  # whose turn it is
    turn: int  # its number
    reason: str  # why
    fix: str | None = None  # what can be done about it
    is_damage: bool = False  # whether a file of it does not say what it must


@dataclass(frozen=True)
class Export:
    """What came of it."""

    text: str  # all of it; "" if nothing could be exported
    lines: tuple[dict[str, Any], ...]  # the objects of its lines; none of a transcript
    turns: tuple[PastTurn, ...]  # turns in it, in order
    left_out: tuple[LeftOut, ...]  # turns that are not


def export_turns(places: Sequence[TurnPlace], form: Format, *, numbered: bool = True) -> Export:
    """
    Saved turns as text, in the order of their numbers, so that each conversation stands in its own order.
    Raises UsageError: Two stores have the same turn of a user.
    """
    named = Counter((place.user, place.number) for place in places)
    if twice := [f"turn {number} of {user}" for (user, number), count in named.items() if count > 1]:
        message = f"two stores have {twice[0]}"
        raise UsageError(message, where="SELECTION…", fix="export one store after the other")
    users = list(dict.fromkeys(place.user for place in places))
    turns: list[PastTurn] = []
    lines: list[dict[str, Any]] = []
    left_out: list[LeftOut] = []
    with progress("exporting", len(places)) as advance:
        for place in sorted(places, key=lambda place: (users.index(place.user), place.number)):
            advance()
            try:
                turn = _load(place.folder())
            except FileFormatError as exc:
                reason = f"{exc.message} ({exc.where})" if exc.where else exc.message
                left_out.append(LeftOut(place.user, place.number, reason, exc.fix, is_damage=True))
                continue
            if refusal := _why_not(turn, form):
                left_out.append(LeftOut(*turn.key, *refusal))
                continue
            turns.append(turn)
            if form != "markdown":
                lines.append(
                    _query_line(turn) if form == "queries" else _import_line(turn, numbered=numbered)
                )
    text = render_transcript(turns) if form == "markdown" else "".join(map(_render_line, lines))
    return Export(text, tuple(lines), tuple(turns), tuple(left_out))


def _load(folder: TurnFolder) -> PastTurn:
    metadata = folder.read_metadata()
    has_reply = folder.has(RESPONSE_MD) and metadata.status in SAVED_STATUSES - {"failed"}
    items = (
        answer_items(folder.read_context().section(Phase.SYNTHESIZER))
        if metadata.status == "approved"
        else ()
    )
    return PastTurn(
        metadata=metadata,
        reply=folder.read_text(RESPONSE_MD) if has_reply else "",
        summary=folder.find(IndexSummary),
        cited=frozenset(node_id for item in items for node_id in item.node_ids),
        has_documents=folder.has(DOCUMENTS_JSON),
    )


def _why_not(turn: PastTurn, form: Format) -> tuple[str, str | None] | None:
    """Why a turn does not fit a form, and what can be done about it."""
    metadata = turn.metadata
    if form == "queries" and metadata.status == "forgotten":
        return "it was forgotten", None
    if form == "queries" and metadata.image is not None:
        return "it is about an image", "ask it by hand: panda turn --image FILE"
    if form == "queries" and turn.has_documents:
        return "it was asked with documents", "ask it by hand: panda turn --with FILE"
    if form == "jsonl" and metadata.status not in SAVED_STATUSES:
        is_open = metadata.status != "forgotten"
        return f"its status is {metadata.status}", (
            f"panda turn --resume {metadata.turn} ends it" if is_open else None
        )
    return None


def _query_line(turn: PastTurn) -> dict[str, Any]:
    """
    The line for `panda batch`. Only what a changed answer would still satisfy if it is right is expected: of
    an approved turn that it ends well, answers if it answered, and cites the note, fact or preference that
    was its only source; of one without an answer its outcome; of a question to the user that it asks again.
    Nothing is expected of others.
    """
    metadata = turn.metadata
    line: dict[str, Any] = {
        "id": f"{metadata.user_id}-{metadata.turn}",
        "query": metadata.query,
        "user": metadata.user_id,
        "session": _session_again(metadata.session_id),
        "mode": metadata.mode,
    }
    if metadata.status in _EXIT_CODES:
        line["expect"] = {"exit_code": _EXIT_CODES[metadata.status]}
    if metadata.status == "approved" and metadata.outcome in UNANSWERED:
        line["expect"]["outcome"] = metadata.outcome
    if metadata.status == "approved" and metadata.answered:
        line["expect"]["answered"] = True
        kinds = [(kind, name) for kind, _, name in (node_id.partition(":") for node_id in turn.cited)]
        if len(kinds) == 1 and all(kind in _STABLE and not is_statement(name) for kind, name in kinds):
            line["expect"]["cites"] = list(turn.cited)
    return line


def _session_again(session: str) -> str:
    """The session in which a conversation is held once more: one of its own, so that it begins anew."""
    room = _MOST_ID_CHARS - len(_AGAIN)
    if len(session) > room:
        digest = hashlib.sha256(session.encode()).hexdigest()[:8]
        session = f"{session[: room - len(digest) - 1]}-{digest}"
    return session + _AGAIN


def _import_line(turn: PastTurn, *, numbered: bool) -> dict[str, Any]:
    """The line for `panda import`; without its number the turn gets the next free one there."""
    metadata = turn.metadata
    summary = turn.summary
    line: dict[str, Any] = {
        "user": metadata.user_id,
        "session": metadata.session_id,
        "at": render_time(metadata.created_at),
        "query": metadata.query,
        "response": turn.reply,
    }
    if numbered:
        line["turn"] = metadata.turn
    if summary is not None and summary.summary is not None:
        line["summary"] = summary.summary
    if summary is not None and summary.topics:
        line["topics"] = list(summary.topics)
    return line


def _render_line(value: dict[str, Any]) -> str:
    """One line of JSON; what may reach no terminal as it is stands there as an escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return UNSAFE.sub(lambda char: f"\\u{ord(char[0]):04x}", text) + "\n"


def render_transcript(turns: Sequence[PastTurn]) -> str:
    """
    A transcript in Markdown: a heading for each session, below it its turns in order of their numbers. What
    was said stands in fences that are longer than any row of backticks in it, so that nothing of it is read
    as Markdown; control characters are written out. Empty for no turns.
    """
    sessions: dict[str, list[str]] = {}
    for turn in turns:
        metadata = turn.metadata
        head = f"# Session {metadata.session_id} of {metadata.user_id}\n"
        ending = outcome_of(metadata) or metadata.status
        about = f"## Turn {metadata.turn}, {render_time(metadata.created_at)}, {ending}"
        reply = f"Answer:\n\n{_fenced(turn.reply)}" if turn.reply.strip() else "*No answer was given.*"
        text = f"{about}\n\nQuery:\n\n{_fenced(metadata.query)}\n\n{reply}\n"
        sessions.setdefault(head, [head]).append(text)
    return "\n".join(part for parts in sessions.values() for part in parts)


def _fenced(text: str) -> str:
    """A text as a block that nothing in it can end."""
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=2) + 1)
    return f"{fence}text\n{visible(text).removesuffix(chr(10))}\n{fence}"
