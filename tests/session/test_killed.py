"""A turn that remembers, killed at its renames and appends, in a process of its own."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api import PRICE_QUESTION, Kill, ScriptedPanda, tree
from tests.script import Script
from tests.session.conversations import DONE, TOOLS, load_session

QUERY = "My favorite tea is Assam."
WORDS = ("turn", "--session", "talk", "--", QUERY)
SHARES = 4
FEWEST_WRITES = 40
FEWEST_APPENDS = 5


def remembering(number: int) -> Script:
    """Return the replies of a turn that remembers what its query states, and is approved."""
    answer = {"items": [{"text": QUERY, "node_ids": [f"turn:{number}"]}]}
    return Script(planner=TOOLS, coordinator=[{"tool": "memory.create"}, DONE], answer=answer)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedPanda]:
    """A store in which the user likes another tea, and a session of one turn."""
    with ScriptedPanda(tmp_path_factory.mktemp("begun") / "project") as panda:
        assert panda("memory", "set", "favorite_tea", "Earl Grey").code == 0
        panda.say(PRICE_QUESTION)
        yield panda


def copy(begun: ScriptedPanda, home: Path) -> ScriptedPanda:
    """Return a copy of the store, whose models are those of another server."""
    return ScriptedPanda(home, begun.store)


@pytest.fixture(scope="module")
def kills(begun: ScriptedPanda, tmp_path_factory: pytest.TempPathFactory) -> list[Kill]:
    """Every way to kill it at a write."""
    with copy(begun, tmp_path_factory.mktemp("whole") / "project") as whole:
        whole.server.script = remembering(4)
        places = whole.kills(*WORDS)
    assert len(places) > FEWEST_WRITES
    assert sum(kill.is_torn for kill in places) > FEWEST_APPENDS
    return places


@pytest.mark.parametrize("share", range(SHARES))
def test_killed_at_every_write(begun: ScriptedPanda, kills: list[Kill], tmp_path: Path, share: int) -> None:
    """Whatever write kills it, the turn goes on and remembers once; nothing is lost, doubled or left over."""
    for kill in kills[share :: 8 * SHARES]:
        with copy(begun, tmp_path / f"{kill.write} {kill.is_torn}") as panda:
            panda.server.script = remembering(4)
            panda.run_killed(kill, *WORDS)
            assert panda.sessions_differ("talk") == [], kill
            go_on(panda)
            assert_remembered_once(panda)


def go_on(panda: ScriptedPanda) -> None:
    """Resume the turn, or state it again if nothing of it is there."""
    metadata = panda.turn_file(4, "metadata.json")
    if not metadata.exists():
        counter = int((panda.user_directory / "turn_counter").read_text(encoding="utf-8"))
        assert panda.turn(QUERY, "--session", "talk", script=remembering(counter + 1)).code == 0
    elif json.loads(metadata.read_bytes())["next"] is not None:
        assert panda.resume(4, script=remembering(4)).code == 0


def assert_remembered_once(panda: ScriptedPanda) -> None:
    """Check that the store is as if nobody had killed the turn."""
    assert panda.problems() == []
    assert panda.sessions_differ("talk") == []
    numbers = [entry["turn"] for entry in load_session(panda)["turns"]]
    assert numbers[0] == 3
    assert len(numbers) == 2
    directory = panda.turn_file(numbers[1], ".")
    assert json.loads((directory / "metadata.json").read_bytes())["status"] == "approved"
    assert json.loads((directory / "staged_memory.json").read_bytes())["applied"] is True
    (log,) = panda.user_directory.glob("memory*.jsonl")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    teas = [
        (line["value"]["v"], line["confidence"] > 0) for line in lines if line["relation"] == "favorite_tea"
    ]
    assert teas == [("Earl Grey", True), ("Earl Grey", False), ("Assam", True)]
    preferences = (panda.user_directory / "preferences.md").read_text(encoding="utf-8")
    assert (preferences.count("favorite_tea: {"), preferences.count("Earl Grey")) == (1, 0)
    calls = [json.loads(line) for line in (directory / "calls.jsonl").read_text("utf-8").splitlines()]
    assert [count for count in Counter(call["n"] for call in calls).values() if count > 1] == []
    steps = [json.loads(path.read_bytes())["tool"] for path in (directory / "steps").glob("*.json")]
    assert steps.count("memory.create") == 1
    assert [name for name in tree(panda.store) if ".panda.tmp" in name and "writing" not in name] == []
