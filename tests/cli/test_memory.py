"""`panda memory`: as a user types it."""

import json
from pathlib import Path

import pytest

from tests.api import NOW, Panda

DAY = NOW[:10]


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store in which ann has nothing yet."""
    panda = Panda(tmp_path / "project", user="ann")
    panda.user_directory.mkdir(parents=True)
    return panda


def test_set_get_list_history_retract(panda: Panda) -> None:
    """A value that is set can be got, listed, looked up in the history and taken back."""
    assert panda("memory", "set", "budget", "$500").code == 0
    assert panda("memory", "set", "budget", "$900").code == 0
    assert panda("memory", "get", "budget").out == "$900\n"
    rows = [row.split("\t") for row in panda("memory", "list").rows]
    assert rows == [["budget", "$900", "0.95", "HIGH", NOW, "user:ann", "preference", "local", ""]]
    history = [row.split("\t")[1:3] for row in panda("memory", "history", "budget").rows]
    assert history == [["$500", "0.95"], ["$500", "retracted"], ["$900", "0.95"]]
    assert panda("memory", "retract", "budget").code == 0
    assert panda("memory", "get", "budget").code == 2
    assert panda("memory", "list").out == ""
    assert "budget" not in (panda.user_directory / "preferences.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["900"], {"type": "string", "v": "900"}),
        (["--type", "number", "--", "-1.5e3"], {"type": "number", "v": -1500.0}),
        (["true", "--type", "boolean"], {"type": "boolean", "v": True}),
        (["--type", "null"], {"type": "null"}),
        (["a", "b"], {"type": "list", "v": ["a", "b"]}),
        (["a", "--type", "list"], {"type": "list", "v": ["a"]}),
        (["Acme Corp", "--type", "ref"], {"type": "ref", "v": "Acme Corp"}),
        (["2026-01-04", "--type", "datetime"], {"type": "datetime", "v": "2026-01-04"}),
    ],
)
def test_types(panda: Panda, words: list[str], value: dict[str, object]) -> None:
    """A value is a string unless a type is given, or there are several."""
    appended = panda("memory", "set", "k", "--json", *words).data["appended"]
    assert [fact["value"] for fact in appended] == [value]


@pytest.mark.parametrize(
    "words",
    [
        ["k"],
        ["k", " "],
        [" ", "x"],
        ["-", "x"],
        ["panda:k", "x"],
        ["k", "x", "--type", "number"],
        ["k", "nan", "--type", "number"],
        ["k", "x", "--type", "boolean"],
        ["k", "x", "--type", "thing"],
        ["k", "x", "--type", "null"],
        ["k", "1", "2", "--type", "number"],
        ["k", "x", "--scope", "world"],
        ["k", "x", "--entity", " "],
        ["k", "x", "--entity", "acme", "--kind", "preference"],
        ["k", "x", "--kind", "wish"],
        ["k", "x", "--valid-until", "tomorrow"],
    ],
)
def test_wrong_usage(panda: Panda, words: list[str]) -> None:
    """A value that cannot be remembered is refused with 2 and a fix, and nothing is written."""
    ended = panda("memory", "set", *words)
    assert (ended.code, ended.out) == (2, "")
    assert "error: " in ended.err
    assert not (panda.user_directory / "memory.jsonl").exists()


def test_scopes_and_entities(panda: Panda) -> None:
    """Scopes are apart; the files show the local one, facts of others with their entity."""
    panda("memory", "set", "ceo", "Ada", "--entity", "Acme Corp")
    panda("memory", "set", "ceo", "Bob", "--entity", "acme corp", "--scope", "team")
    panda("memory", "set", "acme-corp#cfo", "Cy", "--valid-until", "2026-01-01")
    assert panda("memory", "get", "acme-corp#ceo").out == "Ada\n"
    assert panda("memory", "get", "acme-corp#cfo").code == 2
    assert panda("memory", "get", "ceo", "--entity", "Acme Corp", "--scope", "team").out == "Bob\n"
    rows = [row.split("\t") for row in panda("memory", "list", "--entity", "acme corp").rows]
    assert [(row[0], row[1], row[7], row[8]) for row in rows] == [
        ("acme-corp#ceo", "Ada", "local", ""),
        ("acme-corp#cfo", "Cy", "local", "expired"),
        ("acme-corp#ceo", "Bob", "team", ""),
    ]
    assert len(panda("memory", "list", "--scope", "team").rows) == 1
    assert panda("memory", "list", "--kind", "preference").out == ""


def test_many_from_standard_input(panda: Panda) -> None:
    """JSON lines are remembered in order; a line that is impossible is named before any is kept."""
    lines = [{"key": f"k{number}", "value": number} for number in range(45)]
    lines.append({"key": "ceo", "value": {"type": "ref", "v": "Ada"}, "entity": "acme", "scope": "team"})
    ended = panda("memory", "set", "-", stdin="".join(json.dumps(line) + "\n" for line in lines))
    assert (ended.code, len(panda("memory", "list").rows)) == (0, 46)
    log = panda.user_directory / "memory.jsonl"
    before = log.read_bytes()
    for junk in ("{", "[]", '{"key": "x"}', '{"key": "x", "value": " "}', '{"key": "x", "value": 1, "a": 2}'):
        ended = panda("memory", "set", "-", stdin='{"key": "new", "value": 1}\n\n' + junk)
        assert (ended.code, "stdin:3" in ended.err) == (2, True)
    assert log.read_bytes() == before


def test_edit_by_hand(panda: Panda) -> None:
    """A value typed into the file is listed with .50 and its date; what happened is told on stderr."""
    (panda.user_directory / "preferences.md").write_text("---\ncity:  Salem # here\n---\n", encoding="utf-8")
    ended = panda("memory", "list")
    assert ended.rows[0].split("\t")[:5] == ["city", "Salem", "0.50", "MEDIUM", NOW]
    assert "taken in: city, typed by hand" in ended.err
    assert "taken in" not in panda("memory", "list").err


def test_store_that_cannot_be_written(panda: Panda) -> None:
    """A store marked as read-only is read, edits by hand included, and nothing is written."""
    (panda.store / ".read-only").touch()
    (panda.user_directory / "preferences.md").write_text("---\ncity: Salem\n---\n", encoding="utf-8")
    assert panda("memory", "get", "city").out == "Salem\n"
    assert "not taken in yet" in panda("memory", "list").out
    assert panda("memory", "set", "city", "Rome").code == 2
    assert [path.name for path in panda.user_directory.iterdir()] == ["preferences.md"]


def test_contradictions(panda: Panda) -> None:
    """Another machine's fact contradicts, is shown with both values, and is settled."""
    panda("memory", "set", "pet", "cat")
    fact = {
        "id": "o1",
        "entity": "user:ann",
        "relation": "pet",
        "value": {"type": "string", "v": "dog"},
        "source": "agent:x",
        "confidence": 0.6,
        "scope": "local",
        "hlc": "5.000",
        "valid_until": None,
    }
    panda.write("other.json", json.dumps({"facts": [fact], "conflicts": []}, indent=1))
    assert panda("memory", "merge", "other.json").code == 0
    assert "contradicted: dog (0.60, agent:x)" in panda("memory", "list").out
    lint = panda("memory", "lint")
    assert (lint.code, lint.rows[0].split("\t")[0]) == (3, "contradiction")
    conflict = panda("memory", "conflicts").rows[0].split("\t")[0]
    assert panda("memory", "resolve", conflict).code == 2
    assert panda("memory", "resolve", conflict, "--winner", "nobody").code == 2
    assert panda("memory", "resolve", conflict[:12], "--winner", "o1").code == 0
    assert panda("memory", "get", "pet").out == "dog\n"
    assert (panda("memory", "conflicts").out, panda("memory", "lint").code) == ("", 0)
    assert panda("memory", "resolve", conflict, "--winner", "o1").code == 2
    records = (panda.user_directory / "conflicts.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["status"] for line in records] == ["resolved"]


def test_merge_tells_lines_from_a_document_by_shape(panda: Panda) -> None:
    """A log whose first line speaks of "facts", and a document of facts on one line or many, are merged."""
    panda("memory", "set", "motto", 'stick to "facts"')
    (panda.store / "users/bob").mkdir()
    lines = (panda.user_directory / "memory.jsonl").read_text(encoding="utf-8")
    values = [json.loads(line) for line in lines.splitlines()]
    documents = (json.dumps({"facts": values}), json.dumps({"conflicts": [], "facts": values}, indent=1))
    for text in (lines, *documents):
        panda.write("other", text)
        assert panda("memory", "merge", "other", PANDA_USER="bob").code == 0


def test_merge_of_junk(panda: Panda) -> None:
    """A file that holds no facts is refused with its line; one that is not there with 74."""
    panda.write("torn", '{\n "facts": [\n')
    assert panda("memory", "merge", "torn").code == 2
    panda.write("junk.jsonl", '\n{"id": 1}\n')
    ended = panda("memory", "merge", "junk.jsonl", "--json")
    assert (ended.code, "junk.jsonl:2" in ended.error["where"]) == (2, True)
    assert panda("memory", "merge", "none").code == 74


def test_validate_finds_what_was_typed_oddly(panda: Panda) -> None:
    """Keys typed twice or in both files, keys of no memory, lists that say otherwise, records of nothing."""
    panda("memory", "set", "pet", "cat")
    assert panda.problems() == []
    preferences = panda.user_directory / "preferences.md"
    text = preferences.read_text(encoding="utf-8").replace("- pet: cat", "- pet: dog")
    preferences.write_text(text.replace("---\n", "---\ntea: a\ntea: b\n'panda:x': 1\n", 1), encoding="utf-8")
    (panda.user_directory / "facts.md").write_text("---\npet: fish\n---\n", encoding="utf-8")
    record = {"conflict_id": "c1", "fact_a": "f1", "fact_b": "f2", "status": "open"}
    log = panda.user_directory / "conflicts.jsonl"
    log.write_text(json.dumps(record) + "\n", encoding="utf-8")
    problems = panda.problems()
    parts = ("c1 names facts", "'panda:x' is no key", "tea is there more", "pet is in pref", "the list shows")
    assert [sum(part in problem for problem in problems) for part in parts] == [1] * len(problems) == [1] * 5
    lines = [json.dumps(line) for line in (record, {**record, "status": "resolved"}, {})]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ended = panda("validate", str(log), "--json")
    assert {problem["line"] for problem in ended.data["problems"]} == {2, 3}


def test_what_is_typed_by_hand_is_told(panda: Panda) -> None:
    """A nested value counts as a text, which `validate` tells."""
    path = panda.user_directory / "preferences.md"
    path.write_text("---\nbudget: {min: 500, max: 800}\n---\n", encoding="utf-8")
    assert panda("memory", "get", "budget").out == "min 500, max 800\n"
    (unquotable,) = panda.json("validate", str(path))["unquotable"]
    assert unquotable["message"] == "what is nested in budget counts as the text 'min 500, max 800'"


def test_a_blank_file_deletes_nothing(panda: Panda) -> None:
    """A blank file is made again; a front matter without keys takes all back."""
    panda("memory", "set", "pet", "cat")
    path = panda.user_directory / "preferences.md"
    path.write_text("\n", encoding="utf-8")
    assert panda("memory", "get", "pet").out == "cat\n"
    assert "- pet: cat" in path.read_text(encoding="utf-8")
    path.write_text("---\n---\n", encoding="utf-8")
    assert panda("memory", "get", "pet").code == 2


def test_a_day_ends_with_its_last_second(panda: Panda) -> None:
    """A value that is to hold until a day holds on that day; a text is printed with its line breaks."""
    panda("memory", "set", "lease", "-", "--valid-until", DAY, stdin="Main St 1\nOregon")
    lease = panda.json("memory", "get", "lease")
    assert (lease["valid_until"], lease["expired"]) == (f"{DAY}T23:59:59Z", False)
    assert panda("memory", "get", "lease").out == "Main St 1\nOregon\n"
