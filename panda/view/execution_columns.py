"""The log of executions as columns, each line read once, so that a million can be added up for a page."""

import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from panda.errors import FileFormatError, Problem
from panda.store.files import parse_json, store_errors, why_unread
from panda.store.layout import METADATA_JSON, Layout
from panda.store.log import AWAY, OUTSIDE, ExecutionStats
from panda.store.records import Metadata, load

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]

_BLOCK_BYTES = 1 << 24
_REMEMBERED_BYTES = 4_096
_MOST_LINE_BYTES = 1 << 22
_NAME_CHARS = 200
_MOST_BAD = 20
BINS = 10
MOST_TURNS = 20_000
"""Of so many of the newest turns it is looked up how they ended."""


class _Record(msgspec.Struct):
    timestamp: Any = None
    recipe: Any = None
    key: Any = None
    phase: Any = None
    model_layer: Any = None
    model: Any = None
    method: Any = None
    user_id: Any = None
    turn_id: Any = None
    tokens: Any = None
    latency_ms: Any = None
    success: Any = UNSET
    outcome: Any = None
    schema_valid: Any = None
    confidence: Any = None
    retries: Any = None
    compression_savings: Any = None
    event: Any = UNSET


_DECODE = msgspec.json.Decoder(_Record).decode


class _Names:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text, the same whenever it comes."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found


@dataclass(frozen=True)
class Columns:
    """Executions of one user, in the order of the log."""

    recipe: Integers  # numbers of names, as names has them
    layer: Integers
    phase: Integers
    day: Integers
    turn: Integers
    latency: Floats  # milliseconds; NaN if unknown
    tokens: Floats  # NaN if unknown
    saved: Floats  # tokens
    retries: Floats
    away: Floats  # 1 if no model server answered, else 0
    valid: Floats  # 1 if the reply fitted its schema, 0 if not, NaN if there was none
    confidence: Floats  # NaN if there is none
    names: Mapping[str, Sequence[str]]  # column to the texts that its numbers mean

    @property
    def count(self) -> int:
        """How many executions."""
        return len(self.recipe)

    def where(self, mask: Mask | Positions) -> "Columns":
        """Some of them: those that a mask takes, or those at some places."""
        values = {name: getattr(self, name)[mask] for name in self.__dataclass_fields__ if name != "names"}
        return Columns(**values, names=self.names)


@dataclass(frozen=True)
class LogState:
    """What the log says of one user at one moment."""

    columns: Columns
    held: Floats  # of each: 1 if its turn ended approved, 0 if it ended otherwise, NaN if that is not known
    turns_left: int  # older turns of which it was not looked up how they ended
    bad: tuple[tuple[int, str], ...]  # number of damaged lines, the first of them, and what is wrong with it
    bad_left: int
    problem: str | None  # why it cannot be read at all


class ExecutionLog:
    """Reads the log of a store again and again; what was read stays in memory, some 90 bytes a line."""

    def __init__(self, layout: Layout, *, since: str = "") -> None:
        self._layout, self._since = layout, since
        self._path = layout.executions_log
        self._lock = Lock()
        self._clear()

    def _clear(self) -> None:
        self._inode, self._size, self._last, self._lines = -1, 0, b"", 0
        self._names = {name: _Names() for name in ("user", "recipe", "layer", "phase", "day", "turn")}
        self._codes = {name: array("l") for name in self._names}
        self._values = {
            name: array("d")
            for name in ("latency", "tokens", "saved", "retries", "away", "valid", "confidence")
        }
        self._bad: list[tuple[int, str]] = []
        self._bad_count = 0
        self._made: tuple[tuple[str, int, int], Columns] | None = None
        self._verdicts: dict[tuple[str, str], bool] = {}

    def read(self, user: str) -> LogState:
        """What it says of a user now."""
        with self._lock:
            problem = None
            try:
                self._read_on()
            except (Problem, OSError) as exc:
                problem = why_unread(exc)
            columns = self._columns(user)
            held, left = self._held(columns, user)
            bad = tuple(self._bad)
            return LogState(columns, held, left, bad, self._bad_count - len(bad), problem)

    def _read_on(self) -> None:
        if not self._path.exists():
            self._clear()
            return
        if not self._path.is_file():
            raise FileFormatError("not a regular file", where=str(self._path))
        with store_errors(self._path, "read"), self._path.open("rb") as file:
            status = os.fstat(file.fileno())
            file.seek(self._size - len(self._last))
            if status.st_ino != self._inode or file.read(len(self._last)) != self._last:
                self._clear()
                self._inode = status.st_ino
                file.seek(0)
            rest = b""
            while block := file.read(_BLOCK_BYTES):
                whole, found, rest = (rest + block).rpartition(b"\n")
                if found:
                    self._take(whole.split(b"\n"))
                    self._size += len(whole) + 1
                    self._last = (self._last + whole[-_REMEMBERED_BYTES:] + b"\n")[-_REMEMBERED_BYTES:]
                if len(rest) > _MOST_LINE_BYTES:
                    raise FileFormatError(
                        f"line {self._lines + 1} is longer than 4 MB", where=str(self._path)
                    )

    def _take(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            self._lines += 1
            try:
                record = _DECODE(line)
            except (msgspec.DecodeError, ValueError, RecursionError):
                if not line.strip():
                    continue
                slow = self._slowly(line)
                if slow is None:
                    continue
                record = slow
            is_execution = record.event is UNSET and record.success is not UNSET
            if is_execution and str(record.timestamp) >= self._since:
                self._add(record)

    def _slowly(self, line: bytes) -> _Record | None:
        """A line that the quick way refuses, read as everywhere else; None if it is damaged."""
        try:
            value = parse_json(line.decode(), where=self._path.name)
            if not isinstance(value, dict):
                raise FileFormatError("not a JSON object")
            return _Record(**{name: value[name] for name in _Record.__struct_fields__ if name in value})
        except UnicodeDecodeError:
            message = "not UTF-8"
        except Problem as exc:
            message = exc.message
        self._bad_count += 1
        if len(self._bad) < _MOST_BAD:
            self._bad.append((self._lines, message))
        return None

    def _add(self, record: _Record) -> None:
        codes, names, values = self._codes, self._names, self._values
        layer = f"{record.model_layer} ({record.model or record.method or 'unknown'})"
        phase = OUTSIDE if record.phase is None else _text(record.phase)
        for name, text in (
            ("user", _text(record.user_id)),
            ("recipe", _text(record.key or record.recipe)),
            ("layer", layer[:_NAME_CHARS]),
            ("phase", phase),
            ("day", _text(record.timestamp)[:10]),
            ("turn", _text(record.turn_id)),
        ):
            codes[name].append(names[name].number(text))
        tokens = record.tokens
        total = _whole(tokens.get("total")) if isinstance(tokens, dict) else None
        values["latency"].append(_number(record.latency_ms))
        values["tokens"].append(np.nan if total is None else total)
        values["saved"].append(_whole(record.compression_savings) or 0.0)
        values["retries"].append(_whole(record.retries) or 0.0)
        values["away"].append(record.outcome == AWAY)
        values["valid"].append(np.nan if record.schema_valid is None else record.schema_valid is True)
        values["confidence"].append(_number(record.confidence))

    def _columns(self, user: str) -> Columns:
        stamp = (user, self._inode, self._lines)
        if self._made is None or self._made[0] != stamp:
            self._made = stamp, self._make_columns(user)
        return self._made[1]

    def _make_columns(self, user: str) -> Columns:
        codes = {name: np.array(one, np.int64) for name, one in self._codes.items()}
        values = {name: np.array(one, np.float64) for name, one in self._values.items()}
        names = {name: tuple(one.texts) for name, one in self._names.items()}
        users = codes.pop("user")
        number = next((at for at, text in enumerate(names["user"]) if text == user), -1)
        found: dict[str, Any] = {**codes, **values}
        return Columns(**found, names=names).where(users == number)

    def _held(self, columns: Columns, user: str) -> tuple[Floats, int]:
        """Of each execution with a confidence whether its turn ended approved, of the newest turns."""
        judged = ~np.isnan(columns.confidence)
        found: Floats = np.full(columns.count, np.nan)
        turns, last = np.unique(columns.turn[judged][::-1], return_index=True)
        newest = turns[np.argsort(last)]
        by_turn = np.full(len(columns.names["turn"]), np.nan)
        for number in newest[:MOST_TURNS].tolist():
            verdict = self._verdict(user, columns.names["turn"][number])
            by_turn[number] = np.nan if verdict is None else float(verdict)
        if len(by_turn):
            found[judged] = by_turn[columns.turn[judged]]
        return found, max(0, len(newest) - MOST_TURNS)

    def _verdict(self, user: str, turn: str) -> bool | None:
        known = self._verdicts.get((user, turn))
        if known is not None:
            return known
        if "/" in turn or "\0" in turn or turn in ("", ".", ".."):
            return None
        try:
            status = load(Metadata, self._layout.of(user).turns / turn / METADATA_JSON).status
        except (Problem, OSError):
            return None
        if status in ("approved", "failed", "clarify"):
            self._verdicts[user, turn] = status == "approved"
        return status == "approved" if status in ("approved", "failed", "clarify", "halted") else None


def _text(value: object) -> str:
    return str(value)[:_NAME_CHARS]


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, int | float) else np.nan
    except OverflowError:
        return np.nan


def _whole(value: object) -> float | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return _number(value) if is_whole else None


def sum_columns(columns: Columns, held: Floats) -> ExecutionStats:
    """What at least one execution adds up to, rounded to four digits."""
    judged = ~np.isnan(held)
    confidence, ended = columns.confidence[judged], held[judged]
    known = np.sort(columns.latency[~np.isnan(columns.latency)])
    is_known = not np.isnan(columns.tokens).any()
    valid = columns.valid[~np.isnan(columns.valid)]
    return ExecutionStats(
        executions=columns.count,
        valid=round(float(valid.mean()), 4) if len(valid) else None,
        retries=int(columns.retries.sum()),
        judged=len(confidence),
        confidence=round(float(confidence.mean()), 4) if len(confidence) else None,
        held=round(float(ended.mean()), 4) if len(confidence) else None,
        calibration_error=_calibration_error(confidence, ended),
        p50_ms=_percentile(known, 50),
        p95_ms=_percentile(known, 95),
        tokens=int(columns.tokens.sum()) if is_known else None,
        tokens_saved=int(columns.saved.sum()),
        away=int(columns.away.sum()),
    )


def _percentile(ordered: Floats, share: int) -> float | None:
    return float(ordered[max(0, -(-share * len(ordered) // 100) - 1)]) if len(ordered) else None


def bins_of(confidence: Floats) -> Integers:
    """The bin of each confidence, 0 to 9."""
    found: Integers = np.clip((confidence * BINS).astype(np.int64), 0, BINS - 1)
    return found


def _calibration_error(confidence: Floats, held: Floats) -> float | None:
    if not len(confidence):
        return None
    apart = np.bincount(bins_of(confidence), weights=confidence - held, minlength=BINS)
    return round(float(np.abs(apart).sum() / len(confidence)), 4)


def group_columns(columns: Columns, held: Floats, by: str) -> Iterator[tuple[str, ExecutionStats]]:
    """Each group with its sums, sorted by its name; *by* is recipe, layer, phase or day."""
    codes = getattr(columns, by)
    order = np.argsort(codes, kind="stable")
    numbers, starts = np.unique(codes[order], return_index=True)
    parts = zip(numbers.tolist(), np.split(order, starts[1:]), strict=True) if len(numbers) else ()
    named = sorted(((columns.names[by][number], rows) for number, rows in parts), key=lambda one: one[0])
    for name, rows in named:
        yield name, sum_columns(columns.where(rows), held[rows])
