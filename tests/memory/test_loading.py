"""Which lines of loaded documents go when they do not fit."""

from panda.memory.budget import LoadedDocument, fit_nodes
from panda.memory.node import Node, SourceType
from panda.store.records import Line
from tests.store_files import NOW


def node(
    id_: str, kind: SourceType, *texts: str, confidence: float = 0.9, content_type: str = "default"
) -> Node:
    """A node with lines of one confidence."""
    items = tuple(Line(text, content_type, confidence, NOW) for text in texts)
    return Node(id_, kind, id_, f"{id_}.md", NOW, items)


def fitted(*nodes: Node, budget: int) -> dict[str, LoadedDocument]:
    """The documents by id; a line fits as well as its first letter says."""
    found = fit_nodes(
        nodes,
        fit=lambda text: -ord(text[0]),
        budget_tokens=budget,
    )
    return {one.node.id: one for one in found}


def test_priority() -> None:
    """Memory has room before research, visits, knowledge, newer turns and older turns."""
    documents = fitted(
        node("turn:1", "turn_summary", "a b"),
        node("turn:20", "turn_summary", "a b"),
        node("knowledge:x.md", "fact", "a b"),
        node("visit:v", "visit_record", "a b"),
        node("research:r", "research_cache", "a b"),
        node("memory:m", "preference", "a b"),
        budget=10,
    )
    assert list(documents) == ["memory:m", "research:r", "visit:v", "knowledge:x.md", "turn:20", "turn:1"]
    assert [one.kept_tokens for one in documents.values()] == [2, 2, 2, 2, 2, 0]
    assert [one.is_cut for one in documents.values()] == [False] * 5 + [True]


def test_turn_has_its_own_limit() -> None:
    """A turn keeps at most 1,500 tokens, the lines that fit best, in their order."""
    far = [" ".join(["z"] * 400 + [str(n)]) for n in range(4)]
    turn = node("turn:1", "turn_summary", "b b", *far, "a a")
    (document,) = fitted(turn, budget=3_000).values()
    assert [item.text for item in document.items] == ["b b", *far[:3], "a a"]
    assert (document.tokens, document.kept_tokens, document.is_cut) == (1_612, 1_210, True)


def test_research_keeps_its_best_claims() -> None:
    """If documents do not fit together, research keeps its summary and five best claims; else everything."""
    claims = [Line(f"claim {n}", "price", n / 10, NOW) for n in range(3, 10)]
    summary = Line("found seven", "default", 0.5, NOW)
    research = Node("research:r", "research_cache", "r", "r.json", NOW, (summary, *claims))
    big = node("turn:1", "turn_summary", "x " * 100)
    tight = fitted(research, big, budget=100)["research:r"]
    assert [item.text for item in tight.items] == ["found seven", *(f"claim {n}" for n in range(5, 10))]
    assert tight.is_cut
    assert len(fitted(research, big, budget=200)["research:r"].items) == 8


def test_what_is_never_shown() -> None:
    """Expired lines, questions and lines too long to quote are no part of a document."""
    items = (
        Line("price $9", "price", 0.29, NOW),
        Line("How much is it?", "default", 0.9, NOW),
        Line("x" * 1_001, "default", 0.9, NOW),
        Line("gpu RTX", "product_spec", 0.3, NOW),
    )
    (document,) = fitted(Node("visit:v", "visit_record", "v", "v", NOW, items), budget=100).values()
    assert [item.text for item in document.items] == ["gpu RTX"]
    assert not document.is_cut
