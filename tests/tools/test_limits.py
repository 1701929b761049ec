"""What holds for every tool: limits, and the announcement of a change before it is made."""

from pathlib import Path
from typing import Any, TypeVar

import pytest

from panda.errors import StoreError
from panda.memory.reader import NodeReader
from panda.store.layout import Layout, UserStore
from panda.tools.contract import ToolContext, ToolResult
from panda.tools.project import Project
from panda.tools.table import TOOLS, run_tool
from tests.stores import NOW

T = TypeVar("T")


def context_of(root: Path, retriever: Any = None, **more: Any) -> ToolContext:
    """What a tool may touch, in an empty store."""
    layout = Layout(root / "store")
    reader = NodeReader(UserStore(layout.root, "ann", lambda: NOW))
    return ToolContext(UserStore(layout.root, "ann", lambda: NOW), 1, "x", reader, retriever, **more)


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
