"""`panda import` of other programs' exports: found out, checked, written once, killed at any moment, told."""

import json
import os
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda, tree
from tests.history.exports import chatgpt, claude, said, saved_turns, write_export

CHATGPT = "chatgpt-{:08x}-0000-4000-8000-000000000000"


def talk(number: int, *texts: str) -> dict[str, Any]:
    """Return a conversation in which user and assistant say these texts in turn."""
    messages = [said("user" if at % 2 == 0 else "assistant", text) for at, text in enumerate(texts)]
    return chatgpt(*messages, number=number)


def queries(panda: Panda) -> list[str]:
    """Return the queries of ann's turns."""
    return [turn.query for turn in saved_turns(panda)]


@pytest.mark.parametrize("name", ["conversations.json", "export.zip"])
def test_conversations_become_sessions_in_order_of_time(name: str, panda: Panda) -> None:
    """The file begins with the newest; numbers go by time, and each conversation by its own order."""
    write_export(panda.home / name, talk(2, "C", "c", "D", "d"), talk(1, "A", "a", "B", "b"))
    data = panda.json("import", name)
    first, second = (CHATGPT.format(number) for number in (1, 2))
    assert [(turn.number, turn.session, turn.query, turn.response) for turn in saved_turns(panda)] == [
        (1, first, "A", "a"),
        (2, first, "B", "b"),
        (3, second, "C", "c"),
        (4, second, "D", "d"),
    ]
    counts = (data["from"], data["created"], data["unchanged"], data["sessions"])
    assert counts == ("chatgpt", 4, 0, [first, second])
    assert (data["first"], data["last"]) == ("2023-11-15T22:14:20Z", "2023-11-16T22:16:20Z")
    assert panda.problems() == []


def test_the_same_export_again_changes_nothing(panda: Panda) -> None:
    """And one that has grown since adds what is new alone."""
    export = write_export(panda.home / "a.json", talk(1, "A", "a"), talk(2, "B", "b"))
    panda.json("import", "a.json")
    before = tree(panda.user_directory / "turns")
    again = panda.json("import", "a.json")
    assert (again["created"], again["unchanged"], again["sessions"]) == (0, 2, [])
    assert tree(panda.user_directory / "turns") == before
    write_export(export, talk(2, "B", "b"), talk(1, "A", "a", "A2", "a2"))
    more = panda.json("import", "a.json")
    assert (more["created"], more["unchanged"]) == (1, 2)
    newest = saved_turns(panda)[2]
    assert (newest.session, newest.query, newest.response) == (CHATGPT.format(1), "A2", "a2")
    assert panda("session", "verify").code == 0


def test_what_was_said_twice_is_two_and_a_conversation_that_stands_twice_is_one(panda: Panda) -> None:
    """Whenever it comes in."""
    untimed: dict[str, Any] = {"untimed": True}
    twice = chatgpt(*[said("user", "go on", **untimed), said("assistant", "ok", **untimed)] * 2)
    write_export(panda.home / "a.json", twice, twice)
    for created in (2, 0):
        assert panda.json("import", "a.json")["created"] == created
    assert queries(panda) == ["go on", "go on"]


def test_the_kind_is_found_out_or_told(panda: Panda) -> None:
    """By the first bytes; the wrong kind is refused with the right one."""
    write_export(panda.home / "claude.zip", claude(("human", "Hi"), ("assistant", "Hello")))
    assert panda.json("import", "claude.zip")["from"] == "claude"
    wrong = panda("import", "--from", "chatgpt", "claude.zip")
    assert wrong.code == 2
    assert "it is an export of claude" in wrong.err
    assert "--from claude" in wrong.err
    assert panda("import", "--from", "bard", "claude.zip").code == 2
    for text in ("[1, 2]", "[]", "[[", '["x"]'):
        panda.write("b.json", text)
        assert panda("import", "b.json").code == 2, text
    write_export(panda.home / "none.json")
    assert panda.json("import", "--from", "chatgpt", "none.json")["created"] == 0


def test_a_list_in_an_object_and_split_lists(panda: Panda) -> None:
    """As some exports have it: {"conversations": [...]}, and conversations-000.json and so on in a .zip."""
    panda.write("a.json", json.dumps({"account": 1, "conversations": [talk(1, "A", "a")]}))
    assert panda("import", "--from", "chatgpt", "a.json").code == 0
    with zipfile.ZipFile(panda.home / "b.zip", "w") as archive:
        archive.writestr("data/conversations-000.json", json.dumps([talk(2, "B", "b")]))
        archive.writestr("data/conversations-001.json", "\ufeff " + json.dumps([talk(3, "C", "c")]))
    assert panda("import", "b.zip").code == 0
    assert queries(panda) == ["A", "B", "C"]


def test_stdin_is_read_too(panda: Panda) -> None:
    """A pipe is kept in a file meanwhile, since it is read twice; errors call it <stdin>."""
    export = json.dumps([talk(1, "A", "a")])
    words = ("import", "-", "--dry-run", "--json")
    assert panda.process(*words, stdin=export).data["created"] == 1
    torn = panda.process(*words, stdin=export[:-20])
    assert (torn.code, torn.error["where"]) == (2, "<stdin>")
    lines = panda(*words, stdin="{}\n")
    assert (lines.code, lines.error["where"]) == (2, "<stdin>:1 (user)")


def test_one_odd_conversation_stops_nothing(panda: Panda) -> None:
    """What cannot come in is counted, told with its conversation, and listed; the others come in."""
    odd = [5, {"mapping": {}, "title": "x"}, {**talk(9, "Z", "z"), "title": ["list"]}]
    torn = chatgpt(said("user", "A"), {"author": None}, said("user", "B"), said("assistant", "b"), number=3)
    write_export(panda.home / "a.json", talk(1, "A", "a"), *odd, torn)
    ended = panda("import", "--from", "chatgpt", "a.json")
    assert ended.code == 0
    problem = "conversation 4: Expected `str | null`, got `array` - at `$.title`"
    assert f"damaged conversation: {problem}" in ended.err
    assert "left out: damaged conversation: 3, damaged message: 1, query without a reply: 1" in ended.err
    assert queries(panda) == ["A", "B"]
    item = {"kind": "damaged message", "title": "Talk 3", "count": 1, "why": None}
    listed = panda.json("import", "--from", "chatgpt", "a.json")["not_imported"]
    assert {**item, "session": CHATGPT.format(3)} in listed


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-30],
        lambda data: data + b"x",
        lambda data: data.replace(b'"A"', b'"\xff"'),
        lambda data: b"[",
    ],
)
def test_a_file_that_is_cut_short_changes_nothing(damage: Any, panda: Panda) -> None:
    """Everything is checked first, whatever came before the damage."""
    export = write_export(panda.home / "a.json", *(talk(n, "A", "a") for n in range(1, 40)))
    export.write_bytes(damage(export.read_bytes()))
    ended = panda("import", "--from", "chatgpt", str(export))
    assert (ended.code, "it does not read" in ended.err, str(export) in ended.err) == (2, True, True)
    assert saved_turns(panda) == []


def test_damaged_archives_are_refused(panda: Panda) -> None:
    """Cut short, changed, without conversations: named, with the way out."""
    whole = write_export(panda.home / "a.zip", talk(1, "A" * 5_000, "a")).read_bytes()
    changed = bytearray(whole)
    changed[whole.index(b"conversations.json") + 40] ^= 0xFF
    with zipfile.ZipFile(panda.home / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    panda.write("cut.zip", whole[:200])
    panda.write("changed.zip", bytes(changed))
    for name in ("cut.zip", "changed.zip", "other.zip"):
        ended = panda("import", name)
        assert (ended.code, name in ended.err, "fix:" in ended.err) == (2, True, True), ended.err


def test_a_text_that_is_too_long_is_left_out(panda: Panda) -> None:
    """A reply or query of 100,001 characters: told; what it stands beside comes in."""
    long = "a" * 100_001
    write_export(panda.home / "a.json", talk(1, "A", long, long, "b", "C", long[:-1]))
    data = panda.json("import", "a.json")
    assert (data["created"], data["left_out"]) == (1, {"exchange that is too long": 2})


def test_a_dry_run_tells_and_writes_nothing(panda: Panda) -> None:
    """Of an export and of JSON lines."""
    write_export(panda.home / "a.json", talk(1, "A", "a", "B"), talk(2, "C", "c"))
    line = {"user": "bob", "session": "s", "at": "2026-01-01", "query": "Q", "response": "R"}
    panda.write_lines("turns.jsonl", line)
    before = tree(panda.home)
    ended = panda("import", "a.json", "--dry-run")
    assert ended.code == 0
    assert [row.split("\t") for row in ended.rows] == [
        ["new turns", "2"],
        ["turns there already", "0"],
        ["conversations", "2"],
        ["sessions with new turns", "2"],
        ["first query", "2023-11-15T22:14:20Z"],
        ["last query", "2023-11-16T22:14:20Z"],
        ["left out: query without a reply", "1"],
    ]
    assert panda.json("import", "turns.jsonl", "--dry-run")["created"] == 1
    assert tree(panda.home) == before


def test_what_came_in_is_found_listed_exported(panda: Panda) -> None:
    """The index, the list, a session that goes on, and queries to ask again, of which nothing is expected."""
    write_export(panda.home / "a.json", talk(1, "How deep is hamster bedding?", "At least 20 cm."))
    assert panda("import", "a.json").code == 0
    assert "turn:1" in panda("index", "search", "hamster bedding").out
    assert CHATGPT.format(1) in panda("list").out
    assert CHATGPT.format(1) in panda("session", "list").out
    line = json.loads(panda("export", "1", "--as", "queries").out)
    assert (line["query"], "expect" in line) == ("How deep is hamster bedding?", False)


def test_what_was_forgotten_does_not_come_back(panda: Panda) -> None:
    """It counts as there already."""
    write_export(panda.home / "a.json", talk(1, "My password is 1234", "ok", "B", "b"))
    assert panda("import", "a.json").code == 0
    assert panda("forget", "1", "--yes").code == 0
    again = panda.json("import", "a.json")
    assert (again["created"], again["unchanged"], again["left_out"]) == (0, 1, {"forgotten turn": 1})


def test_killed_at_any_write_and_again_each_turn_is_there_once(panda: Panda, tmp_path: Path) -> None:
    """Whatever was done before the kill; no temporary stays, nothing is wrong with the store."""
    write_export(panda.home / "a.json", talk(1, "A", "a", "B", "b"), talk(2, "C", "c"))
    whole = Panda(tmp_path / "whole", user="ann")
    projects = tree(panda.home)

    def fill(project: Panda) -> Panda:
        for name, data in projects.items():
            project.write(name, data)
        project.user_directory.mkdir(parents=True)
        return project

    kills = fill(whole).kills("import", "a.json")
    assert len(kills) > 3
    for number, kill in enumerate(kills[::2]):
        killed = fill(Panda(tmp_path / f"killed-{number}", user="ann"))
        killed.run_killed(kill, "import", "a.json")
        assert killed("import", "a.json").code == 0
        turns = saved_turns(killed)
        assert sorted(turn.query for turn in turns) == ["A", "B", "C"]
        assert [turn.query for turn in turns if turn.session == CHATGPT.format(1)] == ["A", "B"]
        assert [path.name for path in killed.store.rglob(".*.panda.tmp*") if "writing" not in path.name] == []
        assert killed.problems() == []


def count_turns(panda: Panda) -> int:
    """Count the turn directories of ann."""
    turns = panda.user_directory / "turns"
    return sum(entry.name.startswith("turn_") for entry in os.scandir(turns)) if turns.is_dir() else 0


def wait_for_turns(panda: Panda, least: int, process: Any) -> None:
    """Wait until so many turns are there, or the process has ended."""
    deadline = time.monotonic() + 60
    while count_turns(panda) < least and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.002)


def test_a_real_process_killed_midway(panda: Panda) -> None:
    """kill -9 while batches are written, several times, then to the end: each turn once."""
    write_export(panda.home / "a.json", *(talk(n, "A", "a") for n in range(1, 251)))
    seen = set()
    for least in (1, 201):
        with panda.running("import", "a.json") as process:
            wait_for_turns(panda, least, process)
        seen.add(count_turns(panda))
    assert seen & set(range(1, 250)), seen
    data = panda.json("import", "a.json")
    assert data["created"] + data["unchanged"] == count_turns(panda) == 250
    assert panda.json("import", "a.json", "--dry-run")["created"] == 0
    assert panda.problems() == []


def test_a_turn_that_begins_meanwhile_gets_a_number_of_its_own(panda: Panda) -> None:
    """Numbers that an import gives are nobody else's, however many batches it writes."""
    write_export(panda.home / "a.json", *(talk(n, "A", "a") for n in range(1, 221)))
    with panda.running("import", "a.json") as process:
        wait_for_turns(panda, 1, process)
        number = panda.turn("Who are you?").number
        assert process.wait() == 0
    turns = saved_turns(panda)
    assert [turn.number for turn in turns] == list(range(1, 222))
    assert [turn.number for turn in turns if turn.query == "Who are you?"] == [number]
