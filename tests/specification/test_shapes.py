"""What every command gives keeps its shape: exit code, streams, keys of --json, in success and in failure."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api import COMMANDS, ModelServer
from tests.record_shapes import (
    NO_SUCCESS,
    Moods,
    differences,
    make_home,
    read_cases,
    read_shapes,
    shapes_of,
)

RECORDED = read_shapes()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The project that every case runs in a copy of; its model answers as long as the cases run."""
    server = ModelServer(Moods())
    yield make_home(tmp_path_factory.mktemp("shapes") / "home", server)
    server.close()


@pytest.mark.parametrize("command", COMMANDS)
def test_shape(command: str, home: Path, tmp_path: Path) -> None:
    """A change is a line of the changelog, and then `python -m tests.record_shapes`."""
    recorded = {row["case"]: row for row in RECORDED.get(command, ())}
    now = {row["case"]: row for row in shapes_of(command, home, tmp_path / "project")}
    assert list(recorded) == list(now), f"record it: python -m tests.record_shapes {command!r}"
    changed = [
        f"panda {command}, {case}: {line}" for case in now for line in differences(recorded[case], now[case])
    ]
    hint = "if it is meant, a line of CHANGELOG.md, then: python -m tests.record_shapes"
    assert not changed, "\n".join([*changed, hint])


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_recorded_is_enough(command: str) -> None:
    """Every command has a success and five failures, whose error line is followed by where or fix."""
    assert set(read_cases()) == set(COMMANDS), "tests/cases/commands.yaml has a line for each command"
    assert command in RECORDED, f"record it: python -m tests.record_shapes {command!r}"
    rows = RECORDED[command]
    succeeded = any(row["code"] in (0, 3) and row["case"] == "usual" for row in rows)
    assert succeeded or command in NO_SUCCESS
    failed = [row for row in rows if row["error"]]
    assert len({row["case"] for row in rows} - {"usual"}) >= 5
    for row in failed:
        assert row["code"] not in (0, 1), row
        assert row["code"] == 3 or {"where", "fix"} & set(row["stderr"]), row
        assert "Traceback" not in row["stderr"], row
