"""
What of a document must stay (S3 §24), and the one order in which all else is kept, whatever the budget.

First come error messages, each once, then what the document is. Every other piece has one score: what it says
by its place in the document, and how far it answers the query.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from panda.compression.errors_told import ERROR_LINE, HTTP_ERROR, mask_values
from panda.compression.pieces import ERROR_TIER, STRUCTURE, ContentType, Piece
from panda.documents.context import SECTIONS, heading
from panda.language.patterns import lazy_pattern
from panda.language.words import FUNCTION_WORDS, phrases, split_terms
from panda.messages.matching import count_kind, wanted_kind

Closeness = Callable[[str, Sequence[str]], Sequence[float]]
"""Gives how close texts are to a query, by meaning; of a query that is empty, to all of them together."""

_ERROR_CHARS = 1_200
_BOILERPLATE = phrases("page_text.txt", "boilerplate")
_BOILERPLATE_CHARS = 90
_TIME_STAMP = lazy_pattern(r"\A[\[(]?(?:\d{4}-\d\d-\d\d[T ]?)?\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?Z?[\])]?\s+")
_PROMPT = lazy_pattern(r"\s*>>> ")
_TRACE_LINE = lazy_pattern(r"\s*Traceback \(most recent call last\):|\s+at \S+\(")
_NGRAM = 3
_SOURCE_TERMS = 3
"""A sentence with fewer words beside its address says only where something was read."""
_DIGIT = lazy_pattern(r"\d")
PRICE = lazy_pattern(r"[$€£¥₽₹]\s?\d|\d\s?(?:[€£¥₽₹円元]|(?:USD|EUR|GBP|euros?|dollars?|руб)\b)")
URL = lazy_pattern(r"[a-z][a-z0-9+.-]*://[^\s)\]>\"]+")
_KEY_FIELDS = frozenset(
    ("name", "title", "product", "price", "url", "availability", "rating", "confidence", "zone", "type")
)
_PAGE_LOW = frozenset(("navigation", "nav", "footer", "header", "menu", "sidebar", "ads"))
_PAGE_ORDER = (("pric", 1.2), ("product", 0.9), ("name", 0.9), ("url", 0.6), ("review", 0.3), ("time", 0.3))
_SURE = 0.8
_UNSURE = 0.5
"""Confidence of a zone of a page from which on it stays, and below which it goes first (S3 §22)."""
_ZONES_SHARE = 0.7
"""Part of the budget that the zones that stay may have of it whole."""
_SECTION_HEADINGS = frozenset(heading(kind.number) for kind in SECTIONS)
_STOP_WORDS = frozenset(split_terms(" ".join(FUNCTION_WORDS)))
_SHARED_START = 5
_SAME_LINE = 0.4
_LINE_BEFORE = 0.4
_LINE_AFTER = 0.2
"""An answer often stands beside the words that the question shares: in the same line, or below a question."""
_MEANING = 0.3
"""What it counts that a piece is close to all that stands at the best places."""
_LENGTH = 0.04
_SHORT_CHARS = 60
"""What each doubling of a length above that costs: a shorter piece leaves room for more."""
_PRICE_BONUS = 0.5
_EVIDENCE_BONUS = 0.5
"""What a price counts with the sentence that names it, and in research and pages, beside that, an address or
price with its claim (S3 §22)."""
_QUERY = 1.5
_CLOSE_QUERY = 1.0
_MOST_READ = 40
"""So many pieces, those at the best places, are compared by meaning."""
_HUGE_CHARS = 700
"""No piece over it is kept before shorter ones."""
_MOST_TOKEN_CHARS = 8
"""Hardly any text has fewer tokens than one for so many characters."""

Unit = Sequence[int]
"""Indexes of pieces that are weighed together, ascending: of a sentence, a row, a value."""


@dataclass(frozen=True)
class Item:
    """The next thing to keep."""

    pieces: tuple[int, ...]  # indexes of pieces
    rung: int  # what drops it: 1 repeats and boilerplate, 2 low priority, 3 too little information
    reason: str  # why it is dropped when it is
    tokens: int  # fewest budget tokens that its pieces can have, heads and marks apart


class _Ranked(NamedTuple):
    rung: int
    tier: int
    score: float
    item: Item


def find_protected(
    pieces: Sequence[Piece], kind: ContentType, keep: Sequence[re.Pattern[str]]
) -> dict[int, str]:
    """Return the pieces that are never dropped, with the reason: of context.md, and what *keep* names."""
    reasons: dict[int, str] = {}
    units: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        units.setdefault(piece.unit, []).append(i)
    for members in units.values():
        if not keep:
            break
        held = [i for i in members if any(pattern.search(pieces[i].text) for pattern in keep)]
        whole = " ".join(pieces[i].text for i in members)
        if not held and any(pattern.search(whole) for pattern in keep):  # it stands across a cut
            held = members
        reasons |= dict.fromkeys(held, "keep")
    for i, piece in enumerate(pieces):
        if kind != "context.md":
            break
        if piece.section == 0:
            reasons[i] = "section 0"
        elif piece.kind == "front" or piece.text in _SECTION_HEADINGS:
            reasons[i] = "structure"
    return reasons


def mark_errors(pieces: Sequence[Piece], source: str, *, is_told: bool) -> None:
    """
    Put the lines of a text that tell of an error before all else, each message once. Unless *is_told* holds,
    as of messages and the output of a tool, code and indented lines count only in a log or a traceback:
    others show what a program could say.
    """
    seen: set[str] = set()
    for piece in pieces:
        if piece.kind not in ("sentence", "row", "code") or len(piece.text) > _ERROR_CHARS:
            continue
        is_shown = not is_told and (piece.kind == "code" or source[piece.start].isspace())
        lines = piece.text.split("\n")
        is_trace = not _PROMPT.match(piece.text) and any(map(_TRACE_LINE.match, lines))
        for line in lines:
            text = line.strip().lstrip("-*>|` ")
            stamp = _TIME_STAMP.match(text)
            text = text[stamp.end() :] if stamp else text
            is_said = is_told and piece.kind == "sentence"
            error = ERROR_LINE.search(text) if is_said or is_trace else ERROR_LINE.match(text)
            if (is_shown and not (stamp or is_trace)) or not (error or HTTP_ERROR.search(text)):
                continue
            message = mask_values(text)
            if message not in seen:
                piece.tier = ERROR_TIER
                piece.noun = "error"
            seen.add(message)


def bind_sources(pieces: Sequence[Piece]) -> None:
    """Let the address that a claim is taken from, where it stands behind the claim, stand with it."""
    lines: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        if piece.kind == "sentence":
            lines.setdefault(piece.line, []).append(i)
    for members in lines.values():
        sources = [i for i in members if len(split_terms(URL.sub("", pieces[i].text))) < _SOURCE_TERMS]
        claims = [i for i in members if i not in sources]
        for i in claims:
            pieces[i].heads = (*pieces[i].heads, *(at for at in sources if URL.search(pieces[at].text)))


def find_first(pieces: Sequence[Piece], kind: ContentType) -> tuple[set[int], set[int], float]:
    """
    Return what comes before all that is not protected (S3 §22, §23): of context.md the newest section, of a
    page the zones that were read well.

    Returns:
        Pieces to be kept together where they fit; those to come first where they do not; and the share of the
        budget that they have to fit.
    """
    if kind == "context.md":
        newest = max((piece.section or 0 for piece in pieces), default=0)
        last = {i for i, piece in enumerate(pieces) if newest and piece.section == newest}
        return last, last, 1.0
    sure = set[int]()
    needed = set[int]()
    for i, piece in enumerate(pieces):
        if kind != "page_doc" or not _PAGE_LOW.isdisjoint(_object_names(pieces, piece)):
            continue
        is_field = piece.kind == "field"
        confidence = piece.confidence
        if confidence is None:
            is_needed = is_field and len(piece.path) == 1  # when, and where it is
        elif confidence >= _SURE:
            sure.add(i)
            is_needed = is_field or PRICE.search(piece.text) is not None
        else:
            is_needed = is_field and confidence >= _UNSURE and piece.path[-1].lower() in _KEY_FIELDS
        if is_needed:
            needed.add(i)
    return sure, needed, _ZONES_SHARE


def rank(
    pieces: Sequence[Piece],
    protected: Mapping[int, str],
    kind: ContentType,
    *,
    query: str,
    closeness: Closeness | None = None,
) -> list[Item]:
    """Return everything that is not protected, each piece once, best first."""
    members: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        if piece.kind not in STRUCTURE or (piece.kind == "count" and piece.tier):
            members.setdefault(piece.unit, []).append(i)
    units = list(members.values())
    low = _find_low(pieces, kind)
    scores = _score(pieces, units, query, kind, closeness)
    ranked: list[_Ranked] = []
    for unit, score in zip(units, scores, strict=True):
        least_cost = min(pieces[i].cost for i in unit)
        for i in unit:
            if i in protected:
                continue
            piece = pieces[i]
            chars = len(piece.text)
            rung = 3
            reason = "says less than what is kept"
            if i in low and not piece.tier:
                rung, reason = low[i]
            elif chars > _HUGE_CHARS and piece.kind != "code" and not piece.tier:
                rung = 2
                reason = f"one piece of {chars} characters that cannot be cut"
            tokens = chars // _MOST_TOKEN_CHARS
            later = least_cost - piece.cost  # a later part of a sentence comes after the first
            if piece.kind == "sentence" and PRICE.search(piece.text):
                later = 0.0  # but not the one for which the sentence counts more
            ranked.append(
                _Ranked(rung, piece.tier, score + min(0.0, later), Item((i,), rung, reason, tokens))
            )
    ranked.sort(key=lambda one_item: (-one_item.rung, -one_item.tier, -one_item.score, one_item.item.pieces))
    items = [entry.item for entry in ranked]
    taken = protected.keys() | {i for item in items for i in item.pieces}
    bare = (i for i in range(len(pieces)) if i not in taken)
    return [*items, *(Item((i,), 2, "nothing below it is kept", 0) for i in bare)]


def _find_low(pieces: Sequence[Piece], kind: ContentType) -> dict[int, tuple[int, str]]:
    """Return the pieces that go first, with the rung and the reason."""
    low: dict[int, tuple[int, str]] = {}
    runs_before: set[tuple[str, ...]] = set()
    for i, piece in enumerate(pieces):
        text = piece.text
        confidence = piece.confidence if kind == "page_doc" else None
        if piece.low:
            low[i] = 1, piece.low
        elif len(text) <= _BOILERPLATE_CHARS and _BOILERPLATE.search(text):
            low[i] = 1, "boilerplate"
        elif kind == "page_doc" and not _PAGE_LOW.isdisjoint(_object_names(pieces, piece)):
            low[i] = 1, "navigation"
        elif confidence is not None and confidence < _UNSURE:
            low[i] = 1, "zone with confidence below 0.5"
        elif confidence is not None and confidence < _SURE and piece.path[-1].lower() not in _KEY_FIELDS:
            low[i] = 2, "no key field, in a zone with confidence below 0.8"
        elif piece.kind in ("sentence", "field") and (confidence is None or confidence < _SURE):
            terms = split_terms(text)
            runs = set(zip(*(terms[k:] for k in range(_NGRAM)), strict=False))
            fresh = runs - runs_before
            has_number = any(_DIGIT.search(word) for run in fresh for word in run)
            if len(runs) > 1 and len(fresh) <= 0.1 * len(runs) and not has_number:
                low[i] = 1, "repeats what stands before it"
            runs_before |= runs
    return low


def _object_names(pieces: Sequence[Piece], piece: Piece) -> list[str]:
    """Return the keys that a value stands under, its words, and what objects around it are called."""
    named = [pieces[head].text for head in piece.heads]
    if piece.kind == "field":
        named.append(piece.text)
    return [name.lower() for name in (*piece.path, *(text.split(": ", 1)[-1] for text in named))]


def _score(
    pieces: Sequence[Piece],
    units: Sequence[Unit],
    query: str,
    kind: ContentType,
    closeness: Closeness | None,
) -> list[float]:
    """Return what each unit is worth: by its place, and its fit to the query."""
    texts = [" ".join(pieces[i].text for i in unit) for unit in units]
    terms = [[term for term in split_terms(URL.sub(" ", text)) if term not in _STOP_WORDS] for text in texts]
    places = [1 / (1 + max(0.0, min(pieces[i].cost for i in unit))) for unit in units]
    fits = _query_fits(pieces, units, terms, query)
    scores: list[float] = []
    for n, unit in enumerate(units):
        piece = pieces[unit[0]]
        score = places[n] + _QUERY * fits[n]
        score -= _LENGTH * math.log2(max(1.0, len(texts[n]) / _SHORT_CHARS))
        if piece.kind != "code" and PRICE.search(texts[n]):
            score += _PRICE_BONUS
        if kind == "research.md" and (
            PRICE.search(texts[n]) or any(URL.search(pieces[i].text) for i in piece.heads)
        ):
            score += _EVIDENCE_BONUS
        if kind == "page_doc" and URL.search(texts[n]):
            score += _EVIDENCE_BONUS
        if kind == "page_doc":
            names = " ".join(_object_names(pieces, piece))
            score += next((value for word, value in _PAGE_ORDER if word in names), 0.0)
            score += 2.0 * (piece.confidence is None or piece.confidence >= _SURE)
        scores.append(score)
    if closeness is not None:
        _add_meaning(scores, texts, query, closeness)
    return scores


def _add_meaning(own_scores: list[float], texts: Sequence[str], query: str, closeness: Closeness) -> None:
    """Add to the best own_scores how close the texts are to the query, or to each other without one."""
    best = sorted(range(len(own_scores)), key=lambda n: -own_scores[n])[:_MOST_READ]
    weight = _CLOSE_QUERY if query else _MEANING
    for n, near in zip(best, closeness(query, [texts[n] for n in best]), strict=True):
        own_scores[n] += weight * near


def _query_fits(
    pieces: Sequence[Piece], units: Sequence[Unit], terms: Sequence[Sequence[str]], query: str
) -> list[float]:
    """Return how far each unit answers the query, 0 to about 2: by words that it and its neighbours share."""
    asked = list(dict.fromkeys(term for term in split_terms(query) if term not in _STOP_WORDS))
    if not asked:
        return [0.0] * len(units)
    counts = Counter(term for own in terms for term in set(own))
    weights = {term: math.log(1 + len(units) / max(1, counts[term])) for term in asked}
    total = sum(weights.values()) or 1.0
    shares: list[float] = []
    lines: dict[int, float] = {}
    for unit, own in zip(units, terms, strict=True):
        first = pieces[unit[0]]
        held = set(own)
        heads = [pieces[i].text for i in first.heads if pieces[i].kind in STRUCTURE]
        under = set(split_terms(" ".join([*first.path[:-1], *heads])))
        starts = {term[:_SHARED_START] for term in held}
        score = 0.0
        for term in asked:
            if term in held:
                score += weights[term]
            elif len(term) >= _SHARED_START and term[:_SHARED_START] in starts:
                score += 0.7 * weights[term]
            elif term in under:
                score += 0.6 * weights[term]
        shares.append(score / total)
        lines[first.line] = max(shares[-1], lines.get(first.line, 0.0))
    wanted = wanted_kind(query)
    fits: list[float] = []
    for unit, score in zip(units, shares, strict=True):
        first = pieces[unit[0]]
        before = lines.get(first.line - 1, 0.0)
        after = lines.get(first.line + 1, 0.0)
        fit = score + _SAME_LINE * lines[first.line] + _LINE_BEFORE * before + _LINE_AFTER * after
        text = " ".join(pieces[i].text for i in unit) if wanted else ""
        fits.append(fit + 0.1 * (wanted is not None and count_kind(text, wanted) > 0))
    return fits
