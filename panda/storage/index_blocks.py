"""Postings and row statistics as bytes: arrays, cut into blocks so that one turn changes little. Pure."""

import hashlib
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

BLOCK_BITS = 13
_OTHER_BLOCKS = 16
FIRST_OTHER = 1 << 61
"""Row ids from here on are no turn numbers."""
MOST_COUNT = 255

Integers = npt.NDArray[np.int64]
Positions = npt.NDArray[np.intp]

_ROW = np.dtype([("row", "<i8"), ("length", "<i4"), ("session", "<i8"), ("at", "<i8"), ("content", "<i8")])
NO_TIME = -(1 << 62)
"""The time of a row that has none."""


@dataclass(frozen=True)
class RowNumbers:
    """What ranking has to know of one row."""

    row: int
    """Row id."""
    length: int
    """Its number of terms."""
    session: int
    """session_hash of a turn; 0 for everything else."""
    at: int
    """Seconds since 1970; NO_TIME if unknown."""
    content: int
    """Digest of all that it says."""


def other_row(source: str, node_id: str, part: int) -> int:
    """A row id above all turn numbers that depends on nothing but what the row is."""
    digest = hashlib.sha256(f"{source}\0{node_id}\0{part}".encode("utf-8", "replace")).digest()
    return FIRST_OTHER | int.from_bytes(digest[:7], "big")


def is_turn(row: int) -> bool:
    """
    Whether a row id is a turn number.

    >>> is_turn(812), is_turn(other_row("facts.md", "fact:a", 0))
    (True, False)
    """
    return row < FIRST_OTHER


@lru_cache(maxsize=10_000)
def session_hash(session: str) -> int:
    """A session id as a number other than 0."""
    return int.from_bytes(hashlib.sha256(session.encode("utf-8", "replace")).digest()[:7], "big") + 1


def block_of(row: int) -> int:
    """
    The block that holds a row: from 0 for turns, below 0 for everything else.

    >>> block_of(8191), block_of(8192)
    (0, 1)
    """
    return row >> BLOCK_BITS if is_turn(row) else -1 - row % _OTHER_BLOCKS


def in_ranges(*numbers: npt.ArrayLike) -> tuple[tuple[int, int], ...]:
    """
    Numbers as ranges: first and last of each, ascending.

    >>> in_ranges([7, 1], [2, 3])
    ((1, 3), (7, 7))
    """
    ordered = np.unique(np.concatenate([np.asarray(some, np.int64) for some in numbers]))
    firsts = ordered[np.diff(ordered, prepend=ordered[:1] - 2) > 1]
    lasts = ordered[np.diff(ordered, append=ordered[-1:] + 2) > 1]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))


def pack_rows(block: int, rows: Iterable[int]) -> bytes:
    """Ascending row ids of one block as bytes."""
    if block < 0:
        return array("q", rows).tobytes()
    first = block << BLOCK_BITS
    return array("H", [row - first for row in rows]).tobytes()


def unpack_rows(block: int, data: bytes) -> Integers:
    """
    The reverse of pack_rows.

    >>> unpack_rows(1, pack_rows(1, [8192, 8196])).tolist()
    [8192, 8196]
    """
    if block < 0:
        return np.frombuffer(data, "<i8").astype(np.int64)
    return np.frombuffer(data, "<u2").astype(np.int64) + (block << BLOCK_BITS)


def pack_counts(counts: Collection[int]) -> bytes:
    """How often a term stands in each row, as bytes; more than 255 count as 255."""
    if max(counts) > MOST_COUNT:
        counts = [min(count, MOST_COUNT) for count in counts]
    return bytes(counts)


def merge_postings(
    block: int, stored: tuple[bytes, bytes] | None, gone: set[int], added: Mapping[int, int]
) -> tuple[bytes, bytes] | None:
    """
    The postings of one term in one block after a change.

    Args:
        block: Number of the block.
        stored: Rows and counts as packed; None if the term was in no row.
        gone: Rows whose former counts do not hold any more.
        added: Row → count.

    Returns:
        Rows and counts, packed; None if no row is left.

    >>> merge_postings(0, (pack_rows(0, [1, 2]), bytes([1, 3])), {2}, {5: 1}) == (
    ...     pack_rows(0, [1, 5]), bytes([1, 1]))
    True
    """
    counts = dict(added)
    if stored is not None:
        for row, count in zip(unpack_rows(block, stored[0]).tolist(), stored[1], strict=True):
            if row not in gone:
                counts.setdefault(row, count)
    if not counts:
        return None
    rows = sorted(counts)
    return pack_rows(block, rows), pack_counts([counts[row] for row in rows])


def merge_numbers(stored: bytes | None, gone: set[int], added: Sequence[RowNumbers]) -> bytes | None:
    """The statistics of a block after a change, by row ascending; None if no row is left."""
    kept = np.frombuffer(stored or b"", _ROW)
    out = {*gone, *(one.row for one in added)}
    if out and len(kept):
        kept = kept[~np.isin(kept["row"], np.fromiter(out, np.int64, len(out)))]
    fresh = np.array([(one.row, one.length, one.session, one.at, one.content) for one in added], _ROW)
    both = np.concatenate([kept, fresh])
    return bytes(both[np.argsort(both["row"])].tobytes()) if len(both) else None


@dataclass(frozen=True)
class Statistics:
    """All rows of a user as arrays of the same order; the position after the last stands for "none"."""

    rows: Integers
    """Row ids, ascending: turns first."""
    lengths: npt.NDArray[np.float32]
    """Number of terms of each."""
    sessions: Integers
    """session_hash of each turn, 0 for everything else."""
    times: Integers
    """Seconds since 1970, or NO_TIME."""
    contents: Integers
    """Digest of what each says."""
    previous: Positions
    """Position of the previous turn of the same session; one entry more than rows."""
    following: Positions
    """Position of the next turn of the same session; one entry more than rows."""

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def positions(self, rows: Integers) -> Positions:
        """Positions of row ids that are all there."""
        return np.searchsorted(self.rows, rows)


def unpack_numbers(blocks: Iterable[bytes]) -> Statistics:
    """
    The statistics of all blocks of a user.

    Args:
        blocks: As merge_numbers gives them, in any order.
    """
    numbers = np.frombuffer(b"".join(blocks), _ROW)
    numbers = numbers[np.argsort(numbers["row"], kind="stable")]
    count = len(numbers)
    sessions = numbers["session"].astype(np.int64)
    order = np.lexsort((numbers["row"], sessions))
    order = order[sessions[order] != 0]
    same = sessions[order][1:] == sessions[order][:-1]
    previous, following = np.full(count + 1, count, np.intp), np.full(count + 1, count, np.intp)
    previous[order[1:][same]] = order[:-1][same]
    following[order[:-1][same]] = order[1:][same]
    return Statistics(
        rows=numbers["row"].astype(np.int64),
        lengths=numbers["length"].astype(np.float32),
        sessions=sessions,
        times=numbers["at"].astype(np.int64),
        contents=numbers["content"].astype(np.int64),
        previous=previous,
        following=following,
    )
