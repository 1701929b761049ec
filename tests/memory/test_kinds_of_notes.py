"""Notes of every kind below knowledge/: tables and JSON, front matter alone, doubled keys, comments."""

import os
from pathlib import Path

import pytest

from tests.api import Panda


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project with an empty store."""
    project = Panda(tmp_path / "home")
    assert project("init").code == 0
    return project


def write_note(panda: Panda, name: str, text: str) -> Path:
    """Write a note of the default user."""
    return panda.write(f"store/users/default/knowledge/{name}", text)


@pytest.mark.parametrize(
    ("name", "text", "query", "answer"),
    [
        (
            "prices.csv",
            "name;price;stock\nTent;40 EUR;3\nLamp;12 EUR;0\n",
            "What is the price of the lamp?",
            "name: Lamp; price: 12 EUR; stock: 0",
        ),
        (
            "order.json",
            '{"items": [{"sku": "Lamp L-2", "price": 12.50}, {"sku": "Tent", "price": 40}]}',
            "What is the price of the Lamp L-2?",
            "sku: Lamp L-2; price: 12.50",
        ),
    ],
    ids=["csv", "json"],
)
def test_tables_and_json_are_notes(panda: Panda, name: str, text: str, query: str, answer: str) -> None:
    """A row is quoted with the names of its columns, an object with its keys, and nothing is told of them."""
    write_note(panda, name, text)
    ended = panda.turn(query)
    assert answer in ended.data["response"].replace("| ", "").replace("\\", "")
    assert [source["node_id"] for source in ended.data["sources"]] == [f"knowledge:{name}"]
    assert panda.json("index", "rebuild")["users"]["default"]["as_text"] == []
    assert panda("validate", "1", "--strict").code == 0


def test_broken_lines_of_data_are_told_and_quoted_whole(panda: Panda) -> None:
    """A line that is no JSON and a row of another length: each by its line, by rebuild and validate."""
    write_note(panda, "ferry.json", '{"name": "Ferry", "price": "41 EUR",\n "seats": 12\n')
    write_note(panda, "trams.jsonl", '{"name": "Bus", "price": "3 EUR"}\n{"name": "Tram", "price": "4 EUR"\n')
    write_note(panda, "boats.csv", "name,price,stock\nBoat,7 EUR,3\nKayak,9 EUR\nCanoe,1 EUR,2,x\n")
    rebuilt = panda.json("index", "rebuild")["users"]["default"]["as_text"]
    validated = panda.json("validate", str(panda.store))["as_text"]
    places = [("boats.csv", 3), ("boats.csv", 4), ("ferry.json", 3), ("trams.jsonl", 2)]
    assert sorted(Path(fault["where"]).name for fault in rebuilt) == [f"{name}:{n}" for name, n in places]
    assert sorted((Path(fault["path"]).name, fault["line"]) for fault in validated) == places
    answer = panda.turn("What is the price of the tram?").data["response"]
    assert '- {"name": "Tram", "price": "4 EUR" [1]\n' in answer


@pytest.mark.parametrize("name", ["trip.html", "trip.HTM"])
def test_a_saved_page_is_a_note_of_what_it_says(panda: Panda, name: str) -> None:
    """Its markup is no text, its charset is the one that it names, and no line is cited of it."""
    page = (
        '<html><head><meta charset="koi8-r"><title>Trip</title><script>var price = 99;</script></head><body>'
        "<h1>Trip</h1>\n<p>The ferry to Хельсинки costs <b>41 EUR</b>.</p>\n</body></html>"
    )
    panda.write(f"store/users/default/knowledge/{name}", page.encode("koi8-r"))
    ended = panda.turn("How much does the ferry cost?")
    assert "The ferry to Хельсинки costs" in ended.data["response"]
    assert "41 EUR" in ended.data["response"]
    assert "var price" not in ended.text("context.md")
    assert f"knowledge:{name}, knowledge/{name}" in ended.data["response"]
    assert f"{name}:" not in ended.data["response"]
    assert panda.json("index", "rebuild")["users"]["default"]["as_text"] == []
    assert panda("validate", str(panda.store), "--strict").code == 0


def test_a_page_that_says_nothing_is_told(panda: Panda) -> None:
    """By rebuild and validate, as a file without text is; a turn goes on without it."""
    write_note(panda, "empty.html", "<html><head><script>draw()</script></head><body></body></html>")
    for faults in (
        panda.json("index", "rebuild")["users"]["default"]["as_text"],
        panda.json("validate", str(panda.store))["as_text"],
    ):
        assert ["says nothing" in fault["message"] for fault in faults] == [True]
    assert panda.turn("What does the empty page say?").code in (0, 22)


def test_a_note_of_nothing_but_front_matter_is_quoted(panda: Panda) -> None:
    """Its title, which stands above no text, is text itself."""
    write_note(panda, "lock.md", "---\ntitle: The bike lock code is 4417\n---\n")
    assert "4417" in panda.turn("What is the bike lock code?").data["response"]


def test_of_a_doubled_key_the_last_one_counts_and_the_others_are_text(panda: Panda) -> None:
    """A line that does not count is found as text and told with its place, by rebuild and validate."""
    path = write_note(
        panda, "move.md", "---\ndate: 2026-01-01\ndate: 2025-02-02\n---\n\nThe move is planned.\n"
    )
    assert "date: 2026-01-01" in panda.turn("Which date is 2026-01-01?").data["response"]
    rebuilt = panda.json("index", "rebuild")["users"]["default"]["as_text"]
    assert [fault["where"] for fault in rebuilt] == [f"{path}:2 (date)"]
    validated = panda.json("validate", str(panda.store))["as_text"]
    assert [(fault["line"], fault["message"]) for fault in validated] == [(2, rebuilt[0]["message"])]


def test_comments_are_no_text_of_a_note(panda: Panda) -> None:
    """A comment within a line or over several is not quoted; code keeps its own."""
    text = "It has <!-- or had --> two doors.\nThe roof <!-- the key lies\nunder the pot --> is flat.\n"
    write_note(panda, "shed.md", f"# The shed\n\n{text}\nThe mark of a comment is `<!-- x -->` in HTML.\n")
    assert "It has two doors." in panda.turn("How many doors has the shed?").data["response"]
    assert "under the pot" not in panda.turn("Where does the key of the shed lie?").data["response"]
    assert "`<!-- x -->`" in panda.turn("What is the mark of a comment in HTML?").data["response"]
    assert panda.problems() == []


def test_hidden_files_stay_out_in_silence(panda: Panda) -> None:
    """A hidden note is neither found nor told of."""
    write_note(panda, ".hidden.md", "The rake stands behind the garage.\n")
    assert "garage" not in panda.turn("Where does the rake stand?").data["response"]
    assert panda.json("index", "rebuild")["users"]["default"]["as_text"] == []
    assert panda.json("validate", str(panda.store))["as_text"] == []


def test_rebuild_a_turn_and_validate_count_the_same_notes(panda: Panda) -> None:
    """Notes that cannot be read, as links that lead nowhere, and those read as text are the same ones."""
    write_note(panda, "tea.md", "The tea is in the blue box.\n")
    write_note(panda, "date.md", "---\ndate: soon\n---\nThe cup is red.\n")
    write_note(panda, "photo.png", "no picture")
    with write_note(panda, "large.md", "").open("wb") as file:
        file.truncate(6_000_000)
    directory = panda.store / "users" / "default" / "knowledge"
    os.mkfifo(directory / "pipe.md")
    (directory / "gone.md").symlink_to("nowhere.md")
    (directory / "loop.md").symlink_to("loop.md")
    rebuilt = panda("index", "rebuild", "--json").data["users"]["default"]
    ended = panda.turn("Where is the tea?")
    validated = panda("validate", str(panda.store), "--json").data
    unreadable = {str(directory / name) for name in ("gone.md", "large.md", "loop.md", "pipe.md")}
    assert {problem["where"] for problem in rebuilt["problems"]} == unreadable
    assert {problem["path"] for problem in validated["problems"]} == unreadable
    assert "notes that cannot be read: 4;" in ended.err
    as_text = {str(directory / name) for name in ("date.md", "photo.png")}
    assert {fault["path"] for fault in validated["as_text"]} == as_text
    assert {fault["where"].partition(":")[0] for fault in rebuilt["as_text"]} == as_text
