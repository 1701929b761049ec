"""The log of `llm`, written by llm itself: its newer message store, and the older table of responses."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import llm
import pytest
import sqlite_utils
from llm import migrations

from tests.api import Panda
from tests.history.exports import exchanges, saved_turns

_MIGRATIONS: Any = migrations  # its functions have no types


class Echo(llm.Model):
    """Says the prompt backwards; asks for a sum first, if it has tools."""

    model_id = "echo"
    supports_tools = True
    attachment_types = {"image/png"}  # noqa: RUF012  # as llm declares it

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any = None) -> Iterator[str]:
        if prompt.tools and not prompt.tool_results:
            response.add_tool_call(llm.ToolCall(name="add", arguments={"a": 2, "b": 3}, tool_call_id="t1"))
            yield ""
        elif prompt.tool_results:
            yield f"The sum is {prompt.tool_results[0].output}"
        else:
            yield (prompt.prompt or "")[::-1]


def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log as llm writes it: a conversation of two, a picture, a file, a tool."""
    path = tmp_path_factory.mktemp("llm") / "logs.db"
    database = sqlite_utils.Database(path)
    _MIGRATIONS.migrate(database)
    conversation = Echo().conversation()
    response: Any
    for query in ("abc", "d\x00\x1b[2Jf"):
        response = conversation.prompt(query)
        response.text()
        response.log_to_db(database)
    picture = llm.Attachment(type="image/png", content=b"\x89PNG")
    for more in ({"attachments": [picture]}, {"fragments": ["hay " * 50]}, {"system": "Be brief."}):
        response = Echo().prompt("xyz", **more)
        response.text()
        response.log_to_db(database)
    chain: Any = Echo().conversation(tools=[add]).chain("What is 2+3?")
    chain.text()
    chain.log_to_db(database)
    database.close()
    return path


def take_in(panda: Panda, path: Path) -> dict[str, Any]:
    """Import a log and return what the command says of it."""
    data = panda.json("import", "--from", "llm", str(path))
    assert isinstance(data, dict)
    return data


def sessions(panda: Panda) -> list[list[tuple[str, str]]]:
    """Return query and reply of each turn, by session, in order of time."""
    by_session: dict[str, list[tuple[str, str]]] = {}
    for turn in saved_turns(panda):
        by_session.setdefault(turn.session, []).append((turn.query, turn.response))
    return list(by_session.values())


def test_the_message_store(panda: Panda, written: Path) -> None:
    """What was typed and answered; a tool's call joins question and answer; files are counted."""
    data = take_in(panda, written)
    assert data["left_out"] == {"picture": 1, "file": 1, "tool message": 2}
    assert data["created"] == 6
    assert sorted(sessions(panda)) == [
        [("What is 2+3?", "The sum is 5")],
        [("abc", "cba"), ("d\x00\x1b[2Jf", "fJ2[\x1b\x00d")],
        *[[("xyz", "zyx")]] * 2,
        [("xyz", f"zyx\n{' yah' * 50}")],
    ]


def older(path: Path, until: str) -> sqlite_utils.Database:
    """A log as the llm of some time ago made it."""
    database = sqlite_utils.Database(path)
    for migration in _MIGRATIONS.MIGRATIONS:
        migration(database)
        if migration.__name__.startswith(until):
            break
    return database


def response(number: int, conversation: str | None, **more: Any) -> dict[str, Any]:
    return {
        "id": f"01aaaaaaaaaaaaaaaaaaaaaaa{number}",
        "model": "gpt-4",
        "prompt": f"Question {number}?",
        "response": f"Answer {number}.",
        "conversation_id": conversation,
        "datetime_utc": f"2023-08-0{number}T10:00:00.123456",
        **more,
    }


@pytest.mark.parametrize("until", ["m010", "m014", "m022"])
def test_the_table_of_responses(panda: Panda, until: str, tmp_path: Path) -> None:
    """Of every age: one row a call, by conversation; a call that stands alone is a conversation."""
    path = tmp_path / "logs.db"
    database = older(path, until)
    database.table("conversations").insert({"id": "01conv", "name": "Talk", "model": "gpt-4"})
    rows = [
        response(1, "01conv"),
        response(2, None),
        response(3, "01conv"),
        response(4, "01conv", response=None),
    ]
    database.table("responses").insert_all(rows)
    database.close()
    assert take_in(panda, path)["left_out"] == {"query without a reply": 1}
    turns = saved_turns(panda)
    assert [(turn.session, turn.query, turn.response) for turn in turns] == [
        ("llm-01conv", "Question 1?", "Answer 1."),
        ("llm-01aaaaaaaaaaaaaaaaaaaaaaa2", "Question 2?", "Answer 2."),
        ("llm-01conv", "Question 3?", "Answer 3."),
    ]
    assert turns[1].at == "2023-08-02T10:00:00Z"


def test_an_empty_reply_is_not_joined_to_the_next_question(panda: Panda, tmp_path: Path) -> None:
    """The question that got it is no turn."""
    path = tmp_path / "logs.db"
    database = older(path, "m022")
    database.table("responses").insert_all([response(1, "c", response=""), response(2, "c")])
    database.close()
    take_in(panda, path)
    assert exchanges(panda) == [("Question 2?", "Answer 2.")]


def test_both_generations_in_one_log(panda: Panda, written: Path, tmp_path: Path) -> None:
    """A call that stands in both tables comes in once, and a conversation goes on from one to the other."""
    path = Path(shutil.copy(written, tmp_path / "logs.db"))
    database = sqlite_utils.Database(path)
    first = next(iter(database.query("SELECT * FROM turns ORDER BY id")))
    rows = [response(1, first["thread_id"]), response(2, None, id=first["id"])]
    database.table("responses").insert_all(rows, alter=True)
    database.close()
    take_in(panda, path)
    saved = sessions(panda)
    assert sorted(map(len, saved)) == [1, 1, 1, 1, 3]
    assert saved[0][:2] == [("Question 1?", "Answer 1."), ("abc", "cba")]


def test_values_of_other_types_are_no_text(panda: Panda, tmp_path: Path) -> None:
    """SQLite takes anything: bytes, numbers, text that is no UTF-8, times that are none."""
    path = tmp_path / "logs.db"
    database = older(path, "m022")
    database.table("responses").insert_all(
        [
            response(1, "c", prompt=b"\xff"),
            response(2, "c", datetime_utc="soon"),
            response(3, "c", response=7),
        ]
    )
    database.execute("UPDATE responses SET response = CAST(x'61ff62' AS TEXT) WHERE prompt = 'Question 3?'")
    database.conn.commit()
    database.close()
    data = take_in(panda, path)
    assert data["left_out"] == {"reply without a query": 1, "exchange without a time": 1}
    assert exchanges(panda) == [("Question 3?", "a\ufffdb")]


def refused(panda: Panda, path: Path, message: str) -> None:
    """Check that a log is refused with these words, and that nothing came in."""
    ended = panda("import", "--from", "llm", str(path), "--json")
    assert ended.code == 2, ended.out
    assert message in ended.error["message"]
    assert saved_turns(panda) == []


def test_what_is_no_log_is_refused(panda: Panda, written: Path, tmp_path: Path) -> None:
    """Another database, a file that is none, one that lacks a column, one that is torn."""
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database, database:
        database.execute("CREATE TABLE a (b)")
    lacking = tmp_path / "lacking.db"
    with closing(sqlite3.connect(lacking)) as database, database:
        database.execute("CREATE TABLE responses (id, prompt)")
    text = panda.write(
        "text.db", "SQLite format 3\0 no database at all, but long enough to be looked at " * 20
    )
    data = bytearray(written.read_bytes())
    data[8192:40_000] = b"\xff" * (40_000 - 8192)
    torn = panda.write("torn.db", bytes(data))
    refused(panda, other, "neither the table responses nor the table turns")
    refused(panda, text, "file is not a database")
    refused(panda, lacking, "lacks conversation_id, datetime_utc, response")
    refused(panda, torn, "the log does not read")


def test_a_log_that_is_in_use_is_only_read(panda: Panda, written: Path) -> None:
    """llm may write meanwhile; nothing is written into its directory."""
    path = Path(shutil.copy(written, panda.write("logs/logs.db", b"")))
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert take_in(panda, path)["created"] == 6
    names = [entry.name for entry in path.parent.iterdir() if "journal" not in entry.name]
    assert names == ["logs.db"]


@pytest.mark.parametrize("name", ["responses", "Attachments"])
def test_rows_without_end_are_refused(panda: Panda, written: Path, tmp_path: Path, name: str) -> None:
    """A view in the place of a table, which may have rows without end, is refused by name."""
    path = Path(shutil.copy(written, tmp_path / "logs.db"))
    with closing(sqlite3.connect(path)) as database, database:
        columns = ", ".join(f'NULL AS "{row[1]}"' for row in database.execute(f"PRAGMA table_info({name})"))
        database.execute("PRAGMA foreign_keys = off")
        database.execute(f"DROP TABLE {name}")
        database.execute(
            f"CREATE VIEW {name} AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
            f" SELECT {columns} FROM n"
        )
    refused(panda, path, f"{name.lower()} is no table in it")
