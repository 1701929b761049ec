"""How long the synthesis of 100,000 facts takes, and how much memory, beside a bare parse of their file."""

import json
import random
import resource
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from panda.documents.times import parse_time
from panda.memory.fact_reader import parse_scope_facts
from panda.memory.synthesis import SynthesisRequest, synthesize
from panda.store.files import read_json

_FACTS, _ENTITIES, _CONFLICTS = 100_000, 10_000, 1_000
_ENDS = (None, None, None, "2026-05-01T00:00:00Z", "2027-05-01T00:00:00Z")
_NOW = parse_time("2026-06-01T12:00:00Z")


def make_document(facts: int, entities: int, conflicts: int) -> dict[str, object]:
    """Seeded facts, several for most entities and relations; some at odds, expired, retracted or settled."""
    chance = random.Random(10)
    made = []
    for number in range(facts):
        made.append(
            {
                "id": f"fact-{number:06}",
                "entity": f"panda://bench.example/thing/{chance.randrange(entities)}",
                "relation": f"x:relation-{chance.randrange(4)}",
                "value": {"type": "string", "v": f"value {chance.randrange(3)}"},
                "source": f"panda://bench.example/agent/{chance.randrange(20)}",
                "confidence": 0.0 if chance.random() < 0.02 else round(chance.random(), 2),
                "scope": "company",
                "hlc": f"{1780000000000 + chance.randrange(10**9)}.{chance.randrange(10):03}",
                "valid_until": chance.choice(
                    [None, None, None, "2026-05-01T00:00:00Z", "2027-05-01T00:00:00Z"]
                ),
            }
        )
    records = []
    for number in range(conflicts):
        first = made[chance.randrange(facts)]
        settling = {**first, "id": f"settling-{number}", "entity": f"panda:resolution:{number}"}
        records.append(
            {
                "conflict_id": str(number),
                "fact_a": first["id"],
                "fact_b": made[chance.randrange(facts)]["id"],
                "status": "resolved",
                "resolution_fact": settling["id"],
            }
        )
        made.append(settling)
    return {"facts": made, "conflicts": records}


def write(path: Path) -> None:
    """The file to measure on."""
    path.write_text(json.dumps(make_document(_FACTS, _ENTITIES, _CONFLICTS)), encoding="utf-8")


def parse(path: Path) -> None:
    """The bare parse."""
    json.loads(path.read_bytes())


def answer(path: Path) -> None:
    """The same file from the disk to the answer."""
    facts, conflicts = parse_scope_facts(read_json(path), where=str(path))
    synthesize(facts, conflicts, SynthesisRequest("company"), now=_NOW).to_json()


def measure(act: Callable[[Path], None], path: Path) -> tuple[float, int]:
    """Seconds of the fastest of three runs, and the bytes that the first one needs."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times, grown = [], 0
    for _ in range(3):
        started = time.perf_counter()
        act(path)
        times.append(time.perf_counter() - started)
        grown = grown or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return min(times), grown * 1024


def in_process(act: Callable[..., Any], *arguments: object) -> Any:
    """What a function gives in a process of its own, whose memory nothing else has used."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(act, arguments)


def main() -> None:
    """Print both times, their ratio and the memory."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "facts.json"
        in_process(write, path)
        size = path.stat().st_size
        bare, _ = in_process(measure, parse, path)
        ours, grown = in_process(measure, answer, path)
    print(  # noqa: T201  the benchmark's answer
        f"synthesis of {_FACTS:,} facts: {ours:.2f} s, bare parse {bare:.2f} s, ratio {ours / bare:.1f}; "
        f"memory {grown / size:.1f} times the {size / 1e6:.0f} MB of the file"
    )


if __name__ == "__main__":
    main()
