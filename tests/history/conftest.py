"""A project that other programs' exports come into."""

from pathlib import Path

import pytest

from tests.api import ROOT, Panda


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store of ann that holds no turn, without an encoder, which each import would load."""
    panda = Panda(tmp_path / "project", user="ann")
    panda.user_directory.mkdir(parents=True)
    lines = (ROOT / "models.yaml").read_text(encoding="utf-8").splitlines()
    models = ["encoder: null" if line.startswith("encoder:") else line for line in lines]
    panda.write("models.yaml", "\n".join(models))
    return panda
