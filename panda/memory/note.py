"""Notes of the knowledge directory as nodes, whole or by section, and the notes that they link to."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from panda.documents.markdown import find_wikilinks, section_named, split_knowledge
from panda.documents.text import escape_path, one_line, unescape_path
from panda.documents.times import parse_time
from panda.documents.yaml_text import read_number, split_front_matter
from panda.errors import FileFormatError, NotFoundError
from panda.language.dates import day_of
from panda.memory.confidence import KNOWLEDGE
from panda.memory.node import Node, knowledge_items
from panda.storage.files import read_text, store_errors
from panda.storage.index_scan import list_notes

NOTE = "knowledge:"
"""How the id of a note begins."""

_MOST_LINKED = 5
_DATE_KEYS = ("updated_at", "updated", "modified", "date", "created_at", "created")


def load_note(knowledge: Path, name: str, now: datetime) -> Node:
    """
    One note.

    Args:
        name: Path below it as escape_path writes it, as "Research/troll_farms.md", with "#anchor" for a
            section.
        now: The instant that confidences are computed for.

    Raises:
        NotFoundError: It has no such section, or leads out of the directory.
        FileFormatError: Its front matter is broken.

    Source:
        Design §3 "knowledge", §4 "Node ids".
    """
    path, anchor = _path(knowledge, name), None
    with store_errors(path, "read"):
        is_section = "#" in name and not path.exists()
    if is_section:
        name, _, anchor = name.rpartition("#")
        path = _path(knowledge, name)
    document = split_front_matter(read_text(path), where=str(path))
    title = one_line(str(document.values.get("title") or PurePosixPath(name).stem))
    at = _date(document.values, path) or day_of(title)
    sections = split_knowledge(document.body)
    if anchor is not None:
        section = section_named(sections, anchor)
        if section is None:
            raise NotFoundError(f"there is no section {anchor!r}", where=str(path))
        sections = [section]
    heading = one_line(sections[0].headings[-1]) if anchor and sections[0].headings else title
    passages = [passage for section in sections for passage in section.passages]
    return Node(
        id=f"{NOTE}{name}#{anchor}" if anchor else f"{NOTE}{name}",
        source_type="fact",
        title=title if heading == title else f"{title}: {heading}",
        provenance=escape_path(path.relative_to(knowledge.parent).as_posix()),
        at=at,
        items=knowledge_items(passages, title, _confidence(document.values, path), at, now),
        links=_linked_notes(knowledge, path, "\n".join(passage.text for passage in passages)),
        changed_at=_changed_at(path),
    )


def _changed_at(path: Path) -> datetime:
    with store_errors(path, "read"):
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _path(knowledge: Path, name: str) -> Path:
    path = PurePosixPath(unescape_path(name))
    if path.is_absolute() or ".." in path.parts or "\0" in str(path):
        raise NotFoundError(f"{name!r} is no path below the knowledge directory", where=name)
    return knowledge / path


def _confidence(values: Mapping[str, Any], path: Path) -> float:
    given = values.get("confidence")
    start = KNOWLEDGE if given is None else read_number(given)
    if start is None or not 0 <= start <= 1:
        raise FileFormatError(f"confidence {given!r} is no number from 0 to 1", where=f"{path} (confidence)")
    return start


def _date(values: Mapping[str, Any], path: Path) -> datetime | None:
    given = next((str(values[key]) for key in _DATE_KEYS if values.get(key)), None)
    try:
        return None if given is None else parse_time(given)
    except ValueError as exc:
        raise FileFormatError(f"{given!r} is no date", where=f"{path} (front matter)") from exc


def _linked_notes(knowledge: Path, path: Path, text: str) -> tuple[str, ...]:
    """The first notes that a note links to: by path, else by the end of a path that only one note has."""
    targets = find_wikilinks(text)
    notes = {_parts(note.relative_to(knowledge)): note for note in _notes(knowledge)} if targets else {}
    found: list[str] = []
    for target in targets:
        wanted = _parts(PurePosixPath(unescape_path(target)))
        ends = [note for parts, note in notes.items() if parts[-len(wanted) :] == wanted]
        chosen = notes.get(wanted) or (ends[0] if len(ends) == 1 else None)
        if chosen is not None and chosen != path:
            found.append(f"{NOTE}{escape_path(chosen.relative_to(knowledge).as_posix())}")
    return tuple(dict.fromkeys(found))[:_MOST_LINKED]


def _notes(knowledge: Path) -> list[Path]:
    return [
        knowledge / name for name, may_be_read in sorted(list_notes(str(knowledge)).items()) if may_be_read
    ]


def _parts(path: PurePath) -> tuple[str, ...]:
    """As links compare: in lower case, without the ending."""
    return PurePath(str(path).casefold().removesuffix(".md")).parts
