"""`panda export`: turns as queries to ask again, as lines for an import, as a transcript."""

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.api import ROOT, VAGUE_QUESTION, Panda, ScriptedPanda
from tests.script import Script, pick
from tests.store_files import import_line, write_json


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store with the turns 1 to 3 of user demo."""
    panda = Panda(tmp_path / "project", user="demo")
    assert panda("init", "--new-user").code == 0
    take_in(panda, *({"turn": number, "query": f"Question {number}?"} for number in (1, 2, 3)))
    return panda


def take_in(panda: Panda, *changes: dict[str, Any]) -> None:
    """Import turns of user demo."""
    panda.write_lines("lines.jsonl", *(import_line(**change) for change in changes))
    assert panda("import", "lines.jsonl").code == 0


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_approved_turns_are_queries_with_what_a_right_answer_keeps(recorded: Path, tmp_path: Path) -> None:
    """The exit code, and whether it answered; not the words. A batch takes each line."""
    panda = Panda(tmp_path, recorded, user="demo")
    done = panda("export", "1-999", "--as", "queries", "--out", "queries.jsonl", "--json")
    assert done.code == 0
    lines = lines_of((panda.home / "queries.jsonl").read_text(encoding="utf-8"))
    assert [line["id"] for line in lines[-4:]] == ["demo-813", "demo-814", "demo-815", "demo-816"]
    assert lines[-2] == {
        "id": "demo-815",
        "query": "What is my favorite hamster?",
        "user": "demo",
        "session": "default-again",
        "mode": "chat",
        "expect": {"exit_code": 0, "answered": True},  # two sources: either would do
    }
    assert lines[-1]["expect"] == {"exit_code": 0, "outcome": "unsure"}
    assert panda.json("batch", "queries.jsonl", "--dry-run")["items"] == len(lines) == 17


def test_the_only_source_is_expected_if_it_stays(ann: ScriptedPanda) -> None:
    """A preference keeps its id; what was said in a turn, and the turn, are others when it is asked again."""
    script = Script(
        retrieval={"relevant": pick("memory:budget")},
        synthesis={"lines": pick("$500-800")},
        answer={"items": [{"text": "The budget is $500-800.", "node_ids": ["memory:budget"]}]},
    )
    assert ann.turn("What is my budget?", script=script).status == "approved"
    done = ann("export", "3", "--as", "queries")
    expected = {"exit_code": 0, "answered": True, "cites": ["memory:budget"]}
    assert lines_of(done.out)[0]["expect"] == expected


def test_a_source_that_moves_is_not_expected(ann: ScriptedPanda) -> None:
    """A visit is cited: the answer alone is expected. Of a question back, that it is asked again; of an
    answer that was not approved, and of imported and unfinished turns, nothing."""
    ann.turn()
    ann.turn(VAGUE_QUESTION, script=Script(reflection={"decision": "CLARIFY", "question": "Which one?"}))
    ann.turn(script=Script(validator={"verdict": "FAIL"}))
    ann.turn(script=Script(planner="no JSON"))
    expected = [line.get("expect") for line in lines_of(ann("export", "1-6", "--as", "queries").out)]
    assert expected == [None, None, {"exit_code": 0, "answered": True}, {"exit_code": 21}, None, None]


def test_conversations_stand_in_their_order_whatever_the_selection(panda: Panda) -> None:
    lines = panda.json("export", "3", "1-2", "1", "--as", "queries")["lines"]
    assert [line["id"] for line in lines] == ["demo-1", "demo-2", "demo-3"]


def test_a_session_of_the_longest_name_gets_a_legal_one(panda: Panda) -> None:
    """Two names that differ in the last character stay two."""
    take_in(panda, {"turn": 8, "session": "x" * 63 + "a"}, {"turn": 9, "session": "x" * 63 + "b"})
    sessions = [line["session"] for line in lines_of(panda("export", "8-9", "--as", "queries").out)]
    assert len(set(sessions)) == 2
    assert {len(session) for session in sessions} == {64}


def test_unfinished_and_forgotten_turns_are_told_and_left_out(ann: ScriptedPanda) -> None:
    """As lines for an import: what has not ended says how it is ended; a forgotten turn stays forgotten."""
    ann.turn(script=Script(planner="no JSON"))
    assert ann("forget", "2", "--yes").code == 0
    done = ann("export", "1-3", "--as", "jsonl")
    assert done.code == 0
    assert [line["turn"] for line in lines_of(done.out)] == [1]
    assert "turn 2 is left out: its status is forgotten" in done.err
    assert "turn 3 is left out: its status is halted" in done.err
    none = ann("export", "2-3", "--as", "jsonl", "--out", "x")
    assert (none.code, (ann.home / "x").exists()) == (3, False)
    assert "none of the turns can be exported" in none.err


def test_what_cannot_be_exported_is_left_out_and_told(panda: Panda) -> None:
    """A damaged turn ends with 3, and the others come out; a question about an image is no query of text."""
    metadata = panda.turn_file(1, "metadata.json")
    image = {"image": "images/0123456789abcdef.png"}
    write_json(metadata, {**json.loads(metadata.read_text(encoding="utf-8")), **image})
    done = panda("export", "1-2", "--as", "queries")
    assert [line["id"] for line in lines_of(done.out)] == ["demo-2"]
    assert "turn 1 is left out: it is about an image" in done.err
    panda.turn_file(2, "metadata.json").write_text("{", encoding="utf-8")
    done = panda("export", "1-3", "--as", "markdown", "--json")
    assert done.code == 3
    assert [turn["turn"] for turn in done.data["turns"]] == [1, 3]
    assert "not valid JSON" in done.data["left_out"][0]["reason"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("1", "--as is missing"),
        ("1 --as csv", "use one of: queries, jsonl, markdown"),
        ("--as jsonl", "no turns are selected"),
        ("1 --as queries --renumber", "--renumber goes with --as jsonl"),
        ("9999 --as jsonl", "user demo has no turn 9999"),
        ("1 --as jsonl --out file/x", "file"),
    ],
)
def test_wrong_words_are_refused(words: str, message: str, panda: Panda) -> None:
    """No format, an unknown one, no selection, an option or a file that cannot be: 2, and the way out."""
    panda.write("file", "mine")
    done = panda("export", *words.split())
    assert (done.code, message in done.err) == (2, True), done.err
    assert sorted(path.name for path in panda.home.iterdir()) == ["file", "lines.jsonl", "store"]


def test_a_file_is_written_whole(demo: Path, tmp_path: Path) -> None:
    """--out writes nothing to stdout and leaves no temporary; a store that is read-only is not touched."""
    panda = Panda(tmp_path, demo, user="demo")
    out = panda.write("deep/turns.jsonl", "of before")
    assert panda.json("export", "--session", "pets", "--as", "jsonl", "--out", str(out))["lines"] is None
    assert [line["turn"] for line in lines_of(out.read_text(encoding="utf-8"))] == [812]
    assert [path.name for path in out.parent.iterdir()] == ["turns.jsonl"]
    done = panda("export", "812", "--as", "markdown", "--root", str(ROOT / "panda-system-docs"))
    assert done.code == 0
    assert done.out.startswith("# Session pets of demo\n\n## Turn 812, ")


TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)
SAID = TEXTS.filter(lambda text: any(not char.isspace() for char in text.strip()))
FENCES = st.sampled_from(["```\n# x\n````", "~~~\n`````text\n## Turn 9"])
LINES = st.lists(
    st.builds(
        import_line,
        session=st.sampled_from(["a", "b-1", "default"]),
        at=st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)).map(
            lambda at: f"{at.replace(microsecond=0).isoformat()}Z"
        ),
        query=SAID | FENCES,
        response=TEXTS | FENCES,
        summary=st.none() | TEXTS,
        topics=st.none() | st.lists(TEXTS, max_size=3),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=6)
@given(LINES, st.booleans())
def test_export_and_import_give_the_same_again(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]], renumbered: bool
) -> None:
    """
    Whatever was said: exported, imported into an empty store and exported again, no byte differs; a parser of
    Markdown sees only the headings of a transcript, and all texts as code.
    """
    stores = [Panda(tmp_path_factory.mktemp("store") / "project", user="demo") for _ in range(2)]
    words = ["export", "1-99", "--as", "jsonl"]
    if renumbered:
        words.append("--renumber")
    numbered = [{**line, "turn": 7 * number} for number, line in enumerate(lines, 1)]
    exported_lines = [json.dumps(line) + "\n" for line in numbered]
    for panda in stores:
        assert panda("init", "--new-user").code == 0
        panda.write("lines.jsonl", "".join(exported_lines))
        assert panda("import", "lines.jsonl").code == 0
        exported_lines = panda(*words).out.splitlines(keepends=True)
    first, second = (panda(*words).out for panda in stores)
    assert first == second
    exported = lines_of(second.replace("\u2028", " "))
    assert [line["response"] for line in exported] == [line["response"] for line in lines]
    transcript = stores[0]("export", "1-99", "--as", "markdown").out
    tokens = MarkdownIt("commonmark").parse(transcript)
    sessions = {line["session"] for line in lines}
    assert sum(token.type == "heading_open" for token in tokens) == len(lines) + len(sessions)
    assert sum(token.type == "fence" for token in tokens) == sum(
        1 + bool(line["response"].strip()) for line in lines
    )
    assert {token.type for token in tokens} <= {
        *("heading_open", "inline", "heading_close", "fence", "paragraph_open", "paragraph_close")
    }
    assert not any(ord(char) < 32 and char not in "\n\t" for char in transcript)


def test_all_of_the_demo_comes_through(demo: Path, tmp_path: Path) -> None:
    """Times, sessions, texts, summaries and topics; turns are also taken from a directory."""
    first = Panda(tmp_path / "first", demo, user="demo")
    out = str(tmp_path / "turns.jsonl")
    assert first("export", str(first.user_directory / "turns"), "--as", "jsonl", "--out", out).code == 0
    second = Panda(tmp_path / "second", user="demo")
    assert second("init", "--new-user").code == 0
    assert second("import", out).code == 0
    assert second("export", "1-999", "--as", "jsonl").out == Path(out).read_text(encoding="utf-8")


def test_two_stores_with_one_turn_are_refused(panda: Panda) -> None:
    """An id would stand twice in the file."""
    shutil.copytree(panda.store, panda.home / "other")
    places = [f"{store}/users/demo/turns/turn_000001" for store in ("store", "other")]
    done = panda("export", *places, "--as", "queries")
    assert done.code == 2
    assert "two stores have turn 1 of demo" in done.err


def test_an_unsure_turn_is_exported_without_what_was_closest(tmp_path: Path) -> None:
    """As a query it expects its outcome; no form has a passage that was shown as closest."""
    panda = Panda(tmp_path / "project", user="ann")
    panda.write("store/users/ann/knowledge/garden.md", "# Garden\n\nThe shed key hangs behind the door.\n")
    unsure = panda.turn("How much does the Lenovo LOQ 15 cost?")
    assert (unsure.data["outcome"], len(unsure.data["closest"])) == ("unsure", 1)
    (line,) = lines_of(panda("export", "1", "--as", "queries").out)
    assert line["expect"] == {"exit_code": 0, "outcome": "unsure"}
    for form in ("queries", "jsonl", "markdown"):
        assert "shed key" not in panda("export", "1", "--as", form).out
    transcript = panda("export", "1", "--as", "markdown").out
    assert ", unsure\n" in transcript
    assert "approved" not in transcript
    panda.write("queries.jsonl", panda("export", "1", "--as", "queries").out)
    assert panda("batch", "queries.jsonl").code == 0
