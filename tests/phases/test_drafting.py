"""The lines that phase 2.2 is offered, and how close they are to the query."""

from pathlib import PurePosixPath

from panda.choosing.decision import Option
from panda.errors import MemoryNodeError
from panda.language.reading import Reading
from panda.memory.budget import LoadedDocument
from panda.memory.node import Node, SourceType, line_title, node_lines
from panda.phases.context_gatherer import draft_of, line_options
from panda.phases.evidence_spans import ClosestLines
from panda.retrieval.candidates import Candidate, build_plan
from panda.store.records import Line
from tests.scripted_model import ScriptedEncoder
from tests.stores import NOW


def document(id_: str, kind: SourceType, *texts: str, heading: str = "") -> LoadedDocument:
    """A loaded document of these lines."""
    items = tuple(Line(text, "default", 0.9, NOW, heading=heading) for text in texts)
    return LoadedDocument(
        Node(id_, kind, PurePosixPath(id_.partition(":")[2]).stem, f"{id_}.md", NOW, items), items, 0, 0
    )


class Nodes:
    """The nodes of some documents."""

    def __init__(self, *documents: LoadedDocument) -> None:
        self.nodes = {one.node.id: one.node for one in documents}

    def load(self, node_id: str) -> Node:
        """The node; MemoryNodeError if there is none."""
        if node_id not in self.nodes:
            raise MemoryNodeError("no such node")
        return self.nodes[node_id]


def offered(query: str, *documents: LoadedDocument, encoder: ScriptedEncoder | None = None) -> list[Option]:
    """The lines of these documents as 2.2 offers them."""
    closest = ClosestLines(Nodes(*documents), encoder)
    return [line.option for line in line_options(query, documents, closest)]


def test_every_document_keeps_a_line() -> None:
    """Where there are too many lines and no words in common, no document is crowded out by long ones."""
    lines = offered(
        "how much can I spend",
        document("memory:budget", "preference", "budget: $500-800"),
        *(document(f"turn:{n}", "turn_summary", *(f"line {n} {i}" for i in range(15))) for n in (9, 8, 7)),
    )
    assert len(lines) == 40
    assert [line.node_ids for line in lines[:2]] == [("memory:budget",), ("turn:9",)]


def test_close_lines_come_before_others() -> None:
    """Beside one line a document, those closest to the query stay, wherever they stand."""
    lines = offered(
        "When does the ferry leave?",
        document("turn:2", "turn_summary", *(f"line {i}" for i in range(45)), "the ferry leaves at eight"),
        document("turn:1", "turn_summary", "nothing of note", "a ferry left late"),
    )
    assert {"the ferry leaves at eight", "a ferry left late"} <= {line.text for line in lines}


def test_what_a_turn_repeats_is_offered_once() -> None:
    """The earlier document keeps a line that two have."""
    lines = offered("x", document("fact:a", "fact", "a: 1"), document("turn:1", "turn_summary", "a: 1", "b"))
    assert [(line.node_ids, line.text) for line in lines] == [(("fact:a",), "a: 1"), (("turn:1",), "b")]


def test_a_line_is_read_with_what_it_stands_below() -> None:
    """Of a note a line has folder, name and headings before it; what was said in a turn stands for itself."""
    note = document("knowledge:garden/front_bed.md", "fact", "Monday: Ann", heading="Who waters. Week")
    node = Node("visit:v", "visit_record", "Lenovo LOQ 15", "x", NOW, note.node.items[:0])
    said = document("turn:3", "turn_summary", "Ann waters it.").node
    assert line_title(note.node, note.items[0]) == "garden. front bed. Who waters. Week"
    assert [text for _, text in node_lines(said)] == ["Ann waters it."]
    item = Line("Lenovo LOQ 15: price $697", "price", 0.9, NOW)
    assert [line_title(node, item), line_title(said, said.items[0])] == ["", ""]


def test_closest_lines_by_meaning() -> None:
    """An encoder finds the line in other words; without one words decide. Four at most are read."""
    told = document("turn:1", "turn_summary", "the tent costs 90", *(f"line {n}" for n in range(9)))
    plain = [Option(f"g{n}", item.text, ("turn:1",)) for n, item in enumerate(told.items)]
    encoder = ScriptedEncoder({"price": "costs"})
    (first, *others) = ClosestLines(Nodes(told), encoder).closest("price", plain)
    assert (first.text, others) == ("the tent costs 90", [])
    assert ClosestLines(Nodes(told), None).closest("line 7", plain)[0].text == "line 7"
    assert len(ClosestLines(Nodes(told), None).closest("line", plain)) == 4
    lost = Option("g1", "of a node that is gone", ("turn:9",))
    assert ClosestLines(Nodes(told), encoder).rate("gone", [lost])[0].near == "of a node that is gone"


def test_a_draft_holds_what_a_rule_put_into_the_plan() -> None:
    """Of a candidate that a rule chose the closest line is taken, whatever 2.2 chose."""
    loaded = [
        document("turn:1", "turn_summary", "chosen"),
        document("turn:2", "turn_summary", "no", "ruled x"),
    ]
    closest = ClosestLines(Nodes(*loaded), None)
    lines = line_options("x", loaded, closest)
    plan = build_plan(
        [Candidate("turn:2", "ruled x", 0.0)],
        None,
        NOW,
        scores={},
        chosen=[],
        by_rule=["turn:2"],
        reasoning=None,
    )
    (section,) = draft_of("x", {"lines": ["s1"]}, lines, plan, Reading())
    assert [item.text for item in section.items] == ["chosen", "ruled x"]
