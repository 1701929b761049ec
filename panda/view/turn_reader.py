"""The files of one turn, read as far as they can be: what is damaged is noted, the rest is given."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from panda.documents.context import ContextScan, FrontMatter, Section
from panda.documents.records import decode
from panda.documents.text import escape_path
from panda.errors import Location, Problem
from panda.store.files import may_pass, parse_json, read_text, store_errors, why_unread
from panda.store.layout import CONTEXT_MD, METADATA_JSON, SNAPSHOT_JSON
from panda.store.records import FileRecord, Metadata, Snapshot, check_json, parse
from panda.store.turns import TurnFolder

_T = TypeVar("_T")

MOST_BYTES = 4_194_304
"""Larger files are not read for a page."""


@dataclass(frozen=True)
class Lines:
    """The lines of a .jsonl file, as far as they were read."""

    values: tuple[tuple[int, dict[str, Any]], ...]  # number of each sound line, and its value
    bad: tuple[tuple[int, str], ...]  # number of each damaged line, and what is wrong with it
    unread_lines: int  # how many lines after those were not looked at
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

    def json(self, name: str) -> dict[str, Any] | None:
        """A JSON file that fits its schema; None if there is none, or it is damaged."""
        text = self.text(name)
        if text is None:
            return None
        value = _checked(name, text)
        if isinstance(value, dict):
            return value
        self.problems[name] = value
        return None

    def record(self, cls: type[_T], name: str) -> _T | None:
        """A JSON file as its record; None as json gives it."""
        try:
            if issubclass(cls, FileRecord):
                text = self.text(name)
                return None if text is None else parse(cls, text, where=name)
            value = self.json(name)
            return None if value is None else decode(cls, value, where=name)
        except Problem as exc:
            self.problems[name] = exc.told
            return None

    def metadata(self) -> Metadata | None:
        """metadata.json; None as json gives it."""
        return self.record(Metadata, METADATA_JSON)

    def snapshot(self) -> Snapshot | None:
        """What was there when the turn began; None as json gives it."""
        return self.record(Snapshot, SNAPSHOT_JSON)

    def context(self, name: str = CONTEXT_MD) -> tuple[FrontMatter | None, dict[int, Section]]:
        """Front matter and sections of a context.md, as far as they are sound."""
        text = self.text(name)
        if text is None:
            return None, {}
        scan = ContextScan(text, name)
        if scan.problems:
            self.problems[name] = min(scan.problems, key=lambda one: one.line or 0).told
        return scan.front, {section.number: section for section in scan.sections}

    def lines(self, name: str, most_lines: int) -> Lines:
        """The first lines of a .jsonl file, of its first MOST_BYTES; none if there is no such file."""
        path = self.folder.paths / name
        values: list[tuple[int, dict[str, Any]]] = []
        bad: list[tuple[int, str]] = []
        unread = 0
        try:
            if not path.is_file():
                return Lines((), (), 0, 0)
            with store_errors(path, "read"), path.open("rb") as file:
                data = file.read(MOST_BYTES)
                unread = path.stat().st_size - len(data)
        except (Problem, OSError) as exc:
            self.problems[name] = why_unread(exc)
            return Lines((), (), 0, 0)
        whole = data.rpartition(b"\n")[0] if unread > 0 else data.removesuffix(b"\n")
        lines = whole.split(b"\n") if whole else []
        for number, line in enumerate(lines[:most_lines], 1):
            value = _line(name, number, line)
            if isinstance(value, str):
                bad.append((number, value))
            else:
                values.append((number, value))
        unread_bytes = unread + len(data) - len(whole) if unread > 0 else 0
        return Lines(tuple(values), tuple(bad), max(0, len(lines) - most_lines), unread_bytes)

    def files(self) -> Iterator[tuple[str, int]]:
        """Path and size of every file of the turn, in order of their paths; links are not followed."""
        top = self.folder.paths.directory
        for directory, folders, names in os.walk(top) if may_pass(top) else ():
            folders.sort()
            for name in sorted(names):
                path = Path(directory, name)
                with suppress(OSError):
                    yield escape_path(path.relative_to(top).as_posix()), path.lstat().st_size


def _line(name: str, number: int, line: bytes) -> dict[str, Any] | str:
    try:
        return _checked(name, line.decode("utf-8"), number)
    except UnicodeDecodeError:
        return "not UTF-8"


def _checked(name: str, text: str, line: int | None = None) -> dict[str, Any] | str:
    """The object that a text holds, or why it is none that such a file may hold."""
    try:
        value = parse_json(text, where=name, line=line or 1)
    except Problem as exc:
        return exc.message
    try:
        check_json(name, value, Location(name, line=line))
    except Problem as exc:
        return exc.told
    return value if isinstance(value, dict) else "not a JSON object"
