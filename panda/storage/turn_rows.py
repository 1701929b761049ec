"""The saved turns of a user at a glance."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from panda.errors import FileFormatError, NotFoundError, PandaError, StoreError
from panda.storage.turns import TurnStore


@dataclass(frozen=True)
class TurnRow:
    """One turn, or what is wrong with it."""

    number: int
    """Turn number."""
    at: datetime | None
    """When it was claimed."""
    session: str | None
    """Its session."""
    status: str
    """As in metadata.json; "unreadable" if that file cannot be used."""
    query: str | None
    """The whole query."""
    problem: PandaError | None = None
    """Why it is unreadable."""


def list_rows(store: TurnStore, *, session: str | None, limit: int | None) -> list[TurnRow]:
    """
    The newest turns of a user, newest last.

    Args:
        store: The user's turns.
        session: Only turns of this session; None for all.
        limit: At most so many; None for all.

    Returns:
        One row a turn; a turn that cannot be read has one too, unless a session is asked for.
    """
    rows = (row for row in _newest_first(store) if session in (None, row.session))
    return list(islice(rows, limit))[::-1]


def _newest_first(store: TurnStore) -> Iterator[TurnRow]:
    for number in reversed(store.numbers()):
        try:
            found = store.open(number).read_metadata()
        except NotFoundError:
            continue  # it has gone since the numbers were read, or is no directory: validate says so
        except (FileFormatError, StoreError) as exc:
            if store.has(number):
                yield TurnRow(number, None, None, "unreadable", None, exc)
        else:
            yield TurnRow(number, found.created_at, found.session_id, found.status, found.query)
