"""Whether §2 of saved turns can be believed, judged as of when it was gathered (`panda validate`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from panda.documents.context import parse_context
from panda.documents.last_seen import without_last_seen
from panda.documents.problems import Problem, Verdict
from panda.documents.times import parse_time
from panda.errors import MemoryNodeError, PandaError
from panda.memory.as_of import PastNodes
from panda.memory.gathered import CONSTRAINTS, GatheredItem, GatheredSection, render_line
from panda.memory.gathered_checks import NO_CONSTRAINTS, UNKNOWN_NODE, check_sections
from panda.memory.gathered_reading import CUT_MARK, ReadSection, read_gathered
from panda.memory.nodes import Node
from panda.storage.checking_files import problem_of
from panda.storage.files import read_json_lines, read_text
from panda.storage.layout import (
    CALLS_JSONL,
    CONTEXT_MD,
    GATHERED_CONTEXT_JSON,
    METADATA_JSON,
    Layout,
    TurnPaths,
)
from panda.storage.names import turn_number
from panda.storage.records import load_object
from panda.storage.schemas import check_json
from panda.storage.temporaries import is_temporary
from panda.storage.turn_folder import TurnFolder

_GATHERING = 2
_SYNTHESIS = "phase2_2_synthesis"
JUDGED = "§2"
"""Key of what was judged."""
_NOTHING = "none stated"


def judge_gathered(root: Path, paths: Sequence[Path]) -> list[Problem]:
    """
    What is wrong with §2 of the turns below some places.

    Args:
        root: The store, looked at as a whole if there are no paths.
        paths: A root, a user's directory, turn directories, directories of these, or files.

    Returns:
        A problem a finding, at the turn's context.md; not judged is what rests on a source that has changed
        or gone since, and all of a §2 whose files do not read.

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
        section = document.section(_GATHERING)
        if section is None:
            return []
        metadata = load_object(directory / METADATA_JSON)
        if metadata.get("forgotten_at"):
            return []  # its lines and those of its nodes are not what they were
        query = str(metadata.get("query") or "")
        gathered = _gathered(directory / GATHERED_CONTEXT_JSON)
        at = _instant(gathered.get("gathered_at")) or document.front.created_at
        snapshot = TurnFolder(number, TurnPaths(directory), lambda: at).snapshot()
        past = PastNodes(
            Layout(users.parent), directory.parent.parent.name, turn=number, at=at, snapshot=snapshot
        )
        judge = _Judge(past, gathered, quotes=_quotes(directory))
        found = judge.findings(read_gathered(section), query)
    except PandaError as exc:
        own = (directory / name for name in (CONTEXT_MD, METADATA_JSON, GATHERED_CONTEXT_JSON))
        damaged = next((one for one in own if (exc.where or "").startswith(str(one))), path)
        return [replace(problem_of(exc, damaged), verdict=Verdict.NOT_JUDGED)]
    except (KeyError, TypeError, ValueError) as exc:  # the schema of a file tells the rest
        message = f"{type(exc).__name__}: {exc}"
        return [Problem(str(path), message, key=JUDGED, verdict=Verdict.NOT_JUDGED)]
    return [Problem(str(path), issue, key=JUDGED, verdict=verdict) for issue, verdict in dict.fromkeys(found)]


def _gathered(path: Path) -> dict[str, Any]:
    value = load_object(path) if path.exists() else {}
    if value:
        check_json(GATHERED_CONTEXT_JSON, value, str(path))
    return value


def _instant(value: object) -> datetime | None:
    return parse_time(value) if isinstance(value, str) else None


def _quotes(directory: Path) -> bool:
    """Whether the lines of §2 were chosen, so that each is a quotation: a model that writes words its own."""
    path = directory / CALLS_JSONL
    kinds = {
        call.get("kind")
        for call in (read_json_lines(path) if path.exists() else ())
        if isinstance(call, Mapping) and _SYNTHESIS in str(call.get("recipe"))
    }
    return path.exists() and "generate" not in kinds


def _plain(text: str) -> str:
    return " ".join(text.split())


class _Judge:
    """
    Judges the parts of one turn's §2.

    Args:
        past: The nodes as they were when it was gathered.
        gathered: The value of gathered_context.json; {} if there is none.
        quotes: Whether every line must stand in a node word for word.
    """

    def __init__(self, past: PastNodes, gathered: Mapping[str, Any], *, quotes: bool) -> None:
        self._past, self._quotes = past, quotes
        documents = gathered.get("documents")
        self._loaded = {one["node_id"] for one in documents} if documents is not None else None
        self._lines = {
            part["title"]: tuple(GatheredItem(one["text"], tuple(one["node_ids"])) for one in part["items"])
            for part in gathered.get("sections", ())
        }
        self._nodes: dict[str, Node] = {}
        self._lost: dict[str, tuple[str, Verdict]] = {}

    def findings(self, parts: Sequence[ReadSection], query: str) -> list[tuple[str, Verdict]]:
        """What is wrong with the parts, or cannot be judged: a sentence and a verdict each."""
        found = []
        for part in parts:
            place = f"section {part.section.title}"
            found += [(f"{place}: {fault}", Verdict.UNSOUND) for fault in part.faults]
            for node_id in part.section.node_ids:
                self._take(node_id)
                if node_id in self._lost:
                    message, verdict = self._lost[node_id]
                    found.append((f"{place}: {message}", verdict))
                elif self._loaded is not None and node_id not in self._loaded:
                    found.append((f"{place}: {node_id} was not loaded in this turn", Verdict.UNSOUND))
        readable = [part for part in parts if not part.is_old]
        sections = [self._whole(part) for part in readable]
        issues = check_sections(sections, self._nodes, self._past.at, query=query)
        if any(part.section.title == CONSTRAINTS for part in parts):
            issues = [one for one in issues if one != NO_CONSTRAINTS]
        issues = [one for one in issues if not one.endswith(UNKNOWN_NODE)]
        issues += [issue for part in readable for issue in self._line_issues(part)]
        changed = tuple(f"section {part.section.title}: " for part in parts if self._is_unsure(part))
        for issue in issues:
            if issue.startswith(changed):
                found.append((f"{issue}, and its sources have changed since", Verdict.NOT_JUDGED))
            else:
                found.append((issue, Verdict.UNSOUND))
        unrecorded = [issue for part in readable for issue in self._unrecorded(part)]
        return found + [(issue, Verdict.UNSOUND) for issue in unrecorded]

    def _take(self, node_id: str) -> None:
        """Load a node, or keep why that cannot be: one that the turn did load has changed or gone since."""
        if node_id in self._nodes or node_id in self._lost:
            return
        try:
            self._nodes[node_id] = self._past.load(node_id)
        except PandaError as exc:
            known = self._loaded is not None and node_id in self._loaded
            verdict = Verdict.NOT_JUDGED if known or not isinstance(exc, MemoryNodeError) else Verdict.UNSOUND
            self._lost[node_id] = (exc.message, verdict)

    def _is_unsure(self, part: ReadSection) -> bool:
        """Whether a node of the part is gone or not as it was, so that a fault may be that of the node."""
        ids = part.section.node_ids
        lost = any(self._lost[one][1] is Verdict.NOT_JUDGED for one in ids if one in self._lost)
        return lost or any(self._past.has_changed(self._nodes[one]) for one in ids if one in self._nodes)

    def _line_issues(self, part: ReadSection) -> Iterator[str]:
        """Lines that code renders otherwise (marks, turn, age), and quotations that stand in no node."""
        place, section = f"section {part.section.title}", part.section
        for item, line in self._pairs(part):
            cited = [self._nodes[one] for one in item.node_ids if one in self._nodes]
            if CUT_MARK in line or not cited or len(cited) < len(item.node_ids) or "[" not in line:
                continue
            moments = (self._past.at, self._past.at + timedelta(seconds=1))  # it is written to the second
            rendered = [_plain(render_line(item, section, self._nodes, moment)) for moment in moments]
            if _plain(line) not in rendered:
                yield f"{place}: {_plain(line)!r:.100} is rendered as {rendered[0]!r:.100}"
            text = _plain(without_last_seen(item.text))
            if self._quotes and not any(text in _plain(node.text) for node in cited):
                yield f"{place}: {text!r:.80} is no quotation of {', '.join(item.node_ids)}"

    def _unrecorded(self, part: ReadSection) -> Iterator[str]:
        """Lines that gathered_context.json of the same turn does not hold, and those that only it holds."""
        place, recorded = f"section {part.section.title}", self._lines.get(part.section.title)
        if recorded is None:
            return
        there = {_plain(item.text) for item in recorded} - {_NOTHING}
        said = {_plain(item.text) for item in part.section.items}
        cut = {_plain(item.text) for item, line in self._pairs(part) if CUT_MARK in line}
        for text in sorted(said - there - cut):
            yield f"{place}: gathered_context.json does not hold the line {text!r:.80}"
        for text in sorted(there - said) if not part.is_cut else ():
            yield f"{place}: lacks the line {text!r:.80} of gathered_context.json"

    @staticmethod
    def _pairs(part: ReadSection) -> Iterator[tuple[GatheredItem, str]]:
        """The items of a part with the lines that they stand in."""
        return zip(part.section.items, part.lines, strict=True)

    def _whole(self, part: ReadSection) -> GatheredSection:
        """The part with the lines that were cut from it, which its nodes and its confidence belong to."""
        lines = self._lines.get(part.section.title, ()) if part.is_cut else ()
        return replace(part.section, items=tuple(dict.fromkeys([*lines, *part.section.items])))
