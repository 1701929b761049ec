"""The pages of stats and interventions: the numbers of the log, its damage, what waits for somebody."""

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panda.cli.main import build_program
from panda.documents.text import UNSAFE
from panda.errors import ReplyError
from panda.index.executions import OUTSIDE, Executions
from panda.store.interventions import resolve_intervention, write_intervention
from panda.store.layout import Layout, UserStore
from tests.builders import build_store, import_line, still_clock, tree
from tests.cli.programs import run_words
from tests.view.sites import client_of, page_words

VERDICTS: Mapping[str, bool] = {"turn_000001": True, "turn_000002": False, "turn_000004": False}
"""How the turns of the store ended."""
SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def executions(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Lines of a log, some of them lacking something, some of other events and users."""
    draw = random.Random(seed)
    found: list[dict[str, Any]] = []
    for n in range(count):
        total = draw.choice([0, 10, 1_000])
        line: dict[str, Any] = {
            "timestamp": f"2026-01-{1 + n * 20 // count:02d}T10:00:00Z",
            "recipe": "r",
            "key": draw.choice(["a/one", "a/two", "b/three"]),
            "phase": draw.choice([None, 0, 3]),
            "model_layer": draw.choice(["MIND", "VOICE"]),
            "model": draw.choice(["m", None]),
            "method": "choose",
            "user_id": draw.choice(["demo", "demo", "ann"]),
            "turn_id": f"turn_{draw.randint(1, 5):06d}",
            "tokens": {"prompt": total, "output": 0, "total": total},
            "latency_ms": draw.choice([1, 20, 300.5, None]),
            "success": True,
            "schema_valid": draw.choice([True] * 8 + [False, None]),
            "outcome": draw.choice([None, "done", "away"]),
            "confidence": draw.choice([None, 0.05, 0.72, 0.99, 1.0]),
            "retries": draw.choice([0, 0, 1]),
            "compression_savings": draw.choice([0, 7]),
        }
        if draw.random() < 0.05:
            line = {"timestamp": line["timestamp"], "event": "compression", "user_id": "demo"}
        found.append(line)
    return found


def write_log(layout: Layout, lines: list[dict[str, Any]]) -> Path:
    """The log of a store."""
    layout.executions_log.parent.mkdir(parents=True, exist_ok=True)
    layout.executions_log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return layout.executions_log


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A store with turns that ended in different ways."""
    layout = build_store(tmp_path / "store", *[import_line(turn=n) for n in range(1, 5)])
    for number, status in ((1, "approved"), (2, "failed"), (3, "running"), (4, "clarify")):
        path = layout.of("demo").turn(number) / "metadata.json"
        path.write_text(path.read_text().replace('"imported"', f'"{status}"'))
    return layout


@pytest.mark.parametrize(("by", "key"), [("recipe", "key"), ("phase", "phase"), ("day", "timestamp")])
def test_the_sums_of_many_lines(
    layout: Layout, capsys: pytest.CaptureFixture[str], by: str, key: str
) -> None:
    """Each execution of the user counts in its group; a group with unknown tokens would have none."""
    lines = executions(3_000)
    write_log(layout, lines)
    words = ["stats", "--by", by, "--json", "--root", str(layout.root), "--user", "demo"]
    found = run_words(build_program(), words, capsys).value["data"]["groups"]
    groups: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        if line["user_id"] == "demo" and "event" not in line:
            name = OUTSIDE if line[key] is None else str(line[key])[:10]
            groups.setdefault(name, []).append(line)
    assert found.keys() == groups.keys()
    for name, own in groups.items():
        judged = [line for line in own if line["confidence"] is not None and line["turn_id"] in VERDICTS]
        right = [line for line in judged if VERDICTS[line["turn_id"]]]
        times = sorted(line["latency_ms"] for line in own if line["latency_ms"] is not None)
        sums = found[name]
        assert sums["executions"] == len(own)
        valid = [line["schema_valid"] for line in own if line["schema_valid"] is not None]
        assert sums["valid"] == pytest.approx(sum(valid) / len(valid), abs=1e-4)
        assert sums["tokens"] == sum(line["tokens"]["total"] for line in own)
        assert (sums["judged"], sums["held"]) == (len(judged), round(len(right) / len(judged), 4))
        assert sums["p95_ms"] == times[math.ceil(0.95 * len(times)) - 1]


def test_what_is_added_is_read_and_what_is_replaced_is_read_anew(layout: Layout) -> None:
    """Each line is read once; a half line is waited for; another file in its place is begun anew."""
    path = write_log(layout, executions(50))
    log = Executions(layout)

    def count(log: Executions = log) -> int:
        log.read("demo")
        found: int = log.select("count(*)", {"user_id = ?": "demo"})[0][0]
        return found

    first = count()
    more = executions(50, seed=2)
    text = "".join(json.dumps(line) + "\n" for line in more)
    with path.open("a") as file:
        file.write(text[:-20])
    half = count()
    with path.open("a") as file:
        file.write(text[-20:])
    whole = count()
    assert first < half <= whole
    assert whole == count(Executions(layout))
    write_log(layout, more)
    assert count() == whole - first
    path.unlink()
    assert count() == 0


def test_the_page_shows_each_group_and_a_table_for_each_plot(layout: Layout) -> None:
    """Groups, days and the tenths of confidence stand as numbers, also without the plots."""
    write_log(layout, executions(500))
    before = tree(layout.root)
    page = client_of(layout.root).get("/stats/demo")
    assert page.status_code == 200
    shown = page_words(page.text)
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
    assert page.text.count("<svg role=") == page.text.count("As a table") == 5
    assert tree(layout.root) == before


def test_filters_take_what_they_say(layout: Layout) -> None:
    """Recipe, layer and days narrow what is added up; what there is not is an error that says so."""
    lines = executions(600)
    write_log(layout, lines)
    client = client_of(layout.root)
    fields = {"recipe": "a/one", "layer": "MIND (m)", "since": "2026-01-05", "until": "2026-01-09"}
    own = [
        line
        for line in lines
        if line.get("key") == "a/one"
        and (line["user_id"], line["model_layer"], line["model"]) == ("demo", "MIND", "m")
        and "2026-01-05" <= line["timestamp"][:10] <= "2026-01-09"
    ]
    assert 0 < len(own) < 100
    assert f"{len(own)} executions of" in page_words(client.get("/stats/demo", params=fields).text)
    assert client.get("/stats/demo?recipe=none").status_code == 404
    assert client.get("/stats/demo?since=soon").status_code == 400
    shown = page_words(client.get("/stats/demo?since=2030-01-01").text)
    assert "No execution is like this" in shown


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
def test_hostile_and_damaged_lines_are_left_out_or_shown_as_text(layout: Layout, line: str) -> None:
    """A damaged line is named with its number, and no line breaks the page or becomes markup."""
    path = write_log(layout, executions(40))
    with path.open("a") as file:
        file.write(line + "\n")
    reply = client_of(layout.root).get("/stats/demo")
    assert reply.status_code == 200
    assert "<script>alert" not in reply.text
    assert "<img src=x" not in reply.text
    assert not UNSAFE.search(reply.text)
    if not line.startswith("{") or "1e999" in line or line == "{":
        assert "executions.jsonl:41 is left out" in page_words(reply.text)


def test_hostile_lines_by_themselves(layout: Layout) -> None:
    """Also where there is nothing else, days that are none and values beyond bounds make a page."""
    path = write_log(layout, [])
    path.write_text("\n".join(HOSTILE))
    assert client_of(layout.root).get("/stats/demo").status_code == 200
    path.write_bytes(b"\xff\xfe" * 1_000)
    assert client_of(layout.root).get("/stats/demo").status_code == 200


@pytest.mark.parametrize("kind", ["directory", "nothing", "empty"])
def test_a_log_that_is_none(layout: Layout, kind: str) -> None:
    """No log is no executions; what is no file is named."""
    path = write_log(layout, [])
    if kind != "empty":
        path.unlink()
    if kind == "directory":
        path.mkdir()
    shown = page_words(client_of(layout.root).get("/stats/demo").text)
    assert ("cannot be used" in shown) == (kind == "directory")


def test_interventions_say_what_to_do(layout: Layout) -> None:
    """Open ones stand with their fix and the command that goes on, settled ones below with what was done."""
    error = ReplyError("the reply is no JSON", where="phase 3", fix="use a larger model")
    first = write_intervention(
        UserStore(layout.root, "demo", still_clock), error, turn=1, phase=3, recipe="a/b"
    )
    hostile = ReplyError(SCRIPT, where=SCRIPT, fix=SCRIPT)
    write_intervention(UserStore(layout.root, "demo", still_clock), hostile, turn=2, phase=3, recipe="a/b")
    (layout.interventions / "torn.json").write_text("{")
    client = client_of(layout.root)
    page = client.get("/interventions").text
    shown = page_words(page)
    for text in ("2 open, 0 settled", "use a larger model", "panda turn --resume 1 --user demo", "torn.json"):
        assert text in shown
    assert "<script>alert" not in page
    resolve_intervention(UserStore(layout.root, "demo", still_clock, 1), first, "took another model")
    shown = page_words(client.get("/interventions").text)
    assert "1 open, 1 settled" in shown
    assert "took another model" in shown


def test_nothing_waits(layout: Layout) -> None:
    """Without interventions the page says so."""
    assert "Nothing waits" in page_words(client_of(layout.root).get("/interventions").text)
