"""The recorded turns in a project of their own, and the pages over them."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.api import Panda, open_pages


@pytest.fixture
def panda(recorded: Path, tmp_path: Path) -> Panda:
    """A store of its own with the recorded turns of the user demo, five minutes later."""
    return Panda(tmp_path / "project", recorded, user="demo", PANDA_NOW="2026-02-01T12:05:00Z")


@pytest.fixture
def pages(panda: Panda) -> TestClient:
    """The pages over that store."""
    return open_pages(panda)
