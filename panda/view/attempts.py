"""What a turn wrote and then replaced: earlier sections and answers beside what came after them."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from panda.documents.context import SECTIONS, Section, render_section
from panda.store.layout import CONTEXT_MD
from panda.view.turn_reader import TurnReader

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_MOST_ATTEMPTS = 20
_MOST_LINES = 2_000  # of a section; longer ones are not compared
_AROUND = 2  # lines that stay the same, shown before and after a change


@dataclass(frozen=True)
class DiffLine:
    """One line of a comparison."""

    kind: Literal["same", "old", "new", "left"]  # left: so many lines that are the same are left out
    text: str


@dataclass(frozen=True)
class Replaced:
    """One section that was written anew."""

    number: int
    title: str
    lines: tuple[DiffLine, ...]  # () if nothing changed, or it is too long
    is_long: bool  # whether it is too long to be compared


@dataclass(frozen=True)
class Attempt:
    """One attempt that was replaced."""

    number: int
    name: str  # its file, below the turn's directory
    sections: tuple[Replaced, ...]  # what was written anew after it


def read_attempts(reader: TurnReader, final: Mapping[int, Section]) -> tuple[Attempt, ...]:
    """The attempts of a turn, oldest first, each compared with what replaced it."""
    numbers = sorted(_numbers(reader.folder.paths.directory / "attempts"))[:_MOST_ATTEMPTS]
    names = [f"attempts/{number}/{CONTEXT_MD}" for number in numbers]
    states = [reader.context(name)[1] for name in names]
    found = []
    for at, (number, name) in enumerate(zip(numbers, names, strict=True)):
        later = [*states[at + 1 :], final]
        compared = (
            _compare(n, old, next((one[n] for one in later if n in one), None))
            for n, old in states[at].items()
        )
        found.append(Attempt(number, name, tuple(compared)))
    return tuple(found)


def _numbers(directory: Path) -> Iterator[int]:
    try:
        yield from (int(path.name) for path in directory.iterdir() if _NUMBER.fullmatch(path.name))
    except OSError:
        return


def _compare(number: int, old: Section, new: Section | None) -> Replaced:
    before = render_section(old).split("\n")
    after = render_section(new).split("\n") if new else []
    title = SECTIONS[number].title
    if max(len(before), len(after)) > _MOST_LINES:
        return Replaced(number, title, (), True)
    return Replaced(number, title, tuple(compare_lines(before, after)), False)


def compare_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[DiffLine]:
    """
    Two texts line by line, with the lines around each change; nothing if they are the same.

    >>> [(one.kind, one.text) for one in compare_lines(["a", "b"], ["a", "c"])]
    [('same', 'a'), ('old', 'b'), ('new', 'c')]
    """
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    last = 0
    for group in matcher.get_grouped_opcodes(_AROUND):
        if group[0][1] > last:
            yield DiffLine("left", f"{group[0][1] - last} lines that are the same")
        for kind, i1, i2, j1, j2 in group:
            if kind == "equal":
                yield from (DiffLine("same", line) for line in before[i1:i2])
            else:
                yield from (DiffLine("old", line) for line in before[i1:i2])
                yield from (DiffLine("new", line) for line in after[j1:j2])
            last = i2
