"""Files that a command is told to write: in folders that are there, and nowhere else."""

import os
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.api import Panda, run_here

REPORT = "<!-- a report of panda: the next one takes its place --><testsuite tests='1' failures='0'/>"


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("diff saved last --junit", "--junit"),
        ("diff saved last --html", "--html"),
        ("compress {demo}/users/demo/facts.md --budget 9 --out", "--out"),
        ("compress {demo}/users/demo/facts.md --budget 9 -o", "--out"),
        ("eval --write", "--write"),
    ],
)
def test_no_folder_is_made_unasked(line: str, option: str, demo: Path, tmp_path: Path) -> None:
    """A file in a folder that is not there, or a folder itself, is refused before any work is done."""
    common = ["--root", str(demo), "--user", "demo"]
    for name, message in (("no/such/file", "there is no directory"), ("", "is a directory")):
        words = [*line.format(demo=demo).split(), str(tmp_path / name), *common]
        ended = run_here(words)
        assert (ended.code, message in ended.err) == (2, True)
        assert f"where: {option}\n" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_made_alone(demo: Path, tmp_path: Path) -> None:
    """A directory that is to be made gets no missing folders above it."""
    words = ["view", "--out", str(tmp_path / "no" / "pages"), "--root", str(demo), "--user", "demo"]
    ended = run_here(words)
    assert (ended.code, f"there is no directory {tmp_path / 'no'}" in ended.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_written_into(demo: Path, tmp_path: Path) -> None:
    """A pipe that is named as the file gets the content and is still one."""
    shutil.copytree(demo, tmp_path / "store")
    os.mkfifo(pipe := tmp_path / "pipe")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    facts = tmp_path / "store" / "users" / "demo" / "facts.md"
    words = ["compress", str(facts), "--budget", "9000", "-o", str(pipe), "--root", str(tmp_path / "store")]
    assert run_here(words).code == 0
    assert os.read(reader, 1 << 16) == facts.read_bytes()
    os.close(reader)
    assert pipe.is_fifo()


def test_a_report_from_before_goes_first(tmp_path: Path) -> None:
    """A command that ends before it writes its report leaves none that a CI server would take for it."""
    report = tmp_path / "junit.xml"
    report.write_text(REPORT)
    words = ["diff", "saved", "last", "--root", str(tmp_path / "none"), "--junit", str(report)]
    assert run_here(words).code == 2
    assert not report.exists()


OWN_TEXTS = (
    "<!DOCTYPE html>\n<html><body>my garden</body></html>\n",
    '<?xml version="1.0"?>\n<project><modelVersion>4.0.0</modelVersion></project>\n',
    "<testsuites><testsuite name='mine'/></testsuites>\n",
)


@pytest.mark.parametrize("text", OWN_TEXTS)
@pytest.mark.parametrize(
    "line", ["diff saved last --html", "diff saved last --junit", "batch q.jsonl --html"]
)
def test_only_a_report_of_ours_is_replaced(line: str, text: str, tmp_path: Path) -> None:
    """A page or XML file of the user's own is neither deleted nor overwritten; the error names it."""
    own = tmp_path / "index.html"
    own.write_text(text)
    ended = run_here([*line.split(), str(own), "--root", str(tmp_path / "none")])
    assert (ended.code, own.read_text()) == (2, text)
    assert f"{own} is there already and no report of panda" in ended.err
    assert f"where: {line.split()[-1]}\nfix: name another file" in ended.err


def test_a_report_replaces_the_one_before(recorded: Path, tmp_path: Path) -> None:
    """Page and XML carry a mark by which the next run knows them; a file that a user wrote has none."""
    panda = Panda(tmp_path, recorded, user="demo")
    assert panda("replay", "813").code == 0
    words = ("diff", "saved", "last", "--html", "page.html", "--junit", "junit.xml")
    for _ in range(2):
        assert panda(*words).code == 0
        assert (tmp_path / "page.html").read_text().lstrip().startswith("<!DOCTYPE html>")
        assert ElementTree.parse(tmp_path / "junit.xml").getroot().tag == "testsuite"


@pytest.mark.parametrize(
    "line", ["diff saved last --html {}", "compress notes.md --budget 9000 -o {}", "export --out {}"]
)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_to_elsewhere_is_not_written_through(
    line: str, is_there: bool, demo: Path, tmp_path: Path
) -> None:
    """A link in the place of the file, as a project may bring it, does not name what is written."""
    panda = Panda(tmp_path / "project", demo, user="demo")
    panda.write("notes.md", "A note.\n")
    target = tmp_path / "elsewhere"
    if is_there:
        target.write_text("mine")
    (panda.home / "out").symlink_to(target)
    ended = panda(*line.format("out").split())
    assert ended.code == 2
    assert f"is a link to {target}" in ended.err
    assert (target.read_text() == "mine") if is_there else not target.exists()
