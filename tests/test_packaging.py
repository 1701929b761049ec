"""What is published: the archives of source and wheel, and the program that pip installs from them."""

import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from tests.api import ROOT, Panda
from tests.installing import InstalledPanda, run

QUERIES = (
    {"id": "price", "query": "How much does the Lenovo LOQ 15 cost?"},
    {"id": "brands", "query": "Which brands do I prefer?"},
)


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
    panda = InstalledPanda(tmp_path / "project", environment, user="demo")
    assert panda.data("init", "--demo")["user"] == "demo"
    turn = panda.data("turn", QUERIES[0]["query"])
    assert "$697.00" in turn["response"]
    panda.write_lines("queries.jsonl", *QUERIES)
    batch = panda.process("batch", "queries.jsonl")
    assert batch.code == 0, batch.err
    pages = panda.data("view", "--out", "pages")
    page = panda.home / "pages" / "turns" / "demo" / f"{turn['turn']}.html"
    assert str(page.relative_to(panda.home / "pages")) in pages["files"]
    assert "$697.00" in page.read_text(encoding="utf-8")
    assert panda.process("validate").code == 0


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="these are the tests of a source archive")
def test_the_version_names_the_commit_in_a_checkout_alone(environment: Path, tmp_path: Path) -> None:
    installed = InstalledPanda(tmp_path / "installed", environment, user="").process("--version")
    checkout = Panda(tmp_path / "checkout")("--version")
    commit = run(["git", "rev-parse", "HEAD"], directory=ROOT)
    assert installed.out == f"panda {wheel_version(environment)}\n"
    assert checkout.out.startswith(f"panda {wheel_version(environment)} (commit {commit[:8]}")


def wheel_version(environment: Path) -> str:
    (folder,) = environment.glob("lib/python*/site-packages/panda_turns-*.dist-info")
    return folder.name.removeprefix("panda_turns-").removesuffix(".dist-info")
