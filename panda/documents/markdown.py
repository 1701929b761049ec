"""Markdown as people type it: blocks with their lines, quotable units, sections and links. Pure."""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise, zip_longest
from typing import TYPE_CHECKING, Any, Literal

from panda.documents.safe_text import one_line
from panda.language.patterns import lazy_pattern
from panda.language.text import begins_with_month, split_sentences
from panda.language.words import FUNCTION_WORDS

if TYPE_CHECKING:  # takes a while to import
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

_ITEM = lazy_pattern(r"\s*(?:[-*+•]|(?P<number>\d{1,3})[.)])\s+(?P<text>.*)")
_UNDERLINE = lazy_pattern(r" {0,3}(=+|-{3,})\s*\Z")
_TABLE_RULE = lazy_pattern(r"\s*+(?:\|\s*+)?:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?\s*+\Z")
CELL_EDGE = lazy_pattern(r"(?<!\\)\|")
_CLOSED = (".", "!", "?", "…", ":", ";")
_WRAP_CHARS = 60  # text is broken into lines for lack of room at this width or more
_UNFINISHED_CHARS = 40  # a line of this length may go on in one that begins with a small letter
_WHOLE_CHARS = 160  # a line among lines is quoted whole up to this length
_HEAD_WORDS = 6
LONG_CHARS = 6_000
"""A longer document is found by section, and a longer section is cut into parts: about 1,500 tokens."""

_COMMENT_OR_CODE = lazy_pattern(r"`[^`\n]*`|<!--")

_OUTLINER_PROPERTY = re.compile(r"\s*(?:[-*+]\s+)?(?:id|collapsed):: \S")
"""What an outliner notes for itself."""

_GAP = re.compile(r"\S(?:[ \t]{2,}+|\t)\S")
_COLUMN = re.compile(r"\S+(?: \S+)*")
"""A cell of a line of columns, which two blanks end."""
_LEAST_COLUMNS = 3
_MOST_COLUMNS = 40
_LEAST_COLUMN_LINES = 3
_LEAST_CELLS = 2

Form = Literal["sentence", "line", "item", "row", "code"]


@dataclass(frozen=True)
class Block:
    """Lines of a text that belong together."""

    kind: Literal["heading", "fence", "table", "columns", "item", "text", "rule", "comment"]
    first: int  # its first line, from 0
    end: int  # the line behind its last
    depth: int = 0  # of a heading, from 1
    title: str = ""  # of a heading
    is_closed: bool = True  # whether a fence ends before the text does
    is_ruled: bool = False  # whether the first row of a table is its head


def read_blocks(text: str) -> list[Block]:
    """
    The blocks of a text in order; lines between them are blank.

    Headings, fences, rules and tables are those of CommonMark and GitHub; cells that stand below each other
    are columns. Else lines count as they are typed: each list item is a block at any indentation, block
    quotes and HTML but comments are text, a line below an item is part of it where it is indented or a
    sentence goes on, rows need no rule below the first.
    """
    lines = [line.rstrip("\r") if line.strip() else "" for line in text.split("\n")]
    tokens: list[Token] = []
    _parser().block.parse(
        "\n".join(lines), _parser(), {"no comment before": 0, "no columns before": 0}, tokens
    )
    blocks = []
    for token, following in zip_longest(tokens, tokens[1:]):
        if token.map is None or token.type == "inline":
            continue
        kind: Any = {"heading_open": "heading", "hr": "rule"}.get(token.type, token.type)
        first, end = token.map
        depth, title = (int(token.tag[1]), one_line(following.content)) if kind == "heading" else (0, "")
        last = lines[end - 1].strip()
        is_mark = end - first > 1 and last.startswith(token.markup) and not last.strip(token.markup)
        is_ruled = kind == "table" and end - first > 1 and _TABLE_RULE.match(lines[first + 1])
        blocks.append(
            Block(
                kind,
                first,
                end,
                depth=depth,
                title=title,
                is_closed=is_mark or kind != "fence",
                is_ruled=bool(is_ruled),
            )
        )
    return blocks


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # loaded with the first text

    parser = MarkdownIt("zero").enable(["fence", "hr", "heading"])
    rules = parser.block.ruler
    rules.before("fence", "table", _table, {"alt": ["paragraph"]})
    rules.at("heading", _heading, {"alt": ["paragraph", "row"]})
    rules.before("fence", "columns", _columns, {"alt": ["paragraph"]})
    rules.before("paragraph", "comment", _comment, {"alt": ["paragraph", "row"]})
    rules.before("paragraph", "item", _item, {"alt": ["paragraph", "row"]})
    rules.at("paragraph", _text)
    return parser


def _line(state: "StateBlock", at: int) -> str:
    """A line without its indentation; none behind the last."""
    return state.src[state.bMarks[at] + state.tShift[at] : state.eMarks[at]] if at < state.lineMax else ""


def _push(state: "StateBlock", kind: str, start: int, end: int, tag: str = "") -> bool:
    state.push(kind, tag, 0).map = [start, end]
    state.line = end
    return True


def _begins_block(state: "StateBlock", at: int, within: str = "paragraph") -> bool:
    return any(rule(state, at, state.lineMax, True) for rule in state.md.block.ruler.getRules(within))


def _heading(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    from markdown_it.rules_block import heading

    return state.sCount[start] < 4 and heading(state, start, end, silent)


def _comment(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    begins = state.bMarks[start] + state.tShift[start]
    if not state.src.startswith("<!--", begins) or begins < state.env["no comment before"]:
        return False
    closes = state.src.find("-->", begins + len("<!--")) + len("-->")
    below = start + state.src.count("\n", begins, closes) + 1
    if closes < begins or state.src[closes : state.eMarks[below - 1]].strip():
        state.env["no comment before"] = closes if closes > begins else len(state.src)
        return False
    return silent or _push(state, "comment", start, below)


def _item(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    if not _ITEM.match(_line(state, start)) or _begins_with_day(state, start):
        return False
    at = start + 1
    while not silent and at < end and not state.isEmpty(at) and not _begins_block(state, at):
        if not (state.tShift[at] or _goes_on(_line(state, at - 1), _line(state, at), room_chars=0)):
            break
        at += 1
    return silent or _push(state, "item", start, at)


def _begins_with_day(state: "StateBlock", at: int) -> bool:
    """Return whether "5. November" begins a line, as a day does and not as an item of a numbered list."""
    if not _is_day(_line(state, at)):
        return False
    neighbours = (_line(state, at - 1) if at else "", _line(state, at + 1))
    numbered = [line for line in neighbours if (item := _ITEM.match(line)) and item["number"]]
    return all(_is_day(line) for line in numbered)


def _is_day(line: str) -> bool:
    item = _ITEM.match(line)
    return item is not None and item["number"] is not None and begins_with_month(item["text"])


def _table(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    is_ruled = _heads_table(state, start)
    if not (is_ruled or _is_row(_line(state, start))):
        return False
    at = start + 1 + is_ruled
    while not silent and at < end and not _heads_table(state, at):
        line = _line(state, at)
        if not (("|" in line and not _begins_block(state, at, "row")) if is_ruled else _is_row(line)):
            break
        at += 1
    return silent or _push(state, "table", start, at)


def _is_row(line: str) -> bool:
    return line.startswith("|") and line.count("|") > 1


def _heads_table(state: "StateBlock", at: int) -> bool:
    """Return whether a table's rule with as many cells stands below a line."""
    line = _line(state, at)
    below = _line(state, at + 1)
    if "|" not in line or not below.startswith(("|", "-", ":")) or not _TABLE_RULE.match(below):
        return False
    return len(split_cells(line)) == len(split_cells(below))


def _columns(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    if start < state.env["no columns before"]:
        return False
    read_lines: list[str] = []

    def lines() -> Iterator[str]:
        for at in range(start, end):
            line = state.src[state.bMarks[at] : state.eMarks[at]]
            read_lines.append(line)
            if state.isEmpty(at) or not _GAP.search(line):
                return
            yield line

    count = len(split_columns(lines()))
    if not count:  # nor do the lines that were read head any
        state.env["no columns before"] = start + len(read_lines)
        return False
    return silent or _push(state, "columns", start, start + count)


def split_columns(lines: Iterable[str]) -> list[list[str]]:
    """
    Return the cells of lines whose cells stand below each other, the first line being the head; [] where they
    do not. A head has at least three names and no digits, and most cells of one column have digits.

    >>> split_columns(["Thing       Shop    Price", "Kettle      Marlin     45", "Bike light           62"])
    [['Thing', 'Shop', 'Price'], ['Kettle', 'Marlin', '45'], ['Bike light', '', '62']]
    """
    rest = iter(lines)
    head = next(rest, "").expandtabs()
    heads = [(cell.start(), cell.end()) for cell in _COLUMN.finditer(head)]
    if not _LEAST_COLUMNS <= len(heads) <= _MOST_COLUMNS or any(map(str.isdigit, head)):
        return []
    rows = [[head[start:end] for start, end in heads]]
    for line in rest:
        cells = _cells_below(line.expandtabs(), heads)
        if sum(map(bool, cells)) < _LEAST_CELLS:
            break
        rows.append(cells)
    columns = zip(*rows[1:], strict=True)
    has_numbers = any(sum(any(map(str.isdigit, cell)) for cell in own) * 2 > len(own) for own in columns)
    return rows if len(rows) >= _LEAST_COLUMN_LINES and has_numbers else []


def _cells_below(line: str, head_spans: Sequence[tuple[int, int]]) -> list[str]:
    """
    Return the cells of a line by column: that whose head ends above a cell's end, else that it begins in; []
    where two stand in one column.
    """
    cells = [""] * len(head_spans)
    for cell in _COLUMN.finditer(line):
        ends = [place for place, (_, last) in enumerate(head_spans) if last == cell.end()]
        place = ends[0] if ends else sum(first <= cell.start() for first, _ in head_spans) - 1
        if place < 0 or any(cells[place:]):
            return []
        cells[place] = one_line(cell[0])
    return cells


def _text(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    at = start + 1
    line = _line(state, start)
    underline = _UNDERLINE.match(_line(state, at))
    if underline and ("=" in underline[1] or _is_title(line)):
        _push(state, "heading_open", start, at + 1, "h1" if "=" in underline[1] else "h2")
        state.push("inline", "", 0).content = line
        return True
    while at < end and not state.isEmpty(at) and not _begins_block(state, at):
        at += 1
    return _push(state, "text", start, at)


def _is_title(line: str) -> bool:
    return len(line.split()) <= _HEAD_WORDS and not line.rstrip().endswith(_CLOSED)


@dataclass(frozen=True)
class TextUnit:
    """One sentence, line, list item, table row or line of code."""

    text: str  # one line, as it stands in the document
    line: int  # line where it begins, from 1; 0 if it has none
    headings: tuple[str, ...]  # headings it stands under, outermost first
    form: Form = "sentence"  # what it is: a line is one of a paragraph whose lines stand for themselves
    list_line: int | None = None
    """Line where the list, table or run of lines begins that it belongs to; None if it belongs to none."""
    number: int | None = None  # its number in a numbered list
    heads_line: int | None = None
    """Line where the list begins that it introduces, as "Hotels:" does; None if it does not."""
    block_line: int | None = None
    """Line where its run of lines without a blank line or a heading in between begins; None if unknown."""
    depth: int = 0  # how many columns a list item is indented


def split_units(markdown: str) -> list[TextUnit]:
    """
    The units of a text in order: sentences of running text, lines that stand for themselves, whole list
    items, table rows as "Header: cell; Header: cell", and lines of fenced code. Headings, rules and comments
    are no units; headings are kept with what is below.
    """
    units = list(_with_blocks(markdown, list(_units(markdown))))
    for at, (unit, following) in enumerate(pairwise(units)):
        if unit.list_line is not None or unit.headings != following.headings:
            continue
        if following.list_line and (unit.text.endswith(":") or _is_title(unit.text)):
            units[at] = replace(unit, heads_line=following.list_line)
    return units


def _with_blocks(markdown: str, text_units: Sequence[TextUnit]) -> Iterator[TextUnit]:
    """Yield the text units with block_line set: the first line of their run of lines without a blank one."""
    blank = [number for number, line in enumerate(markdown.split("\n"), 1) if not line.strip()]
    last: TextUnit | None = None
    for unit in text_units:
        block_line = unit.line
        if last is not None and last.headings == unit.headings:
            is_apart = bisect(blank, unit.line) > bisect(blank, last.line)
            block_line = unit.line if is_apart else last.block_line or last.line
        last = replace(unit, block_line=block_line)
        yield last


def _units(markdown: str) -> Iterator[TextUnit]:
    lines = markdown.split("\n")
    path: list[tuple[int, str]] = []
    headings: tuple[str, ...] = ()
    list_line: int | None = None
    last_number = 0
    for block in read_blocks(markdown):
        first = block.first + 1
        held = lines[block.first : block.end]
        if block.kind in ("heading", "table", "columns", "text"):
            list_line = None
        if block.kind != "fence":
            held = ["" if _OUTLINER_PROPERTY.match(line) else line for line in _without_comments(held)]
        if block.kind == "heading":
            path = [*(above for above in path if above[0] < block.depth), (block.depth, block.title)]
            headings = tuple(title for _, title in path)
        elif block.kind == "fence":
            for at, line in enumerate(held[1:-1] if block.is_closed else held[1:], first + 1):
                if line.strip():
                    yield TextUnit(one_line(line), at, headings, "code", list_line)
        elif block.kind == "table":
            names = split_cells(held[0]) if block.is_ruled else []
            for at, line in enumerate(held[1:] if names else held, first + bool(names)):
                cells = split_cells(line)
                row = row_text(names if len(names) == len(cells) else (), cells)
                if not _TABLE_RULE.match(line):
                    yield TextUnit(row, at, headings, "row", first)
        elif block.kind == "columns":
            names, *rows = split_columns(held)
            for at, cells in enumerate(rows, first + 1):
                yield TextUnit(row_text(names, cells), at, headings, "row", first)
        elif block.kind == "text":
            yield from _text_units(held, first, headings)
        elif item := _ITEM.match(held[0]):
            number = int(item["number"]) if item["number"] else None
            is_deeper = held[0][0].isspace()
            if list_line is None or (number == 1 and last_number and not is_deeper):
                list_line = first
            if not is_deeper:
                last_number = number or 0
            if text := one_line(" ".join([item["text"], *held[1:]])):
                depth = len(held[0].expandtabs(4)) - len(held[0].expandtabs(4).lstrip())
                yield TextUnit(
                    text, first, headings, form="item", list_line=list_line, number=number, depth=depth
                )


def row_text(names: Sequence[str], cells: Sequence[str]) -> str:
    """Return a row as "Name: cell; Name: cell", the cells without a text left out."""
    pairs = ((name, cell) for name, cell in zip_longest(names, cells, fillvalue="") if cell)
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs)


def _without_comments(lines: Sequence[str]) -> list[str]:
    """Return as many lines without their HTML comments, but those within `code`."""
    text = "\n".join(lines)
    parts: list[str] = []
    at = 0
    for match in _COMMENT_OR_CODE.finditer(text):
        if match.start() < at or match[0] != "<!--":
            continue
        closes = text.find("-->", match.end())
        if closes < 0:  # what is not closed is text
            break
        parts += [text[at : match.start()], "\n" * text.count("\n", match.start(), closes)]
        at = closes + len("-->")
    return "".join([*parts, text[at:]]).split("\n")


def _text_units(held: Sequence[str], first: int, headings: tuple[str, ...]) -> Iterator[TextUnit]:
    """The units of a paragraph: its sentences, or its lines where each stands for itself."""
    runs = _runs(held, first)
    begins = 1 if len(runs) > 1 and runs[0][1].endswith(":") else 0
    listed = runs[begins:]
    if len(listed) < 2 or any(len(text) > _WHOLE_CHARS for _, text in listed):
        begins = len(runs)
    for line, text in runs[:begins]:
        sentences: list[str] = []
        for sentence in split_sentences(text):
            if sentences and sentence.endswith(".") and len(sentence.split()) == 1:
                sentences[-1] += f" {sentence}"  # one word is about what stands before it
            else:
                sentences.append(sentence)
        yield from (TextUnit(sentence, line, headings) for sentence in sentences)
    for line, text in runs[begins:]:
        yield TextUnit(text, line, headings, "line", listed[0][0])


def _runs(held: Sequence[str], first: int) -> list[tuple[int, str]]:
    """The lines of a paragraph with their numbers, those joined that were broken for lack of room."""
    numbers = [number for number, line in enumerate(held, first) if line.strip()]
    lines = [line.strip() for line in held if line.strip()]
    width = max(map(len, lines), default=0)
    full = (len(line) + len(following.split()[0]) >= width for line, following in pairwise(lines))
    is_wrapped = len(lines) > 2 and width >= _WRAP_CHARS and all(full)
    runs: list[tuple[int, list[str]]] = []
    tail = ""
    room_chars = 0
    for number, line in zip(numbers, lines, strict=True):
        if runs and (is_wrapped or _goes_on(tail, line, room_chars=room_chars)):
            runs[-1][1].append(line)
            tail = f"{tail[-_WHOLE_CHARS:]} {line}"
        else:
            runs.append((number, [line]))
            tail = line
        room_chars = width - len(line)
    return [(number, one_line(" ".join(run))) for number, run in runs]


def _goes_on(line: str, following: str, *, room_chars: int) -> bool:
    """Return whether a sentence of one line goes on in the next; the line has room for so many characters."""
    line, following = line.strip(), following.lstrip()
    if not line or line.endswith(_CLOSED):
        return False
    before = line.rsplit(maxsplit=1)
    if line.endswith(",") or (len(before) > 1 and before[1].lower() in FUNCTION_WORDS):
        return True
    word = following.split()[0].rstrip(".,;:!?)")
    if not (word.isalpha() and word[0].islower()):
        return False
    if word not in FUNCTION_WORDS and len(word) < room_chars:
        return False
    return len(line) >= _UNFINISHED_CHARS or len(split_sentences(line)) > 1


def split_cells(row: str) -> list[str]:
    r"""
    The cells of a table row.

    >>> split_cells("| a | b \\| c |"), split_cells("a | b")
    (['a', 'b \\| c'], ['a', 'b'])
    """
    return [one_line(cell) for cell in CELL_EDGE.split(row.strip().strip("|"))]


@dataclass(frozen=True)
class KnowledgeSection:
    """What stands below one heading of a document, or a part of it."""

    anchor: str
    """Names it within the document, as "visa-rules"; "visa-rules-2" below the second heading of that name,
    "visa-rules~2" for the second part of a long section. No length changes the name of another section."""
    headings: tuple[str, ...]  # headings it stands under, outermost first
    units: tuple[TextUnit, ...]  # its units in order

    @property
    def text(self) -> str:
        """Its units, a line each."""
        return "\n".join(unit.text for unit in self.units)


def group_by_headings(text_units: Sequence[TextUnit]) -> tuple[KnowledgeSection, ...]:
    """Return the text units of a document as its sections, each with another anchor, in order."""
    sections: list[KnowledgeSection] = []
    taken: dict[str, int] = {}
    for headings, group in groupby(text_units, key=lambda unit: unit.headings):
        anchor = _anchor(headings, taken)
        chars = 0
        parts: list[list[TextUnit]] = []
        for unit in group:
            chars += len(unit.text)
            if not parts or chars > LONG_CHARS:
                parts.append([])
                chars = len(unit.text)
            parts[-1].append(unit)
        for n, part in enumerate(parts, 1):
            sections.append(KnowledgeSection(anchor if n == 1 else f"{anchor}~{n}", headings, tuple(part)))
    return tuple(sections)


def section_named(sections: Sequence[KnowledgeSection], anchor: str) -> KnowledgeSection | None:
    """The section of an anchor; None if there is none. In old turns parts counted as headings of one name."""
    taken: dict[str, int] = {}
    by_name = {_anchor(section.headings, taken): section for section in sections}
    return (by_name | {section.anchor: section for section in sections}).get(anchor)


def _anchor(headings: tuple[str, ...], taken: dict[str, int]) -> str:
    """The name of a heading with the next number that is free; *taken* has the last number of each."""
    anchor = ("-".join(re.findall(r"\w+", headings[-1].lower())) if headings else "") or "text"
    number = taken.get(anchor, 0) + 1
    while (name := anchor if number == 1 else f"{anchor}-{number}") in taken:
        number += 1
    taken[anchor] = number
    taken.setdefault(name, 1)
    return name


_LINK = lazy_pattern(
    r"(?<![\w\])])!?\[\[(?P<note>[^\[\]|#^\n]*)(?:[#^](?P<part>[^\[\]|\n]*))?(?:\|(?P<shown>[^\[\]\n]*))?\]\]"
)


def find_wikilinks(text: str) -> list[str]:
    """The notes that a text links to, each once, in order: names or paths as written, without headings."""
    names = (link["note"].strip().removesuffix("\\") for link in _LINK.finditer(text))
    return list(dict.fromkeys(filter(None, names)))


def spell_out_wikilinks(text: str) -> str:
    """A text with its links as a reader sees them."""
    return _LINK.sub(_link_text, text)


def _link_text(link: re.Match[str]) -> str:
    note = link["note"].removesuffix("\\").strip()
    return (link["shown"] or "").strip() or ": ".join(filter(None, [note, (link["part"] or "").strip()]))


def is_only_wikilinks(text: str) -> bool:
    """Return whether a text says nothing beside its links."""
    rest, links = _LINK.subn("", text)
    return links > 0 and not any(char.isalnum() for char in rest)
