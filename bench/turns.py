"""
What a turn costs, beside what the same machine does with a small model: `python -m bench.turns [--write]`.

One run measures everything, one thing after the other, and prints medians: a question to the demo store
(cold: nothing in the cache; warm: another question was asked before), one prompt of the `llm` command with
SmolLM2-135M and 60 new tokens, the tokens that each phase computed and reused, the time outside of the
models, how many lines the encoder reads a second, and two turns at once. `--against CHECKOUT` measures the
turn of another checkout in the same run; `--write` puts table and plot into docs/performance.md.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from panda.models.cores import usable_cores
from panda.models.layers import LoadedLayers
from panda.models.models_file import load_models_file

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
PLOT = PAGE.with_suffix(".svg")
QUESTION = "And how much does the Lenovo LOQ 15 cost?"
BEFORE = "Which brands do I prefer?"
NEW_TOKENS = 60
DEMO = ("--user", "demo", "--session", "default")
_BEGIN, _END = "<!-- measured -->", "<!-- /measured -->"
_LINES = 40
_WIDTH, _BAR, _LABELS = 720, 26, 250


@dataclass(frozen=True)
class Turn:
    """One turn that was measured."""

    seconds: float
    """Wall clock of the whole process."""
    peak_mb: float
    """Most memory that it held."""
    calls: Sequence[Mapping[str, object]]
    """Its calls.jsonl."""

    @property
    def model_seconds(self) -> float:
        """Time inside of models."""
        return sum(float(str(call.get("seconds") or 0)) for call in self.calls)

    def tokens(self) -> dict[str, tuple[int, int]]:
        """Tokens computed and reused, by phase."""
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for call in self.calls:
            usage = call.get("usage")
            if isinstance(usage, dict):
                reused = int(usage.get("reused") or 0)
                prompt, output = int(usage.get("prompt") or 0), int(usage.get("output") or 0)
                found[str(call.get("phase"))][0] += prompt - reused + output
                found[str(call.get("phase"))][1] += reused
        return {phase: (one[0], one[1]) for phase, one in sorted(found.items())}


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="how often each is measured")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="another checkout with its .venv")
    parser.add_argument("--write", action="store_true", help="put table and plot into docs/performance.md")
    arguments = parser.parse_args()
    checkouts = {"a turn": ROOT} | ({"a turn before": arguments.against} if arguments.against else {})
    seconds: dict[str, list[float]] = defaultdict(list)
    peaks: dict[str, list[float]] = defaultdict(list)
    last: Turn | None = None
    for _ in range(arguments.runs):
        for name, checkout in checkouts.items():
            with tempfile.TemporaryDirectory() as directory:
                cold, warm = _cold_and_warm(checkout, Path(directory))
                seconds[f"{name}, cold"].append(cold.seconds)
                seconds[f"{name}, warm"].append(warm.seconds)
                peaks[name].append(warm.peak_mb)
                if checkout == ROOT:
                    last = warm
                    seconds["of that outside the models"].append(warm.seconds - warm.model_seconds)
                    seconds["two turns at once, each"] += _at_once(checkout, Path(directory))
        seconds[f"llm, one prompt, {NEW_TOKENS} new tokens"].append(_ask_llm())
    assert last is not None
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    lines = [
        *_table(medians, {name: statistics.median(values) for name, values in peaks.items()}),
        "",
        *_phases(last),
        "",
        f"The encoder reads {_encoded_per_second():.0f} lines a second.",
        "",
        f"Machine: {_machine()}.",
    ]
    print("\n".join(lines))  # noqa: T201 - the result
    if arguments.write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.partition(_BEGIN)[0], text.partition(_END)[2]
        measured = "\n".join(lines)
        PAGE.write_text(f"{before}{_BEGIN}\n{measured}\n{_END}{after}", encoding="utf-8")
        PLOT.write_text(_plot(medians), encoding="utf-8")
    return 0


def _cold_and_warm(checkout: Path, directory: Path) -> tuple[Turn, Turn]:
    """The question with an empty cache; then, in another copy, after another question."""
    stores = [directory / name for name in ("cold", "warm")]
    environ = _environ(directory)
    for store in stores:
        _run(checkout, environ, "init", "--demo", "--root", str(store))
    cold = _turn(checkout, environ, stores[0], QUESTION)
    _turn(checkout, environ, stores[1], BEFORE)
    return cold, _turn(checkout, environ, stores[1], QUESTION)


def _at_once(checkout: Path, directory: Path) -> list[float]:
    """Seconds of each of two turns that begin together, the cache warm."""
    environ = _environ(directory)
    stores = [shutil.copytree(directory / "warm", directory / name) for name in ("left", "right")]
    started = time.perf_counter()
    running = [
        subprocess.Popen(
            _words(checkout, "turn", QUESTION, "--root", str(store), *DEMO),
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for store in stores
    ]
    ended = []
    for one in running:
        one.wait()
        ended.append(time.perf_counter() - started)
    return ended


def _environ(directory: Path) -> dict[str, str]:
    """A cache of its own; modules that are not compiled yet are, as for a user."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"XDG_CACHE_HOME": str(directory / "cache"), "NO_COLOR": "1"}


def _words(checkout: Path, *words: str) -> list[str]:
    return [str(checkout / ".venv" / "bin" / "panda"), *words]


def _run(checkout: Path, environ: Mapping[str, str], *words: str) -> None:
    subprocess.run(_words(checkout, *words, "--quiet"), env=dict(environ), check=True, capture_output=True)


def _turn(checkout: Path, environ: Mapping[str, str], store: Path, question: str) -> Turn:
    words = _words(
        checkout,
        "turn",
        question,
        "--root",
        str(store),
        "--user",
        "demo",
        "--session",
        "default",
        "--json",
        "--quiet",
    )
    started = time.perf_counter()
    process = subprocess.Popen(words, env=dict(environ), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status):
        crash = "; without use_extra_bufts = False llama.cpp crashes on some processors"
        raise SystemExit(f"the turn of {checkout} ended with {os.waitstatus_to_exitcode(status)}{crash}")
    number = json.loads(said)["data"]["turn"]
    calls = store / "users" / "demo" / "turns" / f"turn_{number:06}" / "calls.jsonl"
    lines = [json.loads(line) for line in calls.read_text(encoding="utf-8").splitlines()]
    return Turn(seconds, used.ru_maxrss / 1024, lines)


def _ask_llm() -> float:
    """Seconds until the `llm` command has written that many tokens, each a piece of its stream."""
    with tempfile.TemporaryDirectory() as directory:
        environ = os.environ | {"LLM_USER_PATH": directory, "PYTHONUNBUFFERED": "1"}
        words = [str(ROOT / ".venv" / "bin" / "llm"), "-m", "SmolLM2", "Tell a long story about a boat."]
        started = time.perf_counter()
        process = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        pieces = 0
        while pieces < NEW_TOKENS and os.read(process.stdout.fileno(), 64):
            pieces += 1
        seconds = time.perf_counter() - started
        process.kill()
        process.wait()
    return seconds


def _encoded_per_second() -> float:
    """Return how many lines the warm encoder reads a second."""
    models = load_models_file(ROOT / "models.yaml")
    with (
        tempfile.TemporaryDirectory() as cache,
        LoadedLayers(models, cache_dir=Path(cache), environ={}) as layers,
    ):
        encoder = layers.encoder()
        assert encoder is not None
        encoder.encode(["start-up"])
        lines = [f"Harbour. Boats. Crate {n} holds herring and came in on day {n}." for n in range(_LINES)]
        return _LINES / _timed(lambda: encoder.encode(lines))


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _table(medians: Mapping[str, float], peaks: Mapping[str, float]) -> list[str]:
    llm = next(value for name, value in medians.items() if name.startswith("llm"))
    lines = ["| what | seconds | times one `llm` prompt |", "|---|---|---|"]
    lines += [f"| {name} | {value:.2f} | {value / llm:.2f} |" for name, value in medians.items()]
    return [*lines, "", *(f"Peak memory of {name}: {peak:.0f} MB." for name, peak in peaks.items())]


def _phases(turn: Turn) -> list[str]:
    lines = ["| phase | tokens computed | tokens reused |", "|---|---|---|"]
    return lines + [f"| {phase} | {one[0]} | {one[1]} |" for phase, one in turn.tokens().items()]


def _machine() -> str:
    try:
        about = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        model = next(line.partition(":")[2].strip() for line in about.splitlines() if "model name" in line)
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    cores = len(usable_cores())
    return f"{cores} cores of {model}, {platform.system()}, Python {platform.python_version()}"


def _plot(medians: Mapping[str, float]) -> str:
    """The seconds as bars, an SVG that reads in light and dark."""
    top = max(medians.values())
    rows = []
    for n, (name, value) in enumerate(medians.items()):
        y, wide = 8 + n * _BAR, (_WIDTH - _LABELS - 80) * value / top
        rows.append(f'<text x="{_LABELS - 8}" y="{y + 15}" text-anchor="end">{name}</text>')
        rows.append(f'<rect x="{_LABELS}" y="{y}" width="{wide:.1f}" height="{_BAR - 6}" rx="2"/>')
        rows.append(f'<text x="{_LABELS + wide + 6:.1f}" y="{y + 15}">{value:.2f} s</text>')
    height = 16 + len(medians) * _BAR
    style = "text{font:13px sans-serif;fill:#777}rect{fill:#3b82c4}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="Seconds of a turn and of what it is compared with"><style>{style}</style>\n'
        + "\n".join(rows)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    sys.exit(main())
