"""What a batch will take, by what turns took that are in the log."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Any

from panda.store.log import AWAY

_MOST_TURNS = 200


@dataclass(frozen=True)
class Estimate:
    """What a batch will take."""

    items: int  # number of queries
    turns: int  # turns of the log that it is estimated from
    tokens: int | None  # prompt and output tokens of all items; None if the log does not tell
    seconds: float | None  # seconds of their model calls, one after the other; None as before


def estimate(items: int, records: Iterable[Mapping[str, Any]]) -> Estimate:
    """
    What a batch of so many items will take: what the last turns of a log took on average, times their number.

    >>> line = {"success": True, "user_id": "ann", "turn_id": "turn_000001", "tokens": {"total": 50}}
    >>> estimate(10, [line | {"latency_ms": 200}, line | {"latency_ms": 100}])
    Estimate(items=10, turns=1, tokens=1000, seconds=3.0)
    """
    spent: dict[tuple[str, str], list[float]] = {}
    newest: deque[tuple[str, str]] = deque(maxlen=_MOST_TURNS)
    for record in records:
        if "success" not in record or record.get("outcome") == AWAY or not record.get("turn_id"):
            continue
        turn = str(record.get("user_id")), str(record["turn_id"])
        if turn not in spent:
            spent[turn] = [0.0, 0.0]
            if len(newest) == _MOST_TURNS:
                del spent[newest[0]]
            newest.append(turn)
        tokens = record.get("tokens")
        spent[turn][0] += (tokens.get("total") or 0) if isinstance(tokens, Mapping) else 0
        spent[turn][1] += (record.get("latency_ms") or 0) / 1000
    if not spent:
        return Estimate(items, 0, None, None)
    tokens, seconds = (mean(one[at] for one in spent.values()) for at in (0, 1))
    return Estimate(items, len(spent), round(items * tokens), round(items * seconds, 1))
