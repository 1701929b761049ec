"""A turn that is taken up again knows what was known when it began, and nothing that came later."""

import re
from pathlib import Path

import pytest

from tests.api import ScriptedPanda, Turn
from tests.script import Script, loaded_documents, pick
from tests.store_files import write_turn, write_visit

QUERY = "Which tea, desk, cup and lamp, and which tent?"
EARLIER = "2026-01-04T13:30:00Z"
LATER = "2026-01-04T15:30:00Z"


def begin(ann: ScriptedPanda) -> int:
    """Begin a turn that halts before it gathers anything, and return its number."""
    ended = ann.turn(QUERY, script=Script(reflection="no reply of any schema"))
    assert ended.code == 20
    ann.turn_file(ended.number, "calls.jsonl").unlink()  # else the same replies count again
    return ended.number


def go_on(ann: ScriptedPanda, number: int) -> Turn:
    """Take the turn up again; all memory and visits count as relevant."""
    script = Script(
        retrieval={"relevant": pick("memory:", "visit:")},
        synthesis={"lines": pick("~")},
        answer={"items": []},
    )
    turn = ann.resume(number, script=script)
    assert turn.code == 0, turn.out
    return turn


def remembered(turn: Turn) -> list[str]:
    """Return the lines of memory that the turn read, without the budget of LAPTOPS."""
    documents = loaded_documents(turn.asked("synthesis")[0])
    own = [line for node_id, lines in documents.items() if node_id.startswith("memory:") for line in lines]
    return sorted(line for line in own if "budget" not in line)


def say(ann: ScriptedPanda, *values: str, at: str = EARLIER) -> None:
    """Remember values, each as `key=value`."""
    for value in values:
        assert ann("memory", "set", *value.split("="), PANDA_NOW=at).code == 0


def test_what_is_remembered_since_is_not_read(ann: ScriptedPanda) -> None:
    """New values and changed ones count for later turns, whatever the clock says."""
    say(ann, "tea=Assam", at=LATER)
    number = begin(ann)
    say(ann, "desk=oak", "tea=Ceylon")
    assert remembered(go_on(ann, number)) == ["tea: Assam"]
    assert remembered(go_on(ann, begin(ann))) == ["desk: oak", "tea: Ceylon"]


def test_nothing_was_there(ann: ScriptedPanda) -> None:
    """A turn that began with an empty memory knows nothing that came later."""
    number = begin(ann)
    say(ann, "tea=Assam")
    assert remembered(go_on(ann, number)) == []


@pytest.mark.parametrize(
    ("forgotten", "left"), [("desk", ["cup: c", "tea: a"]), ("cup", ["desk: b", "tea: a"])]
)
def test_a_forgotten_value_leaves_the_others(ann: ScriptedPanda, forgotten: str, left: list[str]) -> None:
    """A value that is forgotten later changes nothing for the others, even if it was the last."""
    say(ann, "tea=a", "desk=b", "cup=c")
    number = begin(ann)
    say(ann, "lamp=d", at=LATER)
    assert ann("forget", forgotten, "--yes").code == 0
    assert remembered(go_on(ann, number)) == left


def test_a_turn_of_before_has_no_record(ann: ScriptedPanda) -> None:
    """Without snapshot.json a value counts only if it was remembered by then."""
    say(ann, "tea=Assam")
    number = begin(ann)
    say(ann, "desk=oak", at=LATER)
    ann.turn_file(number, "snapshot.json").unlink()
    assert remembered(go_on(ann, number)) == ["tea: Assam"]


def test_turns_and_visits_of_since_are_not_found(ann: ScriptedPanda) -> None:
    """Of what was found of a page that counts which was there when the turn began."""
    write_turn(ann.user_directory, 3, query="A tent?", response="A tent.")
    write_visit(ann.user_directory, 3, "visit_3", {"title": "Tent", "price": "$5"}, quality=0.9)
    number = begin(ann)
    write_turn(ann.user_directory, 9, query="A tent again?", response="Two tents.")
    write_visit(ann.user_directory, 9, "visit_9", {"title": "Tent", "price": "$9"}, quality=0.9)
    turn = go_on(ann, number)
    offered = set(re.findall(r"(?m)^- (turn:\d+|visit:\w+) \|", turn.asked("retrieval")[0].text))
    assert {"turn:3", "visit:visit_3"} <= offered
    assert not {"turn:9", "visit:visit_9"} & offered
    assert Path(turn.directory).name == f"turn_{number:06d}"
