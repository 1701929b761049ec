"""`panda forget`: a secret that was told is found nowhere any more, byte by byte."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panda.cli.main import build_program
from panda.index.vectors import VectorStore
from panda.session.file import load_session
from panda.store.files import held_lock
from panda.store.layout import Layout
from panda.store.seals import seal_files
from tests.api import copy_models
from tests.builders import import_line
from tests.cli.programs import Ended, run_words
from tests.kills import Kill, kills_of, run_killed
from tests.stores import write_visit

PANDA = str(Path(sys.executable).with_name("panda"))
SECRET = "hunter2-zebra"
QUOTED = 'p"w\\d é\u2019s 77'
MARK = re.compile(rb"\[forgotten \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\]")

Shell = Callable[..., Ended]


class Place:
    """A store and its cache."""

    def __init__(self, base: Path) -> None:
        self.layout, self.cache = Layout(base / "store"), base / "cache" / "panda"
        self.environ = {**os.environ, "HOME": str(base), "XDG_CACHE_HOME": str(base / "cache")}

    def panda(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a command in a process of its own."""
        own = [PANDA, *words, "--root", str(self.layout.root), "--user", "ann"]
        return subprocess.run(own, input=stdin, capture_output=True, env=self.environ, check=False)

    def holding(self, *texts: str) -> list[str]:
        """The files of store and cache, models aside, that hold one of the texts in any form."""
        forms = [form.encode() for text in texts for form in _forms(text)]
        files = [path for place in (self.layout.root, self.cache) for path in place.rglob("*")]
        return [
            str(path)
            for path in files
            if path.is_file() and path.suffix != ".gguf" and any(one in path.read_bytes() for one in forms)
        ]

    def sound(self) -> None:
        """Check that nothing is wrong with the store, nothing is half done and no kept state is left."""
        checked = self.panda("validate")
        assert checked.returncode == 0, checked.stdout.decode()
        assert not (self.layout.root / "forgetting.json").exists()
        assert not list(self.cache.rglob("*.state"))
        assert self.panda("session", "verify").returncode == 0


def _forms(text: str) -> set[str]:
    coded = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return {text, text.lower(), *coded, *(json.dumps(one)[1:-1] for one in coded)}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which real turns were told a password and quote it; the model is that of all tests."""
    base = tmp_path_factory.mktemp("told")
    place = Place(base)
    copy_models(place.cache)
    place.layout.of("ann").home.mkdir(parents=True)
    for query in (f"My wifi password is {SECRET}.", "What is my wifi password?"):
        answered = place.panda("turn", query, "--session", "default")
        assert SECRET in answered.stdout.decode(), answered
    place.panda("replay", "1")
    VectorStore(place.layout).save({b"0" * 16: b"1" * 384})
    reports = place.cache / "reports"
    reports.mkdir()
    (reports / "panda-bug-1.txt").write_text(f"arguments: ['turn', 'it is {SECRET}']\n", encoding="utf-8")
    return base


@pytest.fixture
def place(told: Path, tmp_path: Path) -> Place:
    """A copy of that store."""
    shutil.copytree(told, tmp_path / "copy", ignore=shutil.ignore_patterns("*.gguf"))
    return Place(tmp_path / "copy")


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Commands in this process, on a store of imported turns."""
    root = tmp_path / "store"
    Layout(root).of("ann").home.mkdir(parents=True)

    def run(*words: str) -> Ended:
        environ = {"HOME": str(tmp_path)}
        return run_words(build_program(), [*words, "--root", str(root), "--user", "ann"], capsys, environ)

    return run


def _imports(tmp_path: Path, shell: Shell, *told: tuple[str, str]) -> Layout:
    lines = [import_line(user="ann", turn=n, query=q, response=r) for n, (q, r) in enumerate(told, 1)]
    (tmp_path / "turns.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    assert shell("import", str(tmp_path / "turns.jsonl")).code == 0
    return Layout(tmp_path / "store")


@pytest.mark.parametrize("words", [["wifi_password"], ["fact:said_t1_1"], ["--text", "-"]])
def test_a_password_is_nowhere(place: Place, words: list[str]) -> None:
    """After a key, its node or the text itself is forgotten no file of store or cache holds the password."""
    assert place.holding(SECRET)
    done = place.panda("forget", "--yes", *words, stdin=f"{SECRET}\n".encode())
    assert done.returncode == 0, done.stderr
    assert SECRET.encode() not in done.stdout + done.stderr
    assert place.holding(SECRET) == []
    assert not place.layout.vectors.exists()
    place.sound()
    assert MARK.search((place.layout.of("ann").turn(1) / "context.md").read_bytes())
    judged = place.panda("validate", "1-2", "--strict")
    assert (judged.returncode, judged.stdout.count(b"forgotten")) == (0, 0), judged.stdout
    assert place.panda("memory", "get", "wifi_password").returncode == 2
    assert b"[forgotten " in place.panda("memory", "history", "wifi_password").stdout


def test_parts_of_a_password_go_with_its_key(place: Place) -> None:
    """What a derived file made of a part of the password is gone too."""
    topics = (place.layout.of("ann").turn(1) / "index_summary.json").read_text(encoding="utf-8")
    place.panda("forget", "--yes", "wifi_password")
    assert place.holding(*SECRET.split("-")) == []
    assert "hunter2" in topics


def test_a_dry_run_changes_nothing(place: Place) -> None:
    """--dry-run lists every file that holds the text, with counts, and writes nothing."""
    before = {path: path.read_bytes() for path in place.layout.root.rglob("*") if path.is_file()}
    done = place.panda("forget", "wifi_password", "--dry-run", "--json")
    data = json.loads(done.stdout)["data"]
    assert (done.returncode, data["dry_run"], data["left"]) == (0, True, [])
    assert {one["path"] for one in data["places"]} == set(place.holding(SECRET))
    assert all(one["count"] > 0 for one in data["places"])
    assert {path: path.read_bytes() for path in place.layout.root.rglob("*") if path.is_file()} == before


def test_a_turn_goes_as_a_whole(place: Place) -> None:
    """Of a turn number and mark remain; what quotes it elsewhere, its session and the memory forget it."""
    assert place.panda("forget", "--yes", "1").returncode == 0
    assert place.holding(SECRET) == []
    place.sound()
    left = sorted(path.name for path in place.layout.of("ann").turn(1).directory.iterdir())
    assert left == ["context.md", "metadata.json"]
    assert b"forgotten" in place.panda("list").stdout
    session = load_session(place.layout.of("ann"), "default")
    assert session is not None
    assert [one.turn for one in session.turns] == [2]
    again = place.panda("replay", "1", "--mode", "rerun", "--json")
    assert (again.returncode, b"what was asked in turn 1 was forgotten at" in again.stdout) == (3, True)
    assert place.panda("forget", "--yes", "1").returncode == 0
    assert place.layout.of("ann").turn_counter.read_text(encoding="utf-8") == "2\n"


def test_a_page_that_nothing_quotes_goes_alone(place: Place) -> None:
    """Its turn stays with its seal; and a text that could be a missing address takes no directory along."""
    turn = place.layout.of("ann").turn(2).directory
    page = write_visit(place.layout, 2, "visit_page", {"title": "Tides"}, quality=0.9, user="ann")
    metadata = json.loads((turn / "metadata.json").read_text(encoding="utf-8"))
    metadata["seal"] = seal_files(turn, metadata)
    (turn / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    assert place.panda("forget", "--yes", "visit:visit_page").returncode == 0
    assert not page.exists()
    assert (turn / "response.md").is_file()
    place.sound()
    place.panda("forget", "--yes", "--text", "none")
    assert (turn / "response.md").is_file()
    place.sound()


def _forget(base: str, words: list[str]) -> None:
    """The command, in this process."""
    place = Place(Path(base))
    from panda.cli.boundary import run

    run(
        build_program(),
        ["forget", "--yes", *words, "--root", str(place.layout.root), "--user", "ann"],
        place.environ,
    )


@pytest.mark.parametrize("words", [["wifi_password"], ["--text", SECRET], ["1"]])
def test_killed_at_any_moment_it_is_ended_by_the_same_command(
    told: Path, tmp_path: Path, words: list[str]
) -> None:
    """kill -9 at writes all along: every file is whole, and the same command ends the work."""
    shutil.copytree(told, tmp_path / "a", ignore=shutil.ignore_patterns("*.gguf"))
    kills = list(kills_of(_forget, str(tmp_path / "a"), words))
    assert len(kills) > 15
    for kill in kills[:: len(kills) // 3]:
        base = tmp_path / f"k{kill.write}{kill.torn}"
        shutil.copytree(told, base, ignore=shutil.ignore_patterns("*.gguf"))
        run_killed(Kill(kill.write, kill.torn), _forget, str(base), words)
        place = Place(base)
        for path in place.layout.users.rglob("*.json"):
            json.loads(path.read_bytes() or b"{}")
        again = place.panda("forget", "--yes", *words)
        assert again.returncode == 0, (kill, again.stderr)
        assert place.holding(SECRET) == [], kill
        place.sound()


def test_a_reader_sees_the_former_or_the_new_file(place: Place) -> None:
    """While it works, every read of a file gives whole content."""
    path = place.layout.of("ann").turn(2) / "calls.jsonl"
    former = path.read_bytes()
    with subprocess.Popen(
        [PANDA, "forget", "--yes", "wifi_password", "--root", str(place.layout.root), "--user", "ann"],
        env=place.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        seen = set()
        while process.poll() is None:
            seen.add(path.read_bytes())
    assert process.returncode == 0
    assert seen <= {former, path.read_bytes()}


def test_a_running_turn_is_waited_for(place: Place) -> None:
    """While a session is locked nothing is changed, and the command ends with 75."""
    with held_lock(place.layout.of("ann").session_lock("default"), holder="panda turn", wait_seconds=0):
        assert place.panda("forget", "--yes", "wifi_password", "--wait", "0").returncode == 75
    assert place.holding(SECRET)


def test_a_word_stays_where_it_was_not_told(tmp_path: Path, shell: Shell) -> None:
    """A short value of a key goes from memory and the turns that told it; for others --text is told of."""
    layout = _imports(tmp_path, shell, ("Which whales are blue?", "The blue whale is blue."))
    shell("memory", "set", "favourite_color", "blue")
    before = (layout.of("ann").turn(1) / "context.md").read_bytes()
    assert "short values and pieces of it need --text" in shell("forget", "favourite_color", "--dry-run").err
    ended = shell("forget", "--yes", "favourite_color", "--json")
    assert (ended.code, ended.value["data"]["left"]) == (0, [])
    assert (layout.of("ann").turn(1) / "context.md").read_bytes() == before
    assert b"blue" not in layout.of("ann").memory_log.read_bytes() + layout.of("ann").preferences.read_bytes()
    assert shell("validate").code == 0
    assert shell("forget", "--text", "blue", "--yes").code == 0
    assert b"blue" not in (layout.of("ann").turn(1) / "context.md").read_bytes()


def test_the_values_of_others_stay(tmp_path: Path, shell: Shell) -> None:
    """What another user said, and turns of which the number only begins alike, are left alone."""
    layout = _imports(tmp_path, shell, (f"It is {SECRET}.", "Noted."))
    ben = tmp_path / "ben.jsonl"
    ben.write_text(json.dumps(import_line(user="ben", turn=1, query=f"Mine is {SECRET}.")), encoding="utf-8")
    assert shell("import", str(ben)).code == 0
    shell("memory", "set", "code", SECRET)
    assert shell("forget", "--yes", "code", "1").code == 0
    assert SECRET in (layout.of("ben").turn(1) / "context.md").read_text(encoding="utf-8")
    assert SECRET not in (layout.of("ann").turn(1) / "context.md").read_text(encoding="utf-8")
    assert shell("forget", "--yes", "--text", SECRET).code == 0
    assert SECRET not in (layout.of("ben").turn(1) / "context.md").read_text(encoding="utf-8")


def test_short_texts_are_words(tmp_path: Path, shell: Shell) -> None:
    """A text of fewer than four characters is taken out only as a word of its own."""
    layout = _imports(tmp_path, shell, ("Is the cat in the catalogue?", "The cat concatenates."))
    assert shell("forget", "--yes", "--text", "cat").code == 0
    text = (layout.of("ann").turn(1) / "response.md").read_text(encoding="utf-8")
    assert MARK.sub(b"*", text.encode()) == b"The * concatenates."


def test_a_text_that_is_nowhere_is_told(tmp_path: Path, shell: Shell) -> None:
    """Beside a turn that goes, too: who misspells a password would believe that it is gone."""
    _imports(tmp_path, shell, (f"It is {SECRET}.", "Noted."))
    ended = shell("forget", "1", "--text", "hunter2-zebre", "--dry-run")
    assert (ended.code, "the text of --text is nowhere" in ended.err) == (0, True)
    assert "nowhere" not in shell("forget", "1", "--text", SECRET, "--dry-run").err


def test_what_was_forgotten_before_is_told(tmp_path: Path, shell: Shell) -> None:
    """The second time says that nothing is left."""
    assert shell("memory", "set", "tea", "Assam").code == 0
    assert "nothing is left" not in shell("forget", "--yes", "tea").err
    assert "nothing is left of it" in shell("forget", "--yes", "tea").err


def test_notes_are_only_named(tmp_path: Path, shell: Shell) -> None:
    """A note that holds the text is named and stays as it is; the command ends with 3."""
    layout = _imports(tmp_path, shell, (f"It is {SECRET}.", "Noted."))
    note = layout.of("ann").knowledge / "router.md"
    note.parent.mkdir()
    note.write_text(f"# Router\n\n{SECRET}\n", encoding="utf-8")
    ended = shell("forget", "--yes", "--text", SECRET, "--json")
    assert ended.code == 3
    assert [one["path"] for one in ended.value["data"]["left"]] == [str(note)]
    assert SECRET in note.read_text(encoding="utf-8")
    assert SECRET not in (layout.of("ann").turn(1) / "context.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("value", [QUOTED, "4711-0815", "zwei Wörter: [ja]", "!../" * 30])
def test_values_of_any_spelling(tmp_path: Path, shell: Shell, value: str) -> None:
    """Quotes, backslashes, accents and brackets hide nothing, in JSON, YAML and SQLite."""
    _imports(tmp_path, shell, (f"The code is {value}, remember.", f"Noted: {value}"))
    shell("memory", "set", "door code", value)
    shell("index", "rebuild")
    assert shell("forget", "--yes", "door code").code == 0  # the imported turn says it too
    place = Place(tmp_path)
    assert place.holding(value) == []
    assert shell("validate").code == 0
    assert shell("index", "rebuild").code == 0


@pytest.mark.parametrize(("value", "kind"), [("90817", "number"), ("true", "boolean")])
def test_values_that_are_no_texts(tmp_path: Path, shell: Shell, value: str, kind: str) -> None:
    """A number or a yes is taken from log and files."""
    layout = _imports(tmp_path, shell, ("My PIN is 90817.", "Noted."))
    shell("memory", "set", "pin", value, "--type", kind)
    assert shell("forget", "--yes", "pin").code == 0
    assert shell("memory", "list").out == ""
    assert value.encode() not in layout.of("ann").preferences.read_bytes()
    assert shell("validate").code == 0


def test_only_the_text_goes_from_a_longer_statement(tmp_path: Path, shell: Shell) -> None:
    """With --text the rest of what is remembered stays, in log and files alike."""
    layout = _imports(tmp_path, shell, ("Hello.", "Hello."))
    shell("memory", "set", "router", f"in the cellar, {SECRET}")
    shell("memory", "set", "guest", SECRET)
    assert shell("forget", "--yes", "--text", SECRET).code == 0
    assert MARK.sub(b"*", shell("memory", "get", "router").out.encode()) == b"in the cellar, *\n"
    assert shell("memory", "get", "guest").code == 2
    assert shell("validate").code == 0
    assert SECRET.encode() not in layout.of("ann").memory_log.read_bytes()


def test_the_end_of_a_sentence_belongs_to_no_text(tmp_path: Path, shell: Shell) -> None:
    """--text with an exclamation mark takes the value, too, that is kept without it."""
    layout = _imports(tmp_path, shell, (f"It is {SECRET}!", f"Noted: {SECRET}"))
    shell("memory", "set", "code", SECRET)
    assert shell("forget", "--yes", "--text", f"{SECRET}!").code == 0
    assert Place(tmp_path).holding(SECRET) == []
    assert layout.of("ann").memory_log.is_file()


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2), ("", 2)])
def test_a_terminal_is_asked(tmp_path: Path, shell: Shell, answer: str, code: int) -> None:
    """On a terminal the places are shown first, and only a yes forgets; no text of it is shown."""
    layout = _imports(tmp_path, shell, ("Hello.", "Hello."))
    shell("memory", "set", "code", SECRET)
    master, slave = pty.openpty()
    os.write(master, f"{answer}\n".encode())
    words = [PANDA, "forget", "code", "--root", str(layout.root), "--user", "ann"]
    ended = subprocess.run(words, stdin=slave, capture_output=True, check=False)
    os.close(slave)
    os.close(master)
    assert ended.returncode == code
    assert b"for good? [y/N]" in ended.stderr
    assert SECRET.encode() not in ended.stderr + ended.stdout
    assert (SECRET.encode() in layout.of("ann").memory_log.read_bytes()) == (code == 2)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["unknown_key"],
        ["99"],
        ["turn:99"],
        ["visit:none"],
        ["knowledge:router.md"],
        ["--text", "nowhere-at-all"],
        ["--text", " "],
        ["--text", "forgotten"],
    ],
)
def test_what_cannot_be_forgotten(tmp_path: Path, shell: Shell, words: list[str]) -> None:
    """Nothing of that name, or a note: 2, with a fix, and nothing is changed."""
    _imports(tmp_path, shell, ("Hello.", "Hello."))
    ended = shell("forget", "--yes", *words)
    assert (ended.code, ended.out) == (2, "")
    assert "fix: " in ended.err


def test_a_page_goes_with_what_quotes_it(demo: Path, tmp_path: Path, capsys: Any) -> None:
    """A visit is removed with the lines that name it as their only source; the store stays sound."""
    root = tmp_path / "store"
    shutil.copytree(demo, root)
    words = ["--root", str(root), "--user", "demo"]
    environ = {"HOME": str(tmp_path)}
    assert (
        run_words(build_program(), ["forget", "--yes", "visit:visit_abc123", *words], capsys, environ).code
        == 0
    )
    assert run_words(build_program(), ["validate", *words], capsys, environ).code == 0
    assert not list(root.glob("users/demo/turns/turn_000811/webpage_cache/bestbuy*"))
    step = (root / "users/demo/turns/turn_000811/steps/step_01.json").read_text(encoding="utf-8")
    assert "Lenovo LOQ 15 with RTX 4050 @ $697" not in step
