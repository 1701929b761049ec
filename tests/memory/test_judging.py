"""§2 of a saved turn, judged as of when it was gathered."""

import json
import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from panda.actions.remember import Given, make_statement, read_value
from panda.errors import Problem, Verdict
from panda.memory.memory import Memory
from panda.memory.validation import judge_gathered
from panda.store.layout import Layout, UserStore
from tests.api import run_here
from tests.builders import NOW
from tests.script import Script, pick
from tests.scripted_model import ScriptedEncoder
from tests.scripted_turns import USER, Preferring, Ran, add_research, laptop_store, run_turn
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
    return layout.of(USER).turn(3) / "context.md"


def edit(layout: Layout, before: str, after: str) -> None:
    """Forge §2 on disk."""
    text = context(layout).read_text(encoding="utf-8")
    assert before in text
    context(layout).write_text(text.replace(before, after, 1), encoding="utf-8")


def problems(layout: Layout) -> list[Problem]:
    return judge_gathered(layout.root, [layout.of(USER).turn(3).directory])


def findings(layout: Layout) -> list[str]:
    return [problem.message for problem in judge_gathered(layout.root, [layout.of(USER).turn(3).directory])]


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
    path = layout.of(USER).turn(3) / "gathered_context.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    assert findings(ran.layout) == []
    values["gathered_at"] = "2026-02-04T14:30:00Z"
    path.write_text(json.dumps(values), encoding="utf-8")
    assert any("is expired in visit:visit_loq" in one for one in findings(layout))


def change_budget(layout: Layout) -> None:
    """Type another budget into preferences.md, a day later."""
    preferences = layout.of(USER).preferences
    text = preferences.read_text(encoding="utf-8")
    later = (NOW + timedelta(days=1)).isoformat()
    preferences.write_text(
        text.replace("$500-800", "$900").replace("2026-01-03T10:00:00Z", later), encoding="utf-8"
    )


def say(layout: Layout, value: str, at: datetime) -> None:
    """Remember a budget."""
    memory = Memory(UserStore(layout.root, USER, lambda: at, 1.0))
    with memory.held():
        memory.assert_all(
            [make_statement("budget", read_value([value], None), Given(kind="preference"), USER)]
        )


def test_memory_that_changed_since(tmp_path: Path) -> None:
    """A preference that was said otherwise later is judged by what it was."""
    layout = laptop_store(tmp_path)
    say(layout, "$500-800", NOW - timedelta(hours=1))
    script = Script(
        retrieval={"relevant": pick("memory:budget")},
        synthesis={"lines": pick("budget")},
        answer={"items": []},
    )
    run_turn(layout, "A laptop within my budget?", script)
    say(layout, "$900", NOW + timedelta(days=1))
    assert findings(layout) == []
    edit(layout, "budget: $500-800 [1]", "budget: $500-1800 [1]")
    assert (Verdict.UNSOUND, True) in [(one.verdict, "1800" in one.message) for one in problems(layout)]


def test_a_source_that_nobody_can_set_back(ran: Ran) -> None:
    """What rests on a file that was changed by hand since, and is not in it, is not judged; the rest is."""
    change_budget(ran.layout)
    assert {one.verdict for one in problems(ran.layout)} == {Verdict.NOT_JUDGED}
    assert all("budget" in one.message for one in problems(ran.layout))
    edit(ran.layout, "price $697.00 [1]", "price $597.00 [1]")
    unsound = [one.message for one in problems(ran.layout) if one.verdict is Verdict.UNSOUND]
    assert any("$597.00" in message for message in unsound)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_source_that_never_was(ran: Ran, recorded: bool) -> None:
    """A source that is not there and that the turn is not known to have loaded is a fault, not a doubt."""
    edit(ran.layout, '["visit:visit_loq"]', '["visit:visit_made_up"]')
    if not recorded:
        (ran.layout.of(USER).turn(3) / "gathered_context.json").unlink()
    told = {one.verdict for one in problems(ran.layout) if "visit_made_up: no visit" in one.message}
    assert told == {Verdict.UNSOUND}


def test_a_source_that_was_deleted_since(ran: Ran) -> None:
    """Lines whose source was loaded and is gone now are not judged."""
    shutil.rmtree(ran.layout.of(USER).turn(1).webpage_cache / "page-visit_loq")
    told = {one.verdict for one in problems(ran.layout) if "visit_loq" in one.message}
    assert told == {Verdict.NOT_JUDGED}


def test_a_note_that_changed_since(tmp_path: Path) -> None:
    """A note that was edited or deleted since leaves its lines not judged, unless they still stand in it."""
    layout = laptop_store(tmp_path)
    note = layout.of(USER).knowledge / "notes.md"
    note.parent.mkdir(parents=True)
    text = "---\nupdated: {at}\n---\n\nThe ThinkPad battery lasts 11 hours.\n{more}"
    note.write_text(text.format(at="2026-01-01", more=""), encoding="utf-8")
    script = Script(
        retrieval={"relevant": pick("knowledge:notes.md")},
        synthesis={"lines": pick("11 hours")},
        answer={"items": []},
    )
    run_turn(layout, "How long does the ThinkPad battery last?", script)
    assert problems(layout) == []
    note.write_text(text.format(at="2026-01-05", more="\nIt weighs 1.3 kg.\n"), encoding="utf-8")
    assert problems(layout) == []
    note.write_text(note.read_text(encoding="utf-8").replace("11 hours", "9 hours"), encoding="utf-8")
    assert [one.verdict for one in problems(layout)] == [Verdict.NOT_JUDGED]
    note.unlink()
    assert [one.verdict for one in problems(layout)] == [Verdict.NOT_JUDGED]


def test_a_judge_that_fails_says_so(ran: Ran) -> None:
    """A forged line is no less found when the log of memory is damaged and the preference changed as well."""
    say(ran.layout, "$700", NOW + timedelta(hours=1))
    change_budget(ran.layout)
    edit(ran.layout, "budget: $500-800 [1]", "budget: $500-1800 [1]")
    with ran.layout.of(USER).memory_log.open("ab") as log:
        log.write(b"{broken\n{}\n")
    assert problems(ran.layout)


@pytest.mark.parametrize("name", ["metadata.json", "gathered_context.json"])
def test_files_that_do_not_read(ran: Ran, name: str) -> None:
    """A §2 whose turn does not read is not judged, and that is told."""
    (ran.layout.of(USER).turn(3) / name).write_text("{", encoding="utf-8")
    (only,) = problems(ran.layout)
    assert only.verdict is Verdict.NOT_JUDGED
    assert only.path.endswith(name)


@pytest.mark.parametrize(
    ("before", "after", "finding"),
    [
        ("h ago)", "1h ago)", "is rendered as"),
        ("- Turn 1: Compared", "- Turn 2: Compared", "is rendered as .*Turn 1: Compared"),
        ("Lenovo LOQ 15 won", "Lenovo LOQ 15 lost", "no quotation of turn:1"),
        ("Lenovo LOQ 15 won", "Lenovo LOQ 15 lost", "does not hold the line 'Compared"),
    ],
)
@pytest.mark.asks_for("shop.example")
def test_what_code_renders_and_quotes(tmp_path: Path, before: str, after: str, finding: str) -> None:
    """A forged age or turn and changed words of a quotation are found, though they hold no number."""
    layout = laptop_store(tmp_path)
    scorer = Preferring("PROCEED", "Compared laptops", "price $697", "turn:1")
    query = "What were the specs of the Lenovo LOQ 15?" if "ago" in before else "Which laptop won in turn 1?"
    ran = run_turn(layout, query, scorer, writes=False, scores=True, encoder=ScriptedEncoder())
    assert ran.error is None
    assert problems(layout) == []
    edit(layout, before, after)
    assert any(re.search(finding, one.message) for one in problems(layout)), problems(layout)


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
    assert judge_gathered(layout.root, [layout.of(USER).turn(2).directory]) == []


def test_a_forgery_behind_damage_is_told(ran: Ran) -> None:
    """`panda validate TURN` ends with 3 for a forged line, whatever else was damaged to hide it."""
    say(ran.layout, "$700", NOW + timedelta(hours=1))
    change_budget(ran.layout)
    edit(ran.layout, "budget: $500-800 [1]", "budget: $500-1800 [1]")
    ran.layout.of(USER).memory_log.write_bytes(b"{broken\n{}\n")
    words = ["validate", "3", "--user", USER, "--root", str(ran.layout.root), "--json"]
    ended = run_here(words)
    assert ended.code == 3
    assert ended.value["data"]["verdict"] == "unsound"
    assert "not judged" in {one["verdict"] for one in ended.value["data"]["problems"]}
