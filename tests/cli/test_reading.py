"""What commands that only look leave behind: nothing."""

import shutil
from contextlib import chdir
from pathlib import Path

import pytest

from tests.api import run_here

RECIPE = "pipeline/phase1_reflection"
LOOKS = (
    "list",
    "show 811",
    "log",
    "stats",
    "validate",
    "validate 811",
    "session list",
    "session show default",
    "session verify",
    "synthesize --scope local",
    "recipe list",
    f"recipe show {RECIPE}",
    f"recipe render {RECIPE} --turn 811",
    f"recipe history {RECIPE}",
    f"recipe failures {RECIPE}",
    "index status",
    "intervention list",
    "tool list",
    "trust --dry-run",
    "config show",
    "models list",
    "memory reflect --dry-run",
    "forget budget --dry-run",
    "turn hello --dry-run",
    "export 811 --as markdown",
    "batch queries.jsonl --dry-run",
)


def listing(directory: Path) -> set[tuple[str, int, int]]:
    """Every path below a directory, with size and time of change of files."""
    paths = sorted(directory.rglob("*"))
    status = {path: path.lstat() for path in paths}
    return {(str(p), s.st_size, s.st_mtime_ns) if p.is_file() else (str(p), 0, 0) for p, s in status.items()}


@pytest.mark.parametrize("line", LOOKS)
def test_looking_leaves_nothing(line: str, demo: Path, tmp_path: Path) -> None:
    """No file or folder is made or changed: not in the store, not at home, not where the command runs."""
    shutil.copytree(demo, tmp_path / "panda-system-docs")
    (tmp_path / "queries.jsonl").write_text(
        '{"id": "a", "query": "Which brands do I prefer?"}\n', encoding="utf-8"
    )
    before = listing(tmp_path)
    words = (*line.split(), "--user", "demo")
    with chdir(tmp_path):
        ended = run_here(words, {"HOME": str(tmp_path / "home")})
    assert ended.code == 0, ended.err
    assert listing(tmp_path) == before
