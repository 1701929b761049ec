"""What a turn is shown of turns, memory, research, visits and notes that it loads."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.api import ScriptedPanda, Turn
from tests.script import Script, loaded_documents, pick
from tests.store_files import write_note, write_research, write_turn, write_visit

PREFERENCES = """---
budget: {value: $500-800, confidence: 0.9, source_turn: 808, updated_at: 2026-01-03T10:00:00Z}
preferred_brands:
  value: [Lenovo, ASUS]
  confidence: 0.7
favorite_hamster: Syrian
wakes_at: 6:30
loud: {value: true}
---
"""


def ask(ann: ScriptedPanda, query: str, *node_ids: str, **environ: str) -> Turn:
    """Run a turn that takes these nodes for relevant, or halts."""
    script = Script(
        retrieval={"relevant": pick(*node_ids)}, synthesis={"lines": pick("~")}, answer={"items": []}
    )
    return ann.turn(query, script=script, **environ)


def documents(turn: Turn) -> dict[str, list[str]]:
    """Return the lines of each document that the turn loaded, by node id, in order."""
    asked = turn.asked("synthesis")
    return loaded_documents(asked[0]) if asked else {}


def load(ann: ScriptedPanda, query: str, *node_ids: str) -> dict[str, list[str]]:
    """Return what a turn is shown of these nodes and of what they lead to."""
    return documents(ask(ann, query, *node_ids))


def heads(turn: Turn) -> dict[str, str]:
    """Return what stands beside each loaded node's id: title, confidence, age."""
    return dict(re.findall(r"(?m)^\[(\w+:[^\]]+)\] (.*)$", turn.asked("synthesis")[0].messages[-1].content))


def offered(turn: Turn) -> list[str]:
    """Return the ids of the nodes that were found."""
    part = turn.asked("retrieval")[0].text.partition("===== Options: relevant =====\n")[2]
    return re.findall(r"(?m)^- (\w+:.*?) \| ", part.partition("\n\n")[0])


def test_a_turn_is_quoted_without_marks(ann: ScriptedPanda) -> None:
    """A turn gives its summary and the sentences of its answer, without marks and list of sources."""
    response = "The LOQ 15 costs $697.00 [1]. It has 16 GB.\n\n- TUF A15\n\nSources:\n- [1] visit:a\n"
    summary = "Compared RTX 4050 laptops under $1000"
    write_turn(
        ann.user_directory, 811, query="Which has it?", response=response, summary=summary, status="approved"
    )
    turn = ask(ann, "Which RTX 4050 laptops?", "turn:811")
    assert documents(turn)["turn:811"] == [summary, "The LOQ 15 costs $697.00.", "It has 16 GB.", "TUF A15"]
    assert heads(turn)["turn:811"] == f"{summary}, confidence 0.90"


QUOTED = [("The oil is 5W-30.", "knowledge:oil.md"), ("It is 5W-30.", "knowledge:gone.md")]


def test_what_a_turn_quoted_stands_in_its_source(ann: ScriptedPanda) -> None:
    """Of a turn that quoted a note only what the user told is evidence."""
    clauses = [("I drive a Skoda.", "tells"), ("Which oil does it need?", "asks")]
    query = " ".join(text for text, _ in clauses)
    write_turn(
        ann.user_directory, 3, query=query, response="The oil is 5W-30. [1]", items=QUOTED, clauses=clauses
    )
    assert load(ann, "Which oil does my Skoda need?", "turn:3") == {"turn:3": ["I drive a Skoda."]}


def test_a_turn_that_told_nothing_leads_to_what_it_quoted(ann: ScriptedPanda) -> None:
    """Instead of a turn that only asked and quoted, the note is found; one that is gone is left out."""
    write_note(ann.user_directory, "oil.md", "The oil is 5W-30.\n")
    clauses = [("Which oil?", "asks")]
    write_turn(ann.user_directory, 3, query="Which oil?", response="x", items=QUOTED, clauses=clauses)
    turn = ask(ann, "Which oil is right?", "turn:3", "knowledge:")
    assert documents(turn) == {"knowledge:oil.md": ["The oil is 5W-30."]}
    assert "turn:3" not in offered(turn)


def test_a_refused_answer_leads_nowhere(ann: ScriptedPanda) -> None:
    """All that a turn that failed had quoted is no evidence."""
    path = write_turn(
        ann.user_directory, 3, query="Which oil?", response="x", items=QUOTED[:1], status="failed"
    )
    metadata = json.loads((path / "metadata.json").read_text(encoding="utf-8"))
    (path / "metadata.json").write_text(json.dumps({**metadata, "answered": False}), encoding="utf-8")
    assert "turn:3" not in load(ann, "Which oil is right?", "turn:3")


def test_what_was_noted_stands_in_memory(ann: ScriptedPanda) -> None:
    """A sentence that is kept in memory is evidence there; once it is deleted there, nowhere."""
    assert ann.turn("Anke waters the beds on Monday.").code == 0
    expected = {"fact:said_t3_1": ["Anke waters the beds on Monday."]}
    lines = load(ann, "Who waters the beds?", "turn:3", "fact:")
    assert {node_id: lines[node_id] for node_id in lines if node_id[:4] in ("fact", "turn")} == expected
    assert ann("memory", "retract", "said_t3_1").code == 0
    assert {node_id[:4] for node_id in load(ann, "Who waters the beds?", "turn:3", "fact:")} <= {"memo"}


def test_status_decides_where_a_turn_starts(ann: ScriptedPanda) -> None:
    """An imported turn begins at .70, a failed one at .30; one that is not saved is not found."""
    for number, status in ((11, "imported"), (12, "failed"), (13, "running")):
        write_turn(ann.user_directory, number, query="Kites?", response="Kites fly.", status=status)
    turn = ask(ann, "Which kites were there?", "turn:1")
    confidences = {node_id: head.rpartition(" ")[2] for node_id, head in heads(turn).items()}
    assert (confidences["turn:11"], confidences["turn:12"]) == ("0.70", "0.30")
    assert "turn:13" not in offered(turn)


def test_preferences(ann: ScriptedPanda) -> None:
    """Mapped, block and bare values give one line each, verbatim; what lacks a confidence counts .50."""
    (ann.user_directory / "preferences.md").write_text(PREFERENCES, encoding="utf-8")
    query = "Which budget, preferred brands, favorite hamster, loud, wakes at?"
    turn = ask(ann, query, "memory:")
    lines = documents(turn)
    assert lines == {
        "memory:budget": ["budget: $500-800"],
        "memory:preferred_brands": ["preferred_brands: Lenovo, ASUS"],
        "memory:favorite_hamster": ["favorite_hamster: Syrian"],
        "memory:wakes_at": ["wakes_at: 6:30"],
        "memory:loud": ["loud: true"],
    }
    confidences = [
        heads(turn)[f"memory:{key}"].split()[-1] for key in ("favorite_hamster", "preferred_brands")
    ]
    assert confidences == ["0.50", "0.70"]
    assert "memory:loud has no confidence; 0.50 assumed" in turn.err


def test_contradictions_are_never_plain(ann: ScriptedPanda) -> None:
    """A contradicted fact is quoted with both values and the mark; once settled, plainly again."""
    assert ann("memory", "set", "tea", "Assam").code == 0
    fact = {"entity": "user:ann", "relation": "tea", "source": "panda://h/user/bob", "scope": "local"}
    values = (("b", "string", "Sencha", "1.001"), ("c", "text", "Assam", "1.002"))
    for id_, kind, value, hlc in values:
        other = {"id": id_, "value": {"type": kind, "v": value}, "confidence": 0.6, "hlc": hlc, **fact}
        ann.write_lines(f"{id_}.jsonl", other)
    for words, line in (
        (("merge", "b.jsonl"), "tea: Assam (CONTRADICTED: also Sencha)"),
        (("resolve", "tea", "--value", "Assam"), "tea: Assam"),
        (("merge", "c.jsonl"), "tea: Assam (CONTRADICTED: as string, also as text)"),
    ):
        assert ann("memory", *words).code == 0
        assert load(ann, "Which tea?", "memory:tea")["memory:tea"] == [line]


def test_a_visit_gives_its_fields_and_they_age_each_their_own_way(ann: ScriptedPanda) -> None:
    """After 20 days a price is expired, and no line, while the specs of the same visit are."""
    fields = {
        "title": "Swift 3",
        "price": "$697.00",
        "specs": {"gpu": "RTX 4050", "ports": ["USB-C", "HDMI"]},
        "availability": "In Stock",
    }
    write_visit(ann.user_directory, 2, "visit_a", fields, quality=0.9)
    lines = load(ann, "What does the Swift 3 offer?", "visit:visit_a")["visit:visit_a"]
    assert lines == [
        "Swift 3: price $697.00",
        "Swift 3: availability In Stock",
        "Swift 3: gpu RTX 4050",
        "Swift 3: ports USB-C, HDMI",
        "Swift 3: url https://shop.example/visit_a",
    ]
    later = ask(ann, "What does the Swift 3 offer?", "visit:visit_a", PANDA_NOW="2026-01-24T14:30:00Z")
    assert set(lines) - set(documents(later)["visit:visit_a"]) == set(lines[:2])


def test_two_visits_of_one_id_halt_a_turn(ann: ScriptedPanda) -> None:
    """A visit id must match exactly one directory."""
    for number in (1, 2):
        write_visit(ann.user_directory, number, "visit_a", {"title": "Swift 3"}, quality=0.9)
    ended = ask(ann, "What is the Swift 3?", "visit:visit_a")
    assert (ended.code, "2 visits" in ended.error["message"]) == (20, True)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("webpage_cache/page-visit_loq/extracted.json", '{\n"title": \n}', ":3"),
        ("metadata.json", "[1]", ""),
    ],
)
def test_what_does_not_read_is_told_with_its_place(
    ann: ScriptedPanda, name: str, text: str, line: str
) -> None:
    """A damaged visit or turn is found by validate, and by the index with its line."""
    path = ann.turn_file(1, name)
    path.write_text(text, encoding="utf-8")
    assert any(str(path) in problem for problem in ann.problems())
    assert f"{path}{line}" in ann("index", "rebuild").out


def test_the_newest_research_of_a_topic_wins(ann: ScriptedPanda) -> None:
    """Claims carry their source, and the file made last is taken; one with few fields is still read."""
    claim = {"claim": "Lenovo LOQ 15 @ $697", "source": "bestbuy.com", "confidence": 0.92}
    write_research(ann.user_directory, 1, created_at="2025-12-01T00:00:00Z", summary="Laptops of before")
    write_research(ann.user_directory, 2, summary="Found 12 laptops", claims=[claim])
    lines = load(ann, "Which laptops did the research find?", "research:")
    assert lines["research:commerce.laptop"] == ["Found 12 laptops", "Lenovo LOQ 15 @ $697 (bestbuy.com)"]


@pytest.mark.parametrize("price", ["$697", "330 €", "330 EUR", "CHF 330", "330 euros"])
def test_a_price_ages_as_one(price: str, ann: ScriptedPanda) -> None:
    """All that a research says of a price is no line after 20 days, its sign or code on either side."""
    claims = [{"claim": f"Vaude tent, {price}"}, {"claim": "The Vaude tent is green"}]
    write_research(ann.user_directory, 1, topic="tents", summary="Tents", claims=claims, expires_at=None)
    late = documents(ask(ann, "Which tent?", "research:", PANDA_NOW="2026-02-14T14:30:00Z"))
    assert not any(price in line for line in late.get("research:tents", []))
    assert any("green" in line for line in late["research:tents"])


def test_links_are_followed(ann: ScriptedPanda) -> None:
    """A turn leads to its research and that to its visits."""
    write_turn(ann.user_directory, 3, query="Which tents?", response="Two tents.", summary="Two tents")
    write_research(ann.user_directory, 3, topic="tents", webpage_cache=["visit_t"])
    write_visit(ann.user_directory, 3, "visit_t", {"title": "Vaude tent", "price": "$90"}, quality=0.9)
    lines = load(ann, "Which tents were there?", "turn:3")
    assert set(lines) == {"turn:3", "research:tents", "visit:visit_t"}


@pytest.mark.parametrize("topic", ["café.größe", "a\ud800b", 'quoted "x"', "a\\b"])
def test_topics_as_json_writes_them(ann: ScriptedPanda, topic: str) -> None:
    """Research of any topic is found and loaded, and files that do not read stop no other."""
    write_research(ann.user_directory, 1, topic=topic, summary="A crane.")
    write_visit(ann.user_directory, 1, "visit_é", {"title": "The llama", "price": "$5"}, quality=0.9)
    ann.turn_file(1, "webpage_cache/bad").mkdir()
    ann.turn_file(1, "webpage_cache/bad/manifest.json").write_bytes(b"\xff\xfe")
    ann.turn_file(2, "research.json").mkdir()
    lines = load(ann, "What do the crane and the llama cost?", "research:", "visit_é")
    assert sum(texts[0] == "A crane." for texts in lines.values()) == 1
    assert "The llama: price $5" in lines["visit:visit_é"]


def test_a_note_gives_sentences_and_list_items(ann: ScriptedPanda) -> None:
    """A short item gets its heading; links lose their brackets; its front matter gives its confidence."""
    text = "---\nconfidence: 0.6\n---\n# Farms\nThey were in St. Petersburg. See [[IRA]].\n\n- Olgino\n"
    write_note(ann.user_directory, "Research/troll_farms.md", text)
    turn = ask(ann, "Where were the farms?", "knowledge:")
    (node_id,) = documents(turn)
    assert node_id == "knowledge:Research/troll_farms.md"
    assert documents(turn)[node_id] == ["They were in St. Petersburg.", "Farms: See IRA.", "Farms: Olgino"]
    assert heads(turn)[node_id].endswith("confidence 0.60")


@pytest.mark.parametrize(
    ("name", "node_id"),
    [
        (b"caf\xe9.md", "knowledge:caf%E9.md"),
        (b"\xff/a\nb.md", "knowledge:%FF/a%0Ab.md"),
        (b"50%20off.md", "knowledge:50%2520off.md"),
        ("100 % größer.md".encode(), "knowledge:100 % größer.md"),
    ],
)
def test_names_are_bytes(ann: ScriptedPanda, name: bytes, node_id: str) -> None:
    """A note of any name is found and loaded under an id that is text; other notes lead to it by that."""
    write_note(ann.user_directory, os.fsdecode(name), "The crane stands in Bergen.")
    folder = Path(os.fsdecode(name)).parent / "other.md"
    write_note(ann.user_directory, str(folder), f"Look at [[{node_id.removeprefix('knowledge:')}]].")
    assert load(ann, "Where is the crane?", "Bergen")[node_id] == ["The crane stands in Bergen."]
    assert node_id in load(ann, "Where shall I look?", "Look at")


def test_one_letter_of_two_names(ann: ScriptedPanda) -> None:
    """Two notes whose names differ in a byte that is no character are two nodes."""
    for byte in (b"\xe8", b"\xe9"):
        write_note(ann.user_directory, os.fsdecode(byte + b".md"), "The crane is here.")
    assert set(load(ann, "Where is the crane?", "crane")) == {"knowledge:%E8.md", "knowledge:%E9.md"}


def test_links_between_notes(ann: ScriptedPanda) -> None:
    """A note leads to notes that it links to by path or by a name that one note has, and is followed once."""
    links = "[[people/nora|Nora]], [[Money#Rent]], [[Twice]], [[Nowhere]] and [[Trip]]"
    write_note(ann.user_directory, "Trip.md", f"See {links}.")
    write_note(ann.user_directory, "People/Nora.md", "Nora has the key. [[Far]]")
    for name in ("Plans/Money", "Twice", "old/Twice", "old/more/Twice", "Far", ".trash/Nora"):
        write_note(ann.user_directory, f"{name}.md", "Something else.")
    lines = load(ann, "What did I see on the trip?", "knowledge:Trip.md")
    assert lines["knowledge:Trip.md"] == ["See Nora, Money: Rent, Twice, Nowhere and Trip."]
    assert set(lines) == {
        "knowledge:Trip.md",
        "knowledge:People/Nora.md",
        "knowledge:Plans/Money.md",
        "knowledge:Twice.md",
    }


FILLER = "Bring warm clothes for the evening. "


def test_a_long_note_is_found_by_section(ann: ScriptedPanda) -> None:
    """A long document is found, loaded and named by section; a short one as a whole."""
    text = (
        f"---\ntitle: Travel\n---\n# Japan\n{FILLER * 120}\n## Visa\nThe stamp is a crane.\n"
        f"# Peru\n{FILLER * 120}\n## Visa\nThe stamp is a llama.\n"
    )
    write_note(ann.user_directory, "travel#1.md", text)
    write_note(ann.user_directory, "short.md", "# Visa\nA llama again.\n")
    turn = ask(ann, "Which stamp has a llama?", "llama")
    section = next(node_id for node_id in documents(turn) if node_id.startswith("knowledge:travel#1.md#visa"))
    assert heads(turn)[section].startswith("Travel: Visa")
    assert documents(turn)[section] == ["The stamp is a llama."]
    assert documents(turn)["knowledge:short.md"] == ["Visa: A llama again."]


def test_sections_keep_their_names(ann: ScriptedPanda) -> None:
    """A note and its sections may grow or shrink: what cites a section by its id stays sound."""
    write_note(
        ann.user_directory, "travel.md", f"# Visa\nIt is free. {FILLER * 250}\n# Money\nBring euros.\n"
    )
    script = Script(
        retrieval={"relevant": pick("Bring euros")},
        synthesis={"lines": pick("euros")},
        answer={"items": []},
    )
    turn = ann.turn("Which money shall I bring?", script=script)
    assert "knowledge:travel.md#money" in turn.section(2)
    write_note(ann.user_directory, "travel.md", "# Visa\nIt is free.\n# Money\nBring euros.\n")
    assert ann.problems() == []


def test_notes_tell_their_day(ann: ScriptedPanda) -> None:
    """A day in a file's name or a heading is that of the lines below, which carry it unless they name one."""
    write_note(ann.user_directory, "2026-05-12 vet.md", "Momo got her shots.\nNext: 1 June 2027.\n")
    write_note(ann.user_directory, "meters.md", "# Meters\n## 1 July 2026\ngas 6,203 cubic metres used\n")
    lines = load(ann, "When did Momo get shots, and how much gas was used?", "knowledge:")
    assert lines == {
        "knowledge:2026-05-12 vet.md": ["2026-05-12 vet: Momo got her shots.", "Next: 1 June 2027."],
        "knowledge:meters.md": ["1 July 2026: gas 6,203 cubic metres used"],
    }


def test_short_lines_carry_what_they_stand_under(ann: ScriptedPanda) -> None:
    """The line that introduces a list, else the heading, else the note's name, but not a label."""
    write_note(ann.user_directory, "party.md", "Guests\n\nNoor\nMika\n\n# Food\nCake.\n\nDrinks: tea\n")
    write_note(ann.user_directory, "gym.md", "Closed.\n")
    lines = load(ann, "Which party guests, food and drinks? Is the gym closed?", "knowledge:")
    assert lines["knowledge:party.md"] == [
        "Guests",
        "Guests: Noor",
        "Guests: Mika",
        "Food: Cake.",
        "Drinks: tea",
    ]
    assert lines["knowledge:gym.md"] == ["gym: Closed."]
