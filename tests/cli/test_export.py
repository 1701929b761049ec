"""`panda export`: turns as queries to ask again, as lines for an import, as a transcript."""

import json
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda.exchange.export import PastTurn, export_turns, render_transcript
from panda.exchange.intake import import_turns
from panda.runs.queries import Expectation, read_queries
from panda.runs.select import TurnFilter, select_turns
from panda.store.files import write_json
from panda.store.layout import Layout, UserStore
from panda.store.records import Metadata
from tests.api import Ended, run_here
from tests.builders import NOW, build_store, import_line, still_clock
from tests.script import Script, pick
from tests.scripted_turns import laptop_store, run_turn


def panda(root: Path, *words: str, user: str = "demo") -> Ended:
    return run_here([*words, "--root", str(root), "--user", user])


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_approved_turns_are_queries_with_what_a_right_answer_keeps(recorded: Path) -> None:
    """The exit code, and whether it answered; not the words."""
    done = panda(recorded, "export", "813-816", "--as", "queries")
    assert done.code == 0
    lines = lines_of(done.out)
    assert [line["id"] for line in lines] == ["demo-813", "demo-814", "demo-815", "demo-816"]
    assert lines[2] == {
        "id": "demo-815",
        "query": "What is my favorite hamster?",
        "user": "demo",
        "session": "default-again",
        "mode": "chat",
        "expect": {"exit_code": 0, "answered": True},  # two sources: either would do
    }
    assert lines[3]["expect"] == {"exit_code": 0}  # nothing that is saved answered it


def test_a_batch_takes_what_was_exported(recorded: Path) -> None:
    """Each line is one of `panda batch`, with the same id, session and expectations."""
    done = panda(recorded, "export", "1-999", "--as", "queries")
    lines = lines_of(done.out)
    queries = read_queries(done.out.splitlines(), name="queries.jsonl")
    assert len(queries) == 17
    for line, query in zip(lines, queries, strict=True):
        assert (query.id, query.query, query.session) == (line["id"], line["query"], line["session"])
    assert queries[-1].expect == Expectation(exit_code=0)


def test_the_only_source_is_expected_if_it_stays(tmp_path: Path) -> None:
    """A preference keeps its id; what was said in a turn, and the turn, are others when it is asked again."""
    layout = laptop_store(tmp_path)
    told = {"text": "The budget is $500-800.", "node_ids": ["memory:budget"]}
    script = Script(
        retrieval={"relevant": pick("memory:budget")},
        synthesis={"lines": pick("$500-800")},
        answer={"items": [told]},
    )
    assert run_turn(layout, "What is my budget?", script).metadata.status == "approved"
    done = panda(tmp_path, "export", "3", "--as", "queries", user="ann")
    expected = {"exit_code": 0, "answered": True, "cites": ["memory:budget"]}
    assert lines_of(done.out)[0]["expect"] == expected


def test_a_source_that_moves_is_not_expected(tmp_path: Path) -> None:
    """A visit is cited: the answer alone is expected. Of a question back, that it is asked again; of an
    answer that was not approved, and of imported and unfinished turns, nothing."""
    layout = laptop_store(tmp_path)
    run_turn(layout)
    run_turn(layout, answer=Script(reflection={"decision": "CLARIFY", "question": "Which one?"}))
    run_turn(layout, answer=Script(validator={"verdict": "FAIL"}))
    run_turn(layout, answer=Script(planner="no JSON"))
    done = panda(tmp_path, "export", "1-6", "--as", "queries", user="ann")
    found = [line.get("expect") for line in lines_of(done.out)]
    assert found == [None, None, {"exit_code": 0, "answered": True}, {"exit_code": 21}, None, None]


def test_conversations_stand_in_their_order_whatever_the_selection(demo: Path) -> None:
    done = panda(demo, "export", "810", "806-808", "806", "--as", "queries", "--json")
    assert [line["id"] for line in done.value["data"]["lines"]] == [
        "demo-806",
        "demo-807",
        "demo-808",
        "demo-810",
    ]


def test_a_session_of_the_longest_name_gets_a_legal_one(tmp_path: Path) -> None:
    """Two names that differ in the last character stay two."""
    names = ["x" * 63 + "a", "x" * 63 + "b"]
    build_store(tmp_path, *(import_line(turn=n, session=name) for n, name in enumerate(names, 1)))
    done = panda(tmp_path, "export", "1-2", "--as", "queries")
    sessions = [line["session"] for line in lines_of(done.out)]
    assert len(set(sessions)) == 2
    assert {len(session) for session in sessions} == {64}


def test_unfinished_and_forgotten_turns_are_told_and_left_out(tmp_path: Path) -> None:
    """As lines for an import: what has not ended says how it is ended; a forgotten turn stays forgotten."""
    layout = laptop_store(tmp_path)
    run_turn(layout, answer=Script(planner="no JSON"))
    assert panda(tmp_path, "forget", "2", "--yes", user="ann").code == 0
    done = panda(tmp_path, "export", "1-3", "--as", "jsonl", user="ann")
    assert done.code == 0
    assert [line["turn"] for line in lines_of(done.out)] == [1]
    assert "turn 2 is left out: its status is forgotten" in done.err
    assert "turn 3 is left out: its status is halted" in done.err
    none = panda(tmp_path, "export", "2-3", "--as", "jsonl", "--out", str(tmp_path / "x"), user="ann")
    assert (none.code, (tmp_path / "x").exists()) == (3, False)
    assert "none of the turns can be exported" in none.err


def test_a_damaged_turn_ends_with_3_and_the_others_come_out(tmp_path: Path) -> None:
    layout = build_store(tmp_path)
    (layout.of("demo").turn(2).directory / "metadata.json").write_text("{", encoding="utf-8")
    done = panda(tmp_path, "export", "1-3", "--as", "markdown", "--json")
    assert done.code == 3
    assert [one["turn"] for one in done.value["data"]["turns"]] == [1, 3]
    assert "not valid JSON" in done.value["data"]["left_out"][0]["reason"]


def test_wrong_words_are_refused(demo: Path) -> None:
    """No format, an unknown one, no selection, an option that says nothing: 2, and the way out."""
    for words, told in (
        (["812"], "--as is missing"),
        (["812", "--as", "csv"], "use one of: queries, jsonl, markdown"),
        (["--as", "jsonl"], "no turns are selected"),
        (["812", "--as", "queries", "--renumber"], "--renumber goes with --as jsonl"),
        (["9999", "--as", "jsonl"], "user demo has no turn 9999"),
    ):
        done = panda(demo, "export", *words)
        assert (done.code, told in done.err) == (2, True), done.err


def test_a_file_is_replaced_whole(demo: Path, tmp_path: Path) -> None:
    """--out writes nothing to stdout, keeps what is there if it cannot write, and leaves no temporary."""
    out = tmp_path / "deep" / "turns.jsonl"
    out.parent.mkdir()
    done = panda(demo, "export", "--session", "pets", "--as", "jsonl", "--out", str(out), "--json")
    assert done.value["data"]["lines"] is None
    assert [line["turn"] for line in lines_of(out.read_text(encoding="utf-8"))] == [812]
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    failed = panda(demo, "export", "812", "--as", "jsonl", "--out", str(tmp_path / "file" / "x"))
    assert failed.code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "file"]
    assert [path.name for path in out.parent.iterdir()] == ["turns.jsonl"]


def test_the_store_may_be_read_only() -> None:
    """The demo of the checkout is exported and not touched."""
    done = panda(Path("panda-system-docs").resolve(), "export", "812", "--as", "markdown")
    assert done.code == 0
    assert done.out.startswith("# Session pets of demo\n\n## Turn 812, ")


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=60)
_LINES = st.lists(
    st.builds(
        import_line,
        session=st.sampled_from(["a", "b-1", "default"]),
        at=st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31)).map(
            lambda at: f"{at.replace(microsecond=0).isoformat()}Z"
        ),
        query=_TEXTS.filter(lambda text: text.strip() != "" and any(not char.isspace() for char in text)),
        response=_TEXTS,
        summary=st.none() | _TEXTS,
        topics=st.none() | st.lists(_TEXTS, max_size=3),
    ),
    min_size=1,
    max_size=5,
)


def exported(layout: Layout, **more: Any) -> str:
    wanted = TurnFilter(status="imported")
    places = select_turns((), wanted, layout=lambda: layout, user="demo")
    return export_turns(places, "jsonl", **more).text


@given(_LINES, st.booleans())
def test_export_and_import_give_the_same_again(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]], numbered: bool
) -> None:
    """Whatever was said: exported, imported into an empty store and exported again, no byte differs."""
    one, two = (Layout(tmp_path_factory.mktemp(name)) for name in ("one", "two"))
    import_turns([json.dumps({**line, "turn": 7 * n}) for n, line in enumerate(lines, 1)], one, still_clock)
    text = exported(one, numbered=numbered)
    import_turns(text.removesuffix("\n").split("\n"), two, still_clock)
    assert exported(two, numbered=numbered) == text
    for line, number in zip(lines, UserStore(two.root, "demo", still_clock).numbers(), strict=True):
        folder = UserStore(two.root, "demo", still_clock).open(number)
        assert (folder.read_metadata().query, folder.read_text("response.md")) == (
            line["query"],
            line["response"],
        )


def test_the_same_over_the_command_line(demo: Path, tmp_path: Path) -> None:
    """All of the demo into a store that panda init made: times, sessions, texts, summaries, topics."""
    first = panda(demo, "export", "1-999", "--as", "jsonl", "--out", str(tmp_path / "one.jsonl"))
    assert first.code == 0
    other = tmp_path / "other"
    assert panda(other, "init").code == 0
    assert panda(other, "import", str(tmp_path / "one.jsonl")).code == 0
    assert panda(other, "export", "1-999", "--as", "jsonl").out == (tmp_path / "one.jsonl").read_text(
        encoding="utf-8"
    )


def past(query: str, reply: str = "", number: int = 1) -> PastTurn:
    metadata = Metadata(
        turn=number,
        user_id="demo",
        session_id="s",
        mode="chat",
        query=query,
        status="imported",
        route=(),
        next=None,
        created_at=NOW,
        updated_at=NOW,
        saved_at=NOW,
        answered=True,
        seed=None,
    )
    return PastTurn(metadata, reply, None, frozenset(), has_documents=False)


@given(
    st.lists(st.tuples(_TEXTS, _TEXTS) | st.just(("```\n# x\n````", "~~~\n`````text\n## Turn 9")), max_size=3)
)
def test_nothing_that_was_said_is_read_as_markdown(said: list[tuple[str, str]]) -> None:
    """A parser of Markdown sees only the headings of the transcript, and all texts as code."""
    from markdown_it import MarkdownIt

    text = render_transcript([past(query, reply, n) for n, (query, reply) in enumerate(said, 1)])
    tokens = MarkdownIt("commonmark").parse(text)
    assert sum(token.type == "heading_open" for token in tokens) == len(said) + bool(said)
    fences = sum(1 + bool(reply.strip()) for _, reply in said)
    assert sum(token.type == "fence" for token in tokens) == fences
    assert {token.type for token in tokens} <= {
        *("heading_open", "inline", "heading_close", "fence", "paragraph_open", "paragraph_close")
    }
    assert not any(ord(char) < 32 and char not in "\n\t" for char in text)


def test_two_stores_with_one_turn_are_refused(tmp_path: Path) -> None:
    """An id would stand twice in the file."""
    for name in ("one", "two"):
        build_store(tmp_path / name)
    words = [str(tmp_path / name / "users" / "demo" / "turns" / "turn_000001") for name in ("one", "two")]
    done = panda(tmp_path / "one", "export", *words, "--as", "queries")
    assert done.code == 2
    assert "two stores have turn 1 of demo" in done.err


def test_an_image_is_not_a_query(tmp_path: Path) -> None:
    """Asked again as text alone it would be another question."""
    layout = build_store(tmp_path)
    path = layout.of("demo").turn(1).directory / "metadata.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**value, "image": "images/0123456789abcdef.png"})
    done = panda(tmp_path, "export", "1-2", "--as", "queries")
    assert [line["id"] for line in lines_of(done.out)] == ["demo-2"]
    assert "turn 1 is left out: it is about an image" in done.err


def test_place_of_a_copied_directory(demo: Path, tmp_path: Path) -> None:
    """Turns are also taken from a directory, of whichever user."""
    store = Path(shutil.copytree(demo, tmp_path / "copy"))
    directory = store / "users" / "demo" / "turns"
    done = panda(demo, "export", str(directory), "--as", "queries")
    assert len(lines_of(done.out)) == 13
