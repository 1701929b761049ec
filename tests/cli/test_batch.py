"""`panda batch` as a process: its exit codes, and what it writes; with the embedded model or a server."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.api import LAPTOPS, ModelServer, Panda
from tests.script import PRICE_NODE, Script

PANDA = str(Path(sys.executable).with_name("panda"))
CACHED = {"XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
"""The cache of all tests, in which the embedded model has read its prompts."""
PASSING = {"id": "right", "query": "what is my budget?", "user": "demo", "expect": {"contains": "$500-800"}}
ASKED = {"query": "How much is the Lenovo LOQ 15?", "user": "ann", "expect": {"contains": "$697"}}
"""What the scripted model answers."""
FAILING = {**PASSING, "id": "<wrong>", "expect": {"not_contains": "$500-800", "cites": ["memory:nothing"]}}


@pytest.fixture
def directory(demo: Path, tmp_path: Path) -> Path:
    """A directory with the demo store in it."""
    shutil.copytree(demo, tmp_path / "panda-system-docs")
    return tmp_path


def panda(directory: Path, *words: str, lines: list[dict[str, Any]] | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command; *lines* are the queries on its standard input."""
    text = "".join(json.dumps(line) + "\n" for line in lines or ())
    environ = {**CACHED, "PATH": os.environ["PATH"], "HOME": str(directory)}
    done = subprocess.run(
        [PANDA, *words], input=text, capture_output=True, text=True, cwd=directory, env=environ, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Panda]:
    """A project with the laptop store, in which a server on loopback answers."""
    with closing(ModelServer()) as server:
        project = Panda(tmp_path, LAPTOPS, user="ann")
        project.write("models.yaml", server.models())
        yield project


def queries(*items: dict[str, Any]) -> str:
    """Lines of a batch."""
    return "".join(json.dumps(item) + "\n" for item in items)


def test_a_batch_with_a_failure_is_red(directory: Path) -> None:
    """It ends 3; the lines, JUnit and the page say what is wrong; the other item is done."""
    words = ("batch", "-", "--save", "--out", "-", "--junit", "j.xml", "--html", "p.html")
    code, out, err = panda(directory, *words, lines=[PASSING, FAILING])
    assert code == 3
    lines = {line["id"]: line for line in map(json.loads, out.splitlines())}
    assert {name: line["result"] for name, line in lines.items()} == {"right": "passed", "<wrong>": "failed"}
    assert "memory:budget" in lines["right"]["sources"]
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


def test_the_same_run_again(scripted: Panda) -> None:
    """--limit leaves items, --resume does them, and says what the others came to as well."""
    scripted.write("q.jsonl", queries(*({**ASKED, "id": str(n)} for n in range(3))))
    done = scripted.process("batch", "q.jsonl", "--save", "--limit", "1", "--json")
    assert (done.code, done.data["left"]) == (0, 2), done
    done = scripted.process("batch", "--resume", "last", "--out", "all.jsonl", "--json")
    assert (done.code, done.data["results"]) == (0, {"passed": 3})
    written = (scripted.home / "all.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in written] == ["0", "1", "2"]
    run = done.data["run"]
    assert scripted("replay", "4").code in (0, 3)
    done = scripted.process("batch", "--resume", "last", "--json")  # a replay in between is no batch
    assert (done.code, done.data["run"]) == (0, run)
    done = scripted("replay", "--resume", run)
    assert done.code == 2
    assert "is a batch" in done.err


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
        ([{**PASSING, "user": "../up"}], "stdin:1 (user)"),
        ([{**PASSING, "expect": {"exit_code": "0"}}], "stdin:1 (expect.exit_code)"),
        ([{**PASSING, "query": " "}], "stdin:1"),
    ],
)
def test_wrong_lines_begin_nothing(directory: Path, lines: list[dict[str, Any]], where: str) -> None:
    """Everything is checked first; the error names line and key."""
    code, _, err = panda(directory, "batch", "-", lines=lines)
    assert (code, f"where: {where}\n" in err) == (2, True), err
    assert not (directory / "panda-system-docs" / "runs").exists()


def test_what_looks_the_same_is_held(tmp_path: Path) -> None:
    """A phrase is found however its letters, blanks, quotes and hyphens are written, and nothing else is."""
    words = "cafe\u0301, rock\u2011paper, it\u2019s so\u00adft, o\ufb03ce, at\u00a0home, x\u00b2 and meta"
    item = {"text": f"The Lenovo LOQ 15 costs $697; {words}.", "node_ids": [PRICE_NODE]}
    same = ["CAFÉ", "cafe\u0301", "rock-paper", "it's soft", "office", "at home", "x\u00b2"]
    expected = {"contains": same, "not_contains": ["cafe,", "x2", "_meta"]}
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    with closing(ModelServer(Script(answer={"items": [item]}))) as server:
        panda.write("models.yaml", server.models())
        line = {"id": "1", "query": "How much is the Lenovo LOQ 15?", "expect": expected}
        done = panda("batch", "-", "--json", stdin=queries(line))
    assert done.data["items"][0]["findings"] == []


def crontab() -> list[str]:
    """The commands of the cron table in docs/scale.md."""
    text = Path("docs/scale.md").read_text(encoding="utf-8").partition("## Cron")[2].split("```")[1]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [line.split(None, 5)[5] for line in lines]


def test_the_cron_table(scripted: Panda) -> None:
    """
    As documented, with the PATH of cron: missing summaries are written, a batch goes on, what fails is told
    once, and nothing is said where nothing new is wrong.
    """
    store = scripted.store.rename(scripted.home / "panda-system-docs")
    summary = store / "users" / "ann" / "turns" / "turn_000001" / "index_summary.json"
    summary.unlink()
    scripted.environ |= {"PANDA_ROOT": str(store), "PATH": "/usr/bin:/bin"}
    failing = {**ASKED, "expect": {"contains": "$5"}}
    lines = queries(*({**(failing if n else ASKED), "id": str(n)} for n in range(3)))
    assert scripted.process("batch", "-", "--limit", "1", stdin=lines).code == 0
    places = {"/srv/notes": str(scripted.home), "/opt/panda/bin/panda": PANDA}
    rebuild, batch = (re.sub("|".join(places), lambda found: places[found[0]], line) for line in crontab())
    ended = []
    for line in (rebuild, batch, batch):
        given = [f"{name}={value}" for name, value in scripted.environ.items()]
        words = ["env", "-i", *given, "sh", "-c", line]
        ended.append(subprocess.run(words, capture_output=True, text=True, cwd=scripted.home, check=False))
    first, told, quiet = ended
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    assert (told.returncode, told.stdout.count("failed")) == (3, 2)
    assert told.stderr.startswith("error: 2 of 3 items failed\n")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    assert summary.is_file()
    scripted.write("recipes/pipeline/mine.yaml", "name: [broken\n")  # nothing is left that would be run
    again = scripted("batch", "--resume", "last")
    (run,) = (store / "runs").iterdir()
    fix = f"2 items failed earlier: panda batch --resume {run.name} --retry-failed runs them again\n"
    assert (again.code, again.err) == (0, fix)
    assert json.loads((run / "run.json").read_text())["results"] == {"passed": 1, "failed": 2}


@pytest.mark.parametrize("words", [("--json",), (), ("--out", "-")])
def test_a_failure_that_nobody_could_read_is_told_again(scripted: Panda, words: tuple[str, ...]) -> None:
    """A --resume ends with 3 once more where the reader of stdout had gone, and only then with 0."""
    scripted.write("q.jsonl", queries({**ASKED, "id": "1", "expect": {"contains": "$5"}}))
    with scripted.running("batch", "q.jsonl", *words) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 3
    codes = [scripted.process("batch", "--resume", "last", *words).code for _ in range(2)]
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
    directory: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    """A wrong address or file begins no run, so that last stays the one before."""
    done = panda(directory, "batch", "-", *words, lines=[PASSING])
    assert (done[0], message in done[2], "Traceback" in done[2]) == (code, True, False), done[2]
    assert not (directory / "panda-system-docs" / "runs").exists()
    assert not (directory / "panda-system-docs" / "users" / "demo" / "turns" / "turn_000813").exists()


def test_saved_turns_of_a_batch_and_of_an_import_are_compared(scripted: Panda) -> None:
    """A run over them is compared with the saved turns, whatever made these; an import has no decisions."""
    assert scripted.process("batch", "-", "--save", stdin=queries({**ASKED, "id": "right"})).code == 0
    made = str(scripted.json("list")["turns"][-1]["turn"])
    assert scripted("replay", made).code == 0
    done = scripted("diff", "saved", "last", "--json")
    assert (done.code, done.data["turns"]) == (0, 1), done
    line = {"user": "ann", "session": "old", "at": "2026-01-05T10:00:00Z"}
    scripted.write("old.jsonl", queries({**line, "query": "What is my budget?", "response": "$500-800."}))
    assert scripted("import", "old.jsonl").code == 0
    imported = str(int(made) + 1)
    done = scripted("replay", imported)
    assert (done.code, "give --mode rerun" in done.err or "no recorded run" in done.err) == (3, True)
    done = scripted("replay", imported, "--mode", "rerun", "--json")
    assert (done.code, done.data["results"]) == (3, {"differs": 1})
    done = scripted("diff", "saved", "last", "--json")
    assert (done.code, done.data["turns"], done.data["flips"], len(done.data["answers"])) == (3, 1, [], 1)


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
    environ = {**CACHED, "PATH": os.environ["PATH"], "HOME": str(directory)}
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
