"""The lines that phase 2.2 is offered, and how close they are to the query."""

from pathlib import Path, PurePosixPath

from panda.index.vectors import VectorStore
from panda.language.reading import Reading
from panda.memory.budget import LoadedDocument
from panda.memory.node import Node, SourceType, node_lines
from panda.models.kept_encoder import KeptEncoder
from panda.phases.evidence import ClosestLines, chosen_lines, gather, read_lines
from panda.store.layout import Layout
from panda.store.records import Line
from tests.scripted_model import ScriptedEncoder
from tests.stores import NOW


def document(id_: str, kind: SourceType, *texts: str, heading: str = "") -> LoadedDocument:
    """A loaded document of these lines."""
    items = tuple(Line(text, "default", 0.9, NOW, heading=heading) for text in texts)
    node = Node(id_, kind, PurePosixPath(id_.partition(":")[2]).stem, f"{id_}.md", NOW, items)
    return LoadedDocument(node, node.items, 0, 0)


def read(query: str, *documents: LoadedDocument) -> list[Line]:
    """The lines of these documents as 2.2 is offered them."""
    return read_lines(query, documents, ClosestLines(None))


def test_every_document_keeps_a_line() -> None:
    """Where there are too many lines and no words in common, no document is crowded out by long ones."""
    lines = read(
        "how much can I spend",
        document("memory:budget", "preference", "budget: $500-800"),
        *(document(f"turn:{n}", "turn_summary", *(f"line {n} {i}" for i in range(15))) for n in (9, 8, 7)),
    )
    assert len(lines) == 40
    assert [line.node_ids for line in lines[:2]] == [("memory:budget",), ("turn:9",)]


def test_close_lines_come_before_others() -> None:
    """Beside one line a document, those closest to the query stay, wherever they stand."""
    lines = read(
        "When does the ferry leave?",
        document("turn:2", "turn_summary", *(f"line {i}" for i in range(45)), "the ferry leaves at eight"),
        document("turn:1", "turn_summary", "nothing of note", "a ferry left late"),
    )
    assert {"the ferry leaves at eight", "a ferry left late"} <= {line.text for line in lines}


def test_what_a_turn_repeats_is_offered_once() -> None:
    """The earlier document keeps a line that two have."""
    lines = read("x", document("fact:a", "fact", "a: 1"), document("turn:1", "turn_summary", "a: 1", "b"))
    assert [(line.node_ids, line.text) for line in lines] == [(("fact:a",), "a: 1"), (("turn:1",), "b")]


def test_a_line_is_read_with_what_it_stands_below() -> None:
    """Of a note a line has folder, name and headings before it; what was said in a turn stands for itself."""
    note = document("knowledge:garden/front_bed.md", "fact", "Monday: Ann", heading="Who waters. Week")
    price = Line("Lenovo LOQ 15: price $697", "price", 0.9, NOW)
    page = Node("visit:v", "visit_record", "Lenovo LOQ 15", "x", NOW, (price,))
    said = document("turn:3", "turn_summary", "Ann waters it.").node
    assert [text for _, text in node_lines(said)] == ["Ann waters it."]
    above = [node.items[0].above for node in (note.node, page, said)]
    assert above == ["garden. front bed. Who waters. Week", "", ""]


def test_closest_lines_by_meaning(tmp_path: Path) -> None:
    """An encoder finds the line in other words; without one words decide. Four at most are read."""
    lines = document("turn:1", "turn_summary", "the tent costs 90", *(f"line {n}" for n in range(9))).items
    encoder = KeptEncoder(ScriptedEncoder({"price": "costs"}), VectorStore(Layout(tmp_path)))
    (first, *others) = ClosestLines(encoder).closest("price", lines)
    assert (first.text, others) == ("the tent costs 90", [])
    assert ClosestLines(None).closest("line 7", lines)[0].text == "line 7"
    assert len(ClosestLines(None).closest("line", lines)) == 4


def test_a_draft_holds_what_a_rule_put_into_the_plan() -> None:
    """Of a candidate that a rule chose the closest line is taken, whatever 2.2 chose; each says why."""
    loaded = [
        document("turn:1", "turn_summary", "chosen"),
        document("turn:2", "turn_summary", "no", "ruled x"),
    ]
    lines, nodes = read("x", *loaded), {one.node.id: one.node for one in loaded}
    taken = gather("x", Reading(), lines, chosen_lines(lines, ["L1"]), nodes, ["turn:2"])
    reasons = {line.text: line.why for line in taken}
    assert reasons == {"chosen": ("closest",), "ruled x": ("asked for",)}
