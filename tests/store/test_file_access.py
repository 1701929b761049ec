"""Which files turns open and replace, and how often, by the audit events of the processes that run them."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.api import ROOT, Panda

WATCH = f"""
import json, os, runpy, sys

log = os.open(os.environ["EVENTS_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def note(event, arguments):
    if event in ("open", "os.rename"):
        path = arguments[event == "os.rename"]
        if isinstance(path, (str, os.PathLike)):
            os.write(log, (json.dumps([os.getpid(), event, os.fspath(path)]) + "\\n").encode())

sys.addaudithook(note)
runpy.run_path({str(ROOT / "tests" / "sealed" / "sitecustomize.py")!r})
"""
"""Imported by every process that starts: writes down each file that it opens or renames to."""
QUESTION = "And how much does the Lenovo LOQ 15 cost?"
pytestmark = pytest.mark.asks_for("www.amazon.com", "www.bestbuy.com")


class FileEvent(NamedTuple):
    """A file that was opened or replaced."""

    process_id: int
    name: str  # of the audit event: open or os.rename
    path: str


@pytest.fixture
def panda(indexed: Path, tmp_path: Path) -> Panda:
    """A project with the demo store, in which a turn has run; its processes write down what they open."""
    project = Panda(tmp_path / "project", indexed, user="demo")
    assert project.turn("hello").code == 0
    project.write("watch/sitecustomize.py", WATCH)
    places = [str(project.home / "watch"), os.environ["PYTHONPATH"]]
    project.environ |= {"PYTHONPATH": os.pathsep.join(places), "EVENTS_LOG": str(tmp_path / "events")}
    return project


def events_of(panda: Panda, *words: str, stdin: str = "") -> list[FileEvent]:
    """Return what a command that succeeds opens and replaces, in order."""
    ended = panda.process(*words, stdin=stdin)
    assert ended.code == 0, ended.err
    lines = Path(panda.environ["EVENTS_LOG"]).read_text(encoding="utf-8").splitlines()
    return [FileEvent(*json.loads(line)) for line in lines]


def parsed_recipes(events: list[FileEvent]) -> Counter[tuple[int, str]]:
    """Return how often each process opened each recipe, by its process and the path of the recipe."""
    top = f"{ROOT / 'recipes'}{os.sep}"
    paths = [(event.process_id, event.path.removeprefix(top)) for event in events if top in event.path]
    return Counter(each for each in paths if each[1].endswith(".yaml") and each[1] != "registry.yaml")


def test_metadata_is_read_and_written_once_a_phase(panda: Panda) -> None:
    """Between two writes of metadata.json it is read once at most, and each phase writes it once."""
    events = events_of(panda, "turn", "-c", QUESTION)
    letters = {"open": "r", "os.rename": "w"}
    own = [letters[event.name] for event in events if event.path.endswith("turn_000814/metadata.json")]
    *phases, ended = "".join(own).split("w")
    route = json.loads(panda.turn_file(814, "metadata.json").read_bytes())["route"]
    assert len(phases) == len(route)
    assert max(map(len, phases)) == 1
    assert len(ended) <= 2  # the index reads the saved turn for its row and for its vectors


def test_a_turn_parses_only_recipes_that_it_asks(panda: Panda) -> None:
    """Recipes that passed their check are parsed where a step begins, once each; phases 1 and 4 ask none."""
    parsed = parsed_recipes(events_of(panda, "turn", "-c", QUESTION))
    calls = panda.turn_file(814, "calls.jsonl").read_text(encoding="utf-8").splitlines()
    asked = {f"{json.loads(call)['recipe']}.yaml" for call in calls}
    assert {path[: len("pipeline/phase0")] for path in asked} == {
        f"pipeline/phase{n}" for n in (0, 2, 3, 5, 7)
    }
    assert {path for _, path in parsed} == {*asked, "pipeline/phase6_validator.yaml"}
    assert set(parsed.values()) == {1}


def test_a_process_parses_a_recipe_once(panda: Panda) -> None:
    """In a batch a process parses each recipe once, also for turns of several users."""
    lines = [{"id": user, "user": user, "query": QUESTION} for user in ("demo", "ann")]
    words = ("batch", "-", "--jobs", "1", "--new-user")
    parsed = parsed_recipes(events_of(panda, *words, stdin="".join(json.dumps(x) + "\n" for x in lines)))
    assert "pipeline/phase0_query_analyzer.yaml" in {path for _, path in parsed}
    assert set(parsed.values()) == {1}


def test_a_recipe_that_changes_is_checked_anew(panda: Panda) -> None:
    """A recipe that passed its check and is broken since stops the next turn before it has a number."""
    name = "recipes/pipeline/phase1_reflection.yaml"
    text = (ROOT / name).read_text(encoding="utf-8")
    panda.write(name, text)
    assert panda.turn("hello").code == 0
    path = panda.write(name, text.replace("model_layer: REFLEX", "model_layer: REFLUX"))
    turn = panda.turn("hello")
    assert turn.code == 2
    assert turn.error["where"].startswith(str(path))
    assert not panda.turn_file(815, "").exists()
