"""What the index is made from: every source of a user with its stamp, and the entries that it gives."""

import hashlib
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path, PurePath, PurePosixPath
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from panda.documents.document_text import HTML, content_type_of
from panda.documents.markdown import KnowledgeSection, split_units
from panda.documents.memory_file import is_statement, parse_memory_file, render_value, written_below
from panda.documents.note import NoteText, parse_note, parse_page_note
from panda.documents.safe_text import escape_path, one_line, shorten, strip_citations, unescape_path
from panda.errors import (
    FileFormatError,
    NoteFormatError,
    Problem,
    StoreError,
    UntrustedError,
    Verdict,
    WebError,
)
from panda.language.dates import day_of
from panda.store import layout
from panda.store.files import check_links, may_pass, read_bytes, read_memory_file, read_note_encoded
from panda.store.layout import FACTS_MD, PREFERENCES_MD, TurnPaths, UserStore, turn_name, turn_number
from panda.store.node_id import NodeKind, key_of
from panda.store.records import QueryAnalysis, Research, Step, load
from panda.store.seals import text_digest
from panda.store.visit_records import SAVED_STATUSES, load_turn, load_visit

NOTES = "knowledge/"  # how the source of a note begins
COLUMNS = ("query", "response", "summary", "topics", "names")  # the searched columns; each counts 1
FIRST_OTHER = 1 << 54  # row ids from here on are no turn numbers
NO_TIME = -(1 << 62)  # the seconds of an entry that has no time
NOTE_SUFFIXES = frozenset({
    "", ".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".mdx", ".qmd", ".rmd",
    ".txt", ".text", ".org", ".rst", ".adoc", ".asciidoc", ".textile", ".wiki",
    ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".html", ".htm", ".xhtml",
})  # fmt: skip
"""How the names of notes end, in any case; a file with another ending is no note."""
NOTE_KINDS = "Markdown, text, CSV, JSON and HTML files"
"""What notes are, for messages."""
BROKEN = ""  # stamp of a source of which something could not be read: it is tried again each time

_TURNS = "turns/"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HEADER_CHARS = 150
_AT_ONCE = 128
_READERS = 8
_NO_FILE = "-"
_UNREADABLE = "unreadable"
_VISIT = ">"  # how the part of a stamp begins that tells of a visit
_TURN_FILES = frozenset({
    layout.METADATA_JSON, layout.CONTEXT_MD, layout.INDEX_SUMMARY_JSON, layout.QUERY_ANALYSIS_JSON,
    layout.RESEARCH_JSON,
})  # fmt: skip
"""What of a turn is read, beside its visits and the tools in its steps."""

_T = TypeVar("_T")
_Made = TypeVar("_Made")


class IndexEntry(NamedTuple):
    """One searchable row: a node, or one section of a note, in the order of the table."""

    row: int  # of a turn its number, of anything else from FIRST_OTHER on and by what it is
    path: str  # file or directory, relative to the user's directory, escaped as in node ids
    turn: int  # number of the turn in which it lies; 0 for memory and notes
    node_id: str  # as "turn:811"
    source_type: str  # kind of source, in S0's names
    header: str  # short line for a list of candidates
    seconds: int  # when it was said or seen, since 1970; NO_TIME if unknown
    session: str | None = None  # session of a turn; None for everything else
    part: int = 0  # section of a note, from 0; 0 for everything else
    quality: float | None = None  # quality_score of research as written, before any decay
    expires: int = NO_TIME  # when research wants to be done again, as seconds
    intent: str | None = None  # of a turn, as its summary or analysis has it
    has_research: bool = False  # whether research ran in the turn (S1 §3.3)
    research_topic: str | None = None  # its topic
    query: str = ""  # text of the column query; "" but for turns
    response: str = ""  # answer of a turn, content of anything else
    summary: str = ""  # of a turn its summary, else its title
    topics: str = ""
    names: str = ""  # date of a turn, its entities and tools; site of a visit

    @property
    def number(self) -> int | None:
        """Number of a turn; None for everything else."""
        return self.row if self.row < FIRST_OTHER else None

    @property
    def at(self) -> datetime | None:
        return None if self.seconds == NO_TIME else _EPOCH + timedelta(seconds=self.seconds)

    @property
    def expires_at(self) -> datetime | None:
        return None if self.expires == NO_TIME else _EPOCH + timedelta(seconds=self.expires)

    @property
    def text(self) -> str:
        """All columns together."""
        return "\n".join(getattr(self, column) for column in COLUMNS)

    @property
    def body(self) -> str:
        """Query and answer of a turn, content of anything else."""
        return f"{self.query}\n{self.response}" if self.query else self.response


def _seconds(at: datetime | None) -> int:
    return math.floor(at.timestamp()) if at else NO_TIME


def _finished(entry: IndexEntry) -> IndexEntry:
    """An entry with its row id and a short header, as SQLite can hold it: without NUL, lone surrogates."""
    row = entry.turn
    if entry.session is None:
        key = f"{entry.path}\0{entry.node_id}\0{entry.part}".encode("utf-8", "replace")
        row = FIRST_OTHER | int.from_bytes(hashlib.sha256(key).digest()[:7], "big") >> 2
    entry = entry._replace(row=row, header=shorten(entry.header, _HEADER_CHARS))
    return IndexEntry._make(_plain(value) if isinstance(value, str) else value for value in entry)


def _plain(text: str) -> str:
    return text if text.isprintable() else text.replace("\0", " ").encode("utf-8", "replace").decode()


def scan(store: UserStore, turns: Sequence[int]) -> dict[str, str]:
    """
    The memory files, the notes and some turns, as far as they are there, each with a stamp that changes when
    a file does: paths relative to the user's directory, escaped as in node ids.
    """
    root = str(store.home)
    knowledge = str(store.knowledge)
    stamps = {name: _stamp(f"{root}/{name}") for name in (FACTS_MD, PREFERENCES_MD)}
    for name, may_be_read in list_notes(knowledge).items():
        source = escape_path(f"{NOTES}{name}" if name else NOTES[:-1])
        stamps[source] = _note_stamp(f"{knowledge}/{name}") if may_be_read else _UNREADABLE
    sources = [f"{_TURNS}{turn_name(number)}" for number in turns]
    stamps.update(
        zip(sources, _side_by_side(lambda name: _turn_stamp(f"{root}/{name}"), sources), strict=True)
    )
    return {source: stamp for source, stamp in stamps.items() if stamp != _NO_FILE}


def turn_of(source: str) -> int:
    """Number of the turn that a source is; 0 for any other."""
    return turn_number(source.removeprefix(_TURNS)) or 0 if source.startswith(_TURNS) else 0


def turns_stamp(store: UserStore) -> str | None:
    """A stamp that changes when a turn directory appears or goes; None for a user who is not there."""
    try:
        status = store.turns.stat()
    except OSError:
        return _NO_FILE if store.home.is_dir() else None
    return f"{status.st_nlink}:{status.st_mtime_ns}"


def _side_by_side(act: Callable[[_T], _Made], things: Sequence[_T]) -> Iterator[_Made]:
    """
    Yield the results of a function in order, many computed at once: each waits for the disk most of its time.
    """

    def act_on(part: Sequence[_T]) -> list[_Made]:
        return [act(thing) for thing in part]

    parts = [things[at : at + _AT_ONCE] for at in range(0, len(things), _AT_ONCE)]
    with ThreadPoolExecutor(_READERS) if len(parts) > 1 else nullcontext() as pool:
        yield from chain.from_iterable(pool.map(act_on, parts) if pool else map(act_on, parts))


def _turn_stamp(path: str) -> str:
    """Name, size and time of each file of a turn, joined by what no name holds."""
    parts = []
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name in _TURN_FILES:
                    status = entry.stat()
                    parts.append(f"{entry.name}:{status.st_size}.{status.st_mtime_ns}")
                elif entry.name == "steps":
                    parts.append(f"steps:{_stamp(entry.path)}")
                elif entry.name == "webpage_cache":
                    for name in layout.directory_names(entry.path):
                        files = (layout.MANIFEST_JSON, layout.EXTRACTED_JSON)
                        stamps = ",".join(_stamp(f"{entry.path}/{name}/{file}") for file in files)
                        parts.append(f"{_VISIT}{escape_path(name)}:{stamps}")
    except OSError:
        return _NO_FILE
    return "/".join(sorted(parts)) or _NO_FILE


def _stamp(path: str) -> str:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of calls
    except OSError:
        return _NO_FILE
    return f"{status.st_size}.{status.st_mtime_ns}"


def _note_stamp(path: str) -> str:
    """Return the stamp of a note; a link that leads nowhere has one too, since it is a note that fails."""
    stamp = _stamp(path)
    if stamp == _NO_FILE and os.path.islink(path):  # noqa: PTH114 - thousands of calls
        return _UNREADABLE
    return stamp


class NoteFiles(NamedTuple):
    """The files below a knowledge directory."""

    notes: dict[str, bool]
    """Paths of the notes to whether they may be read. Links and folders that may not are there too, "" for
    the directory itself."""
    skipped: list[str]  # paths of the files that are no notes by their names


def list_notes(knowledge: str) -> dict[str, bool]:
    """Return the paths of the notes below a knowledge directory, as `find_note_files` does."""
    return find_note_files(knowledge).notes


def find_note_files(knowledge: str) -> NoteFiles:
    """
    Find the files below a knowledge directory, but hidden ones. A directory is looked into once, however many
    links lead to it: under its own name before those of links, and then under the first of these.
    """
    notes: dict[str, bool] = {}
    skipped: list[str] = []
    seen: set[tuple[int, int]] = set()
    todo = [""]
    links = list[str]()
    while todo or links:
        links.sort(reverse=True)
        below = todo.pop() if todo else links.pop()
        here = f"{knowledge}/{below}" if below else knowledge
        try:
            check_links(here)
            status = os.stat(here)  # noqa: PTH116 - thousands of calls
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(here) as entries:
                for entry in entries:
                    name = f"{below}/{entry.name}" if below else entry.name
                    if entry.name.startswith("."):
                        continue
                    if layout.is_directory(entry):
                        (links if entry.is_symlink() else todo).append(name)
                    elif is_note_name(entry.name):
                        notes[name] = not entry.is_symlink() or may_pass(entry.path)
                    else:
                        skipped.append(name)
        except FileNotFoundError:
            continue
        except (UntrustedError, OSError):
            notes[below] = False
    return NoteFiles(notes, sorted(skipped))


def skipped_files(knowledge: Path, names: Sequence[str]) -> list[NoteFormatError]:
    """Return a problem for each file below a knowledge directory that is no note."""
    fix = "save it as Markdown, text or HTML if an answer shall quote it"
    message = "it is no note by its name and is not read"
    return [NoteFormatError(message, str(knowledge / n), fix=fix, verdict=Verdict.SOUND) for n in names]


def is_note_name(name: str) -> bool:
    """Return whether a file of this name is a note."""
    return os.path.splitext(name)[1].lower() in NOTE_SUFFIXES  # noqa: PTH122 - thousands of calls


def without_note_suffix(path: str) -> str:
    """The path of a note without the ending that says that it is one."""
    stem, suffix = os.path.splitext(path)  # noqa: PTH122
    return stem if suffix.lower() in NOTE_SUFFIXES else path


class IndexSource(NamedTuple):
    """What one source gives."""

    entries: list[IndexEntry]  # of a turn itself if it is saved, and of each research and visit in it
    digest: str = ""  # of a note a digest of what it says
    problems: Sequence[Problem] = ()  # files that cannot be read or parsed
    faults: Sequence[NoteFormatError] = ()  # what of a note is read as text, or that it is no text
    is_settled: bool = True  # whether its stamp tells when it changes: not of a turn that may go on


def read_sources(store: UserStore, stamps: Mapping[str, str]) -> Iterator[tuple[str, IndexSource]]:
    """Each source with what it gives; every file is read once."""

    def read(source: str) -> IndexSource:
        path = f"{store.home}/{source if turn_of(source) else unescape_path(source)}"
        return _read_source(path, source, stamps[source])

    yield from zip(stamps, _side_by_side(read, list(stamps)), strict=True)


def entries_at(place: Path, source: str) -> list[IndexEntry]:
    """The entries of a source that lies at another place: a turn's directory, a note or a memory file."""
    return _read_source(str(place), source, _turn_stamp(str(place)) if turn_of(source) else "").entries


def _read_source(place: str, source: str, stamp: str) -> IndexSource:
    if turn_of(source):
        return _read_turn(place, source, stamp)
    try:
        if source in (PREFERENCES_MD, FACTS_MD):
            return IndexSource(memory_entries(source, read_memory_file(place), where=place))
        note, digest = load_note_text(place)
        return IndexSource(list(_note_entries(note, source)), digest, faults=note.faults)
    except NoteFormatError as exc:
        return IndexSource([], faults=[exc])
    except (FileFormatError, StoreError) as exc:
        return IndexSource([], problems=[exc])


def _read_turn(place: str, source: str, stamp: str) -> IndexSource:
    """A turn with its research and visits; what does not read is told, and the rest is there."""
    files = [part.rpartition(":")[0] for part in stamp.split("/")]
    entries: list[IndexEntry] = []
    problems: list[Problem] = []
    readers: list[Callable[[], IndexEntry | None]] = []
    if layout.RESEARCH_JSON in files:
        readers.append(partial(_research_entry, place, source))
    if layout.METADATA_JSON in files or layout.CONTEXT_MD in files:
        readers.append(partial(_turn_entry, place, source, files, entries))
    visits = [file.removeprefix(_VISIT) for file in files if file.startswith(_VISIT)]
    readers += [partial(_visit_entry, place, source, name) for name in visits]
    for read in readers:
        try:
            entries += filter(None, [read()])
        except (FileFormatError, StoreError) as exc:
            problems.append(exc)
    return IndexSource(
        entries, problems=problems, is_settled=any(entry.session is not None for entry in entries)
    )


def _turn_entry(
    place: str, source: str, files: Sequence[str], research: Sequence[IndexEntry]
) -> IndexEntry | None:
    """The entry of a turn; None if it is not saved."""
    paths = TurnPaths(Path(place))
    number = turn_of(source)
    summary = [name for name in files if name == layout.INDEX_SUMMARY_JSON]
    turn = load_turn(paths, number, names=summary)  # of the others it needs but the topic
    if turn.status not in SAVED_STATUSES:
        return None
    words = list[str]()
    intent = turn.intent
    if layout.QUERY_ANALYSIS_JSON in files:
        analysis = load(QueryAnalysis, paths / layout.QUERY_ANALYSIS_JSON)
        words, intent = [*analysis.entities], intent or analysis.intent
    if "steps" in files:
        steps = sorted((paths.directory / "steps").glob("step_*.json"))
        tools = dict.fromkeys(load(Step, path).tool for path in steps)
        words += [tool.replace(".", " ").replace("_", " ") for tool in tools if tool]
    header = " ".join((turn.summary or turn.query)[: 2 * _HEADER_CHARS].split())
    is_marked = "[" in turn.response or "ource" in turn.response
    topic = turn.research_topic or "".join(key_of(research_entry.node_id) for research_entry in research)
    about = (number, NodeKind.TURN.id(number), "turn_summary", f"Turn {number}: {header}", _seconds(turn.at))
    entry = IndexEntry(
        *(0, source, *about),
        session=turn.session,
        intent=intent,
        has_research=bool(topic),
        research_topic=topic or None,
        summary=turn.summary,
        topics=" ".join([*turn.topics, topic]).strip(),
        names=" ".join([f"{turn.at:%Y %B} {turn.at.day} {turn.at:%A}", *words]),
        query=turn.query,
        response=strip_citations(turn.response) if is_marked else turn.response,
    )
    return _finished(entry)


def memory_entries(source: str, text: str, *, where: str) -> list[IndexEntry]:
    """The entries of preferences.md or facts.md, and what stands beside. Raises DocumentError: corrupt."""
    prefix, source_type = ("memory", "preference") if source == PREFERENCES_MD else ("fact", "fact")
    entries = []
    for value in parse_memory_file(text, where=where):
        title = "" if is_statement(value.key) else value.key.replace("_", " ")
        header = f"{one_line(value.key)}: {value.text}" if title else value.text
        about = (0, source, 0, f"{prefix}:{value.key}", source_type, header, _seconds(value.updated_at))
        entries.append(IndexEntry(*about, summary=title, response=value.text))
    below = " ".join(unit.text for unit in split_units(written_below(text, where=where)))
    if below:
        about = (0, source, 0, f"{prefix}:{source}", source_type, below, NO_TIME)
        entries.append(IndexEntry(*about, response=below))
    return [_finished(entry) for entry in entries]


def load_note_text(path: Path | str) -> tuple[NoteText, str]:
    """Return what a note says, with the digest of its text; raises as `read_note`."""
    text, encoding = read_note_encoded(path)
    digest = text_digest(text)
    if content_type_of(PurePath(path).name, "") == HTML:
        data = text.encode() if encoding == "utf-8" else read_bytes(path)
        return _read_page_note(data, where=str(path)), digest
    note = parse_note(text, where=str(path))
    if encoding == "utf-8":
        return note, digest
    message = f"it is not UTF-8, and is read as {encoding}"
    fault = NoteFormatError(message, str(path), fix="save it as UTF-8", verdict=Verdict.SOUND)
    return replace(note, faults=(fault, *note.faults)), digest


@lru_cache(maxsize=8)
def _read_page_note(page_bytes: bytes, *, where: str) -> NoteText:
    """Return what a saved page says; raises NoteFormatError if that is nothing, or cannot be read in time."""
    from panda.web.page import Page  # these load what no command needs that reads no page
    from panda.web.page_worker import decode_page, read_page

    try:
        text, charset = decode_page(page_bytes, HTML, where=where)
        page = Page(
            url=where,
            final_url=where,
            media_type=HTML,
            charset=charset,
            text=text,
            etag=None,
            last_modified=None,
        )
        extraction = read_page(page)
    except WebError as exc:
        raise NoteFormatError(f"{exc.message}; it is not read", where, verdict=Verdict.SOUND) from exc
    if not extraction.content.strip():
        raise NoteFormatError("it says nothing and is not read", where, verdict=Verdict.SOUND)
    return parse_page_note(extraction.title, extraction.content)


def _note_entries(note: NoteText, source: str) -> Iterator[IndexEntry]:
    name = source.removeprefix(NOTES)
    title = note.title or one_line(PurePosixPath(name).stem)
    topics = f"{name.replace('_', ' ').replace('/', ' ')} {note.tags}"
    seconds = _seconds(day_of(title))
    for part, section in enumerate(note.sections or (KnowledgeSection("", (), ()),)):
        headings = (one_line(heading) for heading in section.headings)
        summary = " > ".join([title, *(heading for heading in headings if heading != title)])
        anchor = f"#{section.anchor}" if note.is_long and section.anchor else ""
        about = (
            0,
            source,
            0,
            NodeKind.KNOWLEDGE.id(f"{name}{anchor}"),
            "fact",
            f"Knowledge {name}: {summary}",
            seconds,
        )
        entry = IndexEntry(*about, part=part, summary=summary, topics=topics, response=section.text)
        yield _finished(entry)


def _research_entry(place: str, source: str) -> IndexEntry:
    research = load(Research, Path(f"{place}/{layout.RESEARCH_JSON}"))
    topic = one_line(research.topic)
    path = f"{source}/{layout.RESEARCH_JSON}"
    header = f"Research {topic}: {one_line(research.summary)}"
    about = (NodeKind.RESEARCH.id(research.topic), "research_cache", header, _seconds(research.created_at))
    entry = IndexEntry(
        *(0, path, turn_of(source), *about),
        quality=research.quality_score,
        expires=_seconds(research.expires_at),
        summary=research.summary,
        topics=topic.replace(".", " ").replace("_", " "),
        response="\n".join(f"{claim.claim} {claim.source or ''}" for claim in research.claims),
    )
    return _finished(entry)


def _visit_entry(place: str, source: str, name: str) -> IndexEntry:
    visit = load_visit(Path(f"{place}/webpage_cache/{unescape_path(name)}"))
    manifest = visit.manifest
    site = visit.manifest.url
    with suppress(ValueError):
        site = urlsplit(site).hostname or site
    site, path = site.removeprefix("www."), f"{source}/webpage_cache/{name}"
    lines = [line for zone in visit.extracted.zones or () if zone.is_quotable for line in zone.items]
    header = f"Visit of {site}: {one_line(visit.title)}"
    seconds = _seconds(manifest.visited_at)
    entry = IndexEntry(
        *(0, path, turn_of(source), NodeKind.VISIT.id(manifest.visit_id), "visit_record", header, seconds),
        summary=visit.title,
        topics=manifest.page_type or "",
        names=site,
        response="\n".join([*_field_words(visit.details), *lines]),
    )
    return _finished(entry)


def _field_words(fields: Mapping[str, object]) -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield key.replace("_", " ")
            yield from _field_words(value)
        elif key != "title":
            yield f"{key.replace('_', ' ')} {render_value(value)}"
