"""A batch whose runner is killed: every item exactly once."""

import json
import os
import random
import signal
import time
from pathlib import Path

from tests.api import PRICE_QUESTION, ScriptedPanda
from tests.batches.commands import MoodyScript, begin_batch, check_once, check_sound, item
from tests.effort import tried

KILLS = tried(2, 10)


def test_a_killed_runner(ann: ScriptedPanda, tmp_path: Path) -> None:
    """Killed with -9 at any time, again and again: in the end every item has exactly one turn."""
    keys = [{"session": f"s{number % 4}"} if number % 2 else {} for number in range(2 * KILLS + 4)]
    lines = [item(f"q{number}", PRICE_QUESTION, **key) for number, key in enumerate(keys)]
    ann.server.script = MoodyScript(ann, tmp_path)
    ledger = Path(begin_batch(ann, lines, "--save", "--limit", "1")["directory"]) / "turns.jsonl"
    random.seed(7)
    for _ in range(KILLS):
        before = ledger.read_bytes()
        with ann.running("batch", "--resume", "last", "--jobs", "2") as process:
            deadline = time.monotonic() + 60
            while ledger.read_bytes() == before and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(random.random() * 0.3)
            assert process.poll() is None
            os.kill(process.pid, signal.SIGKILL)
    assert ann("batch", "--resume", "last", "--jobs", "2").code == 0
    check_once(ann, lines)


def test_a_runner_killed_before_the_index(ann: ScriptedPanda) -> None:
    """Killed when all turns are saved and none is in the index: to resume the batch brings it in line."""
    index = ann.store / "indexes" / "turn_index.db"
    begin_batch(ann, [item("q0")], "--save")
    for name in ("-wal", "-shm"):
        assert not index.with_name(f"{index.name}{name}").exists()
    before = index.read_bytes()
    run = Path(begin_batch(ann, [item("q1"), item("q2")], "--save")["directory"])
    index.write_bytes(before)
    plan = json.loads((run / "run.json").read_bytes())
    (run / "run.json").write_text(
        json.dumps({**plan, "finished_at": None, "results": None}), encoding="utf-8"
    )
    assert not ann.json("index", "status")["fresh"]
    assert ann("batch", "--resume", "last").code == 0
    check_sound(ann)
