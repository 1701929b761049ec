"""Commands killed at any write: what they leave is swept by the next one that writes."""

import shutil
from pathlib import Path

import pytest

from tests.api import PRICE_QUESTION, Panda, ScriptedPanda
from tests.code_mode import QUERY, code_script, repository
from tests.script import Script
from tests.store_files import import_line

KINDS = {
    "init": ("init", "--demo"),
    "memory set": ("memory", "set", "color", "red"),
    "import": ("import", "turns.jsonl"),
    "index rebuild": ("index", "rebuild", "--full"),
    "compress": ("compress", "text.md", "--budget", "2000", "--out", "out.md"),
    "validate": ("validate",),
    "turn": ("turn", PRICE_QUESTION),
    "code turn": ("turn", QUERY, "--mode", "code"),
}
KILLS = 3
"""At how many of its writes, spread over all, each is killed."""


def temporaries(home: Path) -> list[Path]:
    """Return the files that unfinished writers left."""
    return [path for path in home.rglob(".*.panda.tmp") if "writing" not in path.name]


@pytest.mark.parametrize("kind", KINDS)
def test_what_killed_commands_leave_goes_with_the_next(kind: str, tmp_path: Path) -> None:
    """
    The leftovers of a command killed at any write are gone after the next one, and validate ends with 0.
    """
    home = repository(tmp_path)
    with ScriptedPanda(home) as ann:
        ann.write("text.md", "# Fans\n\n" + "Fans are loud when it is warm. " * 40)
        lines = (import_line(user="ben", turn=number) for number in range(1, 8))
        ann.write_lines("turns.jsonl", *lines)
        start = shutil.copytree(home, tmp_path / "start", symlinks=True)

        def lay_out() -> None:
            shutil.rmtree(home)
            shutil.copytree(start, home, symlinks=True)
            ann.server.script = code_script() if kind == "code turn" else Script()

        lay_out()
        words = KINDS[kind]
        runner = Panda(home, user="" if words[0] == "init" or "--full" in words else "ann")
        runner.process(*words)  # what it keeps in the cache is written once
        lay_out()
        kills = [kill for kill in runner.kills(*words) if not kill.is_torn]
        assert kills or kind == "validate"
        left = 0
        for kill in kills[:: max(1, len(kills) // KILLS)]:
            lay_out()
            runner.run_killed(kill, *words)
            left += bool(temporaries(home))
            assert ann("memory", "set", "size", str(kill.write)).code == 0
            assert temporaries(home) == []
            assert ann.problems() == []
        assert left or kind in ("validate", "memory set")
