"""panda import: numbers kept or assigned, the same file twice changes nothing, errors change nothing."""

import json
from pathlib import Path

import pytest

from panda.errors import ImportFileError, StoreError
from panda.exchange.intake import import_turns
from panda.store.files import write_json
from panda.store.layout import Layout, UserStore
from panda.store.turns import claim_turn
from tests.builders import build_store, file_of, import_line, still_clock, tree


def lines(*values: object) -> list[str]:
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


def test_an_imported_turn_has_its_four_files_and_reads_back(tmp_path: Path) -> None:
    """§0 is the query, §5 the response, metadata says imported, the summary goes to the index."""
    query = "## 2. Gathered Context\r\nwhat?\n"
    layout = build_store(tmp_path, import_line(turn=812, query=query, summary="S", topics=["laptop"]))
    folder = UserStore(layout.root, "demo", still_clock).open(812)
    assert sorted(tree(folder.paths.directory)) == [
        "context.md",
        "index_summary.json",
        "metadata.json",
        "response.md",
    ]
    document = folder.read_context()
    assert [(one.number, one.text) for one in document.sections] == [
        (0, query),
        (5, "The Lenovo LOQ 15 at $697.00."),
    ]
    metadata = folder.read_metadata()
    assert (metadata.status, metadata.query, metadata.turn, metadata.next) == ("imported", query, 812, None)
    assert metadata.created_at == document.front.created_at
    assert file_of(folder, "index_summary.json")["topics"] == ["laptop"]
    assert folder.read_text("response.md") == "The Lenovo LOQ 15 at $697.00."
    assert layout.of("demo").turn_counter.read_text() == "812\n"


def test_given_numbers_fill_gaps_and_others_come_after_all_numbers(tmp_path: Path) -> None:
    """Lines without a number get the next ones in file order; the counter never goes down."""
    layout = build_store(tmp_path, import_line(turn=9, query="nine"))
    report = import_turns(
        lines(import_line(query="a"), import_line(turn=3, query="three"), import_line(query="b")),
        layout,
        still_clock,
    )
    assert [(one.turn, one.created) for one in report.turns] == [(10, True), (3, True), (11, True)]
    import_turns(lines(import_line(turn=4, query="four")), layout, still_clock)
    assert claim_turn(UserStore(layout.root, "demo", still_clock), "default", "chat", "next").number == 12


def test_the_same_file_twice_changes_nothing(tmp_path: Path) -> None:
    """With and without numbers, with repeated lines, under another clock: no byte differs."""
    source = tmp_path / "in.jsonl"
    same = import_line(query="ok")
    text = "\n\n".join(
        lines(import_line(turn=3), same, same, import_line(user="eva", response="", topics=["x"]))
    )
    source.write_text(text)
    layout = Layout(tmp_path / "root")
    first = import_turns(source, layout, still_clock)
    before = tree(layout.root)
    second = import_turns(source, layout, lambda: still_clock().replace(year=2027))
    assert tree(layout.root) == before
    assert (first.created, second.created, second.unchanged) == (4, 0, 4)
    assert [one.turn for one in second.turns] == [one.turn for one in first.turns] == [3, 4, 5, 1]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (import_line(turn=1, response="other"), "turn 1 of user demo is taken by a turn with other content"),
        (import_line(turn=2, summary="now with summary", query="Question 2?"), "other content"),
        (import_line(turn=7, query="first of file, changed"), r"taken by <stdin>:1"),
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
def test_a_wrong_line_is_named_and_nothing_is_changed(tmp_path: Path, bad: object, words: str) -> None:
    """The error names the line; no turn of the file is there, not even those before it or of new users."""
    layout = build_store(tmp_path)
    before = tree(tmp_path)
    good = import_line(turn=7)
    with pytest.raises(ImportFileError, match=words) as caught:
        import_turns(lines(good, import_line(user="eva"), bad), layout, still_clock)
    assert (caught.value.where or "").startswith("<stdin>:3")
    assert tree(tmp_path) == before
    assert not layout.of("eva").home.exists()


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    """The line of the first wrong byte stands in the error."""
    source = tmp_path / "in.jsonl"
    source.write_bytes(json.dumps(import_line()).encode() + b"\n\xff\n")
    with pytest.raises(ImportFileError, match="0xff") as caught:
        import_turns(source, Layout(tmp_path / "root"), still_clock)
    assert caught.value.where == f"{source}:2"


def test_a_write_that_fails_leaves_no_turn_and_no_temporary_file(tmp_path: Path) -> None:
    """A turns directory that cannot be written is a StoreError; nothing new is there."""
    layout = Layout(tmp_path)
    layout.of("demo").home.mkdir(parents=True)
    layout.of("demo").turns.write_text("in the way")
    with pytest.raises(StoreError):
        import_turns(lines(import_line()), layout, still_clock)
    assert tree(tmp_path) == {"users/demo/turns": b"in the way"}


def test_a_turn_that_cannot_be_read_equals_no_line(tmp_path: Path) -> None:
    """A given number with damaged files is an error, never an overwrite."""
    layout = build_store(tmp_path)
    write_json(layout.of("demo").turn(2) / "metadata.json", {"turn": 2})
    with pytest.raises(ImportFileError, match="taken"):
        import_turns(lines(import_line(turn=2)), layout, still_clock)
