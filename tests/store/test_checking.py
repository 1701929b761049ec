"""What validate finds in a store: each kind of damage, with its file, and nothing in a sound store."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.api import Panda
from tests.store_files import import_line, write_json, write_visit

CONTEXT = "users/demo/turns/turn_000002/context.md"
METADATA = "users/demo/turns/turn_000002/metadata.json"


@pytest.fixture
def panda(imported: Path, tmp_path: Path) -> Panda:
    """A project whose store has user demo with the imported turns 1 to 3."""
    return Panda(tmp_path / "project", imported, user="demo")


def problems(panda: Panda, *places: Path) -> list[tuple[str, str]]:
    """Return place and message of each problem; a place is path, line and key, relative to the store."""
    ended = panda("validate", *map(str, places or [panda.store]), "--json")
    listed = ended.data["problems"]
    assert ended.code == (3 if listed else 0)
    return [(_place(problem, panda.store), problem["message"]) for problem in listed]


def _place(problem: dict[str, Any], root: Path) -> str:
    place = str(problem["path"]).removeprefix(f"{root}/")
    if problem["line"]:
        place += f":{problem['line']}"
    if problem["key"]:
        place += f" ({problem['key']})"
    return place


def test_a_sound_store_has_no_problems(panda: Panda) -> None:
    """Imported turns, one that ran, visits and memory are all well."""
    assert panda.turn("What was question 2?").code == 0
    write_visit(panda.user_directory, 1, "visit_a", {"title": "Lenovo LOQ 15"}, quality=0.9)
    (panda.user_directory / "preferences.md").write_text("---\nbudget: $500-800\n---\n")
    assert problems(panda) == []


@pytest.mark.parametrize(
    "text",
    [
        "## 2. Gathered Context",
        "```\nnever closed",
        "```yaml\n_meta:\n  source_type: fact\n```",
        "---\nturn: 9\n---\n",
        "\r## 5. Synthesis\r\n\x00\x1b[2J\u202e\n\n",
        "\\\\## 0. User Query\n" * 3000,
    ],
)
def test_no_query_or_response_makes_a_store_unsound(panda: Panda, text: str) -> None:
    """Text that looks like structure is imported and exported word for word, and nothing is wrong."""
    line = import_line(turn=9, query=text, response=text, summary=text, topics=[text])
    assert panda("import", "-", stdin=json.dumps(line)).code == 0
    assert problems(panda) == []
    assert panda.turn_file(9, "response.md").read_bytes().decode() == text
    exported = json.loads(panda("export", "9", "--as", "jsonl").out)
    assert (exported["query"], exported["response"]) == (text, text)


def rewrite(panda: Panda, name: str, change: Callable[[str], str]) -> None:
    path = panda.turn_file(2, name)
    path.write_text(change(path.read_text()))


@pytest.mark.parametrize(
    ("name", "before", "after", "where", "words"),
    [
        ("context.md", "## 5. Synthesis\n\nAnswer 2.\n", "", CONTEXT, "Synthesis` is missing"),
        ("context.md", None, "\n## 6. Validation\n\nok\n", CONTEXT, "Validation` is one too many"),
        ("context.md", None, "\n## 5. Synthesis\n\nagain\n", f"{CONTEXT}:18", "second time"),
        ("context.md", None, "\n## 2. Gathered Context\n", f"{CONTEXT}:18", "after section 5"),
        ("context.md", None, "\n## 9. Nothing\n", f"{CONTEXT}:18", "unknown section"),
        ("context.md", "---\n", "", f"{CONTEXT}:1", "does not begin with its front matter"),
        ("context.md", None, "\n```yaml\n_meta:\n  a: [\n```\n", f"{CONTEXT}:20 (_meta)", "not valid YAML"),
        ("context.md", "turn: 2", "turn: 3", f"{CONTEXT}:1 (turn)", "turn is 3 here and 2 in metadata"),
        ("metadata.json", "imported", "odd", f"{METADATA}:8 (status)", "status is 'odd'"),
        ("metadata.json", '"turn": 2', '"turn": 3', f"{METADATA} (turn)", "is of turn 3"),
        ("metadata.json", "{", "{\n!", f"{METADATA}:2", "not valid JSON"),
        ("metadata.json", '"demo"', '"eva"', f"{METADATA} (user_id)", "is of user eva"),
    ],
)
def test_damage_in_a_turn_is_found(
    panda: Panda, name: str, before: str | None, after: str, where: str, words: str
) -> None:
    """The problem names the file, and line or key where there is one; the other turns stay sound."""
    rewrite(panda, name, lambda text: text + after if before is None else text.replace(before, after, 1))
    reported = problems(panda)
    assert any(place == where and words in message for place, message in reported), reported
    assert all("turn_000002" in place for place, _ in reported)
    assert problems(panda, panda.turn_file(2, "")) == reported


def test_missing_files_of_a_turn_are_found(panda: Panda) -> None:
    """metadata.json and context.md always, response.md when there was an answer."""
    missing = ((1, "context.md"), (2, "metadata.json"), (3, "response.md"))
    for number, name in missing:
        panda.turn_file(number, name).unlink()
    assert problems(panda) == [
        (f"users/demo/turns/turn_00000{number}/{name}", f"{name} is missing") for number, name in missing
    ]


@pytest.mark.parametrize(
    ("status", "route", "next_phase", "sections", "is_sound"),
    [
        ("approved", (0, 1, 2, 3, 5, 6, 7), None, (0, 1, 2, 3, 5, 6), True),
        ("approved", (0, 1, 2, 3, 5, 6, 7), None, (0, 1, 2, 3, 4, 5, 6), False),
        ("approved", (0, 1, 2, 3, 4, 5, 6, 7), None, (0, 1, 2, 3, 5, 6), False),
        ("failed", (0, 1, 2, 3, 4, 5, 6, 3, 5, 6, 7), None, (0, 1, 2, 3, 5, 6), True),
        ("clarify", (0, 1, 7), None, (0, 1), True),
        ("halted", (0, 1), 2, (0, 1), True),
        ("halted", (0, 1), 2, (0,), False),
        ("running", (0, 1, 2), 3, (0, 1, 2, 3), True),
        ("running", (0, 1, 2), 3, (0, 1, 2, 3, 4), False),
        ("running", (0, 1, 2, 3, 4, 5, 6), 5, (0, 1, 2, 3, 4), True),
        ("gathered", (0, 1, 2), None, (0, 1, 2), True),
    ],
)
def test_sections_are_those_that_status_and_route_imply(
    panda: Panda,
    status: str,
    route: Sequence[int],
    next_phase: int | None,
    sections: Sequence[int],
    is_sound: bool,
) -> None:
    """Exactly those; a process that died may have left the section of its next phase."""
    context = panda.turn_file(2, "context.md")
    front = context.read_text().partition("## 0.")[0]
    context.write_text(front + "\n".join(f"## {number}. {TITLES[number]}\n\nx\n" for number in sections))
    metadata = panda.turn_file(2, "metadata.json")
    following = None if next_phase is None else {"phase": next_phase, "round": 0, "attempt": 0}
    changed = {"status": status, "route": list(route), "next": following}
    write_json(metadata, {**json.loads(metadata.read_text()), **changed})
    reported = [text for place, text in problems(panda) if place.startswith(CONTEXT) and "`## " in text]
    assert (reported == []) is is_sound, reported


TITLES = (
    "User Query",
    "Reflection Decision",
    "Gathered Context",
    "Task Plan",
    "Tool Execution",
    "Synthesis",
    "Validation",
)


def test_visits_need_a_manifest_and_an_id_of_their_own(panda: Panda) -> None:
    """A directory without manifest, and one visit_id in two turns, are found."""
    first = write_visit(panda.user_directory, 1, "visit_a", {"title": "A"}, quality=0.9)
    write_visit(panda.user_directory, 3, "visit_a", {"title": "A"}, quality=0.9)
    panda.turn_file(2, "webpage_cache/b-0123456789").mkdir(parents=True)
    assert [message for _, message in problems(panda)] == [
        "manifest.json is missing",
        "extracted.json is missing",
        f"visit_id visit_a is that of {first} too",
    ]


def test_files_beside_the_turns_are_checked(panda: Panda) -> None:
    """Memory files, the memory log, the counter, interventions, leftovers, names of turns."""
    user = panda.user_directory
    (user / "preferences.md").write_text("---\nbudget: [\n---\n")
    (user / "memory.jsonl").write_text('{"id": 1}\n{"torn": ')
    (user / "turn_counter").write_text("2\n")
    (user / ".facts.md.0123456789ab.panda.tmp").write_text("")
    panda.turn_file(1, ".plan.json.0123456789ab.tmp").write_text("")
    (user / "turns" / "turn_12").mkdir()
    panda.write("store/interventions/x.json", "{}")
    text = "\n".join(f"{place}: {message}" for place, message in problems(panda))
    assert "users/demo/preferences.md:3: the front matter is not valid YAML" in text
    assert "users/demo/memory.jsonl:1 (entity): entity is missing" in text
    assert "users/demo/memory.jsonl:2: not valid JSON" in text
    assert "users/demo/turn_counter: holds 2, but there is a turn 3" in text
    assert text.count("temporary file left by a write that was cut short") == 2
    assert "turn_12: not the name of a turn" in text
    assert "interventions/x.json:1 (id): id is missing" in text


def test_single_files_and_directories_can_be_checked(panda: Panda) -> None:
    """A file, a user, a turns directory or any other directory gives its own problems alone."""
    rewrite(panda, "metadata.json", lambda text: text.replace("imported", "odd"))
    user = panda.user_directory
    for path in (panda.store / METADATA, user, user / "turns", panda.store, user.parent):
        assert [where for where, _ in problems(panda, path)] == [f"{METADATA}:8 (status)"]
    assert problems(panda, panda.turn_file(1, ""), panda.turn_file(3, "context.md")) == []
    ended = panda("validate", str(panda.store / "missing"))
    assert (ended.code, "no such file" in ended.err) == (2, True)


STEP: dict[str, Any] = {
    **dict.fromkeys(("data", "error", "goal", "note", "conclusion")),
    **{name: [] for name in ("claims", "entities", "artifacts")},
    "step": 1,
    "plan": 0,
    "round": 1,
    "tool": "doc.search",
    "kind": "read",
    "arguments": {},
    "status": "success",
    "seconds": 0.1,
    "text": "",
}


def test_files_of_steps_are_checked(panda: Panda) -> None:
    """steps/step_02.json must be of step 2, and fit its schema in every depth."""
    panda.turn_file(1, "steps").mkdir()
    claim = {"text": 7, "confidence": 0.5, "source": "s"}
    third = {"step": 3, "status": "fine"}
    fourth = {"step": 4, "claims": [claim]}
    changes: tuple[dict[str, Any], ...] = ({}, {}, third, fourth)
    for number, change in enumerate(changes, 1):
        write_json(panda.turn_file(1, f"steps/step_{number:02}.json"), {**STEP, **change})
    assert sorted(message for _, message in problems(panda)) == [
        "is of step 1, its name is another",
        "status is 'fine'",
        "text must be a text, but is 7",
    ]


def test_every_schema_is_itself_valid(panda: Panda) -> None:
    """Each file that `panda schema` lists has a JSON Schema of 2020-12."""
    names = [row.partition("\t")[0] for row in panda("schema").rows]
    assert len(names) >= 18
    for name in names:
        Draft202012Validator.check_schema(json.loads(panda("schema", name).out))
