"""logs/executions.jsonl as a table: how often, valid, sure, right and long recipes ran (S3 §27)."""

import re
import sqlite3
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from threading import RLock
from typing import Any, BinaryIO

import numpy as np
from msgspec import UNSET

from panda.documents.times import render_time
from panda.errors import FileFormatError, Problem
from panda.store.execution_log import COMPRESSED, OVERFLOW
from panda.store.files import store_errors
from panda.store.layout import METADATA_JSON, Layout, UserStore, turn_name, turn_number
from panda.store.lines import LineTail, Parts
from panda.store.records import ContextMetrics, Coverage, Execution, Metadata, Metrics, find, load, parse

OUTSIDE = "outside a turn"  # group of what ran in no phase
BY = {
    "recipe": "name",
    "layer": "ifnull(model_layer, '') || ' (' || decider || ')'",
    "model": "decider",
    "phase": f"ifnull(CAST(phase AS TEXT), '{OUTSIDE}')",
    "day": "substr(timestamp, 1, 10)",
}
"""What executions are added up by, and what it is in the table."""
BINS = 10  # of confidence, each a tenth wide
MOST_TURNS = 20_000  # of so many of the newest turns it is looked up how they ended
Where = Mapping[str, object]
"""Conditions of the table, as "user_id = ?", each with its value."""

_ENDED = {"approved": True, "failed": False, "clarify": False}
_TEXT_CHARS = 200
_BLOCK_BYTES = 65_536  # the search for a time ends in a stretch of this length
_MOST_BYTES = 4_194_304  # so much of the log is read for one turn at most
_SLACK = timedelta(minutes=1)  # between what the turn's files say and when the log was written
_TIME = re.compile(rb'"timestamp": "([^"]{20})"')
_COLUMNS = (
    *("user_id", "turn_id", "event", "timestamp", "name", "model_layer", "decider", "phase", "latency_ms"),
    *(
        "total_tokens",
        "reused_tokens",
        "compression_savings",
        "retries",
        "is_away",
        "schema_valid",
        "confidence",
    ),
    *("content_type", "original_tokens", "compressed_tokens", "version"),
)
"""Attributes of an execution."""
_VALUES = attrgetter(*_COLUMNS)
_SCHEMA = f"""
    CREATE TABLE executions ({", ".join(_COLUMNS)});
    CREATE TABLE verdicts (user_id, turn_id, held, is_final, PRIMARY KEY (user_id, turn_id)) WITHOUT ROWID"""
_TURNS = """
    SELECT ifnull(turn_id, ''), held, is_final FROM executions LEFT JOIN verdicts USING (user_id, turn_id)
    WHERE event IS NULL AND confidence IS NOT NULL AND {where}
    GROUP BY turn_id ORDER BY max(executions.rowid) DESC"""
_BINS = f"""
    SELECT {{group}} AS grouped, max(0, min({BINS - 1}, CAST(confidence * {BINS} AS INTEGER))) AS bin,
        count(*) AS n, total(confidence) AS sure, total(held) AS ended
    FROM executions JOIN verdicts USING (user_id, turn_id)
    WHERE event IS NULL AND confidence IS NOT NULL AND held IS NOT NULL AND {{where}} GROUP BY 1, 2"""
_SUMS = f"""
    WITH judged AS (
        SELECT grouped, sum(n) AS n, sum(sure) / sum(n) AS sure, sum(ended) / sum(n) AS ended,
            sum(abs(sure - ended)) / sum(n) AS apart
        FROM ({_BINS}) GROUP BY 1),
    sums AS (
        SELECT {{group}} AS grouped, count(*) AS executions, avg(schema_valid) AS valid,
            CAST(total(retries) AS INTEGER) AS retries, group_concat(latency_ms) AS latencies,
            CASE count(total_tokens) WHEN count(*) THEN CAST(sum(total_tokens) AS INTEGER) END AS tokens,
            CASE WHEN count(reused_tokens) THEN CAST(sum(reused_tokens) AS INTEGER) END AS cached,
            CAST(total(compression_savings) AS INTEGER) AS saved, sum(is_away) AS away
        FROM executions WHERE event IS NULL AND {{where}} GROUP BY 1)
    SELECT grouped, latencies, tokens, cached, saved, away, executions, valid, retries, ifnull(n, 0), sure,
        ended, apart
    FROM sums LEFT JOIN judged USING (grouped) ORDER BY grouped"""
_CUTS = f"""
    SELECT {{group}} AS grouped, count(compressed_tokens) AS calls,
        ifnull(sum(original_tokens - compressed_tokens), 0) AS tokens_saved,
        round(1.0 * sum(compressed_tokens) / nullif(sum(original_tokens), 0), 4) AS ratio,
        ifnull(sum(event = '{OVERFLOW}'), 0) AS overflow_warnings,
        round(total(latency_ms) / 1000, 6) AS seconds
    FROM executions WHERE {{where}} AND (event = '{OVERFLOW}'
        OR event = '{COMPRESSED}' AND original_tokens + compressed_tokens IS NOT NULL)"""


@dataclass(frozen=True)
class ExecutionStats:
    """What the executions of one group add up to; shares and means have four digits."""

    executions: int  # recipe executions
    valid: float | None  # share of the replies that fit their schema; None if there was none to look at
    retries: int  # attempts beyond the first, all together
    judged: int  # executions with a confidence whose turn has ended
    confidence: float | None  # mean confidence of those; None if there are none
    held: float | None  # share of those whose turn ended approved
    calibration_error: float | None
    """Expected calibration error over ten bins: how far confidence and what came of it lie apart."""
    p50_ms: float | None  # median latency
    p95_ms: float | None  # latency that 95 in 100 executions do not exceed
    tokens: int | None  # prompt and output tokens; None if one execution's are unknown
    tokens_cached: int | None  # prompt tokens that models had from earlier calls; None if none tells
    tokens_saved: int  # tokens that fitting took from the inputs
    away: int  # executions for which no model server answered


@dataclass(frozen=True)
class ContextStats:
    """What phase 2 measured, added up over turns (S0 §7)."""

    turns: int  # turns that have measured it
    context_quality: float | None  # mean; None without turns
    constraints: int  # all together
    constraints_missing: int  # turns in which none was found
    coverage: Mapping[str, Mapping[str, int]]  # by kind of source: turns that used one, and nodes in all


class Executions:
    """The log of a store, each line read once; other threads wait for *guard*."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._tail = LineTail(layout.executions_log, Execution)
        self._connection = sqlite3.connect("", check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        self._connection.executescript(_SCHEMA)
        self.guard = RLock()
        self.damaged: list[Problem] = []
        self._changes = 0
        self._sums = dict[tuple[object, ...], dict[str, ExecutionStats]]()

    def close(self) -> None:
        """Give the table up."""
        self._connection.close()

    def read(self, user: str, *, torn: bool = False) -> int:
        """
        Take in what was added to the log, also a torn last line if *torn*, and how turns of a user ended; how
        many of the oldest were not looked up. Raises StoreError, FileFormatError: the log is no file.
        """
        path = self._layout.executions_log
        if path.exists() and not path.is_file():
            raise FileFormatError("not a regular file", where=str(path))
        begins_anew, parts = self._tail.read(torn=torn)
        if begins_anew:
            self.damaged = []
            self._connection.executescript("DELETE FROM executions; DELETE FROM verdicts")
        marks = ", ".join("?" * len(_COLUMNS))
        self._connection.executemany(f"INSERT INTO executions VALUES ({marks})", self._sound(parts))
        rows = self._rows(_TURNS, {"user_id = ?": user})
        verdicts = [(self._verdict(user, turn), held) for turn, held, ended in rows[:MOST_TURNS] if not ended]
        changed = [verdict for verdict, held in verdicts if verdict[2] != held]
        self._connection.executemany("REPLACE INTO verdicts VALUES (?, ?, ?, ?)", changed)
        if self._connection.total_changes != self._changes:
            self._changes, self._sums = self._connection.total_changes, {}
        return max(0, len(rows) - MOST_TURNS)

    def _sound(self, parts: Parts[Execution]) -> Iterator[list[object]]:
        for part in parts:
            if isinstance(part, Problem):
                self.damaged.append(part)
            elif part.record.ran or part.record.event:
                yield _row(part.record)

    def _verdict(self, user: str, turn: str) -> tuple[object, ...]:
        status = ""
        number = turn_number(turn)
        if number is not None:
            with suppress(Problem, OSError):
                status = load(Metadata, self._layout.of(user).turn(number) / METADATA_JSON).status
        held = False if status == "halted" else _ENDED.get(status)  # halted: until it goes on
        return user, turn, held, status in _ENDED

    def select(self, what: str, where: Where, *, event: str = "event IS NULL") -> list[Any]:
        """Rows of what is asked of executions, or of other events, in the order of the log."""
        return self._rows(f"SELECT {what} FROM executions WHERE {event} AND {{where}}", where)

    def _rows(self, query: str, where: Where, group: str = "''") -> list[Any]:
        values = tuple(where.values())
        text = query.format(group=group, where=" AND ".join(where))
        return self._connection.execute(text, values * query.count("{where}")).fetchall()

    def contexts(self, user: str, where: Where) -> ContextStats:
        """Return what phase 2 measured in the turns of a user, the newest of which are read."""
        rows = self.select("DISTINCT turn_id", {**where, "user_id = ?": user, "turn_id > ?": ""})
        contexts: list[ContextMetrics] = []
        for number in sorted((turn_number(turn) or 0 for (turn,) in rows), reverse=True)[:MOST_TURNS]:
            with suppress(Problem, OSError):
                metrics = find(Metrics, self._layout.of(user).turn(number).directory)
                if metrics and metrics.context is not UNSET:
                    contexts.append(metrics.context)
        used = {
            kind: [getattr(context.coverage, kind) for context in contexts]
            for kind in Coverage.__struct_fields__
        }
        return ContextStats(
            len(contexts),
            round(sum(context.context_quality for context in contexts) / len(contexts), 4)
            if contexts
            else None,
            sum(context.constraints for context in contexts),
            sum(context.constraints_missing for context in contexts),
            {kind: {"turns": sum(map(bool, nodes)), "nodes": sum(nodes)} for kind, nodes in used.items()},
        )

    def bins(self, where: Where) -> list[Any]:
        """Of each tenth of confidence: name, bin, number, sum of confidence, number of approved."""
        return self._rows(_BINS, where)

    def sums(self, where: Where, by: str | None = None) -> dict[str, ExecutionStats]:
        """
        Return the sums of each group, sorted by its name; under "" all together if they are not grouped.
        """
        if (key := (by, *where.items())) not in self._sums:
            sums = self._sums[key] = {}
            for row in self._rows(_SUMS, where, BY[by] if by else "''"):
                name, latencies, tokens, cached, saved, away, *means = row
                ordered = np.sort(np.fromstring(latencies or "", sep=","))
                places = [-(-share * len(ordered) // 100) - 1 for share in (50, 95)]
                cells: list[Any] = [round(mean, 4) if isinstance(mean, float) else mean for mean in means]
                cells += ordered[places].tolist() if len(ordered) else [None, None]
                cells += [tokens, cached, saved, away]
                sums[name] = ExecutionStats(*cells)
        return self._sums[key]

    def compressions(self, where: Where) -> dict[str, dict[str, Any]]:
        """Return the sums of the compressions by type of content, sorted, and under "" all of them."""
        rows = self._rows(_CUTS, where)
        rows += self._rows(f"{_CUTS} AND content_type <> '' GROUP BY 1 ORDER BY 1", where, "content_type")
        return {row.pop("grouped"): row for row in map(dict, rows)}


def _row(line: Execution) -> list[object]:
    """Return the values of a line, in the order of _COLUMNS."""
    values = [value[:_TEXT_CHARS] if isinstance(value, str) else value for value in _VALUES(line)]
    return [None if value is UNSET else value for value in values]


@dataclass(frozen=True)
class TurnExecutions:
    """What the log says of one turn, in order."""

    recipes: Sequence[Execution] = ()  # what ran
    cut: Sequence[Execution] = ()  # documents that were brought to size
    is_whole: bool = True  # whether all that may be the turn's was read


def turn_executions(store: UserStore, turn: int, begun: datetime, ended: datetime) -> TurnExecutions:
    """
    The lines of the log that are a turn's. Lines stand in the order of their times: only those of the time
    in which the turn ran are read.
    """
    path = store.executions_log
    name = turn_name(turn)
    if not path.is_file():
        return TurnExecutions()
    lines: list[Execution] = []
    left = _MOST_BYTES
    last = render_time(ended + _SLACK).encode()
    with store_errors(path, "read"), path.open("rb") as file:
        _seek(file, render_time(begun - _SLACK).encode())
        for text in file:
            left -= len(text)
            if _time_of(text) > last or left < 0:
                break
            if name.encode() in text:
                with suppress(Problem):
                    lines.append(parse(Execution, text, where=str(path)))
    own = [line for line in lines if (line.user_id, line.turn_id) == (store.user, name)]
    cut = [line for line in own if line.event == COMPRESSED]
    return TurnExecutions([line for line in own if line.ran], cut, left >= 0)


def _seek(file: BinaryIO, wanted: bytes) -> None:
    def time_at(block: int) -> bytes:
        file.seek(block * _BLOCK_BYTES)
        file.readline()
        times = (_time_of(file.readline(_BLOCK_BYTES)) for _ in range(3))  # a damaged line has none
        return next(filter(None, times), wanted)

    block = bisect_left(range(file.seek(0, 2) // _BLOCK_BYTES), wanted, key=time_at)
    file.seek(max(0, block - 1) * _BLOCK_BYTES)
    if block > 1:
        file.readline()


def _time_of(line: bytes) -> bytes:
    match = _TIME.search(line)
    return match[1] if match else b""
