"""Which files a turn in code mode and a tool run by hand may make in a project."""

import json
from pathlib import Path

import pytest

from tests.api import ModelServer, Panda
from tests.script import Script


def write_call(path: str) -> Script:
    """A model that writes one file and is done."""
    write = {"calls": [{"tool": "file.write", "arguments": {"path": path, "content": "print(1)\n"}}]}
    return Script(
        retrieval={"relevant": []},
        synthesis={"lines": []},
        planner={"tools": [], "next_step": "coordinator"},
        coordinator=[write, {"calls": [{"tool": "done"}]}],
        answer={"items": []},
    )


@pytest.mark.parametrize(
    ("path", "words", "is_written"),
    [
        ("rates.py", (), True),
        ("src/rates.py", (), True),
        ("json.py", (), False),
        ("AGENTS.md", (), False),
        ("ci/buildspec.yml", (), False),
        ("json.py", ("--trust",), True),
        ("AGENTS.md", ("--trust",), True),
    ],
)
def test_a_turn_makes_what_the_query_names(
    path: str, words: tuple[str, ...], *, is_written: bool, tmp_path: Path
) -> None:
    """
    A turn makes files that the user named; other files, and those that programs obey, with --trust alone.
    """
    server = ModelServer(write_call(path))
    panda = Panda(tmp_path / "project", PANDA_TRUST="")
    panda.write("models.yaml", server.models())
    panda("init")
    panda("trust")
    query = "Write rates.py, and read AGENTS.md and ci/buildspec.yml before."
    ended = panda.turn(query, "--mode", "code", *words)
    server.close()
    assert ended.code in (0, 22), ended.out
    assert (panda.home / path).exists() is is_written


def test_a_tool_run_by_hand_names_its_file(tmp_path: Path) -> None:
    """Who types the path has named it; what programs obey needs --trust even so."""
    panda = Panda(tmp_path / "project", PANDA_TRUST="")
    panda("init")
    for path, words, code in (("a.py", (), 0), ("tox.ini", (), 3), ("tox.ini", ("--trust",), 0)):
        arguments = json.dumps({"path": path, "content": "x"})
        assert panda("tool", "run", "file.write", "--args", arguments, *words).code == code
        assert (panda.home / path).exists() is (code == 0)
