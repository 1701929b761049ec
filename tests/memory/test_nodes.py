"""Nodes loaded from a small store."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import pytest

from panda.errors import MemoryNodeError
from panda.index.index import Index
from panda.memory.budget import is_usable, load_nodes
from panda.memory.node import Node, trace
from panda.memory.reader import NodeReader
from panda.retrieval.candidates import Retriever
from panda.store.layout import Layout, UserStore
from panda.store.records import Line
from tests.stores import NOW, write_research, write_turn, write_visit

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


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


@pytest.fixture
def reader(layout: Layout) -> NodeReader:
    return NodeReader(UserStore(layout.root, "ann", lambda: NOW))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_turn_items_are_verbatim(layout: Layout, reader: NodeReader) -> None:
    """A turn gives summary, query and the sentences of its answer, without marks and list of sources."""
    write_turn(
        layout,
        811,
        query="Which has an RTX 4050?",
        response="The LOQ 15 costs $697.00 [1]. It has 16 GB.\n\n- TUF A15\n\nSources:\n- [1] visit:a\n",
        summary="Compared RTX 4050 laptops under $1000",
        status="approved",
        at=datetime(2026, 1, 4, tzinfo=UTC),
    )
    node = reader.load("turn:811")
    assert [item.text for item in node.items] == [
        "Compared RTX 4050 laptops under $1000",
        "Which has an RTX 4050?",
        "The LOQ 15 costs $697.00.",
        "It has 16 GB.",
        "TUF A15",
    ]
    assert node.provenance == "turns/turn_000811/context.md"
    assert {item.content_type for item in node.items} == {"general_fact"}
    assert round(node.confidence, 2) == 0.90


def standing(reader: NodeReader, node_id: str) -> list[str]:
    """The lines of a node that are evidence by themselves."""
    return [item.text for item in reader.load(node_id).items if is_usable(item)]


def test_what_a_turn_quoted_stands_in_its_source(layout: Layout, reader: NodeReader) -> None:
    """Of a turn that quoted a note only what the user told is evidence; the quotation leads to the note."""
    write(layout.of("ann").knowledge / "oil.md", "The oil is 5W-30.\n")
    items = [("The oil is 5W-30.", "knowledge:oil.md"), ("It is 5W-30.", "knowledge:gone.md")]
    clauses = [("I drive a Skoda.", "tells"), ("Which oil does it need?", "asks")]
    query = " ".join(text for text, _ in clauses)
    write_turn(layout, 1, query=query, response="The oil is 5W-30. [1]", items=items, clauses=clauses)
    assert standing(reader, "turn:1") == ["I drive a Skoda."]
    assert reader.load("turn:1").origins == ("knowledge:oil.md", "knowledge:gone.md")
    assert "The oil is 5W-30." in reader.load("turn:1").text  # an older turn that cites it stays sound


def test_a_turn_that_told_nothing_leads_to_what_it_quoted(layout: Layout, reader: NodeReader) -> None:
    """Instead of a turn that only asked and quoted, the note is loaded; one that is gone is left out."""
    write(layout.of("ann").knowledge / "oil.md", "The oil is 5W-30.\n")
    items = [("The oil is 5W-30.", "knowledge:oil.md"), ("It is 5W-30.", "knowledge:gone.md")]
    write_turn(layout, 1, query="Which oil?", response="x", items=items, clauses=[("Which oil?", "asks")])
    assert [node.id for node in load_nodes(reader, ["turn:1"])] == ["turn:1", "knowledge:oil.md"]
    assert standing(reader, "turn:1") == []


def test_a_refused_answer_leads_nowhere(layout: Layout, reader: NodeReader) -> None:
    """What a turn that failed had quoted is not followed."""
    items = [("The oil is 5W-30.", "knowledge:oil.md")]
    paths = write_turn(layout, 1, query="Which oil?", response="x", items=items, status="failed")
    metadata = json.loads((paths / "metadata.json").read_text(encoding="utf-8"))
    write(paths / "metadata.json", json.dumps({**metadata, "answered": False}))
    assert reader.load("turn:1").origins == ()
    assert standing(reader, "turn:1") == []


def test_what_was_noted_stands_in_memory(layout: Layout, reader: NodeReader) -> None:
    """A sentence that is kept in memory is evidence there; once it is deleted there, nowhere."""
    said = "Anke waters the beds."
    noted = [(said, "fact:said_t1_1")]
    write_turn(layout, 1, query=said, response="Noted.", items=[], clauses=[(said, "tells")], noted=noted)
    assert standing(reader, "turn:1") == []
    assert [node.id for node in load_nodes(reader, ["turn:1"])] == ["turn:1"]


def test_status_decides_where_a_turn_starts(layout: Layout, reader: NodeReader) -> None:
    """An imported turn begins at .70, a failed one at .30."""
    write_turn(layout, 1, query="a", response="b", status="imported", at=NOW)
    write_turn(layout, 2, query="a", response="b", status="failed", at=NOW)
    assert [reader.load(f"turn:{n}").confidence for n in (1, 2)] == [0.70, 0.30]


def test_running_turn_is_no_node(layout: Layout, reader: NodeReader) -> None:
    """A turn that was not saved cannot be loaded."""
    write_turn(layout, 3, query="a", response="b", status="running", at=NOW)
    with pytest.raises(MemoryNodeError, match="running"):
        reader.load("turn:3")


def test_preferences(layout: Layout, reader: NodeReader) -> None:
    """Mapped, block and bare values give one line each, verbatim; what lacks a confidence counts .50."""
    write(layout.of("ann").preferences, PREFERENCES)
    nodes = {node.id: node for node in reader.preferences()}
    assert [node.text for node in nodes.values()] == [
        "budget: $500-800",
        "preferred_brands: Lenovo, ASUS",
        "favorite_hamster: Syrian",
        "wakes_at: 6:30",
        "loud: true",
    ]
    assert nodes["memory:favorite_hamster"].confidence == 0.50
    assert nodes["memory:preferred_brands"].confidence == 0.70
    assert nodes["memory:loud"].warnings
    assert reader.load("memory:budget") == nodes["memory:budget"]


def test_contradictions_are_never_plain(layout: Layout, reader: NodeReader) -> None:
    """What another fact contradicts is quoted with both values and the mark; once settled, plainly again."""
    fact = {
        "entity": "user:ann",
        "relation": "tea",
        "source": "panda://h/user/bob",
        "scope": "local",
        "valid_until": None,
        "kind": "preference",
        "source_turn": None,
        "asserted_at": "2026-01-03T10:00:00Z",
        "content_type": "preference",
    }
    said = (
        ("a", "string", "Assam", 0.9, "1.000"),
        ("b", "string", "Sencha", 0.6, "1.001"),
        ("c", "text", "Assam", 0.7, "1.002"),
    )
    lines = [
        json.dumps({**fact, "id": i, "value": {"type": t, "v": v}, "confidence": c, "hlc": h})
        for i, t, v, c, h in said
    ]
    log, pair = layout.of("ann").memory_log, {"fact_a": "a", "fact_b": "b", "resolution_fact": "a"}
    write(log, f"{lines[0]}\n{lines[1]}\n")
    assert reader.load("memory:tea").text == "tea: Assam (CONTRADICTED: also Sencha)"
    write(
        layout.of("ann").conflicts_log, json.dumps({"conflict_id": "k", "status": "resolved", **pair}) + "\n"
    )
    assert reader.load("memory:tea").text == "tea: Assam"
    write(log, "\n".join(lines) + "\n")
    assert reader.load("memory:tea").text == "tea: Assam (CONTRADICTED: as string, also as text)"


def test_broken_preferences_name_the_line(layout: Layout, reader: NodeReader) -> None:
    """Invalid YAML is an error with file and line."""
    write(layout.of("ann").preferences, "---\nbudget: 1\nbrands: [a\n---\n")
    with pytest.raises(MemoryNodeError) as caught:
        reader.load("memory:budget")
    assert caught.value.where is not None
    assert "preferences.md:" in caught.value.where


def test_visit_items_age_each_their_own_way(layout: Layout, reader: NodeReader) -> None:
    """After 20 days a price is expired while the specs of the same visit are not."""
    write_visit(
        layout,
        811,
        "visit_abc123",
        {
            "title": "Lenovo LOQ 15 Gaming Laptop",
            "price": "$697.00",
            "specs": {"gpu": "NVIDIA RTX 4050", "ports": ["USB-C", "HDMI"]},
            "availability": "In Stock",
        },
        quality=0.90,
        at=datetime(2026, 1, 4, tzinfo=UTC).replace(day=4),
    )
    late = NodeReader(UserStore(layout.root, "ann", lambda: datetime(2026, 1, 24, tzinfo=UTC)))
    items = {item.text: item for item in late.load("visit:visit_abc123").items}
    price = items["Lenovo LOQ 15 Gaming Laptop: price $697.00"]
    gpu = items["Lenovo LOQ 15 Gaming Laptop: gpu NVIDIA RTX 4050"]
    assert (price.content_type, price.confidence < 0.30) == ("price", True)
    assert (gpu.content_type, gpu.confidence > 0.50) == ("product_spec", True)
    assert "Lenovo LOQ 15 Gaming Laptop: ports USB-C, HDMI" in items
    assert items["Lenovo LOQ 15 Gaming Laptop: availability In Stock"].content_type == "availability"


def test_two_visits_of_one_id_are_an_error(layout: Layout, reader: NodeReader) -> None:
    """A visit id must match exactly one directory."""
    for number in (1, 2):
        write_visit(layout, number, "visit_a", {"title": "x", "price": "$1"}, quality=0.9, at=NOW)
    with pytest.raises(MemoryNodeError, match="2 visits"):
        reader.load("visit:visit_a")
    with pytest.raises(MemoryNodeError, match="no visit"):
        reader.load("visit:visit_b")


def test_corrupt_visit_names_file_and_line(layout: Layout, reader: NodeReader) -> None:
    """Broken JSON is reported with file and line."""
    directory = write_visit(layout, 1, "visit_a", {"title": "x"}, quality=0.9, at=NOW)
    (directory / "extracted.json").write_text('{\n"title": \n}', encoding="utf-8")
    with pytest.raises(MemoryNodeError) as caught:
        reader.load("visit:visit_a")
    assert str(caught.value.where).endswith("extracted.json:3")


def test_newest_research_of_a_topic_wins(layout: Layout, reader: NodeReader) -> None:
    """Claims carry their source, and the file made last is taken; one with few fields is still read."""
    claim = {"claim": "Lenovo LOQ 15 @ $697", "source": "bestbuy.com", "confidence": 0.92}
    write_research(
        layout, 1, {"topic": "commerce.laptop", "created_at": "2025-01-01T00:00:00Z", "summary": "old"}
    )
    write_research(
        layout,
        2,
        {
            "topic": "commerce.laptop",
            "created_at": "2026-01-04T12:00:00Z",
            "summary": "Found 12 laptops",
            "quality_score": 0.88,
            "claims": [claim],
            "webpage_cache": ["visit_abc123"],
        },
    )
    write_research(layout, 3, {"topic": "hamsters"})
    node = reader.load("research:commerce.laptop")
    assert [item.text for item in node.items] == ["Found 12 laptops", "Lenovo LOQ 15 @ $697 (bestbuy.com)"]
    assert node.items[1].content_type == "price"
    assert node.links == ("visit:visit_abc123",)
    assert reader.load("research:hamsters").items == ()


@pytest.mark.parametrize("price", ["$697", "330 €", "330 EUR", "CHF 330", "330 euros"])
def test_a_price_ages_as_one(price: str, layout: Layout, reader: NodeReader) -> None:
    """What a file says of a price ages as a price, its sign or code on either side of the number."""
    write_research(layout, 1, {"topic": "tents", "claims": [{"claim": f"Vaude tent, {price}"}]})
    assert [item.content_type for item in reader.load("research:tents").items] == ["price"]


@pytest.mark.parametrize("topic", ["café.größe", "a\ud800b", 'quoted "x"', "a\\b"])
def test_topics_as_json_writes_them(layout: Layout, reader: NodeReader, topic: str) -> None:
    """Research of any topic that the index finds is loaded, and files that do not read stop no other."""
    write_turn(layout, 1, query="Q?", response="A.")
    write_research(layout, 1, {"topic": topic, "summary": "A crane."})
    write_visit(layout, 1, "visit_é", {"title": "The llama"}, quality=0.9)
    bad = layout.of("ann").turn(1).webpage_cache / "bad"
    bad.mkdir()
    (bad / "manifest.json").write_bytes(b"\xff\xfe")
    (layout.of("ann").turn(2).directory / "research.json").mkdir(parents=True)
    find = Retriever(Index(layout), "ann").find
    research, visit = (find(word, before_turn=None)[0].node_id for word in ("crane", "llama"))
    assert reader.load(research).items[0].text == "A crane."
    assert reader.load(visit).title == "The llama"


def test_knowledge_documents(layout: Layout, reader: NodeReader) -> None:
    """A knowledge document gives its sentences and list items; a short item gets its heading."""
    path = layout.of("ann").knowledge / "Research" / "troll_farms.md"
    write(path, "---\nconfidence: 0.6\n---\n# Farms\nThey were in St. Petersburg. See [[IRA]].\n\n- Olgino\n")
    node = reader.load("knowledge:Research/troll_farms.md")
    assert node.source_type == "fact"
    assert node.text.split("\n") == ["They were in St. Petersburg.", "Farms: See IRA.", "Farms: Olgino"]
    assert node.confidence == pytest.approx(0.6)
    assert node.links == ()
    with pytest.raises(MemoryNodeError):
        reader.load("knowledge:../preferences.md")


@pytest.mark.parametrize(
    ("name", "node_id"),
    [
        (b"caf\xe9.md", "knowledge:caf%E9.md"),
        (b"\xff/a\nb.md", "knowledge:%FF/a%0Ab.md"),
        (b"50%20off.md", "knowledge:50%2520off.md"),
        (b"50%20off.md", "knowledge:50%20off.md"),
        ("100 % größer.md".encode(), "knowledge:100 % größer.md"),
    ],
)
def test_names_are_bytes(layout: Layout, reader: NodeReader, name: bytes, node_id: str) -> None:
    """A note of any name is found and loaded under an id that is text; an id of before is known too."""
    path = layout.of("ann").knowledge / os.fsdecode(name)
    write(path, "The crane stands in Bergen.")
    write(path.parent / "other.md", f"See [[{node_id.removeprefix('knowledge:')}]].")
    found = Retriever(Index(layout), "ann").find("Where is the crane?", before_turn=None)
    node = reader.load(node_id)
    assert node.items[0].text == "The crane stands in Bergen."
    assert reader.load(found[0].node_id).provenance == node.provenance
    node.provenance.encode()
    folder = PurePosixPath(found[0].node_id.removeprefix("knowledge:")).parent
    assert reader.load(f"knowledge:{folder / 'other.md'}").links == (found[0].node_id,)


def test_one_letter_of_two_names(layout: Layout) -> None:
    """Two notes whose names differ in a byte that is no character are two nodes."""
    for byte in (b"\xe8", b"\xe9"):
        write(layout.of("ann").knowledge / os.fsdecode(byte + b".md"), "The crane.")
    found = Retriever(Index(layout), "ann").find("crane", before_turn=None)
    assert sorted(one.node_id for one in found) == ["knowledge:%E8.md", "knowledge:%E9.md"]


@pytest.mark.parametrize("name", ["%2E%2E%2Fpreferences.md", "a%00.md", "a\0.md", "x" * 300])
def test_no_name_leads_out(layout: Layout, reader: NodeReader, name: str) -> None:
    """Escapes of dots, slashes and NUL, and names too long for any file, are unknown nodes."""
    write(layout.of("ann").preferences, "x: y")
    with pytest.raises(MemoryNodeError):
        reader.load(f"knowledge:{name}")


def test_links_between_notes(layout: Layout, reader: NodeReader) -> None:
    """A note leads to notes that it links to by path or by a name that one note has, and is followed once."""
    vault = layout.of("ann").knowledge
    write(vault / "Trip.md", "See [[people/nora|Nora]], [[Money#Rent]], [[Twice]], [[Nowhere]] and [[Trip]].")
    write(vault / "People" / "Nora.md", "Nora has the key. [[Far]]")
    for name in ("Plans/Money", "Twice", "old/Twice", "old/more/Twice", "Far", ".trash/Nora"):
        write(vault / f"{name}.md", "Something else.")
    node = reader.load("knowledge:Trip.md")
    assert node.links == ("knowledge:People/Nora.md", "knowledge:Plans/Money.md", "knowledge:Twice.md")
    assert node.text == "See Nora, Money: Rent, Twice, Nowhere and Trip."
    loaded = [one.id for one in load_nodes(reader, [node.id])]
    assert loaded == [node.id, *node.links]


@pytest.mark.parametrize(
    "node_id", ["turn:5", "turn:x", "memory:nothing", "fact:nothing", "research:no", "oops"]
)
def test_missing_nodes(reader: NodeReader, node_id: str) -> None:
    """What is not there is a memory error, whatever its kind."""
    with pytest.raises(MemoryNodeError):
        reader.load(node_id)


def test_corrupt_metadata(layout: Layout, reader: NodeReader) -> None:
    """A turn with broken metadata is a memory error with the place."""
    paths = write_turn(layout, 1, query="a", response="b", status="approved", at=NOW)
    (paths / "metadata.json").write_text(json.dumps([1]), encoding="utf-8")
    with pytest.raises(MemoryNodeError) as caught:
        reader.load("turn:1")
    assert "metadata.json" in str(caught.value.where)


def test_long_document_by_section(tmp_path: Path) -> None:
    """A long document is found, loaded and cited by section; a short one as a whole."""
    layout = Layout(tmp_path)
    path = layout.of("ann").knowledge / "travel#1.md"
    path.parent.mkdir(parents=True)
    filler = "Bring warm clothes for the evening. " * 120
    path.write_text(
        f"---\ntitle: Travel\n---\n# Japan\n{filler}\n## Visa\nThe stamp is a crane.\n"
        f"# Peru\n{filler}\n## Visa\nThe stamp is a llama.\n",
        encoding="utf-8",
    )
    (path.parent / "short.md").write_text("# Visa\nA crane again.\n", encoding="utf-8")
    found = [one.node_id for one in Retriever(Index(layout), "ann").find("llama stamp", before_turn=None)]
    assert found[0] == "knowledge:travel#1.md#visa-2"
    reader = NodeReader(UserStore(layout.root, "ann", lambda: NOW))
    node = reader.load(found[0])
    assert (node.title, node.provenance) == ("Travel: Visa", "knowledge/travel#1.md")
    assert [item.text for item in node.items] == ["The stamp is a llama."]
    assert len(reader.load("knowledge:travel#1.md").items) > 100
    assert [item.text for item in reader.load("knowledge:short.md").items] == ["Visa: A crane again."]
    with pytest.raises(MemoryNodeError):
        reader.load("knowledge:travel#1.md#nowhere")


def test_sections_keep_their_names(layout: Layout, reader: NodeReader) -> None:
    """However long a note and its sections grow or shrink, an id names the same section; former ids too."""
    path, filler = layout.of("ann").knowledge / "travel.md", "Bring warm clothes for the evening. "
    names = [f"knowledge:travel.md#{name}" for name in ("visa", "money", "visa-2")]
    for length in (0, 250, 0):
        write(path, f"# Visa\nThe first. {filler * length}\n# Money\nThe second.\n# Visa\nThe third.\n")
        texts = [reader.load(name).items[0].text for name in names]
        assert texts == ["Visa: The first.", "Money: The second.", "Visa: The third."]
    write(path, f"# Visa\nThe first. {filler * 250}The last.\n# Money\nThe second.\n")
    before, now = (reader.load(f"knowledge:travel.md#{name}") for name in ("visa-2", "visa~2"))
    assert [(line.text, line.line) for line in before.items] == [(line.text, line.line) for line in now.items]
    assert now.items[-1].text == "Visa: The last."
    found = Retriever(Index(layout), "ann").find("What is the last?", before_turn=None)
    assert "visa~2" in {one.node_id.partition("#")[2] for one in found}


def test_notes_tell_their_day(layout: Layout, reader: NodeReader) -> None:
    """A day in a file's name or a heading is that of the lines below, which carry it unless they name one."""
    write(layout.of("ann").knowledge / "2026-05-12 vet.md", "Momo got her shots.\nNext: 1 June 2027.\n")
    write(layout.of("ann").knowledge / "meters.md", "# Meters\n## 1 July 2026\ngas 6,203 cubic metres used\n")
    vet, meters = reader.load("knowledge:2026-05-12 vet.md"), reader.load("knowledge:meters.md")
    assert [item.text for item in vet.items] == [
        "2026-05-12 vet: Momo got her shots.",
        "Next: 1 June 2027.",
    ]
    assert [item.text for item in meters.items] == ["1 July 2026: gas 6,203 cubic metres used"]
    assert (str(vet.at), str(meters.items[0].at)) == (
        "2026-05-12 00:00:00+00:00",
        "2026-07-01 00:00:00+00:00",
    )


def test_short_lines_carry_what_they_stand_under(layout: Layout, reader: NodeReader) -> None:
    """The line that introduces a list, else the heading, else the note's name, but not a label."""
    write(layout.of("ann").knowledge / "party.md", "Guests\n\nNoor\nMika\n\n# Food\nCake.\n\nDrinks: tea\n")
    write(layout.of("ann").knowledge / "gym.md", "Closed.\n")
    texts = [item.text for item in reader.load("knowledge:party.md").items]
    assert texts == ["Guests", "Guests: Noor", "Guests: Mika", "Food: Cake.", "Drinks: tea"]
    assert reader.load("knowledge:gym.md").text == "gym: Closed."


def test_what_became_of_a_line() -> None:
    """A cited line is the same, has moved within its node, says something else in its place, or is gone."""
    first, second = (Line(text, "default", 0.9, None) for text in ("a", "b"))

    def node(*lines: Line) -> Node:
        return Node("fact:n", "fact", "n", "facts.md", None, lines)

    cited = node(first, second).items[1]
    assert (cited.id, cited.node, cited.place) == ("fact:n 2", "fact:n", 2)
    assert trace(cited, node(second, second)) == "same"
    assert trace(cited, node(second, first)) == "moved"
    assert trace(cited, node(first, first)) == "changed"
    assert (trace(cited, node(first)), trace(cited, None)) == ("gone", "gone")
