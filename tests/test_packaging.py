"""What is published: the archives of source and wheel, and the program that pip installs from them."""

import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from tests.api import ROOT, Ended, Panda

_SEAL = str(ROOT / "tests" / "sealed")
"""The directory that keeps a process of the tests from other machines; see tests/sealing.py."""
QUERIES = (
    {"id": "price", "query": "How much does the Lenovo LOQ 15 cost?"},
    {"id": "brands", "query": "Which brands do I prefer?"},
)


class InstalledPanda(Panda):
    """The program that pip has installed into an environment, where the checkout is not on the path."""

    def __init__(self, home: Path, environment: Path) -> None:
        super().__init__(home, user="demo", PYTHONPATH=_SEAL, PYTHONNOUSERSITE="1")
        self.program = (str(environment / "bin" / "panda"),)


def run(command: Sequence[str], *, directory: Path) -> str:
    """Return what a program prints that must end with 0."""
    ended = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def build(source: Path, target: Path, *, kind: str) -> Path:
    """Build an archive of a directory of source, of the kind `wheel` or `sdist`."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(target)]
    run(command, directory=source)
    (archive,) = target.iterdir()
    return archive


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the source, built from the checkout."""
    return build(ROOT, tmp_path_factory.mktemp("sdist"), kind="sdist")


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the archive of the source alone."""
    unpacked = tmp_path_factory.mktemp("source")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return build(source, tmp_path_factory.mktemp("wheel"), kind="wheel")


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own with the wheel and the libraries of the tests; nothing is downloaded."""
    directory = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(directory, symlinks=True)
    python = directory / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--isolated", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--no-index", "--no-deps", str(wheel)], directory=directory)
    (packages,) = directory.glob("lib/python*/site-packages")
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "libraries.pth").write_text("".join(f"{path}\n" for path in libraries), encoding="utf-8")
    return directory


def names_in_wheel(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_says_what_it_is_and_whose_work_it_holds(wheel: Path) -> None:
    names = names_in_wheel(wheel)
    (folder,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
    with zipfile.ZipFile(wheel) as archive:
        metadata = Parser().parsestr(archive.read(f"{folder}/METADATA").decode())
        licence = archive.read(f"{folder}/licenses/LICENSE").decode()
        notice = archive.read(f"{folder}/licenses/NOTICE").decode()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Author"] == "The panda authors"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata["Keywords"]
    assert metadata.get_all("Project-URL")
    assert "END OF TERMS AND CONDITIONS" in licence
    for others_work in ("all-minilm-l6-v2-q8_0.gguf", "ordinary_words.txt"):
        assert others_work in notice
        assert any(name.endswith(f"/{others_work}") for name in names)
    assert {f"{folder}/licenses/encoder/LICENSE", f"{folder}/licenses/encoder/NOTICE"} <= names
    assert "panda/py.typed" in names


def test_a_wheel_of_the_source_archive_holds_every_file_of_the_package(wheel: Path) -> None:
    packed = {name.removeprefix("panda/_data/") for name in names_in_wheel(wheel)}
    files = {
        str(path.relative_to(ROOT))
        for folder in ("panda", "recipes", "prompts", "encoder", "panda-system-docs", "tests/evals")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sorted(files - packed) == []


def test_the_source_archive_holds_licence_docs_and_tests(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    pages = {"LICENSE", "NOTICE", "SECURITY.md", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    assert pages | {"docs/trust.md", "Makefile", "constraints.txt", "tests/test_packaging.py"} <= names


def test_an_installed_program_answers_runs_batches_and_writes_pages(
    environment: Path, tmp_path: Path
) -> None:
    panda = InstalledPanda(tmp_path / "project", environment)
    assert run_json(panda, "init", "--demo")["user"] == "demo"
    turn = run_json(panda, "turn", QUERIES[0]["query"])
    assert "$697.00" in turn["response"]
    panda.write_lines("queries.jsonl", *QUERIES)
    batch = panda.process("batch", "queries.jsonl")
    assert batch.code == 0, batch.err
    pages = run_json(panda, "view", "--out", "pages")
    page = panda.home / "pages" / "turns" / "demo" / f"{turn['turn']}.html"
    assert str(page.relative_to(panda.home / "pages")) in pages["files"]
    assert "$697.00" in page.read_text(encoding="utf-8")
    assert panda.process("validate").code == 0


def run_json(panda: Panda, *words: str) -> dict[str, Any]:
    """Return the `data` of a command that succeeds, in a process of its own."""
    ended = panda.process(*words, "--json")
    assert ended.code == 0, ended.out + ended.err
    data = ended.data
    assert isinstance(data, dict)
    return data


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="these are the tests of a source archive")
def test_the_version_names_the_commit_in_a_checkout_alone(environment: Path, tmp_path: Path) -> None:
    installed: Ended = InstalledPanda(tmp_path / "installed", environment).process("--version")
    checkout = Panda(tmp_path / "checkout")("--version")
    commit = run(["git", "rev-parse", "HEAD"], directory=ROOT)
    assert installed.out == f"panda {wheel_version(environment)}\n"
    assert checkout.out.startswith(f"panda {wheel_version(environment)} (commit {commit[:8]}")


def wheel_version(environment: Path) -> str:
    (folder,) = environment.glob("lib/python*/site-packages/panda_turns-*.dist-info")
    return folder.name.removeprefix("panda_turns-").removesuffix(".dist-info")
