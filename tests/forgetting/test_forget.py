"""`panda forget`: what a key, a node, a turn or a text names is in no file any more; nothing else goes."""

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.api import LAPTOPS, Panda, digest, tree
from tests.forgetting.traces import MARK, assert_sound, copy_project, holding, make_project
from tests.store_files import import_line, write_note, write_visit

SECRET = "hunter2-zebra"
QUOTED = 'p"w\\d é\u2019s 77'
DERIVED = ("indexes/", "users/ann/memory")


@pytest.fixture
def ann(tmp_path: Path) -> Panda:
    """A project without a turn."""
    return make_project(tmp_path / "project")


def import_turns(panda: Panda, *turns: tuple[str, str], user: str = "ann") -> None:
    """Save turns with these queries and replies, counted from 1."""
    lines = [import_line(user=user, turn=n, query=q, response=r) for n, (q, r) in enumerate(turns, 1)]
    panda.write_lines("turns.jsonl", *lines)
    assert panda("import", "turns.jsonl").code == 0


def memory_files(panda: Panda) -> str:
    """Return what the user's memory log and preferences hold."""
    names = ("memory.jsonl", "preferences.md")
    return "".join(
        path.read_text(encoding="utf-8") for path in panda.user_directory.rglob("*") if path.name in names
    )


@pytest.mark.parametrize("words", [("1",), ("--text", "-")])
def test_nothing_is_forgotten_unasked_without_a_terminal(tmp_path: Path, words: tuple[str, ...]) -> None:
    """In a script the command is wrong usage without --yes, and names that option; with it all goes."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    assert panda("forget", *words, "--dry-run", stdin="Lenovo").code == 0
    before = digest(panda.store, *DERIVED)
    refused = panda("forget", *words, stdin="Lenovo")
    assert refused.code == 2
    assert "error: no terminal to ask on: nothing was forgotten" in refused.err
    assert "--yes" in refused.err
    assert digest(panda.store, *DERIVED) == before
    assert panda("forget", *words, "--yes", stdin="Lenovo").code in (0, 3)
    assert digest(panda.store, *DERIVED) != before


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 2)])
def test_a_terminal_is_asked(ann: Panda, answer: str, code: int) -> None:
    """On a terminal the places are shown first, and only a yes forgets; no text of it is shown."""
    ann("memory", "set", "code", SECRET)
    master, slave = pty.openpty()
    os.write(master, f"{answer}\n".encode())
    words = [*ann.program, "forget", "code"]
    ended = subprocess.run(
        words, stdin=slave, capture_output=True, check=False, cwd=ann.home, env=ann.environ, text=True
    )
    os.close(slave)
    os.close(master)
    assert ended.returncode == code
    assert "for good? [y/N]" in ended.stderr
    assert SECRET not in ended.stderr + ended.stdout
    assert bool(holding(ann, SECRET)) == (code == 2)


def test_a_dry_run_changes_nothing(panda: Panda) -> None:
    """--dry-run lists every file that holds the text, and those that change with it, and writes nothing."""
    holders = {path for path in holding(panda, "4471-k") if path.startswith(str(panda.store))}
    before = tree(panda.store)
    data = panda.json("forget", "locker_code", "--dry-run")
    assert (data["dry_run"], data["left"]) == (True, [])
    assert {place["path"] for place in data["places"]} >= holders
    assert all(place["count"] > 0 for place in data["places"])
    assert tree(panda.store) == before


def test_a_turn_goes_as_a_whole(panda: Panda) -> None:
    """Of a turn number and mark remain; what quotes it elsewhere, its session and the memory forget it."""
    assert panda.turn("What is my locker code?", "--session", "talk").code == 0
    assert panda("forget", "--yes", "1").code == 0
    assert holding(panda, "4471-k") == []
    assert_sound(panda)
    assert sorted(path.name for path in panda.turn_file(1, ".").iterdir()) == ["context.md", "metadata.json"]
    assert "forgotten" in panda("list").out
    session = json.loads((panda.user_directory / "sessions" / "talk" / "session.json").read_bytes())
    assert [turn["turn"] for turn in session["turns"]] == [2, 3, 4, 5, 6]
    again = panda("replay", "1", "--mode", "rerun", "--json")
    assert (again.code, "what was asked in turn 1 was forgotten at" in again.out) == (3, True)
    assert panda("forget", "--yes", "1").code == 0
    assert (panda.user_directory / "turn_counter").read_text(encoding="utf-8") == "6\n"


def test_a_page_that_nothing_quotes_goes_alone(panda: Panda) -> None:
    """Its turn stays with its seal; and a text that could be a missing address takes no directory along."""
    page = write_visit(panda.user_directory, 2, "visit_page", {"title": "Tides"}, quality=0.9)
    assert panda("forget", "--yes", "visit:visit_page").code == 0
    assert not page.exists()
    assert panda.turn_file(2, "response.md").is_file()
    assert_sound(panda)
    panda("forget", "--yes", "--text", "none")
    assert panda.turn_file(2, "response.md").is_file()
    assert_sound(panda)


def test_a_page_goes_with_what_quotes_it(demo: Path, tmp_path: Path) -> None:
    """A visit is removed with the lines that name it as their only source; the store stays sound."""
    panda = Panda(tmp_path, demo, user="demo")
    assert panda("forget", "--yes", "visit:visit_abc123").code == 0
    assert panda.problems() == []
    assert not list(panda.turn_file(811, "webpage_cache").glob("bestbuy*"))
    step = panda.turn_file(811, "steps/step_01.json").read_text(encoding="utf-8")
    assert "Lenovo LOQ 15 with RTX 4050 @ $697" not in step


def test_a_dry_run_names_the_directory_of_a_page_and_every_file_that_changes(
    demo: Path, tmp_path: Path
) -> None:
    """The list has all that goes and changes, but for the marks in metadata and sessions."""
    panda = Panda(tmp_path, demo, user="demo")
    before = tree(panda.store)
    data = panda.json("forget", "visit:visit_abc123", "--dry-run")
    names = {str(Path(place["path"]).relative_to(panda.store)) for place in data["places"]}
    assert panda("forget", "--yes", "visit:visit_abc123").code == 0
    after = tree(panda.store)
    (page,) = (name for name in names if Path(name).parent.name == "webpage_cache")
    changed = {name for name, content in before.items() if after.get(name) != content}
    marked = {name for name in changed if Path(name).name in ("metadata.json", "session.json")}
    assert {name for name in changed - marked if not name.startswith(page)} <= names
    assert any(name.endswith("research.md") for name in names)


@pytest.mark.parametrize("words", [["locker_code"], ["--text", "4471-k"], ["1"]])
def test_killed_at_any_moment_it_is_ended_by_the_same_command(
    told: Path, tmp_path: Path, words: list[str]
) -> None:
    """kill -9 at writes all along: every file is whole, and the same command ends the work."""
    whole = copy_project(told, tmp_path / "whole")
    kills = whole.kills("forget", "--yes", *words)
    assert len(kills) > 15
    for kill in kills[:: len(kills) // 3]:
        panda = copy_project(told, tmp_path / f"{kill.write}{kill.is_torn}")
        panda.run_killed(kill, "forget", "--yes", *words)
        for path in panda.user_directory.rglob("*.json"):
            json.loads(path.read_bytes() or b"{}")
        again = panda("forget", "--yes", *words)
        assert again.code == 0, (kill, again.err)
        assert holding(panda, "4471-k") == [], kill
        assert_sound(panda)


def test_a_reader_sees_the_former_or_the_new_file(panda: Panda) -> None:
    """While it works, every read of a file gives whole content."""
    path = panda.turn_file(1, "calls.jsonl")
    former = path.read_bytes()
    contents = set()
    with panda.running("forget", "--yes", "locker_code") as process:
        while process.poll() is None:
            contents.add(path.read_bytes())
    assert process.returncode == 0
    assert path.read_bytes() != former
    assert contents <= {former, path.read_bytes()}


def test_a_running_turn_is_waited_for(panda: Panda) -> None:
    """While a session is locked nothing is changed, and the command ends with 75."""
    with panda.lock("users/ann/sessions/talk/lock"):
        assert panda("forget", "--yes", "locker_code", "--wait", "0").code == 75
    assert holding(panda, "4471-k")


def test_a_word_stays_where_it_was_not_told(ann: Panda) -> None:
    """A short value of a key goes from memory and the turns that told it; for others --text is told of."""
    import_turns(ann, ("Which whales are blue?", "The blue whale is blue."))
    ann("memory", "set", "favourite_color", "blue")
    before = ann.turn_file(1, "context.md").read_bytes()
    assert "short values and pieces of it need --text" in ann("forget", "favourite_color", "--dry-run").err
    assert ann.json("forget", "--yes", "favourite_color")["left"] == []
    assert ann.turn_file(1, "context.md").read_bytes() == before
    assert "blue" not in memory_files(ann)
    assert ann.problems() == []
    assert ann("forget", "--text", "blue", "--yes").code == 0
    assert b"blue" not in ann.turn_file(1, "context.md").read_bytes()


def test_the_values_of_others_stay(ann: Panda) -> None:
    """What another user said is left alone, unless the text itself is named."""
    import_turns(ann, (f"It is {SECRET}.", "Noted."))
    import_turns(ann, (f"Mine is {SECRET}.", "Noted."), user="ben")
    ben = ann.store / "users" / "ben" / "turns" / "turn_000001" / "context.md"
    ann("memory", "set", "code", SECRET)
    assert ann("forget", "--yes", "code", "1").code == 0
    assert SECRET in ben.read_text(encoding="utf-8")
    assert SECRET not in ann.turn_file(1, "context.md").read_text(encoding="utf-8")
    assert ann("forget", "--yes", "--text", SECRET).code == 0
    assert SECRET not in ben.read_text(encoding="utf-8")


def test_short_texts_are_words(ann: Panda) -> None:
    """A text of fewer than four characters is taken out only as a word of its own."""
    import_turns(ann, ("Is the cat in the catalogue?", "The cat concatenates."))
    assert ann("forget", "--yes", "--text", "cat").code == 0
    response = ann.turn_file(1, "response.md").read_text(encoding="utf-8")
    assert MARK.sub("*", response) == "The * concatenates."


def test_what_is_not_there_is_told(ann: Panda) -> None:
    """Beside a turn that goes, too: who misspells a password would believe that it is gone."""
    import_turns(ann, (f"It is {SECRET}.", "Noted."))
    ended = ann("forget", "1", "--text", "hunter2-zebre", "--dry-run")
    assert (ended.code, "the text of --text is nowhere" in ended.err) == (0, True)
    assert "nowhere" not in ann("forget", "1", "--text", SECRET, "--dry-run").err
    assert ann("memory", "set", "tea", "Assam").code == 0
    assert "nothing is left" not in ann("forget", "--yes", "tea").err
    assert "nothing is left of it" in ann("forget", "--yes", "tea").err


def test_notes_are_only_named(ann: Panda) -> None:
    """A note that holds the text is named and stays as it is; the command ends with 3."""
    import_turns(ann, (f"It is {SECRET}.", "Noted."))
    note = write_note(ann.user_directory, "router.md", f"# Router\n\n{SECRET}\n")
    ended = ann("forget", "--yes", "--text", SECRET, "--json")
    assert ended.code == 3
    assert [place["path"] for place in ended.data["left"]] == [str(note)]
    assert SECRET in note.read_text(encoding="utf-8")
    assert SECRET not in ann.turn_file(1, "context.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", [QUOTED, "4711-0815", "zwei Wörter: [ja]", "!../" * 30])
def test_values_of_any_spelling(ann: Panda, value: str) -> None:
    """Quotes, backslashes, accents and brackets hide nothing, in JSON, YAML and SQLite."""
    import_turns(ann, (f"The code is {value}, remember.", f"Noted: {value}"))
    ann("memory", "set", "door code", value)
    ann("index", "rebuild")
    assert holding(ann, value)
    assert ann("forget", "--yes", "door code").code == 0  # the imported turn says it too
    assert holding(ann, value) == []
    assert ann.problems() == []
    assert ann("index", "rebuild").code == 0


@pytest.mark.parametrize(("value", "kind"), [("90817", "number"), ("true", "boolean")])
def test_values_that_are_no_texts(ann: Panda, value: str, kind: str) -> None:
    """A number or a yes is taken from log and files."""
    import_turns(ann, ("My PIN is 90817.", "Noted."))
    ann("memory", "set", "pin", value, "--type", kind)
    assert ann("forget", "--yes", "pin").code == 0
    assert ann("memory", "list").out == ""
    assert value not in (ann.user_directory / "preferences.md").read_text(encoding="utf-8")
    assert ann.problems() == []


def test_only_the_text_goes_from_a_longer_statement(ann: Panda) -> None:
    """With --text the rest of what is remembered stays; an exclamation mark behind it changes nothing."""
    import_turns(ann, (f"It is {SECRET}!", f"Noted: {SECRET}"))
    ann("memory", "set", "router", f"in the cellar, {SECRET}")
    ann("memory", "set", "guest", SECRET)
    assert ann("forget", "--yes", "--text", f"{SECRET}!").code == 0
    assert MARK.sub("*", ann("memory", "get", "router").out) == "in the cellar, *\n"
    assert ann("memory", "get", "guest").code == 2
    assert holding(ann, SECRET) == []
    assert ann.problems() == []


def test_what_cannot_be_forgotten(ann: Panda) -> None:
    """Nothing of that name, or a note: 2, with a fix, and nothing is changed."""
    import_turns(ann, ("Hello.", "Hello."))
    before = digest(ann.store, *DERIVED)
    for words in (
        [],
        ["unknown_key"],
        ["99"],
        ["turn:99"],
        ["visit:none"],
        ["knowledge:router.md"],
        ["--text", "nowhere-at-all"],
        ["--text", " "],
        ["--text", "forgotten"],
    ):
        ended = ann("forget", "--yes", *words)
        assert (ended.code, ended.out) == (2, ""), words
        assert "fix: " in ended.err, words
    assert digest(ann.store, *DERIVED) == before


def test_versions_of_recipes_stay_as_they_are(recorded: Path, tmp_path: Path) -> None:
    """Prompts are nobody's words: neither the store's versions of recipes nor those of a run are changed."""
    panda = Panda(tmp_path / "project", recorded, user="demo")
    assert panda.turn("My kiln is blue.").number == 817
    assert panda("replay", "817").code == 0
    versions = [path for path in panda.store.rglob("logs/recipes") if path.is_dir()]
    before = [tree(path) for path in versions]
    assert any(b"kiln" in data for files in before for data in files.values())
    assert any(path.is_relative_to(panda.store / "runs") for path in versions)
    assert panda("forget", "--text", "kiln", "--yes").code == 0
    assert [tree(path) for path in versions] == before
