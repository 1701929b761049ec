"""Nodes loaded by their ids: memory, turns, research, visits, and notes whole or by section (design §4)."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path, PurePath, PurePosixPath
from typing import Protocol, TypeVar

from panda.documents.document_text import split_document
from panda.documents.markdown import find_wikilinks, section_named, split_units
from panda.documents.memory_file import is_statement, written_below
from panda.documents.safe_text import escape_path, one_line, shorten, unescape_path
from panda.errors import FileFormatError, LockHeldError, MemoryNodeError, NotFoundError, StoreError
from panda.index.full_text import Index
from panda.index.sources import list_notes, load_note_text, memory_entries, without_note_suffix
from panda.index.tables import AsOf, IndexView
from panda.language.dates import day_of
from panda.memory.confidence import HANDED_OVER, KNOWLEDGE, MISSING
from panda.memory.fact_reader import Kind
from panda.memory.markdown_files import KINDS, Bound, Projection
from panda.memory.node import Node, note_lines, research_lines, turn_lines, visit_lines
from panda.memory.things import ToldThing, find_told_things
from panda.memory.user_memory import Remembered, load_remembered
from panda.store.files import read_bytes, store_errors
from panda.store.layout import CONTEXT_MD, EXTRACTED_JSON, UserStore
from panda.store.node_id import NodeKind, key_of, kind_of
from panda.store.records import Line, Manifest, Research, load
from panda.store.turn_documents import load_document
from panda.store.visit_records import (
    SAVED_STATUSES,
    Visit,
    find_visits,
    load_turn,
    load_visit,
    turn_directories,
    visit_directories,
    visit_slug,
    visited_page,
)

NOTE = "knowledge:"
"""How the id of a note begins."""
_MOST_LINKED = 5
_TITLE_CHARS = 80
_PREFIXES: Mapping[Kind, str] = {"preference": "memory", "fact": "fact"}
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_R = TypeVar("_R", Research, Manifest)


def load_note(knowledge: Path, name: str, now: datetime) -> Node:
    """
    One note by its path as escape_path writes it, with "#anchor" for a section, which has to be there and in
    the directory (Design §3 "knowledge", §4 "Node ids").
    """
    path = _path(knowledge, name)
    anchor = None
    with store_errors(path, "read"):
        is_section = "#" in name and not path.exists()
    if is_section:
        name, _, anchor = name.rpartition("#")
        path = _path(knowledge, name)
    note, _ = load_note_text(path)
    title = heading = note.title or one_line(PurePosixPath(name).stem)
    sections = note.sections
    if anchor is not None:
        section = section_named(sections, anchor)
        if section is None:
            raise NotFoundError(f"there is no section {anchor!r}", where=str(path))
        sections = (section,)
        heading = one_line(section.headings[-1]) if section.headings else title
    units = [unit for section in sections for unit in section.units]
    start = KNOWLEDGE if note.confidence is None else note.confidence
    at = note.at or day_of(title)
    with store_errors(path, "read"):
        changed_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return Node(
        id=f"{NOTE}{name}#{anchor}" if anchor else f"{NOTE}{name}",
        source_type="fact",
        title=title if heading == title else f"{title}: {heading}",
        provenance=escape_path(path.relative_to(knowledge.parent).as_posix()),
        at=at,
        items=tuple(note_lines(units, title, start, at, now)),
        aliases=note.aliases,
        links=_linked_notes(knowledge, path, "\n".join(unit.text for unit in units)),
        changed_at=changed_at,
    )


def _path(knowledge: Path, name: str) -> Path:
    path = PurePosixPath(unescape_path(name))
    if path.is_absolute() or ".." in path.parts or "\0" in str(path):
        raise NotFoundError(f"{name!r} is no path below the knowledge directory", where=name)
    return knowledge / path


def _linked_notes(knowledge: Path, path: Path, text: str) -> tuple[str, ...]:
    """The first notes that a note links to: by path, else by the end of a path that only one note has."""
    targets = find_wikilinks(text)
    names = sorted(list_notes(str(knowledge)).items()) if targets else ()
    notes = {_parts(PurePath(name)): knowledge / name for name, may_be_read in names if may_be_read}
    linked: list[str] = []
    for target in targets:
        wanted = _parts(PurePosixPath(unescape_path(target)))
        ends = [note for parts, note in notes.items() if parts[-len(wanted) :] == wanted]
        chosen = notes.get(wanted) or (ends[0] if len(ends) == 1 else None)
        if chosen is not None and chosen != path:
            linked.append(f"{NOTE}{escape_path(chosen.relative_to(knowledge).as_posix())}")
    return tuple(dict.fromkeys(linked))[:_MOST_LINKED]


def _parts(path: PurePath) -> tuple[str, ...]:
    return PurePath(without_note_suffix(str(path).casefold())).parts


class Moment:
    """What a turn may read of its user's files. Before a turn begins everything counts, as it is."""

    def __init__(self, store: UserStore) -> None:
        self._store = store
        self.pin(None)

    def pin(self, bound: Bound | None) -> None:
        """Stand still at the beginning of a turn; None goes back to everything as it is."""
        self._bound = bound
        self._still = bound.memory if bound else None
        self._memory = self._still or Projection(self._store)
        self._as_of: AsOf | None = None

    @property
    def own_turns(self) -> frozenset[int]:
        """Turns that the index need not know: the running one, and those outside the store."""
        return self._bound.beside | {self._bound.turn} if self._bound else frozenset()

    def holds(self, number: int) -> bool:
        return self._bound is None or self._bound.holds(number)

    @property
    def memory(self) -> Projection:
        if self._still is not None:
            return self._still
        self._memory.refresh()
        if self._bound is not None:
            self._still = self._memory.as_of(self._bound)
        return self._still or self._memory

    @property
    def index(self) -> AsOf | None:
        """Return which part of the index counts; None for all."""
        if self._as_of is None and (bound := self._bound) is not None:
            sources = dict(bound.sources)
            with suppress(FileFormatError, StoreError):  # the phase that reads it tells
                memory = self.memory
                for kind in KINDS:
                    name = memory.paths[kind].name
                    with suppress(FileFormatError):
                        sources[name] = memory_entries(name, memory.texts[kind] or "", where=name)
            own = () if bound.is_apart else ((bound.turn, bound.turn),)
            turns = bound.snapshot.turns if bound.snapshot else ((1, bound.turn - 1),)
            self._as_of = AsOf((*turns, *own), sources)
        return self._as_of


class NodeLoader(Protocol):
    def load(self, node_id: str) -> Node:
        """The node; raises MemoryNodeError."""
        ...


def find_node(reader: NodeLoader, node_id: str) -> Node | None:
    """The node, if it can be read."""
    with suppress(MemoryNodeError):
        return reader.load(node_id)
    return None


class NodeReader:
    """
    Loads nodes of one user, their confidences by the clock of the store. *moment* bounds turns and memory,
    *index* knows which turns hold a research or visit, *among* are the only turns to look into for these;
    None of each means all.
    """

    def __init__(
        self,
        store: UserStore,
        moment: Moment | None = None,
        index: Index | None = None,
        among: Collection[int] | None = None,
    ) -> None:
        self._store = store
        self._user = store.user
        self._clock = store.clock
        self._moment, self._index, self._among = moment or Moment(self._store), index, among
        self._memory_seen: object = None
        self._memory_known: list[Node] = []

    def load(self, node_id: str) -> Node:
        """One node (Design §4, S1 §9); MemoryNodeError: there is none, several, or it is corrupt."""
        kind, _, name = node_id.partition(":")
        loaders: Mapping[str, Callable[[str, str], Node]] = {
            "turn": self._turn,
            "memory": self._memory,
            "fact": self._memory,
            "research": self._research,
            "visit": self._visit,
            "knowledge": lambda _, name: load_note(self._store.knowledge, name, self._clock()),
            "document": self._document,
        }
        if not name or kind not in loaders or (kind == "turn" and not (name.isascii() and name.isdigit())):
            expected = "turn:N, memory:KEY, fact:KEY, …"
            raise MemoryNodeError(f"{node_id!r} is no node id", where=node_id, expected=expected)
        with _as_node_error(node_id):
            return loaders[kind](node_id, name)

    def check_memory(self) -> None:
        """Raise MemoryNodeError, with file and line, unless memory.jsonl and the memory files can be read."""
        try:
            self._memory_nodes()
        except FileFormatError as exc:
            fix = exc.fix or "mend it, or take the file from a backup"
            raise MemoryNodeError(exc.message, where=exc.where, fix=fix) from exc

    def asserted_since(self, at: datetime) -> bool:
        return any(assertion.asserted_at > at for assertion in self._moment.memory.log.assertions)

    def preferences(self) -> list[Node]:
        """All preferences, in file order; [] if there is no file (MemoryNodeError if it is corrupt)."""
        return self._remembered("preference")

    def facts(self) -> list[Node]:
        return self._remembered("fact")

    def told_things(self) -> list[tuple[ToldThing, list[Node]]]:
        """
        Return what was told, thing by thing in the order of telling, with the nodes of what holds of it now.
        """
        nodes = {key_of(node.id): node for node in (*self.facts(), *self.preferences())}
        things = []
        for thing in find_told_things(self._moment.memory.log.assertions):
            keys = sorted(subject.key(self._user) for subject in thing.subjects)
            if holding := [nodes[key] for key in keys if key in nodes]:
                things.append((thing, holding))
        return things

    def statements(self) -> list[Node]:
        return [node for node in self.facts() if is_statement(node.title)]

    def _remembered(self, kind: Kind) -> list[Node]:
        with _as_node_error(f"{_PREFIXES[kind]}:*"):
            return [node for node in self._memory_nodes() if node.source_type == kind]

    def _memory_nodes(self) -> list[Node]:
        """Return the nodes of all keys; raises FileFormatError."""
        memory = self._moment.memory
        now = self._clock()
        state = (now, memory.log.extent, dict(memory.texts))
        if state != self._memory_seen:
            remembered = load_remembered(memory, now)
            self._memory_known = [
                _remembered_node(entry, memory.paths[entry.kind].name, now)
                for entry in remembered
                if entry.subject.scope == "local"
            ]
            self._memory_seen = state
        return self._memory_known

    def _memory(self, node_id: str, name: str) -> Node:
        kind: Kind = "preference" if kind_of(node_id) is NodeKind.MEMORY else "fact"
        for node in self._remembered(kind):
            if node.id == node_id:
                return node
        path = self._moment.memory.paths[kind]
        if name != path.name:
            raise NotFoundError(f"there is no key {name!r}", where=str(path))
        text = written_below(self._moment.memory.texts[kind] or "", where=str(path))  # by its owner
        lines = note_lines(split_units(text), path.stem, KNOWLEDGE, None, self._clock())
        return Node(
            id=node_id,
            source_type=kind,
            title=path.stem,
            provenance=path.name,
            at=None,
            items=tuple(lines),
        )

    def _turn(self, node_id: str, name: str) -> Node:
        paths = self._store.turn(int(name))
        number = int(name)
        record = load_turn(paths, number)
        if record.status not in SAVED_STATUSES:
            message = f"turn {number} is {record.status or 'without status'}"
            raise FileFormatError(message, where=str(paths.directory))
        return Node(
            id=node_id,
            source_type="turn_summary",
            title=shorten(one_line(record.summary) or one_line(record.query), _TITLE_CHARS),
            provenance=self._relative(paths / CONTEXT_MD),
            at=record.at,
            items=turn_lines(record, self._clock()),
            links=(NodeKind.RESEARCH.id(record.research_topic),) if record.research_topic else (),
        )

    def _document(self, node_id: str, name: str) -> Node:
        """A document of a turn, "813/contract.pdf"."""
        number, _, own_name = name.partition("/")
        if not (number.isascii() and number.isdecimal()) or not self._moment.holds(int(number)):
            raise NotFoundError(f"there is no document {name!r}", where=node_id)
        paths = self._store.turn(int(number))
        document = load_document(paths, own_name)
        at = document.record.added_at
        units = split_document(document.text, document.record.content_type)
        return Node(
            id=node_id,
            source_type="user_document",
            title=document.name,
            provenance=self._relative(paths / document.record.file),
            at=at,
            items=tuple(note_lines(units, "", HANDED_OVER, at, self._clock())),
        )

    def visits(self, urls: Collection[str]) -> dict[str, Visit]:
        pages = {visit_slug(url) for url in urls}
        turns = self._turns_by(lambda view: [n for n, name in view.visits() if visited_page(name) in pages])
        return find_visits(list(reversed(self._all_turns() if turns is None else turns)), urls)

    def _named(self, kind: type[_R], node_id: str, key: str) -> list[tuple[Path, _R]]:
        """Records and their files: of the turns that the index names and the running one, else of all."""
        name = node_id.partition(":")[2]
        named_records = list[tuple[Path, _R]]()
        turns = self._turns_by(lambda view: [entry.turn for entry in view.nodes([node_id]) if entry.turn])
        for among in ([] if turns is None else turns, self._all_turns()):
            if named_records:
                break
            for turn in among:
                places = [turn] if kind is Research else visit_directories(turn)
                paths = (place / kind.FILE for place in places)
                records = [(path, load(kind, path)) for path in paths if _may_name(path, name)]
                named_records += [(path, record) for path, record in records if getattr(record, key) == name]
        return named_records

    def _all_turns(self) -> list[Path]:
        numbers = self._among
        if numbers is None:
            numbers = {n for n, _ in turn_directories(self._store.turns)} | self._moment.own_turns
        return [self._store.turn(n).directory for n in sorted(numbers) if self._moment.holds(n)]

    def holds_words(self, terms: Collection[str]) -> bool:
        """
        Return whether each of some terms stands somewhere in what the user has; not where no index can tell.
        """
        if self._index is None or not terms:
            return False
        with suppress(LockHeldError, StoreError):
            return self._index.read(
                self._user,
                lambda view: all(len(view.postings(term)[0]) for term in terms),
                as_of=self._moment.index,
            )
        return False

    def _turns_by(self, numbers: Callable[[IndexView], Iterable[int]]) -> list[Path] | None:
        """The turns that the index names, with those that it need not know; None where it cannot tell."""
        if self._index is None:
            return None
        try:
            holding = {*self._index.read(self._user, numbers), *self._moment.own_turns}
        except (LockHeldError, StoreError):
            return None
        places = (self._store.turn(n).directory for n in sorted(holding) if self._moment.holds(n))
        return [place for place in places if place.is_dir()]

    def _research(self, node_id: str, topic: str) -> Node:
        named_records = self._named(Research, node_id, "topic")
        if not named_records:
            for place in (turn / Research.FILE for turn in self._all_turns()):
                if place.is_file():
                    load(Research, place)  # raises what is wrong with it: it may be the one
            raise NotFoundError(f"no research on {topic!r}", where=str(self._store.turns))
        path, record = max(named_records, key=lambda pair: pair[1].created_at or _LONG_AGO)
        return Node(
            id=node_id,
            source_type="research_cache",
            title=one_line(record.topic),
            provenance=self._relative(path),
            at=record.created_at,
            items=tuple(research_lines(record, self._clock())),
            links=tuple(NodeKind.VISIT.id(visit_id) for visit_id in record.webpage_cache),
            expires_at=record.expires_at,
            warnings=_assumed(node_id, "quality_score", record.quality_score) if record.summary else (),
            quality=record.quality_score,
        )

    def _visit(self, node_id: str, visit_id: str) -> Node:
        directories = [path.parent for path, _ in self._named(Manifest, node_id, "visit_id")]
        if not directories:
            raise NotFoundError(f"no visit {visit_id!r}", where=str(self._store.turns))
        if len(directories) > 1:
            paths = ", ".join(map(self._relative, directories))
            message = f"{len(directories)} visits are called {visit_id!r}: {paths}"
            raise FileFormatError(message, where=str(directories[1]))
        visit = load_visit(directories[0])
        return Node(
            id=node_id,
            source_type="visit_record",
            title=one_line(visit.title or visit.manifest.url),
            provenance=self._relative(directories[0] / EXTRACTED_JSON),
            at=visit.manifest.visited_at,
            items=tuple(visit_lines(visit, self._clock())),
            warnings=_assumed(node_id, "extraction_quality", visit.manifest.extraction_quality),
            url=visit.manifest.url,
            quality=visit.manifest.extraction_quality or 0.0,
        )

    def _relative(self, path: Path) -> str:
        return escape_path(self._store.name_of(path))


class PastReader(NodeReader):
    """Loads the nodes of a user as they were when a turn began; pages and notes as they are now."""

    def __init__(self, store: UserStore, bound: Bound, *, among: Collection[int] | None = None) -> None:
        moment = Moment(store)
        moment.pin(bound)
        super().__init__(store.at(lambda: bound.at), moment, among=among)
        self.at = bound.at

    def has_changed(self, node: Node) -> bool:
        return node.at is not None and node.at > self.at


def _assumed(node_id: str, what: str, score: float | None) -> tuple[str, ...]:
    return (f"{node_id} has no {what}; {MISSING:.2f} assumed",) if score is None else ()


def _may_name(path: Path, name: str) -> bool:
    """Return whether a research or visit is there and worth a look: it holds the name, as JSON writes it."""
    part = max(name.split("\ufffd"), key=len)  # an id has this where a text has half a surrogate pair
    forms = {json.dumps(part, ensure_ascii=plain)[1:-1].encode() for plain in (True, False)}
    with suppress(StoreError):  # what does not read is no other's fault
        data = read_bytes(path)
        return any(form in data for form in forms)
    return False


def _remembered_node(remembered: Remembered, file_name: str, now: datetime) -> Node:
    node_id = f"{_PREFIXES[remembered.kind]}:{remembered.key}"
    key = one_line(remembered.key)
    statement = remembered.statement
    text = statement if is_statement(remembered.subject.relation) else f"{key}: {statement}"
    ages = remembered.fact.content_type
    sure = remembered.confidence(now)
    return Node(
        id=node_id,
        source_type=remembered.kind,
        title=key,
        provenance=file_name,
        at=remembered.at,
        items=(Line(text, ages, sure, remembered.at, heading=remembered.corrects),),
        expires_at=remembered.fact.valid_until,
        warnings=_assumed(node_id, "confidence", remembered.start),
        source_turn=remembered.fact.source_turn,
    )


@contextmanager
def _as_node_error(node_id: str) -> Iterator[None]:
    try:
        yield
    except (FileFormatError, NotFoundError, StoreError) as exc:
        # No id says which file of a memory it is.
        place = f" ({exc.where})" if node_id.endswith(":*") and exc.where else ""
        message = f"{node_id}: {exc.message}{place}"
        raise MemoryNodeError(message, where=exc.where, fix=exc.fix, details={"node_id": node_id}) from exc
