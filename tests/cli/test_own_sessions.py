"""A turn without --session begins a session of its own; -c goes on with the user's newest."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panda.cli.main import build_program
from panda.store.files import write_json
from panda.store.layout import Layout
from panda.store.validate import check_store
from tests.builders import import_line
from tests.cli.programs import run_words
from tests.loopback import reply
from tests.script import Script
from tests.scripted_turns import USER
from tests.session.conversations import carried
from tests.session.processes import FreshTalk, _asked, fresh_talk

PANDA = str(Path(sys.executable).with_name("panda"))
ASKED = "How much is the Lenovo LOQ 15?"
CLARIFY = {"reflection": {"decision": "CLARIFY", "question": "Which one?"}}
GATHER = ("gather", "--query", ASKED)


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[FreshTalk]:
    """A store with two saved turns, the second in session tea, and a model that is asked over HTTP."""
    with fresh_talk(tmp_path) as found:
        yield found


def told(talk: FreshTalk, *words: str, **replies: Any) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command for people."""
    script = Script(**replies)
    talk._server.answer = lambda body: reply(str(script(_asked(body))))
    process = talk.start(*words, as_json=False)
    out, err = process.communicate()
    return process.returncode, out.decode(), err.decode()


def test_each_turn_begins_a_session(talk: FreshTalk) -> None:
    """Two questions without --session see nothing of each other's carry; each is named after its turn."""
    first = talk.answered(Script(), "turn", ASKED)
    second = talk.answered(Script(), "turn", "How heavy is it?")
    assert [one.metadata.session_id for one in (first, second)] == ["t000003", "t000004"]
    assert {carried(second, step) for step in ("analyzer", "answer")} == {""}
    assert json.loads(talk.layout.of(USER).session("t000004").read_bytes())["turns"][0]["turn"] == 4
    assert talk.panda("session", "verify")[0] == 0
    assert check_store(talk.layout) == []


def test_continue_goes_on(talk: FreshTalk) -> None:
    """With -c, and with --continue, the newest session goes on, and its carry is known; the data names it."""
    talk.answered(Script(), "turn", ASKED)
    second = talk.answered(Script(), "turn", "-c", "How heavy is it?")
    assert ASKED in carried(second, "analyzer")
    third = talk.answered(Script(), "turn", "--continue", "And how old?")
    assert {one.metadata.session_id for one in (second, third)} == {"t000003"}
    assert talk.panda("turn", "-c", ASKED)[1]["data"]["session"] == "t000003"


def test_gather_begins_and_goes_on(talk: FreshTalk) -> None:
    """`gather --query` has the same two ways; what is gathered and not saved yet is no newest session."""
    talk.answered(Script(), "turn", ASKED)
    assert talk.answered(Script(), *GATHER).metadata.session_id == "t000004"
    assert talk.answered(Script(), *GATHER, "-c").metadata.session_id == "t000003"


def test_the_newest_is_that_of_the_newest_saved_turn(talk: FreshTalk) -> None:
    """Numbers decide, not the times of files; a turn that halted is in no session yet."""
    talk.answered(Script(), "turn", ASKED, "--session", "b")
    talk.answered(Script(), "turn", ASKED, "--session", "a")
    os.utime(talk.layout.of(USER).session("b"), (4e9, 4e9))
    assert talk.answered(Script(planner="no JSON"), "turn", ASKED).exit_code == 20
    assert talk.answered(Script(), "turn", "-c", ASKED).metadata.session_id == "a"
    assert [
        row["session_id"] for row in talk.panda("session", "list", "--limit", "2")[1]["data"]["sessions"]
    ] == [
        "b",
        "a",
    ]
    assert talk.panda("session", "show")[1]["data"]["session_id"] == "a"
    assert talk.start("session", "show", as_json=False).communicate()[1].startswith(b"session a\n")


def test_a_turn_that_was_killed_after_it_joined_is_the_newest(talk: FreshTalk) -> None:
    """Its session knows it already: -c goes on there, and brings it to its end."""
    killed = talk.answered(Script(), "turn", ASKED)
    value = json.loads((killed.folder.paths / "metadata.json").read_bytes())
    value |= {"status": "running", "next": {"phase": 7, "round": 0, "attempt": 0}, "saved_at": None}
    del value["seal"]
    write_json(killed.folder.paths / "metadata.json", value)
    assert talk.answered(Script(), "turn", "-c", "How heavy is it?").metadata.session_id == "t000003"
    assert killed.metadata.status == "approved"


def test_nothing_to_go_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a saved turn -c ends with 2 and says what to do; no number is claimed."""
    root = tmp_path / "store"
    assert run_words(build_program(), ["init", "--root", str(root)], capsys).code == 0
    for words in (["turn", "-c", ASKED], [*GATHER, "-c"]):
        ended = run_words(build_program(), [*words, "--root", str(root)], capsys)
        assert ended.code == 2
        assert "user default has no session yet" in ended.err
        assert "where: --continue" in ended.err
        assert "fix: leave it out" in ended.err
    assert list((root / "users" / "default").iterdir()) == [root / "users" / "default" / "knowledge"]


@pytest.mark.parametrize(
    "words",
    [
        ("turn", ASKED, "-c", "--session", "tea"),
        ("turn", "-c", "--resume", "2"),
        ("turn", "-c", "--resume-all"),
        ("turn", "-c", "--discard", "2"),
        (*GATHER, "-c", "--session", "tea"),
        ("gather", "2", "-c"),
    ],
)
def test_two_sessions_are_wrong_usage(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """-c stands neither beside --session nor with a turn that has its session."""
    ended = run_words(build_program(), [*words, "--root", str(tmp_path)], capsys)
    assert ended.code == 2
    assert "--continue" in ended.err


def test_a_question_says_how_to_answer_it(talk: FreshTalk) -> None:
    """Of a question that is asked back stderr tells the command; the answer reaches the session of it."""
    code, out, err = told(talk, "turn", "How old is it?", **CLARIFY)
    assert (code, out) == (21, "Which one?\n")
    assert f'to answer: panda turn -c "…" --root {talk.layout.root} --user {USER}\n' in err
    assert "Which one?" in carried(talk.answered(Script(), "turn", "-c", "The Lenovo."), "analyzer")
    code, _, err = told(talk, *GATHER, **CLARIFY)
    assert (code, 'to answer: panda turn -c "…"' in err) == (21, True)


def test_a_resumed_question_names_its_session(talk: FreshTalk) -> None:
    """A turn that was taken up again and asks back need not be the newest: its session is named."""
    talk.answered(Script(), "turn", "How old is it?", dies_at="reflection")
    talk.answered(Script(), "turn", ASKED)
    code, _, err = told(talk, "turn", "--resume", "3", **CLARIFY)
    assert (code, 'to answer: panda turn --session t000003 "…"' in err) == (21, True)


def test_a_session_that_is_set_is_joined(talk: FreshTalk) -> None:
    """`session` of panda.toml names the session as a flag does; -c goes before it."""
    toml = talk.layout.root.parent / "panda.toml"
    toml.write_text('session = "kitchen"\n', encoding="utf-8")
    assert talk.answered(Script(), "turn", ASKED).metadata.session_id == "kitchen"
    talk.answered(Script(), "turn", ASKED, "--session", "other")
    assert talk.answered(Script(), "turn", "-c", ASKED).metadata.session_id == "other"


def test_a_name_that_is_taken(talk: FreshTalk, tmp_path: Path) -> None:
    """Where a session that was named or imported has the name, the new one has a name beside it."""
    talk.answered(Script(), "turn", ASKED, "--session", "t000006")
    line = json.dumps(import_line(user=USER, session="t000005", query="Older?", response="Yes."))
    (tmp_path / "lines.jsonl").write_text(line, encoding="utf-8")
    assert talk.panda("import", str(tmp_path / "lines.jsonl"))[0] == 0
    shutil.rmtree(talk.layout.of(USER).session("t000005").parent)  # as an import of many leaves it
    names = [talk.answered(Script(), "turn", ASKED).metadata.session_id for _ in range(3)]
    assert names == ["t000005-2", "t000006-2", "t000007"]


def test_one_question_has_one_answer(tmp_path: Path) -> None:
    """The same question asked three times without --session ends the same each time, word for word."""
    root = tmp_path / "panda-system-docs"
    note = Layout(root).of("default").knowledge / "bees.md"
    note.parent.mkdir(parents=True)
    note.write_text("# Bees\n\nThe bees cost 240 euros in May.\n", encoding="utf-8")
    words = [PANDA, "turn", "How much did the bees cost?", "--root", str(root), "--quiet"]
    ends = [subprocess.run(words, capture_output=True, text=True, check=False) for _ in range(3)]
    assert len({(end.returncode, end.stdout) for end in ends}) == 1
    assert ends[0].returncode in (0, 21)
