"""The files of one turn directory, and the value of its metadata.json."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from panda.documents.context import ContextDocument, parse_context, render_context
from panda.documents.times import Clock, parse_time, render_time
from panda.errors import FileFormatError, StoreError
from panda.storage.files import (
    append_json_line,
    parse_json,
    read_json_lines,
    read_text,
    write_atomic,
    write_json,
)
from panda.storage.layout import CALLS_JSONL, CONTEXT_MD, METADATA_JSON, SNAPSHOT_JSON, TurnPaths, step_name
from panda.storage.schemas import check_json
from panda.storage.sealing import seal_files
from panda.storage.snapshot import Snapshot

Status = Literal[
    "running", "approved", "clarify", "failed", "halted", "imported", "gathered", "interrupted", "forgotten"
]
METADATA_SCHEMA = "panda.metadata/1"
CONTEXT_SCHEMA = "panda.context/1"


@dataclass(frozen=True)
class Next:
    """Where a turn goes on."""

    phase: int
    """Phase to run next, 0 to 7."""
    round: int
    """How often phase 3 was begun anew by the validator."""
    attempt: int
    """How often phase 5 was begun anew by the validator."""


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """metadata.json: what the turn is and how far it came."""

    turn: int
    """Turn number, as in the directory name."""
    user_id: str
    """Whose turn it is."""
    session_id: str
    """Session of the turn."""
    mode: str
    """chat or code."""
    query: str
    """The raw query."""
    status: Status
    """How the turn stands or ended."""
    route: tuple[int, ...]
    """Phases passed, in order; one passed twice stands twice."""
    next: Next | None
    """Where the turn goes on; None when it has ended."""
    created_at: datetime
    """When it was claimed; of an imported turn, when it was said."""
    updated_at: datetime
    """When this file was written."""
    saved_at: datetime | None = None
    """When the save of phase 7 was done."""
    answered: bool | None = None
    """Whether anything was found to answer with; None while unknown."""
    seed: int | None = None
    """Seed given with --seed; None derives it."""
    ending: Literal["approved", "clarify", "failed"] | None = None
    """How the turn will end once it is saved; None while that is open."""
    question: str | None = None
    """Question to the user, for status clarify."""
    reason: str | None = None
    """Why the last judgement sent the turn back or ended it."""
    intervention: str | None = None
    """Id of the intervention that halted the turn."""
    dry_run: bool = False
    """Whether tools only told what they would change in the project."""
    image: str | None = None
    """Where the image that the user gave is kept, as a path in the turn's directory."""
    seal: Mapping[str, str] | None = None
    """Digest of every file when the turn was saved, by its path; None before, and of imported turns."""
    forgotten_at: datetime | None = None
    """When something that was told in it was last forgotten; None if all is there."""
    schema: str = METADATA_SCHEMA
    """Name and version of the format."""

    def to_json(self) -> dict[str, Any]:
        """The value of metadata.json."""
        times = {
            "created_at": render_time(self.created_at),
            "updated_at": render_time(self.updated_at),
            "saved_at": render_time(self.saved_at) if self.saved_at else None,
        }
        going_on = asdict(self.next) if self.next else None
        found = {"schema": self.schema, **vars(self), "route": list(self.route), "next": going_on, **times}
        forgotten = found.pop("forgotten_at")
        return found if forgotten is None else {**found, "forgotten_at": render_time(forgotten)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, where: str) -> "Metadata":
        """
        The metadata that a file holds.

        Raises:
            FileFormatError: The value does not fit the schema; names the key.
        """
        check_json(METADATA_JSON, value, where)
        try:
            times: dict[str, Any] = {key: parse_time(value[key]) for key in ("created_at", "updated_at")}
            saved = parse_time(value["saved_at"]) if value["saved_at"] else None
            forgotten = parse_time(value["forgotten_at"]) if value.get("forgotten_at") else None
        except (ValueError, OverflowError) as exc:
            raise FileFormatError(f"not an instant: {exc}", where=where) from exc
        going_on = Next(**value["next"]) if value["next"] else None
        times |= {"saved_at": saved, "forgotten_at": forgotten}
        return cls(**{**value, **times, "next": going_on, "route": tuple(value["route"])})


@dataclass(frozen=True)
class TurnFolder:
    """The files of one turn."""

    number: int
    """Turn number."""
    paths: TurnPaths
    """Where its files are."""
    clock: Clock
    """Gives updated_at."""

    def read_context(self) -> ContextDocument:
        """
        The turn's context.md.

        Raises:
            DocumentError: It is damaged.
            StoreError: It cannot be read.
        """
        path = self.paths / CONTEXT_MD
        return parse_context(read_text(path), where=str(path))

    def write_context(self, document: ContextDocument) -> None:
        """
        Replaces the turn's context.md.

        Raises:
            StoreError: It cannot be written.
        """
        write_atomic(self._target(CONTEXT_MD), render_context(document))

    def _target(self, name: str) -> Path:
        """Where a file is to be written; a turn directory that somebody removed is not made again."""
        if not self.paths.directory.is_dir():
            raise StoreError(
                "the turn's directory has vanished",
                where=str(self.paths.directory),
                fix="ask it as a new turn",
            )
        return self.paths / name

    def read_text(self, name: str) -> str:
        """
        A text file of the turn.

        Raises:
            StoreError: It cannot be read.
            FileFormatError: It is not UTF-8.
        """
        return read_text(self.paths / name)

    def write_text(self, name: str, text: str) -> None:
        """
        Replaces a text file of the turn.

        Raises:
            StoreError: It cannot be written.
        """
        write_atomic(self._target(name), text)

    def has(self, name: str) -> bool:
        """Whether the turn has a file of that name."""
        return (self.paths / name).is_file()

    def read_json(self, name: str) -> dict[str, Any]:
        """
        A JSON file of the turn, checked against its schema.

        Args:
            name: Path in the turn's directory, e.g. "plan.json" or "steps/step_01.json".

        Raises:
            StoreError: It cannot be read.
            FileFormatError: It is not JSON, or does not fit its schema.
        """
        path = self.paths / name
        value = parse_json(read_text(path), where=str(path))
        check_json(name, value, str(path))
        if not isinstance(value, dict):
            raise FileFormatError("not a JSON object", where=str(path))
        return value

    def write_json(self, name: str, value: Mapping[str, object]) -> None:
        """
        Replaces a JSON file of the turn, checked against its schema first.

        Args:
            name: As for read_json.
            value: JSON-like value.

        Raises:
            StoreError: It cannot be written.
            FileFormatError: It does not fit its schema.
        """
        check_json(name, value, str(self.paths / name))
        write_json(self._target(name), value)

    def read_metadata(self) -> Metadata:
        """
        The turn's metadata.json.

        Raises:
            StoreError: It cannot be read.
            FileFormatError: It is not JSON, or does not fit its schema.
        """
        path = self.paths / METADATA_JSON
        return Metadata.from_json(parse_json(read_text(path), where=str(path)), where=str(path))

    def write_metadata(self, metadata: Metadata) -> Metadata:
        """
        Replaces the turn's metadata.json; updated_at becomes the present. A turn that is saved is sealed.

        Returns:
            What was written.

        Raises:
            StoreError: It cannot be written.
        """
        written = replace(metadata, updated_at=self.clock())
        if written.saved_at is not None:
            written = replace(written, seal=seal_files(self.paths.directory, written.to_json()))
        self.write_json(METADATA_JSON, written.to_json())
        return written

    def append_call(self, record: Mapping[str, object]) -> None:
        """
        Adds a line to calls.jsonl.

        Raises:
            StoreError: It cannot be written.
            FileFormatError: The record does not fit its schema.
        """
        check_json(CALLS_JSONL, record, str(self.paths / CALLS_JSONL))
        append_json_line(self._target(CALLS_JSONL), record)

    def snapshot(self) -> Snapshot | None:
        """
        What was there when the turn began; None for a turn of before, or an imported one.

        Raises:
            FileFormatError: It does not fit its schema.
            StoreError: It cannot be read.
        """
        return Snapshot.from_json(self.read_json(SNAPSHOT_JSON)) if self.has(SNAPSHOT_JSON) else None

    def calls(self) -> list[dict[str, Any]]:
        """
        The lines of calls.jsonl, in order; [] if no call was made.

        Raises:
            FileFormatError: A line is not JSON or does not fit its schema; names it.
        """
        if not self.has(CALLS_JSONL):
            return []
        lines = read_json_lines(self.paths / CALLS_JSONL)
        for number, line in enumerate(lines, 1):
            check_json(CALLS_JSONL, line, f"{self.paths / CALLS_JSONL}:{number}")
        return lines

    def steps(self) -> list[dict[str, Any]]:
        """The tool calls of the turn, in order (FileFormatError if one does not fit its schema)."""
        found: list[dict[str, Any]] = []
        while self.has(name := step_name(len(found) + 1)):
            found.append(self.read_json(name))
        return found

    def superseded(self) -> list[ContextDocument]:
        """What supersede put away, oldest first (DocumentError if one is damaged)."""
        folders = [
            one for one in (self.paths / "attempts").glob("*/") if re.fullmatch(r"[0-9]{1,9}", one.name)
        ]
        paths = [folder / CONTEXT_MD for folder in sorted(folders, key=lambda folder: int(folder.name))]
        return [parse_context(read_text(path), where=str(path)) for path in paths]

    def supersede(self, numbers: Iterable[int], k: int) -> None:
        """
        Copies sections of context.md into attempts/{k}/context.md, before they are written anew.

        Args:
            numbers: Numbers of the sections; those the document lacks are left out.
            k: Number of the attempt, from 1.

        Raises:
            StoreError: It cannot be written.
            DocumentError: context.md is damaged.
        """
        kept = set(numbers)
        document = self.read_context()
        sections = tuple(section for section in document.sections if section.number in kept)
        write_atomic(
            self.paths.attempt(k) / CONTEXT_MD, render_context(ContextDocument(document.front, sections))
        )
