"""The folder of a turn: claimed, read and written; the rows of a list of turns."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from msgspec import structs

from panda.documents.context import (
    ContextDocument,
    FrontMatter,
    parse_context,
    render_context,
    render_section,
)
from panda.documents.pictures import MOST_BYTES, Picture, PictureError, parse_picture
from panda.documents.record_codec import decode, encode
from panda.documents.safe_text import escape_path, shorten, unescape_path
from panda.documents.times import Clock
from panda.errors import FileFormatError, NotFoundError, Problem, StoreError, UsageError
from panda.store.files import (
    append_json_line,
    check_links,
    held_temporary,
    make_directory,
    read_beneath,
    read_bytes,
    read_text,
    store_errors,
    sync_path,
    write_atomic,
)
from panda.store.layout import (
    CALLS_JSONL,
    CONTEXT_MD,
    LAST,
    RESPONSE_MD,
    TurnPaths,
    UserStore,
    check_id,
    step_name,
)
from panda.store.lines import load_lines
from panda.store.outcome import TurnOutcome, outcome_of
from panda.store.records import (
    Call,
    ChoiceCall,
    FileRecord,
    ForgottenCall,
    Metadata,
    ModelCall,
    Next,
    Snapshot,
    Step,
    load,
    save,
)
from panda.store.seals import seal_files
from panda.store.turn_documents import DocumentText, write_documents

_R = TypeVar("_R", bound=FileRecord)
_CALL: Any = Call

_NUMBER_DIGITS = 15
_NAME_CHARS = 200
IMAGES = "images"  # directory of a turn


def image_name(picture: Picture) -> str:
    """Return the file in which a turn keeps a picture, as a path in its directory."""
    return f"{IMAGES}/{picture.file_name}"


def load_picture(path: Path) -> Picture:
    """A picture from its file. Raises FileFormatError: it is too large, damaged, or neither PNG nor JPEG."""
    with store_errors(path, "read"):
        size = path.stat().st_size
    try:
        if size > MOST_BYTES:
            raise PictureError(f"it has {size:,} bytes, more than the {MOST_BYTES:,} that it may have")
        return parse_picture(read_bytes(path))
    except PictureError as exc:
        raise FileFormatError(
            f"{path.name} cannot be looked at: {exc}",
            where=str(path),
            fix="give a complete PNG or JPEG file, saved smaller if it is too large",
        ) from exc


CONTEXT_SCHEMA = "panda.context/1"


@dataclass(frozen=True)
class TurnFolder:
    """The files of one turn; what is read raises FileFormatError where it does not say what it must."""

    number: int  # turn number
    paths: TurnPaths  # where its files are
    clock: Clock  # gives updated_at

    def _target(self, name: str) -> Path:
        if not self.paths.directory.is_dir():  # somebody removed it: it is not made again
            fix = "ask it as a new turn"
            raise StoreError("the turn's directory has vanished", where=str(self.paths.directory), fix=fix)
        return self.paths / name

    def has(self, name: str) -> bool:
        """Return whether the turn has a file of that name."""
        return (self.paths / name).is_file()

    def read_text(self, name: str) -> str:
        return read_text(self.paths / name)

    def write_text(self, name: str, text: str) -> None:
        write_atomic(self._target(name), text)

    def read_context(self) -> ContextDocument:
        """The turn's context.md. Raises DocumentError: it is damaged."""
        path = self.paths / CONTEXT_MD
        return parse_context(read_text(path), where=str(path))

    def write_context(self, document: ContextDocument) -> None:
        self.write_text(CONTEXT_MD, render_context(document))

    def load(self, cls: type[_R]) -> _R:
        """Return the record that the turn's file of this type holds."""
        return load(cls, self.paths / cls.FILE)

    def find(self, cls: type[_R]) -> _R | None:
        """Return the record that the turn's file of this type holds; None if there is no such file."""
        return self.load(cls) if self.has(cls.FILE) else None

    def save(self, record: FileRecord) -> None:
        """Replaces the file that holds such a record (FileFormatError: the record would not be read)."""
        save(record, self._target(record.file_name))

    def read_metadata(self) -> Metadata:
        return self.load(Metadata)

    def write_metadata(self, metadata: Metadata) -> Metadata:
        """Replaces metadata.json, updated now; a saved turn is sealed. Returns what was written."""
        written = structs.replace(metadata, updated_at=self.clock())
        if written.saved_at is not None:
            written = structs.replace(written, seal=seal_files(self.paths.directory, written.to_json()))
        self.save(written)
        return written

    def snapshot(self) -> Snapshot | None:
        """
        Return the snapshot of the files that were there when the turn began; None for a turn of an earlier
        version, or an imported one.
        """
        return self.find(Snapshot)

    def load_steps(self) -> list[Step]:
        """The tool calls of the turn, in order."""
        return load_steps(self.paths)

    def load_calls(self) -> list[ModelCall]:
        """The model calls of the turn, in order, but for those that were forgotten."""
        lines = load_lines(_CALL, self.paths / CALLS_JSONL)
        return [call for call in lines if not isinstance(call, ForgottenCall)]

    def is_of_lists(self) -> bool:
        """Return whether the turn used the decision lists of an earlier version, which were removed."""
        return any(isinstance(call, ChoiceCall) and len(call.options) > 1 for call in self.load_calls())

    def append_call(self, call: ModelCall) -> None:
        """Adds a line to calls.jsonl. Raises FileFormatError: it would not be read."""
        line = encode(call)
        decode(_CALL, line, where=str(self.paths / CALLS_JSONL))
        append_json_line(self._target(CALLS_JSONL), line)

    def superseded(self) -> list[ContextDocument]:
        """
        Return the contexts that supersede() archived, oldest first. Raises DocumentError: one is damaged.
        """
        names = [path.name for path in (self.paths / "attempts").glob("*/")]
        numbers = sorted(int(name) for name in names if re.fullmatch(r"[0-9]{1,9}", name))
        paths = [self.paths.attempt(number) / CONTEXT_MD for number in numbers]
        return [parse_context(read_text(path), where=str(path)) for path in paths]

    def supersede(self, numbers: Iterable[int], k: int) -> None:
        """
        Copies the sections of these numbers, and the answer, into attempts/{k} before they are written anew.
        Raises DocumentError: context.md is damaged.
        """
        section_numbers = set(numbers)
        document = self.read_context()
        sections = tuple(section for section in document.sections if section.number in section_numbers)
        context = render_context(ContextDocument(document.front, sections))
        write_atomic(self.paths.attempt(k) / CONTEXT_MD, context)
        if self.has(RESPONSE_MD):
            write_atomic(self.paths.attempt(k) / RESPONSE_MD, self.read_text(RESPONSE_MD))

    def put_back_response(self, k: int) -> None:
        """The answer of attempts/{k} in its former place, if it was kept there."""
        attempt_path = self.paths.attempt(k) / RESPONSE_MD
        if attempt_path.is_file():
            self.write_text(RESPONSE_MD, read_text(attempt_path))


def load_steps(paths: TurnPaths) -> list[Step]:
    """The tool calls of a turn, in order. Raises FileFormatError: one does not say what it must."""
    steps: list[Step] = []
    while (path := paths / step_name(len(steps) + 1)).is_file():
        steps.append(load(Step, path))
    return steps


@dataclass(frozen=True)
class Reserved:
    """The number that a turn has before it is claimed."""

    turn: int  # turn number; no other turn is given it
    run: str | None = None  # id of the batch that it is for
    item: str | None = None  # id of the item


def claim_turn(
    store: UserStore,
    session: str,
    mode: str,
    query: str,
    *,
    seed: int | None = None,
    dry_run: bool = False,
    picture: Picture | None = None,
    snapshot: Snapshot | None = None,
    made_for: Reserved | None = None,
    client: Literal["mcp"] | None = None,
    documents: Sequence[DocumentText] = (),
    models_by_layer: Mapping[str, str] | None = None,
) -> TurnFolder:
    """
    A turn directory of its own, with a context.md without sections and a metadata.json of status running. Its
    number is that of *made_for*, or one more than any claimed before, and is never given again; processes
    that claim at the same time wait for each other.
    """
    check_id(session, what="session")
    now = store.clock()
    if store.apart is None:
        make_directory(store.turns)
    with nullcontext() if store.apart else store.numbering(f"panda turn, session {session}"):
        number = made_for.turn if made_for else max(store.counter(), store.highest()) + 1
        place = store.turn(number)
        make_directory(place.directory.parent)
        with (
            store_errors(place.directory, "create"),
            held_temporary(place.directory, directory=True) as directory,
        ):
            building = TurnFolder(number, TurnPaths(directory), store.clock)
            front = FrontMatter(
                schema=CONTEXT_SCHEMA,
                turn=number,
                user_id=store.user,
                session_id=session,
                mode=mode,
                created_at=now,
            )
            building.write_context(ContextDocument(front))
            if snapshot is not None:
                building.save(snapshot)
            if picture is not None:
                write_atomic(building.paths / image_name(picture), picture.data)
            if documents:
                write_documents(directory, documents, now)
            building.write_metadata(
                Metadata(
                    turn=number,
                    user_id=store.user,
                    session_id=session,
                    mode=mode,
                    query=query,
                    status="running",
                    route=(),
                    next=Next(phase=0, round=0, attempt=0),
                    created_at=now,
                    updated_at=now,
                    saved_at=None,
                    answered=None,
                    seed=seed,
                    dry_run=dry_run,
                    image=image_name(picture) if picture else None,
                    run=made_for.run if made_for else None,
                    item=made_for.item if made_for else None,
                    client=client,
                    document_count=len(documents) or None,
                    models=models_by_layer or None,
                )
            )
            if store.apart is None:  # first: a number lost to a crash is lost, one given twice is wrong
                store.raise_counter(number)
            directory.rename(place.directory)
        sync_path(place.directory.parent)
    return TurnFolder(number, place, store.clock)


@dataclass(frozen=True, kw_only=True)
class TurnRow:
    """One turn, or what is wrong with it."""

    number: int  # turn number
    at: datetime | None  # when it was claimed
    session: str | None
    status: str  # as in metadata.json; "unreadable" if that file cannot be used
    query: str | None  # the whole query
    problem: Problem | None = None  # why it is unreadable
    outcome: TurnOutcome | None = None  # what it came to; None while it runs, and of what was imported

    @property
    def ending(self) -> str:
        """Return what it came to; its status as long as that is open."""
        return self.outcome or self.status


def find_turn(store: UserStore, word: str, *, where: str) -> TurnFolder:
    """
    Return the turn that a word means: its number, or "last" for the newest.

    Args:
        where: The argument or option that holds the word.

    Raises:
        UsageError: It is neither.
        NotFoundError: There is no such turn.
    """
    if word == LAST:
        numbers = store.numbers()
        if not numbers:
            fix = f"begin one: panda turn --user {store.user} QUERY"
            raise NotFoundError(f"user {store.user} has no turn", where=f"{where} {LAST}", fix=fix)
        return store.open(numbers[-1])
    if word.isascii() and word.isdigit() and len(word) <= _NUMBER_DIGITS:
        return store.open(int(word))
    fix = f"give its number, or {LAST} for the newest; `panda list` shows the turns"
    raise UsageError(f"{shorten(repr(word), _NAME_CHARS)} is no number of a turn", where=where, fix=fix)


def list_rows(store: UserStore, *, session: str | None, limit: int | None) -> list[TurnRow]:
    """The newest turns of a user or of a session, newest last; one that cannot be read is of no session."""
    rows = (row for row in newest_rows(store) if session in (None, row.session))
    return list(islice(rows, limit))[::-1]


def newest_rows(store: UserStore) -> Iterator[TurnRow]:
    """The turns of a user, newest first."""
    return filter(None, (read_row(store, number) for number in reversed(store.numbers())))


def read_row(store: UserStore, number: int) -> TurnRow | None:
    """One turn by what its metadata.json says; None if it has gone, or is no directory: validate says so."""
    try:
        metadata = store.open(number).read_metadata()
    except NotFoundError:
        return None
    except (FileFormatError, StoreError) as exc:
        if not store.has(number):
            return None
        return TurnRow(number=number, at=None, session=None, status="unreadable", query=None, problem=exc)
    return TurnRow(
        number=number,
        at=metadata.created_at,
        session=metadata.session_id,
        status=metadata.status,
        query=metadata.query,
        outcome=outcome_of(metadata),
    )


def read_section(turn: TurnFolder, number: int) -> str:
    """Heading and body of one section of context.md, as they stand on disk (NotFoundError: it has none)."""
    document = turn.read_context()
    section = document.section(number)
    if section is None:
        there = ", ".join(str(other.number) for other in document.sections)
        raise NotFoundError(
            f"turn {turn.number} has no section {number}",
            where=str(turn.paths / CONTEXT_MD),
            fix=f"its sections are {there}" if there else "it has no section yet",
        )
    return render_section(section) + "\n"


def read_turn_file(turn: TurnFolder, name: str) -> bytes:
    """
    A file of the turn, byte for byte, by its path below the directory as it is or as escape_path writes it.
    Raises UsageError: The path leads out. NotFoundError: There is no such file.
    """
    check_links(turn.paths.directory)
    path = PurePosixPath(unescape_path(name))
    directory = turn.paths.directory
    parts = path.parts
    if path.is_absolute() or ".." in parts:
        message = f"{name!r} leads out of the turn directory"
        raise UsageError(message, where=str(directory), fix=_list_files(directory))
    is_name = "\0" not in str(path) and not any(
        "\ud800" <= char < "\udc80" or "\udcff" < char <= "\udfff" for char in name
    )
    data = read_beneath(directory, parts, most_bytes=-1) if is_name and parts else None
    if data is None:
        message = f"turn {turn.number} has no file {shorten(repr(name), _NAME_CHARS)}"
        raise NotFoundError(message, where=str(directory), fix=_list_files(directory))
    return data


def _list_files(directory: Path) -> str:
    files = sorted(
        escape_path(str(path.relative_to(directory))) for path in directory.rglob("*") if path.is_file()
    )
    return f"its files are {', '.join(files)}" if files else "the turn has no file yet"
