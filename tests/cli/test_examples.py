"""The example of every help, run as it stands in one directory with a store from `panda init --demo`."""

import inspect
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from panda.cli.main import COMMANDS, build_program
from tests.api import ROOT
from tests.cli.programs import Ended, run_words
from tests.history.exports import chatgpt, said, write_export

PANDA = str(Path(sys.executable).with_name("panda"))
FIRST = (
    "init",
    "turn",
    "replay",
    "memory merge",
    "memory resolve",
)  # make what examples of other commands name
LAST = (
    "forget",
    "memory set",
    "memory retract",
    "recipe eject",
    "session close",
)  # take away what they name
SERVERS = ("serve", "view")  # run until Ctrl-C
NEEDS_PACKAGE = {"tune": "sklearn"}
TURN = {"user": "demo", "session": "tea", "at": "2026-01-04T14:30:00Z", "query": "Tea?", "response": "Assam."}
FACT = {
    "entity": "user:demo",
    "relation": "budget",
    "value": {"type": "string", "v": "$2000"},
    "source": "user:ann",
    "confidence": 0.95,
    "scope": "local",
    "kind": "preference",
    "valid_until": None,
    "asserted_at": "2026-11-22T15:00:00Z",
    "content_type": "preference",
}


def example_of(target: str) -> list[str]:
    """The words of a command's example, without `panda`."""
    module, function = target.split(":")
    told = inspect.getdoc(getattr(import_module(module), function)) or ""
    (line,) = [line for line in told.splitlines() if line.startswith("Example: panda ")]
    return shlex.split(line.removeprefix("Example: panda "))


EXAMPLES = {entry.words: example_of(entry.target) for entry in COMMANDS}


def place(words: str) -> int:
    """Where in the order of all commands one comes."""
    return (
        FIRST.index(words) - len(FIRST) if words in FIRST else LAST.index(words) + 1 if words in LAST else 0
    )


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Runs commands in a directory with the files that examples name."""
    monkeypatch.chdir(tmp_path)
    Path("turns.jsonl").write_text(json.dumps(TURN), encoding="utf-8")
    Path("queries.jsonl").write_text('{"id": "a", "query": "my favorite tea is Assam"}\n', encoding="utf-8")
    write_export(Path("export.zip"), chatgpt(said("user", "Tea?"), said("assistant", "Assam.")))
    Path("notes.md").write_text("# Shops\n\nThe cheapest laptop cost $697.\n" * 50, encoding="utf-8")
    ann = Path("other/users/ann")
    ann.mkdir(parents=True)
    fact = {"id": "fact-0123456789abcdef", "hlc": "1795359845001.000", "source_turn": None, **FACT}
    (ann / "memory.jsonl").write_text(json.dumps(fact) + "\n", encoding="utf-8")
    (ann / "conflicts.jsonl").touch()
    plain = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
    return lambda words, **environ: run_words(build_program(), words, capsys, {**plain, **environ})


def stand_in(words: Sequence[str], shell: Callable[..., Ended]) -> list[str]:
    """The words with ids and hashes that this store has, for those of the example."""
    names = {"3f2a9c": version, "20260105t143000z-demo-12": intervention}
    for name, find in names.items():
        if any(name in word for word in words):
            words = [word.replace(name, find(shell)) for word in words]
    return list(words)


def version(shell: Callable[..., Ended]) -> str:
    """The hash of a recipe's version that ran."""
    found = shell(["recipe", "history", "pipeline/phase1_reflection", "--json"]).value["data"]["versions"]
    return str(found[0]["version"])


def intervention(shell: Callable[..., Ended]) -> str:
    """The id of an intervention; without one a turn is made to halt."""
    words = ["intervention", "list", "--user", "demo", "--json"]
    if not shell(words).value["data"]["interventions"]:
        pages = list(Path("panda-system-docs/users/demo/turns").rglob("manifest.json"))
        kept = [page.read_bytes() for page in pages]
        for page in pages:
            page.write_text("{", encoding="utf-8")
        assert shell(["turn", "How much does the Lenovo LOQ 15 cost?", "--user", "demo"]).code == 20
        for page, data in zip(pages, kept, strict=True):
            page.write_bytes(data)
    return str(shell(words).value["data"]["interventions"][0]["id"])


@pytest.mark.asks_for("www.bestbuy.com")
def test_every_example_runs(shell: Callable[..., Ended]) -> None:
    """Each ends with 0 and says something; what one needs is a file, an id or a turn that is there."""
    for words in sorted(EXAMPLES, key=place):
        if words in (*SERVERS, "mcp") or find_spec(NEEDS_PACKAGE.get(words, "panda")) is None:
            continue
        ended = shell(stand_in(EXAMPLES[words], shell))
        assert ended.code == 0, (words, ended)
        assert ended.out or ended.err, words


@pytest.mark.parametrize("words", SERVERS)
def test_the_examples_of_servers_run(words: str, demo: Path, tmp_path: Path) -> None:
    """A server says its address and ends at Ctrl-C."""
    shutil.copytree(demo, tmp_path / "panda-system-docs")
    environ = {**os.environ, "BROWSER": "true"}
    example = [word.replace("813", "811") for word in EXAMPLES[words]]
    with subprocess.Popen(
        [PANDA, *example], stdout=subprocess.PIPE, cwd=tmp_path, env=environ, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) in (0, 130)


def test_the_readme_shows_what_comes_out(shell: Callable[..., Ended]) -> None:
    """The first block is the output of that turn, and each command of the second ends with 0, but servers."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    shown, commands = blocks[0].removeprefix("$ make turn\n"), blocks[1].splitlines()
    for line in commands[1:]:
        piped, _, command = line.removeprefix("$ ").rpartition(" | ")
        words = shlex.split(command.removeprefix("panda "), comments=True)
        if piped:
            words += ["--with", str(ROOT / piped.removeprefix("cat "))]
        if words[0] not in SERVERS:
            ended = shell(words)
            assert ended.code == 0, (line, ended)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (query,) = re.findall(r"^Q \?= (.*)$", makefile, re.MULTILINE)
    here = {"PANDA_ROOT": "fresh"}
    assert shell(["init", "--demo"], **here).code == 0
    (words,) = re.findall(r"^\t@\S+/panda turn --root \S+ (.*) -- \"\$\$Q\"$", makefile, re.MULTILINE)
    ended = shell(["turn", *words.split(), "--", query], **here)
    root = str(Path("fresh").absolute())
    assert (ended.err + ended.out).replace(root, "/home/you/panda/demo/panda-system-docs") == shown


def test_the_example_of_mcp_runs(demo: Path, tmp_path: Path) -> None:
    """A server for a client ends with its client."""
    shutil.copytree(demo, tmp_path / "panda-system-docs")
    done = subprocess.run(
        [PANDA, *EXAMPLES["mcp"]], stdin=subprocess.DEVNULL, capture_output=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")
