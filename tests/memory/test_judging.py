"""§2 of a saved turn, judged as of when it was gathered."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from panda.memory.judging import judge_gathered
from panda.storage.layout import Layout
from tests.builders import NOW
from tests.scripted_turns import USER, Ran, Script, add_research, laptop_store, pick, run_turn
from tests.stores import write_visit


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    """A turn whose §2 has preferences, an earlier turn, research and a visit."""
    layout = laptop_store(tmp_path)
    add_research(layout, "visit_loq")
    script = Script(
        retrieval={"relevant": pick("turn:1", "research:", "visit:visit_loq", "memory:budget")},
        synthesis={"lines": pick("Compared laptops", "price $697", "@ $697", "budget")},
    )
    return run_turn(layout, "A Lenovo laptop under $800, within my budget?", script)


def context(layout: Layout) -> Path:
    return layout.turn(USER, 3) / "context.md"


def findings(layout: Layout) -> list[str]:
    return [problem.message for problem in judge_gathered(layout.root, [layout.turn(USER, 3).directory])]


def test_good_turn(ran: Ran) -> None:
    """A turn that phase 2 committed has no findings, whether asked for by itself or with the store."""
    assert findings(ran.layout) == []
    assert judge_gathered(ran.layout.root, []) == []


@pytest.mark.parametrize(
    ("before", "after", "finding"),
    [
        ("price $697.00 [1]", "price $597.00 [1]", r"Visit Data: \$597.00 in .* is not in visit:visit_loq"),
        (
            "price $697.00 [1]",
            "see https://shop.example/other [1]",
            "Visit Data: https://shop.example/other .* is not in visit",
        ),
        ('["visit:visit_loq"]', '["visit:visit_gone"]', "Visit Data: visit:visit_gone: no visit"),
        ('["turn:1"]', '["turn:2"]', "Relevant Prior Turns: turn:2 was not loaded in this turn"),
        ("### Visit Data", "### Pages Seen", "Pages Seen: not a canonical title"),
        ("confidence_avg: 0.92", "confidence_avg: 0.95", "confidence_avg is 0.95, its nodes give 0.92"),
        (
            'provenance: ["turns/turn_000001/research.json"]',
            'provenance: ["turns/turn_000002/research.json"]',
            "Cached Research: provenance is turns/turn_000002",
        ),
        ('  provenance: ["turns/turn_000001/research.json"]\n', "", "Cached Research: has no provenance"),
        (
            "source_type: visit_record",
            "source_type: [visit_record, fact]",
            "Visit Data: has more than one source type",
        ),
        ("source_type: visit_record", "source_type: fact", "Visit Data: its source_type is fact"),
        ("- under $800", "- under $900", r"Constraints: \$900 in .* is not in the query"),
        ("budget: $500-800 [1]", "budget: $500-1800 [1]", r"1800 in .* is not in memory:budget"),
    ],
)
def test_damage_is_found(ran: Ran, before: str, after: str, finding: str) -> None:
    """Whatever is changed by hand in §2 so that its nodes no longer hold it is a finding that names it."""
    path = context(ran.layout)
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    assert any(re.search(finding, one) for one in findings(ran.layout)), findings(ran.layout)


def test_confidence_within_a_hundredth(ran: Ran) -> None:
    """A confidence_avg that is off by .01 passes."""
    path = context(ran.layout)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("confidence_avg: 0.92", "confidence_avg: 0.91"), encoding="utf-8")
    assert findings(ran.layout) == []


def test_nodes_of_two_kinds_in_a_section(ran: Ran) -> None:
    """A section that names nodes of another kind than its own is a finding."""
    path = context(ran.layout)
    text = path.read_text(encoding="utf-8")
    text = text.replace('node_ids: ["visit:visit_loq"]', 'node_ids: ["visit:visit_loq", "turn:1"]', 1)
    path.write_text(text.replace("price $697.00 [1]", "price $697.00 [1] [2]"), encoding="utf-8")
    assert any("turn:1 is of source type turn_summary" in one for one in findings(ran.layout))


def test_judged_as_of_then(tmp_path: Path) -> None:
    """What was believable when it was gathered stays so; what was expired then is a finding."""
    layout = laptop_store(tmp_path)
    ran = run_turn(layout)
    path = layout.turn(USER, 3) / "gathered_context.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    assert findings(ran.layout) == []
    values["gathered_at"] = "2026-02-04T14:30:00Z"
    path.write_text(json.dumps(values), encoding="utf-8")
    assert any("is expired in visit:visit_loq" in one for one in findings(layout))


def test_memory_that_changed_since(ran: Ran) -> None:
    """A preference that a later turn changed is judged by what it was."""
    preferences = ran.layout.preferences(USER)
    text = preferences.read_text(encoding="utf-8")
    later = (NOW + timedelta(days=1)).isoformat()
    preferences.write_text(
        text.replace("$500-800", "$900").replace("2026-01-03T10:00:00Z", later), encoding="utf-8"
    )
    assert findings(ran.layout) == []


def test_older_form_is_read(ran: Ran) -> None:
    """The form of S1, with `type` and other titles, is read and not taken for damage."""
    path = context(ran.layout)
    text = path.read_text(encoding="utf-8")
    start, end = text.index("### Cached Research"), text.index("### Visit Data")
    meta = "```yaml\n_meta:\n  type: research_cache\n  quality_score: 0.88\n```"
    old = f"### Cached Research Intelligence\n\n{meta}\n\n**Topic:** commerce.laptop\n\n"
    path.write_text(text[:start] + old + text[end:], encoding="utf-8")
    assert findings(ran.layout) == []


def test_turn_without_section(tmp_path: Path) -> None:
    """An imported turn has no §2 and no findings."""
    layout = laptop_store(tmp_path)
    write_visit(layout, 2, "visit_x", {"title": "x"}, quality=0.9, at=NOW, user=USER)
    assert judge_gathered(layout.root, [layout.turn(USER, 2).directory]) == []
