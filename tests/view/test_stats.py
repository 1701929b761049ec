"""The pages of stats and interventions: the numbers of the log, its damage, what waits for somebody."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api import Panda, ScriptedPanda, open_pages, tree
from tests.script import Script
from tests.store_files import write_turn
from tests.view.logs import VERDICTS, executions, write_log
from tests.view.sites import SCRIPT, assert_plain, change_json, page_words


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store with turns that ended in different ways."""
    panda = Panda(tmp_path, user="demo")
    for number, status in enumerate(("approved", "failed", "running", "clarify"), 1):
        write_turn(panda.user_directory, number, query="What?", response="That.", status="imported")
        change_json(panda.turn_file(number, "metadata.json"), status=status)
    return panda


@pytest.mark.parametrize(("by", "key"), [("recipe", "key"), ("phase", "phase"), ("day", "timestamp")])
def test_the_sums_of_many_lines(panda: Panda, by: str, key: str) -> None:
    """Each execution of the user counts in its group; a group with unknown tokens would have none."""
    lines = executions(3_000)
    write_log(panda, lines)
    groups: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        if line["user_id"] == "demo" and "event" not in line:
            name = "outside a turn" if line[key] is None else str(line[key])[:10]
            groups.setdefault(name, []).append(line)
    data = panda.json("stats", "--by", by)["groups"]
    assert data.keys() == groups.keys()
    for name, own in groups.items():
        judged = [line for line in own if line["confidence"] is not None and line["turn_id"] in VERDICTS]
        right = [line for line in judged if VERDICTS[line["turn_id"]]]
        times = sorted(line["latency_ms"] for line in own if line["latency_ms"] is not None)
        valid = [line["schema_valid"] for line in own if line["schema_valid"] is not None]
        sums = data[name]
        assert sums["executions"] == len(own)
        assert sums["valid"] == pytest.approx(sum(valid) / len(valid), abs=1e-4)
        assert sums["tokens"] == sum(line["tokens"]["total"] for line in own)
        assert (sums["judged"], sums["held"]) == (len(judged), round(len(right) / len(judged), 4))
        assert sums["p95_ms"] == times[math.ceil(0.95 * len(times)) - 1]


def test_what_is_added_is_read_and_what_is_replaced_is_read_anew(panda: Panda, pages: TestClient) -> None:
    """Each line is read once; a half line is waited for; another file in its place is begun anew."""
    first, more = ([line for line in executions(60, seed) if "event" not in line] for seed in (1, 2))
    own = [len([line for line in lines if line["user_id"] == "demo"]) for lines in (first, more)]

    def counted() -> str:
        return page_words(pages.get("/stats/demo").text)

    path = write_log(panda, first)
    assert f" {own[0]} executions" in counted()
    text = "".join(json.dumps(line) + "\n" for line in more)
    with path.open("a") as file:
        file.write(text[:-20])
    last = 1 if more[-1]["user_id"] == "demo" else 0
    assert f" {sum(own) - last} executions" in counted()
    with path.open("a") as file:
        file.write(text[-20:])
    assert f" {sum(own)} executions" in counted()
    assert counted() == page_words(open_pages(panda).get("/stats/demo").text)
    write_log(panda, more)
    assert f" {own[1]} executions" in counted()
    path.unlink()
    assert " executions," not in counted()


def test_the_page_shows_each_group_and_a_table_for_each_plot(panda: Panda, pages: TestClient) -> None:
    """Groups, days and the tenths of confidence stand as numbers, also without the plots."""
    write_log(panda, executions(500))
    before = tree(panda.store)
    html = pages.get("/stats/demo").text
    shown = page_words(html)
    for text in (
        "a/one",
        "b/three",
        "MIND (m)",
        "VOICE (choose)",
        "outside a turn",
        "2026-01-07",
        "0.9 to 1.0",
    ):
        assert text in shown
    assert html.count("<svg role=") == html.count("As a table") == 5
    assert tree(panda.store) == before


def test_filters_take_what_they_say(panda: Panda, pages: TestClient) -> None:
    """Recipe, layer and days narrow what is added up."""
    lines = executions(600)
    write_log(panda, lines)
    fields = {"recipe": "a/one", "layer": "MIND (m)", "since": "2026-01-05", "until": "2026-01-09"}
    own = [
        line
        for line in lines
        if line.get("key") == "a/one"
        and (line["user_id"], line["model_layer"], line["model"]) == ("demo", "MIND", "m")
        and "2026-01-05" <= line["timestamp"][:10] <= "2026-01-09"
    ]
    assert 0 < len(own) < 100
    assert f"{len(own)} executions of" in page_words(pages.get("/stats/demo", params=fields).text)
    assert "No execution is like this" in page_words(pages.get("/stats/demo?since=2030-01-01").text)


HOSTILE = (
    *("{", "[]", "null", '{"success": true}', '{"success": 1, "latency_ms": 1e999}', "\x00", "x" * 5_000),
    '{"success": true, "user_id": "demo", "latency_ms": 1' + "0" * 400 + "}",
    '{"success": true, "user_id": "demo", "tokens": {"total": "x"}, "retries": [], "confidence": "y"}',
    '{"success": true, "user_id": "demo", "confidence": -5, "turn_id": "../../x", "timestamp": {}}',
    '{"success": true, "user_id": "demo", "confidence": 7, "turn_id": "\\u0000", "timestamp": 5}',
    '{"success": true, "user_id": "demo", "key": "\\ud800", "model": "\\u202e"}',
    json.dumps({"success": True, "user_id": "demo", "key": SCRIPT, "model_layer": SCRIPT, "phase": SCRIPT}),
    json.dumps({"success": True, "user_id": "demo", "timestamp": SCRIPT, "key": ["a"], "turn_id": None}),
)


@pytest.mark.parametrize("line", HOSTILE)
def test_hostile_and_damaged_lines_are_left_out_or_shown_as_text(
    panda: Panda, pages: TestClient, line: str
) -> None:
    """A damaged line is named with its number, and no line breaks the page or becomes markup."""
    path = write_log(panda, executions(40))
    with path.open("a") as file:
        file.write(line + "\n")
    reply = pages.get("/stats/demo")
    assert reply.status_code == 200
    assert_plain(reply.text)
    if not line.startswith("{") or "1e999" in line or line == "{":
        assert "executions.jsonl:41 is left out" in page_words(reply.text)


def test_logs_that_are_none(panda: Panda, pages: TestClient) -> None:
    """Nothing, hostile lines alone and bytes that are no text make a page; what is no file is named."""
    path = write_log(panda, [])
    for data in (b"", "\n".join(HOSTILE).encode(), b"\xff\xfe" * 1_000):
        path.write_bytes(data)
        reply = pages.get("/stats/demo")
        assert (reply.status_code, "cannot be used" in reply.text) == (200, False)
    path.unlink()
    assert "cannot be used" not in pages.get("/stats/demo").text
    path.mkdir()
    assert "cannot be used" in page_words(pages.get("/stats/demo").text)


def test_interventions_say_what_to_do(ann: ScriptedPanda) -> None:
    """Open ones stand with their fix and the command that goes on, settled ones below with what was done."""
    pages = open_pages(ann)
    assert "Nothing waits" in page_words(pages.get("/interventions").text)
    for reply in ("nonsense", SCRIPT):
        ann.turn(script=Script(planner=reply))
    first = min(ann.json("intervention", "list")["interventions"], key=lambda one: one["turn"])["id"]
    (ann.store / "interventions" / "torn.json").write_text("{")
    html = pages.get("/interventions").text
    assert_plain(html)
    for text in ("2 open, 0 settled", "change the prompt or the model", "panda turn --resume 3", "torn.json"):
        assert text in page_words(html)
    assert ann("intervention", "resolve", first, "--note", "took another model").code == 0
    shown = page_words(pages.get("/interventions").text)
    assert "1 open, 1 settled" in shown
    assert "took another model" in shown
