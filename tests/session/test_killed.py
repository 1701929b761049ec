"""A turn that remembers, killed at each of its renames and appends, in a process of its own."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from panda.memory.fact import typed_value
from panda.memory.memory import Memory
from panda.memory.validation import check_memory
from panda.session.file import load_session, verify_session
from panda.store.fact import Assertion
from panda.store.layout import Layout, UserStore
from panda.store.validate import check_store
from tests.builders import NOW, file_of, still_clock
from tests.kills import Kill, kills_of, run_killed
from tests.script import Script
from tests.scripted_model import ScriptedModel
from tests.scripted_turns import USER, open_turn, run_turn, scripted_app
from tests.session.conversations import DONE, SESSION, TOOLS, Talk

QUERY = "My favorite tea is Assam."
SHARES = 8
FEWEST_WRITES, FEWEST_APPENDS = 40, 5


def remembering(number: int) -> Script:
    """The replies of a turn that remembers what its query states, and is approved."""
    answer = {"items": [{"text": QUERY, "node_ids": [f"turn:{number}"]}]}
    return Script(planner=TOOLS, coordinator=[{"tool": "memory.create"}, DONE], answer=answer)


def state(root: Path) -> None:
    """The turn, as a process runs it."""
    run_turn(Layout(root), QUERY, remembering(4), session=SESSION)


def begin(root: Path) -> None:
    """A store in which the user likes another tea, and a session of one turn."""
    talk = Talk(root)
    memory = Memory(UserStore(talk.layout.root, USER, still_clock, 5))
    value = typed_value("Earl Grey")
    with memory.held():
        memory.assert_all(
            [
                Assertion(
                    "",
                    f"user:{USER}",
                    "favorite_tea",
                    value,
                    f"user:{USER}",
                    0.95,
                    "local",
                    kind="preference",
                )
            ]
        )
    talk.say("How much is the Lenovo LOQ 15?")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store before the turn that is killed."""
    root = tmp_path_factory.mktemp("begun") / "store"
    begin(root)
    return root


@pytest.fixture(scope="module")
def kills(begun: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Kill]:
    """Every way to kill it at a write."""
    root = shutil.copytree(begun, tmp_path_factory.mktemp("whole") / "store")
    found = list(kills_of(state, root))
    assert len(found) > FEWEST_WRITES
    assert sum(one.torn for one in found) > FEWEST_APPENDS
    return found


@pytest.mark.parametrize("share", range(SHARES))
def test_killed_at_every_write(begun: Path, kills: list[Kill], tmp_path: Path, share: int) -> None:
    """Whatever write kills it, the turn goes on and remembers once; nothing is lost, doubled or left over."""
    for kill in kills[share::SHARES]:
        root = tmp_path / f"{kill.write} {kill.torn}"
        shutil.copytree(begun, root)
        run_killed(kill, state, root)
        assert verify_session(Layout(root).of(USER), SESSION) == [], kill
        assert_remembered_once(Layout(root), go_on(root))


def go_on(root: Path) -> int:
    """Resume the turn, or state it again if nothing of it is there; gives its number."""
    layout = Layout(root)
    app = scripted_app(layout, ScriptedModel(remembering(4), scores=False), session=SESSION)
    if not app.store.has(4):
        number = app.store.counter() + 1
        return run_turn(layout, QUERY, remembering(number), session=SESSION).turn.turn
    if app.store.open(4).read_metadata().next is not None:
        app.run_turn(app.resume_turn(4))
    return 4


def assert_remembered_once(layout: Layout, number: int) -> None:
    """The store is as if nobody had killed the turn."""
    assert check_store(layout) == []
    assert check_memory(layout.root, (), NOW) == []
    assert verify_session(layout.of(USER), SESSION) == []
    session = load_session(layout.of(USER), SESSION)
    assert session is not None
    assert [one.turn for one in session.turns] == [3, number]
    folder = open_turn(layout, number)
    assert folder.read_metadata().status == "approved"
    assert file_of(folder, "staged_memory.json")["applied"] is True
    log = [json.loads(line) for line in layout.of(USER).memory_log.read_text(encoding="utf-8").splitlines()]
    told = [(one["value"]["v"], one["confidence"] > 0) for one in log if one["relation"] == "favorite_tea"]
    assert told == [("Earl Grey", True), ("Earl Grey", False), ("Assam", True)]
    preferences = layout.of(USER).preferences.read_text(encoding="utf-8")
    assert (preferences.count("favorite_tea: {"), preferences.count("Earl Grey")) == (1, 0)
    calls = [json.loads(line) for line in folder.read_text("calls.jsonl").splitlines()]
    assert [count for count in Counter(one["n"] for one in calls).values() if count > 1] == []
    steps = [step.tool for step in folder.load_steps()]
    assert steps.count("memory.create") == 1
