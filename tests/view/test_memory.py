"""The pages of memory and of sessions, over sound, contradicting, hostile and damaged memories."""

import json
import re
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.api import Panda, tree
from tests.effort import tried
from tests.mutations import mutate
from tests.view.sites import SCRIPT, STEERING, Html, assert_plain, page_words

NOW = "2026-02-01T12:05:00Z"


def words(text: str) -> str:
    """A text with one space between words."""
    return " ".join(text.split())


def foreign_fact(number: int, key: str, value: str) -> str:
    """A line about a key of the user demo that another machine wrote."""
    fact = {
        "id": f"other-{number}",
        "entity": "user:demo",
        "relation": key,
        "value": {"type": "string", "v": value},
        "source": "web:shop.example",
        "confidence": 0.8,
        "scope": "local",
        "hlc": f"176747056100{number}.000",
    }
    return json.dumps(fact) + "\n"


@pytest.fixture(scope="module")
def remembered(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose user has a history, a contradiction that stands, and one that was settled."""
    panda = Panda(tmp_path_factory.mktemp("remembered"), recorded, user="demo", PANDA_NOW=NOW)
    other = panda.write("other.jsonl", foreign_fact(0, "price", "750") + foreign_fact(1, "chair", "blue"))
    for command in (
        "set screen 14",
        "set screen 15.6",
        "set price 700",
        "set chair green",
        f"merge {other}",
        "resolve chair --value red",
        "set gone soon",
        "retract gone",
    ):
        assert panda("memory", *command.split()).code == 0, command
    return panda.store


@pytest.fixture
def panda(remembered: Path, tmp_path: Path) -> Panda:
    """A store of its own with those."""
    return Panda(tmp_path / "project", remembered, user="demo", PANDA_NOW=NOW)


def address_of(pages: TestClient, key: str) -> str:
    """Where the page of a value is, by the links of the memory's page."""
    html = pages.get("/memory/demo").text
    links: list[tuple[str, str]] = re.findall(r'<a href="(/memory/demo/\w+)"[^>]*>([^<]*)</a>', html)
    return next(link for link, text in links if text == key)


def test_what_holds_is_shown_with_its_confidence(panda: Panda, pages: TestClient) -> None:
    """Every value that the memory holds is a row with the confidence that it has now, and has a page."""
    shown = page_words(pages.get("/memory/demo").text)
    held = panda.json("memory", "list")["memory"]
    assert len(held) >= 7
    for entry in held:
        texts = entry["value"] if isinstance(entry["value"], list) else [entry["value"]]
        own = page_words(pages.get(address_of(pages, entry["key"])).text)
        assert f"{entry['confidence']:.2f}" in shown
        assert entry["key"] in own
        for text in texts:
            written = words(text if isinstance(text, str) else json.dumps(text))[:80]
            assert written in shown
            assert written in own


def test_the_history_of_a_value_is_shown(pages: TestClient) -> None:
    """A value's page has all that was ever said of it, retractions too, also where nothing holds any more."""
    screen = page_words(pages.get(address_of(pages, "screen")).text)
    assert "15.6" in screen
    assert "14 taken back" in screen
    gone = page_words(pages.get(address_of(pages, "gone")).text)
    assert "Nothing holds any more" in gone
    assert "soon" in gone


def test_contradictions_stand_side_by_side(panda: Panda, pages: TestClient) -> None:
    """One that stands names both values and how to settle it; a settled one names what holds instead."""
    (standing,) = panda.json("memory", "conflicts")["conflicts"]
    shown = page_words(pages.get("/memory/demo").text)
    assert f"panda memory resolve {standing['conflict_id']}" in shown
    assert re.search(r"holds 700 .* against it 750 web:shop.example", shown)
    assert re.search(r"said green .* said blue .* settled: this holds red", shown)


def test_edits_by_hand_are_shown_and_not_taken_in(panda: Panda, pages: TestClient) -> None:
    """What somebody has typed into a memory file is shown as that, and the store stays as it was."""
    path = panda.user_directory / "preferences.md"
    path.write_text(path.read_text().replace("---\n", "---\ntyped_one: brown\n", 1))
    before = tree(panda.store)
    shown = page_words(pages.get("/memory/demo").text)
    assert "typed_one" in shown
    assert "typed by hand" in shown
    assert tree(panda.store) == before


@pytest.mark.parametrize("text", [SCRIPT, STEERING.replace("\u2028", "")], ids=["markup", "steering"])
def test_values_never_become_markup(panda: Panda, pages: TestClient, text: str) -> None:
    """Script tags in keys and values stay text, and what steers a reader's eye is written out."""
    line = json.dumps({"key": f"k {text}", "value": f"v {text}"})
    assert panda("memory", "set", "-", stdin=line).code == 0
    html = pages.get("/memory/demo").text
    assert_plain(html)
    links = re.findall(r'<a href="(/memory/demo/\w+)"[^>]*>k ', html)
    assert links
    assert_plain(pages.get(links[0]).text)


@pytest.mark.parametrize("name", ["preferences.md", "facts.md"])
@pytest.mark.parametrize("data", [b"---\n: [\n---\n", b"\xff\xfe", b"---\nbudget: {value: [", None])
def test_a_damaged_memory_file_is_named_and_the_log_is_shown(
    panda: Panda, pages: TestClient, name: str, data: bytes | None
) -> None:
    """Of a file that cannot be read the page says so, and shows what the log says."""
    path = panda.user_directory / name
    path.unlink(missing_ok=True)
    if data is None:
        path.mkdir()
    else:
        path.write_bytes(data)
    shown = page_words(pages.get("/memory/demo").text)
    assert f"{name} cannot be used" in shown
    assert "15.6" in shown


@pytest.mark.parametrize("line", ["{", "[]", "{}", '{"id": 3}', "\x00", '{"id": "a", "value": 1e999}'])
def test_of_a_damaged_log_nothing_is_said_to_hold(panda: Panda, pages: TestClient, line: str) -> None:
    """The damaged line is named with its number; the other lines are shown as what was said."""
    address = address_of(pages, "screen")
    log = panda.user_directory / "memory.jsonl"
    lines = log.read_text().splitlines()
    log.write_text("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
    shown = page_words(pages.get("/memory/demo").text)
    assert "memory.jsonl cannot be used: line 3" in shown
    assert "nothing can be said to hold" in shown
    assert "15.6" in shown
    assert pages.get(address).status_code == 404
    assert pages.get("/").status_code == 200


def test_damage_of_any_kind_never_breaks_a_page(panda: Panda, pages: TestClient, tmp_path: Path) -> None:
    """Whatever is cut, swapped, linked or made a pipe among the files of a memory: pages stay pages."""
    names = ("memory.jsonl", "conflicts.jsonl", "preferences.md", "facts.md", "memory.shown.json")
    user, address = panda.user_directory, address_of(pages, "screen")
    others = {path.name for path in user.iterdir()} - set(names)
    sound = {name: (user / name).read_bytes() for name in names if (user / name).exists()}
    for seed in range(tried(20, 60)):
        damaged = tmp_path / f"damaged{seed}"
        damaged.mkdir()
        for name, data in sound.items():
            (damaged / name).write_bytes(data)
        damage = mutate(damaged, seed)
        for path in [path for path in user.iterdir() if path.name not in others]:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        for path in list(damaged.iterdir()):
            path.rename(user / path.name)
        assert pages.get("/memory/demo").status_code == 200, (seed, damage)
        assert pages.get(address).status_code in (200, 404), (seed, damage)


def test_what_a_session_carries_is_shown_with_where_it_comes_from(panda: Panda, pages: TestClient) -> None:
    """A session's page says all that `panda session show` says, and leads to the turns that it comes from."""
    rows = panda("session", "show", "default").rows
    html = pages.get("/sessions/demo/default").text
    shown = page_words(html)
    assert "/sessions/demo/default" in pages.get("/sessions/demo").text
    assert len(rows) > 8
    for text in [row.split("\t")[1] for row in rows]:
        assert text == "(nothing)" or words(text) in shown
    assert "/turns/demo/816" in Html(html).links


@pytest.mark.parametrize("data", [b"", b"{", b"{}", b"[1]", b"\xff"])
def test_a_damaged_session_is_named_and_made_of_its_turns(
    panda: Panda, pages: TestClient, data: bytes
) -> None:
    """A session.json that does not read is named; what it would carry is made of the turns."""
    path = panda.user_directory / "sessions" / "default" / "session.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.with_name("closed.json").write_bytes(data)
    assert pages.get("/sessions/demo").status_code == 200
    shown = page_words(pages.get("/sessions/demo/default").text)
    assert "session.json cannot be used" in shown
    assert "made of its turns just now" in shown


def test_a_memory_of_many_values_comes_in_pages(panda: Panda, pages: TestClient) -> None:
    """Two hundred values a page, each on one of them alone."""
    lines = [json.dumps({"key": f"key{number}", "value": number}) for number in range(450)]
    assert panda("memory", "set", "-", stdin="\n".join(lines)).code == 0
    path, addresses = "/memory/demo", list[str]()
    while path:
        page = Html(pages.get(path).text)
        addresses += [
            str(given["href"]) for tag, given in page.elements if tag == "a" and "data-row" in given
        ]
        path = max((link for link in page.links if "/page/" in link and link > path), default="")
    assert len(addresses) == len(set(addresses)) >= 450
