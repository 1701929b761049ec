"""The document context.md: front matter, numbered sections, text and `_meta` blocks. Pure, no I/O."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise

from panda.documents.text import escape_text, unescape_text
from panda.documents.times import parse_time, render_time
from panda.documents.yaml_text import YAML_WORDS, YamlTextError, parse_yaml, render_yaml_lines
from panda.errors import DocumentError, Problem


@dataclass(frozen=True)
class SectionKind:
    """One numbered section of context.md."""

    number: int  # number of the section and of the phase that writes it, 0 to 6
    title: str  # canonical title, as in the heading `## number. title`
    budget_tokens: int  # most budget tokens the section may hold on disk


SECTIONS: tuple[SectionKind, ...] = (
    SectionKind(0, "User Query", 500),
    SectionKind(1, "Reflection Decision", 300),
    SectionKind(2, "Gathered Context", 2_000),
    SectionKind(3, "Task Plan", 800),
    SectionKind(4, "Tool Execution", 2_500),
    SectionKind(5, "Synthesis", 2_000),
    SectionKind(6, "Validation", 500),
)


def heading(number: int) -> str:
    """
    The canonical heading line of a section.

    >>> heading(2)
    '## 2. Gathered Context'
    """
    return f"## {number}. {SECTIONS[number].title}"


PHASES: tuple[str, ...] = (
    "query analyzer",
    "reflection",
    "context gatherer",
    "planner",
    "coordinator",
    "synthesizer",
    "validator",
    "save",
)
"""What each phase is called, by its number."""


SESSION_MEMORY = "SESSION MEMORY - USER PREFERENCES"
STORED = "STORED USER PREFERENCES"
CACHED = "CACHED INTELLIGENCE (Phase 1)"
FOREVER = "FOREVER MEMORY (Persistent Knowledge)"
TURNS = "RELEVANT PRIOR TURNS"
HEADINGS = (SESSION_MEMORY, STORED, CACHED, FOREVER, TURNS)
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

    front: FrontMatter  # its front matter
    sections: tuple[Section, ...] = ()  # its sections, numbers ascending

    def __post_init__(self) -> None:
        numbers = [section.number for section in self.sections]
        if numbers != sorted(set(numbers)):
            raise ValueError(f"sections {numbers} are not ascending")

    def section(self, number: int) -> Section | None:
        """The section of that number, or None."""
        return next((section for section in self.sections if section.number == number), None)

    def with_section(self, section: Section) -> "ContextDocument":
        """This document with the section put in its place, instead of one of the same number."""
        others = [other for other in self.sections if other.number != section.number]
        return ContextDocument(self.front, tuple(sorted([*others, section], key=lambda one: one.number)))

    def without(self, number: int) -> "ContextDocument":
        """This document less the section of that number."""
        return ContextDocument(self.front, tuple(one for one in self.sections if one.number != number))


META_OPEN = "```yaml"
FENCE = "```"
RENDERED_FRONT = (
    r'schema: "(?P<schema>[a-z./0-9]+)"\nturn: (?P<turn>[1-9]\d{0,14})\nuser_id: (?P<user>[a-z][a-z0-9_-]*)\n'
    r'session_id: (?P<session>[a-z][a-z0-9_-]*)\nmode: (?P<mode>[a-z]+)\ncreated_at: "(?P<at>[0-9TZ:-]+)"\n'
)
"""Front matter as render_context writes it in nearly all turns: read without the slow YAML library."""
_STRUCTURE = ("```", "~~~", "## ", "_meta:")  # how lines begin that may be more than text
_HEADINGS = {heading(kind.number): kind.number for kind in SECTIONS}


@dataclass
class ContextScan:
    """One pass over the lines of a document."""

    text: str  # content of the file
    path: str  # path of the file, for the problems
    front: FrontMatter | None = None  # its front matter; None if that is damaged
    sections: list[Section] = field(default_factory=list)  # its sections, doubled ones once
    problems: list[Problem] = field(default_factory=list)  # what is wrong, in no order

    def __post_init__(self) -> None:
        lines = self.text.split("\n")
        first = self._read_front(lines)
        starts = self._find_headings(lines, first)
        self._check_before(lines, first, starts[0] if starts else len(lines))
        if lines[-1] == "":
            lines.pop()
        for start, end in pairwise([*starts, len(lines)]):
            self._add_section(_HEADINGS[lines[start]], lines, start, end)

    def _report(self, index: int, message: str, *, key: str | None = None, fix: str | None = None) -> None:
        self.problems.append(Problem(message, self.path, line=index + 1, key=key, fix=fix))

    def _read_front(self, lines: Sequence[str]) -> int:
        """Reads the front matter; returns the index of the first line after it."""
        if lines[0] != "---" or "---" not in lines[1:]:
            found = "does not begin with" if lines[0] != "---" else "does not close"
            self._report(0, f"the file {found} its front matter, a block between two `---` lines")
            return 0 if lines[0] != "---" else len(lines)
        end = lines.index("---", 1)
        try:
            self.front = _parse_front("\n".join(lines[1:end]))
        except YamlTextError as exc:
            self._report(exc.line or 0, f"front matter: {exc}")
        except (ValueError, OverflowError) as exc:
            self._report(0, f"front matter: {exc}")
        return end + 1

    def _check_before(self, lines: Sequence[str], first: int, end: int) -> None:
        stray = next((index for index in range(first, end) if lines[index].strip()), None)
        if first and stray is not None and all(problem.line != stray + 1 for problem in self.problems):
            self._report(stray, "text stands before the first section")

    def _find_headings(self, lines: Sequence[str], first: int) -> list[int]:
        """Indexes of the canonical headings outside of fences; reports fences that are left open."""
        starts: list[int] = []
        opened = -1
        for index in range(first, len(lines)):
            line = lines[index]
            if opened >= 0:
                if _closes(lines[opened], line):
                    opened = -1
                elif line.startswith("_meta:") and (lines[opened] != META_OPEN or index != opened + 1):
                    self._report(index, f"`_meta:` is not the first line of a {META_OPEN} fence")
            elif not line.startswith(_STRUCTURE):
                continue
            elif _opens(line):
                opened = index
            elif line in _HEADINGS:
                starts.append(index)
            elif line.startswith("_meta:"):
                self._report(index, f"`_meta:` stands outside of a {META_OPEN} fence")
            elif line.startswith("## ") and line[3:4].isdigit():
                self._report(index, f"unknown section: {line[:80]!r}", fix=_title_fix(line))
        if opened >= 0:
            self._report(opened, "this fence is never closed")
        return starts

    def _add_section(self, number: int, lines: list[str], start: int, end: int) -> None:
        numbers = [section.number for section in self.sections]
        if number in numbers:
            self._report(start, f"section {number} stands here a second time")
            return
        if numbers and number < numbers[-1]:
            self._report(start, f"section {number} stands after section {numbers[-1]}")
        self.sections.append(
            Section(number, tuple(self._read_blocks(lines, start + 1, end, end < len(lines))))
        )

    def _read_blocks(self, lines: list[str], start: int, end: int, more: bool) -> list[Block]:
        """Blocks between two boundaries, each with one blank line on the inner side, where there is one."""
        blocks: list[Block] = []
        index = begin = start
        while index < end:
            if lines[index] == META_OPEN and index + 1 < end and lines[index + 1].startswith("_meta:"):
                close = next((i for i in range(index + 1, end) if _closes(FENCE, lines[i])), end)
                blocks += _text_block(lines[begin:index], followed=True)
                blocks += self._read_meta(lines, index + 1, close)
                index = begin = close + 1
            else:
                index += 1
        return blocks + _text_block(lines[begin:end], followed=more)

    def _read_meta(self, lines: list[str], start: int, end: int) -> list[Block]:
        try:
            values = parse_yaml("\n".join(lines[start:end]))
            if list(values) != ["_meta"]:
                raise ValueError("holds more than the key _meta")
            inner = values["_meta"]
            return [Meta({} if inner is None else _mapping(inner))]
        except YamlTextError as exc:
            self._report(start + (exc.line or 1) - 1, f"_meta: {exc}", key="_meta")
        except ValueError as exc:
            self._report(start, f"_meta: {exc}", key="_meta")
        return []


def _opens(line: str) -> bool:
    """Whether the line opens a fence, as Markdown sees it."""
    return line.startswith("~~~") or (line.startswith(FENCE) and "`" not in line.lstrip("`"))


def _closes(opener: str, line: str) -> bool:
    """Whether the line closes the fence that *opener* opened: as many of its marks or more, nothing else."""
    mark = opener[0]
    marks = line.rstrip()
    return len(marks) >= len(opener) - len(opener.lstrip(mark)) and marks == mark * len(marks)


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError("does not hold `key: value` lines")
    return value


def _text_block(lines: list[str], *, followed: bool) -> list[Block]:
    """The Text in these lines, less the blank line that parts it from its neighbours."""
    if lines and lines[0] == "":
        lines = lines[1:]
    if followed and lines and lines[-1] == "":
        lines = lines[:-1]
    return [Text(unescape_text("\n".join(lines)))] if lines and lines != [""] else []


def _title_fix(line: str) -> str | None:
    known = line[3:].startswith(tuple(f"{kind.number}." for kind in SECTIONS))
    return f"write `{heading(int(line[3]))}`" if known else None


def _parse_front(text: str) -> FrontMatter:
    rendered = re.fullmatch(RENDERED_FRONT, text + "\n")
    if rendered is not None and not YAML_WORDS.intersection(rendered.groups()):
        schema, number, user, session, mode, created = rendered.groups()
        return FrontMatter(schema, int(number), user, session, mode, parse_time(created))
    values = _mapping(parse_yaml(text))
    names = ["schema", "turn", "user_id", "session_id", "mode", "created_at"]
    for name in names:
        if name not in values:
            raise ValueError(f"{name} is missing")
        if name != "turn" and not isinstance(values[name], str):
            raise ValueError(f"{name} is not a text")
    if unknown := sorted(set(values) - set(names)):
        raise ValueError(f"unknown key {unknown[0]}")
    turn = values["turn"]
    if isinstance(turn, bool) or not isinstance(turn, int):
        raise ValueError("turn is not a whole number")
    schema, user, session, mode, created = (str(values[name]) for name in names if name != "turn")
    return FrontMatter(schema, turn, user, session, mode, parse_time(created))


def render_section(section: Section) -> str:
    r"""
    Heading and body as they stand on disk.

    >>> render_section(Section(0, (Text("hi"), Meta({"intent": "query"}))))
    '## 0. User Query\n\nhi\n\n```yaml\n_meta:\n  intent: query\n```'
    """
    return "\n\n".join([heading(section.number), *(_render_block(block) for block in section.blocks)])


def _render_block(block: Block) -> str:
    if isinstance(block, Text):
        return escape_text(block.text)
    lines = "_meta:\n" + render_yaml_lines(block.values, indent="  ") if block.values else "_meta: {}\n"
    return f"{META_OPEN}\n{lines}{FENCE}"


def render_context(document: ContextDocument) -> str:
    """The document as its file holds it. parse_context gives back an equal document."""
    front = document.front
    values = {
        "schema": front.schema,
        "turn": front.turn,
        "user_id": front.user_id,
        "session_id": front.session_id,
        "mode": front.mode,
        "created_at": render_time(front.created_at),
    }
    parts = [f"---\n{render_yaml_lines(values)}---", *(render_section(one) for one in document.sections)]
    return "\n\n".join(parts) + "\n"


@lru_cache(maxsize=64)
def parse_context(text: str, *, where: str) -> ContextDocument:
    """
    The document that a context.md holds.

    Raises:
        DocumentError: Anything that find_context_problems would report; it names the first.
    """
    scan = ContextScan(text, where)
    if scan.problems or scan.front is None:
        problem = min(scan.problems, key=lambda one: one.line or 0)
        raise DocumentError(
            problem.message, problem.path, line=problem.line, key=problem.key, fix=problem.fix
        )
    return ContextDocument(scan.front, tuple(scan.sections))


def find_context_problems(text: str, *, path: str) -> list[Problem]:
    """
    Everything that is damaged in a context.md.

    Returns:
        Problems in the order of their lines: front matter missing or wrong, sections unknown, doubled or
        misordered, text before the first section, fences left open, `_meta` that is broken or misplaced.
    """
    return sorted(ContextScan(text, path).problems, key=lambda one: one.line or 0)
