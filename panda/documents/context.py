"""The document context.md: front matter, numbered sections, text and `_meta` blocks. Pure, no I/O."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from functools import lru_cache

from panda.documents.record_codec import decode
from panda.documents.safe_text import escape_text, unescape_text
from panda.documents.times import parse_time, render_time
from panda.documents.yaml_text import YamlTextError, parse_yaml, render_yaml_lines
from panda.errors import DocumentError, FileFormatError
from panda.language.patterns import lazy_pattern


class Phase(IntEnum):
    """The phases of a turn, in order. Each but the last writes the section of context.md with its number."""

    QUERY_ANALYZER = 0
    REFLECTION = 1
    CONTEXT_GATHERER = 2
    PLANNER = 3
    COORDINATOR = 4
    SYNTHESIZER = 5
    VALIDATOR = 6
    SAVE = 7

    @property
    def label(self) -> str:
        """The name for readers, such as "query analyzer"."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class SectionKind:
    """One numbered section of context.md."""

    number: Phase  # the phase that writes the section, and by that its number, 0 to 6
    title: str  # canonical title, as in the heading `## number. title`
    budget_tokens: int  # most budget tokens the section may hold on disk


SECTIONS: tuple[SectionKind, ...] = (
    SectionKind(Phase.QUERY_ANALYZER, "User Query", 500),
    SectionKind(Phase.REFLECTION, "Reflection Decision", 300),
    SectionKind(Phase.CONTEXT_GATHERER, "Gathered Context", 2_000),
    SectionKind(Phase.PLANNER, "Task Plan", 800),
    SectionKind(Phase.COORDINATOR, "Tool Execution", 2_500),
    SectionKind(Phase.SYNTHESIZER, "Synthesis", 2_000),
    SectionKind(Phase.VALIDATOR, "Validation", 500),
)


def heading(number: int) -> str:
    """The canonical heading line of a section: `## 2. Gathered Context`."""
    return f"## {number}. {SECTIONS[number].title}"


PROVIDED = "PROVIDED DOCUMENTS"
SESSION_MEMORY = "SESSION MEMORY - USER PREFERENCES"
STORED = "STORED USER PREFERENCES"
CACHED = "CACHED INTELLIGENCE (Phase 1)"
FOREVER = "FOREVER MEMORY (Persistent Knowledge)"
TURNS = "RELEVANT PRIOR TURNS"
HEADINGS = (PROVIDED, SESSION_MEMORY, STORED, CACHED, FOREVER, TURNS)
"""Every heading, the most important documents first."""


@dataclass(frozen=True)
class FrontMatter:
    """What stands between the two `---` lines."""

    schema: str  # name and version of the format
    turn: int  # turn number
    user_id: str  # whose turn it is
    session_id: str  # session of the turn
    mode: str  # chat or code
    created_at: datetime  # when the turn was claimed; kept in UTC, whole seconds

    def __post_init__(self) -> None:
        moment = self.created_at
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        object.__setattr__(self, "created_at", moment.replace(microsecond=0))


@dataclass(frozen=True)
class Text:
    """A stretch of text; whoever wrote it, it is escaped on disk and comes back exactly."""

    text: str  # never empty

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("a Text block cannot be empty")


@dataclass(frozen=True)
class Meta:
    """A `_meta` block: data for code, beside the text for readers."""

    values: Mapping[str, object]  # key to JSON-like value

    def __post_init__(self) -> None:
        plain = json.loads(json.dumps(self.values, allow_nan=False, default=dict))
        object.__setattr__(self, "values", plain)


Block = Text | Meta


@dataclass(frozen=True)
class Section:
    """One numbered section. Neighbouring Text blocks are joined, as the file cannot tell them apart."""

    number: int  # 0 to 6; the title follows from it
    blocks: tuple[Block, ...] = ()  # body in order; may be empty

    def __post_init__(self) -> None:
        if not 0 <= self.number < len(SECTIONS):
            raise ValueError(f"there is no section {self.number}")
        joined: list[Block] = []
        for block in self.blocks:
            last = joined[-1] if joined else None
            if isinstance(block, Text) and isinstance(last, Text):
                joined[-1] = Text(f"{last.text}\n\n{block.text}")
            else:
                joined.append(block)
        object.__setattr__(self, "blocks", tuple(joined))

    @property
    def text(self) -> str:
        """All Text blocks, joined by one blank line; "" if there is none."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def meta(self) -> Mapping[str, object]:
        """Values of the first Meta block; {} if there is none."""
        return next((block.values for block in self.blocks if isinstance(block, Meta)), {})


@dataclass(frozen=True)
class ContextDocument:
    """A whole context.md."""

    front: FrontMatter
    sections: tuple[Section, ...] = ()  # numbers ascending

    def __post_init__(self) -> None:
        numbers = [section.number for section in self.sections]
        if numbers != sorted(set(numbers)):
            raise ValueError(f"sections {numbers} are not ascending")

    def section(self, number: int) -> Section | None:
        """The section of that number, or None."""
        return next((section for section in self.sections if section.number == number), None)

    def with_section(self, section: Section) -> "ContextDocument":
        """This document with the section put in its place, instead of one of the same number."""
        sections = [*self.without(section.number).sections, section]
        return ContextDocument(self.front, tuple(sorted(sections, key=lambda each: each.number)))

    def without(self, number: int) -> "ContextDocument":
        """This document less the section of that number."""
        others = (section for section in self.sections if section.number != number)
        return ContextDocument(self.front, tuple(others))


_META_OPEN = "```yaml"
_FENCE = "```"
_STRUCTURE = ("```", "~~~", "## ", "_meta:")  # how lines begin that may be more than text
_HEADINGS = {heading(kind.number): kind.number for kind in SECTIONS}
_TITLE = lazy_pattern(r"## ([0-6])\.")


class ContextScan:
    """
    What a context.md holds, and everything that is damaged in it: front matter missing or wrong, sections
    unknown, doubled or misordered, text before the first section, fences left open, `_meta` that is broken or
    misplaced.
    """

    def __init__(self, text: str, path: str) -> None:
        self.front: FrontMatter | None = None  # None if it is damaged
        self.sections: list[Section] = []  # doubled ones once
        self.problems: list[DocumentError] = []  # in the order of lines
        self._path = path
        self._lines = text.split("\n")
        self._read_sections(self._read_front())
        self.problems.sort(key=lambda problem: problem.line or 0)

    def _report(self, at: int, message: str, *, key: str | None = None, fix: str | None = None) -> None:
        self.problems.append(DocumentError(message, self._path, line=at + 1, key=key, fix=fix))

    def _read_front(self) -> int:
        """The index of the first line behind the front matter."""
        lines = self._lines
        if lines[0] != "---" or "---" not in lines[1:]:
            lacks = "does not begin with" if lines[0] != "---" else "does not close"
            self._report(0, f"the file {lacks} its front matter, a block between two `---` lines")
            return 0 if lines[0] != "---" else len(lines)
        end = lines.index("---", 1)
        try:
            values = parse_yaml("\n".join(lines[1:end]))
            if isinstance(values, dict) and isinstance(values.get("created_at"), str):
                values["created_at"] = parse_time(values["created_at"])
            self.front = decode(FrontMatter, values, where="")
        except (ValueError, OverflowError, FileFormatError) as exc:
            line = exc.line if isinstance(exc, YamlTextError) else None
            self._report(line or 0, f"front matter: {exc}")
        return end + 1

    def _read_sections(self, first: int) -> None:
        """Reads what stands below each canonical heading outside of fences; reports what looks like one."""
        lines = self._lines
        blocks = list[Block]()
        start = -1  # line of the heading
        begin = first  # line of the text below it
        opened = -1  # line of the open fence
        for at, line in enumerate(lines[first:], first):
            if opened >= 0:
                is_meta = lines[opened] == _META_OPEN and lines[opened + 1].startswith("_meta:")
                if _closes(lines[opened], line):
                    if is_meta and start >= 0:
                        blocks += _text_block(lines[begin:opened], followed=True)
                        blocks += self._read_meta(opened + 1, at)
                        begin = at + 1
                    opened = -1
                elif line.startswith("_meta:") and not (is_meta and at == opened + 1):
                    self._report(at, f"`_meta:` is not the first line of a {_META_OPEN} fence")
            elif not line.startswith(_STRUCTURE):
                continue
            elif line.startswith("~~~") or (line.startswith(_FENCE) and "`" not in line.lstrip("`")):
                opened = at
            elif line in _HEADINGS:
                self._end_section(first, start, at, [*blocks, *_text_block(lines[begin:at], followed=True)])
                start = at
                begin = at + 1
                blocks = []
            elif line.startswith("_meta:"):
                self._report(at, f"`_meta:` stands outside of a {_META_OPEN} fence")
            elif line.startswith("## ") and line[3:4].isdigit():
                fix = f"write `{heading(int(title[1]))}`" if (title := _TITLE.match(line)) else None
                self._report(at, f"unknown section: {line[:80]!r}", fix=fix)
        if opened >= 0:
            self._report(opened, "this fence is never closed")
        if lines[-1] == "":
            lines.pop()
        last = _text_block(lines[begin:], followed=False)
        self._end_section(first, start, len(lines), [*blocks, *last])

    def _end_section(self, first: int, start: int, end: int, blocks: list[Block]) -> None:
        """Takes in the section with its heading in line *start*; -1 for what stands above the first."""
        if start < 0:
            stray = next((at for at in range(first, end) if self._lines[at].strip()), None)
            if first and stray is not None and all(problem.line != stray + 1 for problem in self.problems):
                self._report(stray, "text stands before the first section")
            return
        numbers = [section.number for section in self.sections]
        number = _HEADINGS[self._lines[start]]
        if number in numbers:
            self._report(start, f"section {number} stands here a second time")
            return
        if numbers and number < numbers[-1]:
            self._report(start, f"section {number} stands after section {numbers[-1]}")
        self.sections.append(Section(number, tuple(blocks)))

    def _read_meta(self, start: int, end: int) -> list[Block]:
        try:
            values = parse_yaml("\n".join(self._lines[start:end]))
            if list(values) != ["_meta"]:
                raise ValueError("holds more than the key _meta")
            inner = {} if values["_meta"] is None else values["_meta"]
            if not isinstance(inner, dict):
                raise ValueError("does not hold `key: value` lines")
            return [Meta(inner)]
        except ValueError as exc:
            line = exc.line if isinstance(exc, YamlTextError) else None
            self._report(start + (line or 1) - 1, f"_meta: {exc}", key="_meta")
        return []


def _closes(opener: str, line: str) -> bool:
    """
    Return whether the line closes the fence that *opener* opened: as many of its marks or more, nothing else.
    """
    marks = line.rstrip()
    return len(marks) >= len(opener) - len(opener.lstrip(opener[0])) and not marks.strip(opener[0])


def _text_block(lines: list[str], *, followed: bool) -> list[Block]:
    """The Text in these lines, less the blank line that parts it from its neighbours."""
    if lines and lines[0] == "":
        lines = lines[1:]
    if followed and lines and lines[-1] == "":
        lines = lines[:-1]
    return [Text(unescape_text("\n".join(lines)))] if lines and lines != [""] else []


def render_section(section: Section) -> str:
    r"""
    Heading and body as they stand on disk.

    >>> render_section(Section(0, (Text("hi"), Meta({"intent": "query"}))))
    '## 0. User Query\n\nhi\n\n```yaml\n_meta:\n  intent: query\n```'
    """
    parts = [heading(section.number)]
    for block in section.blocks:
        if isinstance(block, Text):
            parts.append(escape_text(block.text))
        else:
            lines = render_yaml_lines(block.values, indent="  ")
            parts.append(f"{_META_OPEN}\n_meta:" + (f"\n{lines}" if lines else " {}\n") + _FENCE)
    return "\n\n".join(parts)


def render_for_prompt(section: Section) -> str:
    r"""
    Return what a prompt has of a section: its texts, and of `_meta` what no text says and is not as usual;
    "" of §1 where the turn goes on. The query of §0 is not part of it, as each prompt ends with it.

    >>> meta = Meta({"intent": "query", "entities": [], "node_ids": ["turn:1"], "needs": {"prices": True}})
    >>> render_for_prompt(Section(0, (Text("hi"), meta)))
    'prices: true'
    """
    if section.number == Phase.REFLECTION and section.meta.get("decision") == "PROCEED":
        return ""
    parts: list[str] = []
    for block in section.blocks:
        if isinstance(block, Meta):
            parts.append(_told_values(block.values))
        elif section.number != Phase.QUERY_ANALYZER:
            parts.append(escape_text(block.text))
    return "\n\n".join(filter(None, parts))


_FOR_CODE = frozenset(
    {
        *("source_type", "node_ids", "provenance", "confidence", "confidence_avg", "source", "entities"),
        *("decision", "next_step", "round", "items", "answered", "outcome", "note"),
        *("freshness", "resolved_query", "resolved_to", "title", "source_turn"),
        *("original_references", "references", "reference_nodes"),
        *("verdict", "issues", "rejected", "goals", "left_out", "best_attempt"),
        *("ending", "rounds", "calls"),
    }
)
"""Keys of `_meta` that the text beside them says, or that are for code alone."""


_USUAL = {"query_type": "informational", "intent": "query", "status": "resolved"}
"""Values of `_meta` that say nothing in particular."""


def _told_values(values: Mapping[str, object]) -> str:
    lines: list[str] = []
    for key, value in values.items():
        if key in _FOR_CODE or value in (None, "", [], {}, False, "not_needed", _USUAL.get(key)):
            continue
        if isinstance(value, Mapping):
            lines.append(_told_values(value))
        else:
            lines.append(render_yaml_lines({key: value}).rstrip("\n"))
    return "\n".join(filter(None, lines))


def render_context(document: ContextDocument) -> str:
    """The document as its file holds it. parse_context gives back an equal document."""
    values = {**vars(document.front), "created_at": render_time(document.front.created_at)}
    parts = [f"---\n{render_yaml_lines(values)}---", *map(render_section, document.sections)]
    return "\n\n".join(parts) + "\n"


@lru_cache(maxsize=64)
def parse_context(text: str, *, where: str) -> ContextDocument:
    """The document that a context.md holds. Raises DocumentError: the first problem of its ContextScan."""
    scan = ContextScan(text, where)
    if scan.front is None or scan.problems:
        raise scan.problems[0]
    return ContextDocument(scan.front, tuple(scan.sections))
