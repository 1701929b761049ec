"""The list of turns: the newest first, those that match what is asked, or what a search finds."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace

import numpy as np

from panda.actions.search import search_index
from panda.addons.view.shelf import PageQuery, Shelf
from panda.documents.safe_text import shorten, strip_citations
from panda.documents.times import read_instant
from panda.errors import Problem, UsageError
from panda.index.sources import NO_TIME
from panda.index.tables import IndexView, Integers, session_key
from panda.retrieval.ranking import Bounds
from panda.store.files import read_beneath
from panda.store.layout import RESPONSE_MD, UserStore, check_id
from panda.store.outcome import TurnOutcome
from panda.store.records import STATUSES
from panda.store.turns import TurnRow, read_row

PAGE_ROWS = 50
_MOST_OPENED = 3_000
"""So many turns are opened for one page at most; it then says how far it has looked."""
_ANSWER_CHARS = 200


@dataclass(frozen=True)
class Filter:
    """What the turns must be like; None takes all."""

    search: str | None  # words to look for
    session: str | None  # session id
    status: str | None  # as in metadata.json
    outcome: str | None  # a value of TurnOutcome
    since: datetime | None  # claimed at this instant or later
    until: datetime | None  # claimed before this instant

    @property
    def is_open(self) -> bool:
        """Return whether it takes every turn."""
        return self == Filter(search=None, session=None, status=None, outcome=None, since=None, until=None)

    def takes(self, row: TurnRow) -> bool:
        """
        Return whether a turn is taken, as far as its metadata.json tells; an unreadable one unless asked.
        """
        if row.problem is not None:
            return self.is_open
        return (
            self.session in (None, row.session)
            and self.status in (None, row.status)
            and self.outcome in (None, row.outcome)
            and (self.since is None or (row.at is not None and row.at >= self.since))
            and (self.until is None or (row.at is not None and row.at < self.until))
        )


def load_turn_list(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The page that an address asks for. Raises UsageError: a field of the filter is wrong."""
    user = query.parameters.get("user", shelf.store.user)
    store = shelf.turns(user)
    wanted = _read_filter(query)
    before = query.number("before")
    numbers = shelf.numbers(user)
    rows: list[TurnRow] = []
    looked_to = None
    older = None
    is_behind = False
    if wanted.search:
        hits, is_behind = _search(shelf, user, wanted.search, wanted)
        rows = [row for number in hits if (row := read_row(store, number)) and wanted.takes(row)]
        rows = rows[:PAGE_ROWS]
    else:
        for opened, number in enumerate(_candidates(shelf, user, numbers, wanted, before), 1):
            if len(rows) == PAGE_ROWS:
                older = rows[-1].number
                break
            if opened > _MOST_OPENED:
                older = looked_to = number + 1
                break
            row = read_row(store, number)
            if row is not None and wanted.takes(row):
                rows.append(row)
    return SimpleNamespace(
        user=user,
        users=shelf.users(),
        sessions=sorted({*shelf.sessions(user), *(row.session for row in rows if row.session)}),
        statuses=STATUSES,
        outcomes=list(TurnOutcome),
        fields=query.fields,
        is_filtered=not wanted.is_open,
        rows=[(row, _beginning(store, row.number)) for row in rows],
        total=len(numbers),
        before=before,
        older=older,
        looked_to=looked_to,
        is_behind=is_behind,
    )


def _read_filter(query: PageQuery) -> Filter:
    fields = query.fields
    session = fields.get("session")
    if session is not None:
        check_id(session, what="session", where="session")
    for name, words in (("status", STATUSES), ("outcome", tuple(TurnOutcome))):
        word = fields.get(name)
        if word is not None and word not in words:
            fix = f"use one of: {', '.join(words)}"
            raise UsageError(f"there is no {name} {word[:80]!r}", where=name, fix=fix)
    until = read_instant(fields.get("until"), "until")
    is_day = until is not None and len(fields["until"]) <= len("2026-01-04")
    if until is not None and is_day:
        until = until.replace(hour=23, minute=59, second=59, microsecond=999_999)
    return Filter(
        search=fields.get("q"),
        session=session,
        status=fields.get("status"),
        outcome=fields.get("outcome"),
        since=read_instant(fields.get("since"), "since"),
        until=until.replace(hour=23, minute=59, second=59, microsecond=999_999)
        if until and is_day
        else until,
    )


def _candidates(
    shelf: Shelf, user: str, numbers: Iterable[int], wanted: Filter, before: int | None
) -> Iterator[int]:
    """Numbers that may be taken, newest first; by the index, what was saved in other sessions is left out."""
    here = np.array(numbers, np.int64)
    if before is not None:
        here = here[here < before]
    if wanted.session is not None or wanted.since is not None or wanted.until is not None:
        out = shelf.index(user).read(user, lambda view: _left_out(view, wanted))
        here = np.setdiff1d(here, out, assume_unique=True)
    return map(int, here[::-1])


def _left_out(view: IndexView, wanted: Filter) -> Integers:
    all_ = view.statistics
    is_turn = all_.sessions != 0
    takes = np.ones(len(all_.rows), np.bool_)
    if wanted.session is not None:
        takes &= all_.sessions == session_key(wanted.session)
    if wanted.since is not None:
        takes &= (all_.times >= int(wanted.since.timestamp())) | (all_.times == NO_TIME)
    if wanted.until is not None:
        takes &= all_.times < wanted.until.timestamp()
    out: Integers = all_.rows[is_turn & ~takes]
    return out


def _search(shelf: Shelf, user: str, words: str, wanted: Filter) -> tuple[list[int], bool]:
    bounds = Bounds(session=wanted.session, since=wanted.since, turns_only=True)
    hits, report = search_index(
        shelf.index(user), user, words, now=shelf.store.clock(), limit=PAGE_ROWS * 4, bounds=bounds
    )
    listed = set(shelf.numbers(user))
    numbers = [hit.ranked.entry.number for hit in hits]
    return [number for number in numbers if number is not None and number in listed], bool(report.behind)


def _beginning(store: UserStore, number: int) -> str:
    """Return the beginning of a turn's answer; "" if there is none."""
    data = None
    with suppress(Problem):
        directory = store.turn(number).directory
        data = read_beneath(directory, [RESPONSE_MD], most_bytes=4 * _ANSWER_CHARS)
    return shorten(strip_citations((data or b"").decode("utf-8", "ignore")), _ANSWER_CHARS)
