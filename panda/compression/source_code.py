"""Source code into pieces: what it is for, signatures and docstrings whole, then what stands within."""

import ast
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from panda.compression.outer_lines import find_outer_lines
from panda.compression.pieces import TITLE_TIER, Piece, TextOutline, chunk_spans
from panda.language.patterns import lazy_pattern
from panda.language.words import phrases

_COMMENT = lazy_pattern(r"\s*(?:#(?!\w)|//|/\*|\*|--\s|;;|\"\"\"|''')")
_CLOSING = lazy_pattern(
    r"\s*(?:[\])}]+[;,)]*|end|fi|done|esac|EOF|#\s*endif.*|#\s*else.*)\s*(?://.*|/\*.*)?$"
)
_MEMBER = lazy_pattern(
    r"\s+(?!(?:if|for|while|switch|try|do|else|case|with|return|catch)\b)[^=.]*\(.*\).*[{:]\s*$"
)
_HERE_DOCUMENT = lazy_pattern(r"<<[-~]?\s*(['\"]?)([A-Za-z_]\w*)\1(?!\w)")
_CONTROL = lazy_pattern(r"(?:if|for|while|until|case|switch|select|with|try|unless)\b")
_SHELL = lazy_pattern(r"#!.*\b(?:ba|da|z|k)?sh\b")
_HEAD_WORD = lazy_pattern(r"\s*([#@.]?\s*\w+)")
_WORD = lazy_pattern(r"[^\W\d_]{2,}")
_NOTICES = phrases("page_text.txt", "notices")
_SHORT_DOC_CHARS = 200
"""A docstring up to here stays whole or goes whole; a longer one stays by paragraphs."""
_MOST_SIGNATURE_LINES = 30
_MOST_TEXT_LINES = 60
_SHORT_BODY_LINES = 8
_LEVEL = 0.25
_DEFINITION = 0.2
_PRIVATE = 0.7
_PLACE = 0.06
_DOC = 0.15
_INNER = 0.8
_PARAGRAPH = 0.5
_TEXT_PARAGRAPH = 0.15
_STATEMENT = 0.7
_ALIKE = 0.15
_BODY = 2.5
_CONTROLLED = 0.2
"""What a line costs more than the condition that it stands below."""
_NOTICE = 3.0
"""What a notice of a licence costs more than a comment."""


@dataclass
class _Span:
    """Lines that are one piece."""

    first: int
    end: int  # the line behind the last
    cost: float
    outer: list["_Span"] = field(default_factory=list)
    tier: int = 0
    index: int = -1  # of its first piece


def parse_code(source: str) -> TextOutline:
    r"""
    The pieces of a program: of Python by its syntax, of anything else by indentation and comments.

    >>> parse_code("def half(n):\n    'Return n / 2.'\n    return n / 2\n").render({1})
    "def half(n):\n    'Return n / 2.'\n[… 1 line]\n"
    """
    lines = source.split("\n")
    try:
        spans = _PythonReader(lines).read(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        spans = _BlockReader(lines).read()
    return _outline(source, lines, spans)


def _outline(source: str, lines: Sequence[str], spans: Sequence[_Span]) -> TextOutline:
    """Make a piece of each span, and of each line that none holds."""
    starts = [0]
    for text in lines:
        starts.append(starts[-1] + len(text) + 1)
    pieces: list[Piece] = []
    for unit, span in enumerate(sorted(spans, key=lambda one_span: one_span.first)):
        start = starts[span.first]
        end = starts[span.end] - 1
        text = source[start:end].rstrip()
        is_whole = span.end - span.first > 1
        stretches = (
            [(start, start + len(text))] if is_whole else list(chunk_spans(source, start, start + len(text)))
        )
        span.index = len(pieces)
        for left, right in stretches:
            piece = Piece(
                left, right, "code", source[left:right], line=unit, unit=unit, cost=span.cost, noun="line"
            )
            piece.tier = span.tier
            piece.low = "" if any(map(str.isalnum, piece.text)) else "no words"
            pieces.append(piece)
    for span in spans:
        for at in range(span.index, len(pieces)):
            if pieces[at].unit != pieces[span.index].unit:
                break
            pieces[at].heads = [head.index for head in span.outer]
    _bind_lines(lines, spans, pieces)
    return TextOutline(source, tuple(pieces))


def _bind_lines(lines: Sequence[str], spans: Sequence[_Span], pieces: Sequence[Piece]) -> None:
    """Let each line stand only with the lines that it is indented below."""
    span_of = {line: span for span in spans for line in range(span.first, span.end)}
    texts = {n for first, end in _find_texts(lines).items() for n in range(first, end + 1)}
    outer_lines = find_outer_lines(["" if n in texts else text for n, text in enumerate(lines)])
    for span in spans:
        unit = pieces[span.index].unit
        outer = [span_of[line].index for line in outer_lines[span.first] if line in span_of]
        at = span.index
        while at < len(pieces) and pieces[at].unit == unit:
            pieces[at].heads = [*pieces[at].heads, *(head for head in outer if head not in pieces[at].heads)]
            at += 1


class _PythonReader:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.spans: list[_Span] = []
        self.taken = [False] * (len(lines) + 1)
        self.words: Counter[str] = Counter()

    def read(self, tree: ast.Module) -> list[_Span]:
        doc = self._docstring(tree, [], 0.0)
        if doc is not None:
            doc.tier = TITLE_TIER
        self._comments(0, len(self.lines), cost=0.0 if doc is None else 1.0)
        self._definitions(tree.body, [], level=0)
        self._rest(0, len(self.lines), [], cost=_STATEMENT)
        return self.spans

    def _take(self, first: int, end: int, cost: float, outer: Sequence[_Span] = ()) -> _Span | None:
        if first >= end or any(self.taken[first:end]):
            return None
        self.taken[first:end] = [True] * (end - first)
        span = _Span(first, end, cost, list(outer))
        self.spans.append(span)
        return span

    def _comments(self, first: int, end: int, *, cost: float) -> None:
        """Take the comment that opens the file, but for the notices of a licence."""
        at = first
        place = 0
        while at < end and (not self.lines[at].strip() or self.lines[at].lstrip().startswith("#")):
            begin = at
            while at < end and self.lines[at].lstrip().startswith("#"):
                at += 1
            if at == begin:
                at += 1
                continue
            text = "\n".join(self.lines[begin:at])
            is_notice = text.startswith("#!") or _NOTICES.search(text) is not None
            span = self._take(begin, at, _NOTICE + cost if is_notice else cost + 0.3 * place)
            if span is not None and not is_notice and cost == 0 and place == 0:
                span.tier = TITLE_TIER
            place += not is_notice

    def _docstring(
        self,
        definition: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
        outer: Sequence[_Span],
        cost: float,
    ) -> _Span | None:
        """Take the docstring of a node; returns its first paragraph."""
        body = definition.body
        if not (body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)):
            return None
        if not isinstance(body[0].value.value, str):
            return None
        first = body[0].lineno - 1
        end = body[0].end_lineno or first + 1
        if sum(map(len, self.lines[first:end])) <= _SHORT_DOC_CHARS:
            return self._take(first, end, cost, outer)
        closing: list[_Span] = []  # the line with the quotation marks alone
        if self.lines[end - 1].strip() in ('"""', "'''"):
            last = self._take(end - 1, end, cost + 0.01, outer)
            if last is not None:
                closing.append(last)
            end -= 1
        summary: _Span | None = None
        place = 0
        begin = first
        for at in range(first, end + 1):
            is_bare = at == first and self.lines[at].strip() in ('"""', "'''", 'r"""')
            if at < end and (self.lines[at].strip() or is_bare):
                continue
            heads = [*outer, *closing]
            if summary is not None:
                heads.append(summary)
            span = self._take(begin, at, cost + _PARAGRAPH * math.log2(1 + place), heads)
            if span is not None:
                summary = summary or span
                place += 1
            begin = at + 1
        if summary is not None:
            for last in closing:
                last.outer.append(summary)
        return summary

    def _definitions(self, inner: Sequence[ast.stmt], outer: Sequence[_Span], *, level: int) -> None:
        for place, node in enumerate(inner):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                below = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
                if any(isinstance(child, ast.ClassDef | ast.FunctionDef) for child in below):
                    self._definitions(below, outer, level=level + 1)
                continue
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            end = max(node.body[0].lineno - 1, node.lineno)
            is_private = node.name.startswith("_") and not node.name.startswith("__init__")
            is_class = isinstance(node, ast.ClassDef)
            cost = (
                _DEFINITION
                + _LEVEL * level
                + _PRIVATE * is_private
                + _PLACE * math.log2(1 + place)
                - 0.1 * is_class
            )
            while end - 1 > first and not self._code_of(end - 1):
                end -= 1  # comments and blank lines below the signature belong to the body
            signature = self._take(first, end, cost, outer)
            if signature is None:
                continue
            heads = [*outer, signature]
            self._docstring(node, heads, cost + _DOC)
            last = node.end_lineno or end
            if is_class:
                self._definitions(node.body, heads, level=level + 1)
            self._rest(first, last, heads, cost=cost + (1.0 if is_class else _BODY))

    def _code_of(self, at: int) -> str:
        return self.lines[at].partition("#")[0].strip()

    def _rest(self, first: int, end: int, outer: Sequence[_Span], *, cost: float) -> None:
        """Take what no signature and docstring holds, a line each; statements that look alike cost more."""
        place = 0
        for at in range(first, min(end, len(self.lines))):
            if self.taken[at] or not self.lines[at].strip():
                continue
            match = _HEAD_WORD.match(self.lines[at])
            word = match[1] if match else ""
            is_alike = word in ("import", "from") or not outer
            own = cost + (0.3 * math.log2(1 + self.words[word]) if is_alike else 0.15 * math.log2(1 + place))
            own += _INNER * (word in ("import", "from") or (not outer and self.lines[at][:1].isspace()))
            self.words[word] += 1
            self._take(at, at + 1, own, outer)
            place += 1


def _find_texts(lines: Sequence[str]) -> dict[int, int]:
    """
    Return the texts of several lines within a program, as where each of them begins and the line behind it:
    here documents, and in scripts of a shell strings in quotation marks.
    """
    texts: dict[int, int] = {}
    is_shell = bool(lines) and _SHELL.match(lines[0]) is not None
    at = 0
    while at < len(lines):
        text = lines[at]
        at += 1
        match = _HERE_DOCUMENT.search(text)
        if match is not None and not _COMMENT.match(text):
            ends = (n for n in range(at, len(lines)) if lines[n].strip() == match[2])
        elif is_shell and text.count('"') % 2 and not _COMMENT.match(text):
            ends = (n for n in range(at, len(lines)) if lines[n].count('"') % 2)
        else:
            continue
        end = next(ends, at)
        if at < end <= at + _MOST_TEXT_LINES:
            texts[at] = end
            at = end + 1
    return texts


class _BlockReader:
    """Reads programs of any language: what begins at the margin, comments above it, what is below it."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.texts = _find_texts(lines)
        self.text_lines = {n for first, end in self.texts.items() for n in range(first, end + 1)}
        self.spans: list[_Span] = []
        self.words: Counter[str] = Counter()
        self.place = 0

    def read(self) -> list[_Span]:
        at = 0
        is_first = True
        while at < len(self.lines):
            if not self.lines[at].strip():
                at += 1
                continue
            begin = at
            while at < len(self.lines) and self._is_comment(at, begin):
                at += 1
            comment = (begin, at)
            if at > begin and (at >= len(self.lines) or not self.lines[at].strip()):
                is_first = (
                    not self._comment(comment, [], is_first, cost=0.0 if is_first else 1.0) and is_first
                )
                continue
            at = self._definition(at, comment, is_first)
            is_first = False
        return self.spans

    def _is_comment(self, at: int, begin: int) -> bool:
        text = self.lines[at]
        if _COMMENT.match(text):
            return True
        before = "\n".join(self.lines[begin:at])
        return before.count("/*") > before.count("*/")

    def _comment(
        self, comment: tuple[int, int], outer: Sequence[_Span], is_title: bool, *, cost: float
    ) -> bool:
        """Take a comment; returns whether it says what the file is."""
        first, end = comment
        text = "\n".join(self.lines[first:end])
        is_shebang = text.startswith("#!")
        if is_shebang:
            self.spans.append(_Span(first, first + 1, 1.5))
            first += 1
        if first >= end:
            return False
        is_notice = _NOTICES.search(text) is not None
        spans: list[_Span] = []
        begin = first
        for at in range(first, end + 1):
            is_blank = at == end or not _WORD.search(self.lines[at])
            if not is_blank or at == begin:
                continue
            spans.append(_Span(begin, at, cost + _PARAGRAPH * math.log2(1 + len(spans)), list(outer)))
            begin = at
        if begin < end:
            spans.append(_Span(begin, end, cost + 1.0, list(outer)))
        for span in spans:
            span.cost += _NOTICE * is_notice
        self.spans += spans
        if is_title and not is_notice and spans:
            spans[0].tier = TITLE_TIER
            return True
        return False

    def _definition(self, first: int, comment: tuple[int, int], is_first: bool) -> int:
        """Take what begins at the margin, with its comment and body; returns the line behind it."""
        end = first + 1
        text = self.lines[first]
        while (
            end < len(self.lines)
            and end - first < _MOST_SIGNATURE_LINES
            and (_depth(text) > 0 or text.endswith(("\\", ",")))
        ):
            if text.rstrip().endswith(("{", "=> {", "[")):
                break
            text += "\n" + self.lines[end]
            end += 1
        below = end
        while below < len(self.lines) and (
            below in self.text_lines
            or self.lines[below].strip() in ("", "{")
            or self.lines[below][:1] in " \t"
            or _CLOSING.match(self.lines[below])
        ):
            below += 1
        while below > end and not self.lines[below - 1].strip():
            below -= 1
        has_body = any(
            self.lines[at].strip() and not _CLOSING.match(self.lines[at]) and at not in self.text_lines
            for at in range(end, below)
        )
        match = _HEAD_WORD.match(self.lines[first])
        word = match[1] if match else ""
        is_control = has_body and _CONTROL.match(self.lines[first]) is not None
        if has_body and not is_control:
            cost = _DEFINITION + _PLACE * math.log2(1 + self.place)
            self.place += 1
        else:
            cost = _STATEMENT + _ALIKE * math.log2(1 + self.words[word])
        self.words[word] += 1
        if _CLOSING.match(self.lines[first]):
            cost += 2.0
        signature = _Span(first, end, cost)
        if comment[0] < comment[1]:
            self._comment(comment, [signature], is_first, cost=cost + _DOC)
        self.spans.append(signature)
        for text_first, text_end in self.texts.items():
            if end <= text_first < below:
                self._text(text_first, text_end, signature)
        body = [at for at in range(end, below) if self.lines[at].strip() and at not in self.text_lines]
        members = self._members(body) if len(body) > _SHORT_BODY_LINES else []
        for number, (begin, stop) in enumerate(
            [(0, members[0] if members else len(body)), *pairwise([*members, len(body)])]
        ):
            inner = body[begin:stop]
            outer = [signature]
            own = cost
            if number and inner:
                own += _LEVEL + _PLACE * math.log2(1 + number)
                outer.append(_Span(inner[0], inner[0] + 1, own, [signature]))
                self.spans.append(outer[-1])
                del inner[0]
            if is_control:
                own += _CONTROLLED
            else:
                own += 1.0 if len(inner) <= _SHORT_BODY_LINES else _BODY
            for place, at in enumerate(inner):
                closing = 1.0 if _CLOSING.match(self.lines[at]) else 0.0
                self.spans.append(_Span(at, at + 1, own + 0.15 * math.log2(1 + place) + closing, outer))
                if is_control and place == 0:
                    signature.outer.append(self.spans[-1])  # a condition says nothing alone
        return max(below, end)

    def _text(self, first: int, end: int, signature: _Span) -> None:
        """Take a text of several lines by paragraphs."""
        place = 0
        begin = first
        base = signature.cost + _DOC
        for at in range(first, end + 1):
            if at < end and self.lines[at].strip():
                continue
            if at > begin:
                cost = base + _TEXT_PARAGRAPH * math.log2(1 + place)
                self.spans.append(_Span(begin, at, cost, [signature]))
                place += 1
            begin = at + 1
        self.spans.append(_Span(end, end + 1, signature.cost + 2.0, [signature]))

    def _members(self, held_lines: Sequence[int]) -> list[int]:
        """Return the places of those lines of a body with which a definition within it begins."""
        widths = [len(self.lines[at]) - len(self.lines[at].lstrip()) for at in held_lines]
        least = min(width for width in widths if width) if any(widths) else 0
        return [
            n
            for n in range(len(held_lines) - 1)
            if widths[n] == least < widths[n + 1] and _MEMBER.match(self.lines[held_lines[n]])
        ]


def _depth(text: str) -> int:
    """Return how many parentheses a text leaves open, strings and comments not looked at."""
    return text.count("(") - text.count(")")
