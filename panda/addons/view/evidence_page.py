"""What an answer rests on: each of its statements with the words of its sources, in their surroundings."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from panda.addons.view.past_notes import PastNotes
from panda.documents.context import Section
from panda.documents.evidence import told_claims
from panda.documents.safe_text import one_line, strip_citations
from panda.documents.times import without_last_seen
from panda.errors import Problem
from panda.language.words import split_words
from panda.memory.confidence import age_days
from panda.memory.node import Node

_AROUND = 2  # lines shown before and after the quoted one
_LIKE = 0.5  # least share of a line's words that stand in a statement which is near to it
_TELLING = 3  # least weight of the words that they share: a number or a name
_MOST_NEAR = 6  # most lines that a statement is near to
_DAY_SECONDS = 86_400
_LINE_CHARS = 1_200
MARK = re.compile(r"\[(\d{1,3})\]")
_LISTED = re.compile(r"^\s*(?:[-*]\s+)?\[(\d{1,3})\]:?\s+([^\s,]+)[,\s]*(.*)$")
_HEADING = re.compile(r"^\s*sources:?\s*$", re.IGNORECASE)
_WHERE_LINE = re.compile(r"^\((.*)\)$")


class SourceLine(NamedTuple):
    """One line of a source; before, quoted and after together are its text."""

    before: str
    quoted: str  # the words that the answer rests on; "" in a line that only surrounds them
    after: str
    left: int = 0  # so many lines of the source are left out here; then it says nothing else


@dataclass(frozen=True)
class ShownSource:
    """One source of one statement."""

    anchor: str  # fragment of the page where it stands
    number: int  # its mark in the answer
    node_id: str  # as "visit:visit_abc123"
    title: str = ""  # short name of the source; "" if it cannot be read
    place: str = ""  # file that it comes from, below the user's directory
    turn: int | None = None  # the turn that says it or in whose directory it lies
    at: datetime | None = None  # when it was said or seen
    age_seconds: float | None = None  # how old that was when the turn ran
    confidence: float | None = None  # how far it was to be believed then
    is_exact: bool = False  # whether the quoted words are those of the answer, or most of them
    is_near: bool = False  # whether a line is quoted at all; False: what is shown is the beginning
    lines: tuple[SourceLine, ...] = ()  # the quoted lines with those around them
    changed: Literal["", "stands", "then", "gone"] = ""
    """Of a note that has changed since: these words still stand in it; what is shown is what the turn read;
    or that is not kept."""
    problem: str | None = None  # why the source cannot be shown


@dataclass(frozen=True)
class ShownStatement:
    """One sentence or item of the answer with its sources."""

    text: str
    sources: tuple[ShownSource, ...]  # () where it rests on the query alone
    fault: str = ""  # why it was refused; "" if no fault was found in it
    wrong: tuple[str, ...] = ()  # its numbers, names and other claims that no source holds


class SourceListLine(NamedTuple):
    """A line of the answer's list of sources."""

    number: int | None  # its mark; None for a line that tells how something was computed
    node_id: str
    text: str  # the rest of the line


Load = Callable[[str], Node]


def split_answer(text: str) -> tuple[str, tuple[SourceListLine, ...]]:
    """
    An answer without its list of sources, and that list.

    >>> split_answer("It costs $697. [1]\\n\\nSources:\\n- [1] turn:811, turns/turn_000811/context.md")[1]
    (SourceListLine(number=1, node_id='turn:811', text='turns/turn_000811/context.md'),)
    """
    lines = text.rstrip().split("\n")
    at = next((n for n in reversed(range(len(lines))) if _HEADING.match(lines[n])), None)
    if at is None or not any(_LISTED.match(line) for line in lines[at + 1 :]):
        return text.rstrip(), ()
    return "\n".join(lines[:at]).rstrip(), tuple(_listed(line) for line in lines[at + 1 :] if line.strip())


def _listed(line: str) -> SourceListLine:
    match = _LISTED.match(line)
    if match is None:
        return SourceListLine(None, "", line.strip().removeprefix("- "))
    place = match[3].strip()
    return SourceListLine(int(match[1]), match[2], _WHERE_LINE.sub(r"\1", place))


def find_statements(
    section: Section | None, answer: str, listed: Sequence[SourceListLine]
) -> list[tuple[str, list[str]]]:
    """Return the statements of an answer, each with the nodes that it cites."""
    items = section.meta.get("items") if section else None
    if isinstance(items, list):
        return [(str(item.get("text", "")), texts_of(item.get("node_ids"))) for item in _mappings(items)]
    ids = {entry.number: entry.node_id for entry in listed if entry.number is not None}
    statements = []
    for line in answer.split("\n"):
        marks = [ids[number] for mark in MARK.findall(line) if (number := int(mark)) in ids]
        if marks:
            statements.append((strip_citations(line).strip(), list(dict.fromkeys(marks))))
    return statements


def cited_nodes(section: Section | None, listed: Sequence[SourceListLine]) -> dict[str, str]:
    """The nodes that an answer cites, in the order of their marks, with the file of each."""
    meta: Mapping[str, Any] = section.meta if section else {}
    ids = texts_of(meta.get("node_ids"))
    places = texts_of(meta.get("provenance"))
    if ids and len(ids) == len(places):
        return dict(zip(ids, places, strict=True))
    return {entry.node_id: entry.text for entry in listed if entry.number is not None}


def find_evidence(
    statements: Sequence[tuple[str, Sequence[str]]],
    nodes: Mapping[str, str],
    load: Load,
    at: datetime,
    *,
    past: PastNotes,
    issues: Sequence[str] = (),
) -> tuple[ShownStatement, ...]:
    """
    Each statement with its sources, the quoted words among their neighbours.

    Args:
        nodes: The nodes that the answer cites, in the order of their marks, with their files.
        load: Gives a node; raises Problem where that cannot be read.
        at: When the turn ran: ages and confidences are those of then.
        issues: What the validator found wrong in the statements.
    """
    marks = {node_id: number for number, node_id in enumerate(nodes, 1)}
    loaded: dict[str, Node | Problem] = {}
    with_evidence = []
    for number, (text, node_ids) in enumerate(statements, 1):
        sources: list[ShownSource] = []
        fault = next((issue for issue in issues if told_claims(issue, text) is not None), "")
        for node_id in node_ids:
            if node_id not in loaded:
                loaded[node_id] = _load(load, node_id)
            mark = marks.get(node_id, 0)
            anchor = f"e{number}-{len(sources) + 1}"
            node = loaded[node_id]
            place = nodes.get(node_id, "")
            refused = bool(fault)
            sources.append(
                _source(
                    anchor,
                    mark,
                    node_id=node_id,
                    place=place,
                    text=text,
                    node=node,
                    at=at,
                    past=past,
                    is_refused=refused,
                )
            )
        with_evidence.append(
            ShownStatement(text, tuple(sources), fault, tuple(told_claims(fault, text) or ()))
        )
    return tuple(with_evidence)


def _load(load: Load, node_id: str) -> Node | Problem:
    try:
        return load(node_id)
    except Problem as exc:
        return exc


def _source(
    anchor: str,
    mark: int,
    node_id: str,
    place: str,
    text: str,
    node: Node | Problem,
    at: datetime,
    past: PastNotes,
    *,
    is_refused: bool,
) -> ShownSource:
    if isinstance(node, Problem):
        problem = node.message.removeprefix(f"{node_id}: ")
        return ShownSource(anchor, mark, node_id, place=place, turn=turn_at(place), problem=problem)
    lines = [item.text for item in node.items]
    hits, is_exact = find_lines(text, lines)
    when = next((node.items[at].at for at in hits if node.items[at].at), None) or node.at
    is_believed = bool(hits) and not is_refused
    changed: Literal["", "stands", "then", "gone"] = "stands" if past.has_changed(node) else ""
    if changed and not is_exact:  # the words of now are not what it rests on
        lines = list(past.lines(node_id))
        is_believed = False
        hits, is_exact = find_lines(text, lines)
        changed = "then" if lines else "gone"
    excerpt = tuple(_lines_around(lines, hits, text, is_exact, is_marked=not is_refused))
    return ShownSource(
        anchor=anchor,
        number=mark,
        node_id=node_id,
        title=node.title,
        place=node.provenance,
        turn=node.source_turn or turn_at(node.provenance),
        at=when,
        age_seconds=age_days(when, at) * _DAY_SECONDS if when else None,
        confidence=min(node.items[at].confidence for at in hits) if is_believed else None,
        is_exact=is_exact,
        is_near=bool(hits),
        lines=excerpt,
        changed=changed,
    )


def _lines_around(
    lines: Sequence[str], hits: Sequence[int], text: str, is_exact: bool, *, is_marked: bool
) -> Iterator[SourceLine]:
    wanted = {near for hit in hits or [0] for near in range(hit - _AROUND, hit + _AROUND + 1)}
    positions = sorted(wanted & set(range(len(lines))))
    last = -1
    for at in positions:
        if at > last + 1:
            yield SourceLine("", "", "", at - last - 1)
        yield _line(lines[at], text if at in hits and is_marked else None, is_exact)
        last = at
    if last + 1 < len(lines):
        yield SourceLine("", "", "", len(lines) - last - 1)


def turn_at(place: str) -> int | None:
    """
    The turn in whose directory a file lies.

    >>> turn_at("turns/turn_000811/research.json"), turn_at("preferences.md")
    (811, None)
    """
    match = re.match(r"turns/turn_(\d{6,15})/", place)
    return int(match[1]) if match else None


def find_lines(text: str, lines: Sequence[str]) -> tuple[list[int], bool]:
    """
    The lines that a statement is made from.

    Returns:
        Their places, ascending, and whether one of them holds the statement word for word, or most of it;
        else those that share most of their words with it, and [] if none does.

    >>> find_lines("It costs $697 (last seen 2026-01-04)", ["a tent", "It costs $697"])
    ([1], True)
    >>> find_lines("The LOQ has 16GB and costs $697", ["LOQ: price $697", "LOQ: 5 lb", "LOQ: ram 16GB"])
    ([0, 2], False)
    """
    wanted = one_line(without_last_seen(text))
    for at, line in enumerate(lines):
        if wanted and wanted in one_line(line):
            return [at], True
    held = [(len(line), at) for at, line in enumerate(lines) if line.strip() and one_line(line) in wanted]
    if held and max(held)[0] * 2 > len(wanted):
        return [max(held)[1]], True
    words = _weights(wanted)
    common = set.intersection(*(set(_weights(line)) for line in lines)) if len(lines) > 1 else set()
    near = []
    for at, line in enumerate(lines):
        own = {word: weight for word, weight in _weights(line).items() if word not in common}
        shared = sum(own[word] for word in words.keys() & own)
        whole = min(sum(own.values()), sum(words.values()))
        if shared >= _TELLING and shared >= _LIKE * whole:
            near.append((shared / whole, -at))
    return sorted(-at for _, at in sorted(near, reverse=True)[:_MOST_NEAR]), False


def _weights(text: str) -> dict[str, int]:
    return {word.lower(): 1 if word.isalpha() and word.islower() else 3 for word in split_words(text)}


def _line(line: str, quoted: str | None, is_exact: bool) -> SourceLine:
    """A line with what is quoted of it set apart; one that is too long is cut, and says so."""
    text = one_line(line)
    if quoted is None:
        return SourceLine(_head(text), "", "")
    wanted = one_line(without_last_seen(quoted))
    at = text.find(wanted) if is_exact else -1
    if at < 0:
        return SourceLine("", text[: 4 * _LINE_CHARS], "")
    before = text[:at] if at <= _LINE_CHARS else f"[…] {text[at - _LINE_CHARS : at]}"
    return SourceLine(before, wanted, _head(text[at + len(wanted) :]))


def _head(text: str) -> str:
    return text if len(text) <= _LINE_CHARS else f"{text[:_LINE_CHARS]} […]"


def _mappings(values: Sequence[object]) -> Iterator[Mapping[str, Any]]:
    return (value for value in values if isinstance(value, Mapping))


def texts_of(value: object) -> list[str]:
    """The texts of a list that comes from a file; [] of anything else."""
    return [str(text) for text in value] if isinstance(value, list) else []
