"""Markdown, reStructuredText and plain text into pieces: sections, sentences, items, rows, lines of code."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import groupby, pairwise

from panda.compression.errors_told import ERROR_LINE, mask_values
from panda.compression.outcomes import weigh_outcomes
from panda.compression.outer_lines import bind_outer_lines
from panda.compression.pieces import (
    EDGE,
    TITLE_TIER,
    Kind,
    Piece,
    TextOutline,
    chunk_spans,
    is_chained,
    prose_spans,
)
from panda.documents.context import SECTIONS, heading
from panda.documents.markdown import CELL_EDGE, Block, read_blocks
from panda.documents.safe_text import one_line
from panda.language.patterns import lazy_pattern
from panda.language.words import phrases

_LABEL = lazy_pattern(r"\s*(?:[-*+•]{1,3}|\d{1,3}[.)]|[a-z]\))\s+(?=\S)")
_QUOTE = lazy_pattern(r"(?m)^[ \t]*(?!>>> )(?:>[ \t]?)+")
_BOX_RULE = lazy_pattern(r"[ \t]*[+*┌┏╔╭├└┗╚╰][-=*─━═]{2,}([^|+]*?)[-=*─━═]{2,}[+*┐┓╗╮┤┘┛╝╯][ \t]*")
_BOX_LINE = lazy_pattern(r"[ \t]*[|│┃║*]([^|│┃║]*)[|│┃║*][ \t]*")
_SPEAKER = lazy_pattern(
    r"\s*(?:\*\*)?[^\W\d][\w.'’-]*(?: [^\W\d][\w.'’-]*){0,2}(?:\*\*)?(?: \([^)]{1,30}\))?:(?:\*\*)?\s+(?=\S)"
)
TURN_LINE = lazy_pattern(
    r"[^\w\n]{0,6}[^\W\d][^:\n]{0,60}?(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./])"
    r"(?:[^:\n]{0,20}(?::\d\d){0,2}:|(?:\d{4})?,? \d{1,2}:\d\d(?::\d\d)?)[^\w\n]{0,6}\Z"
    r"|(?:\*\*)?[^\W\d][^:\n]{0,60}? (?:commented|wrote|replied|answered|said|posted)\b"
    r"[^:\n]{0,30}\d{4}[^\n]{0,12}\Z"
)
"""Says who wrote what stands below, and when."""
_TIME = lazy_pattern(r"\s*\[?\d\d:\d\d(?::\d\d)?\b")
_VERSION_LINE = lazy_pattern(
    r"(?:\*{1,2} (?=.*\b\d{4}\b))?=* ?(?:[A-Za-z][^.,;!?\n]{0,40}[ (-]|[A-Za-z][\w.+-]* \()?"
    r"(?:v?(?:\d+:)?\d+(?:\.\d+)+[\w.+~-]*(?<!\.)(?:\W+\S.{0,60})?|\d{4}-\d\d-\d\d\b.{0,60}|(?P<hash>[0-9a-f]{40}))(?<![.,;])"
)
_OUTLINE_MARKS = lazy_pattern(r"\*+(?= )")
_LEAST_VERSIONS = 3
_TOP_LINES = 30
_OPTION = lazy_pattern(r"(?m)^[ \t]*--?[\w?#][\w?#-]*(?=[\s,=\[<]|$)")
_LEAST_OPTIONS = 5
_OPTION_COST = 0.1
_WRAP_CHARS = 8
"""So much more than the option its explanation is indented beside it."""
_USAGE = lazy_pattern(
    r"(?m)^\s*(?:\w+: +)?[\w./-]+ (?:[^.:,;\n]*? )?(?:\[[^\]\n]+\]|<[^>\n]+>).*(?:(?<=\.\.\.)|(?<![.:,;]))$"
)
"""How a program is called, with what may or has to be given in brackets."""
_FIELD_KEY = lazy_pattern(r"([A-Z][\w-]*(?: [\w-]+)?): +(\S.*)")
_TITLE_KEYS = frozenset(("name", "title", "subject", "summary", "version", "description", "status"))
"""Keys of the lines at the top of a document that say what it is."""
_ADDRESS = lazy_pattern(r"(?:.*, *)?[a-z]+://\S+$|.*<?\S+@\S+>?$")
_LEAST_FIELDS = 4
_LIST_COST = 0.8
"""What each of several lines with the same key costs more."""
_BACK_MATTER = phrases("page_text.txt", "back_matter")
_MARKUP = lazy_pattern(
    r"""<[^>]{0,2000}>                     # tags and comments
      | !?\[!?\[?[^\]]*\](?:\([^)]*\))?\]?\([^)]*\)(?=\s|$)  # a picture, or a link alone
      | \[[^\]]{1,40}\]:\s*\S+          # the target of a link
      | \[!\[[^\]]*\]\[[^\]]*\]\]\[[^\]]*\] | !\[[^\]]*\]\([^)]*\) | \|[\w -]+\|
      | ^\s*\.\.\ (?:_|\||\w+::).*$ | ^\s*:\w[\w -]*:\s.*$ | ^\s*\.\.(?:\ \w+){1,2}\s*$
      | [a-zA-Z][\w+.-]*://[^\s>)\]]+""",
    re.VERBOSE | re.MULTILINE,
)
_WORD = lazy_pattern(r"[^\W\d_]{2,}|\d+|[\u2e80-\u9fff\uac00-\ud7af]")
_CODE_FOLLOWS = lazy_pattern(r"::(?: [\w-]+)?\s*$")
_RST_COMMENT = lazy_pattern(r"\.\. (?!_|\||\[|[\w-]+::)\S")
_FEW_WORDS = 3
_IMPORT = lazy_pattern(r"\s*(?:>>> )?(?:import|from|#include|using|use|require)\b")
_COMMAND = lazy_pattern(r"\s*\$ \S")
_NUMBER = lazy_pattern(r"\s*\d{1,2}[.)]")
_UNDERLINE = lazy_pattern(r"\s*([~^\"'*+#.=-])\1{2,}\s*$")
_UNDERLINE_SLACK = 2
_SECTIONS = {heading(kind.number): kind.number for kind in SECTIONS}
_FRONT_LINES = 60
_LONG_CELL_CHARS = 48
_NEAR = 3
_REMARK = lazy_pattern(r"\s*(?:\[[^\]]*\]|\([^)]*\))\.?")
_CLAUSE = lazy_pattern(r"(?<=[^\W\d][,;:)]) | (?=\()|(?<=[^\W\d]) (?=[–—-] )")
"""Where the beginning of an item may end."""
_FIRST_CHARS = 30
_SHORT_LIST_CHARS = 480
_LEAST_QUESTIONS = 3
_QUESTIONS_SHARE = 0.1
"""Part of the paragraphs that are questions where a text answers them one by one."""
_ANSWER_CHARS = 30
_QUESTION = 0.1
_RUN_IN_CHARS = 44
"""A sentence up to here that opens an item is its heading, and stands with the next one."""
_LONG_ROW_CHARS = 110
_SHORT_CODE_LINES = 6
_FEW_CODE_LINES = 3
_GROUP_LINES = 8
_GROUP_CHARS = 560
_PARAGRAPH = 0.3
_MOST_PARAGRAPH = 1.8
"""What the last of many paragraphs of a section costs."""
_SENTENCE = 0.6
_ITEM = 0.25
_CODE_GROUP = 0.6
_SECTION = 0.3
_LEVEL = 0.4
_VERSION = 0.4
"""What a version costs more than the next newer one in a list of changes …"""
_VERSION_PART = 0.4
"""… and what place and section count there within a version."""
_PREAMBLE = 0.8
"""What the place within it counts in the first section, beside the others."""
_BACK_MATTER_COST = 0.7


def find_versions(lines: Sequence[str]) -> Sequence[int]:
    """
    Return the lines that say of which version the changes below them are; empty for no list of changes.

    >>> find_versions(["tea (1.2) stable", "", "* Hot.", "", "tea (1.1) beta", "", "tea (1.0) beta"])
    [0, 4, 6]
    """
    openings: dict[str, list[int]] = defaultdict(list)  # by the first word
    for n, (before, text, after) in enumerate(zip(["", *lines], lines, [*lines[1:], ""], strict=False)):
        match = None if before.strip() or TURN_LINE.match(text) else _VERSION_LINE.fullmatch(text)
        if match and (match["hash"] or not after[:1].isalnum()):
            openings[mask_values(text.lstrip("*= ")).split()[0]].append(n)
    most = max(map(len, openings.values()), default=0)
    versions = sorted(n for group in openings.values() for n in group)
    is_list = _LEAST_VERSIONS <= most >= len(versions) / 2 and versions[0] <= _TOP_LINES
    return versions if is_list else []


def parse_prose(source: str, *, lines_alone: bool = False, is_counting: bool = True) -> TextOutline:
    r"""
    The pieces of a Markdown or plain text of any length; all of them render the text itself. With
    *lines_alone* no sentence goes over the end of a line, as in the output of a tool.

    >>> outline = parse_prose("# Laptops\n\nTwo found. Both\nare fine.\n\n- LOQ 15\n- TUF A15\n")
    >>> [piece.text for piece in outline.pieces]
    ['# Laptops', 'Two found.', 'Both are fine.', '- LOQ 15', '- TUF A15']
    >>> outline.render({1, 4})
    '# Laptops\n\nTwo found. […]\n- TUF A15\n'
    """
    pieces = _ProseReader(source, lines_alone=lines_alone, has_quotes=is_counting and not lines_alone).run()
    if is_counting:  # the lines of context.md are claims of their own
        bind_outer_lines(source, pieces)
    _weigh_markup(source, pieces)
    _mark_title(pieces, _weigh_fields(source, pieces))
    if is_counting:
        weigh_outcomes(source, pieces)
    return TextOutline(source, tuple(pieces), is_counting)


def _weigh_markup(source: str, pieces: Sequence[Piece]) -> None:
    """Mark each piece that shows a reader next to nothing: badges, tags, comments, targets of links."""
    closing = ""  # what ends the comment that the pieces stand in
    end = 0
    for piece in pieces:
        if piece.kind not in ("sentence", "code", "row"):
            continue
        if closing == "\n\n" and closing in source[end : piece.start]:
            closing = ""
        end = piece.end
        if piece.kind == "sentence" and not closing:
            if "<!--" in piece.text:
                closing = "-->"
            elif _RST_COMMENT.match(piece.text):
                closing = "\n\n"
        if piece.kind == "sentence" and closing:
            piece.low = "comment"
            if closing in piece.text.rpartition("<!--")[2]:
                closing = ""
            continue
        visible = _MARKUP.sub(" ", piece.text) if piece.kind == "sentence" else piece.text
        words = len(_WORD.findall(visible))
        if not words or (words < _FEW_WORDS and len(visible.strip()) < len(piece.text) / 3):
            piece.low = "no words" if visible == piece.text else "markup"
    for i, piece in enumerate(pieces):
        introduced = [head for head in piece.heads if head > i]
        if piece.kind == "sentence" and introduced and all(pieces[head].low for head in introduced):
            piece.low = pieces[introduced[0]].low


def _weigh_fields(source: str, pieces: Sequence[Piece]) -> int:
    """
    Weigh the lines with keys that open a document, as those of a package or a mail: those that say what it is
    first, addresses last. Returns the first piece behind them, 0 if there are none.
    """
    keys: Counter[str] = Counter()
    behind = 0
    for piece in pieces:
        match = _FIELD_KEY.match(piece.text)
        is_wrapped = source[piece.start : piece.start + 1].isspace() and keys
        if piece.kind != "sentence" or not (match or is_wrapped):
            break
        behind += 1
        if match is None:
            continue
        key = match[1].lower()
        piece.noun = "line"
        piece.cost = 0.8 + 0.12 * math.log2(1 + behind) + 2 * _ITEM * math.log2(1 + keys[key])
        piece.cost += 0.6 * (_ADDRESS.match(match[2]) is not None)
        keys[key] += 1
        if key in _TITLE_KEYS:
            piece.cost = 0.1
    if len(keys) < _LEAST_FIELDS:
        return 0
    for piece in pieces[:behind]:
        match = _FIELD_KEY.match(piece.text)
        key = match[1].lower() if match else ""
        if key in _TITLE_KEYS:
            piece.tier = TITLE_TIER
        elif keys[key] != 1:
            piece.cost += _LIST_COST
    return behind


def _mark_title(pieces: Sequence[Piece], begin: int) -> None:
    """Put the title, and the first sentence of what the document is, before all but errors."""
    for piece in pieces[begin:]:
        if _FIELD_KEY.match(piece.text) and piece.kind == "sentence":
            continue
        if piece.kind in ("sentence", "row") and not piece.low and len(_WORD.findall(piece.text)) > 3:
            piece.tier = TITLE_TIER
            return
        if piece.kind == "heading":
            piece.tier = TITLE_TIER


def _blank_edges(source: str) -> str:
    """
    Return a text of the same length in which the edges of boxes and the marks of quotations are blanks, so
    that their sentences go on from line to line.

    >>> _blank_edges("> We\\n> sing.\\n+----+\\n| Hi |\\n+----+")
    '  We\\n  sing.\\n      \\n  Hi  \\n      '
    """
    lines = _QUOTE.sub(lambda match: " " * len(match[0]), source).split("\n")
    box: list[tuple[int, str]] = []  # the lines since the top of a box, as they are within it
    for number, text in enumerate(lines):
        rule = _BOX_RULE.fullmatch(text)
        line = rule or (_BOX_LINE.fullmatch(text) if box else None)
        if line is None:
            box = []
            continue
        box.append((number, " " * line.start(1) + line[1] + " " * (len(text) - line.end(1))))
        if rule is not None:
            if len(box) > 1:
                for place, inner in box:
                    lines[place] = inner
            box = box[-1:]
    return "\n".join(lines)


class _ProseReader:
    def __init__(self, source: str, *, lines_alone: bool, has_quotes: bool) -> None:
        self.source = source
        self.lines_alone = lines_alone
        self.plain = _blank_edges(source) if has_quotes else source
        self.lines = [match.span() for match in re.finditer(r"(?m)^.*$", source)]
        self.pieces: list[Piece] = []
        self.above: tuple[int, ...] = ()  # the heading
        self.intro: tuple[int, ...] = ()  # and what introduces the list, table or code that may follow
        self.section: int | None = None
        self.path: list[tuple[int, str, int]] = []  # depth, title and piece of the headings above
        self.counts: Counter[tuple[str, ...]] = Counter()  # sections below a heading
        self.keys: Counter[str] = Counter()  # lines with the same key, as "Classifier:"
        self.is_changelog = False
        self.is_manual = len(_OPTION.findall(source)) >= _LEAST_OPTIONS
        self.option_indent = -1
        self.options = 0
        self.version_cost = 0.0
        self.part_weight = _PREAMBLE
        self.section_cost = 0.0
        self.heading_cost = 0.0
        self.numbered = 0  # sections below the heading whose headings run in
        self.paragraphs = 0  # in the section
        self.items = 0  # in the list
        self.intros: list[int] = []  # lines that introduce something
        self.is_code_next = False
        self.base = 0.0  # cost of the paragraph or list
        self.line = 0
        self.unit = 0

    def run(self) -> list[Piece]:
        marks = [i for i in range(min(len(self.lines), _FRONT_LINES)) if self._text(i).rstrip() == "---"]
        top = marks[1] + 1 if len(marks) > 1 and marks[0] == 0 else 0
        if top:
            self._add(0, self.lines[top - 1][1], "front")
        blocks = read_blocks(self._underlined(top)) if top < len(self.lines) else []
        covered = top
        for block in [*blocks, Block("rule", len(self.lines) - top, len(self.lines) - top)]:
            first = top + block.first
            end = top + block.end
            self.line += 1
            for i in range(covered, first):
                if self.source[slice(*self.lines[i])].strip():
                    self.pieces[self._add(*self.lines[i], "sentence")].low = EDGE
            covered = end
            if first == end:
                break
            if block.kind != "item":
                self.items = 0
            if block.kind == "heading":
                self._heading(block, first, end)
            elif block.kind == "fence":
                self._fence(first, end, block.is_closed)
            elif block.kind == "table" and block.is_ruled:
                self._table(first, end)
            elif block.kind == "text" and self.is_code_next and self._text(first)[:1] in " \t":
                self._code(first, end, [*self.above, *self.intro])
            else:
                self._parts(first, end, block.kind)
            if block.kind not in ("item", "text"):
                self.intro = ()
        self._bind_intros()
        self._bind_answers()
        return self.pieces

    def _bind_answers(self) -> None:
        """Let each of several questions stand with the beginning of its answer, and the rest with both."""
        lines = groupby(range(len(self.pieces)), key=lambda i: self.pieces[i].line)
        groups = [list(members) for _, members in lines]
        is_question = [self.pieces[group[-1]].text.rstrip(" *_").endswith("?") for group in groups]
        if sum(is_question) < max(_LEAST_QUESTIONS, _QUESTIONS_SHARE * len(groups)):
            return
        question: list[int] = []
        answer: list[int] = []  # its beginning
        number = 0
        place = 0
        for group, asks in zip(groups, is_question, strict=True):
            if asks:
                question = group
                answer = []
                number += 1
                place = 0
                continue
            if not question or self.pieces[group[0]].kind == "heading":
                question = []
                continue
            for i in group:
                piece = self.pieces[i]
                is_begun = sum(len(self.pieces[at].text) for at in answer) >= _ANSWER_CHARS
                piece.heads = (*piece.heads, *question, *answer)
                place += 1
                piece.cost = _QUESTION * math.log2(number) + _SENTENCE * math.log2(place) * is_begun
                if not is_begun and piece.kind in ("sentence", "code", "row"):
                    answer.append(i)
                    for at in (*question, *answer):
                        if self.pieces[at].kind != "heading":
                            self.pieces[at].heads = (*question, *self.pieces[at].heads, *answer)
                            self.pieces[at].cost = piece.cost

    def _bind_intros(self) -> None:
        """
        Let a line that introduces a short list stand only with the beginning of each of its items, one that
        introduces something else with the first of it, and a remark in brackets with what it is about.
        """
        items: dict[int, list[int]] = {head: [] for head in self.intros}
        for i, piece in enumerate(self.pieces):
            for head in piece.heads:
                if head in items and piece.kind not in ("fence", "label"):
                    items[head].append(i)
            before = self.pieces[i - 1]
            if i and before.kind == "sentence" and _REMARK.fullmatch(piece.text):
                piece.heads = (*piece.heads, i - 1)
        for head, introduced in items.items():
            firsts = {self.pieces[i].line: i for i in reversed(introduced)}
            near = [i for i in introduced if i - introduced[0] <= _NEAR]
            following = self.pieces[head + 1 : head + 2]
            if sum(len(self.pieces[i].text) for i in firsts.values()) <= _SHORT_LIST_CHARS:
                self.pieces[head].heads = (*self.pieces[head].heads, *firsts.values())
            elif near:
                best = min(near, key=lambda i: self.pieces[i].cost)
                self.pieces[head].heads = (*self.pieces[head].heads, best)
            if not introduced and following and following[0].kind == "sentence":
                self.pieces[head].heads = (*self.pieces[head].heads, head + 1)

    def _underlined(self, first_line: int) -> str:
        """Return the text with each line that underlines a title as Markdown knows it, at the same places."""
        lines = [self._text(i) for i in range(first_line, len(self.lines))]
        versions = frozenset(find_versions(lines))
        self.is_changelog = bool(versions)
        is_outline = any(lines[n].startswith("*") for n in versions)
        for n, text in enumerate(lines):
            if is_outline and (marks := _OUTLINE_MARKS.match(text)):
                lines[n] = "#" * (1 + marks.end()) + text[marks.end() :]
            elif n in versions:
                lines[n] = f"## {text}"
        for n in range(1, len(lines)):
            title = lines[n - 1].strip()
            is_rule = _UNDERLINE.match(lines[n]) is not None and title and title[0].isalnum()
            if is_rule and abs(len(lines[n].strip()) - len(title)) <= _UNDERLINE_SLACK:
                lines[n] = ("=" if "=" in lines[n] else "-") * len(lines[n])
                lines[n - 1] = _NUMBER.sub("", lines[n - 1]).strip().ljust(len(lines[n - 1]))  # no item
        return "\n".join(lines)

    def _text(self, i: int) -> str:
        """Return a line, without the marks of a quotation or the edges of a box."""
        return self.plain[slice(*self.lines[i])]

    def _add(
        self,
        start: int,
        end: int,
        kind: Kind,
        *,
        heads: Sequence[int] | None = None,
        is_new_unit: bool = True,
        cost: float = 0.0,
    ) -> int:
        """Add a piece less the white space behind it; returns its index."""
        text = self.source[start:end].rstrip()
        self.unit += is_new_unit
        self.pieces.append(
            Piece(
                start,
                start + len(text),
                kind,
                one_line(self.plain[start : start + len(text)]) if kind == "sentence" else text,
                line=self.line,
                unit=self.unit,
                heads=self.above if heads is None else heads,
                section=self.section,
                path=tuple(title for _, title, _ in self.path),
                cost=self.section_cost + cost * self.part_weight,
                noun={"row": "row", "sentence": "line" if self.lines_alone else ""}.get(kind, ""),
            )
        )
        return len(self.pieces) - 1

    def _heading(self, block: Block, first: int, end: int) -> None:
        text = self._text(first).strip()
        if text in _SECTIONS:
            self.section = _SECTIONS[text]
            self.path = []
        self.path = [at for at in self.path if at[0] < block.depth]
        titles = tuple(title for _, title, _ in self.path)
        place = self.counts[titles]
        self.counts[titles] += 1
        is_title = not self.pieces or (len(self.path) == 0 and place == 0)
        self.section_cost = _SECTION * math.log2(1 + place) + _LEVEL * (len(self.path) + (not is_title))
        if self.is_changelog:
            self.version_cost = self.version_cost if self.path else _VERSION * place
            self.section_cost = self.version_cost + _VERSION_PART * self.section_cost * bool(self.path)
        if not is_title and _BACK_MATTER.search(block.title):
            self.section_cost += _BACK_MATTER_COST
        self.part_weight = 1.0 if self.section_cost else _PREAMBLE
        if self.is_changelog:
            self.part_weight = _VERSION_PART
        self.heading_cost = self.section_cost
        self.numbered = 0
        self.paragraphs = 0
        parent = (self.path[-1][2],) if self.path else ()
        at = self._add(self.lines[first][0], self.lines[end - 1][1], "heading", heads=parent)
        self.path.append((block.depth, block.title, at))
        self.pieces[at].path = tuple(title for _, title, _ in self.path)
        self.above = (at,)
        self.intro = ()
        self.is_code_next = False

    def _paragraph_cost(self) -> float:
        self.paragraphs += 1
        return min(_MOST_PARAGRAPH, _PARAGRAPH * math.log2(self.paragraphs))

    def _fence(self, first: int, end: int, is_closed: bool) -> None:
        if is_closed and self.source.startswith("```yaml\n_meta:", self.lines[first][0]):
            self._add(self.lines[first][0], self.lines[end - 1][1], "meta")
            return
        both = [*self.above, *self.intro, len(self.pieces)]
        self._add(*self.lines[first], "fence", heads=both)
        self._code(first + 1, end - is_closed, both)
        if is_closed:
            both.append(self._add(*self.lines[end - 1], "fence", heads=both))

    def _code(self, first: int, end: int, heads: Sequence[int]) -> None:
        """Add lines of code in groups, as blank lines part them; a short piece of code is one group."""
        base = self._paragraph_cost()
        lines = [i for i in range(first, end) if self._text(i).strip()]
        groups: list[list[int]] = []
        commands = [bool(_COMMAND.match(self._text(i))) for i in lines]
        is_error = [ERROR_LINE.search(self._text(i)) is not None for i in lines]
        for place, i in enumerate(lines):
            if len(lines) > _FEW_CODE_LINES and (is_error[place] or (place and is_error[place - 1])):
                begins = True
            elif any(commands):  # with what they write
                begins = commands[place] != (place > 0 and commands[place - 1])
            elif len(lines) <= _SHORT_CODE_LINES or not groups:
                begins = False
            else:
                is_apart = i > groups[-1][-1] + 1 and len(groups[-1]) > 1
                begins = is_apart or len(groups[-1]) >= _GROUP_LINES
            if begins or not groups:
                groups.append([i])
            else:
                groups[-1].append(i)
        for n, group in enumerate(groups):
            self.line += 1
            cost = base + _CODE_GROUP * math.log2(1 + n) + 0.1
            if all(_IMPORT.match(self._text(i)) for i in group) and len(groups) > 1:
                cost += _CODE_GROUP
            start = self.lines[group[0]][0]
            stop = self.lines[group[-1]][1]
            if stop - start <= _GROUP_CHARS:
                self._add(start, stop, "code", heads=heads, cost=cost)
                self.pieces[-1].noun = "line"
                continue
            for m, i in enumerate(group):
                for left, right in chunk_spans(self.source, *self.lines[i]):
                    self._add(left, right, "code", heads=heads, cost=cost + 0.1 * math.log2(1 + m))
                    self.pieces[-1].noun = "line"

    def _table(self, first: int, end: int) -> None:
        base = self._paragraph_cost()
        heads = [*self.above, *self.intro]
        head = self._add(self.lines[first][0], self.lines[first + 1][1], "table_head", heads=heads)
        for n, i in enumerate(range(first + 2, end)):
            self.line += 1
            self._row(*self.lines[i], head, cost=base + 0.2 + _ITEM * math.log2(1 + n))

    def _row(self, start: int, end: int, head: int, *, cost: float) -> None:
        """A row as one piece; of a long one the text of its long cells apart, which needs the rest."""
        edges = [start + match.start() for match in CELL_EDGE.finditer(self.source[start:end])]
        cells: list[tuple[int, int]] = []
        if end - start > _LONG_ROW_CHARS and edges and self.source[start : edges[0]].strip() == "":
            for left, right in pairwise(edges):
                text = self.source[left + 1 : right]
                if len(text) > _LONG_CELL_CHARS:
                    cells.append((right - len(text.lstrip()), right))
        frame = [*self.above]
        unit = self.unit + 1
        begin = start
        for left, right in [*cells, (end, end)]:
            self.unit = unit - 1  # the frame is one unit
            frame.append(self._add(begin, left, "row", heads=frame, cost=cost))
            self.unit = unit + 1 + len(self.pieces)
            if left < right:
                self._add(left, right, "sentence", heads=frame, cost=cost + 0.2)
                begin = right
        frame.append(head)

    def _parts(self, first: int, end: int, kind: str) -> None:
        """Lines of text: each item, speaker's line and row begins another part."""
        width = max(self.lines[i][1] - self.lines[i][0] for i in range(first, end))
        if kind != "item" or not self.items:
            self.base = self._paragraph_cost()
        begin = first
        number = 0
        self.option_indent = self._option_indent(first)
        for i in range(first + 1, end + 1):
            if i == end or kind in ("table", "columns") or self._begins_part(i, width):
                place = self.items if kind == "item" else number
                self._part(
                    self.lines[begin][0],
                    self.lines[i - 1][1],
                    is_item=kind == "item",
                    cost=self.base,
                    place=place,
                )
                begin = i
                number += 1
                self.option_indent = self._option_indent(i) if i < end else -1
        if kind == "item":
            self.items += 1
        self.is_code_next = _CODE_FOLLOWS.search(self._text(end - 1)) is not None

    def _option_indent(self, i: int) -> int:
        """Return how far an option of a manual is indented that a line explains; -1 for any other line."""
        match = _OPTION.match(self._text(i)) if self.is_manual else None
        return match.end() - len(match[0].lstrip()) if match else -1

    def _is_quoted(self, i: int) -> bool:
        start = self.lines[i][0]
        return self.source.startswith(">", start) and not self.plain.startswith(">", start)

    def _cover_edges(self, spans: list[list[tuple[int, int]]], start: int, stop: int) -> None:
        """Let sentences hold the edges and marks of quotations that stand between and behind them."""
        end = start
        for sentence in spans:
            for n, (left, right) in enumerate(sentence):
                between = self.source[end:left]
                sentence[n] = (left - len(between.lstrip()), right)
                end = right
        last = spans[-1][-1]
        spans[-1][-1] = (last[0], end + len(self.source[end:stop].rstrip()))

    def _begins_part(self, i: int, width: int) -> bool:
        text = self._text(i)
        before = self._text(i - 1)
        if self.is_manual and before.strip():
            depth = len(text) - len(text.lstrip()) - self.option_indent
            is_unfinished = not before.rstrip().endswith(".") and not _OPTION.match(before)
            if _OPTION.match(text) and (depth < _WRAP_CHARS and not (depth > 0 and is_unfinished)):
                return True
            if self.option_indent >= 0:
                return depth <= 0
        if not before.strip() or self._is_quoted(i) != self._is_quoted(i - 1):
            return True
        if (
            self.lines_alone
            or _TIME.match(text)
            or _LABEL.match(text)
            or _SPEAKER.match(text)
            or _FIELD_KEY.match(text)
        ):
            return True
        if TURN_LINE.match(before.strip()):
            return True
        if not before[:1].isspace() and text[:1] in " \t" and not before.rstrip().endswith((".", ":")):
            return False  # it says what the line above it names
        is_short = len(before.rstrip()) < 0.6 * width or before.endswith("\\")
        if self.source.endswith("  ", *self.lines[i - 1]):
            return True
        is_over = before.rstrip().endswith((".", "!", "?", ":", ";", ")", "]"))
        sign = text.lstrip()[:1]
        return is_short or sign in "<|#@$%&{" or (is_over and sign in "[(0123456789")

    def _part(self, start: int, stop: int, *, is_item: bool, cost: float, place: int) -> None:
        self.line += 1
        if not self.plain[start:stop].strip():
            self.pieces[self._add(start, stop, "sentence")].low = EDGE
            return
        cost += _ITEM * math.log2(1 + place)
        is_usage = self.is_manual and not self.options and _USAGE.search(self.plain, start, stop)
        if self.option_indent >= 0:
            self.options += 1
            cost = _OPTION_COST * math.log2(1 + self.options)
        key = _FIELD_KEY.match(self.plain, start, stop)
        if key:
            cost += 2 * _ITEM * math.log2(1 + self.keys[key[1]])
            self.keys[key[1]] += 1
        match = _LABEL.match(self.plain, start, stop)
        label = match.end() if match else start
        speaker = _SPEAKER.match(self.plain, label, stop)
        label = speaker.end() if speaker else label
        spans = list(prose_spans(self.plain, label, stop))
        self._cover_edges(spans, label, stop)
        heads = list(self.above)
        if is_item:
            heads += self.intro
        if label > start and (len(spans) > 1 or len(spans[0]) > 1):
            heads.append(self._add(start, label, "label", heads=tuple(heads), cost=cost))
        else:
            spans[0][0] = (start, spans[0][0][1])
        first = len(self.pieces)
        if is_item and self.intro and len(spans[0]) == 1:
            begin, end = spans[0][0]
            clause = _CLAUSE.search(self.source, begin + _FIRST_CHARS, end - _FIRST_CHARS)
            if clause:
                spans[0] = [(begin, clause.start()), (clause.end(), end)]
        if len(spans) > 1 and (label > start or self.source.startswith("**", start)):
            (begin, stop_first), *_ = spans[0]
            if len(spans[0]) == 1 and len(spans[1]) == 1 and stop_first - begin <= _RUN_IN_CHARS:
                spans[:2] = [[(begin, spans[1][0][1])]]
                if _NUMBER.match(self.source, start):  # a section whose heading runs in
                    self.numbered += 1
                    self.section_cost = self.heading_cost + _SECTION * math.log2(1 + self.numbered)
                    self.paragraphs = 1
                    self.items = 0
                    cost = 0.0
        for s, sentence in enumerate(spans):
            chain: list[int] = []
            for n, (left, right) in enumerate(sentence):
                at = self._add(
                    left,
                    right,
                    "sentence",
                    heads=[*heads, *chain],
                    is_new_unit=n == 0,
                    cost=cost + _SENTENCE * math.log2(1 + s) + 0.2 * n,
                )
                if is_chained(sentence):
                    chain = [at]
        if is_usage:
            for piece in self.pieces[first:]:
                piece.tier = TITLE_TIER
        if not is_item:
            is_intro = len(self.pieces) - first == 1 and self.pieces[-1].text.endswith((":", "::"))
            if is_intro and self.pieces[first].text.strip() == "::":
                return  # what introduces the text below stands above
            self.intro = (first,) if is_intro else ()
            if is_intro:
                self.intros.append(first)
