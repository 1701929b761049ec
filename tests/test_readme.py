"""README and the pages of the docs agree with the code."""

import re
from pathlib import Path

import pytest

from tests.api import COMMANDS, ROOT

COMMANDS_PAGE = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_command_is_named() -> None:
    """docs/commands.md names every command of the program, and no other."""
    named = set(re.findall(r"`panda ([a-z]+)", COMMANDS_PAGE))
    assert named == {words.split()[0] for words in COMMANDS}, "docs/commands.md has a line for each command"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file of the project."""
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
