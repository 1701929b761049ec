"""A turn that is named is shown and nothing else is; one that is not there halts (S1 §9)."""

import json
from pathlib import Path

from tests.api import Panda


def test_named_turns_are_shown(demo: Path, tmp_path: Path) -> None:
    """What they answered, each cited by itself, as far as the query asks for it."""
    panda = Panda(tmp_path / "home", demo, user="demo")
    shown = panda.turn("What did turn 811 say?").data
    assert {one["node_id"] for one in shown["sources"]} == {"turn:811"}
    for part in ("$697.00", "$749.99", "$799"):
        assert part in shown["response"]
    part = panda.turn("What did turn 811 say about the ASUS?").data
    assert ("$749.99" in part["response"], "$697" in part["response"]) == (True, False)
    both = panda.turn("turns 806 and 809").data
    assert {one["node_id"] for one in both["sources"]} == {"turn:806", "turn:809"}
    assert both["noted"] == []
    for text in ("Turn 806: Take the RTX 4050.", "Turn 809: Your budget is recorded as $500-800"):
        assert text in both["response"]
    many = panda.turn("Summarise turns 805-809").data
    assert {one["node_id"] for one in many["sources"]} == {f"turn:{n}" for n in range(805, 810)}
    turns = f"{shown['turn']}-{many['turn']}"
    assert panda("validate", turns, "--strict").code == 0


def test_a_turn_that_is_not_there_halts(demo: Path, tmp_path: Path) -> None:
    """Exit 20 with an intervention that names it; a number that is no turn halts nothing."""
    panda = Panda(tmp_path / "home", demo, user="demo")
    for query, missing in (
        ("What did turn 9999 say?", "9999"),
        ("What did turn 1234567890 say?", "1234567890"),
        (f"What did turn {'9' * 60} say?", "9" * 60),
        ("Compare turn 811 with turn 804", "804"),
        ("Summarise turns 803 to 806", "803, 804"),
        ("Show turns 1 to 100000", "more than 50"),
    ):
        ended = panda.turn(query)
        assert (ended.code, ended.error["type"]) == (20, "MemoryNodeError"), query
        assert missing in ended.error["message"]
        assert ended.error["fix"]
        path = panda.store / "interventions" / f"{ended.data['intervention']}.json"
        assert json.loads(path.read_text("utf-8"))["type"] == "memory_error"
    assert panda.turn("When does Ada turn 40?").code == 0
    told = panda.turn("On turn 9999 I built a wonder.")
    assert (told.code, len(told.data["noted"])) == (0, 1)


def test_what_became_of_a_turn_that_is_not_saved_is_told(tmp_path: Path) -> None:
    """A turn that was halted or forgotten is named as that, and a replay of the halted one blames nothing."""
    panda = Panda(tmp_path / "home")
    assert panda("init").code == 0
    preferences = panda.write("store/users/default/preferences.md", "---\n- tea\n---\n")
    halted = panda.turn("Where is the tea?")
    assert halted.code == 20
    preferences.unlink()
    forgotten = panda.turn("My cat is called Tom.").number
    assert panda("forget", str(forgotten), "--yes").code == 0
    for number, state in ((halted.data["turn"], "halted"), (forgotten, "forgotten")):
        message = panda.turn(f"What did turn {number} say?").error["message"]
        assert message == f"the query names turn {number}, which is {state}"
    replayed = panda("replay", str(halted.data["turn"]))
    assert "fix: see above what is told of each turn\n" in replayed.err
    assert f"panda turn --resume {halted.data['turn']}" in replayed.err
