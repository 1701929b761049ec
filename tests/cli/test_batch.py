"""`panda batch` as a process, with the embedded model: its exit codes, and what it writes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

PANDA = str(Path(sys.executable).with_name("panda"))
PASSING = {"id": "right", "query": "what is my budget?", "user": "demo", "expect": {"contains": "$500-800"}}
FAILING = {**PASSING, "id": "<wrong>", "expect": {"not_contains": "$500-800", "cites": ["memory:nothing"]}}


@pytest.fixture
def directory(demo: Path, tmp_path: Path) -> Path:
    """A directory with the demo store in it."""
    shutil.copytree(demo, tmp_path / "panda-system-docs")
    return tmp_path


def panda(directory: Path, *words: str, lines: list[dict[str, Any]] | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command; *lines* are the queries on its standard input."""
    text = "".join(json.dumps(line) + "\n" for line in lines or ())
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory)}
    done = subprocess.run(
        [PANDA, *words], input=text, capture_output=True, text=True, cwd=directory, env=environ, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_a_batch_with_a_failure_is_red(directory: Path) -> None:
    """It ends 3; the lines, JUnit and the page say what is wrong; the other item is done."""
    words = ("batch", "-", "--out", "-", "--junit", "j.xml", "--html", "p.html")
    code, out, err = panda(directory, *words, lines=[PASSING, FAILING])
    assert code == 3
    lines = {line["id"]: line for line in map(json.loads, out.splitlines())}
    assert {name: line["result"] for name, line in lines.items()} == {"right": "passed", "<wrong>": "failed"}
    assert lines["right"]["sources"] == ["memory:budget"]
    assert len(lines["<wrong>"]["findings"]) == 2
    suite = ElementTree.parse(directory / "j.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    page = (directory / "p.html").read_text()
    assert "&lt;wrong&gt;" in page
    assert "<wrong>" not in page
    assert "--retry-failed" in err
    code, out, _ = panda(directory, "list", "--user", "demo", "--json")
    assert code == 0
    assert [turn["turn"] for turn in json.loads(out)["data"]["turns"]][-2:] == [813, 814]


def test_the_same_run_again(directory: Path) -> None:
    """--limit leaves items, --resume does them, and says what the others came to as well."""
    (directory / "q.jsonl").write_text(
        "".join(json.dumps({**PASSING, "id": str(n)}) + "\n" for n in range(3))
    )
    code, out, _ = panda(directory, "batch", "q.jsonl", "--limit", "1", "--json")
    assert (code, json.loads(out)["data"]["left"]) == (0, 2)
    code, out, _ = panda(directory, "batch", "--resume", "last", "--out", "all.jsonl", "--json")
    assert (code, json.loads(out)["data"]["results"]) == (0, {"passed": 3})
    written = (directory / "all.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in written] == ["0", "1", "2"]
    run = json.loads(out)["data"]["run"]
    assert panda(directory, "replay", "812", "--user", "demo", "--mode", "verify")[0] in (0, 3)
    code, out, _ = panda(directory, "batch", "--resume", "last", "--json")  # a replay in between is no batch
    assert (code, json.loads(out)["data"]["run"]) == (0, run)
    code, _, err = panda(directory, "replay", "--resume", run)
    assert code == 2
    assert "is a batch" in err


def test_no_server(directory: Path) -> None:
    """All items fail for want of a server: 75."""
    server = "{backend: openai, location: 'http://127.0.0.1:9/v1', model: m, n_ctx: 8192, writes: true}"
    layers = ", ".join(f"{layer}: gone" for layer in ("REFLEX", "NERVES", "MIND", "VOICE"))
    (directory / "models.yaml").write_text(f"models:\n  gone: {server}\nlayers: {{{layers}}}\n")
    (directory / "panda.toml").write_text('models_file = "models.yaml"\n')
    junit = directory / "j.xml"
    code, _, err = panda(directory, "batch", "-", "--trust", "--junit", str(junit), lines=[PASSING, FAILING])
    assert code == 75, err
    assert ElementTree.parse(junit).getroot().get("errors") == "2"


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ([], "stdin"),
        ([{"id": "a"}], "stdin:1 (query)"),
        ([PASSING, {**PASSING, "expects": 1}], "stdin:2 (expects)"),
        ([PASSING, PASSING], "stdin:2"),
        ([{**PASSING, "user": "../up"}], "stdin:1"),
        ([{**PASSING, "expect": {"exit_code": "0"}}], "stdin:1 (expect.exit_code)"),
        ([{**PASSING, "query": " "}], "stdin:1"),
    ],
)
def test_wrong_lines_begin_nothing(directory: Path, lines: list[dict[str, Any]], where: str) -> None:
    """Everything is checked first; the error names line and key."""
    code, _, err = panda(directory, "batch", "-", lines=lines)
    assert (code, f"where: {where}\n" in err) == (2, True), err
    assert not (directory / "panda-system-docs" / "runs").exists()


def crontab() -> list[str]:
    """The commands of the cron table in docs/scale.md."""
    text = Path("docs/scale.md").read_text(encoding="utf-8").partition("## Cron")[2].split("```")[1]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [line.split(None, 5)[5] for line in lines]


def test_the_cron_table(directory: Path) -> None:
    """As documented: missing summaries are written, a batch goes on, nothing is said if all is well."""
    turn = directory / "panda-system-docs" / "users" / "demo" / "turns" / "turn_000812"
    (turn / "index_summary.json").unlink()
    lines = [{**PASSING, "id": str(n)} for n in range(3)]
    assert panda(directory, "batch", "-", "--limit", "1", lines=lines)[0] == 0
    environ = {"PATH": f"{Path(PANDA).parent}:{os.environ['PATH']}", "HOME": str(directory)}
    rebuild, batch = (line.replace("/srv/notes", str(directory)) for line in crontab())
    for line in (rebuild, batch, batch):
        words = ["sh", "-c", line]
        done = subprocess.run(words, capture_output=True, text=True, env=environ, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), line
    assert (turn / "index_summary.json").is_file()
    assert "passed" in panda(directory, "batch", "--resume", "last")[1]
    (run,) = (directory / "panda-system-docs" / "runs").iterdir()
    assert json.loads((run / "run.json").read_text())["results"] == {"passed": 3}


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
    directory: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    """A wrong address or file begins no run, so that last stays the one before."""
    done = panda(directory, "batch", "-", *words, lines=[PASSING])
    assert (done[0], message in done[2]) == (code, True), done[2]
    assert not (directory / "panda-system-docs" / "runs").exists()
    assert not (directory / "panda-system-docs" / "users" / "demo" / "turns" / "turn_000813").exists()


def test_saved_turns_of_a_batch_and_of_an_import_are_compared(directory: Path) -> None:
    """A run over them is compared with the saved turns, whatever made these; an import has no decisions."""
    assert panda(directory, "batch", "-", lines=[PASSING])[0] == 0
    assert panda(directory, "replay", "813", "--user", "demo")[0] == 0
    code, out, err = panda(directory, "diff", "saved", "last", "--user", "demo", "--json")
    assert (code, json.loads(out)["data"]["turns"]) == (0, 1), err
    line = {"user": "demo", "session": "old", "at": "2026-01-05T10:00:00Z"}
    asked = {**line, "query": "What is my budget?", "response": "You said $500-800."}
    (directory / "old.jsonl").write_text(json.dumps(asked) + "\n")
    assert panda(directory, "import", "old.jsonl")[0] == 0
    code, _, err = panda(directory, "replay", "814", "--user", "demo")
    assert (code, "give --mode rerun" in err or "no recorded run" in err) == (3, True)
    code, out, _ = panda(directory, "replay", "814", "--user", "demo", "--mode", "rerun", "--json")
    assert (code, json.loads(out)["data"]["results"]) == (3, {"differs": 1})
    code, out, err = panda(directory, "diff", "saved", "last", "--user", "demo", "--json")
    found = json.loads(out)["data"]
    assert (code, found["turns"], found["flips"], len(found["answers"])) == (3, 1, [], 1), err


AS_ON_MACOS = """\
import os

for name in ("sched_getaffinity", "sched_setaffinity"):
    delattr(os, name)

if __name__ == "__main__":
    from panda.cli.main import main

    main()
"""


def test_a_system_without_lists_of_cores(directory: Path) -> None:
    """Where the system cannot say which cores a process may use, workers and models use all of them."""
    (directory / "started.py").write_text(AS_ON_MACOS, encoding="utf-8")
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory)}
    environ["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, "started.py", "batch", "-", "--jobs", "2", "--json"],
        input=json.dumps(PASSING) + "\n",
        capture_output=True,
        text=True,
        cwd=directory,
        env=environ,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["data"]["results"] == {"passed": 1}
