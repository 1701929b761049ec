"""Whether §2 of saved turns can be believed, judged as of when it was gathered (`panda validate`)."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from panda.documents.context import parse_context
from panda.documents.problems import Problem
from panda.documents.times import parse_time
from panda.errors import MemoryNodeError, PandaError
from panda.memory.as_of import set_memory_back
from panda.memory.gathered import CONSTRAINTS, GatheredItem, GatheredSection
from panda.memory.gathered_checks import NO_CONSTRAINTS, UNKNOWN_NODE, check_sections
from panda.memory.gathered_reading import ReadSection, read_gathered
from panda.memory.nodes import Node, NodeReader
from panda.storage.files import is_temporary, read_text
from panda.storage.layout import CONTEXT_MD, GATHERED_CONTEXT_JSON, METADATA_JSON, Layout
from panda.storage.names import turn_number
from panda.storage.records import load_object

_GATHERING = 2
_MEMORY = ("memory:", "fact:")
_KEY = "§2"


def judge_gathered(root: Path, paths: Sequence[Path]) -> list[Problem]:
    """
    What is wrong with §2 of the turns below some places.

    Args:
        root: The store, looked at as a whole if there are no paths.
        paths: A root, a user's directory, turn directories, directories of these, or files.

    Returns:
        A problem a finding, at the turn's context.md; files that do not read are reported elsewhere.

    Source:
        S0 §4, §6; design §4 "Validation".
    """
    places = [path.absolute() for path in paths] or [root]
    found = dict.fromkeys(turn for place in places for turn in _turns(place))
    return [problem for turn in found for problem in judge_turn(turn)]


def _turns(place: Path) -> Iterator[Path]:
    """Turn directories at or below a place."""
    if place.is_file():
        if place.name == CONTEXT_MD and turn_number(place.parent.name) is not None:
            yield place.parent
    elif turn_number(place.name) is not None:
        yield place
    elif place.is_dir():
        for depth in ("turns", "*/turns", "users/*/turns", ""):
            for one in sorted(place.glob(f"{depth}/turn_*" if depth else "turn_*")):
                if one.is_dir() and turn_number(one.name) is not None and not is_temporary(one):
                    yield one


def judge_turn(directory: Path) -> list[Problem]:
    """
    What is wrong with §2 of one turn; nothing if it has none, or belongs to no store.

    Args:
        directory: A turn directory below users/{user}/turns.
    """
    number = turn_number(directory.name)
    users = directory.parent.parent.parent
    if number is None or directory.parent.name != "turns" or users.name != "users":
        return []
    path = directory / CONTEXT_MD
    try:
        document = parse_context(read_text(path), where=str(path))
        metadata = load_object(directory / METADATA_JSON)
        gathered = _gathered(directory / GATHERED_CONTEXT_JSON)
        section = document.section(_GATHERING)
        if section is None:
            return []
        at = _instant(gathered.get("gathered_at")) or document.front.created_at
        judge = _Judge(Layout(users.parent), directory.parent.parent.name, number, at, gathered)
        issues = judge.issues(read_gathered(section), str(metadata.get("query") or ""))
    except (PandaError, KeyError, TypeError, ValueError):
        return []  # damaged files have findings of their own
    return [Problem(str(path), issue, key=_KEY) for issue in issues]


def _gathered(path: Path) -> dict[str, Any]:
    return load_object(path) if path.is_file() else {}


def _instant(value: object) -> datetime | None:
    return parse_time(value) if isinstance(value, str) else None


class _Judge:
    """Judges the parts of one turn's §2; memory that has changed since is set back in a directory."""

    def __init__(self, layout: Layout, user: str, turn: int, at: datetime, gathered: dict[str, Any]) -> None:
        self._layout, self._user, self._turn, self._at = layout, user, turn, at
        self._reader = NodeReader(layout, user, lambda: at)
        documents = gathered.get("documents")
        self._loaded = {one["node_id"] for one in documents} if documents is not None else None
        self._lines = {
            part["title"]: tuple(GatheredItem(one["text"], tuple(one["node_ids"])) for one in part["items"])
            for part in gathered.get("sections", ())
        }

    def _load(self, node_id: str) -> Node:
        """
        A node as of then.

        Raises:
            MemoryNodeError: There was none, or it is corrupt.
        """
        try:
            node = self._reader.load(node_id)
        except MemoryNodeError:
            if not node_id.startswith(_MEMORY):
                raise
            node = None
        if not node_id.startswith(_MEMORY) or (node and (node.at is None or node.at <= self._at)):
            assert node is not None
            return node
        with tempfile.TemporaryDirectory(prefix="panda-judge-") as directory:
            past = Layout(Path(directory) / "panda-system-docs")
            set_memory_back(self._layout, past, self._user, turn=self._turn, at=self._at)
            return NodeReader(past, self._user, lambda: self._at).load(node_id)

    def issues(self, parts: Sequence[ReadSection], query: str) -> list[str]:
        found = [f"section {part.section.title}: {fault}" for part in parts for fault in part.faults]
        nodes: dict[str, Node] = {}
        sections: list[GatheredSection] = []
        for part in parts:
            place = f"section {part.section.title}"
            for node_id in part.section.node_ids:
                try:
                    nodes.setdefault(node_id, self._load(node_id))
                except MemoryNodeError as exc:
                    found.append(f"{place}: {exc.message}")
                else:
                    if self._loaded is not None and node_id not in self._loaded:
                        found.append(f"{place}: {node_id} was not loaded in this turn")
            if not part.is_old and not self._changed(part, nodes):
                sections.append(self._whole(part))
        issues = check_sections(sections, nodes, self._at, query=query)
        there = any(part.section.title == CONSTRAINTS for part in parts)
        told = [one for one in issues if one.endswith(UNKNOWN_NODE) or (one == NO_CONSTRAINTS and there)]
        return found + [one for one in issues if one not in told]

    def _changed(self, part: ReadSection, nodes: dict[str, Node]) -> bool:
        """Whether a node of the part has changed since, so that nothing can be said of its lines."""
        mine = (nodes[node_id] for node_id in part.section.node_ids if node_id in nodes)
        return any(node.at is not None and node.at > self._at for node in mine)

    def _whole(self, part: ReadSection) -> GatheredSection:
        """The part with the lines that were cut from it, which its nodes and its confidence belong to."""
        lines = self._lines.get(part.section.title, ()) if part.is_cut else ()
        return replace(part.section, items=tuple(dict.fromkeys([*lines, *part.section.items])))
