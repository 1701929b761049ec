"""The pages of memory and of sessions, over sound, contradicting, hostile and damaged memories."""

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from panda.documents.text import UNSAFE
from panda.memory.conflicts import find_contradictions, merge_files, resolve
from panda.memory.fact import typed_value
from panda.memory.files import Projection
from panda.memory.memory import Memory, load_remembered
from panda.session.file import open_session, session_ids
from panda.session.render import field_rows
from panda.store.fact import Assertion, Subject
from panda.store.layout import Layout, UserStore
from panda.view.memory import address_of
from panda.view.output import write_site
from tests.builders import tree
from tests.effort import tried
from tests.mutations import mutate
from tests.view.sites import Html, client_of, page_words, shelf_of

SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
STEERING = "a\u202eb\u2066c\x1b[31m\u2028d"


KEPT = ("turns", "sessions", "knowledge", "turn_counter", "memory.lock")


def remove(path: Path) -> None:
    """Take away whatever is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def words(text: str) -> str:
    """A text with one space between words."""
    return " ".join(text.split())


def say(memory: Memory, key: str, value: object) -> None:
    """Remember a value."""
    statement = Assertion(
        "",
        f"user:{memory.user}",
        key,
        typed_value(value),
        f"user:{memory.user}",
        0.95,
        "local",
        kind="preference",
    )
    with memory.held():
        memory.assert_all([statement])


def foreign(path: Path, *facts: tuple[str, object]) -> Path:
    """Facts of another machine, each about a key of the user demo."""
    lines = [
        {
            "id": f"other-{n}",
            "entity": "user:demo",
            "relation": key,
            "value": typed_value(value).to_json(),
            "source": "web:shop.example",
            "confidence": 0.8,
            "scope": "local",
            "hlc": f"176747056100{n}.000",
        }
        for n, (key, value) in enumerate(facts)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def layout(recorded: Path, tmp_path: Path) -> Layout:
    """A store of its own whose user has a history, a contradiction that stands, and one that was settled."""
    root = tmp_path / "store"
    shutil.copytree(recorded, root)
    layout = Layout(root)
    memory = Memory(UserStore(layout.root, "demo", lambda: datetime.now(UTC), 1.0))
    say(memory, "screen", 14)
    say(memory, "screen", 15.6)
    say(memory, "price", 700)
    say(memory, "chair", "green")
    merge_files(memory, [foreign(tmp_path / "other.jsonl", ("price", 750), ("chair", "blue"))])
    resolve(memory, "chair", datetime.now(UTC), value=lambda one: typed_value("red"))
    say(memory, "gone", "soon")
    with memory.held():
        memory.retract(subject_of("gone"), "user:demo")
    return layout


def subject_of(key: str) -> Subject:
    """What the user says under a key."""
    return Subject("local", "user:demo", key)


def test_what_holds_is_shown_with_its_confidence(layout: Layout) -> None:
    """Every value that the memory holds is a row with the confidence that it has now, and has a page."""
    state = Projection(layout.of("demo"))
    state.refresh()
    now = datetime.now(UTC)
    client = client_of(layout.root)
    page = client.get("/memory/demo")
    assert page.status_code == 200
    shown = page_words(page.text)
    held = load_remembered(state, now)
    assert len(held) >= 7
    for one in held:
        assert words(one.text)[:80] in shown
        assert f"{one.confidence(now):.2f}" in shown
        own = page_words(client.get(f"/memory/demo/{address_of(one.subject)}").text)
        assert one.key in own
        assert words(one.text)[:80] in own


def test_the_history_of_a_value_is_shown(layout: Layout) -> None:
    """A value's page has all that was ever said of it, retractions too, also where nothing holds any more."""
    client = client_of(layout.root)
    screen = page_words(client.get(f"/memory/demo/{address_of(subject_of('screen'))}").text)
    assert "15.6" in screen
    assert "14 taken back" in screen
    gone = page_words(client.get(f"/memory/demo/{address_of(subject_of('gone'))}").text)
    assert "Nothing holds any more" in gone
    assert "soon" in gone
    assert "gone" in page_words(client.get("/memory/demo").text)


def test_contradictions_stand_side_by_side(layout: Layout) -> None:
    """One that stands names both values and how to settle it; a settled one names what holds instead."""
    state = Projection(layout.of("demo"))
    state.refresh()
    standing = find_contradictions(state.log, datetime.now(UTC))
    assert [one.subject.relation for one in standing] == ["price"]
    shown = page_words(client_of(layout.root).get("/memory/demo").text)
    assert f"panda memory resolve {standing[0].conflict_id}" in shown
    assert re.search(r"holds 700 .* against it 750 web:shop.example", shown)
    assert re.search(r"said green .* said blue .* settled: this holds red", shown)


def test_edits_by_hand_are_shown_and_not_taken_in(layout: Layout) -> None:
    """What somebody has typed into a memory file is shown as that, and the store stays as it was."""
    path = layout.of("demo").preferences
    path.write_text(path.read_text().replace("---\n", "---\ntyped_one: brown\n", 1))
    before = tree(layout.root)
    shown = page_words(client_of(layout.root).get("/memory/demo").text)
    assert "typed_one" in shown
    assert "typed by hand" in shown
    assert tree(layout.root) == before


@pytest.mark.parametrize("text", [SCRIPT, STEERING], ids=["markup", "steering"])
def test_values_never_become_markup(layout: Layout, text: str) -> None:
    """Script tags in keys and values stay text, and what steers a reader's eye is written out."""
    memory = Memory(UserStore(layout.root, "demo", lambda: datetime.now(UTC), 1.0))
    key = "k " + "".join(text.split("\u2028"))
    say(memory, key, f"v {text}")
    client = client_of(layout.root)
    for path in ("/memory/demo", f"/memory/demo/{address_of(subject_of(words(key)))}"):
        reply = client.get(path)
        assert reply.status_code == 200, path
        assert "<script>alert" not in reply.text
        assert "<img src=x" not in reply.text
        assert not UNSAFE.search(reply.text)


@pytest.mark.parametrize("name", ["preferences.md", "facts.md"])
@pytest.mark.parametrize("data", [b"---\n: [\n---\n", b"\xff\xfe", b"---\nbudget: {value: [", None])
def test_a_damaged_memory_file_is_named_and_the_log_is_shown(
    layout: Layout, name: str, data: bytes | None
) -> None:
    """Of a file that cannot be read the page says so, and shows what the log says."""
    path = layout.of("demo").home / name
    path.unlink(missing_ok=True)
    if data is None:
        path.mkdir()
    else:
        path.write_bytes(data)
    reply = client_of(layout.root).get("/memory/demo")
    assert reply.status_code == 200
    shown = page_words(reply.text)
    assert f"{name} cannot be used" in shown
    assert "15.6" in shown


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"id": 3}', "\x00", '{"id": "a", "value": 1e999}'])
def test_of_a_damaged_log_nothing_is_said_to_hold(layout: Layout, line: str) -> None:
    """The damaged line is named with its number; the other lines are shown as what was said."""
    log = layout.of("demo").memory_log
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    client = client_of(layout.root)
    reply = client.get("/memory/demo")
    assert reply.status_code == 200
    shown = page_words(reply.text)
    assert "memory.jsonl cannot be used: line 3" in shown
    assert "nothing can be said to hold" in shown
    assert "15.6" in shown
    assert client.get(f"/memory/demo/{address_of(subject_of('screen'))}").status_code == 404
    assert client.get("/").status_code == 200


def test_damage_of_any_kind_never_breaks_a_page(layout: Layout, tmp_path: Path) -> None:
    """Whatever is cut, swapped, linked or made a pipe among the files of a memory: pages stay pages."""
    names = ("memory.jsonl", "conflicts.jsonl", "preferences.md", "facts.md", "memory.shown.json")
    user = layout.of("demo").home
    sound = {name: (user / name).read_bytes() for name in names if (user / name).exists()}
    client = client_of(layout.root)
    for seed in range(tried(20, 60)):
        damaged = tmp_path / "damaged"
        damaged.mkdir()
        for name, data in sound.items():
            (damaged / name).write_bytes(data)
        done = mutate(damaged, seed)
        for name in names:
            remove(user / name)
        for path in list(damaged.iterdir()):
            path.rename(user / path.name)
        assert client.get("/memory/demo").status_code == 200, (seed, done)
        own = client.get(f"/memory/demo/{address_of(subject_of('screen'))}")
        assert own.status_code in (200, 404), (seed, done)
        for name in [*names, *(path.name for path in user.iterdir() if path.name not in KEPT)]:
            remove(user / name)
        remove(damaged)


def test_what_a_session_carries_is_shown_with_where_it_comes_from(layout: Layout) -> None:
    """A session's page says all that `panda session show` says, and leads to the turns that it comes from."""
    client = client_of(layout.root)
    names = session_ids(layout.of("demo")) or ["default"]
    listed = client.get("/sessions/demo").text
    for name in names:
        found = open_session(layout.of("demo"), name)
        assert found is not None
        assert f"/sessions/demo/{name}" in listed
        reply = client.get(f"/sessions/demo/{name}")
        shown = page_words(reply.text)
        for _, text, _ in field_rows(found.carry, lambda path: True):
            assert text == "(nothing)" or words(text) in shown
        assert f"/turns/demo/{found.head_turn}" in Html(reply.text).links


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b"[1]", b"\xff"])
def test_a_damaged_session_is_named_and_made_of_its_turns(layout: Layout, data: bytes) -> None:
    """A session.json that does not read is named; what it would carry is made of the turns."""
    path = layout.of("demo").session("default")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.with_name("closed.json").write_bytes(data)
    client = client_of(layout.root)
    assert client.get("/sessions/demo").status_code == 200
    reply = client.get("/sessions/demo/default")
    assert reply.status_code == 200
    shown = page_words(reply.text)
    assert "session.json cannot be used" in shown
    assert "made of its turns just now" in shown


def test_memory_and_sessions_are_written_as_files_unless_turns_were_selected(
    layout: Layout, tmp_path: Path
) -> None:
    """The whole store has them, with a page for each value and session; a selection of turns has none."""
    whole = write_site(tmp_path / "whole", shelf_of(layout.root))
    assert {"memory/demo.html", "sessions/demo.html", "sessions/demo/default.html"} <= set(whole)
    assert f"memory/demo/{address_of(subject_of('gone'))}.html" in whole
    some = write_site(tmp_path / "some", shelf_of(layout.root, selected={"demo": [811]}))
    assert not [name for name in some if name.startswith(("memory", "sessions"))]
    assert "memory/demo" not in (tmp_path / "some" / "index.html").read_text()


def test_a_memory_of_many_values_comes_in_pages(layout: Layout) -> None:
    """Two hundred values a page, each on one of them alone."""
    memory = Memory(UserStore(layout.root, "demo", lambda: datetime.now(UTC), 1.0))
    about = "user:demo"
    with memory.held():
        memory.assert_all(
            [
                Assertion("", about, f"key{n}", typed_value(n), about, 0.95, "local", kind="fact")
                for n in range(450)
            ]
        )
    client = client_of(layout.root)
    path, seen = "/memory/demo", list[str]()
    for _ in range(9):
        page = Html(client.get(path).text)
        seen += [str(given["href"]) for tag, given in page.elements if tag == "a" and "data-row" in given]
        onward = [link for link in page.links if "/page/" in link and link > path]
        if not onward:
            break
        path = onward[-1]
    assert len(seen) == len(set(seen)) >= 450


def test_wrong_addresses_are_not_found(layout: Layout) -> None:
    """What there is not is a page that says so."""
    client = client_of(layout.root)
    for path in ("/memory/nobody", "/memory/demo/x", "/sessions/demo/none", "/sessions/nobody"):
        assert client.get(path).status_code == 404, path
    for path in ("/memory/demo/page/x", "/sessions/demo/A%20B", "/sessions/demo/page/-1"):
        assert client.get(path).status_code == 400, path
    assert client.get("/memory/demo/page/99").status_code == 200
