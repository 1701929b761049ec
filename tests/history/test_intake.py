"""`panda import` of other programs' exports: found out, checked, written once, killed at any moment, told."""

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from panda.cli.main import build_program
from panda.documents.progress import shown_by
from panda.exchange.files import ExportFile
from panda.exchange.intake import BATCH_TURNS, import_file
from panda.store.files import begin_writing, end_writing, is_temporary
from panda.store.layout import Layout, UserStore
from panda.store.turns import claim_turn
from panda.store.validate import check_store
from tests.builders import build_store, still_clock, tree
from tests.cli.programs import Ended, run_words
from tests.history.exports import chatgpt, claude, said, write_export
from tests.kills import kills_of, run_killed

COMMAND = [sys.executable, "-c", "from panda.cli.main import main; main()"]


class Shell:
    """A store of user ann, and commands on it."""

    def __init__(self, base: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.base, self.capsys = base, capsys
        self.layout = build_store(base / "store")
        for user in ("ann", "bob"):
            self.layout.of(user).home.mkdir()

    def __call__(self, *words: str, user: str = "ann") -> Ended:
        root = ["--root", str(self.layout.root), "--user", user]
        return run_words(build_program(), [*words, *root], self.capsys)

    def turns(self, user: str = "ann") -> list[tuple[int, str, str, str]]:
        """Number, session, query and reply of all turns."""
        store = UserStore(self.layout.root, user, still_clock)
        folders = [store.open(number) for number in store.numbers()]
        metadata = [(folder, folder.read_metadata()) for folder in folders]
        return [(m.turn, m.session_id, m.query, f.read_text("response.md")) for f, m in metadata]


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Without an encoder, which each import would load."""
    monkeypatch.chdir(tmp_path)
    packaged = (Path(__file__).parent.parent.parent / "models.yaml").read_text(encoding="utf-8")
    text = "".join(
        "encoder: null\n" if line.startswith("encoder:") else line for line in packaged.splitlines(True)
    )
    (tmp_path / "models.yaml").write_text(text, encoding="utf-8")
    return Shell(tmp_path, capsys)


def talk(number: int, *texts: str) -> dict[str, Any]:
    messages = [said("user" if at % 2 == 0 else "assistant", text) for at, text in enumerate(texts)]
    return chatgpt(*messages, number=number)


CHATGPT = "chatgpt-{:08x}-0000-4000-8000-000000000000"


@pytest.mark.parametrize("name", ["conversations.json", "export.zip"])
def test_conversations_become_sessions_in_order_of_time(name: str, shell: Shell) -> None:
    """The file begins with the newest; numbers go by time, and each conversation by its own order."""
    export = write_export(shell.base / name, talk(2, "C", "c", "D", "d"), talk(1, "A", "a", "B", "b"))
    done = shell("import", str(export), "--json")
    assert done.code == 0, done.err
    one, two = CHATGPT.format(1), CHATGPT.format(2)
    assert shell.turns() == [(1, one, "A", "a"), (2, one, "B", "b"), (3, two, "C", "c"), (4, two, "D", "d")]
    data = done.value["data"]
    assert (data["from"], data["created"], data["unchanged"], data["sessions"]) == (
        "chatgpt",
        4,
        0,
        [one, two],
    )
    assert (data["first"], data["last"]) == ("2023-11-15T22:14:20Z", "2023-11-16T22:16:20Z")
    assert check_store(shell.layout) == []


def test_the_same_export_again_changes_nothing(shell: Shell) -> None:
    """And one that has grown since adds what is new alone."""
    export = write_export(shell.base / "a.json", talk(1, "A", "a"), talk(2, "B", "b"))
    assert shell("import", str(export)).code == 0
    before = tree(shell.layout.of("ann").turns)
    again = shell("import", str(export), "--json").value["data"]
    assert (again["created"], again["unchanged"], again["sessions"]) == (0, 2, [])
    assert tree(shell.layout.of("ann").turns) == before
    write_export(export, talk(2, "B", "b"), talk(1, "A", "a", "A2", "a2"))
    more = shell("import", str(export), "--json").value["data"]
    assert (more["created"], more["unchanged"]) == (1, 2)
    assert shell.turns()[2] == (3, CHATGPT.format(1), "A2", "a2")
    assert shell("session", "verify").code == 0


def test_what_was_said_twice_is_two_and_a_conversation_that_stands_twice_is_one(shell: Shell) -> None:
    none: dict[str, Any] = {"untimed": True}
    twice = chatgpt(*[said("user", "go on", **none), said("assistant", "ok", **none)] * 2)
    export = write_export(shell.base / "a.json", twice, twice)
    for created in (2, 0):
        assert shell("import", str(export), "--json").value["data"]["created"] == created
    assert [one[2] for one in shell.turns()] == ["go on", "go on"]


def test_the_kind_is_found_out_or_told(shell: Shell) -> None:
    """By the first bytes; the wrong kind is refused with the right one."""
    one = write_export(shell.base / "claude.zip", claude(("human", "Hi"), ("assistant", "Hello")))
    assert shell("import", str(one), "--json").value["data"]["from"] == "claude"
    wrong = shell("import", "--from", "chatgpt", str(one))
    assert (wrong.code, "it is an export of claude" in wrong.err, "--from claude" in wrong.err) == (
        2,
        True,
        True,
    )
    assert shell("import", "--from", "bard", str(one)).code == 2
    for text in ("[1, 2]", "[]", "[[", '["x"]'):
        (shell.base / "b.json").write_text(text, encoding="utf-8")
        assert shell("import", str(shell.base / "b.json")).code == 2, text
    done = shell("import", "--from", "chatgpt", str(write_export(shell.base / "none.json")), "--json")
    assert (done.code, done.value["data"]["created"]) == (0, 0)


def test_a_list_in_an_object_and_split_lists(shell: Shell) -> None:
    """As some exports have it: {"conversations": [...]}, and conversations-000.json and so on in a .zip."""
    path = shell.base / "a.json"
    path.write_text(json.dumps({"account": 1, "conversations": [talk(1, "A", "a")]}), encoding="utf-8")
    assert shell("import", "--from", "chatgpt", str(path)).code == 0
    with zipfile.ZipFile(shell.base / "b.zip", "w") as archive:
        archive.writestr("data/conversations-000.json", json.dumps([talk(2, "B", "b")]))
        archive.writestr("data/conversations-001.json", "\ufeff " + json.dumps([talk(3, "C", "c")]))
    assert shell("import", str(shell.base / "b.zip")).code == 0
    assert [one[2] for one in shell.turns()] == ["A", "B", "C"]


def test_stdin_is_read_too(tmp_path: Path) -> None:
    """A pipe is kept in a file meanwhile, since it is read twice; errors call it <stdin>."""
    build_store(tmp_path / "store").of("ann").home.mkdir()
    data = json.dumps([talk(1, "A", "a")]).encode()
    words = ["import", "-", "--root", str(tmp_path / "store"), "--user", "ann", "--dry-run", "--json"]
    done = subprocess.run([*COMMAND, *words], input=data, capture_output=True, cwd=tmp_path)
    assert json.loads(done.stdout)["data"]["created"] == 1, done.stderr
    torn = subprocess.run([*COMMAND, *words], input=data[:-20], capture_output=True, cwd=tmp_path)
    assert (torn.returncode, json.loads(torn.stdout)["error"]["where"]) == (2, "<stdin>")
    lines = subprocess.run([*COMMAND, *words], input=b"{}\n", capture_output=True, cwd=tmp_path)
    assert (lines.returncode, json.loads(lines.stdout)["error"]["where"]) == (2, "<stdin>:1 (user)")


def test_one_odd_conversation_stops_nothing(shell: Shell) -> None:
    """What cannot come in is counted, told with its conversation, and listed; the others come in."""
    odd = [5, {"mapping": {}, "title": "x"}, {**talk(9, "Z", "z"), "title": ["list"]}]
    torn = chatgpt(said("user", "A"), {"author": None}, said("user", "B"), said("assistant", "b"), number=3)
    export = write_export(shell.base / "a.json", talk(1, "A", "a"), *odd, torn)
    done = shell("import", "--from", "chatgpt", str(export))
    assert done.code == 0
    assert (
        "damaged conversation: conversation 4: Expected `str | null`, got `array` - at `$.title`" in done.err
    )
    assert "left out: damaged conversation: 3, damaged message: 1, query without a reply: 1" in done.err
    assert [one[2] for one in shell.turns()] == ["A", "B"]
    listed = shell("import", "--from", "chatgpt", str(export), "--json").value["data"]["not_imported"]
    assert {
        "kind": "damaged message",
        "session": CHATGPT.format(3),
        "title": "Talk 3",
        "count": 1,
        "why": None,
    } in listed


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-30],
        lambda data: data + b"x",
        lambda data: data.replace(b'"A"', b'"\xff"'),
        lambda data: b"[",
    ],
)
def test_a_file_that_is_cut_short_changes_nothing(damage: Any, shell: Shell) -> None:
    """Everything is checked first, whatever came before the damage."""
    export = write_export(shell.base / "a.json", *(talk(n, "A", "a") for n in range(1, 40)))
    export.write_bytes(damage(export.read_bytes()))
    done = shell("import", "--from", "chatgpt", str(export))
    assert (done.code, "it does not read" in done.err, str(export) in done.err) == (2, True, True)
    assert not shell.layout.of("ann").turns.exists()


def test_damaged_archives_are_refused(shell: Shell) -> None:
    """Cut short, changed, without conversations: named, with the way out."""
    whole = write_export(shell.base / "a.zip", talk(1, "A" * 5_000, "a")).read_bytes()
    changed = bytearray(whole)
    changed[whole.index(b"conversations.json") + 40] ^= 0xFF
    with zipfile.ZipFile(shell.base / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    for name, data in (("cut.zip", whole[:200]), ("changed.zip", bytes(changed))):
        (shell.base / name).write_bytes(data)
    for name in ("cut.zip", "changed.zip", "other.zip"):
        done = shell("import", str(shell.base / name))
        assert (done.code, name in done.err, "fix:" in done.err) == (2, True, True), done.err


def test_a_text_that_is_too_long_is_left_out(shell: Shell) -> None:
    """A reply or query of 100,001 characters: told; what it stands beside comes in."""
    long = "a" * 100_001
    export = write_export(shell.base / "a.json", talk(1, "A", long, long, "b", "C", long[:-1]))
    data = shell("import", str(export), "--json").value["data"]
    assert (data["created"], data["left_out"]) == (1, {"exchange that is too long": 2})


def test_a_dry_run_tells_and_writes_nothing(shell: Shell) -> None:
    export = write_export(shell.base / "a.json", talk(1, "A", "a", "B"), talk(2, "C", "c"))
    before = tree(shell.base)
    done = shell("import", str(export), "--dry-run")
    assert (done.code, tree(shell.base)) == (0, before)
    assert [row.split("\t") for row in done.rows] == [
        ["new turns", "2"],
        ["turns there already", "0"],
        ["conversations", "2"],
        ["sessions with new turns", "2"],
        ["first query", "2023-11-15T22:14:20Z"],
        ["last query", "2023-11-16T22:14:20Z"],
        ["left out: query without a reply", "1"],
    ]
    lines = shell.base / "turns.jsonl"
    lines.write_text(
        json.dumps({"user": "bob", "session": "s", "at": "2026-01-01", "query": "Q", "response": "R"})
    )
    assert shell("import", str(lines), "--dry-run", "--json").value["data"]["created"] == 1
    assert not shell.layout.of("bob").turns.exists()


def test_what_came_in_is_found_listed_exported(shell: Shell) -> None:
    """The index, the list, a session that goes on, and queries to ask again, of which nothing is expected."""
    export = write_export(shell.base / "a.json", talk(1, "How deep is hamster bedding?", "At least 20 cm."))
    assert shell("import", str(export)).code == 0
    assert "turn:1" in shell("index", "search", "hamster bedding").out
    assert CHATGPT.format(1) in shell("list").out
    assert CHATGPT.format(1) in shell("session", "list").out
    line = json.loads(shell("export", "1", "--as", "queries").out)
    assert (line["query"], "expect" in line) == ("How deep is hamster bedding?", False)


def test_what_was_forgotten_does_not_come_back(shell: Shell) -> None:
    export = write_export(shell.base / "a.json", talk(1, "My password is 1234", "ok", "B", "b"))
    assert shell("import", str(export)).code == 0
    assert shell("forget", "1", "--yes").code == 0
    again = shell("import", str(export), "--json").value["data"]
    assert (again["created"], again["unchanged"], again["left_out"]) == (0, 1, {"forgotten turn": 1})


def test_a_running_import_is_waited_for_and_numbers_are_nobody_elses(shell: Shell) -> None:
    """A turn that begins while an import writes gets a number behind all of it."""
    export = write_export(shell.base / "a.json", *(talk(n, "A", "a") for n in range(1, BATCH_TURNS + 30)))
    layout = shell.layout
    claimed: list[int] = []

    class Progress:
        def __init__(self, label: str, total: int) -> None:
            self.label = label

        def __enter__(self) -> Any:
            return self.advance

        def __exit__(self, *exc: object) -> None: ...

        def advance(self) -> None:
            if self.label == "importing" and not claimed:
                claimed.append(
                    claim_turn(UserStore(layout.root, "ann", still_clock), "mine", "chat", "now").number
                )

    file = ExportFile(export, str(export), "chatgpt")
    before = shown_by.set(Progress)
    try:
        done = import_file(file, UserStore(layout.root, "ann", still_clock), dry_run=False)
    finally:
        shown_by.reset(before)
    assert (done.created, claimed) == (BATCH_TURNS + 29, [BATCH_TURNS + 30])
    assert UserStore(layout.root, "ann", still_clock).numbers() == list(range(1, BATCH_TURNS + 31))


def work(root: str, export: str) -> None:
    """What is killed below."""
    layout = Layout(Path(root))
    begin_writing(layout.root)
    file = ExportFile(Path(export), export, "chatgpt")
    import_file(file, UserStore(Path(root), "ann", still_clock), dry_run=False)


def test_killed_at_any_write_and_again_each_turn_is_there_once(shell: Shell) -> None:
    """Whatever was done before the kill; no temporary stays, nothing is wrong with the store."""
    export = write_export(shell.base / "a.json", talk(1, "A", "a", "B", "b"), talk(2, "C", "c"))
    root = shell.base / "once"
    build_store(root)
    kills = list(kills_of(work, str(root), str(export)))
    assert len(kills) > 3
    for number, kill in enumerate(kills):
        root = shell.base / f"killed-{number}"
        build_store(root)
        run_killed(kill, work, str(root), str(export))
        work(str(root), str(export))
        end_writing()
        store = UserStore(root, "ann", still_clock)
        said_ = [store.open(one).read_metadata() for one in store.numbers()]
        assert sorted(one.query for one in said_) == ["A", "B", "C"]
        order = [one.query for one in said_ if one.session_id == CHATGPT.format(1)]
        assert order == ["A", "B"]
        assert not [path for path in store.turns.iterdir() if is_temporary(path)]
        assert check_store(store) == []


def test_a_real_process_killed_midway(tmp_path: Path) -> None:
    """kill -9 while batches are written, several times, then to the end: each turn once."""
    store = build_store(tmp_path / "store")
    export = write_export(tmp_path / "a.json", *(talk(n, "A", "a", "B", "b") for n in range(1, 451)))
    words = ["import", "--from", "chatgpt", str(export), "--root", str(store.root), "--user", "ann", "--json"]
    store.of("ann").home.mkdir()
    seen = set()
    for least in (1, BATCH_TURNS + 1, 2 * BATCH_TURNS + 1):
        process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.DEVNULL, cwd=tmp_path)
        deadline = time.monotonic() + 60
        while _count(store) < least and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        seen.add(_count(store))
    assert seen & set(range(1, 900)), seen
    last = subprocess.run([*COMMAND, *words], capture_output=True, cwd=tmp_path)
    data = json.loads(last.stdout)["data"]
    assert data["created"] + data["unchanged"] == _count(store) == 900
    again = subprocess.run([*COMMAND, *words, "--dry-run"], capture_output=True, cwd=tmp_path)
    assert json.loads(again.stdout)["data"]["created"] == 0
    assert check_store(store) == []


def _count(layout: Layout) -> int:
    turns = layout.of("ann").turns
    return sum(one.name.startswith("turn_") for one in os.scandir(turns)) if turns.is_dir() else 0
