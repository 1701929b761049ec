"""The door itself: commands in this process and in another, whole turns, what a check finds, what is held."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api import LAPTOPS, ModelServer, Panda
from tests.script import PRICE_NODE, Script


@pytest.fixture
def panda(tmp_path: Path) -> Iterator[Panda]:
    """The store with ann's laptops, and a model on loopback that says what an approved turn takes."""
    server = ModelServer()
    project = Panda(tmp_path / "project", LAPTOPS, user="ann")
    project.write("models.yaml", server.models())
    yield project
    server.close()


def test_a_whole_turn(panda: Panda) -> None:
    """A turn of the scripted model is approved with its source; its session and the store are sound."""
    ended = panda.turn("How much is the Lenovo LOQ 15?", "--session", "talk")
    assert (ended.code, ended.data["status"]) == (0, "approved")
    assert "$697" in ended.data["response"]
    assert [source["node_id"] for source in ended.data["sources"]] == [PRICE_NODE]
    assert panda.turn_file(ended.data["turn"], "response.md").is_file()
    assert (panda.problems(), panda.sessions_differ("talk")) == ([], [])


def test_both_ways_are_one(panda: Panda) -> None:
    """A command prints and ends the same in this process and in one of its own."""
    for words in (["list", "--json"], ["list"], ["show", "99"], ["list", "--lmit", "3", "--json"]):
        assert panda(*words) == panda.process(*words)


def test_a_script_that_halts(panda: Panda) -> None:
    """The model's reply at a step can be scripted turn by turn; a reply that never fits halts the turn."""
    server = ModelServer(Script(planner="nonsense"))
    panda.write("models.yaml", server.models())
    ended = panda.turn("How much is the Lenovo LOQ 15?", "--session", "talk")
    server.close()
    assert (ended.code, ended.data["status"]) == (20, "halted")
    assert panda.problems() == []
    assert [intervention["turn"] for intervention in panda.json("intervention", "list")["interventions"]] == [
        ended.data["turn"]
    ]
