"""Files that a command is told to write: in folders that are there, and nowhere else."""

import os
import shutil
from pathlib import Path

import pytest

from panda.cli.main import build_program
from tests.cli.programs import run_words


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
def test_no_folder_is_made_unasked(
    line: str, option: str, demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file in a folder that is not there, or a folder itself, is refused before any work is done."""
    common = ["--root", str(demo), "--user", "demo"]
    for name, message in (("no/such/file", "there is no directory"), ("", "is a directory")):
        words = [*line.format(demo=demo).split(), str(tmp_path / name), *common]
        ended = run_words(build_program(), words, capsys)
        assert (ended.code, message in ended.err) == (2, True)
        assert f"where: {option}\n" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_made_alone(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory that is to be made gets no missing folders above it."""
    words = ["view", "--out", str(tmp_path / "no" / "pages"), "--root", str(demo), "--user", "demo"]
    ended = run_words(build_program(), words, capsys)
    assert (ended.code, f"there is no directory {tmp_path / 'no'}" in ended.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_written_into(demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe that is named as the file gets the content and is still one."""
    shutil.copytree(demo, tmp_path / "store")
    os.mkfifo(pipe := tmp_path / "pipe")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    facts = tmp_path / "store" / "users" / "demo" / "facts.md"
    words = ["compress", str(facts), "--budget", "9000", "-o", str(pipe), "--root", str(tmp_path / "store")]
    assert run_words(build_program(), words, capsys).code == 0
    assert os.read(reader, 1 << 16) == facts.read_bytes()
    os.close(reader)
    assert pipe.is_fifo()


def test_a_report_from_before_goes_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command that ends before it writes its report leaves none that a CI server would take for it."""
    report = tmp_path / "junit.xml"
    report.write_text("<testsuite tests='1' failures='0'/>")
    words = ["diff", "saved", "last", "--root", str(tmp_path / "none"), "--junit", str(report)]
    assert run_words(build_program(), words, capsys).code == 2
    assert not report.exists()
