"""
What of a document must stay (S3 §24), and the one order in which all else is kept, whatever the budget.

Every piece has one score: how far it answers the query, how much it says, and what the type of the document
makes of it. The next to be kept is the one of the highest score, to which prices, URLs and dates add that
nothing before it holds, the more the fewer tokens it takes.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from panda.compression.pieces import WORDED_DATE, ContentType, Piece, with_heads
from panda.documents.context import SECTIONS, heading
from panda.documents.evidence import find_claims
from panda.language.text import count_kind, wanted_kind
from panda.language.words import FUNCTION_WORDS, phrases, split_terms
from panda.models.cl100k import count_tokens

_ERROR_LINE = re.compile(
    r"""^\s*(?:[-*>|]\s*)?[`*"]{0,3}(?:
        (?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception)\b(?:\s*:|$)     # ValueError: …
      | (?i:(?:\w+[ ])?(?:fatal|error|panic|failure|fehler|erreur|ошибка|错误|エラー)
            \s?(?:\[\w+\])?[`*"]{0,3}\s?[:：])
      | npm[ ]ERR!
      | E[ ]{2,}\S
      | [\w./\\-]+:\d+(?::\d+)?:\s(?:fatal[ ])?error:            # main.c:3:5: error:
      | .{0,60}?(?<![\w-])(?:ERROR|FATAL|CRITICAL)(?![\w-])[\]:|\s]   # a log line
      | .{0,40}?\b(?:status|exit[ _]code)"?[:=\s]{1,3}"?(?:error|failed|[45]\d\d)\b
    )""",
    re.VERBOSE,
)
_ERROR_KEYS = ("error", "errors", "error_message", "exception", "stderr")
_NO_ERROR = ("null", "false", "[]", "{}", "", "0")
_ERROR_CHARS = 1_200
_BOILERPLATE = phrases("page_text.txt", "boilerplate")
_CONTENTS_LINE = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])?\s*\[[^\]]*\]\(#[^)]*\)\s*\Z")
_BOILERPLATE_CHARS = 90
_NGRAM = 3
_DIGIT = re.compile(r"\d")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"(?<=\d)[T ,]+(?=\d\d?:\d)")
_WORDED_DATE = re.compile(WORDED_DATE)
_KEY_FIELDS = (
    "name",
    "title",
    "product",
    "price",
    "url",
    "availability",
    "rating",
    "confidence",
    "zone",
    "type",
)
_PAGE_LOW = frozenset(("navigation", "nav", "footer", "header", "menu", "sidebar", "ads"))
_PAGE_ORDER = (("pric", 0.4), ("product", 0.3), ("name", 0.3), ("review", 0.1), ("url", 0.2), ("time", 0.1))
_SURE, _UNSURE = 0.8, 0.5
"""Confidence of a zone of a page from which on it stays, and below which it goes first (S3 §22)."""
_SECTION_HEADINGS = frozenset(heading(kind.number) for kind in SECTIONS)
_STRUCTURE = ("heading", "label", "fence", "table_head")
_STOP_WORDS = frozenset(split_terms(" ".join(FUNCTION_WORDS)))
_SHARED_START = 5
_SAME_LINE, _LINE_BEFORE, _LINE_AFTER = 0.4, 0.4, 0.2
"""An answer often stands beside the words that the question shares: in the same line, or below a question."""
_SAYS = 0.2
"""What it counts that a unit is telling as such, beside its fit to the query."""
_FACT, _FACT_WITH_QUERY = 30.0, 1.0
"""What a price, URL or date counts, by the tokens that it takes."""
_AS_WRITTEN = 0.3
"""What it counts that a known price or date is written in another way, beside 1 for a new one."""
_MARK_TOKENS = 4
_WHOLE_TOKENS, _CLAUSE_TOKENS, _HUGE_TOKENS = 48, 20, 160
"""A unit up to the first is kept whole, a longer one by clauses of the second; no piece over the third is."""

Unit = Sequence[int]
"""Indexes of pieces that are weighed together, ascending: of a sentence, a row, a value."""


@dataclass(frozen=True)
class UnitText:
    text: str  # what it says
    line: int  # units of the same line or paragraph share it
    around: str = ""  # headings, keys, label that it stands under


Surprise = Callable[[Sequence[UnitText]], Sequence[float] | None]
"""
Says how much of each unit the NERVES model did not expect, 0 to 1; None when it cannot say. Not asked where
there is a query: measured, it adds nothing to the words that text and query share (docs/compression.md).
"""


@dataclass(frozen=True)
class Item:
    """The next thing to keep."""

    pieces: tuple[int, ...]  # indexes of pieces
    rung: int  # what drops it: 1 repeats and boilerplate, 2 low priority, 3 too little information
    reason: str  # why it is dropped when it is
    tokens: int  # budget tokens of its pieces, heads and marks apart


def is_error(text: str) -> bool:
    """
    Whether a line is an error message, not a sentence about errors.

    >>> is_error("ValueError: bad"), is_error("2026-01-04 12:00 ERROR disk full"), is_error("Errors happen.")
    (True, True, False)
    """
    return len(text) <= _ERROR_CHARS and bool(_ERROR_LINE.match(text))


def find_protected(
    pieces: Sequence[Piece], kind: ContentType, keep: Sequence[re.Pattern[str]], source: str
) -> dict[int, str]:
    """
    The pieces that are never dropped, with the reason: structure and §0 of context.md, what *keep* names,
    each error message once. An indented line is one only in the output of a tool: elsewhere it is a docstring
    that says what a function raises.
    """
    reasons: dict[int, str] = {}
    lines: dict[int, list[int]] = {}
    units: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        units.setdefault(piece.unit, []).append(i)
        if piece.kind in ("sentence", "label", "row", "code", "field"):
            lines.setdefault(piece.line, []).append(i)
    seen: set[str] = set()
    for members in lines.values():
        first, text = pieces[members[0]], " ".join(pieces[i].text for i in members)
        if first.kind == "field" and first.path and first.path[-1].lower() in _ERROR_KEYS:
            is_message = len(text) <= _ERROR_CHARS and text.split(": ", 1)[-1].strip() not in _NO_ERROR
        else:
            is_indented = first.kind != "field" and source[first.start : first.start + 1].isspace()
            is_message = is_error(text) and (kind == "tool_result" or not is_indented)
        if is_message and text not in seen:
            seen.add(text)
            reasons |= dict.fromkeys(members, "error message")
    for members in units.values() if keep else ():
        held = [i for i in members if any(pattern.search(pieces[i].text) for pattern in keep)]
        whole = " ".join(pieces[i].text for i in members)
        if not held and any(pattern.search(whole) for pattern in keep):  # it stands across a cut
            held = members
        reasons |= dict.fromkeys(held, "keep")
    for i, piece in enumerate(pieces) if kind == "context.md" else ():
        if piece.section == 0:
            reasons[i] = "section 0"
        elif piece.kind == "front" or piece.text in _SECTION_HEADINGS:
            reasons[i] = "structure"
    return reasons


def rank(
    pieces: Sequence[Piece],
    protected: Mapping[int, str],
    kind: ContentType,
    *,
    query: str,
    surprise: Surprise | None,
    budget_tokens: int,
) -> tuple[list[Item], bool]:
    """
    Everything that is not protected, each piece once, best first; and whether the model had a say in it. It
    is asked where there is no query, and dropping what has low priority does not suffice.
    """
    units: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        if piece.kind not in _STRUCTURE:
            units.setdefault(piece.unit, []).append(i)
    tokens = [count_tokens(piece.text) for piece in pieces]
    low = _find_low(pieces, kind)
    texts = [_unit_text(pieces, unit) for unit in units.values()]
    surprises = None
    good = sum(tokens[i] for unit in units.values() for i in unit if i not in low)
    if surprise is not None and not query and good > budget_tokens:
        surprises = surprise(texts)
    scores = _score(pieces, list(units.values()), texts, query, surprises, kind)
    order = _Order(pieces, tokens, protected, low, _FACT_WITH_QUERY if query else _FACT)
    for unit, score in zip(units.values(), scores, strict=True):
        order.offer(unit, score)
    return order.run(), surprises is not None


def _unit_text(pieces: Sequence[Piece], unit: Unit) -> UnitText:
    first = pieces[unit[0]]
    around = [pieces[i].text for i in first.heads if pieces[i].kind in ("label", "heading", "table_head")]
    return UnitText(" ".join(pieces[i].text for i in unit), first.line, " ".join([*first.path[:-1], *around]))


class _Order:
    """Takes each time the best of what is offered, by what is there already."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        tokens: Sequence[int],
        protected: Mapping[int, str],
        low: Mapping[int, str],
        fact: float,
    ) -> None:
        self.pieces, self.tokens, self.low, self.fact = pieces, tokens, low, fact
        self.protected = protected
        self.facts = {i: _facts(pieces[i]) for i in protected}
        self.covered = {fact for own in self.facts.values() for fact in own}
        self.stands = with_heads(pieces, set(protected))
        self.offers: list[tuple[tuple[int, ...], float, int, str]] = []  # pieces, score, rung, reason
        self.below: dict[int, list[int]] = {}  # offers with facts that need a head

    def offer(self, unit: Unit, score: float) -> None:
        """A unit at once, of a long one as many pieces as make a clause; its facts and what is low apart."""
        most = _WHOLE_TOKENS if sum(self.tokens[i] for i in unit) <= _WHOLE_TOKENS else _CLAUSE_TOKENS
        parts: list[tuple[int, ...]] = []
        for i in unit:
            if i in self.protected:
                continue
            own = self.facts[i] = _facts(self.pieces[i])
            if i in self.low:
                rung = 1 if self.low[i] in _FIRST_REASONS or "repeats" in self.low[i] else 2
                self.offers.append(((i,), score, rung, self.low[i]))
            elif parts and sum(self.tokens[k] for k in parts[-1]) + self.tokens[i] <= most:
                parts[-1] = (*parts[-1], i)
            else:
                parts.append((i,))
            if own and i not in self.low and self.tokens[i] <= _HUGE_TOKENS:
                self._offer((i,), score, 3, "its facts do not fit")
        for part in parts:
            size = self.tokens[part[0]]
            if size > _HUGE_TOKENS:
                self.offers.append((part, score, 2, f"one piece of {size} tokens that cannot be cut"))
            else:
                self._offer(part, score, 3, "says less than what is kept")

    def _offer(self, part: tuple[int, ...], score: float, rung: int, reason: str) -> None:
        for i in part:
            for head in self.pieces[i].heads if self.facts[i] else ():
                self.below.setdefault(head, []).append(len(self.offers))
        self.offers.append((part, score, rung, reason))

    def _place(self, n: int) -> tuple[int, float, int]:
        """What is smaller is kept earlier."""
        part, score, rung, _ = self.offers[n]
        new = {fact for i in part for fact in self.facts[i]} - self.covered
        if new and rung == 3:
            size = sum(self.tokens[i] for i in with_heads(self.pieces, set(part)) - self.stands)
            value = sum(_AS_WRITTEN if fact.startswith("as ") else 1.0 for fact in new)
            score += self.fact * value / (_MARK_TOKENS + size)
        return -rung, -score, n

    def run(self) -> list[Item]:
        waiting = [self._place(n) for n in range(len(self.offers))]
        heapify(waiting)
        items: list[Item] = []
        while waiting:
            n = heappop(waiting)[-1]
            part, _, rung, reason = self.offers[n]
            left = tuple(i for i in part if i not in self.stands)
            if not left:
                continue
            now = self._place(n)
            if waiting and now > waiting[0]:
                heappush(waiting, now)
                continue
            items.append(Item(left, rung, reason, sum(self.tokens[i] for i in left)))
            for i in left:
                self.covered.update(self.facts[i])
            heads = with_heads(self.pieces, set(left)) - self.stands
            self.stands |= heads
            for head in heads.difference(left):  # what stands below takes less now
                for other in self.below.get(head, ()):
                    heappush(waiting, self._place(other))
        ranked = self.protected.keys() | {i for item in items for i in item.pieces}
        bare = [i for i in range(len(self.pieces)) if i not in ranked]
        return [*items, *(Item((i,), 2, "nothing below it is kept", 0) for i in bare)]


def _facts(piece: Piece) -> tuple[str, ...]:
    """
    Prices, URLs and dates in a piece: each as a value, and as it is written, which begins with "as" and
    counts for little. So do times of day, days without a year, and names of sites.
    """
    text = piece.text
    if piece.kind in _STRUCTURE or not (_DIGIT.search(text) or "." in text):
        return ()
    is_price = piece.kind == "field" and bool(piece.path) and "price" in piece.path[-1].lower()
    facts: dict[str, None] = {}
    for claim in find_claims(text):
        if claim.kind == "date":  # the times of a day are one date
            if is_day := _DAY.match(claim.value):
                facts[f"date {is_day[0]}"] = None
            facts[f"as {_TIME.split(claim.text)[0]}"] = None
        elif claim.kind == "url" and "/" not in claim.value:
            facts[f"as {claim.value}"] = None
        elif claim.kind in ("price", "url") or (is_price and claim.kind == "number"):
            facts |= {f"{claim.kind} {claim.value}": None, f"as {claim.text}": None}
    worded = {match[0]: None for match in _WORDED_DATE.finditer(text)}
    return tuple(facts | {f"date {day}": None for day in worded if f"as {day}" not in facts})


_FIRST_REASONS = ("boilerplate", "no words", "navigation", "zone with confidence below 0.5")


def _find_low(pieces: Sequence[Piece], kind: ContentType) -> dict[int, str]:
    """Pieces that go first, with the reason."""
    low: dict[int, str] = {}
    confidences = _page_confidences(pieces) if kind == "page_doc" else {}
    for i, piece in enumerate(pieces):
        confidence, text = confidences.get(i, 1.0), piece.text
        if len(text) <= _BOILERPLATE_CHARS and (_BOILERPLATE.search(text) or _CONTENTS_LINE.match(text)):
            low[i] = "boilerplate"
        elif piece.kind in ("sentence", "code") and not any(map(str.isalnum, text)):
            low[i] = "no words"
        elif kind == "page_doc" and not _PAGE_LOW.isdisjoint(_object_names(pieces, piece)):
            low[i] = "navigation"
        elif confidence < _UNSURE:
            low[i] = "zone with confidence below 0.5"
        elif confidence < _SURE and piece.path[-1].lower() not in _KEY_FIELDS:
            low[i] = "no key field, in a zone with confidence below 0.8"
    _find_repeated(pieces, low)
    return low


def _object_names(pieces: Sequence[Piece], piece: Piece) -> list[str]:
    """Keys that a value stands under, and what the objects around it are called; all in small letters."""
    named = [pieces[head].text.split(": ", 1)[-1] for head in piece.heads]
    return [name.lower() for name in (*piece.path, *named)]


def _page_confidences(pieces: Sequence[Piece]) -> dict[int, float]:
    """How sure the page was read, by piece: as its innermost named object says that says so."""
    members: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        for head in piece.heads:
            members.setdefault(head, [head]).append(i)
    confidences: dict[int, float] = {}
    for piece in pieces:
        if piece.kind == "field" and piece.path[-1:] == ("confidence",) and piece.heads:
            try:
                value = float(piece.text.rpartition(":")[2])
            except ValueError:
                continue
            for i in members[piece.heads[0]] if 0.0 <= value <= 1.0 else ():
                confidences.setdefault(i, value)
    return confidences


def _find_repeated(pieces: Sequence[Piece], low: dict[int, str]) -> None:
    """Later sentences and rows of which an earlier piece says nearly every run of three words."""
    exact: dict[str, int] = {}
    grams: dict[tuple[str, ...], int] = {}
    for i, piece in enumerate(pieces):
        if i in low or piece.kind not in ("sentence", "row", "field", "code"):
            continue
        terms = split_terms(piece.text)
        if len(terms) < _NGRAM + 1:
            continue
        own = list(zip(*(terms[k:] for k in range(_NGRAM)), strict=False))
        text = " ".join(piece.text.split()).lower()
        if text in exact:
            low[i] = f"repeats piece {exact[text]}"
            continue
        known = [grams[gram] for gram in own if gram in grams]
        fresh = (word for gram in own if gram not in grams for word in gram)
        if len(known) >= 0.9 * len(own) and not any(map(_DIGIT.search, fresh)):
            other, times = Counter(known).most_common(1)[0]
            if times >= 0.8 * len(own):
                low[i] = f"nearly repeats piece {other}"
                continue
        exact[text] = i
        for gram in own:
            grams.setdefault(gram, i)


def _score(
    pieces: Sequence[Piece],
    units: Sequence[Unit],
    texts: Sequence[UnitText],
    query: str,
    surprises: Sequence[float] | None,
    kind: ContentType,
) -> list[float]:
    """What each unit is worth: its fit to the query, how much it says, what a model did not expect."""
    terms = [[term for term in split_terms(unit.text) if term not in _STOP_WORDS] for unit in texts]
    counts = Counter(term for own in terms for term in set(own))
    rarity = {term: math.log(1 + len(units) / count) for term, count in counts.items()}
    top = math.log(1 + len(units)) or 1.0
    fits = _query_fits(texts, terms, rarity, query)
    newest = max((piece.section or 0 for piece in pieces), default=0)
    sure = _page_confidences(pieces) if kind == "page_doc" else {}
    scores = []
    for n, (unit, own, fit) in enumerate(zip(units, terms, fits, strict=True)):
        piece, text = pieces[unit[0]], texts[n].text
        says = sum(rarity[term] for term in set(own)) / top / (3 + len(own)) * min(1.0, len(own) / 4)
        says += _telling(text) + (surprises[n] if surprises is not None else 0.0)
        says += sure.get(unit[0], 0.0) >= _SURE
        if kind == "context.md":
            bonus = 0.15 * (piece.section == newest)
        elif kind == "page_doc":
            names = " ".join(_object_names(pieces, piece))
            bonus = next((value for word, value in _PAGE_ORDER if word in names), 0.0)
        elif kind == "research.md":
            bonus = 0.1 * ("://" in text or text.lstrip().startswith(("-", "*")))
        elif kind == "tool_result":
            bonus = 0.1 * (n >= len(units) - 3)
        else:
            bonus = 0.05 * (n == 0)
        scores.append(fit + _SAYS * says + bonus)
    return scores


def _telling(text: str) -> float:
    """How many names, numbers, times, negations and words of oneself a text has, -0.4 to 1."""
    score = 0.35 * count_kind(text, "name")
    score += 0.3 * bool(count_kind(text, "number")) + 0.2 * bool(count_kind(text, "time"))
    denies, of_self = (bool(phrases("marks.txt", name).search(text)) for name in ("negations", "first"))
    return max(-0.4, min(1.0, score + 0.1 * denies + 0.2 * of_self - 0.4 * text.rstrip().endswith("?")))


def _query_fits(
    units: Sequence[UnitText], terms: Sequence[Sequence[str]], rarity: Mapping[str, float], query: str
) -> list[float]:
    """How far each unit answers the query, 0 to about 2: by words that it, or what is beside it, shares."""
    asked = list(dict.fromkeys(term for term in split_terms(query) if term not in _STOP_WORDS))
    if not asked:
        return [0.0] * len(units)
    weights = {term: rarity.get(term, math.log(1 + len(units))) for term in asked}
    total = sum(weights.values()) or 1.0
    starts = {
        term: {word for word in rarity if word[:_SHARED_START] == term[:_SHARED_START]}
        for term in asked
        if len(term) >= _SHARED_START
    }
    own: list[float] = []
    lines: dict[int, float] = {}
    for unit, held in zip(units, map(set, terms), strict=True):
        under, score = set(split_terms(unit.around)), 0.0
        for term in asked:
            if term in held:
                score += weights[term]
            elif term in starts and not starts[term].isdisjoint(held):
                score += 0.7 * weights[term]
            elif term in under:
                score += 0.6 * weights[term]
        own.append(score / total)
        lines[unit.line] = max(own[-1], lines.get(unit.line, 0.0))
    kind = wanted_kind(query)
    fits = []
    for unit, score in zip(units, own, strict=True):
        before, after = lines.get(unit.line - 1, 0.0), lines.get(unit.line + 1, 0.0)
        score += _SAME_LINE * lines[unit.line] + _LINE_BEFORE * before + _LINE_AFTER * after
        fits.append(score + 0.1 * (kind is not None and count_kind(unit.text, kind) > 0))
    return fits
