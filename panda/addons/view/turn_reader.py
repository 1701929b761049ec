"""The files of one turn, read as far as they can be: what is damaged is noted, the rest is given."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from panda.addons.view.shelf import RowsPage
from panda.documents.context import ContextScan, FrontMatter, Section
from panda.documents.safe_text import escape_path
from panda.errors import Problem
from panda.store.files import may_pass, read_text, store_errors, why_unread
from panda.store.layout import CALLS_JSONL, CONTEXT_MD
from panda.store.records import Call, FileRecord, ForgottenCall, ModelCall, parse
from panda.store.turns import TurnFolder

_R = TypeVar("_R", bound=FileRecord)
_CALL: Any = Call
MOST_CALLS = 200

MOST_BYTES = 4_194_304
"""Larger files are not read for a page."""


class Calls(NamedTuple):
    """The lines of calls.jsonl, as far as they were read."""

    sound: list[tuple[int, ModelCall]]  # number of each sound line, and its call
    bad: list[tuple[int, str]]  # number of each damaged line, and what is wrong with it
    left: int  # lines after those that were not looked at
    unread_bytes: int  # how much of the file was not read; 0 if all was


class TurnReader:
    """Reads files of a turn."""

    def __init__(self, folder: TurnFolder) -> None:
        self.folder = folder
        self.problems: dict[str, str] = {}
        """What is wrong with each damaged file that was asked for, by its name."""

    def text(self, name: str) -> str | None:
        """A text file; None if there is none, or it cannot be read."""
        path = self.folder.paths / name
        try:
            if not path.is_file():
                return None
            if path.stat().st_size > MOST_BYTES:
                self.problems[name] = f"too large to be shown: {path.stat().st_size:,} bytes"
                return None
            return read_text(path)
        except (Problem, OSError) as exc:
            self.problems[name] = why_unread(exc)
        return None

    def record(self, cls: type[_R], name: str | None = None) -> _R | None:
        """A JSON file as its record; None if there is none, or it is damaged."""
        name = name or cls.FILE
        text = self.text(name)
        try:
            return None if text is None else parse(cls, text, where=name)
        except Problem as exc:
            self.problems[name] = exc.told
            return None

    def context(self, name: str = CONTEXT_MD) -> tuple[FrontMatter | None, dict[int, Section]]:
        """Front matter and sections of a context.md, as far as they are sound."""
        text = self.text(name)
        if text is None:
            return None, {}
        scan = ContextScan(text, name)
        if scan.problems:
            self.problems[name] = min(scan.problems, key=lambda problem: problem.line or 0).told
        return scan.front, {section.number: section for section in scan.sections}

    def calls(self) -> Calls:
        """The first lines of calls.jsonl, of its first MOST_BYTES; none if there is no such file."""
        path = self.folder.paths / CALLS_JSONL
        sound: list[tuple[int, ModelCall]] = []
        bad: list[tuple[int, str]] = []
        try:
            if not path.is_file():
                return Calls([], [], 0, 0)
            with store_errors(path, "read"), path.open("rb") as file:
                data = file.read(MOST_BYTES)
                unread = path.stat().st_size - len(data)
        except (Problem, OSError) as exc:
            self.problems[CALLS_JSONL] = why_unread(exc)
            return Calls([], [], 0, 0)
        whole = data.rpartition(b"\n")[0] if unread > 0 else data.removesuffix(b"\n")
        lines = RowsPage(whole.split(b"\n") if whole else [], MOST_CALLS)
        for number, line in enumerate(lines, 1):
            try:
                call = parse(_CALL, line, where=CALLS_JSONL, line=number)
                if not isinstance(call, ForgottenCall):
                    sound.append((number, call))
            except Problem as exc:
                bad.append((number, exc.told))
        return Calls(sound, bad, lines.left, unread + len(data) - len(whole) if unread > 0 else 0)

    def files(self) -> Iterator[tuple[str, int]]:
        """Path and size of every file of the turn, in order of their paths; links are not followed."""
        top = self.folder.paths.directory
        if not may_pass(top):
            return
        for directory, folders, names in os.walk(top):
            folders.sort()
            for name in sorted(names):
                path = Path(directory, name)
                with suppress(OSError):
                    yield escape_path(path.relative_to(top).as_posix()), path.lstat().st_size
