"""
What the rows of the index mean: the vectors of their texts, kept in vectors.db and searched.

A row has a vector for itself and one for each passage of its node. The signs of all of them lie packed
in blocks and find the nearest rows; how near those are, their kept vectors tell.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from panda.documents.progress import progress
from panda.documents.safe_text import shorten
from panda.documents.times import Clock
from panda.errors import MemoryNodeError
from panda.index.full_text import Index
from panda.index.sources import FIRST_OTHER, IndexEntry
from panda.index.tables import AsOf, IndexView, Integers, Positions, Statistics
from panda.index.vectors import VectorBlock
from panda.memory.node import line_text
from panda.memory.reader import NodeReader
from panda.messages.matching import is_english
from panda.models.kept_encoder import KeptEncoder, unpack
from panda.retrieval.passages import cut_passages
from panda.store.layout import Layout, UserStore
from panda.store.node_id import NodeKind, kind_of

TEXTS_BEFORE = 150
TEXTS_AFTER = 50
"""Most texts that a turn computes of what is there when it begins, and when it has ended."""
IMPORT_TEXTS = 1_000  # the same of an import
_FEW_TEXTS = 12
_MANY_ROWS = 1_500
"""Most texts of a turn where so many rows lack vectors that turns would not get through them."""

_NEAREST = 100
_MOST_PASSAGES = 2_000  # passages of the nearest rows that are looked at exactly
_BATCH = 500
_BLOCK_BITS = 10
_OTHER_BLOCKS = 16
_TURN_CHARS = 500
_TEXT_CHARS = 240
_ITSELF = 0
_COMPLETE = 3
_PASSAGE = 4
"""Kinds of texts: a row itself without and with all of its passages, and a passage."""
_FORMER_KINDS = (1, 2)
"""What earlier versions wrote of rows and their lines: such rows are computed anew."""
_NO_VECTOR = bytes(16)

_Mask = NDArray[np.bool_]
_Records = NDArray[np.void]
_Key = tuple[int, int, int, bytes]


@dataclass
class _Placed:
    """Arrays of all texts of a user beside the rows that there are now, block by block."""

    itself: _Mask  # which rows have at least their own text, by position
    whole: _Mask  # which rows have all their texts, by position
    stale: list[Integers] = field(default_factory=list)  # rows that are gone or say something else
    rows: list[NDArray[np.int32]] = field(default_factory=list)
    """Position of each text's row; -1 for texts without vector or whose row is gone or another."""
    passages: list[_Mask] = field(default_factory=list)  # which of them are passages
    far: list[NDArray[np.uint16]] = field(default_factory=list)
    """In how many signs each differs from a query, if there is one."""
    digests: list[NDArray[np.uint64]] = field(default_factory=list)  # their digests, if there is a query

    def digests_at(self, at: Positions) -> list[bytes]:
        starts = np.cumsum([0, *map(len, self.digests)])[:-1]
        numbers = np.searchsorted(starts, at, "right") - 1
        places = zip(numbers.tolist(), (at - starts[numbers]).tolist(), strict=True)
        return [self.digests[number][place].tobytes() for number, place in places]


class Meaning:
    """
    Finds rows of the index by meaning; *past* gives what loads the nodes of entries as they were, without
    asking the index.
    """

    def __init__(
        self,
        encoder: KeptEncoder,
        index: Index,
        layout: Layout,
        clock: Clock,
        past: Callable[[], NodeReader] | None = None,
    ) -> None:
        self._encoder = encoder
        self._index = index
        self._layout = layout
        self._clock = clock
        self._past = past
        self._then: tuple[AsOf | None, Mapping[int, IndexEntry], _Records | None] = (None, {}, None)
        """The texts of entries as they were, as of the last moment that was asked for."""
        self._unsaved: dict[tuple[str, int], _Records] = {}
        """Blocks of texts, by user and number, that the file could not take."""

    def near(self, view: IndexView, query: str, allowed: _Mask, also: Positions) -> dict[int, float]:
        """
        The rows nearest to a query, position → cosine: the mean of what the row itself has and what its best
        text has. Only *allowed* positions are found, those in *also* however far they are. A row without
        vectors is left out, and nothing is near to a query that is not English.
        """
        if not is_english(query):
            return {}
        placed = self._place(view.user, view.statistics, query, self._texts_then(view))
        if not placed.far:
            return {}
        positions = np.concatenate(placed.rows)
        is_passage = np.concatenate(placed.passages)
        far = np.concatenate(placed.far)
        chosen = _nearest(positions, is_passage, far, allowed)
        chosen[also] = allowed[also]
        wanted = (positions >= 0) & chosen[positions]
        own = np.flatnonzero(wanted & ~is_passage)
        passages = np.flatnonzero(wanted & is_passage)
        if len(passages) > _MOST_PASSAGES:
            passages = passages[np.argsort(far[passages], kind="stable")[:_MOST_PASSAGES]]
        looked_at = np.concatenate([own, passages])
        digests = placed.digests_at(looked_at)
        stored = self._encoder.find(digests)
        query_vector = self._encoder.encode([query])[0]
        pairs = [
            (at, stored[digest])
            for at, digest in zip(looked_at.tolist(), digests, strict=True)
            if digest in stored
        ]
        cosines = unpack([vector for _, vector in pairs]) @ query_vector if pairs else []
        itself: dict[int, float] = {}
        best: dict[int, float] = {}
        for (at, _), cosine in zip(pairs, map(float, cosines), strict=True):
            position = int(positions[at])
            best[position] = max(best.get(position, -1.0), cosine)
            if not is_passage[at]:
                itself[position] = cosine
        return {position: (itself[position] + best[position]) / 2 for position in itself}

    def begin_turn(self) -> None:
        """Count from here on the texts that are computed: a turn has a limit."""
        self._encoder.begin_turn()

    def count_missing(self, user: str) -> int:
        statistics = self._index.read(user, lambda view: view.statistics)
        return int((~self._place(user, statistics).whole).sum())

    def fill(self, user: str, *, most: int | None = None, in_turn: bool = False) -> int:
        """
        Compute and keep the vectors that are missing, the newest first; up to a limit, rows before passages.
        Gives the number of rows of which some are still missing; what was kept stays when it is interrupted.
        At *most* so many texts are computed, and about as many of other languages looked at; *in_turn* a turn
        waits for it: of many rows that lack vectors only the newest few.
        """
        statistics = self._index.read(user, lambda view: view.statistics)
        placed = self._place(user, statistics)
        if len(stale := np.concatenate([*placed.stale, np.empty(0, np.int64)])):
            self._replace(user, stale, _records([], {}, 0), {})
        missing = int((~placed.whole).sum())
        left = most if most is not None else 1 << 62
        if in_turn and missing > _MANY_ROWS:
            left = min(left, _FEW_TEXTS)
        if in_turn and self._encoder.turn_texts_left is not None:
            left = min(left, self._encoder.turn_texts_left)
        if left <= 0:
            return missing
        passes = [(True, ~placed.whole)]
        if most is not None:
            passes.insert(0, (False, ~placed.itself))
        total = missing
        if most is not None:
            total = 0 if in_turn else min(missing, 1) * most
        with progress("vectors", total) as advance:
            for with_passages, lacking in passes:
                rows = _in_order(statistics.rows[lacking]).tolist()
                for batch in self._batches(user, rows, with_passages=with_passages, texts=min(left, _BATCH)):
                    used, done = self._fill_batch(user, batch, left)
                    left -= used
                    missing -= done if with_passages else 0
                    advance(used if most is not None else len(batch))
                    if left <= 0:
                        return missing
        return 0

    def drop_others(self, users: Sequence[str]) -> None:
        """Drop the vectors of texts that no row of these users holds, who have to be all."""
        digests: set[bytes] = set()
        for user in users:
            for _, records in self._blocks(user):
                digests.update(digest.tobytes() for digest in records["digest"])
        self._encoder.store.keep_only(digests, users, self._encoder.info.digest)

    def _batches(
        self, user: str, rows: Sequence[int], *, with_passages: bool, texts: int
    ) -> Iterator[list["_Row"]]:
        """Rows with their texts, about so many texts together."""
        now = self._clock()
        reader = NodeReader(UserStore(self._layout.root, user, lambda: now), index=self._index)
        batch: list[_Row] = []
        for start in range(0, len(rows), texts):
            some = rows[start : start + texts]
            entries, statistics = self._index.read(
                user,
                lambda view, some=some: (view.entries(some), view.statistics),  # type: ignore[misc]
            )
            present = np.array(sorted(entries), np.int64)
            contents = statistics.contents[statistics.find(present)[0]].tolist()
            by_row = dict(zip(present.tolist(), contents, strict=True))
            for row in filter(entries.__contains__, some):
                passages = _passages_of(reader, entries[row]) if with_passages else None
                batch.append(_Row(row, by_row[row], row_text(entries[row]), passages))
                if sum(len(queued.texts) for queued in batch) >= texts:
                    yield batch
                    batch = []
        if batch:
            yield batch

    def _fill_batch(self, user: str, batch: Sequence["_Row"], most: int) -> tuple[int, int]:
        """Compute and keep what the rows of a batch lack; how many texts had no vector, and rows are done."""
        texts = dict.fromkeys(text for row in batch for text in row.texts)
        digests = {text: self._encoder.digest(text) for text in texts if is_english(text)}
        stored = self._encoder.find([*digests.values()])
        lasting = self._encoder.store.load(digests.values())  # what was asked just now is known, and not kept
        new: dict[str, None] = {}
        done: list[_Row] = []
        for row in batch:
            lacks = [text for text in row.texts if text in digests and digests[text] not in stored]
            lacks = [text for text in dict.fromkeys(lacks) if text not in new]
            new.update(dict.fromkeys(lacks[: most - len(new)]))
            if any(text not in new for text in lacks):
                break
            done.append(row)
        vectors = dict(zip((digests[text] for text in new), self._encoder.encode_packed([*new]), strict=True))
        done_digests = {digests[text] for row in done for text in row.texts if text in digests}
        passing = {
            digest: stored[digest] for digest in done_digests if digest in stored and digest not in lasting
        }
        keys = [key for row in done for key in row.keys(digests)]
        records = _records(keys, stored | vectors, self._encoder.width)
        self._replace(user, np.array([row.row for row in done], np.int64), records, passing | vectors)
        return len(new) + len(texts) - len(digests), len(done)

    def _replace(self, user: str, rows: Integers, fresh: _Records, vectors: Mapping[bytes, bytes]) -> None:
        """Put new texts in the place of those of some rows, in memory and, if that can be, in the file."""
        places = _blocks_of(rows)
        new_places = _blocks_of(fresh["row"])
        numbers = np.unique(places).tolist()
        blocks = {number: np.array(records) for number, records in self._blocks(user, numbers)}
        changed = []
        for number in numbers:
            merged = fresh[new_places == number]
            if number in blocks:
                others = blocks[number][~np.isin(blocks[number]["row"], rows[places == number])]
                merged = np.concatenate([others, merged]) if len(merged) else others
            blocks[number] = merged[np.argsort(merged["row"], kind="stable")]
            data = _packed(blocks[number]) if len(merged) else b""
            changed.append(VectorBlock(user, self._encoder.info.digest, number, data))
        is_saved = self._encoder.store.save(vectors, changed)
        for number in numbers:
            self._unsaved.pop((user, number), None)
            if not is_saved:
                self._unsaved[user, number] = blocks[number]

    def _blocks(self, user: str, numbers: Sequence[int] | None = None) -> Iterator[tuple[int, _Records]]:
        """The texts of a user's rows, all blocks or some: a record a text, by row ascending."""
        for number, data in self._encoder.store.blocks(user, self._encoder.info.digest, numbers):
            if (user, number) not in self._unsaved:
                yield number, _unpacked(data)
        for (owner, number), records in self._unsaved.items():
            if owner == user and (numbers is None or number in numbers):
                yield number, records

    def _texts_then(self, view: IndexView) -> Sequence[_Records]:
        """The texts of what the tables hold otherwise or not at all."""
        if not view.then or self._past is None:
            return ()
        as_of, then, records = self._then
        if records is None or as_of is not view.as_of or then != view.then:
            reader = self._past()
            statistics = view.statistics
            contents = statistics.contents[statistics.find(np.array([*view.then], np.int64))[0]].tolist()
            rows = [
                _Row(row, content, row_text(entry), _passages_of(reader, entry))
                for (row, entry), content in zip(view.then.items(), contents, strict=True)
            ]
            texts = [row.text for row in rows] + [text for row in rows for text in row.texts]
            packed = self._encoder.encode_some([text for text in texts if is_english(text)])
            digests = {text: self._encoder.digest(text) for text in packed}
            vectors = {digests[text]: vector for text, vector in packed.items()}
            keys = [key for row in rows for key in row.keys(digests)]
            records = _records(keys, vectors, self._encoder.width)
            self._then = view.as_of, dict(view.then), records
        return [records]

    def _place(
        self, user: str, statistics: Statistics, query: str | None = None, more: Iterable[_Records] = ()
    ) -> _Placed:
        """The texts of some rows, and how far they are from a query: read anew, they would fill memory."""
        placed = _Placed(np.zeros(statistics.count, np.bool_), np.zeros(statistics.count, np.bool_))
        signs = None
        for records in chain((records for _, records in self._blocks(user)), more):
            _place_block(records, statistics, placed)
            if query is not None:
                if signs is None:
                    (packed,) = self._encoder.encode_packed([query])
                    signs = _sign_bits(packed, 1, len(packed))[0]
                differing = np.bitwise_count(records["bits"] ^ signs)
                placed.far.append(np.einsum("ij->i", differing, dtype=np.uint16))
                placed.digests.append(np.array(records["digest"]))
        return placed


@dataclass(frozen=True)
class _Row:
    row: int  # row id
    content: int  # digest of what it says
    text: str  # text of the row itself
    passages: tuple[str, ...] | None  # of its node; None if they are not to be filled in now

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text, *(self.passages or ()))

    def keys(self, digests: Mapping[str, bytes]) -> Iterator["_Key"]:
        """Row, content, kind and digest of itself, and of each passage that has a vector."""
        for number, text in enumerate(self.texts):
            kind = _ITSELF if self.passages is None else _COMPLETE
            if number:
                kind = _PASSAGE
            if kind != _PASSAGE or text in digests:
                yield self.row, self.content, kind, digests.get(text, _NO_VECTOR)


def say_missing(rows: int) -> str:
    """Return the message for a user about rows that lack vectors."""
    sources = "source is" if rows == 1 else "sources are"
    return f"{rows:,} {sources} not yet found by meaning; `panda index rebuild` sees to it"


def row_text(entry: IndexEntry) -> str:
    """
    Return the clipped text of a row: of a turn its query and answer, of anything else its title and content.
    """
    if entry.number is not None:
        return shorten(f"{entry.query} {entry.response}", _TURN_CHARS)
    if kind_of(entry.node_id) in (NodeKind.MEMORY, NodeKind.FACT):
        return line_text("", entry.header)
    return shorten(line_text(entry.summary, entry.response), _TEXT_CHARS)


def _passages_of(reader: NodeReader, entry: IndexEntry) -> tuple[str, ...]:
    try:
        passages = cut_passages(reader.load(entry.node_id))
        return tuple(dict.fromkeys(passage.encoded for passage in passages))
    except MemoryNodeError:  # gone since, or broken: its row says so by itself
        return ()


def _dtype(words: int) -> np.dtype[np.void]:
    """A text: its row, what that says, its kind, its digest, and the signs of its vector in so many words."""
    names = [("row", "<i8"), ("content", "<i8"), ("kind", "<i8"), ("digest", "<u8", (2,))]
    return np.dtype([*names, ("bits", "<u8", (words,))])


def _records(keys: Sequence[_Key], vectors: Mapping[bytes, bytes], width: int) -> _Records:
    """A record for each key; texts without a vector have no signs, in as many words as others."""
    bits = _sign_bits(b"".join(vectors.get(key[3], bytes(width)) for key in keys), len(keys), width)
    records = np.empty(len(keys), _dtype(bits.shape[1]))
    for at, name in enumerate(("row", "content", "kind")):
        records[name] = [key[at] for key in keys]
    records["digest"] = np.frombuffer(b"".join(key[3] for key in keys), "<u8").reshape(-1, 2)
    records["bits"] = bits
    return records


def _in_order(rows: Integers) -> Integers:
    """Rows that are no turns, one block after the other, then turns, the newest first."""
    return rows[np.argsort(np.where(rows < FIRST_OTHER, -rows, _blocks_of(rows) - FIRST_OTHER))]


def _packed(records: _Records) -> bytes:
    return int(records["bits"].shape[1]).to_bytes(8, "little") + records.tobytes()


def _unpacked(block: memoryview) -> _Records:
    return np.frombuffer(block, _dtype(int.from_bytes(block[:8], "little")), offset=8)


def _blocks_of(rows: Integers) -> Integers:
    return np.where(rows < FIRST_OTHER, rows >> _BLOCK_BITS, -1 - rows % _OTHER_BLOCKS)


def _sign_bits(packed: bytes, count: int, width: int) -> NDArray[np.uint64]:
    """Which numbers of vectors are above 0, as bits; shape (n, words)."""
    bits = np.zeros((count, -(-width // 64)), "<u8")
    signs = np.frombuffer(packed, np.int8).reshape(count, width) > 0
    bits.view(np.uint8)[:, : -(-width // 8)] = np.packbits(signs, axis=1)
    return bits


def _place_block(records: _Records, statistics: Statistics, placed: _Placed) -> None:
    """Add the texts of a block; those of one row, which says one thing, stand together."""
    rows = records["row"]
    starts = np.flatnonzero(np.diff(rows, prepend=rows[:1] - 1))
    many = np.diff(starts, append=len(rows))
    first = rows[starts]
    at, current = statistics.find(first)
    if statistics.count:
        current = current & (statistics.contents[at] == records["content"][starts])
    if len(starts):
        current = current & ~np.logical_or.reduceat(np.isin(records["kind"], _FORMER_KINDS), starts)
    placed.stale.append(first[~current])
    kinds, at, current = records["kind"], np.repeat(at, many), np.repeat(current, many)
    placed.whole[at[current & (kinds == _COMPLETE)]] = True
    placed.itself[at[current & (kinds != _PASSAGE)]] = True
    has_vector = (records["digest"][:, 0] | records["digest"][:, 1]) != 0
    placed.rows.append(np.where(current & has_vector, at, -1).astype(np.int32))
    placed.passages.append(kinds == _PASSAGE)


def _nearest(
    positions: NDArray[np.int32], is_passage: _Mask, far: NDArray[np.uint16], allowed: _Mask
) -> _Mask:
    """The rows whose signs differ least from the query's, own and those of the best passage together."""
    itself = np.full(len(allowed), np.iinfo(np.uint16).max // 2, np.uint16)
    own = (positions >= 0) & ~is_passage
    passages = (positions >= 0) & is_passage
    itself[positions[own]] = far[own]
    nearest = itself.copy()
    np.minimum.at(nearest, positions[passages], far[passages])
    together = np.where(allowed, itself + nearest, np.iinfo(np.uint16).max)
    chosen = np.zeros(len(allowed), np.bool_)
    chosen[np.argsort(together, kind="stable")[:_NEAREST]] = True
    return chosen & allowed
