"""What a turn wrote and then replaced: earlier sections and answers beside what came after them."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Literal, NamedTuple

from panda.addons.view.turn_reader import TurnReader
from panda.documents.context import SECTIONS, Section, render_section
from panda.documents.safe_text import count_noun
from panda.store.layout import CONTEXT_MD

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_MOST_ATTEMPTS = 20
_MOST_LINES = 2_000  # of a section; longer ones are not compared
_AROUND = 2  # lines that stay the same, shown before and after a change


class DiffLine(NamedTuple):
    """One line of a comparison."""

    kind: Literal["same", "old", "new", "left"]  # left: so many lines that are the same are left out
    text: str


class Replaced(NamedTuple):
    """One section that was written anew."""

    number: int
    title: str
    lines: Sequence[DiffLine]  # () if nothing changed, or it is too long
    is_long: bool  # whether it is too long to be compared


def read_attempts(reader: TurnReader, final: Mapping[int, Section]) -> list[SimpleNamespace]:
    """The replaced attempts of a turn, oldest first, each section compared with what replaced it."""
    names = list[str]()
    with suppress(OSError):
        names = [path.name for path in (reader.folder.paths.directory / "attempts").iterdir()]
    numbers = sorted(int(name) for name in names if _NUMBER.fullmatch(name))[:_MOST_ATTEMPTS]
    files = [f"attempts/{number}/{CONTEXT_MD}" for number in numbers]
    states = [reader.context(name)[1] for name in files]
    attempts = []
    for at, (number, name) in enumerate(zip(numbers, files, strict=True)):
        later = [*states[at + 1 :], final]
        sections = [
            _compare(n, old, next((state[n] for state in later if n in state), None))
            for n, old in states[at].items()
        ]
        attempts.append(SimpleNamespace(number=number, name=name, sections=sections))
    return attempts


def _compare(number: int, old: Section, new: Section | None) -> Replaced:
    before = render_section(old).split("\n")
    after = render_section(new).split("\n") if new else []
    is_long = max(len(before), len(after)) > _MOST_LINES
    lines = () if is_long else tuple(compare_lines(before, after))
    return Replaced(number, SECTIONS[number].title, lines, is_long)


def compare_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[DiffLine]:
    """
    Two texts line by line, with the lines around each change; nothing if they are the same.

    >>> [tuple(line) for line in compare_lines(["a", "b"], ["a", "c"])]
    [('same', 'a'), ('old', 'b'), ('new', 'c')]
    """
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    last = 0
    for group in matcher.get_grouped_opcodes(_AROUND):
        if group[0][1] > last:
            yield DiffLine("left", count_noun(group[0][1] - last, "unchanged line"))
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                yield from (DiffLine("same", line) for line in before[i1:i2])
            else:
                yield from (DiffLine("old", line) for line in before[i1:i2])
                yield from (DiffLine("new", line) for line in after[j1:j2])
            last = i2
