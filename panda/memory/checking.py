"""What is wrong with a user's memory beyond the syntax of its files, for `panda validate`."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from panda.documents.escaping import escape_path
from panda.documents.front_matter import split_front_matter
from panda.documents.memory_file import parse_memory_file
from panda.documents.memory_list import MemoryList
from panda.documents.passages import split_passages
from panda.documents.problems import Problem, Verdict
from panda.documents.wikilinks import is_only_wikilinks
from panda.documents.yaml_entries import split_entries
from panda.errors import PandaError
from panda.memory.assertions import id_of
from panda.memory.keys import canonical_key, file_value
from panda.memory.loading import unquotable_for
from panda.memory.node import Node
from panda.memory.notes import load_note
from panda.memory.projection import KINDS, Projection
from panda.memory.staging import Kind
from panda.storage.checking_files import problem_of
from panda.storage.files import read_text
from panda.storage.index_scan import list_notes
from panda.storage.layout import (
    CONFLICTS_JSONL,
    FACTS_MD,
    MEMORY_JSONL,
    PREFERENCES_MD,
    STAGED_MEMORY_JSON,
    Layout,
)
from panda.storage.names import turn_number
from panda.storage.records import load_object
from panda.storage.sealing import is_sealed

_OWN_ID = re.compile(r"fact-[0-9a-f]{16}")
_RESTORE = "restore memory.jsonl, which only grows; to change what holds: panda memory set or retract"
_NAMES = frozenset({PREFERENCES_MD, FACTS_MD, MEMORY_JSONL, CONFLICTS_JSONL})


def check_memory(root: Path, places: Sequence[Path], now: datetime) -> list[Problem]:
    """
    Ids that are there twice, conflict records that name no fact, and lines of the memory files that do not
    say what whoever typed them may think.

    Args:
        root: The store.
        places: What to check, as for check_store; empty for all users.
        now: The instant that expiry is judged by.
    """
    layout = Layout(root)
    users = sorted(path.name for path in layout.users.iterdir()) if layout.users.is_dir() else []
    found: list[Problem] = []
    for user in users:
        directory = layout.user(user)
        if not places or any(_concerns(place.absolute(), directory.absolute()) for place in places):
            found += _check_user(layout, user, now)
        found += check_notes(Layout(root.absolute()), user, [place.absolute() for place in places], now)
    return found


def _concerns(place: Path, directory: Path) -> bool:
    return directory.is_relative_to(place) or (place.parent == directory and place.name in _NAMES)


def _check_user(layout: Layout, user: str, now: datetime) -> list[Problem]:
    state = Projection(layout, user)
    paths = [layout.memory_log(user), layout.conflicts_log(user), *state.paths.values()]
    try:
        state.refresh()
        return [*_records(layout, state), *_altered(layout, state), *_entries(state, now)]
    except PandaError as exc:
        path = next((one for one in paths if (exc.where or "").startswith(str(one))), paths[0])
        return [problem_of(exc, path)]


def check_notes(layout: Layout, user: str, places: Sequence[Path], now: datetime) -> Iterator[Problem]:
    """
    Notes that no turn and no index can read, folders of them that cannot be listed, and, as sound, lines of
    the other notes that cannot be quoted.

    Args:
        layout: The store.
        user: Whose notes.
        places: Absolute paths to check; empty for all notes.
        now: The present.
    """
    knowledge = layout.knowledge(user)
    unlisted: list[OSError] = []
    for _ in os.walk(knowledge, onerror=unlisted.append):
        pass
    for error in unlisted:
        if isinstance(error, FileNotFoundError) or not _within(Path(error.filename), places):
            continue
        message = f"cannot be listed: {error.strerror}; its notes are not indexed"
        yield Problem(str(error.filename), message, verdict=Verdict.NOT_JUDGED)
    for name, may_be_read in list_notes(str(knowledge)).items():
        path = knowledge / name
        if not (may_be_read and name and _within(path, places)):
            continue  # a link that may not be followed is a finding of its own
        try:
            yield from _unquotable_lines(path, load_note(knowledge, escape_path(name), now))
        except PandaError as exc:
            yield problem_of(exc, path)


def _unquotable_lines(path: Path, note: Node) -> Iterator[Problem]:
    """The lines of a note that no answer can quote, which is no fault of theirs."""
    text = read_text(path)
    body = split_front_matter(text, where=str(path)).body
    above = text.count("\n") - body.count("\n")
    reasons = [(item.line or 0, unquotable_for(item)) for item in note.items]
    links = [one for one in split_passages(body) if one.form != "item" and is_only_wikilinks(one.text)]
    reasons += [(one.line, "it holds nothing but links") for one in links]
    for line, reason in sorted(reasons):
        if reason:
            yield Problem(str(path), f"cannot be quoted: {reason}", above + line, verdict=Verdict.SOUND)


def _within(path: Path, places: Sequence[Path]) -> bool:
    return not places or any(path.is_relative_to(place) for place in places)


def _records(layout: Layout, state: Projection) -> Iterator[Problem]:
    for record in state.log.conflicts:
        if missing := state.log.missing_facts(record):
            yield Problem(
                str(layout.conflicts_log(state.user)),
                f"{record.conflict_id} names facts that are not in {MEMORY_JSONL}: {', '.join(missing)}",
                fix="merge the log that has them: panda memory merge FILE",
            )


def _altered(layout: Layout, state: Projection) -> Iterator[Problem]:
    """Lines that say something else than was asserted, and statements of saved turns that have no line."""
    path, said = str(layout.memory_log(state.user)), set()
    sealed = cache(lambda number: is_sealed(layout.turn(state.user, number)))
    for one in state.log.assertions:
        fact = one.fact
        said.add((fact.source, fact.entity, fact.relation))
        kind, _, number = (fact.source or "").partition(":")
        # `panda init --demo` of old moved clock readings under ids that stayed.
        vouched = kind != "turn" or (number.isdecimal() and sealed(int(number)))
        if vouched and _OWN_ID.fullmatch(fact.id) and fact.id != id_of(fact):
            yield Problem(path, f"{fact.id} says something else than was asserted", key="id", fix=_RESTORE)
    for staged in sorted(layout.turns(state.user).glob(f"turn_*/{STAGED_MEMORY_JSON}")):
        turn = turn_number(staged.parent.name)
        value = load_object(staged) if turn is not None and sealed(turn) else {}
        for raw in value["staged"] if value.get("applied") else ():
            if (f"turn:{turn}", raw["entity"], raw["relation"]) not in said:
                yield Problem(path, f"{raw['relation']} of turn {turn} is not there", fix=_RESTORE)


def _entries(state: Projection, now: datetime) -> Iterator[Problem]:
    for kind in KINDS:
        yield from _odd_keys(state, kind)
    preferred = state.entries("preference") or {}
    for key, entry in (state.entries("fact") or {}).items():
        if key in preferred:
            message = f"{entry.key} is in {PREFERENCES_MD} too, and that is what holds"
            yield Problem(str(state.paths["fact"]), message, line=entry.line, fix="remove one of them")
    for one in state.compare(now):
        winner = one.standing.winner if one.standing else None
        if one.verdict == "same" and one.entry is not None and winner is not None:
            body = split_front_matter(state.texts[one.kind] or "", where=str(state.paths[one.kind])).body
            if MemoryList(body, "\n").says_otherwise(one.entry.key, file_value(winner.fact.value)):
                message = f"the list shows another value of {one.entry.key} than the front matter"
                fix = "change it in the front matter: the list only shows it"
                yield Problem(str(state.paths[one.kind]), message, line=one.entry.line, fix=fix)


def _odd_keys(state: Projection, kind: Kind) -> Iterator[Problem]:
    text, where = state.texts[kind] or "", str(state.paths[kind])
    for entry in parse_memory_file(text, where=where):
        if canonical_key(entry.key, kind, state.user) is None:
            message = f"{entry.key!r} is no key for a memory; the line counts for nothing"
            yield Problem(where, message, line=entry.line, fix="use a word such as budget")
    front = split_front_matter(text, where=where)
    found = split_entries(front.yaml_text) or ()
    counts = Counter(one.key for one in found)
    for one in found:
        if counts.pop(one.key, 0) > 1:
            message = f"{one.key} is there more than once; the last one holds"
            yield Problem(where, message, line=front.yaml_line + one.line, fix="remove the others")
