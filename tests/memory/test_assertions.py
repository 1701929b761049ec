"""Staged values, the log and the memory files."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panda.documents.memory_file import MemoryText, parse_memory_file
from panda.documents.times import Clock
from panda.errors import DocumentError, FileFormatError, LockHeldError, UsageError
from panda.memory.log import MemoryLog
from panda.memory.memory import Plain, apply_staged, stage_value
from panda.store.files import held_lock
from panda.store.layout import Layout, UserStore
from panda.store.records import Staged, StagedMemory, check_json, parse
from tests.stores import NOW

HAND_MADE = """---
# what I like
budget:   $500   # firm
brands:
    value:  [Lenovo]   # for now
    confidence: .7

pets: {value: "Syrian",   confidence: 0.5}
---

My notes.

<!-- panda -->
- budget: $500
* pets: Syrian
<!-- panda -->
The end.
"""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


def clock() -> datetime:
    return NOW


def staged(
    relation: str = "budget", value: Plain = "$900", turn: int = 812, kind: str = "preference"
) -> Staged:
    return stage_value(
        user="ann",
        kind="preference" if kind == "preference" else "fact",
        relation=relation,
        value=value,
        text=f"my {relation} is {value}",
        source_turn=turn,
    )


def set_entry(text: str, key: str, value: object, turn: int | None = 1) -> str:
    """The text of a memory file with one key set."""
    file = MemoryText(text, title="T", where="f")
    file.set(key, value, confidence=0.9, source_turn=turn, updated_at=NOW)
    return file.text


def apply(layout: Layout, *values: Staged, at: Clock = clock) -> int:
    return len(apply_staged(UserStore(layout.root, "ann", at, 5), values))


def read_log(layout: Layout) -> MemoryLog:
    log = MemoryLog(layout.of("ann"))
    log.refresh()
    return log


def test_first_value_makes_the_files(layout: Layout) -> None:
    """A value of a new user makes log and file, both as their formats say."""
    assert apply(layout, staged()) == 1
    line = json.loads(layout.of("ann").memory_log.read_text(encoding="utf-8"))
    check_json("memory.jsonl", line, "memory.jsonl")
    assert (line["entity"], line["relation"], line["value"]["v"]) == ("user:ann", "budget", "$900")
    assert (line["confidence"], line["source"]) == (0.95, "turn:812")
    entry = parse_memory_file(layout.of("ann").preferences.read_text(encoding="utf-8"), where="p")[0]
    assert (entry.text, entry.confidence, entry.source_turn, entry.updated_at) == ("$900", 0.95, 812, NOW)


def test_twice_changes_nothing(layout: Layout) -> None:
    """Applying the same staged values again leaves every file as it is."""
    values = [staged(), staged("owns_bike", True, kind="fact")]
    apply(layout, *values)
    before = {path: path.read_bytes() for path in layout.of("ann").home.iterdir()}
    assert apply(layout, *values, at=lambda: NOW + timedelta(days=1)) == 0
    assert {path: path.read_bytes() for path in layout.of("ann").home.iterdir()} == before


def test_other_value_retracts_the_earlier_one(layout: Layout) -> None:
    """A changed mind appends a retraction and then the new value, at later clock readings."""
    apply(layout, staged(value="$500", turn=1))
    assert apply(layout, staged(value="$900", turn=2)) == 2
    log = read_log(layout).assertions
    assert [(one.value.v, one.confidence) for one in log] == [("$500", 0.95), ("$500", 0.0), ("$900", 0.95)]
    readings = [str(one.hlc) for one in log]
    assert readings == sorted(readings)
    assert len({one.id for one in log}) == 3


def test_old_turn_does_not_come_back(layout: Layout) -> None:
    """Re-applying a turn that was superseded changes nothing."""
    apply(layout, staged(value="$500", turn=1))
    apply(layout, staged(value="$900", turn=2))
    assert apply(layout, staged(value="$500", turn=1)) == 0
    assert "$900" in layout.of("ann").preferences.read_text(encoding="utf-8")


def test_crash_between_log_and_file_is_made_good(layout: Layout) -> None:
    """If the file still shows the former value, the second run writes it without a second log line."""
    apply(layout, staged(value="$500", turn=1))
    former = {
        path: path.read_bytes() for path in (layout.of("ann").preferences, layout.of("ann").memory_shown)
    }
    apply(layout, staged(value="$900", turn=2))
    after = layout.of("ann").preferences.read_bytes()
    for path, content in former.items():
        path.write_bytes(content)
    assert apply(layout, staged(value="$900", turn=2)) == 0
    assert layout.of("ann").preferences.read_bytes() == after


def test_hand_made_file_keeps_all_other_lines(layout: Layout) -> None:
    """Only the entry and its readable line differ; comments, order and odd spacing stay."""
    layout.of("ann").preferences.parent.mkdir(parents=True)
    layout.of("ann").preferences.write_text(HAND_MADE, encoding="utf-8")
    apply(layout, staged("budget", "$900"), staged("brands", ("ASUS", "HP")), staged("pets", "cat"))
    text = layout.of("ann").preferences.read_text(encoding="utf-8")
    fields = 'confidence: 0.95, source_turn: 812, updated_at: "2026-01-04T14:30:00Z"}'
    expected = HAND_MADE.replace("budget:   $500   # firm", f'budget:   {{value: "$900", {fields}   # firm')
    expected = expected.replace(
        "value:  [Lenovo]   # for now\n    confidence: .7\n",
        'value:  ["ASUS", "HP"]   # for now\n    confidence: 0.95\n    source_turn: 812\n'
        '    updated_at: "2026-01-04T14:30:00Z"\n',
    )
    expected = expected.replace('{value: "Syrian",   confidence: 0.5}', f'{{value: "cat",   {fields}')
    expected = expected.replace("- budget: $500\n", "- budget: $900 (turn 812)\n")
    expected = expected.replace("* pets: Syrian\n", "- pets: cat (turn 812)\n- brands: ASUS, HP (turn 812)\n")
    assert sorted(text.split("\n")) == sorted(expected.split("\n"))
    assert text == expected


def test_windows_line_ends_stay(layout: Layout) -> None:
    """A file with CRLF gets CRLF lines."""
    text = "---\r\na: 1\r\n---\r\nhello\r\n<!-- panda -->\r\n<!-- panda -->\r\n"
    changed = set_entry(text, "b", "x")
    assert "\n" not in changed.replace("\r\n", "")
    assert "- b: x (turn 1)\r\n<!-- panda -->" in changed


def test_text_without_front_matter_gets_one(layout: Layout) -> None:
    """Notes without front matter are kept below a new one."""
    changed = set_entry("notes\n", "b", None, None)
    assert changed.endswith("---\nnotes\n")
    assert parse_memory_file(changed, where="f")[0].value is None


@pytest.mark.parametrize("entry", ["b: &x 1\nc: *x", "b: *y", "{b: 1}", "b: [1"])
def test_unsafe_front_matter_is_refused(entry: str) -> None:
    """Where one entry cannot be changed alone, the file is left as it is."""
    with pytest.raises(DocumentError):
        set_entry(f"---\n{entry}\n---\n", "b" if "b" in entry and not entry.startswith("{") else "new", "x")


def test_a_value_in_braces_is_not_removed_alone() -> None:
    """What would leave a broken front matter is refused."""
    file = MemoryText("---\n{a: 1}\n---\n", title="T", where="f")
    file.remove("a")
    with pytest.raises(DocumentError, match="cannot be changed without changing more"):
        _ = file.text


VALUES: st.SearchStrategy[Plain] = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: bool(text.strip())),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.none(),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["budget", "brands", "pets", "x y", "null"]), VALUES), max_size=5))
def test_any_values_read_back(changes: list[tuple[str, Plain]]) -> None:
    """Whatever is set reads back equal, and text outside the front matter and the list stays."""
    text = HAND_MADE
    for key, value in changes:
        plain = list(value) if isinstance(value, tuple) else value
        text = set_entry(text, key, plain)
        entries = {entry.key: entry.value for entry in parse_memory_file(text, where="f")}
        assert entries[key] == plain
    assert "# what I like" in text
    assert text.endswith("The end.\n")


def test_corrupt_log_is_named(layout: Layout) -> None:
    """A broken line of the log is an error with its place, and no file is touched."""
    layout.of("ann").memory_log.parent.mkdir(parents=True)
    layout.of("ann").memory_log.write_text("{}\n", encoding="utf-8")
    with pytest.raises(FileFormatError) as caught:
        apply(layout, staged())
    assert str(caught.value.where).endswith("memory.jsonl:1 (id)")
    assert not layout.of("ann").preferences.exists()


def test_lock_is_respected(layout: Layout) -> None:
    """While somebody else holds the user's memory nothing is written."""
    with held_lock(layout.of("ann").memory_lock, holder="test", wait_seconds=0), pytest.raises(LockHeldError):
        apply_staged(UserStore(layout.root, "ann", clock, 0), [staged()])
    assert not layout.of("ann").memory_log.exists()


@pytest.mark.parametrize(("relation", "value"), [(" ", "x"), ("budget", "  "), ("panda:x", "y")])
def test_blank_values_are_refused(relation: str, value: str) -> None:
    """A memory needs a key and a value."""
    with pytest.raises(UsageError):
        staged(relation, value)


def test_staged_values_survive_their_file() -> None:
    """A staged value written as JSON reads back equal and satisfies its schema."""
    for value in values():
        memory = StagedMemory(staged=(staged(value=value),), applied=False)
        assert parse(StagedMemory, json.dumps(memory.to_json()), where="staged_memory.json") == memory


def values() -> Iterator[Plain]:
    yield from ("text", True, 3, 2.5, None, ("a", "b"))
