"""How long `panda import` takes beside a bare loop that writes and syncs the same files."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from panda.addons.exchange.intake import import_turns
from panda.documents.times import Clock, parse_time
from panda.store.layout import Layout

_RUNS = 3


def best_of(act: Callable[[int], None]) -> float:
    """Seconds of the fastest of some runs."""
    times = []
    for run in range(_RUNS):
        started = time.perf_counter()
        act(run)
        times.append(time.perf_counter() - started)
    return min(times)


def main(source: Path) -> None:
    """Print both times and their ratio for a file of turns."""
    now = parse_time("2026-01-01T00:00:00Z")
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        ours = best_of(lambda run: _import(source, top / f"import{run}", lambda: now))
        first = top / "import0"
        files = {
            path.relative_to(first): path.read_bytes() for path in first.rglob("turns/**/*") if path.is_file()
        }
        bare = best_of(lambda run: _write(files, top / f"loop{run}"))
    print(f"import of {len(files)} files: {ours:.2f} s, bare loop {bare:.2f} s, ratio {ours / bare:.1f}")  # noqa: T201  the benchmark's answer


def _import(source: Path, root: Path, clock: Clock) -> None:
    import_turns(source, Layout(root), clock)


def _write(files: dict[Path, bytes], root: Path) -> None:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


if __name__ == "__main__":
    main(Path(sys.argv[1]) / "turns.jsonl")
