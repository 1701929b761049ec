"""The README agrees with the code."""

import re

from panda.cli.main import COMMANDS
from tests.file_map import ROOT, with_map

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_file_map() -> None:
    """The file map has one line a module, as `python -m tests.file_map` writes it."""
    assert with_map(README) == README


def test_every_command_is_named() -> None:
    """The README names every command of the program, and no other."""
    named = set(re.findall(r"`panda ([a-z]+)", README))
    assert named == {entry.words.split()[0] for entry in COMMANDS}


def test_links_lead_somewhere() -> None:
    """Every relative link names a file of the project."""
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
