"""What the index is made from: every source of a user with its stamp, and the rows that it gives."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from panda.documents.markdown import LONG_CHARS, KnowledgeSection, split_knowledge
from panda.documents.memory_file import is_statement, parse_memory_file, render_value
from panda.documents.text import escape_path, one_line, shorten, strip_citations, unescape_path
from panda.documents.yaml_text import split_front_matter
from panda.errors import FileFormatError, StoreError, UntrustedError
from panda.language.dates import day_of
from panda.storage.files import read_text, read_text_at
from panda.storage.layout import (
    CONTEXT_MD,
    EXTRACTED_JSON,
    FACTS_MD,
    INDEX_SUMMARY_JSON,
    MANIFEST_JSON,
    METADATA_JSON,
    PREFERENCES_MD,
    QUERY_ANALYSIS_JSON,
    RESEARCH_JSON,
    Layout,
    TurnPaths,
    is_id,
    turn_name,
    turn_number,
)
from panda.storage.links import check_links, may_pass
from panda.storage.records import (
    SAVED_STATUSES,
    ResearchRecord,
    TurnRecord,
    Visit,
    load_keys,
    load_research,
    load_turn,
    load_visit,
)
from panda.storage.seals import text_digest

TURNS = "turns"  # not a source: its stamp tells whether turn directories came or went

_T = TypeVar("_T")
_AT_ONCE, _READERS = 128, 8
_NO_FILE = "-"
_UNTRUSTED = "untrusted"
_TURN_FILES = frozenset({METADATA_JSON, CONTEXT_MD, INDEX_SUMMARY_JSON, QUERY_ANALYSIS_JSON, RESEARCH_JSON})
"""What the row of a turn is made from, beside the tools in its steps."""


def scan_sources(layout: Layout, user: str) -> dict[str, str]:
    """
    Every file or directory that gives rows, with its stamp.

    Returns:
        Path relative to the user's directory, escaped as in node ids → sizes and modification times of what
        is read from it. The memory files and knowledge documents come first, then turns by name, each
        followed by its research and visits.
    """
    return {
        **scan_documents(layout, user),
        **scan_turns(layout, user, sorted(map(turn_name, turn_numbers(layout, user)))),
    }


def scan_documents(layout: Layout, user: str) -> dict[str, str]:
    """The memory files and knowledge documents with their stamps."""
    root = str(layout.user(user))
    found = {name: _stamp(f"{root}/{name}") for name in (FACTS_MD, PREFERENCES_MD)}
    knowledge = str(layout.knowledge(user))
    for name, may_be_read in list_notes(knowledge).items():
        source = f"knowledge/{name}" if name else "knowledge"
        found[escape_path(source)] = _stamp(f"{knowledge}/{name}") if may_be_read else _UNTRUSTED
    return {source: stamp for source, stamp in sorted(found.items()) if stamp != _NO_FILE}


def scan_turns(layout: Layout, user: str, names: Sequence[str]) -> dict[str, str]:
    """
    What the named turn directories give, with stamps; nothing for one that is not there.

    Args:
        names: Names of turn directories.
    """
    turns = f"{layout.user(user)}/{TURNS}"

    def scan(some: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in some:
            _scan_turn(f"{turns}/{name}", f"{TURNS}/{name}", found)
        return found

    return {source: stamp for found in _side_by_side(scan, names) for source, stamp in found.items()}


def _side_by_side(act: Callable[[Sequence[str]], _T], things: Sequence[str]) -> Iterator[_T]:
    """What a function makes of some at a time, in order: each waits for the disk most of its time."""
    if len(things) <= _AT_ONCE:
        yield act(things)
        return
    with ThreadPoolExecutor(_READERS) as pool:
        yield from pool.map(act, [things[at : at + _AT_ONCE] for at in range(0, len(things), _AT_ONCE)])


def turn_numbers(layout: Layout, user: str) -> Iterator[int]:
    """Numbers of all turn directories, in no order."""
    with suppress(OSError), os.scandir(layout.turns(user)) as entries:
        yield from filter(None, (turn_number(entry.name) for entry in entries))


def turns_stamp(layout: Layout, user: str) -> str:
    """A stamp that changes when a turn directory appears or goes."""
    return _stamp(str(layout.turns(user))).rpartition(":")[2]


def turn_of(source: str) -> str | None:
    """
    Name of the turn directory that a source lies in.

    >>> turn_of("turns/turn_000012/research.json"), turn_of("facts.md")
    ('turn_000012', None)
    """
    parts = source.split("/", 2)
    return parts[1] if parts[0] == TURNS and len(parts) > 1 else None


def files_of(stamp: str) -> list[str]:
    """
    Names of the files that the stamp of a turn speaks of.

    >>> files_of("context.md:120:17 metadata.json:80:17")
    ['context.md', 'metadata.json']
    """
    return [part.partition(":")[0] for part in stamp.split(" ")]


def _scan_turn(path: str, source: str, found: dict[str, str]) -> None:
    stamps: dict[str, str] = {}
    cache = False
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                name = entry.name
                if name in _TURN_FILES:
                    status = entry.stat()
                    stamps[name] = f"{status.st_size}:{status.st_mtime_ns}"
                elif name == "webpage_cache":
                    cache = True
                elif name == "steps":
                    stamps[name] = _stamp(entry.path)
    except OSError:
        return
    if METADATA_JSON in stamps or CONTEXT_MD in stamps:
        found[source] = " ".join(f"{name}:{stamps[name]}" for name in sorted(stamps))
    if RESEARCH_JSON in stamps:
        found[f"{source}/{RESEARCH_JSON}"] = stamps[RESEARCH_JSON]
    if cache:
        for slug in _directory_names(f"{path}/webpage_cache"):
            stamp = [
                _stamp(f"{path}/webpage_cache/{slug}/{file}") for file in (MANIFEST_JSON, EXTRACTED_JSON)
            ]
            found[escape_path(f"{source}/webpage_cache/{slug}")] = " ".join(stamp)


def list_notes(knowledge: str) -> dict[str, bool]:
    """
    The notes below a knowledge directory, and the links there that may not be followed.

    A directory is looked into once, however many links lead to it: under its own name before those of links,
    and then under the first of these.

    Args:
        knowledge: The directory; it need not be there.

    Returns:
        Paths below it, unescaped, to whether they may be read; "" if the directory itself may not be.
    """
    found: dict[str, bool] = {}
    seen: set[tuple[int, int]] = set()
    todo, links = [""], list[str]()
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
                    if _is_directory(entry):
                        (links if entry.is_symlink() else todo).append(name)
                    elif entry.name.endswith(".md"):
                        found[name] = not entry.is_symlink() or may_pass(entry.path)
        except UntrustedError:
            found[below] = False
        except OSError:
            continue
    return found


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a circle of links
        return False


def _stamp(path: str) -> str:
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of calls
    except OSError:
        return _NO_FILE
    return f"{status.st_size}:{status.st_mtime_ns}"


def _directory_names(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(
                entry.name
                for entry in entries
                if _is_directory(entry) and not entry.name.startswith(".")
                if not entry.is_symlink() or may_pass(entry.path)
            )
    except OSError:
        return []


def users_of(layout: Layout) -> list[str]:
    """Ids of all users of the store, sorted; directories that no user can have are left out."""
    return [name for name in _directory_names(str(layout.users)) if is_id(name)]


def count_turns(layout: Layout) -> int:
    """Number of turn directories of all users."""
    return sum(1 for user in users_of(layout) for _ in turn_numbers(layout, user))


_HEADER_CHARS = 150

NOTES = "knowledge/"  # how the source of a knowledge document begins

COLUMNS = ("query", "response", "summary", "topics", "names")  # the searched columns; each counts 1


@dataclass(frozen=True)
class IndexRow:
    """One searchable row: a node, or one section of a knowledge document, in the order of the table."""

    node_id: str  # as "turn:811"
    source_type: str  # kind of source, in S0's names
    header: str  # short line for a list of candidates
    at: datetime | None = None  # when it was said or seen
    session: str | None = None  # session of a turn; None for everything else
    number: int | None = None  # number of a turn; None for everything else
    part: int = 0  # section of a knowledge document, from 0; 0 for everything else
    summary: str = ""  # text of the column summary: of a turn its summary, else its title
    topics: str = ""  # text of the column topics
    names: str = ""  # text of the column names: date of a turn, its entities and tools; site of a visit
    query: str = ""  # text of the column query; "" but for turns
    response: str = ""  # text of the column response: answer of a turn, content of anything else


@dataclass(frozen=True)
class Source:
    """What one source gives."""

    rows: list[IndexRow]
    """One for a turn, research or visit, one for each key of a memory file and each section of a note, none
    for a turn that was not saved."""
    digest: str = ""  # of a note a digest of what it says
    research: ResearchRecord | None = None  # what a research file says


class SourceReader:
    """Reads the sources of a user, each file once; the way to the turns is checked once for all."""

    def __init__(self, layout: Layout, user: str) -> None:
        self._root = layout.user(user)
        self._turns = -1

    def __enter__(self) -> "SourceReader":
        turns = f"{self._root}/{TURNS}"
        with suppress(OSError, UntrustedError):  # whoever reads a turn will be told
            check_links(turns)
            self._turns = os.open(turns, os.O_RDONLY | os.O_DIRECTORY)
        return self

    def __exit__(self, *_: object) -> None:
        if self._turns >= 0:
            os.close(self._turns)

    def read_all(
        self, sources: Mapping[str, str]
    ) -> Iterator[tuple[str, Source | FileFormatError | StoreError]]:
        """Each source with what it gives, or with what is wrong with it; *sources* has their stamps."""

        def read(some: Sequence[str]) -> list[tuple[str, Source | FileFormatError | StoreError]]:
            return [(source, self._tried(source, sources[source])) for source in some]

        yield from chain.from_iterable(_side_by_side(read, list(sources)))

    def _tried(self, source: str, stamp: str) -> Source | FileFormatError | StoreError:
        try:
            return self._read(source, stamp)
        except (FileFormatError, StoreError) as exc:
            return exc

    def _read(self, source: str, stamp: str) -> Source:
        if source.startswith("turns/") and source.count("/") == 1:
            return Source(self._turn_rows(source[len(TURNS) + 1 :], files_of(stamp)))
        path = self._root / unescape_path(source)
        if source in (PREFERENCES_MD, FACTS_MD):
            return Source(memory_rows(source, read_text(path), where=str(path)))
        if source.startswith(NOTES):
            text = read_text(path)
            return Source(list(_knowledge_rows(text, path, source.removeprefix(NOTES))), text_digest(text))
        if path.name == RESEARCH_JSON:
            research = load_research(path)
            return Source([_research_row(research)], research=research)
        return Source([_visit_row(path)])

    def _turn_rows(self, name: str, files: Collection[str]) -> list[IndexRow]:
        paths, number = TurnPaths(Path(f"{self._root}/{TURNS}/{name}")), int(name.rpartition("_")[2])
        try:
            directory = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self._turns)
        except OSError:  # a link, or nothing there
            return _turn_rows(paths, load_turn(paths, number, names=files), files)
        try:
            turn = load_turn(paths, number, names=files, read=partial(read_text_at, directory))
        finally:
            os.close(directory)
        return _turn_rows(paths, turn, files)


def clean_row(row: IndexRow) -> IndexRow:
    """The row as SQLite can hold it: without NUL, lone surrogates and parts of a second."""
    texts = {name: getattr(row, name) or "" for name in ("node_id", "header", "session", *COLUMNS)}
    whole = "".join(texts.values())
    if whole.isascii() and "\0" not in whole and (row.at is None or not row.at.microsecond):
        return row
    cleaned = {name: _indexable(text) for name, text in texts.items() if text}
    at = row.at.replace(microsecond=0) if row.at else None
    return replace(row, at=at, **cleaned)  # type: ignore[arg-type]  # texts for fields that are texts


def _indexable(text: str) -> str:
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


def _turn_rows(paths: TurnPaths, turn: TurnRecord, files: Collection[str]) -> list[IndexRow]:
    if turn.status not in SAVED_STATUSES:
        return []
    words: list[str] = []
    if QUERY_ANALYSIS_JSON in files:
        words += load_keys(_Entities, paths / QUERY_ANALYSIS_JSON).entities or ()
    words += _tools(paths.directory) if "steps" in files else []
    header = " ".join((turn.summary or turn.query)[: 2 * _HEADER_CHARS].split())
    marked = "[" in turn.response or "ource" in turn.response
    row = IndexRow(
        node_id=f"turn:{turn.number}",
        source_type="turn_summary",
        header=shorten(f"Turn {turn.number}: {header}", _HEADER_CHARS),
        at=turn.at,
        session=turn.session,
        number=turn.number,
        summary=turn.summary,
        topics=" ".join([*turn.topics, turn.research_topic or ""]).strip(),
        names=" ".join([_date_words(turn.at.year, turn.at.month, turn.at.day), *words]),
        query=turn.query,
        response=strip_citations(turn.response) if marked else turn.response,
    )
    return [row]


@lru_cache(maxsize=1_000)
def _date_words(year: int, month: int, day: int) -> str:
    return f"{datetime(year, month, day, tzinfo=UTC):%Y %B} {day} {datetime(year, month, day, tzinfo=UTC):%A}"


class _Entities(Struct):
    entities: tuple[str, ...] | None = None


class _Tool(Struct):
    tool: str | None = None


def _tools(directory: Path) -> list[str]:
    named = (load_keys(_Tool, path).tool for path in sorted((directory / "steps").glob("step_*.json")))
    return list(dict.fromkeys(tool.replace(".", " ").replace("_", " ") for tool in named if tool))


def memory_rows(source: str, text: str, *, where: str) -> list[IndexRow]:
    """
    The rows of a memory file.

    Args:
        source: preferences.md or facts.md.

    Raises:
        DocumentError: It is corrupt.
    """
    prefix, source_type = ("memory", "preference") if source == PREFERENCES_MD else ("fact", "fact")
    return [
        IndexRow(
            node_id=f"{prefix}:{entry.key}",
            source_type=source_type,
            header=shorten(
                entry.text if is_statement(entry.key) else f"{one_line(entry.key)}: {entry.text}",
                _HEADER_CHARS,
            ),
            at=entry.updated_at,
            summary="" if is_statement(entry.key) else entry.key.replace("_", " "),
            response=entry.text,
        )
        for entry in parse_memory_file(text, where=where)
    ]


def _knowledge_rows(text: str, path: Path, name: str) -> Iterator[IndexRow]:
    document = split_front_matter(text, where=str(path))
    title = one_line(str(document.values.get("title") or PurePosixPath(name).stem))
    tags = render_value(document.values.get("tags") or "")
    sections = split_knowledge(document.body) or (KnowledgeSection("", (), (), ""),)
    by_section = len(document.body) > LONG_CHARS
    for part, section in enumerate(sections):
        headings = (one_line(one) for one in section.headings)
        place = " > ".join([title, *(one for one in headings if one != title)])
        yield IndexRow(
            node_id=f"knowledge:{name}" + (f"#{section.anchor}" if by_section and section.anchor else ""),
            source_type="fact",
            header=shorten(f"Knowledge {name}: {place}", _HEADER_CHARS),
            at=day_of(title),
            part=part,
            summary=place,
            topics=f"{name.replace('_', ' ').replace('/', ' ')} {tags}",
            response=section.text,
        )


def _research_row(research: ResearchRecord) -> IndexRow:
    claims = "\n".join(f"{claim.get('claim') or ''} {claim.get('source') or ''}" for claim in research.claims)
    topic = one_line(research.topic)
    return IndexRow(
        node_id=f"research:{research.topic}",
        source_type="research_cache",
        header=shorten(f"Research {topic}: {one_line(research.summary)}", _HEADER_CHARS),
        at=research.created_at,
        summary=research.summary,
        topics=topic.replace(".", " ").replace("_", " "),
        response=claims,
    )


def _visit_row(directory: Path) -> IndexRow:
    visit = load_visit(directory)
    site = urlsplit_host(visit.url)
    return IndexRow(
        node_id=f"visit:{visit.visit_id}",
        source_type="visit_record",
        header=shorten(f"Visit of {site}: {one_line(visit.title)}", _HEADER_CHARS),
        at=visit.visited_at,
        summary=visit.title,
        topics=visit.page_type,
        names=site,
        response="\n".join([*_field_words(visit.details), *_zone_words(visit)]),
    )


def _zone_words(visit: Visit) -> Iterator[str]:
    for zone in visit.zones:
        if zone.is_quotable:
            yield from zone.items


def _field_words(fields: Mapping[str, object]) -> Iterator[str]:
    for key, value in fields.items():
        if isinstance(value, Mapping):
            yield key.replace("_", " ")
            yield from _field_words(value)
        elif key != "title":
            yield f"{key.replace('_', ' ')} {render_value(value)}"


def urlsplit_host(url: str) -> str:
    """
    The host of a URL without "www.", or the text itself.

    >>> urlsplit_host("https://www.bestbuy.com/site/loq-15")
    'bestbuy.com'
    """
    try:
        host = urlsplit(url).hostname
    except ValueError:
        host = None
    return (host or url).removeprefix("www.")
