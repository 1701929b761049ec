"""A user's memory as it was when a turn began."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from panda.index.index import Index
from panda.memory.fact import typed_value
from panda.memory.files import Bound, known_then
from panda.memory.log import MemoryLog
from panda.memory.memory import Memory
from panda.memory.reader import Moment, NodeReader
from panda.store.fact import Assertion
from panda.store.layout import Layout, UserStore
from panda.store.records import Extracted, Manifest, Snapshot
from panda.store.visits import Visit, place_visit, write_visit
from tests.stores import NOW, write_turn

USER = "ann"
TURN = 5


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.of(USER).home.mkdir(parents=True)
    return layout


def say(layout: Layout, key: str, value: str, *, hours: float, turn: int | None = None) -> None:
    """Assert something some hours after the turn began."""
    memory = Memory(UserStore(layout.root, USER, lambda: NOW + timedelta(hours=hours), 5))
    source = f"turn:{turn}" if turn else f"user:{USER}"
    said = Assertion(
        "", f"user:{USER}", key, typed_value(value), source, 0.9, "local", kind="preference", source_turn=turn
    )
    with memory.held():
        memory.assert_all([said])


def read_log(layout: Layout) -> MemoryLog:
    log = MemoryLog(layout.of(USER))
    log.refresh()
    return log


def look(layout: Layout) -> Snapshot:
    """What a turn that begins now records."""
    return Snapshot(turns=((1, 4),), memory=read_log(layout).mark, files={}, notes=0, knowledge={})


def known(layout: Layout, snapshot: Snapshot | None, at: datetime = NOW) -> list[str]:
    found = known_then(read_log(layout), Bound(TURN, at, snapshot))
    return [one.relation for one in found]


def preferences(layout: Layout, snapshot: Snapshot | None) -> dict[str, str]:
    """What a reader of the turn is told now."""
    moment = Moment(layout.of(USER))
    moment.pin(Bound(TURN, NOW, snapshot))
    nodes = NodeReader(UserStore(layout.root, USER, lambda: NOW), moment).preferences()
    return {node.id: node.items[0].text for node in nodes}


def test_reflected_facts_are_not_known_early(layout: Layout) -> None:
    """Without a record a fact of a lower turn counts only if it was asserted by then."""
    say(layout, "tea", "Assam", hours=-1, turn=3)
    say(layout, "desk", "oak", hours=1, turn=3)
    say(layout, "cup", "blue", hours=-1, turn=6)
    say(layout, "lamp", "red", hours=-1)
    assert known(layout, None) == ["tea", "lamp"]


def test_the_record_counts_not_the_number(layout: Layout) -> None:
    """With a record exactly what was in the log counts, whatever turn said it and by whatever clock."""
    say(layout, "tea", "Assam", hours=1, turn=6)
    snapshot = look(layout)
    say(layout, "desk", "oak", hours=-1, turn=3)
    say(layout, "tea", "Ceylon", hours=-1, turn=4)
    assert known(layout, snapshot) == ["tea"]
    assert preferences(layout, snapshot) == {"memory:tea": "tea: Assam"}


def test_nothing_was_there(layout: Layout) -> None:
    """A turn that began with an empty memory knows nothing that came later."""
    snapshot = look(layout)
    say(layout, "tea", "Assam", hours=-1, turn=3)
    assert known(layout, snapshot) == []
    assert preferences(layout, snapshot) == {}


def test_a_forgotten_line_leaves_the_others(layout: Layout) -> None:
    """A line taken out of the log later changes nothing for the others; if it was the last, time does."""
    for key in ("tea", "desk", "cup"):
        say(layout, key, "x", hours=-1, turn=3)
    snapshot = look(layout)
    say(layout, "lamp", "x", hours=1, turn=4)
    path = layout.of(USER).memory_log
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([lines[0], *lines[2:]]), encoding="utf-8")
    assert known(layout, snapshot) == ["tea", "cup"]
    path.write_text("".join([*lines[:2], lines[3]]), encoding="utf-8")
    assert known(layout, snapshot) == ["tea", "desk"]


def test_memory_stands_still(layout: Layout) -> None:
    """What is asserted or typed while a turn runs is not read by it; after it, it is."""
    say(layout, "tea", "Assam", hours=-1, turn=3)
    moment = Moment(layout.of(USER))
    moment.pin(Bound(TURN, NOW, look(layout)))
    reader = NodeReader(UserStore(layout.root, USER, lambda: NOW), moment)
    before = reader.preferences()
    say(layout, "desk", "oak", hours=0, turn=4)
    with layout.of(USER).preferences.open("a", encoding="utf-8") as file:
        file.write("typed below\n")
    assert reader.preferences() == before
    moment.pin(None)
    assert [node.id for node in reader.preferences()] == ["memory:tea", "memory:desk"]


def seen(number: int, visit_id: str, url: str) -> Visit:
    """What a turn saw of a page."""
    manifest = Manifest(visit_id=visit_id, url=url, title=f"seen in {number}", visited_at=NOW)
    return Visit(manifest, Extracted(title="Tent"), "A tent.")


def test_visits_of_a_page_are_found_by_the_index(tmp_path: Path) -> None:
    """The newest counts that was there when the turn began, or that the turn made itself."""
    layout, url = Layout(tmp_path), "https://shop.example/tent"
    for number in (2, 3, 4):
        write_turn(layout, number, query="tents", response="", user=USER)
    for number in (1, 2, 4):
        visit_id, directory = place_visit(layout.of(USER).turn(number), url)
        write_visit(directory, seen(number, visit_id, url))
    index = Index(layout)
    index.freshen(USER)
    moment = Moment(layout.of(USER))
    reader = NodeReader(UserStore(layout.root, USER, lambda: NOW), moment, index)
    assert reader.visits([url, "https://shop.example/"])[url].title == "seen in 4"
    moment.pin(Bound(5, NOW, Snapshot(turns=((1, 3),), memory=None, files={}, notes=0, knowledge={})))
    assert reader.visits([url])[url].title == "seen in 2"
    write_visit(place_visit(layout.of(USER).turn(5), url)[1], seen(5, "visit_a", url))
    assert reader.visits([url])[url].title == "seen in 5"
