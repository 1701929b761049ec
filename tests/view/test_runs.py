"""The pages of runs and of two compared: real replays and a real batch, killed, empty and damaged ones."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api import Panda, ScriptedPanda, open_pages
from tests.effort import tried
from tests.mutations import mutate
from tests.view.sites import (
    SCRIPT,
    STEERING,
    Html,
    add_line,
    assert_plain,
    change_json,
    outcome,
    page_words,
    run_line,
    write_run,
)


def test_a_real_replay_is_listed_and_shown(panda: Panda, pages: TestClient) -> None:
    """What `panda replay` found of each turn is on the page of the run, which leads to the turns."""
    panda("replay", "811", "813")
    (directory,) = (panda.store / "runs").iterdir()
    assert f"/runs/{directory.name}" in Html(pages.get("/runs").text).links
    html = pages.get(f"/runs/{directory.name}").text
    lines = [json.loads(line) for line in (directory / "turns.jsonl").read_text().splitlines()]
    assert [line["turn"] for line in lines] == [811, 813]
    for line in lines:
        assert line["result"] in page_words(html)
        assert all(finding.split("\n")[0][:60] in page_words(html) for finding in line["findings"][:5])
        assert f"/turns/demo/{line['turn']}" in Html(html).links


def test_rows_of_a_batch_open_its_own_turns(ann: ScriptedPanda) -> None:
    """Turns that were saved later under the same numbers are neither linked, compared nor written for it."""
    asked = [f"How much is the Lenovo LOQ 15? ({word})" for word in ("first", "second")]
    lines = [
        {"id": f"item {number}", "query": query, "session": "both", "expect": {"contains": "$5"}}
        for number, query in enumerate(asked)
    ]
    queries = "".join(json.dumps(line) + "\n" for line in lines)
    runs = [ann("batch", "-", "--json", stdin=queries).data["run"] for _ in range(2)]
    numbers = [ann.turn("What is my budget?").number for _ in asked]
    pages, run = open_pages(ann), runs[0]
    rows = [link for link in Html(pages.get(f"/runs/{run}").text).links if "turns/ann/" in link]
    assert rows == [f"/runs/{run}/turns/ann/{number}" for number in numbers]
    for row, query in zip(rows, asked, strict=True):
        html = pages.get(row).text
        assert f'<h1 dir="auto">{query}</h1>' in html
        assert not {f"/turns/ann/{number}" for number in numbers} & set(Html(html).links)
        assert pages.get(f"{row}/files/metadata.json").status_code == 200
    assert pages.get(f"/runs/{run}/turns/ann/1").status_code == 404
    compared = Html(pages.get(f"/runs/compare/{run}/{runs[1]}").text).links
    of_both = {*rows, *(row.replace(*runs) for row in rows)}
    assert {link for link in compared if "/turns/ann/" in link} <= of_both
    files = ann.json("view", run, "--out", "pages")["files"]
    assert {f"{row.removeprefix('/')}.html" for row in rows} <= set(files)
    assert not [name for name in files if name.startswith("turns/ann/")]


def test_what_is_not_as_it_was_to_be_stands_first(panda: Panda, pages: TestClient) -> None:
    """Turns with findings come before sound ones, with their findings, documents and calls that differ."""
    bad = {
        "result": "differs",
        "findings": ["the plan is another"],
        "different": {"plan.json": "--- saved\n+++ now\n@@ -1 +1 @@\n-old line\n+new line\n"},
        "misses": [
            {"recipe": "p/x", "kind": "choose", "difference": "-asked\n+asks\n", "cause": "asked otherwise"}
        ],
    }
    run = write_run(panda, {811: {}, 813: bad})
    html = pages.get(f"/runs/{run.name}").text
    shown = page_words(html)
    assert shown.index("Query 813?") < shown.index("Query 811?")
    for text in ("the plan is another", "plan.json differs", "new line", "no recording answers", "1 differs"):
        assert text in shown
    assert "<del>old line</del>" in html


def test_a_stopped_run_says_how_to_go_on_and_a_running_one_that_it_runs(
    panda: Panda, pages: TestClient
) -> None:
    """Without its end written down a run was stopped, unless a process holds its lock."""
    run = write_run(panda, {811: {}}, planned=3)
    shown = page_words(pages.get(f"/runs/{run.name}").text)
    assert f"panda replay --resume {run.name}" in shown
    assert "3 not run" in shown
    assert "stopped" in page_words(pages.get("/runs").text)
    with panda.lock(f"runs/{run.name}/lock"):
        assert "running" in page_words(pages.get("/runs").text)
        assert "--resume" not in page_words(pages.get(f"/runs/{run.name}").text)


def test_lines_are_followed_while_a_run_goes_on(panda: Panda, pages: TestClient) -> None:
    """What is added after a look is on the page at the next one, and a half line is waited for."""
    run = write_run(panda, {811: {}}, planned=1)
    assert "Query 812?" not in page_words(pages.get(f"/runs/{run.name}").text)
    add_line(run, run_line(panda, 812, result="halted", findings=["it broke"]))
    with (run / "turns.jsonl").open("a") as file:
        file.write('{"turn": 9')
    shown = page_words(pages.get(f"/runs/{run.name}").text)
    assert "Query 812?" in shown
    assert "cannot be used" not in shown


def test_an_empty_run_and_none_at_all(panda: Panda, pages: TestClient) -> None:
    """Without runs the list says how to begin one; a run without turns says so; what is no run is told."""
    assert "panda batch" in page_words(pages.get("/runs").text)
    run = write_run(panda, {})
    assert "No turn of it has ended" in page_words(pages.get(f"/runs/{run.name}").text)
    (panda.store / "runs" / "stray-file").write_text("x")
    (panda.store / "runs" / "no-plan").mkdir()
    assert "run.json" in page_words(pages.get("/runs").text)
    assert pages.get("/runs/no-plan").status_code == 200


def test_runs_of_many_turns_come_in_pages(panda: Panda, pages: TestClient) -> None:
    """A hundred turns a page; all of them are on one of the pages."""
    run = write_run(panda, {number: {} for number in range(1000, 1250)})
    addresses = (f"/runs/{run.name}", f"/runs/{run.name}/page/2", f"/runs/{run.name}/page/3")
    shown = [page_words(pages.get(address).text) for address in addresses]
    assert all("".join(shown).count(f"Query {number}?") == 1 for number in range(1000, 1250))
    assert ["Turns behind" in page for page in shown] == [True, True, False]


def test_texts_of_runs_never_become_markup(panda: Panda, pages: TestClient) -> None:
    """Items, queries, answers, findings and documents stay text, whatever they hold."""
    text = f"{SCRIPT} {STEERING}"
    ended = outcome(811, query=text, answer=text, status=text, item=text)
    bad = {"result": "failed", "item": text, "findings": [text], "different": {text: f"-{text}\n+{text}"}}
    run = write_run(panda, {811: {**bad, "outcome": ended}}, mode="batch")
    other = write_run(panda, {811: {**bad, "outcome": {**ended, "answer": "x"}}}, mode="batch")
    for path in ("/runs", f"/runs/{run.name}", f"/runs/compare/{run.name}/{other.name}"):
        reply = pages.get(path)
        assert reply.status_code == 200
        assert_plain(reply.text)


def test_damage_of_any_kind_never_breaks_a_page(panda: Panda, pages: TestClient, tmp_path: Path) -> None:
    """Whatever is cut, swapped, linked or made a pipe among the files of a run: pages stay pages."""
    run = write_run(panda, {811: {}, 813: {"result": "differs", "different": {"a": "-b"}}}, planned=2)
    sound = shutil.copytree(run, tmp_path / "sound")
    for seed in range(tried(20, 60)):
        shutil.rmtree(run)
        shutil.copytree(sound, run)
        damage = mutate(run, seed)
        for path in ("/runs", f"/runs/{run.name}", f"/runs/compare/saved/{run.name}"):
            assert pages.get(path).status_code == 200, (path, seed, damage)


def test_comparison_shows_what_flipped_and_what_changed(panda: Panda, pages: TestClient) -> None:
    """Answers and decisions of both sides stand beside each other; turns that are the same are named."""

    def decided(number: int, value: str, **changes: Any) -> dict[str, Any]:
        decision = {"phase": 1, "recipe": "p/reflection", "name": "decision", "value": value}
        return {"outcome": outcome(number, decisions=[decision], **changes)}

    before = write_run(panda, {number: decided(number, "PROCEED") for number in (811, 812, 813)})
    flipped = decided(813, "CLARIFY", answer="Something else.")
    after = write_run(panda, {811: decided(811, "PROCEED"), 813: flipped}, planned=1)
    html = pages.get(f"/runs/compare?before={before.name}&after={after.name}").text
    shown = page_words(html)
    assert "1 decision flipped, 1 answer changed" in shown
    for text in ("PROCEED", "CLARIFY", "Answer 813.", "Something else.", "is not finished"):
        assert text in shown
    assert "it does not hold the turn" in shown
    assert {"/turns/demo/811", "/turns/demo/813"} <= set(Html(html).links)


@pytest.mark.parametrize("name", ["..", "../store", "%2e%2e", "none", "/etc", "a%00b", "x" * 300])
def test_runs_outside_of_the_store_cannot_be_named(panda: Panda, pages: TestClient, name: str) -> None:
    """A run is a directory below runs/, and nothing else, whatever an address says."""
    run = write_run(panda, {811: {}})
    shutil.copy(run / "run.json", panda.store / "run.json")
    reply = pages.get(f"/runs/{name}")
    assert reply.status_code in (404, 200)
    assert "Rerun" not in reply.text
    for before in (name, str(panda.home)):
        fields = {"before": before, "after": run.name}
        assert pages.get("/runs/compare", params=fields).status_code == 404


def test_a_store_that_was_moved_keeps_its_links(panda: Panda, tmp_path: Path) -> None:
    """A run leads to the turns of its store wherever that lies by now, and to none of another store."""
    run = write_run(panda, {811: {}})
    moved = Panda(tmp_path / "moved", panda.store, user="demo")
    assert "/turns/demo/811" in Html(open_pages(moved).get(f"/runs/{run.name}").text).links
    plan = [{"turn": 811, "user": "demo", "root": "/elsewhere"}]
    change_json(moved.store / "runs" / run.name / "run.json", turns=plan)
    assert "/turns/demo/811" not in Html(open_pages(moved).get(f"/runs/{run.name}").text).links


def test_items_of_a_batch_that_were_run_again_count_once(panda: Panda, pages: TestClient) -> None:
    """Of an item that got another number only the line of that number counts."""
    again = {"outcome": outcome(813, item="a"), "item": "a", "result": "passed", "exit_code": 0}
    run = write_run(panda, {813: again}, mode="batch")
    change_json(run / "run.json", turns=[{"turn": 813, "user": "demo", "item": "a", "session": "s"}])
    first = run_line(panda, 811, outcome=outcome(811, item="a"), item="a", result="failed", findings=["bad"])
    later = (run / "turns.jsonl").read_text()
    (run / "turns.jsonl").write_text(f"{json.dumps(first)}\n{later}")
    (run / "queries.jsonl").write_text(json.dumps({"id": "a", "query": "What?"}) + "\n")
    shown = page_words(pages.get(f"/runs/{run.name}").text)
    assert "1 passed" in shown
    assert "failed" not in shown
    assert "1 earlier line" in shown


@pytest.mark.parametrize("user", ["\x00", "../..", "/etc", "a\nb", "demo/../demo", "x" * 5_000, ""])
def test_lines_that_name_hostile_users_and_directories(panda: Panda, pages: TestClient, user: str) -> None:
    """Whatever a line says of whose turn it is and where it lies, pages stay pages and lead nowhere else."""
    runs = []
    for answer in ("one", "two"):
        ended = outcome(811, user=user, sections={"2": answer}, answer=answer)
        line = {"user": user, "outcome": ended, "result": "differs", "directory": f"/{user}/turns"}
        runs.append(write_run(panda, {811: line}, planned=1).name)
    for path in (f"/runs/{runs[0]}", f"/runs/compare/{runs[0]}/{runs[1]}", f"/runs/compare/saved/{runs[0]}"):
        reply = pages.get(path)
        assert reply.status_code == 200, path
        assert not [link for link in Html(reply.text).links if link.startswith("/turns/") and ".." in link]
