"""The log and the memory files together: edits by hand, crashes, expiry, settling, several processes."""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api import Ended, Panda, tree
from tests.store_files import write_json

TOMORROW = "2026-01-05T14:30:00Z"


class Ann:
    """User ann's memory in a store of its own."""

    def __init__(self, home: Path) -> None:
        self.panda = Panda(home, user="ann")
        self.home = self.panda.user_directory
        self.home.mkdir(parents=True)
        self.preferences, self.facts = self.home / "preferences.md", self.home / "facts.md"
        self.log = self.home / "memory.jsonl"

    def __call__(self, *words: str, stdin: str = "", **environ: str) -> Ended:
        """Run `panda memory ...`, which succeeds."""
        ended = self.panda("memory", *words, stdin=stdin, **environ)
        assert ended.code == 0, ended.err
        return ended

    def listed(self, **environ: str) -> dict[str, dict[str, Any]]:
        """Return what `panda memory list` tells of each key; edits by hand are taken in by it."""
        ended = self("list", "--json", **environ)
        return {entry["key"]: entry for entry in ended.data["memory"]}

    def values(self) -> dict[str, Any]:
        return {key: entry["value"] for key, entry in self.listed().items()}

    def assertions(self) -> list[tuple[str, Any, float]]:
        """Return key, value and confidence of each line of the log."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        facts = [json.loads(line) for line in lines]
        return [(fact["relation"], fact["value"].get("v"), fact["confidence"]) for fact in facts]

    def files(self) -> dict[str, bytes]:
        return {name: content for name, content in tree(self.home).items() if name != "memory.lock"}


@pytest.fixture
def ann(tmp_path: Path) -> Ann:  # another one than the scripted turns need
    """Ann's memory, empty."""
    return Ann(tmp_path / "project")


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="")


def test_the_first_value_makes_log_and_file(tmp_path: Path) -> None:
    """All that a turn is told stands in both, with confidence and source; another value takes it back."""
    panda = Panda(tmp_path / "project")
    assert panda("init").code == 0
    assert panda.turn("Remember that my budget is $900.").code == 0
    entry = yaml.safe_load((panda.user_directory / "preferences.md").read_text().split("---")[1])["budget"]
    assert (entry["value"], entry["confidence"], entry["source_turn"]) == ("$900", 0.95, 1)
    assert panda.turn("My budget is $700 now.").code == 0
    facts = [json.loads(line) for line in (panda.user_directory / "memory.jsonl").read_text().splitlines()]
    budgets = [fact for fact in facts if fact["relation"] == "budget"]
    held = [(fact["value"]["v"], fact["confidence"], fact["source"]) for fact in budgets]
    assert held == [("$900", 0.95, "turn:1"), ("$900", 0.0, "turn:2"), ("$700", 0.95, "turn:2")]
    assert [fact["hlc"] for fact in facts] == sorted(fact["hlc"] for fact in facts)
    assert len({fact["id"] for fact in facts}) == len(facts)
    assert panda.problems() == []


def test_saving_a_turn_again_remembers_nothing_twice(tmp_path: Path) -> None:
    """A turn that was killed before its last write is saved again: log and files stay as they are."""
    panda = Panda(tmp_path / "project")
    assert panda("init").code == 0
    assert panda.turn("Remember that my budget is $900.").code == 0
    log, preferences = (panda.user_directory / name for name in ("memory.jsonl", "preferences.md"))
    before = [log.read_bytes(), preferences.read_bytes()]
    staged = panda.turn_file(1, "staged_memory.json")
    metadata = panda.turn_file(1, "metadata.json")
    write_json(staged, {**json.loads(staged.read_text()), "applied": False})
    following = {"phase": 7, "round": 0, "attempt": 0}
    unsaved = {"status": "running", "next": following, "seal": None, "saved_at": None, "answered": None}
    write_json(metadata, {**json.loads(metadata.read_text()), **unsaved})
    for path in (panda.user_directory / "sessions").rglob("session.json"):
        path.unlink()
    assert panda("turn", "--resume", "1", PANDA_NOW=TOMORROW).code == 0
    assert json.loads(staged.read_text())["applied"]
    assert [log.read_bytes(), preferences.read_bytes()] == before


def test_a_value_typed_over_an_entry(ann: Ann) -> None:
    """Typed over inside an entry of panda's, date, turn, confidence and list line follow the new value."""
    ann("set", "budget", "$500")
    write(ann.preferences, ann.preferences.read_text().replace('{value: "$500",', "{value:  $900,"))
    entry = ann.listed(PANDA_NOW=TOMORROW)["budget"]
    assert (entry["value"], entry["confidence"], entry["source"]) == ("$900", 0.5, "file:preferences.md")
    assert ann.assertions()[1:] == [("budget", "$500", 0), ("budget", "$900", 0.5)]
    text = ann.preferences.read_text(encoding="utf-8")
    assert f'{{value:  $900, confidence: 0.5, source_turn: null, updated_at: "{TOMORROW}"}}' in text
    assert "- budget: $900\n" in text


def test_a_foreign_entry_keeps_what_stands_beside_it(ann: Ann) -> None:
    """An entry that the log never had keeps its own confidence and date, and is not rewritten."""
    text = "---\npet: {value: cat, confidence: 0.25, updated_at: 2025-06-01}\nold: {value: x}\n---\n"
    write(ann.preferences, text)
    listed = ann.listed(PANDA_NOW=TOMORROW)
    assert (listed["pet"]["confidence"], listed["pet"]["updated_at"]) == (0.25, "2025-06-01T00:00:00Z")
    assert listed["old"]["confidence"] == 0.5
    assert ann.preferences.read_text(encoding="utf-8") == text


def test_a_deleted_key_is_retracted(ann: Ann) -> None:
    """A key deleted by hand is gone at once; its line in the list goes, too."""
    ann("set", "pet", "cat")
    ann("set", "tea", "Assam")
    lines = ann.preferences.read_text(encoding="utf-8").splitlines(keepends=True)
    write(ann.preferences, "".join(line for line in lines if not line.startswith("pet:")))
    for _ in range(2):
        assert ann.values() == {"tea": "Assam"}
    assert ann.assertions()[2:] == [("pet", "cat", 0)]
    assert "cat" not in ann.preferences.read_text(encoding="utf-8")


def test_a_missing_file_is_made_again(ann: Ann) -> None:
    """A file that is gone is no deletion of all that it held."""
    ann("set", "pet", "cat")
    ann.preferences.unlink()
    assert ann.values() == {"pet": "cat"}
    assert "pet: cat" in ann.preferences.read_text(encoding="utf-8")


def test_a_hand_edit_is_the_latest_word(ann: Ann) -> None:
    """A former value that is typed back by hand is an edit, not a leftover."""
    ann("set", "pet", "cat")
    former = ann.preferences.read_bytes()
    ann("set", "pet", "dog")
    ann.preferences.write_bytes(former)
    entry = ann.listed()["pet"]
    assert (entry["value"], entry["source"]) == ("cat", "file:preferences.md")


@pytest.mark.parametrize("mark", ["former", "torn"])
def test_a_crash_between_log_and_file(ann: Ann, mark: str) -> None:
    """If a write was cut short after the log, the files follow it; nothing counts as an edit by hand."""
    ann("set", "pet", "cat")
    ann("set", "tea", "Assam")
    mark_file = ann.home / "memory.shown.json"
    former = ann.preferences.read_bytes()
    former_mark = mark_file.read_bytes()
    ann("set", "pet", "dog")
    ann("set", "city", "Salem")
    ann("retract", "tea")
    shown_preferences = ann.preferences.read_bytes()
    count = len(ann.assertions())
    ann.preferences.write_bytes(former)
    mark_file.write_bytes(former_mark if mark == "former" else b'{"asser')
    for _ in range(2):
        assert ann.values() == {"pet": "dog", "city": "Salem"}
    assert len(ann.assertions()) == count
    assert ann.preferences.read_bytes() == shown_preferences


def test_what_cannot_be_read_or_had_stops_before_the_log(ann: Ann) -> None:
    """A broken memory file, a broken log and a lock of another process: an error, and nothing is written."""
    write(ann.preferences, "---\na: [1\n---\n")
    ended = ann.panda("memory", "set", "pet", "cat")
    assert (ended.code, f"where: {ann.preferences}:" in ended.err) == (2, True)
    assert not ann.log.exists()
    ann.preferences.unlink()
    with ann.panda.lock("users/ann/memory.lock"):
        assert ann.panda("memory", "set", "pet", "cat").code == 75
    assert not ann.log.exists()
    write(ann.log, "{}\n")
    ended = ann.panda("memory", "set", "pet", "cat")
    assert (ended.code, f"where: {ann.log}:1 (id)" in ended.err) == (2, True)
    assert not ann.preferences.exists()


ODD_LINES = (
    '"": x', '" ": x', "panda:x: y", "c#: love it", "a#b: 1", "Acme Corp#ceo: Bob", "1: 2", "k: 1e400",
    "k: {a: {b: [1]}}", "k: {value: x, confidence: 0}", "k: [[1], {a: 2}]", 'k: "\\ud800"', "null: 1",
    "k: 2026-01-01",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["preference", "fact"])
def test_odd_lines_settle(tmp_path: Path, kind: str) -> None:
    """Whatever is typed is taken in once: the log does not grow, the file stays, both stay readable."""
    for number, line in enumerate(ODD_LINES):
        ann = Ann(tmp_path / str(number))
        path = ann.preferences if kind == "preference" else ann.facts
        text = f"---\n{line}\nmine: yes\n---\n"
        write(path, text)
        ann.listed()
        taken_in = ann.assertions()
        assert "mine" in ann.listed()
        assert ann.assertions() == taken_in, line
        assert path.read_text(encoding="utf-8") == text
        ann("set", "mine", "no", "--kind", kind)
        assert line in path.read_text(encoding="utf-8")
        assert all(relation.strip() for relation, _, _ in ann.assertions())


def test_a_key_in_both_files(ann: Ann) -> None:
    """A key that is a preference and a fact stays in both files; the preference holds."""
    write(ann.preferences, "---\nlocation: Oregon\n---\n")
    write(ann.facts, "---\nlocation: Salem\n---\n")
    for _ in range(2):
        ann.listed()
        assert len(ann.assertions()) == 1
    ann("set", "location", "Rome")
    assert "Salem" in ann.facts.read_text(encoding="utf-8")
    assert ann("get", "location").out == "Rome\n"


def test_expiry(ann: Ann) -> None:
    """After its end a value is out unless it is asked for, without anybody's edit; a later value lives."""
    ann("set", "lease", "Main St", "--valid-until", "2026-01-04T15:30:00Z")
    assert not ann.listed()["lease"]["expired"]
    later = ann.listed(PANDA_NOW=TOMORROW)["lease"]
    assert (later["expired"], later["confidence"]) == (True, 0)
    assert len(ann.assertions()) == 1
    for words, count in (((), 0), (("--include-expired",), 1)):
        data = ann.panda.json("synthesize", "--scope", "local", *words, PANDA_NOW=TOMORROW)
        assert len(data["summary"]) == count
    ann("set", "lease", "Main St", PANDA_NOW=TOMORROW)
    assert not ann.listed(PANDA_NOW=TOMORROW)["lease"]["expired"]


HAND_MADE = """---
# what I like
budget:   $500   # firm
brands:
    value:  [Lenovo]   # for now
    confidence: .7

pets: {value: "Syrian",   confidence: 0.5}
'odd key' : "x"     # quoted
zz:    ~
---

My   notes.

<!-- panda -->
- budget: $500
* pets: Syrian
<!-- panda -->
The end.
"""


def test_a_hand_made_file_keeps_all_other_lines(ann: Ann) -> None:
    """Only entries and their readable lines differ; comments, order and odd spacing stay."""
    write(ann.preferences, HAND_MADE)
    ann("set", "budget", "$900")
    ann("set", "brands", "ASUS", "HP")
    ann("set", "pets", "cat")
    date = 'updated_at: "2026-01-04T14:30:00Z"'
    changes = {
        "$500   # firm": f'{{value: "$900", confidence: 0.95, source_turn: null, {date}}}   # firm',
        "[Lenovo]": '["ASUS", "HP"]',
        ".7\n": f"0.95\n    {date}\n",
        '"Syrian",   confidence: 0.5': f'"cat",   confidence: 0.95, {date}',
        "- budget: $500": "- budget: $900",
        "* pets: Syrian\n": "- pets: cat\n- brands: ASUS, HP\n",
    }
    expected = HAND_MADE
    for before, after in changes.items():
        expected = expected.replace(before, after)
    assert ann.preferences.read_text(encoding="utf-8") == expected


def test_a_hundred_sets_leave_the_rest(ann: Ann) -> None:
    """Comments, order and odd spacing of a hand-edited file survive a hundred values set, byte for byte."""
    write(ann.preferences, HAND_MADE)
    ann.listed()
    before = ann.preferences.read_text(encoding="utf-8")
    keys = ("new", "other thing", "zz")
    lines = [json.dumps({"key": keys[n % 3], "value": n, "kind": "preference"}) for n in range(100)]
    ann("set", "-", stdin="\n".join(lines))
    text = ann.preferences.read_text(encoding="utf-8")
    changed = re.compile(r"(?m)^(- )?\"?(new|zz|other thing)\"?: .*\n")
    assert changed.sub("", text) == changed.sub("", before)
    assert ann.values()["new"] == 99


VALUES = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: bool(text.strip())),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1),
)
KEYS = st.sampled_from(["budget", "brands", "pets", "x y", "null"])


@settings(max_examples=20)
@given(st.dictionaries(KEYS, VALUES, min_size=1))
def test_any_values_read_back(changes: dict[str, Any]) -> None:
    """Whatever is set reads back equal, and text outside the front matter and the list stays."""
    with TemporaryDirectory() as place:
        ann = Ann(Path(place) / "project")
        write(ann.preferences, HAND_MADE)
        lines = [json.dumps({"key": key, "value": changes[key], "kind": "preference"}) for key in changes]
        ann("set", "-", stdin="\n".join(lines))
        text = ann.preferences.read_text(encoding="utf-8")
        listed = ann.values()
        assert {key: listed[key] for key in changes} == changes
        front = yaml.safe_load(text.split("\n---\n")[0])
        assert {key: front[key]["value"] for key in front if key in changes} == changes
        assert "# what I like" in text
        assert text.endswith("The end.\n")


ENTRY = 'pet: {value: "cat", confidence: 0.95, source_turn: null, updated_at: "2026-01-04T14:30:00Z"}'
MARK = "<!-- panda -->"


@pytest.mark.parametrize(
    ("before", "words", "after"),
    [
        ("notes\n", "set pet cat", f"---\n{ENTRY}\n---\nnotes\n"),
        (
            f"\ufeff{MARK}\n- tea: black\n{MARK}\nNotes",
            "set pet cat",
            f"\ufeff---\n{ENTRY}\n---\n{MARK}\n- tea: black\n- pet: cat\n{MARK}\nNotes",
        ),
        (
            f"---\r\na: 1\r\n---\r\nhello\r\n{MARK}\r\n{MARK}\r\n",
            "set pet cat",
            f"---\r\na: 1\r\n{ENTRY}\r\n---\r\nhello\r\n{MARK}\r\n- pet: cat\r\n{MARK}\r\n",
        ),
        ("---\na: 1\nb:\n- x\n- y\nc: 3\na: 2\n---\n", "retract b", "---\na: 1\nc: 3\na: 2\n---\n"),
        ("---\n{a: 1}\n---\n", "set pet cat", None),
        ("---\n{a: 1}\n---\n", "retract a", None),
        ("---\npet: &x 1\nc: *x\n---\n", "set pet cat", None),
        ("---\npet: *y\n---\n", "set pet cat", None),
        ("---\npet: [1\n---\n", "set pet cat", None),
    ],
)
def test_forms_of_files(ann: Ann, before: str, words: str, after: str | None) -> None:
    """One entry changes and no other line; where it cannot be changed alone, the file stays."""
    write(ann.preferences, before)
    ended = ann.panda("memory", *words.split())
    assert (ended.code, str(ann.preferences) in ended.err) == ((0, False) if after else (2, True)), ended.err
    with ann.preferences.open(encoding="utf-8", newline="") as file:
        assert file.read() == (before if after is None else after)


def fact(fact_id: str, text: str, confidence: float, **changes: Any) -> dict[str, Any]:
    return {
        "id": fact_id,
        "entity": "user:ann",
        "relation": "ceo",
        "value": {"type": "string", "v": text},
        "source": "agent:other",
        "confidence": confidence,
        "scope": "local",
        "hlc": "1.000",
        "valid_until": None,
        **changes,
    }


def conflicts(ann: Ann) -> list[str]:
    return ann("conflicts").rows


def test_resolving(ann: Ann) -> None:
    """The winner of a contradiction holds until it is settled; then the chosen value holds and is shown."""
    ann("set", "ceo", "Ada", "--kind", "fact")
    ann.panda.write_lines("other.jsonl", fact("o1", "Bob", 0.9), fact("o2", "Cy", 0.8))
    ann("merge", "other.jsonl")
    rivals = [("Ada" in row, "Bob" in row, "Cy" in row) for row in conflicts(ann)]
    assert rivals == [(True, True, False), (True, False, True)]
    ann("resolve", conflicts(ann)[0].split("\t")[0], "--winner", "o1")
    (left,) = conflicts(ann)
    assert ("Bob" in left, "Cy" in left, "Ada" in left) == (True, True, False)
    assert 'ceo: {value: "Bob"' in ann.facts.read_text(encoding="utf-8")
    ann("resolve", "ceo", "--value", "Dee")
    assert (conflicts(ann), ann.values()) == ([], {"ceo": "Dee"})
    assert ann.panda("memory", "resolve", "ceo", "--winner", "o1").code == 2


def test_merging_both_ways(tmp_path: Path) -> None:
    """Two machines that merge each other's files hold the same, also what was settled; twice changes
    nothing."""
    first, second = (Ann(tmp_path / name) for name in ("a", "b"))
    for number, machine in enumerate((first, second)):
        for key in ("pet", "tea"):
            machine("set", key, f"{key}{number}")
    first("merge", *memory_files(second), PANDA_NOW=TOMORROW)
    first("resolve", "pet", "--value", "fish", PANDA_NOW=TOMORROW)
    second("merge", *memory_files(first))
    assert first.values() == second.values()
    assert first.values()["pet"] == "fish"
    front = [machine.preferences.read_text(encoding="utf-8").split("---")[1] for machine in (first, second)]
    assert yaml.safe_load(front[0]) == yaml.safe_load(front[1])
    before = second.files()
    second("merge", *memory_files(first))
    assert second.files() == before


def memory_files(ann: Ann) -> list[str]:
    return [str(path) for path in (ann.log, ann.home / "conflicts.jsonl") if path.exists()]


@pytest.mark.parametrize(
    "line",
    [
        *("{", "[]", '{"id": "x"}', '{"conflict_id": "c"}', "null", '"x"'),
        json.dumps(fact("o1", "Eve", 0.9)),
        json.dumps(fact("o2", "Eve", 1.1)),
        json.dumps(fact("o3", "x", 0.9, value={"type": "string", "v": 7})),
    ],
)
def test_junk_is_refused_whole(ann: Ann, line: str) -> None:
    """A line that is no fact is named, and nothing of its file is written."""
    ann("set", "pet", "cat")
    lines = [json.dumps(fact("o1", "Bob", 0.9)), "", line, json.dumps(fact("o9", "x", 0.5))]
    path = ann.panda.write("junk.jsonl", "\n".join(lines))
    before = ann.files()
    ended = ann.panda("memory", "merge", str(path))
    assert (ended.code, f"{path}:3" in ended.err) == (2, True), ended.err
    assert ann.files() == before


def test_lint(ann: Ann) -> None:
    """Each kind of thing that needs a look is found, and an orderly memory is silent."""
    ann("set", "pet", "cat")
    assert ann("lint").rows == []
    ann("set", "gone", "x", "--valid-until", "2026-01-03")
    ann("set", "soon", "x", "--valid-until", "2026-01-07")
    reference = fact("r1", "x", 0.9, relation="friend", value={"type": "ref", "v": "Nobody Known"})
    record = {"conflict_id": "c9", "fact_a": "o1", "fact_b": "nil", "status": "open", "resolution_fact": None}
    others = (fact("o1", "dog", 0.5, relation="pet"), fact("o2", "old", 0.9, relation="job"))
    ann.panda.write_lines("other.jsonl", *others, reference, record)
    ann("merge", "other.jsonl")
    ann.panda.write_lines(
        "other.jsonl", fact("r2", "new", 0, relation="job", source="agent:third", hlc="9.000")
    )
    ann("merge", "other.jsonl")
    ended = ann.panda("memory", "lint", "--within", "7")
    assert (ended.code, {tuple(row.split("\t")[:3:2]) for row in ended.rows}) == (
        3,
        {
            ("contradiction", "pet"),
            ("expired", "gone"),
            ("expiring", "soon"),
            ("dangling", "friend"),
            ("dangling", "c9"),
            ("orphaned", "job"),
        },
    )


def test_processes_that_write_at_once(ann: Ann) -> None:
    """Nothing is lost: readings of the clock rise strictly, the file shows all of it."""
    processes = [
        ann.panda.start("memory", "set", f"k{n}", str(n), "--kind", "fact", "--wait", "60") for n in range(3)
    ]
    for process in processes:
        with process:
            assert (process.communicate()[1], process.returncode) == ("remembered: 1\n", 0)
    readings = readings_of(ann)
    assert (len(readings), readings) == (3, sorted(set(readings)))
    assert len(ann.values()) == 3
    assert ann.facts.read_text(encoding="utf-8").count("\n- k") == 3


def readings_of(ann: Ann) -> list[tuple[int, int]]:
    """Return milliseconds and count of the clock of each line of the log."""
    readings = [json.loads(line)["hlc"] for line in ann.log.read_text(encoding="utf-8").splitlines()]
    assert all(re.fullmatch(r"\d+\.\d{3}", reading) for reading in readings)
    pairs = (reading.split(".") for reading in readings)
    return [(int(milliseconds), int(count)) for milliseconds, count in pairs]


@pytest.mark.parametrize("then", ["2026-01-04T14:30:00Z", "2026-01-04T14:29:59Z", TOMORROW])
def test_readings_rise_whatever_the_clock_does(ann: Ann, then: str) -> None:
    """A clock that stands, goes back or jumps gives rising readings; past 999 the millisecond moves on."""
    ann("set", "-", stdin="\n".join(json.dumps({"key": f"k{n}", "value": n}) for n in range(3)))
    write(ann.log, ann.log.read_text(encoding="utf-8").replace('.002"', '.998"'))
    for key in ("tea", "cup", "desk"):
        ann("set", key, "x", PANDA_NOW=then)
    readings = readings_of(ann)
    assert (len(readings), readings) == (6, sorted(set(readings)))
