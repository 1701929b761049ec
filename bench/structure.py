"""
How large the program is, and how long the way of a turn through it: `python -m bench.structure`.

Prints lines and files of the core and of the add-ons; of a warm turn of the demo store the functions and
files that run, the deepest chain of calls, the reads of its metadata.json and the forms of a price line; and
the share of lines of tests in files that import the program's modules.
"""

import ast
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from bench.tracing import PRICE, Tracer
from panda.actions.turn_run import ask
from panda.app import App
from panda.models.layers import LoadedLayers
from panda.models.models_file import load_models_file
from panda.settings import load_settings
from panda.store.demo import copy_demo, create_store
from panda.store.layout import METADATA_JSON, asset

ROOT = Path(__file__).parents[1]
PRICE_LINE = "Lenovo LOQ 15 Gaming Laptop: price $697.00"
_PACKAGE = f"{ROOT / 'panda'}{os.sep}"


class TurnTracer:
    """Watches which functions run in a turn, which files it opens, and the forms of a line."""

    def __init__(self, line: str) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.depth = 0
        self.opened: Counter[str] = Counter()
        self.tracer = Tracer("", line)
        self._level = 0

    def profile(self, frame: FrameType, event: str, value: Any) -> None:
        """Note a call or return, as what sys.setprofile calls."""
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(_PACKAGE):
            return
        self.tracer(frame, event, value)
        if event == "return":
            self._level -= 1
            return
        self._level += 1
        self.depth = max(self.depth, self._level)
        if not code.co_name.startswith("<"):
            self.functions.add((code.co_filename, code.co_qualname))

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note that a file is opened, as what sys.addaudithook calls."""
        if event == "open" and isinstance(arguments[0], str | os.PathLike):
            self.opened[os.fspath(arguments[0])] += 1


def count_lines(paths: Iterable[Path]) -> tuple[int, int]:
    """Return the lines of some files, and their number."""
    lines = [len(path.read_text("utf-8").splitlines()) for path in paths]
    return sum(lines), len(lines)


def imports_internals(path: Path) -> bool:
    """Return whether a file imports a module of the program."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return any(name.partition(".")[0] == "panda" for name in names)


def trace_demo_turn() -> tuple[TurnTracer, int]:
    """Run two turns in a demo store; return what was seen of the second, and the reads of its metadata."""
    settings = load_settings({}, os.environ, Path.cwd())
    models = load_models_file(settings.models_file)
    tracer = TurnTracer(PRICE_LINE)
    with (
        tempfile.TemporaryDirectory() as temporary,
        LoadedLayers(models, cache_dir=settings.cache_dir, environ=os.environ) as layers,
    ):
        store = Path(temporary) / "store"
        create_store(store)
        copy_demo(asset("panda-system-docs"), store, load_settings({}, os.environ, store).clock())
        own = load_settings({"root": str(store), "user": "demo", "session": "bench"}, os.environ, store)
        ask(App(own, own.store, layers), "hello", "chat")
        app = App(own, own.store, layers)
        sys.addaudithook(tracer.audit)
        sys.setprofile(tracer.profile)
        try:
            result = ask(app, PRICE, "chat")
        finally:
            sys.setprofile(None)
    assert result.data is not None
    return tracer, tracer.opened[f"{result.data['turn_dir']}/{METADATA_JSON}"]


def main() -> None:
    """Print the figures."""
    package = ROOT / "panda"
    lines, files = count_lines(package.rglob("*.py"))
    addon_lines, addon_files = count_lines((package / "addons").rglob("*.py"))
    print(f"core: {lines - addon_lines:,} lines in {files - addon_files} files")  # noqa: T201
    print(f"add-ons: {addon_lines:,} lines in {addon_files} files")  # noqa: T201
    turn, metadata_reads = trace_demo_turn()
    directories = {path for path, _ in turn.functions}
    print(f"demo turn: {len(turn.functions):,} functions in {len(directories)} files")  # noqa: T201
    print(f"  depth of calls: {turn.depth}")  # noqa: T201
    print(f"  reads of {METADATA_JSON}: {metadata_reads}")  # noqa: T201
    print(f"  forms of a price line: {len(turn.tracer.forms)}")  # noqa: T201
    tests = list((ROOT / "tests").rglob("test_*.py"))
    inside, _ = count_lines(path for path in tests if imports_internals(path))
    whole, _ = count_lines(tests)
    print(f"tests: {inside / whole:.0%} of {whole:,} lines in files that import internals")  # noqa: T201


if __name__ == "__main__":
    main()
