"""The example of every help, run as it stands in one directory with a store from `panda init --demo`."""

import json
import re
import shlex
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.api import COMMANDS, ROOT, Panda, run_here
from tests.history.exports import chatgpt, said, write_export
from tests.loopback import OLLAMA, Server, reply

FIRST = ("init", "turn", "replay", "memory merge", "memory resolve")
"""Make what examples of other commands name."""
LAST = ("forget", "memory set", "memory retract", "recipe eject", "session close")
"""Take away what they name."""
SERVERS = ("serve", "view")
"""Run until Ctrl-C."""
TURN = {"user": "demo", "session": "tea", "at": "2026-01-04T14:30:00Z", "query": "Tea?", "response": "Assam."}
FACT = json.loads("""
{"id": "fact-0123456789abcdef", "hlc": "1795359845001.000", "source_turn": null, "entity": "user:demo",
 "relation": "budget", "value": {"type": "string", "v": "$2000"}, "source": "user:ann", "confidence": 0.95,
 "scope": "local", "kind": "preference", "valid_until": null, "asserted_at": "2026-11-22T15:00:00Z",
 "content_type": "preference"}
""")


def example_of(command: str) -> list[str]:
    """The words of a command's example, without `panda`."""
    text = run_here((*command.split(), "--help")).out
    example = text.partition("Example: panda ")[2].partition("\n\n")[0]
    return shlex.split(" ".join(example.split()))


def place(command: str) -> int:
    """Return the place of a command in the order of all commands."""
    if command in FIRST:
        return FIRST.index(command) - len(FIRST)
    return LAST.index(command) + 1 if command in LAST else 0


@pytest.fixture
def ollama() -> Iterator[Server]:
    """A server that behaves as Ollama."""
    server = Server()
    server.pages = dict(OLLAMA)
    server.answer = lambda body: reply('{"colour": "blue"}', usage={"completion_tokens": 50})
    yield server
    server.close()


@pytest.fixture
def panda(tmp_path: Path, ollama: Server) -> Panda:
    """A directory with the files that examples name, where the present is now."""
    panda = Panda(tmp_path / "project", PANDA_ROOT="", PANDA_NOW="", PANDA_TRUST="")
    panda.environ["HOME"] = str(tmp_path / "home")
    panda.environ["OLLAMA_HOST"] = f"127.0.0.1:{ollama.port}"
    panda.store = panda.home / "panda-system-docs"
    panda.write_lines("turns.jsonl", TURN)
    panda.write_lines("queries.jsonl", {"id": "a", "query": "my favorite tea is Assam"})
    write_export(panda.home / "export.zip", chatgpt(said("user", "Tea?"), said("assistant", "Assam.")))
    panda.write("notes.md", "# Shops\n\nThe cheapest laptop cost $697.\n" * 50)
    panda.write_lines("other/users/ann/memory.jsonl", FACT)
    panda.write("other/users/ann/conflicts.jsonl", "")
    return panda


def stand_in(words: Sequence[str], panda: Panda) -> list[str]:
    """The words with ids and hashes that this store has, for those of the example."""
    for name, find in (("3f2a9c", version), ("20260105t143000z-demo-12", intervention)):
        if any(name in word for word in words):
            words = [word.replace(name, find(panda)) for word in words]
    return list(words)


def version(panda: Panda) -> str:
    """The hash of a recipe's version that ran."""
    versions = panda.json("recipe", "history", "pipeline/phase3_planner_chat")["versions"]
    return str(versions[0]["version"])


def intervention(panda: Panda) -> str:
    """The id of an intervention; without one a turn is made to halt."""
    words = ("intervention", "list", "--user", "demo")
    if not panda.json(*words)["interventions"]:
        pages = list(panda.store.glob("users/demo/turns/**/manifest.json"))
        contents = [page.read_bytes() for page in pages]
        for page in pages:
            page.write_text("{", encoding="utf-8")
        assert panda("turn", "How much does the Lenovo LOQ 15 cost?", "--user", "demo").code == 20
        for page, content in zip(pages, contents, strict=True):
            page.write_bytes(content)
    return str(panda.json(*words)["interventions"][0]["id"])


@pytest.mark.asks_for("www.bestbuy.com")
def test_every_example_runs(panda: Panda) -> None:
    """Each ends with 0 and says something; what one needs is a file, an id or a turn that is there."""
    for command in sorted(COMMANDS, key=place):
        if command in (*SERVERS, "mcp"):
            continue
        ended = panda(*stand_in(example_of(command), panda))
        assert ended.code == 0, (command, ended)
        assert ended.out or ended.err, command


@pytest.mark.parametrize("command", SERVERS)
def test_the_examples_of_servers_run(command: str, demo: Path, panda: Panda) -> None:
    """A server says its address and ends at Ctrl-C."""
    shutil.copytree(demo, panda.store)
    example = [word.replace("813", "811") for word in example_of(command)]
    with panda.running(*example, BROWSER="true") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) in (0, 130)


def test_the_example_of_mcp_runs(demo: Path, panda: Panda) -> None:
    """A server for a client ends with its client."""
    shutil.copytree(demo, panda.store)
    ended = panda.process(*example_of("mcp"))
    assert (ended.code, ended.out) == (0, "")


def test_the_readme_shows_what_comes_out(panda: Panda) -> None:
    """The first block is the output of that turn, and each command of the second ends with 0, but servers."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    for line in blocks[1].splitlines()[1:]:
        piped, _, command = line.removeprefix("$ ").rpartition(" | ")
        words = shlex.split(command.removeprefix("panda "), comments=True)
        if piped:
            words += ["--with", str(ROOT / piped.removeprefix("cat "))]
        if words[0] not in SERVERS:
            ended = panda(*words)
            assert ended.code == 0, (line, ended)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (query,) = re.findall(r"^Q \?= (.*)$", makefile, re.MULTILINE)
    (options,) = re.findall(r"^\t@\S+/panda turn --root \S+ (.*) -- \"\$\$Q\"$", makefile, re.MULTILINE)
    assert panda("init", "--demo", PANDA_ROOT="fresh").code == 0
    ended = panda("turn", *options.split(), "--", query, PANDA_ROOT="fresh")
    expected = blocks[0].removeprefix("$ make turn\n")
    output = ended.err + ended.out
    assert output.replace(str(panda.home / "fresh"), "/home/you/panda/demo/panda-system-docs") == expected
