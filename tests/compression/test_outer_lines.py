"""A line stays with its head: the text of an option, the body of a case, the answer to a question."""

import re
from pathlib import Path

import pytest

from tests.api import Panda

MANUAL = """\
OPTIONS
       -e, --exclusive
           Obtain an exclusive lock, which is the default of this program.

       -o, --close
           Close the descriptor before the command runs, which helps where it starts a child.

       -w, --wait
           Fail if the lock cannot be had within so many seconds.
"""
LICENCE = """\
2.4. Later Licenses

No one makes an additional grant as a result of a choice to distribute under a later version.

2.7. Conditions

The sections named above are conditions of what is granted here, for everyone who takes part.
"""
LIST = """\
1. Rights. A work may be protected by rights of several kinds. They include, but are not limited to, the
following:

  i. the right to reproduce and to translate a work;
 ii. moral rights that the first author retained;
iii. publicity and privacy rights of a person;
"""
ANSWERS = """\
Why is it slow?

\tThe old kernel has no support for it, and nothing can be done without an upgrade.

Why is it large?

\tIt holds all symbols that a debugger needs, even those of the libraries.
"""
SCRIPT = """\
#!/bin/sh
case $# in
0)
  echo "missing file" >&2
  exit 1
  ;;
1)
  single_file=t
  ;;
*)
  single_file=f
  ;;
esac
if test "$single_file" = t; then
  echo "one file is looked at"
  verbose=no
else
  echo "several files are looked at"
  verbose=yes
fi
"""


@pytest.mark.parametrize(
    ("name", "text", "stays", "with_it"),
    [
        ("lock.1.txt", MANUAL, "Close the descriptor", ["OPTIONS", "-o, --close"]),
        ("licence.txt", LICENCE, "are conditions of", ["2.7. Conditions"]),
        ("rights.txt", LIST, "publicity and privacy", ["limited to, the\nfollowing:"]),
        ("answers.txt", ANSWERS, "all symbols that", ["Why is it large?"]),
        ("count.sh", SCRIPT, "single_file=f", ["case $# in", "*)"]),
        ("count.sh", SCRIPT, "verbose=yes", ['if test "$single_file" = t; then', "else"]),
    ],
)
def test_a_line_stays_with_the_line_above_that_it_belongs_to(
    tmp_path: Path, name: str, text: str, stays: str, with_it: list[str]
) -> None:
    """State that a text cut to the least that must stay has the head of what must stay, too."""
    panda = Panda(tmp_path / "project", XDG_CACHE_HOME=str(tmp_path / "cache"))
    panda.write(name, text)
    words = ("compress", name, "--keep", stays, "--budget")
    refused = panda(*words, "1")
    least = re.search(r"at least (\d+) tokens", refused.err)
    assert least is not None
    compressed = panda.json(*words, least[1])["text"]
    assert stays in compressed
    assert [line for line in with_it if line not in compressed] == []
