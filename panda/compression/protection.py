"""What in a document must survive, what should, and what is the first to go (S3 §24)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from panda.compression.documents import ContentType
from panda.compression.pieces import WORDED_DATE, Piece
from panda.documents.evidence import check_each, find_claims
from panda.errors import UsageError
from panda.language.words import phrases, split_terms

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
_BOILERPLATE = phrases("page_text.txt", "boilerplate")
_CONTENTS_LINE = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])?\s*\[[^\]]*\]\(#[^)]*\)\s*\Z")
_BOILERPLATE_CHARS = 90
_ERROR_CHARS = 1_200
_DIGIT = re.compile(r"\d")
_FACT_KINDS = ("price", "url", "date")
_TIME = re.compile(r"(?<=\d)[T ,]+(?=\d\d?:\d)")
_WORDED_DATE = re.compile(WORDED_DATE)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WITHOUT_FACTS = ("navigation", "zone with confidence below 0.5", "says something else when it stands alone")
_NGRAM = 3
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


@dataclass(frozen=True)
class Weights:
    """What is known of each piece before its words are weighed, by index."""

    protected: frozenset[int]  # never dropped
    reasons: dict[int, str]  # why each protected piece is so
    facts: dict[int, tuple[str, ...]]
    """
    Prices, URLs and dates in a piece: each as a value, and as it is written, which begins with "as" and
    counts for little. So do times of day, days without a year, and names of sites.
    """
    low: dict[int, str]  # pieces that go first, with the reason


def weigh(
    pieces: Sequence[Piece], kind: ContentType, source: str, *, keep: Sequence[re.Pattern[str]] = ()
) -> Weights:
    """What must stay, what should stay and what goes first."""
    reasons: dict[int, str] = {}
    facts: dict[int, tuple[str, ...]] = {}
    low: dict[int, str] = {}
    errors = _error_pieces(pieces, kind, source)
    kept = _kept_pieces(pieces, keep)
    for i, piece in enumerate(pieces):
        if kind == "context.md" and (piece.kind == "front" or piece.section == 0 or _is_canonical(piece)):
            reasons[i] = "section 0" if piece.section == 0 else "structure"
        elif i in kept:
            reasons[i] = "keep"
        elif i in errors:
            reasons[i] = "error message"
        elif piece.kind not in ("fence", "label", "table_head"):
            own = _facts(piece)
            if own:
                facts[i] = own
    _drop_first(pieces, kind, low)
    _drop_repeated(pieces, low)
    wrong = _misleading(pieces, source)
    low |= dict.fromkeys(wrong, "says something else when it stands alone")
    protected = frozenset(reasons)
    facts = {i: own for i, own in facts.items() if low.get(i) not in _WITHOUT_FACTS}
    return Weights(protected, reasons, facts, {i: why for i, why in low.items() if i not in protected})


def compile_keep(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern))
        except re.error as exc:
            fix = "escape characters such as ( and [ with a backslash"
            raise UsageError(f"not a regular expression: {exc}", where=f"--keep {pattern}", fix=fix) from exc
    return tuple(compiled)


def is_error(text: str) -> bool:
    """
    Whether a line is an error message, not a sentence about errors.

    >>> is_error("ValueError: bad"), is_error("2026-01-04 12:00 ERROR disk full"), is_error("Errors happen.")
    (True, True, False)
    """
    return len(text) <= _ERROR_CHARS and bool(_ERROR_LINE.match(text))


def _kept_pieces(pieces: Sequence[Piece], keep: Sequence[re.Pattern[str]]) -> set[int]:
    """Pieces in which a pattern occurs, or all pieces of a sentence in which it does so across them."""
    if not keep:
        return set()
    found = {i for i, piece in enumerate(pieces) if any(pattern.search(piece.text) for pattern in keep)}
    units: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        units.setdefault(piece.unit, []).append(i)
    for members in units.values():
        if len(members) > 1 and found.isdisjoint(members):
            text = " ".join(pieces[i].text for i in members)
            found.update(members if any(pattern.search(text) for pattern in keep) else ())
    return found


def _is_canonical(piece: Piece) -> bool:
    return piece.kind == "heading" and piece.section is not None and piece.text.startswith("## ")


def _error_pieces(pieces: Sequence[Piece], kind: ContentType, source: str) -> set[int]:
    """
    Pieces of lines that are error messages, each message once. An indented line is one only in the output of
    a tool: elsewhere it is a docstring that says what a function raises.
    """
    lines: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        if piece.kind in ("sentence", "label", "row", "code", "field"):
            lines.setdefault(piece.line, []).append(i)
    found: set[int] = set()
    seen: set[str] = set()
    for members in lines.values():
        first = pieces[members[0]]
        text = " ".join(pieces[i].text for i in members)
        by_key = first.kind == "field" and bool(first.path) and first.path[-1].lower() in _ERROR_KEYS
        says = by_key and text.split(": ", 1)[-1].strip() not in ("null", "false", "[]", "{}", "", "0")
        if (
            first.kind != "field"
            and kind != "tool_result"
            and source[first.start : first.start + 1].isspace()
        ):
            continue
        error = says and len(text) <= _ERROR_CHARS if by_key else is_error(text)
        if error and text not in seen:
            seen.add(text)
            found.update(members)
    return found


def _facts(piece: Piece) -> tuple[str, ...]:
    text = piece.text
    if not (_DIGIT.search(text) or "://" in text or "." in text):
        return ()
    is_price = piece.kind == "field" and bool(piece.path) and "price" in piece.path[-1].lower()
    found: dict[str, None] = {}
    for claim in find_claims(text):
        if claim.kind == "date":  # the times of a day are one date
            is_day = _DAY.match(claim.value)
            found |= {f"date {is_day[0]}": None} if is_day else {}
            found[f"as {_TIME.split(claim.text)[0]}"] = None
        elif claim.kind == "url" and "/" not in claim.value:
            found[f"as {claim.value}"] = None
        elif claim.kind in _FACT_KINDS or (is_price and claim.kind == "number"):
            found |= {f"{claim.kind} {claim.value}": None, f"as {claim.text}": None}
    worded = {match[0]: None for match in _WORDED_DATE.finditer(text)}
    return tuple(found | {f"date {day}": None for day in worded if f"as {day}" not in found})


def _drop_first(pieces: Sequence[Piece], kind: ContentType, low: dict[int, str]) -> None:
    confidences = page_confidences(pieces) if kind == "page_doc" else {}
    for i, piece in enumerate(pieces):
        confidence = confidences.get(i, 1.0)
        short = len(piece.text) <= _BOILERPLATE_CHARS
        if short and (_BOILERPLATE.search(piece.text) or _CONTENTS_LINE.match(piece.text)):
            low[i] = "boilerplate"
        elif not any(char.isalnum() for char in piece.text) and piece.kind in ("sentence", "code"):
            low[i] = "no words"
        elif kind == "page_doc" and not _PAGE_LOW.isdisjoint(object_names(pieces, piece)):
            low[i] = "navigation"
        elif confidence < 0.5:
            low[i] = "zone with confidence below 0.5"
        elif confidence < 0.8 and piece.path[-1].lower() not in _KEY_FIELDS:
            low[i] = "no key field, in a zone with confidence below 0.8"


def object_names(pieces: Sequence[Piece], piece: Piece) -> list[str]:
    """Keys that a value stands under, and what the objects around it are called; all in small letters."""
    named = [pieces[head].text.split(": ", 1)[-1] for head in piece.heads]
    return [name.lower() for name in (*piece.path, *named)]


def page_confidences(pieces: Sequence[Piece]) -> dict[int, float]:
    """How sure the page was read, by piece: as its innermost named object says that says so."""
    members: dict[int, list[int]] = {}
    for i, piece in enumerate(pieces):
        for head in piece.heads:
            members.setdefault(head, [head]).append(i)
    confidences: dict[int, float] = {}
    for piece in pieces:
        if piece.path[-1:] == ("confidence",) and piece.heads:
            try:
                value = float(piece.text.rpartition(":")[2])
            except ValueError:
                continue
            if not 0.0 <= value <= 1.0:
                continue
            for i in members[piece.heads[0]]:
                confidences.setdefault(i, value)
    return confidences


def _drop_repeated(pieces: Sequence[Piece], low: dict[int, str]) -> None:
    """Later sentences and rows of which an earlier piece says nearly every run of three words."""
    exact: dict[str, int] = {}
    grams: dict[tuple[str, ...], int] = {}
    for i, piece in enumerate(pieces):
        if piece.kind not in ("sentence", "row", "field", "code") or i in low:
            continue
        terms = split_terms(piece.text)
        if len(terms) < 4:
            continue
        own = [tuple(terms[k : k + _NGRAM]) for k in range(len(terms) - _NGRAM + 1)]
        text = " ".join(piece.text.split()).lower()
        if text in exact:
            low[i] = f"repeats piece {exact[text]}"
            continue
        known = [grams[gram] for gram in own if gram in grams]
        fresh = [gram for gram in own if gram not in grams]
        if len(known) >= 0.9 * len(own) and not any(_DIGIT.search(word) for gram in fresh for word in gram):
            other, times = Counter(known).most_common(1)[0]
            if times >= 0.8 * len(own):
                low[i] = f"nearly repeats piece {other}"
                continue
        exact[text] = i
        for gram in own:
            grams.setdefault(gram, i)


def _misleading(pieces: Sequence[Piece], source: str) -> list[int]:
    """Pieces that alone would claim a number, date or URL that the document does not hold."""
    texts = {
        i: piece.text for i, piece in enumerate(pieces) if _DIGIT.search(piece.text) or "." in piece.text
    }
    wrong = check_each(list(texts.values()), [source])
    return [i for i, claims in zip(texts, wrong, strict=True) if claims]
