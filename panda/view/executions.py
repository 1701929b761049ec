"""What logs/executions.jsonl says of one turn: the recipes that ran, and what was cut for them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, BinaryIO

from panda.documents.times import render_time
from panda.store.files import store_errors
from panda.store.layout import UserStore, turn_name
from panda.store.log import AWAY

_NEAR_BYTES = 65_536  # the search for a time ends in a stretch of this length
_MOST_BYTES = 4_194_304  # so much of the log is read for one turn at most
_SLACK = timedelta(minutes=1)  # between what the turn's files say and when the log was written
_TIME = b'"timestamp": "'
_TIME_CHARS = len("2026-01-04T14:30:00Z")


@dataclass(frozen=True)
class Execution:
    """One recipe that ran."""

    recipe: str  # as "pipeline/phase1_reflection"
    layer: str
    model: str  # "" where rules decided
    method: str  # choose, generate or rules
    fault: str  # why it gave no reply that fits its schema; "" if it gave one
    confidence: float | None
    gate: str  # passed, below or not measured
    retries: int
    seconds: float | None
    tokens: int | None  # prompt and output tokens


@dataclass(frozen=True)
class CutDocument:
    """One document that was brought to size."""

    name: str  # as "§4" or "visit:visit_abc123"
    recipe: str  # for which recipe; "" for none
    method: str  # how
    before_tokens: int
    after_tokens: int


@dataclass(frozen=True)
class Executions:
    """What the log says of a turn."""

    recipes: tuple[Execution, ...] = ()  # in order
    cut: tuple[CutDocument, ...] = ()
    is_whole: bool = True  # whether all that may be the turn's was read


def read_executions(store: UserStore, turn: int, begun: datetime, ended: datetime) -> Executions:
    """
    The lines of the log that are a turn's. Lines stand in the order of their times: only those of the time
    in which the turn ran are read.
    """
    path = store.executions_log
    if not path.is_file():
        return Executions()
    recipes: list[Execution] = []
    cut: list[CutDocument] = []
    name, left = turn_name(turn), _MOST_BYTES
    with store_errors(path, "read"), path.open("rb") as file:
        _seek(file, render_time(begun - _SLACK).encode())
        last = render_time(ended + _SLACK).encode()
        for line in file:
            left -= len(line)
            if _time_of(line) > last or left < 0:
                break
            if name.encode() in line and (record := _record(line, store.user, name)):
                if "success" in record:
                    recipes.append(_execution(record))
                elif "compressed_tokens" in record:
                    cut.append(_cut(record))
    return Executions(tuple(recipes), tuple(cut), left >= 0)


def _seek(file: BinaryIO, wanted: bytes) -> None:
    low, high = 0, file.seek(0, 2)
    while high - low > _NEAR_BYTES:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline()
        time = next(filter(None, map(_time_of, _some(file))), wanted)
        low, high = (middle, high) if time < wanted else (low, middle)
    file.seek(low)
    if low:
        file.readline()


def _some(file: BinaryIO) -> Iterator[bytes]:
    """The next few lines: one that is damaged has no time."""
    return (file.readline(_NEAR_BYTES) for _ in range(3))


def _time_of(line: bytes) -> bytes:
    at = line.find(_TIME)
    return line[at + len(_TIME) :][:_TIME_CHARS] if at >= 0 else b""


def _record(line: bytes, user: str, name: str) -> Mapping[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or (value.get("user_id"), value.get("turn_id")) != (user, name):
        return None
    return value


def _execution(record: Mapping[str, Any]) -> Execution:
    confidence, latency = _number(record.get("confidence")), _number(record.get("latency_ms"))
    tokens = record.get("tokens")
    total = _number(tokens.get("total")) if isinstance(tokens, Mapping) else None
    return Execution(
        recipe=str(record.get("key") or record.get("recipe") or ""),
        layer=str(record.get("model_layer") or ""),
        model=str(record.get("model") or ""),
        method=str(record.get("method") or ""),
        fault=_fault(record),
        confidence=confidence if confidence is not None and 0 <= confidence <= 1 else None,
        gate=str(record.get("gate") or "").replace("_", " "),
        retries=int(_number(record.get("retries")) or 0),
        seconds=None if latency is None else latency / 1000,
        tokens=None if total is None else int(total),
    )


def _fault(record: Mapping[str, Any]) -> str:
    if record.get("outcome") == AWAY:
        return "no model server answered"
    return "" if record.get("schema_valid") is True else "no valid reply"


def _cut(record: Mapping[str, Any]) -> CutDocument:
    return CutDocument(
        name=str(record.get("document") or ""),
        recipe=str(record.get("recipe") or ""),
        method=str(record.get("method") or ""),
        before_tokens=int(_number(record.get("original_tokens")) or 0),
        after_tokens=int(_number(record.get("compressed_tokens")) or 0),
    )


def _number(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if is_number else None  # type: ignore[arg-type]  # it is one
