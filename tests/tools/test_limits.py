"""What holds for every tool: limits, and the announcement of a change before it is made."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from panda.errors import LimitError, StoreError
from panda.memory.reader import NodeReader
from panda.retrieval.candidates import Retriever
from panda.store.layout import Layout
from panda.store.signals import signals_after
from panda.tools.contract import ToolContext, ToolResult
from panda.tools.project import Project
from panda.tools.table import TOOLS, run_tool, run_within
from tests.stores import NOW

T = TypeVar("T")


class SlowRetriever(Retriever):
    """Hangs."""

    def __init__(self) -> None:
        pass

    def find(self, *arguments: Any, **options: Any) -> Any:
        time.sleep(60)


def context_of(root: Path, retriever: Any = None, **more: Any) -> ToolContext:
    """What a tool may touch, in an empty store."""
    layout = Layout(root / "store")
    reader = NodeReader(layout, "ann", lambda: NOW)
    return ToolContext(layout, "ann", 1, "x", reader, retriever, lambda: NOW, **more)


IN_ANY_THREAD = pytest.mark.parametrize("main", [True, False], ids=["main thread", "other thread"])


def in_thread(act: Callable[[], T], *, main: bool) -> T:
    """What something gives, in this thread or in another one."""
    if main:
        return act()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).result()


@IN_ANY_THREAD
def test_hanging_tool_is_stopped(tmp_path: Path, *, main: bool) -> None:
    """A tool that hangs is stopped at its limit, in any thread; its error says so."""
    context = context_of(tmp_path, SlowRetriever(), limit_seconds=0.1)
    started = time.monotonic()
    result = in_thread(lambda: run_tool("memory.query", {"query": "x"}, context), main=main)
    assert time.monotonic() - started < 10
    assert (result.status, result.data) == ("error", None)
    assert "was stopped at its limit of 0.1 s" in str(result.error)


@IN_ANY_THREAD
def test_limit_leaves_nothing_behind(*, main: bool) -> None:
    """Work in time gives its value or its own error, and is not disturbed later; endless work ends."""
    steps: list[int] = []

    def endless() -> None:
        while True:
            steps.append(1)

    def act() -> None:
        assert run_within(5, lambda: 7, what="a") == 7
        with pytest.raises(KeyError):
            run_within(5, lambda: os.environ["NO_SUCH_VARIABLE"], what="a")
        run_within(0.05, lambda: None, what="a")
        time.sleep(0.1)
        with pytest.raises(LimitError):
            run_within(0.05, endless, what="b")

    in_thread(act, main=main)
    count = len(steps)
    time.sleep(0.1)
    assert len(steps) == count


def test_limit_waits_for_a_write() -> None:
    """In another thread, a write that is at hand at the limit is finished, and nothing comes after it."""
    steps: list[str] = []

    def work() -> None:
        with signals_after():
            time.sleep(0.3)
            steps.append("written")
        steps.append("went on")

    def act() -> None:
        with pytest.raises(LimitError):
            run_within(0.1, work, what="a")

    in_thread(act, main=False)
    assert steps == ["written"]


def test_change_is_announced_first(tmp_path: Path) -> None:
    """A tool that changes a file tells what it will be before it does."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n", encoding="utf-8")
    told: list[tuple[str, ToolResult]] = []

    def intend(result: ToolResult) -> None:
        told.append(((project / "a.txt").read_text(encoding="utf-8"), result))

    context = context_of(tmp_path, project=Project(project), intend=intend)
    made = run_tool("file.edit", {"path": "a.txt", "old": "one", "new": "two"}, context)
    assert [(text, result.data["after"]) for text, result in told] == [("one\n", made.data["after"])]
    assert (project / "a.txt").read_text(encoding="utf-8") == "two\n"


def test_change_that_cannot_be_announced_is_not_made(tmp_path: Path) -> None:
    """If the step cannot be written, the file stays as it is."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("one\n", encoding="utf-8")

    def refuse(result: ToolResult) -> None:
        raise StoreError("disk full")

    context = context_of(tmp_path, project=Project(project), intend=refuse)
    assert run_tool("file.write", {"path": "a.txt", "content": "x"}, context).status == "error"
    assert (project / "a.txt").read_text(encoding="utf-8") == "one\n"


@pytest.mark.parametrize("name", [name for name in TOOLS if name.startswith(("file.", "git.", "test."))])
def test_project_tools_need_a_project(tmp_path: Path, name: str) -> None:
    """Where there is no project, as in chat mode, its tools refuse."""
    arguments: dict[str, dict[str, str]] = {
        "file.read": {"path": "a"},
        "file.search": {"text": "a"},
        "file.edit": {"path": "a", "old": "a", "new": "b"},
        "file.write": {"path": "a", "content": "b"},
        "test.run": {"command": "a"},
    }
    result = run_tool(name, arguments.get(name, {}), context_of(tmp_path))
    assert "only code mode" in str(result.error)
