"""The lines that phase 2.2 is offered."""

from panda.memory.items import Item
from panda.memory.loading import LoadedDocument
from panda.memory.node import Node, SourceType
from panda.phases.drafting import draft_of, line_options
from tests.stores import NOW


def document(id_: str, kind: SourceType, *texts: str) -> LoadedDocument:
    """A loaded document of these lines."""
    items = tuple(Item(text, "default", 0.9, NOW) for text in texts)
    return LoadedDocument(Node(id_, kind, id_, f"{id_}.md", NOW, items), items, 0, 0)


def test_every_document_keeps_a_line() -> None:
    """Where there are too many lines and no words in common, no document is crowded out by long ones."""
    loaded = [
        document("memory:budget", "preference", "budget: $500-800"),
        *(document(f"turn:{n}", "turn_summary", *(f"line {n} {i}" for i in range(15))) for n in (9, 8, 7)),
    ]
    lines = line_options("how much can I spend", loaded)
    assert len(lines) == 40
    assert [line.node.id for line in lines[:2]] == ["memory:budget", "turn:9"]
    assert sum(line.node.id == "turn:9" for line in lines) == 15


def test_lines_with_words_of_the_query_come_before_others() -> None:
    """Beside one line a document, those with words of the query stay, wherever they stand."""
    loaded = [
        document("turn:2", "turn_summary", *(f"line {i}" for i in range(45)), "the ferry leaves at eight"),
        document("turn:1", "turn_summary", "nothing of note", "a ferry left late"),
    ]
    texts = [line.option.text for line in line_options("When does the ferry leave?", loaded)]
    assert {"the ferry leaves at eight", "a ferry left late"} <= set(texts)


def test_what_a_turn_repeats_is_offered_once() -> None:
    """The earlier document keeps a line that two have."""
    loaded = [document("fact:a", "fact", "a: 1"), document("turn:1", "turn_summary", "a: 1", "b")]
    assert [(line.node.id, line.item.text) for line in line_options("x", loaded)] == [
        ("fact:a", "a: 1"),
        ("turn:1", "b"),
    ]


def test_sources_that_were_left_out_come_in_only_if_they_suffice() -> None:
    """A line of a source that 2.1 did not choose needs the score with which 2.5 takes it for an answer."""
    loaded = [document("turn:1", "turn_summary", "chosen"), document("turn:2", "turn_summary", "left out")]
    lines = line_options("x", loaded)
    plan = {"candidates": [{"node_id": "turn:1", "chosen": True, "by": "model", "score": 2.0, "index": 0.0}]}
    for score, shown in ((0.9, ["chosen"]), (1.1, ["chosen", "left out"])):
        draft = draft_of("x", {"lines": ["s1", "s2"]}, lines, plan, {"s1": 0.7, "s2": score}, ["turn:2"])
        assert [option.text for option in draft.options] == shown


def test_turns_that_tell_less_are_passed_over() -> None:
    """Of the turns that the plan chose those stay whose best line and index score are near the best."""
    loaded = [document(f"turn:{n}", "turn_summary", f"line {n}") for n in (1, 2, 3)]
    lines = line_options("x", loaded)
    plan = {
        "candidates": [
            {"node_id": f"turn:{n}", "chosen": True, "by": by, "score": 1.0, "index": index}
            for n, by, index in ((1, "model", 5.0), (2, "model", 9.0), (3, "always_include", 0.0))
        ]
    }
    scores = {"s1": 2.0, "s2": 1.0, "s3": 0.1}
    draft = draft_of("x", {"lines": ["s1", "s2"]}, lines, plan, scores)
    assert [option.text for option in draft.options] == ["line 1", "line 3"]
    even = draft_of("x", {"lines": ["s1", "s2"]}, lines, plan, {**scores, "s2": 1.5})
    assert [option.text for option in even.options] == ["line 1", "line 2", "line 3"]
