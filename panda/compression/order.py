"""
What of a document must stay (S3 §24), and the one order in which all else is kept, whatever the budget.

Every piece has one score: how far it answers the query, how much it says, and what the type of the document
makes of it. The next to be kept is the one of the highest score, to which prices, URLs and dates add that
nothing before it holds, the more the fewer tokens it takes.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from panda.compression.pieces import WORDED_DATE, ContentType, Piece, has_value, with_heads
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
_DAY = re.compile(r"(\d{4}-\d\d-\d\d).*")
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
_PAGE_ORDER = (("pric", 1.2), ("product", 0.9), ("name", 0.9), ("url", 0.6), ("review", 0.3), ("time", 0.3))
_SURE, _UNSURE = 0.8, 0.5
"""Confidence of a zone of a page from which on it stays, and below which it goes first (S3 §22)."""
_ZONES_SHARE = 0.7
"""Part of the budget that the zones that stay may have of it whole."""
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


@dataclass(frozen=True)
class Item:
    """The next thing to keep."""

    pieces: tuple[int, ...]  # indexes of pieces
    rung: int  # what drops it: 1 repeats and boilerplate, 2 low priority, 3 too little information
    reason: str  # why it is dropped when it is
    tokens: int  # budget tokens of its pieces, heads and marks apart


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
            is_told = kind == "tool_result" or not is_indented
            is_message = is_told and len(text) <= _ERROR_CHARS and _ERROR_LINE.match(text) is not None
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


def find_first(pieces: Sequence[Piece], kind: ContentType) -> tuple[set[int], set[int], float]:
    """
    What comes before all that is not protected (S3 §22, §23): of context.md the newest section, of a page the
    zones that were read well.

    Returns:
        Pieces to be kept together where they fit; those to come first where they do not; and the share of the
        budget that they have to fit.
    """
    if kind == "context.md":
        newest = max((piece.section or 0 for piece in pieces), default=0)
        last = {i for i, piece in enumerate(pieces) if newest and piece.section == newest}
        return last, last, 1.0
    sure, needed = set[int](), set[int]()
    for i, piece in enumerate(pieces) if kind == "page_doc" else ():
        if not _PAGE_LOW.isdisjoint(_object_names(pieces, piece)):
            continue
        is_field, confidence = piece.kind == "field", piece.confidence
        if confidence is None:
            is_needed = is_field and len(piece.path) == 1 and has_value(piece.text)  # when, and where it is
        elif confidence >= _SURE:
            sure.add(i)
            is_needed = is_field or has_value(piece.text)
        else:
            is_needed = is_field and confidence >= _UNSURE and piece.path[-1].lower() in _KEY_FIELDS
        needed |= {i} if is_needed else set()
    return sure, needed, _ZONES_SHARE


def rank(
    pieces: Sequence[Piece],
    protected: Mapping[int, str],
    kind: ContentType,
    *,
    query: str,
) -> list[Item]:
    """Return everything that is not protected, each piece once, best first."""
    members: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        if piece.kind not in _STRUCTURE:
            members.setdefault(piece.unit, []).append(i)
    units = list(members.values())
    tokens = [count_tokens(piece.text) for piece in pieces]
    low = _find_low(pieces, kind)
    texts = [_unit_text(pieces, unit) for unit in units]
    scores = _score(pieces, units, texts, query, kind)
    facts = [_facts(piece) for piece in pieces]
    told = (i for i, piece in enumerate(pieces) if piece.kind == "heading" and facts[i])
    offers = [_Offer((i,), 0.0, 3, "nothing below it is kept") for i in told]  # the days of a changelog
    for unit, score in zip(units, scores, strict=True):
        most = _WHOLE_TOKENS if sum(tokens[i] for i in unit) <= _WHOLE_TOKENS else _CLAUSE_TOKENS
        parts: list[list[int]] = []
        for i in unit:
            if i in low:
                offers.append(_Offer((i,), score, *low[i]))
            elif tokens[i] > _HUGE_TOKENS:
                offers.append(_Offer((i,), score, 2, f"one piece of {tokens[i]} tokens that cannot be cut"))
            elif parts and sum(tokens[k] for k in parts[-1]) + tokens[i] <= most:
                parts[-1].append(i)
            else:
                parts.append([i])
        for part in parts:
            alone = [(i,) for i in part if facts[i]]  # a fact may stand without its clause
            offers += [
                _Offer(some, score, 3, "says less than what is kept") for some in (tuple(part), *alone)
            ]
    weight = _FACT_WITH_QUERY if query else _FACT
    return _take(pieces, tokens, protected, offers, facts, weight)


def _unit_text(pieces: Sequence[Piece], unit: Unit) -> UnitText:
    first = pieces[unit[0]]
    around = [pieces[i].text for i in first.heads if pieces[i].kind in ("label", "heading", "table_head")]
    return UnitText(" ".join(pieces[i].text for i in unit), first.line, " ".join([*first.path[:-1], *around]))


class _Offer(NamedTuple):
    pieces: tuple[int, ...]
    score: float
    rung: int
    reason: str


def _take(
    pieces: Sequence[Piece],
    tokens: Sequence[int],
    protected: Mapping[int, str],
    offers: Sequence[_Offer],
    facts: Sequence[Set[str]],
    fact_score: float,
) -> list[Item]:
    """What is offered, each time the best by what stands already; structure that is left over comes last."""
    covered = {fact for i in protected for fact in facts[i]}
    stands = with_heads(pieces, set(protected))
    below: dict[int, list[int]] = {}  # offers with facts, by the heads that they need
    for n, offer in enumerate(offers):
        for i in offer.pieces if offer.rung == 3 else ():
            for head in pieces[i].heads if facts[i] else ():
                below.setdefault(head, []).append(n)

    def place(n: int) -> tuple[int, float, int]:
        """What is smaller is taken earlier."""
        offer = offers[n]
        new = {fact for i in offer.pieces for fact in facts[i]} - covered
        if not new or offer.rung < 3:
            return -offer.rung, -offer.score, n
        size = sum(tokens[i] for i in with_heads(pieces, set(offer.pieces)) - stands)
        return -3, -offer.score - fact_score * len(new) / (_MARK_TOKENS + size), n

    waiting = list(map(place, range(len(offers))))
    heapify(waiting)
    items: list[Item] = []
    while waiting:
        n = heappop(waiting)[-1]
        left = tuple(i for i in offers[n].pieces if i not in stands)
        if not left:
            continue
        now = place(n)
        if waiting and now > waiting[0]:
            heappush(waiting, now)
            continue
        items.append(Item(left, offers[n].rung, offers[n].reason, sum(tokens[i] for i in left)))
        stand_now = with_heads(pieces, set(left)) - stands
        covered.update(fact for i in stand_now for fact in facts[i])
        stands |= stand_now
        for head in stand_now.difference(left):  # what stands below takes less now
            for other in below.get(head, ()):
                heappush(waiting, place(other))
    ranked = protected.keys() | {i for item in items for i in item.pieces}
    bare = (i for i in range(len(pieces)) if i not in ranked)
    return [*items, *(Item((i,), 2, "nothing below it is kept", 0) for i in bare)]


def _facts(piece: Piece) -> frozenset[str]:
    """Prices, URLs and days in a piece, as values; those that only some of them are, as they are written."""
    text = piece.text
    if piece.kind in _STRUCTURE[1:] or not (_DIGIT.search(text) or "." in text):
        return frozenset()
    is_price = piece.kind == "field" and bool(piece.path) and "price" in piece.path[-1].lower()
    kinds = ("price", "url", "date", *(("number",) if is_price else ()))
    days = [" ".join(match[0].split()) for match in _WORDED_DATE.finditer(text)]
    claims = [claim for claim in find_claims(text) if claim.kind in kinds]
    return frozenset([*days, *(_DAY.sub(r"\1", claim.value) for claim in claims)])


def _find_low(pieces: Sequence[Piece], kind: ContentType) -> dict[int, tuple[int, str]]:
    """Pieces that go first, with the rung and the reason."""
    low: dict[int, tuple[int, str]] = {}
    known: set[tuple[str, ...]] = set()
    for i, piece in enumerate(pieces):
        text, sure = piece.text, piece.confidence if kind == "page_doc" else None
        if len(text) <= _BOILERPLATE_CHARS and (_BOILERPLATE.search(text) or _CONTENTS_LINE.match(text)):
            low[i] = 1, "boilerplate"
        elif piece.kind in ("sentence", "code") and not any(map(str.isalnum, text)):
            low[i] = 1, "no words"
        elif kind == "page_doc" and not _PAGE_LOW.isdisjoint(_object_names(pieces, piece)):
            low[i] = 1, "navigation"
        elif sure is not None and sure < _UNSURE:
            low[i] = 1, "zone with confidence below 0.5"
        elif sure is not None and sure < _SURE and piece.path[-1].lower() not in _KEY_FIELDS:
            low[i] = 2, "no key field, in a zone with confidence below 0.8"
        elif piece.kind not in _STRUCTURE:
            terms = split_terms(text)
            runs = set(zip(*(terms[k:] for k in range(_NGRAM)), strict=False))
            fresh = runs - known
            has_number = any(_DIGIT.search(word) for run in fresh for word in run)
            if len(runs) > 1 and len(fresh) <= 0.1 * len(runs) and not has_number:
                low[i] = 1, "repeats what stands before it"
            known |= runs
    return low


def _object_names(pieces: Sequence[Piece], piece: Piece) -> list[str]:
    """Keys that a value stands under, its words, what objects around it are called; all in small letters."""
    named = [pieces[head].text for head in piece.heads] + [piece.text] * (piece.kind == "field")
    return [name.lower() for name in (*piece.path, *(text.split(": ", 1)[-1] for text in named))]


def _score(
    pieces: Sequence[Piece],
    units: Sequence[Unit],
    texts: Sequence[UnitText],
    query: str,
    kind: ContentType,
) -> list[float]:
    """Return what each unit is worth: its fit to the query, and how much it says."""
    terms = [[term for term in split_terms(unit.text) if term not in _STOP_WORDS] for unit in texts]
    counts = Counter(term for own in terms for term in set(own))
    rarity = {term: math.log(1 + len(units) / count) for term, count in counts.items()}
    top = math.log(1 + len(units)) or 1.0
    fits = _query_fits(texts, terms, rarity, query)
    scores = []
    for n, (unit, own, fit) in enumerate(zip(units, terms, fits, strict=True)):
        piece, text = pieces[unit[0]], texts[n].text
        says = sum(rarity[term] for term in set(own)) / top / (3 + len(own)) * min(1.0, len(own) / 4)
        says += _telling(text)
        names = " ".join(_object_names(pieces, piece)) if kind == "page_doc" else ""
        bonus = {
            "page_doc": next((value for word, value in _PAGE_ORDER if word in names), 0.0)
            + 2.0 * (piece.confidence is None or piece.confidence >= _SURE),
            "research.md": 0.1 * ("://" in text or text.lstrip().startswith(("-", "*"))),
            "tool_result": 0.1 * (n >= len(units) - 3),
        }
        scores.append(fit + _SAYS * says + bonus.get(kind, 0.05 * (n == 0)))
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
    own: list[float] = []
    lines: dict[int, float] = {}
    for unit, held in zip(units, map(set, terms), strict=True):
        under, score = set(split_terms(unit.around)), 0.0
        starts = {term[:_SHARED_START] for term in held}
        for term in asked:
            if term in held:
                score += weights[term]
            elif len(term) >= _SHARED_START and term[:_SHARED_START] in starts:
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
