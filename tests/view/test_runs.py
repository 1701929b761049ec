"""The pages of runs and of two compared: real replays and a real batch, killed, empty and damaged ones."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from panda.documents.text import UNSAFE
from panda.runs.ledger import Fingerprint, Options, Outcome, PlannedTurn, RunFolder, TurnLine
from panda.store.files import held_lock
from panda.store.layout import Layout
from panda.view.output import write_site
from tests.api import LAPTOPS, ModelServer, Panda
from tests.builders import still_clock, tree
from tests.effort import tried
from tests.mutations import mutate
from tests.view.sites import Html, client_of, page_words, shelf_of
from tests.view.test_site import crawl

SCRIPT = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
RAN_ON = Fingerprint(
    "0.1.0", {"pipeline/phase1_reflection": "a" * 64}, {"MIND": {"name": "m", "digest": "b"}}
)


@pytest.fixture
def layout(recorded: Path, tmp_path: Path) -> Layout:
    """A store of its own with the recorded turns."""
    shutil.copytree(recorded, tmp_path / "store")
    return Layout(tmp_path / "store")


def outcome(turn: int, **changes: Any) -> Outcome:
    """What a turn came to."""
    return replace(
        Outcome(turn, "demo", f"Query {turn}?", "approved", True, f"Answer {turn}.", ()), **changes
    )


def make_run(
    layout: Layout, turns: Mapping[int, Mapping[str, Any]], *, planned: int = 0, mode: Any = "rerun"
) -> RunFolder:
    """A run in which each of some turns came to something; *planned* more were not run."""
    numbers = [*turns, *range(900, 900 + planned)]
    plan = [PlannedTurn(number, "demo") for number in numbers]
    run = RunFolder.create(
        layout, still_clock, mode, plan, fingerprint=RAN_ON, options=Options(selection=("1",))
    )
    for number, changes in turns.items():
        where = str(layout.of("demo").turn(number).directory)
        line = TurnLine(number, "demo", where, "same", outcome=outcome(number))
        run.add(replace(line, **changes))
    if not planned:
        run.finish(still_clock)
    return run


def test_a_real_replay_is_listed_and_shown(layout: Layout) -> None:
    """What `panda replay` found of each turn is on the page of the run, which leads to the turns."""
    command = [sys.executable, "-m", "panda", "replay", "811", "813", "--user", "demo"]
    subprocess.run([*command, "--root", str(layout.root)], check=False, capture_output=True, timeout=120)
    client = client_of(layout.root)
    name = next(layout.runs.iterdir()).name
    assert f"/runs/{name}" in Html(client.get("/runs").text).links
    page = client.get(f"/runs/{name}")
    shown = page_words(page.text)
    for line in RunFolder(layout.runs / name).lines():
        assert line.result in shown
        assert all(finding.split("\n")[0][:60] in shown for finding in line.findings[:5])
        assert f"/turns/demo/{line.turn}" in Html(page.text).links


def test_rows_of_a_batch_open_its_own_turns(tmp_path: Path) -> None:
    """Turns that were saved later under the same numbers are neither linked, compared nor written for it."""
    asked = [f"How much is the Lenovo LOQ 15? ({word})" for word in ("first", "second")]
    with closing(ModelServer()) as server:
        panda = Panda(tmp_path, LAPTOPS, user="ann")
        panda.write("models.yaml", server.models())
        lines = [
            {"id": f"item {n}", "query": query, "session": "both", "expect": {"contains": "$5"}}
            for n, query in enumerate(asked)
        ]
        queries = "".join(json.dumps(line) + "\n" for line in lines)
        runs = [panda("batch", "-", "--json", stdin=queries).data["run"] for _ in range(2)]
        numbers = [panda.turn("What is my budget?").data["turn"] for _ in asked]
    client, run = client_of(panda.store, "ann"), runs[0]
    rows = [link for link in Html(client.get(f"/runs/{run}").text).links if "turns/ann/" in link]
    assert rows == [f"/runs/{run}/turns/ann/{number}" for number in numbers]
    for row, query in zip(rows, asked, strict=True):
        page = client.get(row)
        assert f'<h1 dir="auto">{query}</h1>' in page.text
        links = [link for link in Html(page.text).links if "/turns/ann/" in link]
        assert not [link for link in links if link in {f"/turns/ann/{number}" for number in numbers}]
        assert client.get(f"{row}/files/metadata.json").status_code == 200
    assert client.get(f"/runs/{run}/turns/ann/1").status_code == 404
    compared = Html(client.get(f"/runs/compare/{run}/{runs[1]}").text).links
    of_both = {*rows, *(row.replace(*runs) for row in rows)}
    assert {link for link in compared if "/turns/ann/" in link} <= of_both
    assert panda("view", run, "--out", "pages").code == 0
    written = {
        path.relative_to(tmp_path / "pages").as_posix() for path in (tmp_path / "pages").rglob("*.html")
    }
    assert {f"{row.removeprefix('/')}.html" for row in rows} <= written
    assert not [name for name in written if name.startswith("turns/ann/")]


def test_what_is_not_as_it_was_to_be_stands_first(layout: Layout) -> None:
    """Turns with findings come before sound ones, with their findings, documents and calls that differ."""
    from panda.recipes.calls import Miss

    different = {"plan.json": "--- saved\n+++ now\n@@ -1 +1 @@\n-old line\n+new line\n"}
    misses = (Miss("pipeline/phase1_reflection", "choose", "-asked\n+asks\n"),)
    bad = {
        "result": "differs",
        "findings": ("the plan is another",),
        "different": different,
        "misses": misses,
    }
    run = make_run(layout, {811: {}, 813: bad})
    page = client_of(layout.root).get(f"/runs/{run.id}").text
    shown = page_words(page)
    assert shown.index("Query 813?") < shown.index("Query 811?")
    for text in ("the plan is another", "plan.json differs", "new line", "no recording answers"):
        assert text in shown
    assert "<del>old line</del>" in page
    assert "1 differs" in shown


def test_a_stopped_run_says_how_to_go_on_and_a_running_one_that_it_runs(layout: Layout) -> None:
    """Without its end written down a run was stopped, unless a process holds its lock."""
    run = make_run(layout, {811: {}}, planned=3)
    client = client_of(layout.root)
    shown = page_words(client.get(f"/runs/{run.id}").text)
    assert f"panda replay --resume {run.id}" in shown
    assert "3 not run" in shown
    assert "stopped" in page_words(client.get("/runs").text)
    with held_lock(run.directory / "lock", holder="test", wait_seconds=1):
        assert "running" in page_words(client.get("/runs").text)
        assert "--resume" not in page_words(client.get(f"/runs/{run.id}").text)


def test_lines_are_followed_while_a_run_goes_on(layout: Layout) -> None:
    """What is added after a look is on the page at the next one, and a half line is waited for."""
    run = make_run(layout, {811: {}}, planned=1)
    client = client_of(layout.root)
    assert "Query 812?" not in page_words(client.get(f"/runs/{run.id}").text)
    run.add(TurnLine(812, "demo", "x", "halted", ("it broke",), outcome=outcome(812)))
    with (run.directory / "turns.jsonl").open("a") as file:
        file.write('{"turn": 9')
    shown = page_words(client.get(f"/runs/{run.id}").text)
    assert "Query 812?" in shown
    assert "cannot be used" not in shown


def test_an_empty_run_and_none_at_all(layout: Layout) -> None:
    """Without runs the list says how to begin one; a run without turns says so."""
    client = client_of(layout.root)
    assert "panda batch" in page_words(client.get("/runs").text)
    run = make_run(layout, {})
    assert "No turn of it has ended" in page_words(client.get(f"/runs/{run.id}").text)
    (layout.runs / "stray-file").write_text("x")
    (layout.runs / "no-plan").mkdir()
    shown = page_words(client.get("/runs").text)
    assert "run.json" in shown
    assert client.get("/runs/no-plan").status_code == 200


def test_runs_of_many_turns_come_in_pages(layout: Layout) -> None:
    """A hundred turns a page; all of them are on one of the pages, also as files."""
    run = make_run(layout, {number: {} for number in range(1000, 1250)})
    client = client_of(layout.root)
    seen = ""
    for path in (f"/runs/{run.id}", f"/runs/{run.id}/page/2", f"/runs/{run.id}/page/3"):
        seen += page_words(client.get(path).text)
    assert all(seen.count(f"Query {number}?") == 1 for number in range(1000, 1250))
    assert "Turns behind" not in page_words(client.get(f"/runs/{run.id}/page/3").text)


def test_texts_of_runs_never_become_markup(layout: Layout) -> None:
    """Items, queries, answers, findings and documents stay text, whatever they hold."""
    text = f"{SCRIPT} a\u202eb\x1b[31m\u2028"
    told = outcome(811, query=text, answer=text, status=text, item=text)
    bad: dict[str, Any] = {
        "result": "failed",
        "item": text,
        "findings": (text,),
        "different": {text: f"-{text}\n+{text}"},
        "outcome": told,
    }
    run = make_run(layout, {811: bad}, mode="batch")
    other = make_run(layout, {811: {**bad, "outcome": replace(told, answer="x")}}, mode="batch")
    client = client_of(layout.root)
    for path in ("/runs", f"/runs/{run.id}", f"/runs/compare/{run.id}/{other.id}"):
        reply = client.get(path)
        assert reply.status_code == 200
        assert "<script>alert" not in reply.text
        assert "<img src=x" not in reply.text
        assert not UNSAFE.search(reply.text)


def test_damage_of_any_kind_never_breaks_a_page(layout: Layout, tmp_path: Path) -> None:
    """Whatever is cut, swapped, linked or made a pipe among the files of a run: pages stay pages."""
    run = make_run(layout, {811: {}, 813: {"result": "differs", "different": {"a": "-b"}}}, planned=2)
    keep = tmp_path / "keep"
    shutil.copytree(run.directory, keep)
    client = client_of(layout.root)
    for seed in range(tried(20, 60)):
        shutil.rmtree(run.directory)
        shutil.copytree(keep, run.directory)
        done = mutate(run.directory, seed)
        for path in ("/runs", f"/runs/{run.id}", f"/runs/compare/saved/{run.id}"):
            assert client.get(path).status_code == 200, (path, seed, done)


def test_comparison_shows_what_flipped_and_what_changed(layout: Layout) -> None:
    """Answers and decisions of both sides stand beside each other; turns that are the same are named."""
    from panda.runs.ledger import Decision

    one = Decision(1, "pipeline/phase1_reflection", "decision", "PROCEED")
    before = make_run(layout, {n: {"outcome": outcome(n, decisions=(one,))} for n in (811, 812, 813)})
    flipped = outcome(813, decisions=(replace(one, value="CLARIFY"),), answer="Something else.")
    after = make_run(
        layout, {811: {"outcome": outcome(811, decisions=(one,))}, 813: {"outcome": flipped}}, planned=1
    )
    client = client_of(layout.root)
    page = client.get(f"/runs/compare?before={before.id}&after={after.id}")
    shown = page_words(page.text)
    assert "1 decision flipped, 1 answer changed" in shown
    for text in ("PROCEED", "CLARIFY", "Answer 813.", "Something else.", "is not finished"):
        assert text in shown
    assert "it does not hold the turn" in shown
    assert {"/turns/demo/811", "/turns/demo/813"} <= set(Html(page.text).links)


@pytest.mark.parametrize("name", ["..", "../store", "%2e%2e", "none", "/etc", "a%00b", "x" * 300])
def test_runs_outside_of_the_store_cannot_be_named(layout: Layout, tmp_path: Path, name: str) -> None:
    """A run is a directory below runs/, and nothing else, whatever an address says."""
    run = make_run(layout, {811: {}})
    shutil.copy(run.directory / "run.json", layout.root / "run.json")
    client = client_of(layout.root)
    assert client.get(f"/runs/{name}").status_code in (404, 200)
    assert "Rerun" not in client.get(f"/runs/{name}").text
    assert client.get("/runs/compare", params={"before": name, "after": run.id}).status_code == 404
    assert client.get("/runs/compare", params={"before": str(tmp_path), "after": run.id}).status_code == 404


def test_all_runs_are_written_as_files(layout: Layout, tmp_path: Path) -> None:
    """Each run, and its comparison with the saved turns and with the run before it, is reached by links."""
    first, second = make_run(layout, {811: {}}), make_run(layout, {811: {}})
    before = tree(layout.root)
    written = write_site(tmp_path / "site", shelf_of(layout.root))
    assert tree(layout.root) == before
    reached, todo = set[str](), ["index.html"]
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        page = Html((tmp_path / "site" / name).read_text())
        for link in page.links:
            target = (tmp_path / "site" / name).parent / link.partition("#")[0]
            if link.partition("#")[0].endswith(".html"):
                todo.append(str(target.resolve().relative_to((tmp_path / "site").resolve())))
    assert {one for one in written if one.endswith(".html")} == reached
    assert f"runs/compare/saved/{second.id}.html" in reached
    assert f"runs/compare/{first.id}/{second.id}.html" in reached


def test_a_store_that_was_moved_keeps_its_links(layout: Layout, tmp_path: Path) -> None:
    """A run leads to the turns of its store wherever that lies by now, and to none of another store."""
    run = make_run(layout, {811: {}})
    layout.root.rename(tmp_path / "moved")
    page = Html(client_of(tmp_path / "moved").get(f"/runs/{run.id}").text)
    assert "/turns/demo/811" in page.links
    plan = tmp_path / "moved" / "runs" / run.id / "run.json"
    plan.write_text(plan.read_text().replace('"root": null', '"root": "/elsewhere"'))
    page = Html(client_of(tmp_path / "moved").get(f"/runs/{run.id}").text)
    assert "/turns/demo/811" not in page.links


def test_every_served_page_is_reached_and_nothing_is_written(layout: Layout) -> None:
    """Links lead to runs, comparisons, memory, sessions and stats; the store stays as it was."""
    first, second = make_run(layout, {811: {}, 813: {"result": "differs"}}), make_run(layout, {811: {}})
    before = tree(layout.root)
    pages = crawl(layout.root)
    assert tree(layout.root) == before
    expected = {f"/runs/{first.id}", f"/runs/compare/{first.id}/{second.id}", "/stats/demo", "/interventions"}
    assert expected | {"/memory/demo", "/sessions/demo", "/sessions/demo/default"} <= set(pages)
    for path, page in pages.items():
        assert not [given for _, given in page.elements if "style" in given], path


def test_items_of_a_batch_that_were_run_again_count_once(layout: Layout) -> None:
    """Of an item that got another number only the line of that number counts."""
    plan = [PlannedTurn(813, "demo", item="a", session="s")]
    run = RunFolder.create(layout, still_clock, "batch", plan, fingerprint=RAN_ON, options=Options())
    where = str(layout.of("demo").turn(811).directory)
    run.add(TurnLine(811, "demo", where, "failed", ("bad",), outcome=outcome(811, item="a"), item="a"))
    run.add(TurnLine(813, "demo", where, "passed", (), outcome=outcome(813, item="a"), item="a", exit_code=0))
    (run.directory / "queries.jsonl").write_text(json.dumps({"id": "a", "query": "What?"}) + "\n")
    shown = page_words(client_of(layout.root).get(f"/runs/{run.id}").text)
    assert "1 passed" in shown
    assert "failed" not in shown
    assert "1 earlier line" in shown


def test_a_selected_run_is_written_with_its_turns_and_nothing_else(layout: Layout, tmp_path: Path) -> None:
    """`panda view --out DIR RUN` has the run, its turns and the comparison, no memory and no other run."""
    first, second = make_run(layout, {811: {}}), make_run(layout, {813: {}})
    command = [sys.executable, "-m", "panda", "view", second.id, "--user", "demo", "--root", str(layout.root)]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "site"), "--json"], check=True, capture_output=True, timeout=120
    )
    written = {name for name in json.loads(done.stdout)["data"]["files"] if name.endswith(".html")}
    expected = {f"runs/{second.id}.html", f"runs/compare/saved/{second.id}.html", "turns/demo/813.html"}
    assert expected | {"index.html", "runs.html", "turns/demo.html"} == written
    assert f"{first.id}.html" not in (tmp_path / "site" / "runs.html").read_text()


@pytest.mark.parametrize("word", ["last", "id"])
def test_the_pages_begin_with_a_run(layout: Layout, word: str) -> None:
    """`panda view RUN` gives the address of its page."""
    run = make_run(layout, {811: {}})
    command = [sys.executable, "-m", "panda", "view", run.id if word == "id" else word, "--no-open"]
    with subprocess.Popen(
        [*command, "--user", "demo", "--root", str(layout.root)], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip().endswith(f"/runs/{run.id}")
        finally:
            process.terminate()


@pytest.mark.parametrize("user", ["\x00", "../..", "/etc", "a\nb", "demo/../demo", "x" * 5_000, ""])
def test_lines_that_name_hostile_users_and_directories(layout: Layout, user: str) -> None:
    """Whatever a line says of whose turn it is and where it lies, pages stay pages and lead nowhere else."""
    hostile = {"user": user, "outcome": outcome(811, user=user), "result": "differs"}
    runs = []
    for answer in ("one", "two"):
        told = replace(outcome(811, user=user, sections={2: answer}), answer=answer)
        lines = {811: {**hostile, "directory": f"/{user}/turns", "outcome": told}}
        runs.append(make_run(layout, lines, planned=1))
    client = client_of(layout.root)
    for path in (f"/runs/{runs[0].id}", f"/runs/compare/{runs[0].id}/{runs[1].id}"):
        reply = client.get(path)
        assert reply.status_code == 200, path
        assert not [link for link in Html(reply.text).links if link.startswith("/turns/") and ".." in link]
    assert client.get(f"/runs/compare/saved/{runs[0].id}").status_code == 200
