"""The log and the memory files together: edits by hand, crashes, expiry, settling, several processes."""

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from multiprocessing import get_context
from pathlib import Path

import pytest

from panda.documents.memory_file import MemoryText, parse_memory_file
from panda.errors import DocumentError, FileFormatError, NotFoundError
from panda.memory.conflicts import find_contradictions, lint_memory, merge_files, resolve
from panda.memory.fact import Kind, typed_value
from panda.memory.files import Projection
from panda.memory.log import MemoryLog
from panda.memory.memory import Memory, Remembered, load_remembered
from panda.memory.reader import NodeReader
from panda.store.fact import Assertion, Subject, parse_hlc
from panda.store.layout import Layout, UserStore
from tests.stores import NOW

USER = "ann"
LATER = NOW + timedelta(days=1)


def clock() -> datetime:
    return NOW


def later() -> datetime:
    return LATER


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.of(USER).home.mkdir(parents=True)
    return layout


def say(
    layout: Layout, key: str, value: object, *, kind: Kind = "preference", until: datetime | None = None
) -> list[Assertion]:
    """What `panda memory set` does."""
    memory = Memory(UserStore(layout.root, USER, clock, 5))
    statement = Assertion(
        "",
        f"user:{USER}",
        key,
        typed_value(value),
        f"user:{USER}",
        0.95,
        "local",
        kind=kind,
        valid_until=until,
    )
    with memory.held():
        return memory.assert_all([statement])


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")


def known(layout: Layout, now: datetime = NOW) -> dict[str, Remembered]:
    """What holds, read without writing."""
    state = Projection(layout.of(USER))
    state.refresh()
    return {one.key: one for one in load_remembered(state, now)}


def values(layout: Layout) -> dict[str, str]:
    return {key: one.text for key, one in known(layout).items()}


def log_of(layout: Layout) -> MemoryLog:
    log = MemoryLog(layout.of(USER))
    log.refresh()
    return log


def take_in(layout: Layout, now: datetime = LATER) -> Sequence[Assertion]:
    return Memory(UserStore(layout.root, USER, lambda: now, 5)).take_in()


def test_typed_value_is_used_and_dated(layout: Layout) -> None:
    """A value typed by hand counts at once with .50; the next read dates it and leaves it as it is."""
    text = "---\ncity:   Salem   # my town\n---\nNotes.\n"
    write(layout.of(USER).preferences, text)
    assert known(layout)["city"].confidence(NOW) == 0.50
    (assertion,) = take_in(layout)
    assert (assertion.value.v, assertion.confidence, assertion.asserted_at) == ("Salem", 0.5, LATER)
    assert layout.of(USER).preferences.read_text(encoding="utf-8") == text
    node = NodeReader(UserStore(layout.root, USER, later)).load("memory:city")
    assert (node.at, node.items[0].confidence, node.items[0].text) == (LATER, 0.5, "city: Salem")
    assert take_in(layout) == ()


def test_value_typed_over_an_entry(layout: Layout) -> None:
    """Typed over inside an entry of panda's, date, turn, confidence and list line follow the new value."""
    say(layout, "budget", "$500")
    path = layout.of(USER).preferences
    write(path, path.read_text(encoding="utf-8").replace('{value: "$500",', "{value:  $900,"))
    before = known(layout)["budget"]
    assert (before.text, before.start, before.at) == ("$900", 0.5, None)
    retraction, assertion = take_in(layout)
    assert (retraction.confidence, retraction.value.v) == (0, "$500")
    assert (assertion.confidence, assertion.source) == (0.5, "file:preferences.md")
    text = path.read_text(encoding="utf-8")
    assert '{value:  $900, confidence: 0.5, source_turn: null, updated_at: "2026-01-05T14:30:00Z"}' in text
    assert "- budget: $900\n" in text


def test_foreign_entry_keeps_what_stands_beside_it(layout: Layout) -> None:
    """An entry that the log never knew keeps its own confidence and date, and is not rewritten."""
    text = "---\npet: {value: cat, confidence: 0.25, updated_at: 2025-06-01}\nold: {value: x}\n---\n"
    write(layout.of(USER).preferences, text)
    take_in(layout)
    assert layout.of(USER).preferences.read_text(encoding="utf-8") == text
    reader = NodeReader(UserStore(layout.root, USER, later))
    assert reader.load("memory:pet").items[0].confidence == 0.25
    assert reader.load("memory:old").items[0].confidence == 0.5
    assert reader.load("memory:old").warnings == ("memory:old has no confidence; 0.50 assumed",)


def test_deleted_key_is_retracted(layout: Layout) -> None:
    """A key deleted by hand is gone, for every reader at once; its line in the list goes, too."""
    say(layout, "pet", "cat")
    say(layout, "tea", "Assam")
    path = layout.of(USER).preferences
    write(path, "".join(line for line in path.read_text("utf-8").splitlines(True) if "pet:" not in line[:5]))
    assert values(layout) == {"tea": "Assam"}
    (retraction,) = take_in(layout)
    assert (retraction.relation, retraction.confidence) == ("pet", 0)
    assert "cat" not in path.read_text(encoding="utf-8")
    assert take_in(layout) == ()


def test_missing_file_is_made_again(layout: Layout) -> None:
    """A file that is gone is no deletion of all that it held."""
    say(layout, "pet", "cat")
    layout.of(USER).preferences.unlink()
    assert values(layout) == {"pet": "cat"}
    assert take_in(layout) == ()
    assert "pet: cat" in layout.of(USER).preferences.read_text(encoding="utf-8")


def test_hand_edit_as_the_latest_word(layout: Layout) -> None:
    """What was set and then typed back by hand is an edit, not a leftover."""
    say(layout, "pet", "cat")
    former = layout.of(USER).preferences.read_bytes()
    say(layout, "pet", "dog")
    layout.of(USER).preferences.write_bytes(former)
    take_in(layout)
    assert values(layout) == {"pet": "cat"}
    assert log_of(layout).assertions[-1].source == "file:preferences.md"


@pytest.mark.parametrize("mark", ["former", "torn"])
def test_crash_between_log_and_file(layout: Layout, mark: str) -> None:
    """Where a write was cut short after the log, the files follow it; nothing counts as an edit by hand."""
    say(layout, "pet", "cat")
    say(layout, "tea", "Assam")
    paths = [layout.of(USER).preferences, layout.of(USER).memory_shown]
    former = [path.read_bytes() for path in paths]
    say(layout, "pet", "dog")
    say(layout, "city", "Salem")
    memory = Memory(UserStore(layout.root, USER, clock, 5))
    with memory.held():
        memory.retract(Subject("local", f"user:{USER}", "tea"), f"user:{USER}")
    shown = paths[0].read_bytes()
    for path, content in zip(paths, former, strict=True):
        path.write_bytes(content if mark == "former" or path == paths[0] else b'{"asser')
    count = len(log_of(layout).assertions)
    expected = {"pet": "dog", "city": "Salem"}
    assert values(layout) == expected
    take_in(layout)
    assert (values(layout), len(log_of(layout).assertions)) == (expected, count)
    assert paths[0].read_bytes() == shown


def test_broken_file_stops_before_the_log(layout: Layout) -> None:
    """Where a memory file cannot be read, nothing is written at all."""
    write(layout.of(USER).preferences, "---\na: [1\n---\n")
    with pytest.raises(DocumentError) as caught:
        say(layout, "pet", "cat")
    assert "preferences.md:" in str(caught.value.where)
    assert not layout.of(USER).memory_log.exists()


@pytest.mark.parametrize(
    "line",
    [
        '"": x',
        '" ": x',
        "panda:x: y",
        "c#: love it",
        "a#b: 1",
        "Acme Corp#ceo: Bob",
        "1: 2",
        "k: {a: {b: [1]}}",
        "k: 1e400",
        "k: {value: x, confidence: 0}",
        "k: [[1], {a: 2}]",
        'k: "\\ud800"',
        "null: 1",
        "k: 2026-01-01",
    ],
)
@pytest.mark.parametrize("kind", ["preference", "fact"])
def test_odd_lines_settle(layout: Layout, line: str, kind: Kind) -> None:
    """Whatever is typed is taken in once: the log does not grow, the file stays, both stay readable."""
    path = layout.of(USER).preferences if kind == "preference" else layout.of(USER).facts
    write(path, f"---\n{line}\nmine: yes\n---\n")
    take_in(layout)
    assert take_in(layout) == ()
    assert path.read_text(encoding="utf-8") == f"---\n{line}\nmine: yes\n---\n"
    assert "mine" in values(layout)
    say(layout, "mine", "no", kind=kind)
    assert line in path.read_text(encoding="utf-8")
    assert all(one.relation.strip() for one in log_of(layout).assertions)


def test_key_in_both_files(layout: Layout) -> None:
    """A key that is a preference and a fact stays in both files; the preference holds."""
    write(layout.of(USER).preferences, "---\nlocation: Oregon\n---\n")
    write(layout.of(USER).facts, "---\nlocation: Salem\n---\n")
    assert len(take_in(layout)) == 1
    assert take_in(layout) == ()
    say(layout, "location", "Rome")
    assert "Salem" in layout.of(USER).facts.read_text(encoding="utf-8")
    assert log_of(layout).contenders(Subject("local", "user:ann", "location"), now=NOW)[0].value.v == "Rome"


def test_expiry(layout: Layout) -> None:
    """After its end a value is out, without anybody having edited anything; a later value lives."""
    say(layout, "lease", "Main St", until=NOW + timedelta(hours=1))
    assert not known(layout)["lease"].expired
    assert known(layout, LATER)["lease"].confidence(LATER) == 0
    assert take_in(layout) == ()
    assert NodeReader(UserStore(layout.root, USER, later)).load("memory:lease").items[0].confidence == 0
    say(layout, "lease", "Main St")
    assert not known(layout, LATER)["lease"].expired


ODD = """---
# what I like
budget:   $500   # firm
pets: {value: "Syrian",   confidence: 0.5}
brands:
    value:  [Lenovo]   # for now
    confidence: .7

'odd key' : "x"     # quoted
zz:    ~
---

My   notes.
<!-- panda -->
- budget: $500
<!-- panda -->
"""


def test_hundred_sets_leave_the_rest(layout: Layout) -> None:
    """Comments, order and odd spacing of a hand-edited file survive a hundred values set, byte for byte."""
    write(layout.of(USER).preferences, ODD)
    memory = Memory(UserStore(layout.root, USER, clock, 5))
    for number in range(100):
        key = ("new", "other thing", "zz")[number % 3]
        with memory.held():
            statement = Assertion(
                "", "user:ann", key, typed_value(number), "user:ann", 0.95, "local", kind="preference"
            )
            memory.assert_all([statement])
    text = layout.of(USER).preferences.read_text(encoding="utf-8")
    kept = re.sub(r"(?m)^-? ?\"?(new|zz|other thing)\"?: .*\n", "", text)
    assert kept == ODD.replace("zz:    ~\n", "")
    assert values(layout)["new"] == "99"


def test_resolving(layout: Layout, tmp_path: Path) -> None:
    """The winner of a contradiction holds until it is settled; then the chosen value holds and is shown."""
    say(layout, "ceo", "Ada", kind="fact")
    other = tmp_path / "other.jsonl"
    write(other, json.dumps(fact("o1", "Bob", 0.9)) + "\n" + json.dumps(fact("o2", "Cy", 0.8)) + "\n")
    memory = Memory(UserStore(layout.root, USER, clock, 5))
    merge_files(memory, [other])
    found = find_contradictions(log_of(layout), NOW)
    assert [(one.winner.value.v, one.rival.value.v) for one in found] == [
        ("Ada", "Bob"),
        ("Ada", "Cy"),
    ]
    resolve(memory, found[0].conflict_id, NOW, winner="o1")
    (left,) = find_contradictions(log_of(layout), NOW)
    assert (left.winner.value.v, left.rival.value.v) == ("Bob", "Cy")
    assert 'ceo: {value: "Bob"' in layout.of(USER).facts.read_text(encoding="utf-8")
    resolve(memory, "ceo", NOW, value=lambda one: typed_value("Dee"))
    assert find_contradictions(log_of(layout), NOW) == []
    assert values(layout) == {"ceo": "Dee"}
    with pytest.raises(NotFoundError):
        resolve(memory, "ceo", NOW, winner="o1")


def fact(fact_id: str, value: str, confidence: float, *, hlc: str = "1.000", relation: str = "ceo") -> object:
    return {
        "id": fact_id,
        "entity": "user:ann",
        "relation": relation,
        "value": {"type": "string", "v": value},
        "source": "agent:other",
        "confidence": confidence,
        "scope": "local",
        "hlc": hlc,
        "valid_until": None,
    }


def test_merging_both_ways(tmp_path: Path) -> None:
    """Two machines that merge each other's files hold the same, settled contradictions too; twice changes
    nothing."""
    stores = [Layout(tmp_path / name) for name in ("a", "b")]
    for number, layout in enumerate(stores):
        layout.of(USER).home.mkdir(parents=True)
        for key in ("pet", "tea"):
            say(layout, key, f"{key}{number}")
    memory = Memory(UserStore(stores[0].root, USER, later, 5))
    merge_files(memory, files_of(stores[1]))
    resolve(memory, "pet", LATER, value=lambda one: typed_value("fish"))
    merge_files(Memory(UserStore(stores[1].root, USER, clock, 5)), files_of(stores[0]))
    assert values(stores[0]) == values(stores[1])
    assert values(stores[0])["pet"] == "fish"
    shown = [layout.of(USER).preferences.read_text(encoding="utf-8") for layout in stores]
    assert [entry.value for entry in parse_memory_file(shown[0], where="p")] == [
        entry.value for entry in parse_memory_file(shown[1], where="p")
    ]
    before = {path: path.read_bytes() for path in stores[1].of(USER).home.iterdir()}
    assert (
        merge_files(Memory(UserStore(stores[1].root, USER, clock, 5)), files_of(stores[0])).assertions == ()
    )
    assert {path: path.read_bytes() for path in stores[1].of(USER).home.iterdir()} == before


def files_of(layout: Layout) -> list[Path]:
    return [path for path in (layout.of(USER).memory_log, layout.of(USER).conflicts_log) if path.exists()]


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"id": "x"}', '{"conflict_id": "c"}', "null", '"x"', "same", "confidence", "value"]
)
def test_junk_is_refused_whole(layout: Layout, tmp_path: Path, line: str) -> None:
    """A line that is no fact is named, and nothing of its file is written."""
    say(layout, "pet", "cat")
    good = json.dumps(fact("o1", "Bob", 0.9))
    junk = {
        "same": json.dumps(fact("o1", "Eve", 0.9)),
        "confidence": json.dumps(fact("o2", "Eve", 1.1)),
        "value": good.replace('"Bob"', "7").replace("o1", "o3"),
    }.get(line, line)
    path = tmp_path / "junk.jsonl"
    write(path, f"{good}\n\n{junk}\n{json.dumps(fact('o9', 'x', 0.5))}\n")
    before = {one: one.read_bytes() for one in layout.of(USER).home.iterdir()}
    with pytest.raises(FileFormatError) as caught:
        merge_files(Memory(UserStore(layout.root, USER, clock, 5)), [path])
    assert f"{path}:3" in str(caught.value.where)
    assert {one: one.read_bytes() for one in layout.of(USER).home.iterdir()} == before


def test_lint(layout: Layout, tmp_path: Path) -> None:
    """Each kind of thing that needs a look is found, and an orderly memory is silent."""
    say(layout, "pet", "cat")
    assert lint_memory(log_of(layout), USER, NOW, within_days=7) == []
    say(layout, "gone", "x", until=NOW - timedelta(days=1))
    say(layout, "soon", "x", until=NOW + timedelta(days=3))
    ref = {**fact_fields("r1", "friend"), "value": {"type": "ref", "v": "Nobody Known"}}
    lines = [fact("o1", "dog", 0.5, relation="pet"), ref, fact("o2", "old", 0.9, relation="job")]
    record = {"conflict_id": "c9", "fact_a": "o1", "fact_b": "nil", "status": "open", "resolution_fact": None}
    other = tmp_path / "other.jsonl"
    write(other, "".join(json.dumps(one) + "\n" for one in [*lines, record]))
    memory = Memory(UserStore(layout.root, USER, clock, 5))
    merge_files(memory, [other])
    retraction = {**fact_fields("r2", "job"), "confidence": 0, "source": "agent:third", "hlc": "9.000"}
    write(other, json.dumps({**retraction, "value": {"type": "string", "v": "new"}}))
    merge_files(memory, [other])
    found = {(one.rule, one.key) for one in lint_memory(log_of(layout), USER, NOW, within_days=7)}
    assert found == {
        ("contradiction", "pet"),
        ("expired", "gone"),
        ("expiring", "soon"),
        ("dangling", "friend"),
        ("dangling", "c9"),
        ("orphaned", "job"),
    }


def fact_fields(fact_id: str, relation: str) -> dict[str, object]:
    found = fact(fact_id, "x", 0.9, relation=relation)
    assert isinstance(found, dict)
    return found


def assert_many(root: Path, name: str, count: int) -> None:
    memory = Memory(UserStore(root, USER, clock, 60))
    for number in range(count):
        statement = Assertion(
            "", "user:ann", f"{name}{number}", typed_value(number), "user:ann", 0.9, "local", kind="fact"
        )
        with memory.held():
            memory.assert_all([statement])


def test_two_processes(layout: Layout) -> None:
    """Two processes that assert at once lose nothing: readings rise strictly, the files show all of it."""
    spawn = get_context("spawn")
    processes = [spawn.Process(target=assert_many, args=(layout.root, name, 30)) for name in ("a", "b")]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    readings = [parse_hlc(one.hlc) for one in log_of(layout).assertions]
    assert (len(readings), readings) == (60, sorted(set(readings)))
    assert len(parse_memory_file(layout.of(USER).facts.read_text(encoding="utf-8"), where="f")) == 60


@pytest.mark.parametrize("step", [0, -1, 1000])
def test_readings_rise_whatever_the_clock_does(layout: Layout, step: int) -> None:
    """A clock that stands, goes back or jumps gives rising readings; past 999 the millisecond moves on."""
    now = [NOW]
    memory = Memory(UserStore(layout.root, USER, lambda: now[0], 5))
    with memory.held():
        for start in range(0, 1100, 550):
            statements = [
                Assertion("", "user:ann", f"k{n}", typed_value(n), "user:ann", 0.9, "team", kind="fact")
                for n in range(start, start + 550)
            ]
            memory.assert_all(statements)
            now[0] += timedelta(milliseconds=step)
    readings = [str(one.hlc) for one in log_of(layout).assertions]
    assert [parse_hlc(one) for one in readings] == sorted({parse_hlc(one) for one in readings})
    assert all(len(one.partition(".")[2]) == 3 for one in readings)


def test_file_that_can_only_be_read_whole() -> None:
    """Entries are removed and set where the front matter can only be read as a whole, too."""
    file = MemoryText("---\na: 1\nb:\n- x\n- y\nc: 3\na: 2\n---\n", title="T", where="f")
    file.remove("b")
    file.set("c", 4, confidence=0.5, source_turn=None, updated_at=NOW)
    entries = parse_memory_file(file.text, where="f")
    assert [(entry.key, entry.value) for entry in entries] == [("a", 2), ("c", 4)]


def test_a_file_without_front_matter_gets_one() -> None:
    """It stands behind the mark that some editors put first; all else in the file stays."""
    file = MemoryText("\ufeff<!-- panda -->\n- tea: black\n<!-- panda -->\nNotes", title="T", where="f")
    file.set("pet", "cat", confidence=0.5, source_turn=3, updated_at=NOW)
    head, entry, *below = file.text.split("\n")
    assert (head, entry.partition(",")[0]) == ("\ufeff---", 'pet: {value: "cat"')
    marker = "<!-- panda -->"
    assert below == ["---", marker, "- tea: black", "- pet: cat (turn 3)", marker, "Notes"]
