"""`panda batch`: its exit codes, and what it writes; with a scripted model or the embedded ones."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.api import LAPTOPS, PRICE_QUESTION, ROOT, Panda, ScriptedPanda, models_at
from tests.script import PRICE_NODE, Script

PASSING = {"id": "right", "query": PRICE_QUESTION, "user": "ann", "expect": {"contains": "$697"}}
FAILING = {**PASSING, "id": "<wrong>", "expect": {"not_contains": "$697", "cites": ["memory:nothing"]}}


def lines_of(*items: dict[str, Any]) -> str:
    """Lines of a batch."""
    return "".join(json.dumps(item) + "\n" for item in items)


def test_a_batch_with_a_failure_is_red(ann: ScriptedPanda) -> None:
    """
    A batch with a failure ends 3; the lines, JUnit and the page say what is wrong; the other item is done.
    """
    words = ("batch", "-", "--save", "--jobs", "1", "--out", "-", "--junit", "j.xml", "--html", "p.html")
    ended = ann(*words, stdin=lines_of(PASSING, FAILING))
    assert ended.code == 3
    lines = {line["id"]: line for line in map(json.loads, ended.out.splitlines())}
    assert {name: line["result"] for name, line in lines.items()} == {"right": "passed", "<wrong>": "failed"}
    assert lines["right"]["sources"] == [PRICE_NODE]
    assert len(lines["<wrong>"]["findings"]) == 2
    suite = ElementTree.parse(ann.home / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    page = (ann.home / "p.html").read_text()
    assert "&lt;wrong&gt;" in page
    assert "<wrong>" not in page
    assert "--retry-failed" in ended.err
    assert [turn["turn"] for turn in ann.json("list")["turns"]] == [1, 2, 3, 4]


def test_the_same_run_again(ann: ScriptedPanda) -> None:
    """--limit leaves items, --resume does them, and says what the others came to as well."""
    ann.write_lines("q.jsonl", *({**PASSING, "id": str(number)} for number in range(3)))
    first = ann("batch", "q.jsonl", "--save", "--limit", "1", "--jobs", "1", "--json")
    assert (first.code, first.data["left"]) == (0, 2), first
    rest = ann("batch", "--resume", "last", "--out", "all.jsonl", "--json")
    assert (rest.code, rest.data["results"]) == (0, {"passed": 3})
    written = (ann.home / "all.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in written] == ["0", "1", "2"]
    run = rest.data["run"]
    assert ann("replay", "4").code in (0, 3)
    again = ann("batch", "--resume", "last", "--json")  # a replay in between is no batch
    assert (again.code, again.data["run"]) == (0, run)
    replay = ann("replay", "--resume", run)
    assert (replay.code, "is a batch" in replay.err) == (2, True)


def test_no_server(tmp_path: Path) -> None:
    """All items fail for want of a server: 75."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    panda.write("models.yaml", models_at("http://127.0.0.1:9/v1"))
    words = ("batch", "-", "--jobs", "1", "--junit", "j.xml")
    assert panda(*words, stdin=lines_of(PASSING, FAILING)).code == 75
    assert ElementTree.parse(panda.home / "j.xml").getroot().get("errors") == "2"


@pytest.mark.parametrize(
    ("items", "where"),
    [
        ([], "stdin"),
        ([{"id": "a"}], "stdin:1 (query)"),
        ([PASSING, {**PASSING, "expects": 1}], "stdin:2 (expects)"),
        ([PASSING, PASSING], "stdin:2"),
        ([{**PASSING, "user": "../up"}], "stdin:1 (user)"),
        ([{**PASSING, "expect": {"exit_code": "0"}}], "stdin:1 (expect.exit_code)"),
        ([{**PASSING, "query": " "}], "stdin:1"),
    ],
)
def test_wrong_lines_begin_nothing(items: list[dict[str, Any]], where: str, tmp_path: Path) -> None:
    """Everything is checked first; the error names line and key."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    ended = panda("batch", "-", stdin=lines_of(*items))
    assert (ended.code, f"where: {where}\n" in ended.err) == (2, True), ended.err
    assert not (panda.store / "runs").exists()


@pytest.mark.parametrize("words", [("--json",), (), ("--out", "-")])
def test_a_failure_that_nobody_could_read_is_told_again(ann: ScriptedPanda, words: tuple[str, ...]) -> None:
    """A --resume ends with 3 once more where the reader of stdout had gone, and only then with 0."""
    ann.write_lines("q.jsonl", {**PASSING, "expect": {"contains": "$5"}})
    with ann.running("batch", "q.jsonl", *words) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 3
    codes = [ann("batch", "--resume", "last", *words).code for _ in range(2)]
    assert codes == [3, 0]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--engine", "dask", "--address", "10.0.0.5"), 2, "is no address"),
        (("--engine", "dask", "--address", "tcp://127.0.0.1:9"), 75, "no scheduler answers"),
        (("--out", "nowhere/out.jsonl"), 2, "there is no directory"),
        (("--out", "."), 74, "Is a directory"),
    ],
)
def test_what_can_be_checked_is_checked_first(
    words: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    """A wrong address or file begins no run, so that last stays the one before."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    ended = panda("batch", "-", *words, stdin=lines_of(PASSING))
    assert (ended.code, message in ended.err, "Traceback" in ended.err) == (code, True, False), ended.err
    assert not (panda.store / "runs").exists()
    assert not panda.turn_file(3, "").exists()


def test_what_looks_the_same_is_held(ann: ScriptedPanda) -> None:
    """A phrase is found however its letters, blanks, quotes and hyphens are written, and nothing else is."""
    words = "cafe\u0301, rock\u2011paper, it\u2019s so\u00adft, o\ufb03ce, at\u00a0home, x\u00b2 and meta"
    item = {"text": f"The Lenovo LOQ 15 costs $697; {words}.", "node_ids": [PRICE_NODE]}
    same = ["CAFÉ", "cafe\u0301", "rock-paper", "it's soft", "office", "at home", "x\u00b2"]
    ann.server.script = Script(answer={"items": [item]})
    expected = {"contains": same, "not_contains": ["cafe,", "x2", "_meta"]}
    ended = ann("batch", "-", "--jobs", "1", "--json", stdin=lines_of({**PASSING, "expect": expected}))
    assert ended.data["items"][0]["findings"] == []


def crontab() -> list[str]:
    """The commands of the cron table in docs/scale.md."""
    text = (ROOT / "docs/scale.md").read_text(encoding="utf-8").partition("## Cron")[2].split("```")[1]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [line.split(None, 5)[5] for line in lines]


def test_the_cron_table(ann: ScriptedPanda) -> None:
    """
    As documented, with the PATH of cron: missing summaries are written, a batch goes on, what fails is told
    once, and nothing is said where nothing new is wrong.
    """
    ann.store = ann.store.rename(ann.home / "panda-system-docs")
    ann.turn_file(1, "index_summary.json").unlink()
    ann.environ |= {"PANDA_ROOT": str(ann.store), "PATH": "/usr/bin:/bin"}
    failing = {**PASSING, "expect": {"contains": "$5"}}
    lines = lines_of(*({**(failing if number else PASSING), "id": str(number)} for number in range(3)))
    assert ann.process("batch", "-", "--limit", "1", stdin=lines).code == 0
    places = {
        "/srv/notes": str(ann.home),
        "/opt/panda/bin/panda": str(Path(sys.executable).with_name("panda")),
    }
    rebuild, batch = (re.sub("|".join(places), lambda match: places[match[0]], line) for line in crontab())
    ends = []
    for line in (rebuild, batch, batch):
        words = ["env", "-i", *(f"{name}={value}" for name, value in ann.environ.items()), "sh", "-c", line]
        ends.append(subprocess.run(words, capture_output=True, text=True, cwd=ann.home, check=False))
    rebuilt, first, second = ends
    assert (rebuilt.returncode, rebuilt.stdout, rebuilt.stderr) == (0, "", "")
    assert (first.returncode, first.stdout.count("failed")) == (3, 2)
    assert first.stderr.startswith("error: 2 of 3 items failed\n")
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert ann.turn_file(1, "index_summary.json").is_file()
    ann.write("recipes/pipeline/mine.yaml", "name: [broken\n")  # nothing is left that would be run
    again = ann("batch", "--resume", "last")
    (run,) = (ann.store / "runs").iterdir()
    fix = f"2 items failed earlier: panda batch --resume {run.name} --retry-failed runs them again\n"
    assert (again.code, again.err) == (0, fix)
    assert json.loads((run / "run.json").read_text())["results"] == {"passed": 1, "failed": 2}


def test_saved_turns_of_a_batch_and_of_an_import_are_compared(ann: ScriptedPanda) -> None:
    """A run over them is compared with the saved turns, whatever made these; an import has no decisions."""
    assert ann("batch", "-", "--save", "--jobs", "1", stdin=lines_of(PASSING)).code == 0
    assert ann("replay", "3").code == 0
    same = ann("diff", "saved", "last", "--json")
    assert (same.code, same.data["turns"]) == (0, 1), same
    line = {"user": "ann", "session": "old", "at": "2026-01-05T10:00:00Z"}
    ann.write_lines("old.jsonl", {**line, "query": "What is my budget?", "response": "$500-800."})
    assert ann("import", "old.jsonl").code == 0
    refused = ann("replay", "4")
    assert (refused.code, "no recorded calls" in refused.err) == (3, True), refused.err
    rerun = ann("replay", "4", "--mode", "rerun", "--json")
    assert (rerun.code, rerun.data["results"]) == (3, {"differs": 1})
    data = ann("diff", "saved", "last", "--json").data
    assert (data["turns"], data["flips"], len(data["answers"])) == (1, [], 1)


AS_ON_MACOS = """\
import os
import runpy

for name in ("sched_getaffinity", "sched_setaffinity"):
    delattr(os, name)

if __name__ == "__main__":
    runpy.run_module("panda", run_name="__main__")
"""


def test_a_system_without_lists_of_cores(ann: ScriptedPanda) -> None:
    """On a system that cannot say which cores a process may use, workers and models use all of them."""
    ann.program = (sys.executable, str(ann.write("started.py", AS_ON_MACOS)))
    ended = ann.process("batch", "-", "--jobs", "2", "--json", stdin=lines_of(PASSING))
    assert (ended.code, ended.data["results"]) == (0, {"passed": 1}), ended.err
