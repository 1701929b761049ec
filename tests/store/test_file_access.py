"""Which files a turn opens and replaces, and how often, by the audit events of a process of its own."""

import json
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.api import Panda

WATCHED = """
import json, os, sys

log = open(os.environ["EVENTS_LOG"], "w", buffering=1)

def note(event, arguments):
    if event in ("open", "os.rename"):
        path = arguments[0 if event == "open" else 1]
        mode = arguments[1] if event == "open" else None
        if isinstance(path, (str, os.PathLike)):
            print(json.dumps([event, os.fspath(path), mode]), file=log)

sys.addaudithook(note)
from panda.cli.main import main
main()
"""
"""Runs a command and writes down each file that it opens or renames to."""
QUESTION = "And how much does the Lenovo LOQ 15 cost?"
pytestmark = pytest.mark.asks_for("www.amazon.com", "www.bestbuy.com")


class FileEvent(NamedTuple):
    """A file that was opened or replaced."""

    event: str  # the name of the audit event: open or os.rename
    path: str
    mode: str | None  # how it was opened


@pytest.fixture
def panda(indexed: Path, tmp_path: Path) -> Panda:
    """A project with the demo store, whose processes write down what they open."""
    project = Panda(tmp_path / "project", indexed, user="demo", EVENTS_LOG=str(tmp_path / "events"))
    project.program = (sys.executable, "-c", WATCHED)
    return project


def events_of(panda: Panda, *words: str, stdin: str = "") -> list[FileEvent]:
    """Return what a command that succeeds opens and replaces, in order."""
    ended = panda.process(*words, stdin=stdin)
    assert ended.code == 0, ended.err
    lines = Path(panda.environ["EVENTS_LOG"]).read_text(encoding="utf-8").splitlines()
    return [FileEvent(*json.loads(line)) for line in lines]


def metadata_events(events: list[FileEvent], turn: str) -> str:
    """Return a letter for each time that the metadata.json of a turn is read (r) or written (w), in order."""
    letters = {"open": "r", "os.rename": "w"}
    return "".join(letters[event.event] for event in events if event.path.endswith(f"{turn}/metadata.json"))


def test_metadata_is_read_and_written_once_a_phase(panda: Panda) -> None:
    """Between two writes of metadata.json it is read once at most, and each phase writes it once."""
    events = metadata_events(events_of(panda, "turn", "-c", QUESTION), "turn_000813")
    route = json.loads(panda.turn_file(813, "metadata.json").read_bytes())["route"]
    *phases, ended = events.split("w")
    assert len(phases) == len(route)
    assert max(map(len, phases)) == 1
    assert len(ended) <= 2  # the index reads the saved turn for its row and for its vectors
