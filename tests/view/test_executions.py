"""The lines of a long log that are one turn's."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import UNSET

from panda.documents.times import render_time
from panda.index.executions import turn_executions
from panda.store.layout import Layout, turn_name

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def write_log(layout: Layout, turns: int) -> None:
    """A log of turns, one each minute: a document that was cut, an execution, one of another user."""
    layout.executions_log.parent.mkdir(parents=True)
    with layout.executions_log.open("w") as log:
        for turn in range(1, turns + 1):
            at = render_time(BEGUN + timedelta(minutes=turn))
            whose = {"timestamp": at, "user_id": "demo", "turn_id": turn_name(turn)}
            cut = {"event": "compressed", "document": f"§{turn}", "method": "dropped", "recipe": "planner"}
            log.write(json.dumps({**whose, **cut, "original_tokens": 900, "compressed_tokens": 400}) + "\n")
            log.write("not JSON " * 40 + "\n")
            ran = {"key": f"pipeline/p{turn}", "success": True, "schema_valid": True, "confidence": 0.9}
            log.write(json.dumps({**whose, **ran, "latency_ms": 1500, "tokens": {"total": 7}}) + "\n")
            log.write(json.dumps({**whose, **ran, "user_id": "other"}) + "\n")


def test_a_turn_is_found_in_a_long_log(tmp_path: Path) -> None:
    """Of any turn, at the beginning, in the middle and at the end, all lines are found and no others."""
    layout = Layout(tmp_path)
    write_log(layout, 5_000)
    for turn in (1, 2, 777, 2_500, 4_999, 5_000):
        at = BEGUN + timedelta(minutes=turn)
        found = turn_executions(layout.of("demo"), turn, at, at)
        assert [one.name for one in found.recipes] == [f"pipeline/p{turn}"]
        cuts = [(cut.document, cut.original_tokens, cut.compressed_tokens) for cut in found.cut]
        assert cuts == [(f"§{turn}", 900, 400)]
        assert found.is_whole


def test_a_log_with_anything_in_it(tmp_path: Path) -> None:
    """Values of any kind, damaged lines and no log at all are no fault of the page; what fits is shown."""
    layout = Layout(tmp_path)
    assert turn_executions(layout.of("demo"), 1, BEGUN, BEGUN).recipes == ()
    layout.executions_log.parent.mkdir(parents=True)
    whose = {"timestamp": render_time(BEGUN), "user_id": "demo", "turn_id": turn_name(1), "success": True}
    values: tuple[object, ...] = ("x", None, [], {}, -1, 10**400, True)
    lines = [
        json.dumps({**whose, key: one}) for one in values for key in ("confidence", "latency_ms", "tokens")
    ]
    layout.executions_log.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n[[[\n" + b"[" * 90_000)
    found = turn_executions(layout.of("demo"), 1, BEGUN, BEGUN)
    assert [one.confidence for one in found.recipes] == [None, UNSET, UNSET, UNSET]
