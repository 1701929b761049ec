"""Logs of executions, drawn from a seed."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.api import Panda

VERDICTS: Mapping[str, bool] = {"turn_000001": True, "turn_000002": False, "turn_000004": False}
"""Whether an approval was right, by turn that ended approved, failed or with a question."""


def executions(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Lines of a log, some of them lacking something, some of other events and users."""
    draw = random.Random(seed)
    lines: list[dict[str, Any]] = []
    for n in range(count):
        total = draw.choice([0, 10, 1_000])
        line: dict[str, Any] = {
            "timestamp": f"2026-01-{1 + n * 20 // count:02d}T10:00:00Z",
            "recipe": "r",
            "key": draw.choice(["a/one", "a/two", "b/three"]),
            "phase": draw.choice([None, 0, 3]),
            "model_layer": draw.choice(["MIND", "VOICE"]),
            "model": draw.choice(["m", None]),
            "method": "choose",
            "user_id": draw.choice(["demo", "demo", "ann"]),
            "turn_id": f"turn_{draw.randint(1, 5):06d}",
            "tokens": {"prompt": total, "output": 0, "total": total},
            "latency_ms": draw.choice([1, 20, 300.5, None]),
            "success": True,
            "schema_valid": draw.choice([True] * 8 + [False, None]),
            "outcome": draw.choice([None, "done", "away"]),
            "confidence": draw.choice([None, 0.05, 0.72, 0.99, 1.0]),
            "retries": draw.choice([0, 0, 1]),
            "compression_savings": draw.choice([0, 7]),
        }
        if draw.random() < 0.05:
            line = {"timestamp": line["timestamp"], "event": "compression", "user_id": "demo"}
        lines.append(line)
    return lines


def write_log(panda: Panda, lines: Sequence[Mapping[str, Any]]) -> Path:
    """Write the log of the store and return its path."""
    path = panda.store / "logs" / "executions.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path
