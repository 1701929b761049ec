"""Links and pipes where SQLite keeps its own files: the index goes on, and nothing behind them is touched."""

import os
from itertools import product
from pathlib import Path

import pytest

from tests.api import Panda


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe"])
def test_no_link_stands_in_the_place_of_a_side_file(kind: str, indexed: Path, tmp_path: Path) -> None:
    """Anything there that is no file goes, and the next search finds what it found."""
    panda = Panda(tmp_path / "project", indexed, user="demo", PANDA_TRUST="")
    words = ("index", "search", "laptop")
    before = panda(*words)
    target = tmp_path / "target"
    if kind == "link":
        target.write_text("somebody's")
    for database, ending in product(("turn_index.db", "vectors.db"), ("-wal", "-shm", "-journal")):
        side = panda.store / "indexes" / f"{database}{ending}"
        side.unlink(missing_ok=True)
        if kind == "pipe":
            os.mkfifo(side)
        else:
            side.symlink_to(target)
    for command in (words, ("index", "rebuild"), ("list",)):
        ended = panda(*command)
        assert ended.code == 0, ended.err
    assert panda(*words).out == before.out
    assert (target.read_text() == "somebody's") if kind == "link" else not target.exists()
