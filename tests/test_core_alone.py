"""The program without panda/addons/: the core does all of its own work, and lacks what add-ons bring."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api import COMMANDS, ROOT, Panda

ADDON_COMMANDS = {"view", "export", "import", "serve", "mcp"}
DATA = ("recipes", "prompts", "models.yaml", "encoder", "panda-system-docs")
QUESTION = "How much does the Lenovo LOQ 15 cost?"
CORE_TESTS = (
    "tests/test_pipeline.py",
    "tests/phases/test_coordinator.py",
    "tests/recipes/test_contracts.py",
    "tests/test_settings.py",
)
"""Tests that ask nothing of an add-on."""
PLACE = """
from pathlib import Path
import panda

def test_the_program_is_the_core():
    assert Path(panda.__file__).parents[1] == Path(__file__).parent
"""
HELP = """
import os, sys
from panda.cli.boundary import run
from panda.cli.main import build_program, list_commands
for entry in list_commands():
    code = run(build_program(), [*entry.words.split(), "--help"], dict(os.environ))
    print(entry.words, code, file=sys.stderr)
"""
"""Shows the help of every command, and says on stderr with which code each ended."""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the package less its add-ons, and with all that it reads."""
    directory = tmp_path_factory.mktemp("core")
    ignored = shutil.ignore_patterns("addons", "__pycache__")
    shutil.copytree(ROOT / "panda", directory / "panda", ignore=ignored)
    for name in DATA:
        (directory / name).symlink_to(ROOT / name)
    return directory


@pytest.fixture
def panda(core: Path, tmp_path: Path, demo: Path) -> Panda:
    """The core in processes of its own, on the demo store."""
    panda = Panda(tmp_path / "project", demo, user="demo")
    panda.environ["PYTHONPATH"] = path_with(core)
    return panda


def path_with(core: Path) -> str:
    """Return a PYTHONPATH by which the core takes the place of the checkout."""
    others = (path for path in os.environ["PYTHONPATH"].split(os.pathsep) if Path(path).resolve() != ROOT)
    return os.pathsep.join([str(core), *others])


def test_the_commands_of_addons_alone_are_missing(panda: Panda, core: Path) -> None:
    command = [sys.executable, "-c", HELP]
    ended = subprocess.run(command, env=panda.environ, cwd=core, capture_output=True, text=True, check=True)
    codes = dict(line.rsplit(" ", 1) for line in ended.stderr.splitlines())
    assert codes == dict.fromkeys((words for words in COMMANDS if words not in ADDON_COMMANDS), "0")
    unknown = panda.process("view")
    assert unknown.code == 2
    assert "no such command 'view'" in unknown.err


def test_it_answers_batches_replays_shows_and_validates(panda: Panda) -> None:
    turn = panda.process("turn", "--json", QUESTION)
    assert turn.code == 0, turn.err
    assert "$697.00" in turn.data["response"]
    number = str(turn.data["turn"])
    panda.write_lines("queries.jsonl", {"id": "price", "query": QUESTION})
    for words in (
        ("show", number),
        ("show", number, "--why"),
        ("replay", number),
        ("batch", "queries.jsonl"),
        ("index", "rebuild"),
        ("memory", "list"),
        ("validate",),
    ):
        ended = panda.process(*words)
        assert ended.code == 0, (words, ended.err)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("turn", "--mode", "code", "Run the tests."), "there is no mode 'code'"),
        (("batch", "queries.jsonl", "--engine", "dask"), "there is no engine 'dask'"),
        (("tool", "run", "file.list"), "there is no tool 'file.list'"),
    ],
)
def test_what_an_addon_brings_is_refused_as_unknown(
    panda: Panda, words: tuple[str, ...], message: str
) -> None:
    panda.write_lines("queries.jsonl", {"id": "price", "query": QUESTION})
    ended = panda.process(*words)
    assert ended.code == 2
    assert message in ended.err


def test_a_turn_of_code_mode_can_still_be_read(panda: Panda) -> None:
    """A store may hold turns that were made with an add-on that is gone."""
    metadata = panda.turn_file(812, "metadata.json")
    metadata.write_text(metadata.read_text(encoding="utf-8").replace('"chat"', '"code"'), encoding="utf-8")
    assert panda.process("show", "812").code == 0
    assert panda.process("list").code == 0


def test_tests_of_the_core_pass(core: Path) -> None:
    for name in ("tests", "docs", "bench", "pyproject.toml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (core / name).symlink_to(ROOT / name)
    (core / "test_place.py").write_text(PLACE, encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": path_with(core)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "test_place.py",
        *CORE_TESTS,
    ]
    ended = subprocess.run(command, env=environ, cwd=core, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-3000:]
