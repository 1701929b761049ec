"""Marks count all lines that are left out, and none that stands."""

import re
from pathlib import Path

import pytest

from panda.models.cl100k import count_tokens
from tests.api import Panda

MARK = re.compile(r"\[… (\d+) (?:lines?|more like it[^\]]*)\]")
README = "\n\n".join(
    [
        "# Kettle\n\nKettle is a tool that boils the water of a whole village at once.",
        *(
            f"The part {name} looks after {goods},\nwhich come by ship\nand are kept in a shed.\n\n"
            f"```\nkettle {name} --start\n\nkettle {name} --stop\n```"
            for name, goods in (("ada", "pears"), ("bea", "apples"), ("cleo", "plums"), ("dora", "quinces"))
        ),
    ]
)
LOG = "\n".join(
    [
        *(f"12:00:{n:02d} INFO sent {n} bytes" for n in range(30)),
        "12:01:00 ERROR disk full",
        "12:01:01 INFO closing",
    ]
)


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """Return a project without a store, with a cache of its own."""
    return Panda(tmp_path / "project", XDG_CACHE_HOME=str(tmp_path / "cache"))


def test_a_mark_counts_every_line_but_blank_ones(panda: Panda) -> None:
    """A stretch of sentences and code is counted by all its lines, not by those of the code alone."""
    panda.write("README.md", README)
    words = ("compress", "README.md", "--keep", "boils", "--budget")
    text = panda.json(*words, "26")["text"]
    counts = [int(match[1]) for match in MARK.finditer(text)]
    standing_lines = [line for line in text.split("\n") if line.strip() and not MARK.search(line)]
    written = [line for line in README.split("\n") if line.strip()]
    assert counts != []
    assert sum(counts) == len(written) - len(standing_lines)


def test_what_stands_is_not_counted_as_left_out(panda: Panda) -> None:
    """Of lines of a log that say the same those that --keep names are not among the "more like it"."""
    panda.write("mail.log", LOG)
    words = ("compress", "mail.log", "--keep", "sent (0|7|8|9|21) bytes", "--budget")
    text = panda.json(*words, "125")["text"]
    mark = re.search(r"\[… (\d+) more like it", text)
    assert mark is not None
    assert int(mark[1]) + len(re.findall(r"INFO sent \d+ bytes", text)) == 30


@pytest.mark.parametrize("line_end", ["\r\n", "\r", "\r\r\n"])
def test_what_is_printed_is_within_the_budget(panda: Panda, line_end: str) -> None:
    """Control characters that stdout gets written out are counted as they are written."""
    lines = [f"Unpacking part {n} of the tools ({n} %){line_end}Setting up tool {n}" for n in range(60)]
    panda.write("apt.log", "\n".join(lines).encode())
    ended = panda.process("compress", "apt.log", "--budget", "200")
    assert ended.code == 0
    assert 100 < count_tokens(ended.out) <= 200
