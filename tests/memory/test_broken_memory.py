"""Memory files that cannot be read halt a turn with an intervention that says where and what to do."""

import json
from pathlib import Path

import pytest

from tests.api import LAPTOPS, Panda

_TYPED_WRONG = b"""{"id": "f1", "entity": "user:ann", "relation": "pet", "source": null, "confidence": "high",
"value": {"type": "string", "v": "cat"}, "scope": "local"}""".replace(b"\n", b" ")
BROKEN: dict[str, tuple[str, bytes, str]] = {
    "no YAML": ("preferences.md", b"---\nbudget: 5\n  x: [\n---\n", ":3"),
    "a list": ("facts.md", b"---\n- budget\n---\n", ":2"),
    "not closed": ("facts.md", b"---\nbudget: 5\n", ":1"),
    "not UTF-8": ("preferences.md", b"Tea\n\xff\n", ":2"),
    "too large": ("facts.md", b"#" * 5_000_001, ""),
    "a foreign line": ("memory.jsonl", b'{"pet": "cat"}\n', ":1 (pet)"),
    "a torn line": ("memory.jsonl", b'{"id": "fact-1", "ent\n', ":1"),
    "a wrong type": ("memory.jsonl", _TYPED_WRONG, ":1 (confidence)"),
}


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with ann's store, and her memory files put away."""
    project = Panda(tmp_path / "home", LAPTOPS, user="ann")
    for path in (project.store / "users" / "ann").iterdir():
        if path.is_file() and path.name != "turn_counter":
            path.unlink()
    return project


def test_what_cannot_be_read_halts_the_turn(panda: Panda) -> None:
    """Exit 20, with file and line and a fix, in an intervention too; `validate` finds the same place."""
    for name, (file, content, place) in BROKEN.items():
        path = panda.write(f"store/users/ann/{file}", content)
        ended = panda.turn("Where is the tea?")
        assert (ended.code, ended.error["where"]) == (20, f"{path}{place}"), (name, ended.out)
        assert ended.error["fix"], name
        text = (panda.store / "interventions" / f"{ended.data['intervention']}.json").read_text("utf-8")
        written = json.loads(text)
        assert (written["type"], written["where"]) == ("memory_error", f"{path}{place}"), name
        assert written["what_to_do"] == ended.error["fix"]
        assert any(str(path) in problem for problem in panda.problems()), name
        assert panda("validate", str(ended.data["turn"]), "--strict").code == 3, name
        path.unlink()


def test_a_directory_in_its_place_halts_the_turn(panda: Panda) -> None:
    """A directory in the place of a memory file is reported as such."""
    path = panda.store / "users" / "ann" / "facts.md"
    path.mkdir()
    ended = panda.turn("Where is the tea?")
    assert (ended.code, ended.error["where"], ended.error["fix"]) == (20, str(path), "move it away")


def test_a_halted_turn_goes_on_when_the_file_is_mended(panda: Panda) -> None:
    """The fix is made, and the turn is resumed."""
    path = panda.write("store/users/ann/preferences.md", "---\ntea: [green\n---\n")
    halted = panda.turn("Which tea do I prefer?")
    assert halted.code == 20
    path.write_text("---\ntea: green\n---\n", encoding="utf-8")
    resumed = panda("turn", "--resume", str(halted.data["turn"]), "--json")
    assert (resumed.code, "green" in resumed.data["response"]) == (0, True)


def test_a_field_that_cannot_be_read_counts_as_not_written(panda: Panda) -> None:
    """Its value is found and quoted, and `validate` tells the line of each such field."""
    fields = "{value: a grey cat, confidence: high, source_turn: first, updated_at: soon}"
    path = panda.write("store/users/ann/facts.md", f"---\npet: {fields}\n---\n")
    ended = panda.turn("What is my pet?")
    assert (ended.code, "a grey cat" in ended.data["response"]) == (0, True)
    faults = panda.json("validate", str(panda.store))["as_text"]
    assert [(fault["path"], fault["line"]) for fault in faults] == [(str(path), 2)] * 3
    assert [fault["message"].split()[1] for fault in faults] == ["confidence", "source_turn", "updated_at"]


def test_a_line_that_panda_does_not_know_is_text(panda: Panda) -> None:
    """A sentence below the front matter, or without one, and an unknown key halt nothing."""
    panda.write("store/users/ann/preferences.md", "I drink oolong from the blue cup.\n")
    panda.write(
        "store/users/ann/facts.md", "---\nroof colour: anthracite\n---\n\nThe roof was laid by Berg.\n"
    )
    ended = panda.turn("Who laid the roof?")
    assert (ended.code, "Berg" in ended.data["response"]) == (0, True)
    assert panda.problems() == []


def test_a_misspelt_field_of_an_entry_is_text(panda: Panda) -> None:
    """A turn quotes the entry, and `validate` tells its line and the field that is meant, as information."""
    text = "---\nroof colour: {value: anthracite, confidance: 0.4}\n---\n"
    path = panda.write("store/users/ann/facts.md", text)
    ended = panda.turn("What is the roof colour?")
    assert (ended.code, "anthracite" in ended.data["response"]) == (0, True), ended.out
    assert path.read_text("utf-8") == text
    data = panda.json("validate", str(panda.store))
    findings = [(finding["line"], finding["fix"]) for finding in data["unquotable"]]
    assert (data["problems"], findings) == ([], [(2, "write confidence for confidance")])
