"""What the page of a turn says beside its answer: halts, replaced attempts, calls, candidates, runs."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api import Panda, ScriptedPanda, open_pages
from tests.script import PRICE_NODE, Script
from tests.store_files import write_turn
from tests.view.sites import SCRIPT, Html, assert_plain, change_json, page_words


def page_of(panda: Panda, number: int) -> str:
    """The page of a turn of the user."""
    return open_pages(panda).get(f"/turns/{panda.user}/{number}").text


def part_of(html: str, name: str) -> str:
    """A part of the page of a turn, by the id of its heading."""
    return html.partition(f'<section aria-labelledby="{name}">')[2].partition("</section>")[0]


def test_a_halt_is_told_with_its_fix(ann: ScriptedPanda) -> None:
    """An intervention of the turn says what came, what to do and how to go on; of others there is none."""
    turn = ann.turn(script=Script(planner=f"no {SCRIPT}"))
    (ann.store / "interventions" / f"20260201t120000z-ann-{turn.number}-00000000.json").write_text("{")
    (intervention,) = [one for one in (ann.store / "interventions").iterdir() if "20260104" in one.name]
    html = page_of(ann, turn.number)
    shown = page_words(html)
    assert_plain(html)
    for words in ("no valid reply in 3 attempts", "change the prompt or the model", "panda turn --resume 3"):
        assert words in shown
    assert "00000000.json" in shown
    assert "no valid reply" not in page_words(page_of(ann, 1))
    assert ann("intervention", "resolve", intervention.stem, "--note", "a larger model").code == 0
    assert "a larger model" in page_words(page_of(ann, turn.number))


def test_replaced_attempts_are_compared_with_what_came_after(ann: ScriptedPanda) -> None:
    """Each attempt stands beside the next one of the same section, the last beside the answer."""
    amounts = ("$701", "$702", "$697")
    answers = [
        {"items": [{"text": f"The Lenovo LOQ 15 costs {amount}.", "node_ids": [PRICE_NODE]}]}
        for amount in amounts
    ]
    turn = ann.turn(script=Script(answer=answers))
    assert turn.status == "approved"
    attempts = part_of(page_of(ann, turn.number), "attempts")
    removed = "".join(re.findall(r"(?s)<del.*?</del>", attempts))
    added = "".join(re.findall(r"(?s)<ins.*?</ins>", attempts))
    assert [amount in removed for amount in amounts] == [True, True, False]
    assert [amount in added for amount in amounts] == [False, True, True]
    assert attempts.index("$701") < attempts.index("$697")


def test_an_attempt_that_changed_nothing_says_so(ann: ScriptedPanda) -> None:
    """Where the next attempt is written in the same words."""
    verdicts = [{"verdict": "REVISE", "reason": "Again."}, {"verdict": "APPROVE"}]
    turn = ann.turn(script=Script(validator=verdicts))
    assert "Written anew without a change" in page_of(ann, turn.number)


def test_candidates_and_calls_are_all_there(panda: Panda, pages: TestClient) -> None:
    """Each candidate with score and who chose it, the chosen ones first; each call with its whole prompt."""
    html = pages.get("/turns/demo/813").text
    plan = json.loads(panda.turn_file(813, "retrieval_plan.json").read_text())
    table = part_of(html, "candidates")
    cells = [page_words(f"<main {row}").split() for row in table.split("<tr")[2:]]
    assert len(cells) == len(plan["candidates"])
    for candidate in plan["candidates"]:
        chosen = "yes," if candidate["chosen"] else "no,"
        by = candidate["by"].split("_")
        assert any(
            f"{candidate['node_id']}" in row and chosen in row and set(by) <= set(row) for row in cells
        ), candidate
    order = ["yes," in row for row in cells]
    assert order == sorted(order, reverse=True)
    calls = part_of(html, "calls")
    lines = panda.turn_file(813, "calls.jsonl").read_text().splitlines()
    assert re.findall(r'id="call-(\d+)"', calls) == [str(number + 1) for number in range(len(lines))]
    assert not re.search(r"<pre[^>]*></pre>", calls)
    for call in calls.split("<details")[1:]:
        shares = [float(share) for share in re.findall(r'<td class="n">([01]\.\d+)</td>', call)]
        assert shares == sorted(shares, reverse=True)


def test_phases_name_what_decided_and_add_up(pages: TestClient) -> None:
    """All phases that ran have a bar, one behind the other; with the packaged models the encoder decided."""
    phases = part_of(pages.get("/turns/demo/813").text, "phases")
    bars = re.findall(r'<rect[^>]* x="([\d.]+)"[^>]* width="([\d.]+)"', phases)
    places = [(float(start), float(width)) for start, width in bars if float(width) < 100]
    assert len(re.findall(r'<tr><th scope="row">\d ', phases)) == 7
    assert set(re.findall(r"minilm-l6|smollm\S*", phases)) == {"minilm-l6"}
    thin = min(width for _, width in places)
    assert places[1][1] == thin  # phase 1 asked nobody, and took no time
    for (start, width), (following, _) in pairwise(places):
        assert following == pytest.approx(start + (width if width > thin else 0.0), abs=0.2)


def test_ages_and_confidences_are_those_of_then(pages: TestClient) -> None:
    """A source is as old, and as much to be believed, as it was when the turn ran."""
    source = Html(pages.get("/turns/demo/813").text).text_in["e1-1"]
    assert "0.94" in source
    assert re.search(r"\b1\.\d h", source), source


def test_memory_that_changed_since_is_shown_as_it_was(panda: Panda, pages: TestClient) -> None:
    """What an answer quotes of memory is what that said then, whatever it says now."""
    before = Html(pages.get("/turns/demo/815").text).text_in["e1-1"]
    assert panda("memory", "set", "favorite_hamster", "Roborovski").code == 0
    html = pages.get("/turns/demo/815").text
    assert Html(html).text_in["e1-1"] == before
    assert "Roborovski" not in html


def test_neighbours_skip_gaps(pages: TestClient) -> None:
    """The turns before and after are those that there are."""
    links = Html(pages.get("/turns/demo/798").text).links
    assert {"/turns/demo/790", "/turns/demo/805"} <= set(links)


@pytest.mark.parametrize(
    ("answer", "statement"),
    [
        ("It is **In Stock**. [1]", "It is **In Stock**."),
        ("| a | b |\n|---|---|\n| In | Stock |\n\n([1])", "| a | b |\n|---|---|\n| In | Stock |"),
        ("```\nIn Stock\n```\n\n([1])", "```\nIn Stock\n```"),
        ("It is:\n\n- In\n- Stock [1]", "It is:\n\n- In\n- Stock"),
        ("1. In Stock [1]", "In Stock"),
        ("| a |\n|---|\n| In Stock [1] |", "a: In Stock"),
        ("> In Stock [1]", "> In Stock"),
        ("\\# In Stock [1]", "# In Stock"),
        ("<b>In Stock</b> [1]", "<b>In Stock</b>"),
        ("In &amp; Stock [1] and `x[1]`", "In &amp; Stock"),
    ],
)
def test_marks_lead_to_their_source_whatever_they_stand_in(
    tmp_path: Path, answer: str, statement: str
) -> None:
    """A mark behind a paragraph, list, table, fence or quote is a link to the source of that statement."""
    panda = Panda(tmp_path, user="ann")
    response = f"{answer}\n\nSources:\n- [1] turn:1, turns/turn_000001/context.md\n"
    write_turn(panda.user_directory, 2, query="Is it?", response=response, items=[(statement, "turn:1")])
    html = page_of(panda, 2)
    marks = [given["href"] for tag, given in Html(html).elements if given.get("class") == "mark"]
    assert marks == ["#e1-1"]
    assert "<b>" not in html


@pytest.mark.parametrize(("run", "is_link"), [("20260201-1", True), ("gone", False), ("../x", False)])
def test_a_turn_of_a_batch_names_its_run(panda: Panda, pages: TestClient, run: str, is_link: bool) -> None:
    """Item and batch stand at the top, with a link where the store has the run; a path is no run."""
    (panda.store / "runs" / "20260201-1").mkdir(parents=True)
    change_json(panda.turn_file(813, "metadata.json"), run=run, item="question <7>")
    html = pages.get("/turns/demo/813").text
    assert (f'href="/runs/{run}"' in html) is is_link
    assert "availability In Stock" in html
    if run == "../x":
        assert "metadata.json cannot be used: metadata.json:1 (run): run must be a plain" in page_words(html)
    else:
        assert "item question &lt;7&gt; of" in html


def test_only_lines_of_the_turn_are_taken_from_a_long_log(panda: Panda, pages: TestClient) -> None:
    """Its executions and cuts are found among thousands, also where lines are damaged, and no others."""
    log = panda.store / "logs" / "executions.jsonl"
    log.parent.mkdir(exist_ok=True)
    times = {
        number: json.loads(panda.turn_file(number, "metadata.json").read_text())["created_at"]
        for number in (790, 811, 813)
    }
    lines = []
    for number, at in times.items():
        for copy in range(1_500):
            is_own = copy == 700
            whose = {
                "timestamp": at,
                "user_id": "demo",
                "turn_id": f"turn_{number if is_own else copy + 5_000:06d}",
            }
            cut = {"event": "compressed", "document": f"§{number}", "method": "dropped", "recipe": "planner"}
            ran = {"key": f"pipeline/p{number}", "success": True, "schema_valid": True, "latency_ms": 1500}
            lines.append(json.dumps({**whose, **cut, "original_tokens": 900, "compressed_tokens": 400}))
            lines.append("not JSON " * 40)
            lines.append(json.dumps({**whose, **ran, "confidence": 0.9, "tokens": {"total": 7}}))
            lines.append(json.dumps({**whose, **ran, "user_id": "other", "key": "pipeline/other"}))
    values: tuple[Any, ...] = (None, "x", [], {}, -1, 10**400, True)
    whose = {"timestamp": times[813], "user_id": "demo", "turn_id": "turn_000813", "success": True}
    lines += [json.dumps({**whose, key: value}) for value in values for key in ("latency_ms", "tokens")]
    log.write_bytes("\n".join(lines).encode() + b"\n\xff\xfe\n[[[\n" + b"[" * 90_000)
    for number in times:
        shown = page_words(pages.get(f"/turns/demo/{number}").text)
        assert shown.count(f"p{number} ") == 1, number
        assert shown.count(f"§{number} ") == 1
        assert not re.search(f"pipeline/other|p(?!{number})(790|811|813) ", shown)
