"""Whoever is named must be there, or be made by name; the user default is made unasked."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api import LAPTOPS, ModelServer, Panda, tree
from tests.history.exports import chatgpt, said, write_export
from tests.script import Script

ASKED = "How old is it?"
ASKS_BACK = Script(reflection={"decision": "CLARIFY", "question": "Which one?"})
WRITING = (
    ("turn", ASKED),
    ("turn", "--dry-run", ASKED),
    ("gather", "--query", ASKED),
    ("batch", "queries.jsonl"),
    ("batch", "queries.jsonl", "--dry-run"),
    ("memory", "set", "budget", "900"),
    ("memory", "merge", "store/users/ann/memory.jsonl"),
    ("import", "--from", "chatgpt", "export.zip"),
    ("import", "--from", "chatgpt", "export.zip", "--dry-run"),
    ("mcp",),
)
ONLY_THERE = (
    ("session", "close", "tea"),
    ("forget", "--yes", "budget"),
    ("memory", "reflect"),
    ("index", "rebuild"),
)


@pytest.fixture
def panda(tmp_path: Path) -> Iterator[Panda]:
    """A store of user ann, a model on loopback that asks back, and files to take in."""
    server = ModelServer(ASKS_BACK)
    project = Panda(tmp_path, LAPTOPS)
    project.write("models.yaml", server.models())
    project.write("queries.jsonl", json.dumps({"id": "a", "query": ASKED}) + "\n")
    project.write("store/users/ann/memory.jsonl", "")
    write_export(tmp_path / "export.zip", chatgpt(said("user", "Tea?"), said("assistant", "Assam.")))
    try:
        yield project
    finally:
        server.close()


@pytest.mark.parametrize("words", [*WRITING, *ONLY_THERE], ids=" ".join)
def test_a_user_who_is_not_there(words: tuple[str, ...], panda: Panda) -> None:
    """A name that is mistyped, by flag or variable, ends with 2 and the nearest; nothing is written."""
    before = tree(panda.store)
    for ended, where in (
        (panda(*words, "--user", "anne"), "--user"),
        (panda(*words, PANDA_USER="anne"), "PANDA_USER"),
    ):
        assert ended.code == 2
        assert f"error: there is no user 'anne' in {panda.store}" in ended.err
        assert f"where: {where}\n" in ended.err
        how = " add --new-user to make anne" if words in WRITING else ""
        assert f"fix: did you mean ann?{how}\n" in ended.err
    assert tree(panda.store) == before


def test_the_line_of_a_file_is_named(panda: Panda) -> None:
    """A user whom panda.toml names must be there too; the error has file, line and key."""
    panda.write("panda.toml", 'session = "tea"\nuser = "bob"\n')
    for words in (("turn", ASKED), ("list",)):
        error = panda(*words, "--json").error
        assert error["where"] == f"{panda.home / 'panda.toml'}:2 (user)"
        assert "users are ann" in error["fix"]
    assert panda("turn", ASKED, "--user", "ann").code == 21


def test_a_user_is_made_by_name(panda: Panda) -> None:
    """With --new-user whoever is named, however, is made, which is told; where there is one, nothing is."""
    first = panda("turn", ASKED, "--user", "bob", "--new-user", "--json")
    assert (first.code, "user bob is new\n" in first.err) == (21, True)
    assert first.data["turn"] == 1
    again = panda("turn", ASKED, "--user", "bob", "--new-user")
    assert (again.code, "is new" in again.err) == (21, False)
    panda.write("panda.toml", 'user = "cleo"\n')
    assert "user cleo is new\n" in panda("memory", "set", "budget", "900", "--new-user").err
    assert len(panda("memory", "list").rows) == 1
    assert panda("init", "--new-user", PANDA_USER="dora").code == 0
    assert panda("list", PANDA_USER="dora").code == 0
    assert panda.problems() == []


def test_a_directory_made_by_hand_is_a_user(panda: Panda) -> None:
    """Whoever has notes in users/NAME/knowledge is there."""
    panda.write("store/users/eve/knowledge/tea.md", "# Tea\n\nAssam.\n")
    assert panda("turn", ASKED, "--user", "eve").code == 21


def test_the_default_user_is_made_unasked(panda: Panda) -> None:
    """Nobody need make the user default, named or not."""
    assert panda("list", "--user", "default").code == 0
    assert panda("turn", ASKED, "--user", "default").code == 21
    assert panda("turn", ASKED).code == 21
    assert [row.split("\t")[2] for row in panda("list").rows] == ["t000001", "t000002"]


def test_a_store_without_users(tmp_path: Path) -> None:
    """If no name is near, the error says who is there and how a user is made."""
    panda = Panda(tmp_path)
    assert panda("init").code == 0
    advice = "fix: users are default; add --new-user to make bob"
    assert advice in panda("turn", ASKED, "--user", "bob").err
    assert "fix: users are default" in panda("list", "--user", "bob").err


def test_the_users_of_a_batch_are_checked_first(panda: Panda) -> None:
    """A line with a user who is not there is named before anything runs; --new-user makes them all."""
    users = ("ann", "bob", "cleo")
    lines = [{"id": user, "query": ASKED, "user": user, "expect": {"exit_code": 21}} for user in users]
    lines[0] |= {"session": "tea"}
    panda.write("queries.jsonl", "\n".join(["", *map(json.dumps, lines)]))
    before = tree(panda.store)
    for words in (("batch", "queries.jsonl"), ("batch", "queries.jsonl", "--dry-run")):
        error = panda(*words, "--json").error
        assert error["message"].startswith("there is no user 'bob'")
        assert error["where"] == "queries.jsonl:3"
        assert "--new-user" in error["fix"]
    assert tree(panda.store) == before
    ended = panda.process("batch", "queries.jsonl", "--new-user", "--save", "--json")
    assert ended.code == 0
    assert "user bob is new\nuser cleo is new\n" in ended.err
    sessions = {user: panda("list", "--user", user).rows[-1].split("\t")[2] for user in users}
    assert sessions == {"ann": "tea", "bob": "t000001", "cleo": "t000001"}


def test_an_import_makes_the_users_that_it_names(panda: Panda) -> None:
    """The users of JSON lines are made and told, whoever is named beside."""
    line = {"session": "tea", "at": "2026-01-04T14:30:00Z", "query": "Tea?", "response": "Assam."}
    users = ("ann", "bob", "cleo")
    panda.write("lines.jsonl", "\n".join(json.dumps({"user": user, **line}) for user in users))
    dry = panda("import", "lines.jsonl", "--dry-run", "--json", PANDA_USER="zoe")
    assert (dry.code, dry.data["new_users"]) == (0, ["bob", "cleo"])
    assert not (panda.store / "users" / "bob").exists()
    ended = panda("import", "lines.jsonl", "--json", PANDA_USER="zoe")
    assert (ended.code, ended.data["new_users"]) == (0, ["bob", "cleo"])
    assert "user bob is new\nuser cleo is new\n" in ended.err
    assert panda("import", "lines.jsonl", "--json").data["new_users"] == []
    export = ("import", "--from", "chatgpt", "export.zip", "--user", "dora", "--new-user", "--json")
    assert panda(*export).data["new_users"] == ["dora"]
