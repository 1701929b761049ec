"""What is wrong with §2: a sound one has no issues, and each change of it has exactly its own."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from panda.memory.gathered import check_sections
from panda.memory.node import Node
from panda.store.records import GatheredItem, GatheredSection, Line
from tests.stores import NOW

QUERY = "Which laptop costs less than $800?"
VISIT = Node(
    id="visit:loq",
    source_type="visit_record",
    title="Lenovo LOQ 15",
    provenance="turns/turn_000001/webpage_cache/loq/extracted.json",
    at=NOW,
    items=(
        Line("Lenovo LOQ 15: price $697.00", "price", 0.9, NOW),
        Line("Lenovo LOQ 15: weight 2.4 kg", "product_spec", 0.7, NOW),
        Line("Lenovo LOQ 15: stock 14 pieces", "availability", 0.29, NOW),
        Line("Lenovo LOQ 15: rating 4.5", "general_fact", 0.3, NOW),
    ),
)
BUDGET = Node(
    id="memory:budget",
    source_type="preference",
    title="budget",
    provenance="preferences.md",
    at=NOW,
    items=(Line("budget: $500-800", "preference", 0.95, NOW),),
)
NODES = {node.id: node for node in (VISIT, BUDGET)}
PRICE = GatheredItem("Lenovo LOQ 15: price $697.00", ("visit:loq",))
VISITS = GatheredSection("Visit Data", "visit_record", (PRICE,), 0.9, ("visit:loq",), (VISIT.provenance,))
CONSTRAINTS = GatheredSection(
    "Constraints",
    ("preference", "user_query"),
    (GatheredItem("less than $800", ()), GatheredItem("budget: $500-800", ("memory:budget",))),
    None,
    ("memory:budget",),
    ("§0.raw_query", "preferences.md"),
)


def issues(*sections: GatheredSection) -> list[str]:
    """What is found."""
    return check_sections(sections, NODES, NOW, query=QUERY)


def test_sound() -> None:
    """Lines that stand in their nodes, with their figures, have no issues."""
    assert issues(VISITS, CONSTRAINTS) == []
    assert issues(replace(VISITS, confidence_avg=0.91), CONSTRAINTS) == []
    assert issues(replace(VISITS, confidence_avg=0.89), CONSTRAINTS) == []


def line(text: str, *node_ids: str) -> tuple[GatheredItem, ...]:
    """The items of a section with one line."""
    return (GatheredItem(text, node_ids),)


@pytest.mark.parametrize(
    ("visits", "found"),
    [
        (replace(VISITS, confidence_avg=0.92), ["confidence_avg is 0.92, its nodes give 0.90"]),
        (replace(VISITS, confidence_avg=None), ["has no confidence_avg; it is 0.90"]),
        (replace(VISITS, provenance=()), ["has no provenance"]),
        (
            replace(VISITS, provenance=("facts.md",)),
            [f"provenance is facts.md, its nodes are in {VISIT.provenance}"],
        ),
        (
            replace(VISITS, source_type="fact"),
            [
                "its source_type is fact",
                "visit:loq is of source type visit_record and belongs into Visit Data",
            ],
        ),
        (
            replace(VISITS, source_type=("fact", "visit_record")),
            ["has more than one source type: fact, visit_record"],
        ),
        (
            replace(VISITS, items=line("Lenovo LOQ 15: price $597.00", "visit:loq"), confidence_avg=0.63),
            ["$597.00 in 'Lenovo LOQ 15: price $597.00' is not in visit:loq"],
        ),
        (
            replace(VISITS, items=line("Lenovo LOQ 15: stock 14 pieces", "visit:loq"), confidence_avg=0.29),
            ["'Lenovo LOQ 15: stock 14 pieces' is expired in visit:loq"],
        ),
        (replace(VISITS, items=line("Lenovo LOQ 15: rating 4.5", "visit:loq"), confidence_avg=0.3), []),
        (
            replace(VISITS, items=(*VISITS.items, GatheredItem("It is good.", ()))),
            ["the line 'It is good.' cites nothing"],
        ),
        (
            replace(VISITS, items=(*VISITS.items, GatheredItem("budget: $500-800", ("memory:budget",)))),
            ["the line 'budget: $500-800' cites a node that _meta does not name", "confidence_avg"],
        ),
        (
            replace(VISITS, node_ids=("visit:loq", "visit:gone")),
            ["visit:gone is no loaded node", "names visit:gone, which no line cites"],
        ),
        (
            replace(VISITS, items=line("Price", "visit:gone"), node_ids=("visit:gone",)),
            ["visit:gone is no loaded node"],
        ),
        (
            replace(VISITS, items=(), node_ids=(), confidence_avg=None),
            ["has no line", "names no node"],
        ),
    ],
)
def test_one_change(visits: GatheredSection, found: Sequence[str]) -> None:
    """Each thing that does not fit is one sentence that names the section and it."""
    told = issues(visits, CONSTRAINTS)
    wanted = [f"section Visit Data: {one}" for one in found]
    assert [one[: len(start)] for one, start in zip(told, wanted, strict=False)] == wanted
    extra = [one for one in told[len(wanted) :] if "provenance is" not in one]
    assert extra == []


@pytest.mark.parametrize(
    ("constraints", "found"),
    [
        (
            replace(CONSTRAINTS, provenance=("preferences.md",)),
            ["section Constraints: provenance lacks §0.raw_query"],
        ),
        (
            replace(CONSTRAINTS, provenance=("§0.raw_query",)),
            ["section Constraints: provenance lacks preferences.md"],
        ),
        (replace(CONSTRAINTS, provenance=("§0.raw_query", "memory:budget")), []),
        (replace(CONSTRAINTS, provenance=()), ["section Constraints: has no provenance"]),
        (
            replace(CONSTRAINTS, provenance=(*CONSTRAINTS.provenance, "facts.md")),
            ["section Constraints: provenance facts.md is that of none of its nodes"],
        ),
        (
            replace(CONSTRAINTS, items=(GatheredItem("less than $900", ()), *CONSTRAINTS.items[1:])),
            ["section Constraints: $900 in 'less than $900' is not in the query"],
        ),
        (replace(CONSTRAINTS, items=(GatheredItem("at least $500", ()), *CONSTRAINTS.items[1:])), []),
        (replace(CONSTRAINTS, confidence_avg=0.1), []),
    ],
)
def test_constraints(constraints: GatheredSection, found: Sequence[str]) -> None:
    """Constraints rest on the query or on nodes that they name; no confidence is asked of them."""
    assert issues(VISITS, constraints) == found


def test_titles() -> None:
    """Every title is canonical and there once, and Constraints is never missing."""
    assert issues(VISITS) == ["section Constraints is missing"]
    assert issues(VISITS, VISITS, CONSTRAINTS) == ["section Visit Data: there is more than one"]
    told = issues(replace(VISITS, title="Shops"), CONSTRAINTS)
    assert len(told) == 1
    assert told[0].startswith("section Shops: not a canonical title; use Session Preferences, ")
