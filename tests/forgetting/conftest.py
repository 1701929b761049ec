"""A project that was told something, for tests to copy."""

from pathlib import Path

import pytest

from tests.api import Panda
from tests.forgetting.traces import copy_project, make_project

TOLD = (
    "My locker code is 4471-k.",
    "My wifi password is kornblume77 and the guest password is tulpe88.",
    "remember that the gate code of the allotment is 5582-m",
    "no, the gate code is 5528-m, not 5582-m",
    "Lena takes the room and Tom brings the cake.",
)


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which five turns told something."""
    panda = make_project(tmp_path_factory.mktemp("told") / "project")
    for sentence in TOLD:
        assert panda.turn(sentence, "--session", "talk").code == 0
    return panda.home


@pytest.fixture
def panda(told: Path, tmp_path: Path) -> Panda:
    """A copy of that project."""
    return copy_project(told, tmp_path / "project")
