"""Whether the numbers, prices, dates, quantities and URLs of a text occur in its sources."""

import re
from collections.abc import Iterator, Sequence

from panda.documents.claims import Claim, FoundClaim, found_claim, readable_text
from panda.documents.written_dates import DATE_FORMS, DATES, read_date
from panda.documents.written_numbers import (
    CURRENCY_BEFORE,
    DIGITS,
    NUMBER_WORDS,
    currency_after,
    currency_code,
    normal_number,
    number_from_words,
    scale_after,
    scaled,
    unit_after,
)

__all__ = ["Claim", "check_each", "check_evidence", "find_claims"]

_WORD = r"[^\W\u2e80-\U0010ffff]"
_SITE_ENDS = "com|org|net|io|dev|gov|edu|info|co|uk|de|fr|eu|ai|app|shop"
_START = re.compile(
    rf"""
    (?P<url>(?<![A-Za-z0-9+.-])(?i:[a-z][a-z0-9+.-]*://[^\s<>"`|]+))
  | (?P<site>(?i:(?<![\w.-])(?:[a-z0-9-]+\.)+(?:{_SITE_ENDS})(?![\w-])(?:/[^\s<>"`|]*)?))
  | {DATES}
  | (?P<number>(?:(?<![\w)\]])(?P<sign>[-−]))?
      (?:(?<![A-Za-z])(?P<before>{CURRENCY_BEFORE})[ ]?(?P<minus>[-−])?)?(?P<digits>{DIGITS}))
  | (?P<words>(?i:{NUMBER_WORDS}))
  | (?P<token>(?<!{_WORD})[^\W\d\u2e80-\U0010ffff]{_WORD}*?\d{_WORD}*(?:\.\d+)*)
    """,
    re.VERBOSE,
)
_RANGE = re.compile(rf"[-–—‑](?P<before>{CURRENCY_BEFORE})?(?P<digits>{DIGITS})(?![\d:]|-\d)")
_GLUED = re.compile(rf"(?![x×]\d){_WORD}+")
_ORDINAL = re.compile(rf"(?:st|nd|rd|th)(?!{_WORD})")
_ORDINAL_WORDS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth"
_ORDINAL_WORD = re.compile(rf"-({_ORDINAL_WORDS})\b", re.IGNORECASE)
_WORD_BEFORE = re.compile(rf"({_WORD}+)[ -]\Z")
_NOT_COUNTED_BEFORE = re.compile(
    r"\b(?:the|this|that|these|those|which|each|every|any|no|another|other|either|neither|first|last|next"
    r"|only|as|\w+est|\w+er|good|great|better|best|new|same|right)[ ]\Z",
    re.IGNORECASE,
)
_COUNTED_AFTER = re.compile(
    r"[ -](?!(?:of|is|was|are|were|that|which|who|can|could|should|would|will|has|had|have|does|do|with|for"
    r"|in|on|at|and|or|to|by|from|you|i|we|it|they|he|she|as|but|if|when|where|costs?|comes?|looks?|seems?"
    r"|the|an?)\b)\w",
    re.IGNORECASE,
)


def find_claims(text: str) -> list[Claim]:
    """
    Everything in a text that a source must hold. Ordinal words ("the third") are no claims, "3rd" is one.

    Args:
        text: Any text; invisible characters are ignored, digits of every script count.

    Returns:
        The claims in order of appearance; a range is two claims. Every digit belongs to one.

    Source:
        design: evidence check.

    >>> for claim in find_claims("The LOQ 15 has 16GB for $697.00 (4 January 2026)."):
    ...     print(claim.kind, claim.value)
    number 15
    quantity 16 gb
    price USD 697
    date 2026-01-04
    """
    return [found.claim for found in _scan(text)]


def check_evidence(text: str, sources: Sequence[str]) -> list[Claim]:
    """
    The claims of a text that none of its sources holds.

    A bare number is supported by the same value anywhere, also in a price or quantity; a price only by the
    same value in the same currency, a quantity by the same value and unit, a date by the same day (or, with
    a time, the same instant), a URL only by itself.

    Args:
        text: What is said.
        sources: The texts that it cites, and no others. May be empty.

    Returns:
        The unsupported claims in order of appearance; empty if everything is supported.

    Source:
        design: evidence check.

    >>> check_evidence("$697 on January 4, 2026", ["Lenovo LOQ 15: price $697.00, seen 2026-01-04T13:20:00Z"])
    []
    >>> [claim.text for claim in check_evidence("$697 for 16 GB", ["€697", "697 GB", "16 hours"])]
    ['$697', '16 GB']
    """
    return next(iter(check_each([text], sources)))


def check_each(texts: Sequence[str], sources: Sequence[str]) -> list[list[Claim]]:
    """
    check_evidence of each text, with the sources read once.

    >>> [[claim.text for claim in found] for found in check_each(["7 cats", "9 cats"], ["7 cats"])]
    [[], ['9']]
    """
    given: set[str] = set()
    for source in sources:
        for found in _scan(source):
            given |= found.gives
    return [[found.claim for found in _scan(text) if not found.needs & given] for text in texts]


def _scan(text: str) -> Iterator[FoundClaim]:
    text = readable_text(text)
    at = 0
    while match := _START.search(text, at):
        for found in _READERS[match.lastgroup or ""](text, match):
            yield found
            at = found.end
        at = max(at, match.start() + 1)


def _read_url(text: str, match: re.Match[str]) -> Iterator[FoundClaim]:
    url = match[0]
    while url and (url[-1] in ".,;:!?'’”*_]}" or (url[-1] == ")" and url.count(")") > url.count("("))):
        url = url[:-1]
    bare = re.sub(r"\A(?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:www\.)?", "", url)
    host = bare.split("/")[0].lower()
    end = match.start() + len(url)
    if match.lastgroup == "url":
        gives = [f"site:{bare}", f"site:{host}"]
        yield found_claim(text, match.start(), end, "url", url, needs=[f"url:{url}"], gives=gives)
    else:
        value = bare if "/" in bare else host
        yield found_claim(
            text, match.start(), end, "url", value, needs=[f"site:{value}"], gives=[f"site:{host}"]
        )


def _read_date(text: str, match: re.Match[str]) -> Iterator[FoundClaim]:
    value, need, gives = read_date(match)
    yield found_claim(text, match.start(), match.end(), "date", value, needs=[need], gives=gives)


def _read_token(text: str, match: re.Match[str]) -> Iterator[FoundClaim]:
    word = match[0].lower()
    version = [f"written:{word[1:]}"] if re.fullmatch(r"v\d+(?:\.\d+)+", word) else []
    yield found_claim(text, match.start(), match.end(), "number", word, needs=[f"token:{word}", *version])


def _read_words(text: str, match: re.Match[str]) -> Iterator[FoundClaim]:
    if match[0].lower() == "one":
        counted = _COUNTED_AFTER.match(text, match.end())
        if not counted or _NOT_COUNTED_BEFORE.search(text, max(0, match.start() - 20), match.start()):
            return
    *others, last = number_from_words(match[0])
    for number in map(str, others):
        yield found_claim(text, match.start(), match.end(), "number", number, needs=[f"number:{number}"])
    ordinal = _ORDINAL_WORD.match(text, match.end())
    if ordinal:
        value = str(last + 1 + _ORDINAL_WORDS.split("|").index(ordinal[1].lower()))
        yield found_claim(text, match.start(), ordinal.end(), "number", value, needs=[f"number:{value}"])
        return
    yield _measured(text, match.start(), match.end(), str(last), currency=None)


def _read_number(text: str, match: re.Match[str]) -> Iterator[FoundClaim]:
    currency = currency_code(match["before"]) if match["before"] else None
    sign = "-" if match["sign"] or match["minus"] else ""
    start, end = match.start(), match.end()
    value = normal_number(match["digits"], dot_groups=currency == "EUR")
    other = _RANGE.match(text, end)
    if value and other and not sign:
        upper = normal_number(other["digits"], dot_groups=currency == "EUR")
        if upper and _less(value, upper):
            shared = currency_code(other["before"]) if other["before"] else currency
            second = _measured(text, other.start("digits"), other.end(), upper, currency=shared)
            if second.claim.kind != "number" or second.claim.value.replace(".", "").isdigit():
                yield _like(second, text, start, end, value, currency)
                yield second
                return
    if value is None:
        yield from _read_parts(text, match)
        return
    yield _measured(text, start, end, sign + value, currency=currency, written=match["digits"])


def _less(first: str, second: str) -> bool:
    whole = (first.split(".")[0], second.split(".")[0])
    return (len(whole[0]), first) < (len(whole[1]), second)


def _like(
    second: FoundClaim, text: str, start: int, end: int, value: str, currency: str | None
) -> FoundClaim:
    """The lower end of a range, in the unit or currency of the upper end."""
    kind = second.claim.kind
    if kind == "price":
        code = currency or second.claim.value.split()[0]
        return found_claim(
            text,
            start,
            end,
            kind,
            f"{code} {value}",
            needs=[f"price:{code} {value}"],
            gives=[f"number:{value}"],
        )
    if kind == "quantity":
        full = f"{value} {second.claim.value.split(' ', 1)[1]}"
        return found_claim(
            text, start, end, kind, full, needs=[f"quantity:{full}"], gives=[f"number:{value}"]
        )
    return found_claim(text, start, end, "number", value, needs=[f"number:{value}"])


def _read_parts(text: str, match: re.Match[str]) -> Iterator[FoundClaim]:
    """Digits whose separators make no single number: a version, or a list without blanks."""
    written = match["digits"]
    start = match.start("digits")
    if re.fullmatch(r"[\d.]+", written):
        yield found_claim(text, start, match.end(), "number", written, needs=[f"written:{written}"])
        return
    for part in re.finditer(r"[\d.]+", written):
        value = normal_number(part[0])
        key = f"number:{value}" if value else f"written:{part[0]}"
        span = (start + part.start(), start + part.end())
        yield found_claim(text, *span, "number", value or part[0], needs=[key])


def _measured(
    text: str, start: int, end: int, value: str, *, currency: str | None, written: str | None = None
) -> FoundClaim:
    """A number with the scale, currency or unit that follows it."""
    sign, value = ("-", value[1:]) if value.startswith("-") else ("", value)
    places, end = scale_after(text, end, price=currency is not None)
    value = sign + scaled(value, places)
    after, end_of_currency = currency_after(text, end)
    if after and currency in (None, "USD", after):
        currency, end = after, end_of_currency
    if currency:
        full = f"{currency} {value}"
        return found_claim(
            text, start, end, "price", full, needs=[f"price:{full}"], gives=[f"number:{value}"]
        )
    unit, end_of_unit = unit_after(text, end)
    if unit:
        full = f"{value} {unit}"
        return found_claim(
            text, start, end_of_unit, "quantity", full, needs=[f"quantity:{full}"], gives=[f"number:{value}"]
        )
    ordinal = _ORDINAL.match(text, end)
    glued = None if ordinal else _GLUED.match(text, end)
    if glued:
        token = text[start : glued.end()].lower()
        return found_claim(text, start, glued.end(), "number", token, needs=[f"token:{token}"])
    return _bare(text, start, ordinal.end() if ordinal else end, value, written)


def _bare(text: str, start: int, end: int, value: str, written: str | None) -> FoundClaim:
    before = _WORD_BEFORE.search(text, max(0, start - 40), start)
    named = before is not None and len(before[1]) > 1 and before[1][0].isupper()
    joined = [f"token:{before[1]}{value}".lower()] if before and named else []  # "RTX 4050" is "RTX4050"
    if written and "." in written and written.endswith("0") and "." in value:
        exact = f"written:{written}"  # "Python 3.10" is not "Python 3.1"
        if named:
            return found_claim(text, start, end, "number", written, needs=[exact])
        return found_claim(text, start, end, "number", value, needs=[f"number:{value}"], gives=[exact])
    return found_claim(text, start, end, "number", value, needs=[f"number:{value}", *joined])


_READERS = {
    "url": _read_url,
    "site": _read_url,
    **dict.fromkeys(DATE_FORMS, _read_date),
    "number": _read_number,
    "words": _read_words,
    "token": _read_token,
}
