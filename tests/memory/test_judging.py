"""§2 of a saved turn, judged as of when it was gathered: every line and every `_meta` of it has a source."""

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda, ScriptedPanda
from tests.script import Script, pick
from tests.store_files import write_note, write_research

TOMORROW = "2026-01-05T14:30:00Z"


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose turn 3 has preferences, an earlier turn, research and a visit in §2; without its seal."""
    with ScriptedPanda(tmp_path_factory.mktemp("gathered") / "project") as ann:
        write_research(ann.user_directory, 1, webpage_cache=["visit_loq"])
        script = Script(
            retrieval={"relevant": pick("turn:1", "research:", "visit:visit_loq", "memory:budget")},
            synthesis={"lines": pick("Compared laptops", "price $697", "@ $697", "budget")},
        )
        turn = ann.turn("A Lenovo laptop under $800, within my budget?", script=script)
        assert turn.status == "approved"
        take_seal_off(ann)
        return ann.store


@pytest.fixture
def panda(gathered: Path, tmp_path: Path) -> Panda:
    """A project with that store."""
    return Panda(tmp_path / "project", gathered, user="ann")


def take_seal_off(panda: Panda, number: int = 3) -> None:
    """Let the turn be judged as it is now."""
    path = panda.turn_file(number, "metadata.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), "seal": None}))


def edit(panda: Panda, title: str, before: str, after: str) -> None:
    """Forge a part of §2 on disk; "" is any part."""
    path = panda.turn_file(3, "context.md")
    text = path.read_text(encoding="utf-8")
    start = text.index(f"### {title}")
    assert before in text[start:]
    path.write_text(text[:start] + text[start:].replace(before, after, 1), encoding="utf-8")


def judged(panda: Panda, number: int = 3) -> list[dict[str, Any]]:
    """Return what `panda validate` tells of the turn."""
    ended = panda("validate", str(number), "--json")
    problems: list[dict[str, Any]] = ended.data["problems"]
    assert ended.code == (3 if problems else 0)
    return problems


def messages(panda: Panda) -> list[str]:
    return [problem["message"] for problem in judged(panda)]


def verdicts(panda: Panda, text: str = "", number: int = 3) -> set[str]:
    """Return the verdicts of what is told with a text in it."""
    return {problem["verdict"] for problem in judged(panda, number) if text in problem["message"]}


VISIT = "Visit Data"
PRICE_LINE = "- Lenovo LOQ 15: price $697.00 [1] (0.0h ago)\n"
VISIT_IDS = 'node_ids: ["visit:visit_loq"]'
BOTH = '["§0.raw_query", "preferences.md"]'


def test_sound(panda: Panda) -> None:
    """A turn that phase 2 committed has no findings, whether asked for by itself or with the store."""
    assert judged(panda) == []
    assert panda.problems() == []


@pytest.mark.parametrize(
    ("title", "before", "after", "finding"),
    [
        (VISIT, "price $697.00 [1]", "price $597.00 [1]", r"\$597.00 in .* is not in visit:visit_loq"),
        (VISIT, "price $697.00 [1]", "see https://shop.example/other [1]", "other .* is not in visit"),
        (VISIT, '["visit:visit_loq"]', '["visit:visit_gone"]', "visit:visit_gone: no visit"),
        (VISIT, '["visit:visit_loq"]', '["knowledge:../preferences.md"]', "preferences.md: "),
        (VISIT, VISIT_IDS, 'node_ids: ["visit:visit_loq", "turn:1"]', "names turn:1, which no line cites"),
        (VISIT, "### Visit Data", "### Pages Seen", "Pages Seen: not a canonical title"),
        (VISIT, "confidence_avg: 0.92", "confidence_avg: 0.95", "is 0.95, its nodes give 0.92"),
        (VISIT, "  confidence_avg: 0.92\n", "", "has no confidence_avg; it is 0.92"),
        (VISIT, PRICE_LINE, f"{PRICE_LINE}- It is good.\n", "does not hold the line 'It is good.'"),
        (VISIT, PRICE_LINE, "", "Visit Data: has no line"),
        (VISIT, "source_type: visit_record", "source_type: [visit_record, fact]", "than one source type"),
        (VISIT, "source_type: visit_record", "source_type: fact", "Visit Data: its source_type is fact"),
        (VISIT, "0.0h ago)", "10.0h ago)", "is rendered as"),
        ("Relevant", '["turn:1"]', '["turn:2"]', "turn:2 was not loaded in this turn"),
        ("Relevant", "- Turn 1: Compared", "- Turn 2: Compared", "is rendered as .*Turn 1: Compared"),
        ("Relevant", "LOQ 15 won", "LOQ 15 lost", "does not hold the line 'Compared"),
        ("Cached", "turn_000001/research", "turn_000002/research", "provenance is turns/turn_000002"),
        ("Cached", '  provenance: ["turns/turn_000001/research.json"]\n', "", "Research: has no provenance"),
        ("Constraints", "budget: $500-800 [1]", "budget: $500-1800 [1]", r"1800 in .* is not in memory"),
    ],
)  # fmt: skip
def test_damage_is_found(panda: Panda, title: str, before: str, after: str, finding: str) -> None:
    """Whatever is changed by hand in §2 so that its nodes no longer hold it is a finding that names it."""
    edit(panda, title, before, after)
    assert any(re.search(finding, message) for message in messages(panda)), messages(panda)


@pytest.mark.parametrize("written", ["0.91", "0.93"])
def test_confidence_within_a_hundredth(panda: Panda, written: str) -> None:
    """A confidence_avg that is off by .01 passes."""
    edit(panda, VISIT, "confidence_avg: 0.92", f"confidence_avg: {written}")
    assert judged(panda) == []


@pytest.mark.parametrize(
    ("before", "after", "findings"),
    [
        (BOTH, '["preferences.md"]', ["section Constraints: provenance lacks §0.raw_query"]),
        (BOTH, '["§0.raw_query"]', ["section Constraints: provenance lacks preferences.md"]),
        (BOTH, '["§0.raw_query", "memory:budget"]', []),
        (f"  provenance: {BOTH}\n", "", ["section Constraints: has no provenance"]),
        (
            BOTH,
            '["§0.raw_query", "preferences.md", "facts.md"]',
            ["section Constraints: provenance facts.md is that of none of its nodes"],
        ),
        ("under $800", "under $900", ["section Constraints: $900 in 'under $900' is not in the query"]),
        ("under $800", "at least $500", []),
        (f"  provenance: {BOTH}\n", f"  provenance: {BOTH}\n  confidence_avg: 0.1\n", []),
    ],
)
def test_constraints(panda: Panda, before: str, after: str, findings: Sequence[str]) -> None:
    """Constraints rest on the query or on nodes that they name; no confidence is asked of them."""
    path = panda.turn_file(3, "gathered_context.json")
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    edit(panda, "Constraints", before, after)
    assert messages(panda) == findings


def test_titles(panda: Panda) -> None:
    """Every title is canonical and there once, and Constraints is never missing."""
    path = panda.turn_file(3, "context.md")
    text = path.read_text(encoding="utf-8")
    start = text.index("### Constraints")
    end = text.index("\n## 3.")
    edit(panda, "Constraints", "### Constraints", "### Wishes")
    findings = " ".join(messages(panda))
    assert "section Wishes: not a canonical title; use Session Preferences, " in findings
    assert "section Constraints is missing" in findings
    path.write_text(text[:end] + text[start:end] + text[end:], encoding="utf-8")
    assert messages(panda) == ["section Constraints: there is more than one"]


def test_nodes_of_two_kinds_in_a_section(panda: Panda) -> None:
    """A section that names nodes of another kind than its own is a finding."""
    edit(panda, VISIT, VISIT_IDS, 'node_ids: ["visit:visit_loq", "turn:1"]')
    edit(panda, VISIT, "price $697.00 [1]", "price $697.00 [1] [2]")
    assert any("turn:1 is of source type turn_summary" in message for message in messages(panda))


def test_judged_as_of_then(panda: Panda) -> None:
    """All that was believable when it was gathered stays so; what was expired then is a finding."""
    assert panda("validate", "3", PANDA_NOW="2026-06-04T14:30:00Z").code == 0
    path = panda.turn_file(3, "gathered_context.json")
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**values, "gathered_at": "2026-02-04T14:30:00Z"}), encoding="utf-8")
    assert any("is expired in visit:visit_loq" in message for message in messages(panda))


def test_memory_that_changed_since(ann: ScriptedPanda) -> None:
    """A preference that was set otherwise later is judged by what it was."""
    assert ann("memory", "set", "budget", "$500-800").code == 0
    script = Script(
        retrieval={"relevant": pick("memory:budget")},
        synthesis={"lines": pick("budget")},
        answer={"items": []},
    )
    assert ann.turn("A laptop within my budget?", script=script).code == 0
    take_seal_off(ann)
    assert ann("memory", "set", "budget", "$900", PANDA_NOW=TOMORROW).code == 0
    assert judged(ann) == []
    edit(ann, "", "budget: $500-800 [1]", "budget: $500-1800 [1]")
    assert verdicts(ann, "1800") == {"unsound"}


def change_budget(panda: Panda) -> None:
    """Type another budget into preferences.md, a day later."""
    path = panda.user_directory / "preferences.md"
    text = path.read_text(encoding="utf-8").replace("$500-800", "$900")
    path.write_text(text.replace("2026-01-03T10:00:00Z", TOMORROW), encoding="utf-8")


def test_a_source_that_nobody_can_set_back(panda: Panda) -> None:
    """Lines of a file that was changed by hand since, and are not in it, are not judged; the rest is."""
    change_budget(panda)
    assert verdicts(panda) == verdicts(panda, "budget") == {"not judged"}
    edit(panda, VISIT, "price $697.00 [1]", "price $597.00 [1]")
    assert verdicts(panda, "$597.00") == {"unsound"}


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_source_that_never_was(panda: Panda, is_recorded: bool) -> None:
    """A source that is not there and that the turn is not known to have loaded is a fault, not a doubt."""
    edit(panda, VISIT, '["visit:visit_loq"]', '["visit:visit_made_up"]')
    if not is_recorded:
        panda.turn_file(3, "gathered_context.json").unlink()
    assert verdicts(panda, "visit_made_up: no visit") == {"unsound"}


def test_a_source_that_was_deleted_since(panda: Panda) -> None:
    """Lines whose source was loaded and is gone now are not judged."""
    shutil.rmtree(panda.turn_file(1, "webpage_cache/page-visit_loq"))
    assert verdicts(panda, "visit_loq: no visit") == {"not judged"}


def test_a_note_that_changed_since(ann: ScriptedPanda) -> None:
    """A note that was edited or deleted since leaves its lines not judged, unless they still stand in it."""
    text = "---\nupdated: {at}\n---\n\nThe ThinkPad battery lasts 11 hours.\n{more}"
    note = write_note(ann.user_directory, "notes.md", text.format(at="2026-01-01", more=""))
    script = Script(
        retrieval={"relevant": pick("knowledge:notes.md")},
        synthesis={"lines": pick("11 hours")},
        answer={"items": []},
    )
    assert ann.turn("How long does the ThinkPad battery last?", script=script).code == 0
    assert judged(ann) == []
    note.write_text(text.format(at="2026-01-05", more="\nIt weighs 1.3 kg.\n"), encoding="utf-8")
    assert judged(ann) == []
    note.write_text(note.read_text(encoding="utf-8").replace("11 hours", "9 hours"), encoding="utf-8")
    assert verdicts(ann) == {"not judged"}
    note.unlink()
    assert verdicts(ann) == {"not judged"}


def test_older_form_is_read(panda: Panda) -> None:
    """The form of S1, with `type` and other titles, is read and not taken for damage."""
    path = panda.turn_file(3, "context.md")
    text = path.read_text(encoding="utf-8")
    start = text.index("### Cached Research")
    end = text.index("### Visit Data")
    meta = "```yaml\n_meta:\n  type: research_cache\n  quality_score: 0.88\n```"
    old = f"### Cached Research Intelligence\n\n{meta}\n\n**Topic:** commerce.laptop\n\n"
    path.write_text(text[:start] + old + text[end:], encoding="utf-8")
    assert judged(panda) == []


def test_a_forgery_behind_damage_is_told(panda: Panda) -> None:
    """`panda validate TURN` ends with 3 for a forged line, whatever else was damaged to hide it."""
    assert panda("memory", "set", "budget", "$700", PANDA_NOW="2026-01-04T15:30:00Z").code == 0
    change_budget(panda)
    edit(panda, "Constraints", "budget: $500-800 [1]", "budget: $500-1800 [1]")
    (panda.user_directory / "memory.jsonl").write_bytes(b"{broken\n{}\n")
    assert verdicts(panda) == {"unsound", "not judged"}
