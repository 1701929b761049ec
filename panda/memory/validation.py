"""What `panda validate` finds in a user's memory, and whether §2 of saved turns can be believed."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET, structs

from panda.documents.context import Phase
from panda.documents.markdown import is_only_wikilinks
from panda.documents.memory_file import MemoryText, parse_memory_file, suggest_field
from panda.documents.progress import progress
from panda.documents.safe_text import escape_path
from panda.documents.times import parse_time, without_last_seen
from panda.documents.yaml_text import split_front_matter
from panda.errors import MemoryNodeError, NoteFormatError, Problem, Verdict
from panda.index.sources import find_note_files, load_note_text, skipped_files
from panda.memory.budget import unquotable_for
from panda.memory.fact_reader import file_value, id_of
from panda.memory.gathered import (
    CONSTRAINTS,
    CUT_MARK,
    NO_CONSTRAINTS,
    STALE,
    UNKNOWN_NODE,
    ReadSection,
    check_sections,
    is_stale,
    read_gathered,
    render_line,
)
from panda.memory.markdown_files import KINDS, Bound, Projection, canonical_key
from panda.memory.node import Node
from panda.memory.reader import PastReader, load_note
from panda.store.files import is_temporary
from panda.store.layout import (
    CALLS_JSONL,
    CONFLICTS_JSONL,
    CONTEXT_MD,
    FACTS_MD,
    MEMORY_JSONL,
    PREFERENCES_MD,
    STAGED_MEMORY_JSON,
    Layout,
    TurnPaths,
    UserStore,
    turn_number,
    users_of,
)
from panda.store.node_id import NodeKind
from panda.store.records import (
    Call,
    GatheredContext,
    GatheredSection,
    GeneratedCall,
    Metadata,
    StagedMemory,
    load,
)
from panda.store.seals import is_sealed
from panda.store.turns import TurnFolder

_OWN_ID = re.compile(r"fact-[0-9a-f]{16}")
_RESTORE = "restore memory.jsonl, which only grows; to change what holds: panda memory set or retract"
_NAMES = frozenset({PREFERENCES_MD, FACTS_MD, MEMORY_JSONL, CONFLICTS_JSONL})
_SYNTHESIS = "phase2_2_synthesis"
_COMPRESSION = "compress/"
JUDGED = "§2"
"""Key of what was judged."""
_NOTHING = "none stated"


def check_memory(root: Path, places: Sequence[Path], now: datetime) -> list[Problem]:
    """Return what is wrong in the memories of all users, or at some places, and in their notes."""
    within = [place.absolute() for place in places]
    problems = list[Problem]()
    for user in users_of(Layout(root)):
        store = Layout(root).of(user)
        home = Layout(root.absolute()).of(user).home
        is_named = any(home.is_relative_to(at) or (at.parent == home and at.name in _NAMES) for at in within)
        if is_named or not within:
            state = Projection(store)
            try:
                state.refresh()
                problems += [*_records(store, state), *_altered(store, state), *_entries(state, now)]
            except Problem as exc:
                problems.append(exc)
        problems += check_notes(Layout(root.absolute()).of(user), within, now)
    return problems


def check_memory_of_turns(turns: Sequence[Path]) -> Iterator[Problem]:
    """Yield what makes the memory of the users of these turn directories unreadable: a turn rests on it."""
    homes = dict.fromkeys(turn.absolute().parent.parent for turn in turns)
    for home in (home for home in homes if home.parent.name == "users"):
        state = Projection(Layout(home.parent.parent).of(home.name))
        try:
            state.refresh()
            for kind in KINDS:
                state.entries(kind)
        except Problem as exc:
            yield exc


def check_notes(store: UserStore, places: Sequence[Path], now: datetime) -> Iterator[Problem]:
    """
    Notes that no turn and no index can read, folders that cannot be listed, and, as sound, what of the other
    notes is read as text or cannot be quoted, and files that are no notes; all or those at absolute *places*.
    """
    knowledge = store.knowledge
    unlisted = list[OSError]()
    for _ in os.walk(knowledge, onerror=unlisted.append):
        pass
    for error in unlisted:
        if not isinstance(error, FileNotFoundError) and _within(Path(error.filename), places):
            message = f"cannot be listed: {error.strerror}; its notes are not indexed"
            yield Problem(message, str(error.filename), verdict=Verdict.NOT_JUDGED)
    files = find_note_files(str(knowledge))
    for name, may_be_read in files.notes.items():
        path = knowledge / name
        if may_be_read and name and _within(path, places):  # another link is a finding of its own
            try:
                yield from _findings_of_note(path, load_note(knowledge, escape_path(name), now))
            except Problem as exc:
                yield exc
    yield from skipped_files(knowledge, [name for name in files.skipped if _within(knowledge / name, places)])


def _findings_of_note(path: Path, node: Node) -> Iterator[Problem]:
    """Yield what of a note is read as text, and its lines that cannot be quoted."""
    note, _ = load_note_text(path)
    yield from note.faults
    units = (unit for section in note.sections for unit in section.units)
    links = (unit for unit in units if unit.form != "item" and is_only_wikilinks(unit.text))
    reasons = [(item.line or 0, unquotable_for(item)) for item in node.items]
    reasons += [(unit.line, "it holds nothing but links") for unit in links]
    for line, reason in sorted(reasons):
        if reason:
            yield Problem(f"cannot be quoted: {reason}", str(path), line=line or None, verdict=Verdict.SOUND)


def _within(path: Path, places: Sequence[Path]) -> bool:
    return not places or any(path.is_relative_to(place) for place in places)


def _records(store: UserStore, state: Projection) -> Iterator[Problem]:
    for record in state.log.conflicts:
        if missing := state.log.missing_facts(record):
            message = f"{record.conflict_id} names facts that are not in {MEMORY_JSONL}: {', '.join(missing)}"
            fix = "merge the log that has them: panda memory merge FILE"
            yield Problem(message, str(store.conflicts_log), fix=fix)


def _altered(store: UserStore, state: Projection) -> Iterator[Problem]:
    path = str(store.memory_log)
    asserted_keys = set()
    sealed = cache(lambda number: is_sealed(store.turn(number)))
    for fact in state.log.assertions:
        asserted_keys.add((fact.source, fact.entity, fact.relation))
        kind, _, number = (fact.source or "").partition(":")
        # `panda init --demo` of old moved clock readings under ids that stayed.
        vouched = kind != "turn" or (number.isdecimal() and sealed(int(number)))
        if vouched and _OWN_ID.fullmatch(fact.id) and fact.id != id_of(fact):
            yield Problem(f"{fact.id} says something else than was asserted", path, key="id", fix=_RESTORE)
    for staged in sorted(store.turns.glob(f"turn_*/{STAGED_MEMORY_JSON}")):
        turn = turn_number(staged.parent.name)
        memory = load(StagedMemory, staged) if turn is not None and sealed(turn) else None
        if memory is None or not memory.applied:
            continue
        for staged_value in memory.staged:
            if (NodeKind.TURN.id(turn), staged_value.entity, staged_value.relation) not in asserted_keys:
                yield Problem(f"{staged_value.relation} of turn {turn} is not there", path, fix=_RESTORE)


def _entries(state: Projection, now: datetime) -> Iterator[Problem]:
    preferred = state.entries("preference") or {}
    for kind in KINDS:
        text = state.texts[kind] or ""
        where = str(state.paths[kind])
        names = [name for name, _ in split_front_matter(text, where=where).pairs]
        counts = Counter(name.value for name in names)
        for name in names:
            if counts.pop(name.value, 0) > 1:
                message = f"{name.value} is there more than once; the last one holds"
                yield Problem(message, where, line=name.line, fix="remove the others")
        for entry in parse_memory_file(text, where=where):
            for fault in entry.faults:
                message = f"{entry.key}: {fault}, and counts as not written"
                yield NoteFormatError(message, where, line=entry.line, verdict=Verdict.SOUND)
            key = canonical_key(entry.key, kind, state.user)
            typed = entry.value
            parts = typed if isinstance(typed, list) else [typed]
            if key is None:
                message = f"{entry.key!r} is no key for a memory; the line counts for nothing"
                yield Problem(message, where, line=entry.line, fix="use a word such as budget")
            elif kind == "fact" and key in preferred:
                message = f"{entry.key} is in {PREFERENCES_MD} too, and that is what holds"
                yield Problem(message, where, line=entry.line, fix="remove one of them")
            if any(isinstance(part, Mapping | list) for part in parts):
                message = f"what is nested in {entry.key} counts as the text {entry.text!r:.80}"
                fix = suggest_field(typed) or "write a key of its own for each part"
                yield Problem(message, where, line=entry.line, fix=fix, verdict=Verdict.SOUND)
    memory_texts = {k: MemoryText(state.texts[k] or "", title="", where=str(state.paths[k])) for k in KINDS}
    for comparison in state.compare(now):
        if (
            comparison.verdict != "same"
            or comparison.entry is None
            or comparison.standing is None
            or comparison.standing.winner is None
        ):
            continue
        key = comparison.entry.key
        value = file_value(comparison.standing.winner.value)
        if memory_texts[comparison.kind].lists_otherwise(key, value):
            message = f"the list shows another value of {key} than the front matter"
            fix = "change it in the front matter: the list only shows it"
            yield Problem(message, str(state.paths[comparison.kind]), line=comparison.entry.line, fix=fix)


def judge_gathered(root: Path, paths: Sequence[Path]) -> list[Problem]:
    """
    Return what is wrong with §2 of the turns below some places, or in the whole store (S0 §4, §6; design §4
    "Validation"); not judged is what rests on a source that has changed or gone since, and a §2 whose files
    do not read.
    """
    places = [path.absolute() for path in paths] or [root]
    turns = dict.fromkeys(turn for place in places for turn in _turns(place))
    problems = []
    with progress("judging", len(turns)) as advance:
        for turn in turns:
            problems += judge_turn(turn)
            advance()
    return problems


def _turns(place: Path) -> Iterator[Path]:
    if place.is_file():
        if place.name == CONTEXT_MD and turn_number(place.parent.name) is not None:
            yield place.parent
    elif turn_number(place.name) is not None:
        yield place
    elif place.is_dir():
        for depth in ("turns", "*/turns", "users/*/turns", ""):
            for path in sorted(place.glob(f"{depth}/turn_*" if depth else "turn_*")):
                if path.is_dir() and turn_number(path.name) is not None and not is_temporary(path):
                    yield path


def judge_turn(directory: Path) -> list[Problem]:
    """
    Return what is wrong with §2 of one turn directory; nothing of one that is not below users/{user}/turns.
    """
    number = turn_number(directory.name)
    users = directory.parent.parent.parent
    if number is None or directory.parent.name != "turns" or users.name != "users":
        return []
    path = directory / CONTEXT_MD
    try:
        turn = TurnFolder(number, TurnPaths(directory), lambda: datetime.now(UTC))
        metadata = turn.load(Metadata)
        if metadata.forgotten_at:
            return []  # what is left is what its seal holds
        document = turn.read_context()
        section = document.section(Phase.CONTEXT_GATHERER)
        if section is None:
            return []
        gathered = turn.find(GatheredContext)
        began = parse_time(gathered.gathered_at) if gathered else document.front.created_at
        user = directory.parent.parent.name
        past = PastReader(Layout(users.parent).of(user), Bound(number, began, turn.snapshot()))
        calls = turn.load_calls()
        quotes = turn.has(CALLS_JSONL) and not _is_drafted(calls)
        judge = _Judge(past, gathered, quotes=quotes, wordings=_wordings(calls))
        findings = judge.findings(read_gathered(section), metadata.query)
    except Problem as exc:
        exc.verdict = Verdict.NOT_JUDGED
        return [exc]
    return [
        Problem(finding.message, str(path), key=JUDGED, verdict=finding.verdict, fix=finding.fix)
        for finding in dict.fromkeys(findings)
    ]


def _is_drafted(turn_calls: Sequence[Call]) -> bool:
    """Return whether a model worded the lines of §2 itself, as it did in earlier versions."""
    generated = (call for call in turn_calls if isinstance(call, GeneratedCall) and _SYNTHESIS in call.recipe)
    return any('"sections"' in call.output for call in generated)


def _wordings(turn_calls: Sequence[Call]) -> list[str]:
    """Return what a model wrote to shorten units of §2, in paragraphs of one or more, the longest first."""
    generated = (call for call in turn_calls if isinstance(call, GeneratedCall))
    replies = [call.output for call in generated if call.recipe.startswith(_COMPRESSION)]
    written = {_plain(text) for reply in replies for text in (reply, *reply.split("\n\n"))}
    return sorted(filter(None, written), key=len, reverse=True)


def _plain(text: str) -> str:
    return " ".join(text.split())


class _Finding(NamedTuple):
    message: str
    verdict: Verdict
    fix: str | None = None


class _Judge:
    """
    Judges one turn's §2 by the nodes as they were.

    Args:
        past: Gives the nodes.
        gathered: What the turn recorded of §2; None if it recorded nothing.
        quotes: Whether every line must stand in a node.
        wordings: What a model wrote in the place of units of §2.
    """

    def __init__(
        self, past: PastReader, gathered: GatheredContext | None, *, quotes: bool, wordings: Sequence[str]
    ) -> None:
        self._past = past
        self._quotes = quotes
        self._wordings = wordings
        documents = gathered.documents if gathered else UNSET
        self._loaded = {document.node_id for document in documents} if documents is not UNSET else None
        self._lines = {part.title: part.items for part in gathered.sections} if gathered else {}
        self._nodes: dict[str, Node] = {}
        self._lost: dict[str, Verdict] = {}

    def findings(self, parts: Sequence[ReadSection], query: str) -> list[_Finding]:
        """Return what is wrong with the parts, or cannot be judged."""
        findings: list[_Finding] = []
        for part in parts:
            faults = [_Finding(fault, Verdict.UNSOUND) for fault in part.faults]
            faults += [fault for node_id in part.section.node_ids for fault in self._fault_of(node_id)]
            findings += [fault._replace(message=f"{_place(part)}{fault.message}") for fault in faults]
        readable = [part for part in parts if not part.is_old]
        sections = [self._whole(part) for part in readable]
        issues = check_sections(sections, self._nodes, self._past.at, query=query)
        if any(part.section.title == CONSTRAINTS for part in parts):
            issues = [issue for issue in issues if issue != NO_CONSTRAINTS]
        issues = [issue for issue in issues if not issue.endswith(UNKNOWN_NODE)]
        issues += [issue for part in readable for issue in self._line_issues(part)]
        changed = tuple(_place(part) for part in parts if self._is_unsure(part))
        for issue in issues:
            if issue.startswith(changed):
                findings.append(_Finding(f"{issue}, and its sources have changed since", Verdict.NOT_JUDGED))
            else:
                findings.append(_Finding(issue, Verdict.UNSOUND))
        unrecorded = (issue for part in readable for issue in self._unrecorded(part))
        return [*findings, *(_Finding(issue, Verdict.UNSOUND) for issue in unrecorded)]

    def _fault_of(self, node_id: str) -> Iterator[_Finding]:
        """Load a source and yield what is wrong with it."""
        is_known = self._loaded is not None and node_id in self._loaded
        try:
            if node_id not in self._nodes:
                self._nodes[node_id] = self._past.load(node_id)
        except Problem as exc:
            may_be = is_known or not isinstance(exc, MemoryNodeError)
            self._lost[node_id] = Verdict.NOT_JUDGED if may_be else Verdict.UNSOUND
            yield _Finding(exc.message, self._lost[node_id], exc.fix)
        else:
            if self._loaded is not None and not is_known:
                yield _Finding(f"{node_id} was not loaded in this turn", Verdict.UNSOUND)

    def _is_unsure(self, part: ReadSection) -> bool:
        ids = part.section.node_ids
        lost = any(self._lost.get(node_id) is Verdict.NOT_JUDGED for node_id in ids)
        return lost or any(
            self._past.has_changed(self._nodes[node_id]) for node_id in ids if node_id in self._nodes
        )

    def _line_issues(self, part: ReadSection) -> Iterator[str]:
        for item, line in part.pairs():
            cited = [self._nodes[node_id] for node_id in item.node_ids if node_id in self._nodes]
            if CUT_MARK in line or not cited or len(cited) < len(item.node_ids) or "[" not in line:
                continue
            moments = (self._past.at, self._past.at + timedelta(seconds=1))  # it is written to the second
            rendered = [_plain(render_line(item, part.section, self._nodes, at)) for at in moments]
            unmarked = [text.replace(f", {STALE}", "") for text in rendered]  # before lines were marked
            is_old = not any(is_stale(node, self._past.at) for node in cited) and _plain(line) in unmarked
            if _plain(line) not in rendered and not is_old:
                yield f"{_place(part)}{_plain(line)!r:.100} is rendered as {rendered[0]!r:.100}"
            text = _plain(without_last_seen(item.text))
            is_worded = any(text in wording for wording in self._wordings)
            if self._quotes and not is_worded and not any(text in _plain(node.text) for node in cited):
                yield f"{_place(part)}{text!r:.80} is no quotation of {', '.join(item.node_ids)}"

    def _unrecorded(self, part: ReadSection) -> Iterator[str]:
        recorded = self._lines.get(part.section.title)
        if recorded is None:
            return
        there = {_plain(item.text) for item in recorded} - {_NOTHING}
        section_texts = {_plain(item.text) for item in part.section.items}
        cut = {_plain(item.text) for item, line in part.pairs() if CUT_MARK in line}
        worded = 0
        for text in sorted(section_texts - there - cut):
            rest = text
            for wording in self._wordings:
                rest = rest.replace(wording, "")
            if rest != text and any(rest.strip() in line for line in there):
                worded += 1  # units of a recorded line were worded anew
                continue
            yield f"{_place(part)}gathered_context.json does not hold the line {text!r:.80}"
        lost = sorted(there - section_texts)
        if part.is_cut or len(lost) <= worded:
            return
        for text in lost:
            yield f"{_place(part)}lacks the line {text!r:.80} of gathered_context.json"

    def _whole(self, part: ReadSection) -> GatheredSection:
        lines = self._lines.get(part.section.title, ()) if part.is_cut else ()
        return structs.replace(part.section, items=tuple(dict.fromkeys([*lines, *part.section.items])))


def _place(part: ReadSection) -> str:
    return f"section {part.section.title}: "
