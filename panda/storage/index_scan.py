"""What lies on disk for the index: every source of a user, with a stamp that changes when it is written."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from panda.documents.text import escape_path
from panda.errors import UntrustedError
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
    turn_name,
)
from panda.storage.links import check_links, may_pass
from panda.storage.names import is_id, turn_number

TURNS = "turns"
"""Not a source: its stamp tells whether turn directories came or went."""

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


def scan_turns(layout: Layout, user: str, names: Iterable[str]) -> dict[str, str]:
    """
    What the named turn directories give, with stamps; nothing for one that is not there.

    Args:
        layout: Where the store is.
        user: Whose turns.
        names: Names of turn directories.
    """
    turns = f"{layout.user(user)}/{TURNS}"
    found: dict[str, str] = {}
    for name in names:
        _scan_turn(f"{turns}/{name}", f"{TURNS}/{name}", found)
    return found


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
