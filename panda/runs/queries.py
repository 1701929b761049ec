"""The lines of a batch: queries, what they expect, and whether what came of one is that."""

import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from panda.documents.record_codec import Id, Record, decode, encode
from panda.documents.safe_text import one_line
from panda.errors import Location, Problem, UsageError
from panda.language.text import fold_name, plain_signs
from panda.phases.running_turn import check_query
from panda.store.files import parse_json
from panda.store.outcome import TurnOutcome

_Phrases = str | tuple[str, ...]
_ItemId = Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]


class Expectation(Record, frozen=True):
    """What must come of a query; what is not said is not asked, but that the exit code is 0."""

    contains: _Phrases = ()  # phrases that the answer holds, as a reader sees them, whatever their case
    not_contains: _Phrases = ()  # phrases that it does not hold
    cites: _Phrases = ()  # node ids that it cites
    exit_code: int = 0  # as of `panda turn`
    answered: bool | None = None  # whether anything was found to answer with
    outcome: TurnOutcome | tuple[TurnOutcome, ...] | UnsetType = UNSET
    """What the turn comes to, or one of several; the exit code then counts only where it is not 0."""


class Query(Record, frozen=True):
    """One line of a batch."""

    id: _ItemId  # unique among the lines
    query: str  # as it is given to `panda turn`
    user: Id | None = None  # whose turn; None for the user of the settings
    session: Id | None = None  # the session that it joins; None for one of its own
    mode: Literal["chat", "code"] = "chat"  # as of `panda turn`
    expect: Expectation = Expectation()  # what must come of it

    @property
    def digest(self) -> str:
        """Digest of all that it says, 16 hex digits."""
        text = json.dumps(encode(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Answer:
    """What came of a query, as far as it can be expected."""

    exit_code: int  # as of `panda turn`
    text: str | None = None  # the approved answer, or the question that is asked back
    cited: Sequence[str] = ()  # node ids
    answered: bool | None = None  # whether anything was found to answer with
    outcome: TurnOutcome | None = None  # None if there is no turn that has ended


def read_queries(
    lines: Iterable[str], *, name: str, check_user: Callable[[str, str], None] = lambda user, where: None
) -> list[Query]:
    """
    The queries of JSON lines, all checked; blank lines are skipped.

    Raises:
        FileFormatError: A line is no JSON, or has a key that is unknown, missing or of the wrong type.
        UsageError: Two lines have one id, a query cannot start a turn, or there is no line.
    """
    queries: list[Query] = []
    places: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = Location(name, line=number)
        query = decode(Query, parse_json(line, where=name, line=number), where=where)
        if query.id in places:
            message = f"the id {query.id!r} is that of line {places[query.id]} too"
            raise UsageError(message, where=where, fix="give every line an id of its own")
        places[query.id] = number
        if query.user is not None:
            check_user(query.user, where)
        try:
            check_query(query.query)
        except Problem as exc:
            raise UsageError(exc.message, where=where, fix=exc.fix) from exc
        queries.append(query)
    if not queries:
        raise UsageError("there is no query", where=name, fix='give lines such as {"id": "1", "query": "…"}')
    return queries


def unmet(expected: Expectation, answer: Answer, error: str | None = None) -> list[str]:
    """
    Return what is not as it was expected, a sentence each; *error* is what the turn ended with.

    >>> unmet(Expectation(contains="697", cites="turn:12"), Answer(0, "It costs $ 699.", ["turn:13"]))
    ["the answer does not hold '697'", "the answer does not cite 'turn:12'"]
    """
    faults = []
    why = f": {error}" if error else ""
    if expected.outcome is not UNSET:
        outcomes = (expected.outcome,) if isinstance(expected.outcome, str) else expected.outcome
        if answer.outcome not in outcomes:
            faults.append(f"its outcome is {answer.outcome}, not {' or '.join(outcomes)}{why}")
    if answer.exit_code != expected.exit_code and (expected.outcome is UNSET or expected.exit_code):
        faults.append(f"it ended {answer.exit_code}, not {expected.exit_code}{why}")
    if expected.answered is not None and answer.answered is not expected.answered:
        faults.append("it was answered" if answer.answered else "it was not answered")
    text = _as_read(answer.text or "")
    lacking = [phrase for phrase in _several(expected.contains) if _as_read(phrase) not in text]
    unwanted = [phrase for phrase in _several(expected.not_contains) if _as_read(phrase) in text]
    uncited = [citation for citation in _several(expected.cites) if citation not in answer.cited]
    return [
        *faults,
        *(f"the answer does not hold {phrase!r}" for phrase in lacking),
        *(f"the answer holds {phrase!r}" for phrase in unwanted),
        *(f"the answer does not cite {citation!r}" for citation in uncited),
    ]


def _as_read(text: str) -> str:
    """Return a text so that those which look the same are the same, whatever their case and white space."""
    visible_text = "".join(char for char in plain_signs(text) if unicodedata.category(char) != "Cf")
    return fold_name(one_line(visible_text))


def _several(phrases: _Phrases) -> tuple[str, ...]:
    return (phrases,) if isinstance(phrases, str) else phrases
