"""
Break a file of the program in small ways and see whether a test fails: `make mutants FILE=panda/pipeline.py`.

Each mutant is one change of one expression or statement. The tests that run its line are taken from the
coverage of a whole run, which is made once and kept in `.mutants/`; those that run most of its lines come
first. A mutant that no test notices is printed with its change. All work is done in copies of the checkout.

    python -m tests.mutants FILE [--count 10] [--seed 1] [--line N] [--fresh] [--tests PATH …]
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

import pytest
from coverage import CoverageData

ROOT = Path(__file__).parent.parent
KEPT = ROOT / ".mutants"
COVERAGE = KEPT / "coverage"
MOST_TESTS = 400
"""At most so many tests are tried on a mutant."""
MOST_SECONDS = 600
"""A mutant whose tests take longer hangs, and counts as killed."""
_STATEMENT_LINES = 12
"""An expression belongs to the nearest measured line above it, up to so many lines away."""

_COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}


@dataclass(frozen=True)
class Mutant:
    """One change of a file."""

    line: int
    """Line of what is changed."""
    before: str
    """The changed node as it stands."""
    after: str
    """The node that takes its place."""
    source: str
    """The whole file with the change."""


def changes_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that may take a node's place, each wrong in one respect."""
    changed = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and isinstance(changed, ast.Compare):
        other = _COMPARISONS[type(node.ops[0])]
        changed.ops[0] = other()
        yield changed
    elif isinstance(node, ast.BoolOp) and isinstance(changed, ast.BoolOp):
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.BinOp) and isinstance(changed, ast.BinOp) and type(node.op) in _ARITHMETIC:
        if not _is_text(node.left) and not _is_text(node.right):
            changed.op = _ARITHMETIC[type(node.op)]()
            yield changed
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.If | ast.IfExp) and isinstance(changed, ast.If | ast.IfExp):
        changed.test = ast.UnaryOp(ast.Not(), changed.test)
        yield changed
    elif isinstance(node, ast.comprehension) and isinstance(changed, ast.comprehension) and node.ifs:
        changed.ifs = changed.ifs[1:]
        yield changed
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not _is_log(node.value):
        yield ast.Pass()


def _is_log(call: ast.Call) -> bool:
    return ast.unparse(call.func).startswith("_log.")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Yield each place of a node that runs, as parent, field and index; annotations are left out."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        items = value if isinstance(value, list) else [value]
        for n, item in enumerate(items):
            if isinstance(item, ast.AST):
                yield tree, name, n if isinstance(value, list) else None
                yield from _places(item)


def mutants_of(source: str) -> list[Mutant]:
    """Return all mutants of a file, in the order of its lines."""
    tree = ast.parse(source)
    mutants = []
    for parent, name, index in list(_places(tree)):
        value = getattr(parent, name)
        node: ast.AST = value if index is None else value[index]
        line = int(getattr(getattr(node, "target", node), "lineno", 0))
        for changed in changes_of(node):
            _put(parent, name, index, changed)
            text = ast.unparse(ast.fix_missing_locations(tree))
            mutants.append(Mutant(line, _short(node), _short(changed), text))
            _put(parent, name, index, node)
    return sorted(mutants, key=lambda mutant: mutant.line)


def _put(parent: ast.AST, name: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, name, node)
    else:
        getattr(parent, name)[index] = node


def _short(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0][:90]


def copy_checkout(directory: Path) -> Path:
    """Copy what git would commit, with its changes, and return the directory."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name)
    return directory


def run_tests(directory: Path, *words: str, seconds: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run pytest in a copy, which is what its tests import."""
    environ = {**os.environ, "PYTHONPATH": str(directory), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:randomly", *words],
        cwd=directory,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )


def record_coverage(tests: list[str]) -> None:
    """Run tests once, all if none are named, and keep which of them run which line."""
    shutil.rmtree(KEPT, ignore_errors=True)
    directory = copy_checkout(KEPT / "whole")
    words = ["--numprocesses", "auto", "--cov=panda", "--cov-context=test", "--cov-report=", *tests]
    ended = run_tests(directory, *words)
    (KEPT / "whole-run.txt").write_text(ended.stdout, encoding="utf-8")
    shutil.move(directory / ".coverage", COVERAGE)
    shutil.rmtree(directory)


def tests_by_line(file: str) -> dict[int, list[str]]:
    """Return the tests that run each line of a file, those that run most of its lines first."""
    data = CoverageData(str(COVERAGE))
    data.read()
    measured = next((name for name in data.measured_files() if name.endswith(f"/{file}")), None)
    if measured is None:
        return {}
    by_line = {
        line: {context.partition("|")[0] for context in contexts if context}
        for line, contexts in data.contexts_by_lineno(measured).items()
    }
    lines_of = Counter(test for tests in by_line.values() for test in tests)
    return {line: sorted(tests, key=lambda test: (-lines_of[test], test)) for line, tests in by_line.items()}


def killer(mutant: Mutant, file: str, tests: list[str], directory: Path) -> str | None:
    """Return the first test that fails on a mutant, or None."""
    if not tests:
        return None
    path = directory / file
    original = path.read_text(encoding="utf-8")
    chosen = directory / "chosen-tests"
    chosen.write_text("\n".join(tests[:MOST_TESTS]), encoding="utf-8")
    path.write_text(mutant.source, encoding="utf-8")
    try:
        ended = run_tests(directory, "-x", f"@{chosen}", seconds=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return "its tests do not end"
    finally:
        path.write_text(original, encoding="utf-8")
    if ended.returncode == pytest.ExitCode.USAGE_ERROR:
        raise SystemExit("tests have gone since it was recorded which of them run which line: give --fresh")
    failures = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if failures:
        return failures[0].split(" - ")[0]
    return None if ended.returncode == 0 else f"pytest ended with {ended.returncode}"


def main() -> int:
    """Try mutants of a file; the exit code is 1 if too few are killed."""
    parser = argparse.ArgumentParser(description="break a file in small ways and see whether a test fails")
    parser.add_argument("file", help="such as panda/pipeline.py")
    parser.add_argument("--count", type=int, default=10, help="how many mutants are drawn (10)")
    parser.add_argument("--seed", type=int, default=1, help="draws others (1)")
    parser.add_argument("--line", type=int, help="only mutants of this line, all of them")
    parser.add_argument("--fresh", action="store_true", help="record anew which test runs which line")
    parser.add_argument("--tests", nargs="*", default=[], help="record these tests alone (all)")
    parser.add_argument("--least-killed", type=float, default=0.9, help="share that must be killed (.9)")
    given = parser.parse_args()
    if given.fresh or given.tests or not COVERAGE.exists():
        sys.stderr.write(
            "recording which test runs which line; this takes twice as long as `make test`, once\n"
        )
        record_coverage(given.tests)
    source = (ROOT / given.file).read_text(encoding="utf-8")
    tests = tests_by_line(given.file)
    mutants = [mutant for mutant in mutants_of(source) if given.line in (None, mutant.line)]
    if given.line is None:
        mutants = random.Random(given.seed).sample(mutants, min(given.count, len(mutants)))
    places: Queue[Path] = Queue()
    for n in range(os.cpu_count() or 1):
        shutil.rmtree(KEPT / str(n), ignore_errors=True)
        places.put(copy_checkout(KEPT / str(n)))

    def tried(mutant: Mutant) -> bool:
        place = places.get()
        lines = range(mutant.line, mutant.line - _STATEMENT_LINES, -1)
        chosen = next((tests[line] for line in lines if line in tests), [])
        test = killer(mutant, given.file, chosen, place)
        places.put(place)
        verdict = f"killed by {test}" if test else f"SURVIVED {len(chosen)} tests"
        sys.stdout.write(f"{given.file}:{mutant.line}: {mutant.before}  ->  {mutant.after}\n    {verdict}\n")
        sys.stdout.flush()
        return test is not None

    with ThreadPoolExecutor(places.qsize()) as pool:
        killed = sum(pool.map(tried, mutants))
    sys.stdout.write(f"{killed} of {len(mutants)} mutants killed\n")
    return 0 if killed >= given.least_killed * len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
