"""Completion in a shell: the real protocol, as a process."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from panda.documents.times import parse_time
from panda.errors import MemoryNodeError
from panda.store.interventions import resolve_intervention, write_intervention
from panda.store.layout import Layout, UserStore
from tests.stores import write_turn

PANDA = str(Path(sys.executable).with_name("panda"))
HEAVY = ("rich", "llama_cpp", "numpy", "tiktoken", "jsonschema", "sqlite3", "httpx", "llguidance")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with turns of two users, one of them unfinished, one of them damaged."""
    layout = Layout(tmp_path_factory.mktemp("store"))
    write_turn(layout, 11, query="q", response="r", session="work")
    write_turn(layout, 12, query="q", response="r", session="home", status="halted")
    write_turn(layout, 113, query="q", response="r", session="work")
    (layout.of("ann").turn(113) / "metadata.json").write_text("{", encoding="utf-8")
    write_turn(layout, 5, query="q", response="r", user="bob")
    for day in (1, 2):
        clock = partial(parse_time, f"2026-01-0{day}T10:00:00Z")
        id_ = write_intervention(
            UserStore(layout.root, "ann", clock), MemoryNodeError("gone"), turn=12, phase=2, recipe=None
        )
    resolve_intervention(UserStore(layout.root, "ann", clock, 0), id_, "done")
    return layout.root


def complete(line: str, root: Path | None, cwd: Path | None = None) -> tuple[set[str], str]:
    """What bash is offered at the end of a line, and stderr."""
    environ = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "_PANDA_COMPLETE": "complete_bash"}
    environ |= {"PANDA_ROOT": str(root)} if root else {}
    words = line.split(" ")
    environ |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([PANDA], capture_output=True, text=True, env=environ, check=False, cwd=cwd)
    return set(done.stdout.split()), done.stderr


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("panda show --user ann 11", {"11", "113"}),
        ("panda show --user bob ", {"5", "last"}),
        ("panda show --user ", {"ann", "bob"}),
        ("panda list --user ann --session ", {"work", "home"}),
        ("panda log --user ann --turn ", {"11", "12", "113", "last"}),
        ("panda recipe show pipeline/phase1", {"pipeline/phase1_reflection"}),
        ("panda recipe render pipeline/phase1_reflection --user bob --turn ", {"5", "last"}),
        ("panda log --recipe pipeline/phase1", {"pipeline/phase1_reflection"}),
        ("panda turn --user ann --resume ", {"12"}),
        ("panda tool run memory.", {"memory.query", "memory.create"}),
        ("panda replay 11 --user ann 1", {"11", "12", "113"}),
        ("panda interv", {"intervention"}),
        ("panda show --user nobody ", set()),
        ("panda show --user A/B ", set()),
    ],
)
def test_offers(root: Path, line: str, expected: set[str]) -> None:
    """What can stand at the cursor is offered, of the user and store typed before it; stderr stays empty."""
    assert complete(line, root) == (expected, "")


def test_interventions(root: Path) -> None:
    """`show` is offered every intervention, `resolve` the open ones."""
    shown, _ = complete("panda intervention show 2026", root)
    still_open, _ = complete("panda intervention resolve ", root)
    assert len(shown) == 2
    assert {id_[:8] for id_ in still_open} == {"20260101"}


def test_without_a_store(tmp_path: Path) -> None:
    """Where there is no store, or a setting is broken, nothing is offered and nothing is said."""
    assert complete("panda show ", tmp_path / "none") == (set(), "")
    (tmp_path / "panda.toml").write_text("user = 5", encoding="utf-8")
    assert complete("panda show ", None, cwd=tmp_path) == (set(), "")


def test_imports_little(root: Path) -> None:
    """Completing a turn number imports no heavy library, so it comes at once."""
    code = "import sys\nfrom panda.cli.main import main\ntry: main()\nexcept SystemExit: "
    code += f"print('imported', *(set({HEAVY!r}) & set(sys.modules)))"
    environ = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "_PANDA_COMPLETE": "complete_bash"}
    environ |= {"PANDA_ROOT": str(root), "COMP_WORDS": "panda show --user ann 12", "COMP_CWORD": "4"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=True
    )
    assert done.stdout.split() == ["12", "imported"]
