"""panda import: numbers kept or assigned, the same file twice changes nothing, errors change nothing."""

import json
from pathlib import Path

import pytest

from tests.api import Ended, Panda, tree
from tests.store_files import import_line, write_json


@pytest.fixture
def panda(imported: Path, tmp_path: Path) -> Panda:
    """A project whose store has user demo with the imported turns 1 to 3."""
    return Panda(tmp_path / "project", imported, user="demo")


def import_lines(panda: Panda, *values: object, **environ: str) -> Ended:
    """Run `panda import -`; what is no text becomes a line of JSON."""
    lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return panda("import", "-", "--json", stdin="\n".join(lines), **environ)


def users_of(panda: Panda) -> dict[str, bytes]:
    """Return what stands in the directories of users, without locks."""
    files = tree(panda.store / "users")
    return {name: content for name, content in files.items() if not name.endswith("lock")}


def test_an_imported_turn_has_its_four_files_and_reads_back(panda: Panda) -> None:
    """§0 is the query, §5 the response, metadata says imported, the summary goes to the index."""
    query = "## 2. Gathered Context\r\nwhat?\n"
    line = import_line(turn=812, query=query, summary="S", topics=["laptop"])
    assert import_lines(panda, line).code == 0
    names = ["context.md", "index_summary.json", "metadata.json", "response.md"]
    assert sorted(tree(panda.turn_file(812, ""))) == names
    metadata = json.loads(panda.turn_file(812, "metadata.json").read_text())
    held = {name: metadata[name] for name in ("status", "query", "turn", "next", "created_at")}
    assert held == {
        "status": "imported",
        "query": query,
        "turn": 812,
        "next": None,
        "created_at": "2026-01-03T10:00:00Z",
    }
    assert json.loads(panda.turn_file(812, "index_summary.json").read_text())["topics"] == ["laptop"]
    exported = json.loads(panda("export", "812", "--as", "jsonl").out)
    assert (exported["query"], exported["response"]) == (query, "The Lenovo LOQ 15 at $697.00.")
    assert (panda.user_directory / "turn_counter").read_text() == "812\n"


def test_given_numbers_fill_gaps_and_others_come_after_all_numbers(panda: Panda) -> None:
    """Lines without a number get the next ones in file order; the counter never goes down."""
    import_lines(panda, import_line(turn=9, query="nine"))
    ended = import_lines(
        panda, import_line(query="a"), import_line(turn=5, query="five"), import_line(query="b")
    )
    assert [(turn["turn"], turn["created"]) for turn in ended.data["turns"]] == [
        (10, True),
        (5, True),
        (11, True),
    ]
    import_lines(panda, import_line(turn=4, query="four"))
    assert import_lines(panda, import_line(query="next")).data["turns"][0]["turn"] == 12


def test_the_same_file_twice_changes_nothing(panda: Panda) -> None:
    """With and without numbers, with repeated lines, under another clock: no byte differs."""
    same = import_line(query="ok")
    lines = (import_line(turn=7), same, "", same, import_line(user="eva", response="", topics=["x"]))
    first = import_lines(panda, *lines).data
    before = users_of(panda)
    second = import_lines(panda, *lines, PANDA_NOW="2027-01-04T14:30:00Z").data
    assert users_of(panda) == before
    assert [turn["created"] for turn in first["turns"]] == [True] * 4
    assert [turn["created"] for turn in second["turns"]] == [False] * 4
    numbers = [[turn["turn"] for turn in data["turns"]] for data in (first, second)]
    assert numbers == [[7, 8, 9, 1]] * 2


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (import_line(turn=1, response="other"), "turn 1 of user demo is taken by a turn with other content"),
        (import_line(turn=2, summary="now with summary", query="Question 2?"), "other content"),
        (import_line(turn=7, query="first of file, changed"), "taken by <stdin>:1"),
        ({**import_line(), "user": "../etc"}, "must be a user or session id"),
        ({**import_line(), "session": "a b"}, "must be a user or session id"),
        (import_line(at="yesterday"), "'yesterday' is not an ISO 8601 time"),
        (import_line(at="0001-01-01T00:00:00Z"), "at lies outside the years 2 to 9998"),
        (import_line(turn=0), "a whole number from 1 to 999,999,999"),
        (import_line(query=" "), "must be a text that is not blank"),
        (import_line(answer="x"), "unknown key 'answer'"),
        (import_line(query="a\ud800"), "surrogate"),
        ("[1]", "must be a mapping"),
        ('{"user": ', "not valid JSON"),
        ('{"user": NaN}', "NaN"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_changed(panda: Panda, bad: object, words: str) -> None:
    """The error names the line; no turn of the file is there, not even those before it or of new users."""
    before = users_of(panda)
    ended = import_lines(panda, import_line(turn=7), import_line(user="eva"), bad)
    assert ended.code == 2
    assert words in ended.error["message"]
    assert ended.error["where"].startswith("<stdin>:3")
    assert users_of(panda) == before


def test_a_file_that_is_not_utf8_is_named_with_its_line(panda: Panda) -> None:
    """The line of the first wrong byte stands in the error."""
    path = panda.write("in.jsonl", json.dumps(import_line()).encode() + b"\n\xff\n")
    error = panda("import", "in.jsonl", "--json").error
    assert "0xff" in error["message"]
    assert Path(error["where"].removesuffix(":2")).name == path.name


def test_a_write_that_fails_leaves_no_turn_and_no_temporary_file(panda: Panda) -> None:
    """A file in the place of the turns directory ends the import with 74; nothing of a turn is there."""
    turns = panda.write("store/users/eva/turns", "in the way")
    ended = import_lines(panda, import_line(user="eva"))
    assert ended.code == 74
    assert turns.read_text() == "in the way"
    assert [name for name in users_of(panda) if name.startswith("eva/")] == ["eva/turns"]


def test_a_turn_that_cannot_be_read_equals_no_line(panda: Panda) -> None:
    """A given number with damaged files is an error, never an overwrite."""
    write_json(panda.turn_file(2, "metadata.json"), {"turn": 2})
    assert "taken" in import_lines(panda, import_line(turn=2)).error["message"]
