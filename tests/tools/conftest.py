"""Projects for code mode, and a site on loopback that tools may read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.tool_project import SOURCE, ToolProject


@pytest.fixture
def code(tmp_path: Path) -> Iterator[ToolProject]:
    """An empty project."""
    with ToolProject(tmp_path) as project:
        yield project


@pytest.fixture
def repository(code: ToolProject) -> ToolProject:
    """A git repository with a module and a check of it, committed."""
    code.write("totals.py", SOURCE)
    code.write("check_totals.py", "from totals import add_up\n\nassert add_up([1, 2]) == 3\n")
    code.commit()
    return code
