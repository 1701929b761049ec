"""Turn directories: numbers are given once, and what does not read is named with its place."""

import json
import shutil
from pathlib import Path

import pytest

from tests.api import Panda, ScriptedPanda
from tests.script import Script
from tests.store_files import import_line


@pytest.fixture
def panda(imported: Path, tmp_path: Path) -> Panda:
    """A project whose store has user demo with the imported turns 1 to 3."""
    return Panda(tmp_path / "project", imported, user="demo")


def import_turn(panda: Panda, **changes: object) -> int:
    """Import one more turn and return its number."""
    ended = panda("import", "-", "--json", stdin=json.dumps(import_line(**changes)))
    assert ended.code == 0, ended.out
    return int(ended.data["turns"][0]["turn"])


def test_numbers_follow_counter_and_highest_and_are_not_reused(panda: Panda) -> None:
    """A removed turn's number stays used; a directory beyond the counter counts; other names do not."""
    shutil.rmtree(panda.turn_file(3, ""))
    assert import_turn(panda, query="a") == 4
    turns = panda.user_directory / "turns"
    (turns / "turn_000041").mkdir()
    (turns / "notes").mkdir()
    assert import_turn(panda, query="b") == 42
    assert (panda.user_directory / "turn_counter").read_text() == "42\n"


@pytest.mark.parametrize("name", ["..", "A", "a/b", "x" * 65, "ä", "a\n"])
def test_names_that_are_no_ids_are_refused(panda: Panda, name: str) -> None:
    """User and session ids are 1 to 64 of a-z, 0-9, _ and -; nothing is written for others."""
    for option in ("--user", "--session"):
        ended = panda("turn", option, name, "--", "Which laptop?")
        assert (ended.code, f"where: {option}" in ended.err) == (2, True), ended.err
    assert not panda.turn_file(4, "").exists()


def test_a_broken_counter_is_named(panda: Panda) -> None:
    """The next turn is refused with the file and a fix."""
    counter = panda.user_directory / "turn_counter"
    counter.write_text("many")
    ended = panda("turn", "--", "Which laptop?")
    assert ended.code not in (0, 1)
    assert f"where: {counter}" in ended.err
    assert "no number: 'many'" in ended.err
    assert "fix: " in ended.err


REFLECTION = {"decision": "PROCEED", "confidence": 0.9, "question": None, "reasoning": None}


@pytest.mark.parametrize(
    ("text", "line", "key", "message", "fix"),
    [
        ('{\n  "decision": "PROCEED"\n}', 1, "confidence", "confidence is missing", None),
        (json.dumps({**REFLECTION, "confidence": 1.5}), 1, "confidence", "from 0 to 1", None),
        (
            json.dumps({**REFLECTION, "reasonning": "x"}, indent=2),
            6,
            "reasonning",
            "unknown key 'reasonning'",
            "did you mean reasoning?",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_named(
    ann: ScriptedPanda, text: str, line: int, key: str, message: str, fix: str | None
) -> None:
    """File, line and key stand in what validate finds, with a fix where a name is near."""
    path = ann.turn_file(1, "reflection.json")
    path.write_text(text)
    (problem,) = [
        entry for entry in ann("validate", str(path), "--json").data["problems"] if entry["path"] == str(path)
    ]
    assert (problem["line"], problem["key"]) == (line, key)
    assert message in problem["message"]
    assert fix is None or problem["fix"] == fix


def test_a_damaged_call_is_named_with_its_line(ann: ScriptedPanda) -> None:
    """A line that lacks what a replay needs is refused by a replay; a torn last line is left out."""
    turn = ann.turn()
    path = turn.directory / "calls.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines) + '{"n": 3')
    assert ann("replay", str(turn.number), "--json").code == 0
    call = json.loads(lines[1])
    del call["output"]
    path.write_text("".join([lines[0], json.dumps(call) + "\n", *lines[2:]]))
    problems = ann("validate", str(path), "--json").data["problems"]
    assert [(entry["line"], entry["key"]) for entry in problems if "output" in entry["message"]] == [
        (2, "output")
    ]
    assert ann("replay", str(turn.number), "--json").code != 0


def test_superseded_sections_are_copied(ann: ScriptedPanda) -> None:
    """attempts/1/context.md holds just what a revision replaces, with the same front matter."""
    verdicts = [{"verdict": "REVISE", "reason": "shorter"}, {"verdict": "APPROVE"}]
    turn = ann.turn(script=Script(validator=verdicts))
    assert turn.status == "approved"
    attempt = turn.text("attempts/1/context.md")
    assert attempt.partition("## ")[0] == turn.text("context.md").partition("## ")[0]
    assert [line for line in attempt.splitlines() if line.startswith("## ")] == [
        "## 5. Synthesis",
        "## 6. Validation",
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{\n"a": "\xff"}', 2),
        (b'{\n"a" 1}', 2),
        (b'{"a": NaN}', 1),
        *((b'{"a": %b}' % text, 1) for text in (b"1e999", b"-1e999", b"[" * 100_000, b"9" * 10_000)),
    ],
)
def test_json_that_is_none_is_named_with_its_line(panda: Panda, content: bytes, line: int) -> None:
    """Neither other encodings nor numbers and nesting beyond reason are read."""
    path = panda.turn_file(2, "metadata.json")
    path.write_bytes(content)
    ended = panda("validate", str(path), "--json")
    assert ended.code == 3
    assert [(problem["path"], problem["line"]) for problem in ended.data["problems"]] == [(str(path), line)]


LINE = {"timestamp": "2026-01-04T14:30:00Z", "recipe": "a"}
WHOLE = json.dumps(LINE)


@pytest.mark.parametrize("before", ["", WHOLE + "\n", WHOLE, WHOLE + "\n" + WHOLE[:20], WHOLE[:20]])
def test_appending_repairs_what_a_crash_left(panda: Panda, before: str) -> None:
    """A torn last line of a log goes with the next one that is written, a whole one is completed."""
    path = panda.store / "logs" / "executions.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(before, encoding="utf-8")
    panda.write("notes.md", "Fans are loud. " * 40)
    assert panda("compress", "notes.md", "--budget", "20", "--query", "fans").code == 0
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines[:-1] == [LINE] * before.count("}")
    assert lines[-1]["event"] == "compressed"
