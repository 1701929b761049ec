"""The one scanner of what a text claims: amounts with their unit, prices, dates, addresses, model numbers."""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Literal

from panda.language.dates import (
    DATE_FORMS,
    DATES,
    JOINT,
    SHORT_DATES,
    TOLD_DATES,
    read_beside,
    read_date,
)
from panda.language.languages import ALL_FOREIGN_WORDS, FOREIGN_WORDS, LANGUAGES, calendar_names, language_of
from panda.language.numbers import (
    ALL_NUMBER_WORDS,
    BEFORE_RATE,
    COMMA_DECIMALS,
    CURRENCY_BEFORE,
    DIGITS,
    FRACTION_WORDS,
    HALVES,
    ORDINAL_WORDS,
    RATE_ADVERB,
    RATES,
    currency_after,
    currency_code,
    is_ambiguous,
    normal_number,
    number_from_words,
    rate_after,
    rate_of,
    reads_comma_decimals,
    scale_after,
    size_of,
    unit_after,
)
from panda.language.patterns import lazy_pattern
from panda.language.text import fold_name, is_host, plain_text
from panda.language.words import (
    FUNCTION_WORDS,
    LABELS,
    NOT_COUNTED,
    alternatives,
    is_ordinary,
    stem,
)

Kind = Literal["number", "price", "date", "quantity", "url", "name", "thing", "denial"]
_YEARS = range(1900, 2100)
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Claim:
    text: str  # the words as the text has them, in the writing of plain_text
    kind: Kind  # a model number such as "A15" and a version are numbers, a time of day is a date
    value: str  # the same value is always written the same way here: "USD 697", "2026-01-04", "16 gb"
    reason: str = ""  # what the sources say instead, where they hold the words


@dataclass(frozen=True)
class Amount:
    value: Fraction | None  # None where its writing can be read in two ways
    written: str  # its digits as they stand, or its normal form where it stands in words
    currency: str | None = None  # code of a price
    unit: str = ""  # normal name
    rate: str = ""  # what it is counted for: "month" in "$5 per month"
    rates: frozenset[str] = _NONE  # what else the line counts for: "monthly rent: $900"
    head: str = ""  # stem of the word that it counts: "laptop" in "12 gaming laptops"
    noun: str = ""  # the same word as it stands, in small letters
    counts: bool = False  # whether that word is sure to be counted: a plural, or joined by a hyphen
    behind: frozenset[str] = _NONE  # stems of the words behind it, as far as they belong to it
    label: str = ""  # the name that it belongs to, folded: "loq" in "LOQ 15"
    labels: frozenset[str] = _NONE  # all words of that name
    before: str = ""  # the word directly before it, unless it is one of the commonest
    heading: frozenset[str] = _NONE  # stems of what stands before it as its title: "pages" in "Pages: 12"
    units_before: frozenset[str] = _NONE  # units in that title: "kg" in "Weight (kg): 2.4"
    ordinal: bool = False  # whether it is a place in an order: "3rd"
    languages: frozenset[str] = _NONE  # which that word may be of
    about: bool = False  # whether it says of itself that it is rounded
    beyond: int = 0  # 1 where what it rounds is said to be less ("just under"), -1 where more
    version: bool = False  # whether zeros at its end matter: "Python 3.10"


@dataclass(frozen=True)
class Found:
    """A claim where it stands in the plain text, with what can support it and what it supports."""

    claim: Claim
    start: int
    end: int
    needs: frozenset[str] = _NONE  # keys of which a source must give one
    gives: frozenset[str] = _NONE  # keys that the same words give when they stand in a source
    together: frozenset[str] = _NONE  # keys that support it if a source gives all of them
    apart: frozenset[str] = _NONE  # keys that support it if the sources give all of them between them
    amount: Amount | None = None  # the number, if it is one
    claims: bool = True  # whether the words claim anything; "May" alone only supports


_WORD = r"(?:(?=[\0-\u2e7f])\w)"
_LETTER = r"(?:(?=[\0-\u2e7f])[^\W\d_])"
_PHONE = (
    r"(?:\+|(?<!\d)00(?=[1-9]))\d{1,3}(?:[ ./-]?\(?\d{1,5}\)?){2,6}(?!\d)"
    r"|\(\d{2,5}\)[ ]?\d{2,5}(?:[ -]\d{2,5}){1,3}(?!\d)"
    r"|\d{3}[-.]\d{3}[-.]\d{4}(?![\d-])|(?<=[ ])\d{3}-\d{4}(?![\d-])"
    r"|0\d{2,4}[ /-]\d{2,}(?:[ -]\d{2,}){0,4}(?!\d)|0\d(?:[ .]\d\d){4}(?![ .]?\d)"
    r"|\d{3}[ ]\d{3}[ ]\d{3,4}(?=[ ]*(?:[.;)\n]|\Z))"
)
_ORDINAL_WORD = "|".join(ORDINAL_WORDS)
_START = lazy_pattern(
    rf"""
    (?P<url>(?<!(?i:[a-z0-9+.-]))(?i:[a-z][a-z0-9+.-]*://[^\s<>"`|]+))
  | (?P<mail>(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+[\w-]{{2,}})
  | (?P<site>(?<![\w.@-])(?:[\w-]+\.)+[^\W\d_][\w-]*(?::\d+)?(?:/[^\s<>"`|]{{0,300}}+)?)
  | (?=\w)(?:{DATES}) | (?<!\w)(?=\w)(?:{TOLD_DATES})
  | (?P<phone>(?<![\w.,$€£-]){_PHONE})
  | (?P<number>(?:(?<![\w)\]%])(?P<sign>[-–](?=[\d$€£.])|(?i:minus[ ]))|[+](?=[\d.]))?
      (?:(?<![A-Za-z])(?P<before>{CURRENCY_BEFORE})[ ]?(?P<minus>[-–])?)?(?P<digits>{DIGITS}))
  | {SHORT_DATES}
  | (?P<words>(?i:{ALL_NUMBER_WORDS}))
  | (?P<part>(?i:\b(?:half(?=[ ]an?\b)|(?:a|one)[ ](?:half|third|quarter|fifth|tenth)(?=[ ](?:an?|of)\b))))
  | (?P<half>\b(?:{HALVES})\b)
  | (?P<ordinal>(?i:\b(?:[a-z]+ty-)?(?:{_ORDINAL_WORD})\b))
  | (?P<token>(?<!{_WORD})(?=[\0-\u2e7f])[^\W\d]{_WORD}*?\d{_WORD}*(?:\.\d+)*)
    """,
    re.VERBOSE,
)
_NO_PHONE = lazy_pattern(rf"(?P<sign>\A\b)?(?P<before>\A\b)?(?P<minus>\A\b)?(?P<digits>{DIGITS})")
_NO_HOST = lazy_pattern(rf"{_WORD}*\d{_WORD}*(?:\.\d+)*")
_RANGE = lazy_pattern(
    r"(?:(?P<dash>[ ]?[-–—][ ]?)"
    rf"|(?P<word>{JOINT}|[ ](?:vs\.?|versus|instead[ ]of|rather[ ]than|→|->)[ ])"
    r"|(?P<times>[ ]?[x×][ ]?))(?P<minus>-)?"
    rf"(?P<before>{CURRENCY_BEFORE})?(?P<digits>{DIGITS})(?![\d:/]|-\d)"
)
_SIDES = lazy_pattern(r" ?[x×] ?\d")
_SPACED = lazy_pattern(r"\d{1,3}(?: \d{3})+(?:[.,]\d{1,2})?(?![\d.,]?\d)")
_SPLIT = lazy_pattern(r"(?P<space>[ -])?(?P<top>\d{1,3})/(?P<bottom>\d{1,3})(?![\d/])")
_BOTTOM = lazy_pattern(r"/(\d{1,3})(?![\d/])")
_POWER = lazy_pattern(r"\^(\d+)")
_GLUED = lazy_pattern(rf"(?![x×]\d){_WORD}+")
_HOURS_AND_MINUTES = lazy_pattern(r"(\d+) ?h ?(\d\d)")
_GLUED_DURATION = lazy_pattern(r"(?=\d+[hm]\d)(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+)s)?")
_AND_PART = lazy_pattern(
    r" and (?:a |one )?(?P<added>half|quarter|third)|[ -](?P<times>thirds|quarters|fifths|tenths|halves)\b",
    re.IGNORECASE,
)
_ORDINAL_BEHIND = lazy_pattern(rf"-({_ORDINAL_WORD})\b", re.IGNORECASE)
_ORDINAL = lazy_pattern(rf"(?:st|nd|rd|th)(?!{_WORD})")
_FRENCH_ORDINAL = lazy_pattern(rf"(?:st|nd|rd|th|ère?|er|re|e|[eè]me)(?!{_WORD})")
_ARTICLE = lazy_pattern(r" an?(?= )")
_BELOW_ZERO = lazy_pattern(r" below (?:zero|freezing)")
_WORD_BEFORE = lazy_pattern(rf"({_WORD}+)[ -]\Z")
_NAME_BEFORE = lazy_pattern(r"([^\W\d_]{2,})[ -]\Z")
_GLUED_BEFORE = lazy_pattern(rf"({_LETTER}+)\Z")
_SAYS = lazy_pattern(r"\b(?:is|are|was|were)(?: about)?\Z")
_DIVIDED = lazy_pattern(r"[/÷][ ]?\Z")
_TITLE_END = lazy_pattern(r"[:=|\n.;!?]")
_UNIT_OF_NAME = lazy_pattern(r"[^\W\d_][\w ]*[_ ]([a-zA-Zµ]{1,3})[ ]*\Z")  # "harvest_2025_kg", "Depth cm"
_UNITS_IN_TITLE = lazy_pattern(r"[(\[](?:in )?([^()\[\]\d]{1,12})[)\]]")
_ROUNDED = {side: alternatives("number_words.txt", side) for side in ("about", "under", "over")}
_ABOUT = lazy_pattern(
    rf"(?:\b(?:{_ROUNDED['about']}|(?P<below>{_ROUNDED['under']})|(?P<above>{_ROUNDED['over']}))[ ]"
    r"(?:(?:an?|the)[ ])?|[~≈][ ]?)\Z",
    re.IGNORECASE,
)
_REFERENCE = lazy_pattern(r"[^().;\n\d]{0,3}\((?:[^()\d]|\d[\d.,]*[ ]?[-–][ ]?){0,20}")
_VERSION_BEFORE = lazy_pattern(r"(?:\bversion|\brelease|\bver\.?|\bv\.?)[ ]?\Z", re.IGNORECASE)
_RUN_WORD = lazy_pattern(rf"(?P<gap>[ ]|-)(?P<word>{_LETTER}+|[^\W\d_]+)")
_COUNTED_NOUN = lazy_pattern(r"[ -]([^\W\d_]{3,})")
_OF = lazy_pattern(r"[ ]of(?:[ ](?:the|these|those|its|our|my|your))?(?=[ ])")
_PLACE = lazy_pattern(r"(?: [a-z]+){2,3}")
_RATE_WORD = lazy_pattern(
    rf"\b(?:(?:(?P<sure>per|one)|{BEFORE_RATE})[ ](?P<of>{_LETTER}+)|/[ ]?(?P<per>[a-z]+)"
    rf"|(?P<adverb>{RATE_ADVERB}))\b",
    re.IGNORECASE,
)
_CLAUSE_END = lazy_pattern(r"[\n.;!?]")
_PART_END = lazy_pattern(r"[:;(]|\.(?=\s)")
_YEAR = lazy_pattern(r"(?:19|20)\d\d(?![^-])")
_IRREGULAR = frozenset("people children men women feet mice teeth geese oxen".split())  # noqa: SIM905
_QUOTE = lazy_pattern(r'(?<!\d)"|(?<=\d)"(?=\w)')
_DIGIT = lazy_pattern(r"\d")
_RUN_WORDS = 4
_LOOK_CHARS = 90
_LONGEST_HEADING_CHARS = 200
_LONGEST_ROW_CHARS = 2_000  # of a table whose heads are looked at
_LONGEST_NUMBER_CHARS = 40
_MOST_CLAIMS = 5_000  # of one text; all behind them is one claim, which only the same words support
_MOST_SIDES = 4


def find_claims(text: str) -> list[Claim]:
    """
    Return the amounts, prices, dates and addresses in a text that a source must hold, in order; a range is
    two. Names are no part of it: whether a word is one depends on what else is known
    (panda/language/names.py).
    """
    return [mention.claim for mention in scan(plain_text(text)) if mention.claims]


@lru_cache(maxsize=256)
def scan(text: str) -> tuple[Found, ...]:
    """Return everything that a text, as plain_text gives it, claims or supports, where it stands."""
    return tuple(_with_durations(text, [_with_year(text, mention) for mention in _Scanner(text).run()]))


def _with_year(text: str, mention: Found) -> Found:
    """Return a claim that gives its year to days without one too, if a heading or the text's start has it."""
    year = _YEAR.match(mention.claim.value) if mention.claim.kind in ("date", "number") else None
    if not year:
        return mention
    line = text.rfind("\n", 0, mention.start) + 1
    is_start = (
        line == 0 and mention.start < _LONGEST_HEADING_CHARS and not _PART_END.search(text, 0, mention.start)
    )
    is_heading = is_start or text.startswith("#", line)
    return replace(mention, gives=mention.gives | {f"heading:{year[0]}"}) if is_heading else mention


def _with_durations(text: str, claims: Sequence[Found]) -> Iterator[Found]:
    """Yield the claims, with "2 h 45 min" as one whose parts claim nothing of their own."""
    at = 0
    while at < len(claims):
        end = at + 1
        while end < len(claims) and _goes_on(text, claims[end - 1], claims[end]):
            end += 1
        parts, at = claims[at:end], end
        if len(parts) == 1:
            yield parts[0]
            continue
        amounts = [part.amount for part in parts if part.amount]
        unit = amounts[-1].unit
        seconds = sum((amount.value or 0) * size_of(amount.unit)[0] for amount in amounts)
        value = Fraction(seconds / size_of(unit)[0])
        whole = replace(amounts[0], value=value, unit=unit, written=_render(value))
        first = parts[0].start
        last = parts[-1].end
        yield Found(
            Claim(text[first:last], "quantity", f"{_render(value)} {unit}"), first, last, amount=whole
        )
        yield from (replace(part, claims=False) for part in parts)


def _goes_on(text: str, first: Found, second: Found) -> bool:
    if not first.amount or not second.amount or text[first.end : second.start] not in (" ", " and ", ", "):
        return False
    large, base = size_of(first.amount.unit)
    small, same = size_of(second.amount.unit)
    return base == same == "s" and large > small


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._language = language_of(text)
        self._not_counted = NOT_COUNTED | FOREIGN_WORDS.get(self._language, _NONE)
        self._comma_decimals = reads_comma_decimals(text)
        self._last_unit = ("", 0)
        self._has_rates = _RATE_WORD.search(text) is not None
        self._is_written = cache(self._finds_written)
        self._quotes = [quote.start() for quote in _QUOTE.finditer(text)]

    def run(self) -> Iterator[Found]:
        at = count = 0
        readers = {
            "url": self._read_url,
            "mail": self._read_mail,
            "site": self._read_url,
            **dict.fromkeys(DATE_FORMS, self._read_date),
            "phone": self._read_phone,
            "number": self._read_number,
            "words": self._read_words,
            "part": self._read_part,
            "half": self._read_half,
            "ordinal": self._read_ordinal,
            "token": self._read_token,
        }
        while match := _START.search(self._text, at):
            if count == _MOST_CLAIMS:
                rest = f"text:{self._text[match.start() :]}"
                yield self._keyed(match.start(), match.end(), match[0], rest)
                return
            end = 0
            form = match.lastgroup or ""
            for mention in readers[form](match):
                yield mention
                end, count = max(end, mention.end), count + 1
                if count == _MOST_CLAIMS:
                    break
            if not end and form in ("site", "phone") and _DIGIT.search(match[0]):  # what it is made of counts
                for mention in self._read_inside(match):
                    yield mention
                    end = max(end, mention.end)
            at = max(end, match.start() + 1)

    def _found(self, start: int, end: int, kind: Kind, value: str, **more: object) -> Found:
        return Found(Claim(self._text[start:end], kind, value), start, end, **more)  # type: ignore[arg-type]

    def _keyed(self, start: int, end: int, value: str, *keys: str) -> Found:
        """Return a number that only the same writing supports."""
        return self._found(start, end, "number", value, needs=frozenset(keys), gives=frozenset(keys))

    def _amount(self, start: int, end: int, amount: Amount, keys: frozenset[str] = _NONE) -> Found:
        value = _render(amount.value) if amount.value is not None else amount.written
        if amount.currency:
            return self._found(start, end, "price", f"{amount.currency} {value}", amount=amount)
        if amount.unit:
            return self._found(start, end, "quantity", f"{value} {amount.unit}", amount=amount)
        value = amount.written if amount.version else value
        return self._found(start, end, "number", value, amount=amount, needs=keys, gives=keys)

    # addresses and dates

    def _read_inside(self, match: re.Match[str]) -> Iterator[Found]:
        pattern = _NO_PHONE if match.lastgroup == "phone" else _NO_HOST
        inner = pattern.search(self._text, match.start(), match.end())
        if inner and match.lastgroup == "phone":
            yield from self._read_number(inner)
        elif inner and re.search(r"[^\W\d]", inner[0]):
            yield from self._read_token(inner)
        elif inner:
            yield from self._parts(inner.start(), inner[0])

    def _read_url(self, match: re.Match[str]) -> Iterator[Found]:
        url = match[0]
        unopened = url.count(")") - url.count("(")
        end = len(url)
        while end and (url[end - 1] in ".,;:!?'*_]}" or (url[end - 1] == ")" and unopened > 0)):
            unopened, end = unopened - (url[end - 1] == ")"), end - 1
        url, end = url[:end], match.start() + end
        bare = re.sub(r"\A(?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:www\.)?", "", url)
        host = re.split(r"[/:?#]", bare, maxsplit=1)[0].lower()
        gives = {f"site:{host}"}
        if match.lastgroup == "url":
            value = url
            needs = frozenset((f"url:{url}",))
            gives |= {f"site:{bare}", f"site:{bare.rstrip('/')}"}
        elif is_host(host):
            value = bare.rstrip("/") if "/" in bare.rstrip("/") else host
            needs = frozenset((f"site:{value}",))
        else:
            return
        yield self._found(match.start(), end, "url", value, needs=needs, gives=needs | gives)

    def _read_mail(self, match: re.Match[str]) -> Iterator[Found]:
        address = match[0].rstrip(".-").lower()
        needs = frozenset((f"mail:{address}",))
        gives = needs | {f"site:{address.partition('@')[2]}"}
        yield self._found(
            match.start(), match.start() + len(address), "url", address, needs=needs, gives=gives
        )

    def _read_date(self, match: re.Match[str]) -> Iterator[Found]:
        for read in read_date(match, self._language):
            needs, gives, together = map(frozenset[str], (read.needs, read.gives, read.together))
            claim = Claim(match[0], "date", read.value)
            mention = Found(claim, *match.span(), needs=needs, gives=gives, together=together)
            mention = replace(mention, apart=frozenset(read.apart), claims=bool(needs))
            if lasts := _HOURS_AND_MINUTES.fullmatch(match[0]):  # "2 h 30" may be how long something takes
                seconds = Fraction(int(lasts[1]) * 3600 + int(lasts[2]) * 60)
                quantity = self._amount(*match.span(), Amount(seconds, _render(seconds), unit="s"))
                is_english = self._language == "en"
                mention = quantity if is_english else replace(mention, amount=quantity.amount)
            yield mention

    def _read_phone(self, match: re.Match[str]) -> Iterator[Found]:
        digits = re.sub(r"\D", "", match[0]).removeprefix("00")
        if len(digits) < 7:
            return
        needs = frozenset((f"phone:{digits}", f"phone:{digits.lstrip('0')}"))
        tails = {digits[n:] for n in range(len(digits) - 6)}  # without the codes of country and town
        gives = needs | {f"phone:{zero}{tail}" for tail in tails for zero in ("", "0")}
        yield self._found(*match.span(), "number", digits, needs=needs, gives=gives)

    def _read_token(self, match: re.Match[str]) -> Iterator[Found]:
        token = self._token(*match.span())
        per = self._text[max(0, token.start - 4) : token.start] == "per " and match[0] in ("m2", "m3")
        yield replace(token, claims=not per)

    def _token(self, start: int, end: int) -> Found:
        word = fold_name(self._text[start:end])
        keys = frozenset((f"token:{word}",))
        if lasts := _GLUED_DURATION.fullmatch(word):
            sizes = zip(lasts.groups(), (3600, 60, 1), strict=True)
            seconds = Fraction(sum(int(part or 0) * size for part, size in sizes))
            mention = self._amount(start, end, Amount(seconds, _render(seconds), unit="s"))
            return replace(mention, needs=keys, gives=keys)
        if times := re.fullmatch(r"x(\d{1,3})|(\d{1,3})x", word):  # "liner x2"
            number = Fraction(times[1] or times[2])
            return replace(self._amount(start, end, Amount(number, _render(number))), needs=keys)
        version = [f"written:{word[1:]}"] if re.fullmatch(r"v\d+(?:\.\d+)+", word) else []
        return self._keyed(start, end, word, *keys, *version)

    # numbers in words

    def _read_words(self, match: re.Match[str]) -> Iterator[Found]:
        text = self._text
        start, end = match.span()
        if match[0].lower() == "zero" and text[max(0, start - 6) : start] in ("below ", "above "):
            return
        numbers = number_from_words(match[0], self._language)
        if not numbers:
            return
        *others, last = numbers
        for number in others:
            yield self._amount(start, end, Amount(Fraction(number), str(number)))
        if ordinal := _ORDINAL_BEHIND.match(text, end):
            place = last + ORDINAL_WORDS[ordinal[1].lower()]
            yield self._amount(start, ordinal.end(), Amount(Fraction(place), str(place), ordinal=True))
            return
        value = Fraction(last)
        if part := _AND_PART.match(text, end):
            end = part.end()
            value = (
                value + FRACTION_WORDS[part["added"].lower()]
                if part["added"]
                else value * FRACTION_WORDS[part["times"].lower()]
            )
        mention = self._measured(start, end, value, str(last))
        amount = mention.amount
        is_pronoun = match[0].lower() == "one" and amount and not (amount.unit or amount.head)
        yield replace(mention, claims=False) if is_pronoun else mention

    def _read_part(self, match: re.Match[str]) -> Iterator[Found]:
        """Yield the amount of "half an hour" or "a third of": part of one."""
        part = FRACTION_WORDS[match[0].lower().split()[-1]]
        if article := _ARTICLE.match(self._text, match.end()):
            yield self._measured(match.start(), article.end(), part, str(part))
        else:
            yield self._amount(*match.span(), Amount(part, str(part)))

    def _read_half(self, match: re.Match[str]) -> Iterator[Found]:
        """Read "halbe Stunde", and any half as what a division by two may be."""
        start, end = match.span()
        half = self._found(start, end, "number", "1/2", gives=frozenset(("part:2",)), claims=False)
        measured = self._measured(start, end, Fraction(1, 2), "1/2") if match[0].lower() != "half" else half
        yield replace(measured, gives=half.gives) if measured.amount and measured.amount.unit else half

    def _read_ordinal(self, match: re.Match[str]) -> Iterator[Found]:
        tens, _, word = match[0].lower().rpartition("-")
        value = ORDINAL_WORDS[word] + (number_from_words(tens)[0] if tens else 0)
        is_adverb = self._text[match.end() : match.end() + 1] in (",", ":")
        amount = Amount(Fraction(value), "", ordinal=True)
        yield replace(self._amount(*match.span(), amount), claims=not is_adverb)

    # numbers in digits

    def _read_number(self, match: re.Match[str]) -> Iterator[Found]:
        text = self._text
        written = match["digits"]
        first = match.start("digits")
        start, end = match.span()
        currency = currency_code(match["before"]) if match["before"] else None
        is_operand = match["sign"] and re.search(r"[\d)][ ]?\Z", text[max(0, start - 2) : start])
        sign = -1 if (match["sign"] or match["minus"]) and not is_operand else 1
        label = self._label(start)
        spaced = _SPACED.match(text, first)
        if spaced and self._is_grouped(spaced, currency):
            written = spaced[0].replace(" ", "")
            end = spaced.end()
        value: Fraction | None
        if split := self._fraction(written, end):
            value, end = split
            written = text[first:end]
        elif power := _POWER.match(text, end):
            raised = f"{written}^{power[1]}"
            yield self._keyed(start, power.end(), raised, f"power:{raised}")
            return
        else:
            value = self._value(written, currency, end)
            if value is None and not is_ambiguous(written):
                yield from self._parts(first, written)
                return
            chain = [] if spaced else self._range(end, written, currency, sign)
            if chain:
                signed = value and sign * value
                yield self._like(chain[-1], start, end, value=signed, written=written, currency=currency)
                yield from chain
                return
            name = _GLUED_BEFORE.search(text, max(0, start - 20), start)
            if written.startswith(".") and name:  # "ID.3" is a name with a number
                written, label, currency, sign = written[1:], fold_name(name[1]), None, 1
                value = Fraction(normal_number(written) or 0)
        yield self._measured(start, end, value and sign * value, written, currency=currency, label=label)

    def _is_grouped(self, spaced: re.Match[str], currency: str | None) -> bool:
        after = currency_after(self._text, spaced.end())[0] or unit_after(self._text, spaced.end())[0]
        return bool(currency or (after and not self._label(spaced.start())))

    def _fraction(self, written: str, end: int) -> tuple[Fraction, int] | None:
        if not written.isdigit() or len(written) > _LONGEST_NUMBER_CHARS:
            return None
        mixed = _SPLIT.match(self._text, end)
        plain = _BOTTOM.match(self._text, end)
        if mixed and mixed["space"] and 0 < int(mixed["top"]) < int(mixed["bottom"]) <= 16:
            return Fraction(written) + Fraction(int(mixed["top"]), int(mixed["bottom"])), mixed.end()
        before = self._text[end - len(written) - 1 : end - len(written)]
        if plain and 0 < int(written) < int(plain[1]) <= 16 and before != "/":
            return Fraction(int(written), int(plain[1])), plain.end()
        return None

    def _value(self, written: str, currency: str | None, end: int) -> Fraction | None:
        if len(written) > _LONGEST_NUMBER_CHARS:
            return None
        comma = self._comma_decimals
        if is_ambiguous(written):
            if currency := currency or currency_after(self._text, end)[0]:
                by_currency = currency in COMMA_DECIMALS
                if comma is not None and comma != by_currency and self._is_written(currency, comma=comma):
                    return None
                comma = by_currency
            if comma is None:
                return None
        normal = normal_number(written, comma_decimals=bool(comma))
        return Fraction(normal) if normal else None

    def _finds_written(self, currency: str, *, comma: bool) -> bool:
        cents = r"(?<![\d.,])\d[\d.]*,\d\d(?!\d)" if comma else r"(?<![\d.,])\d[\d,]*\.\d\d(?!\d)"
        for match in re.finditer(cents, self._text):
            before = re.search(
                rf"({CURRENCY_BEFORE})[ ]?\Z", self._text[max(0, match.start() - 5) : match.start()]
            )
            if currency in (before and currency_code(before[1]), currency_after(self._text, match.end())[0]):
                return True
        return False

    def _range(self, end: int, written: str, currency: str | None, sign: int, depth: int = 0) -> list[Found]:
        """Return what a number is joined to: the end of a range, the other sides of "36 x 27 x 2 cm"."""
        text = self._text
        other = _RANGE.match(self._text, end)
        if not other or (unit_after(text, end)[0] and not _SIDES.match(other[0])):
            return []
        if currency and not other["before"] and self._measures_else(other):
            return []
        shared = currency_code(other["before"]) if other["before"] else currency
        upper = self._value(other["digits"], shared, other.end())
        lower = self._value(written, shared, end)
        if upper is None or lower is None:
            return []
        if other["dash"] and sign > 0 and not lower < upper:
            return []
        start = other.start("before") if other["before"] else other.start("digits")
        if other["minus"]:
            upper, start = -upper, other.start("minus")
        sides = depth < _MOST_SIDES and other["times"]
        if further := self._range(other.end(), other["digits"], shared, sign, depth + 1) if sides else []:
            before = self._like(
                further[-1], start, other.end(), value=upper, written=other["digits"], currency=shared
            )
            return [before, *further]
        second = self._measured(start, other.end(), upper, other["digits"], currency=shared)
        amount = second.amount
        if amount is None or (other["times"] and not _is_side(amount)):
            return []
        is_measured = amount.unit or amount.currency or amount.head
        return [second] if is_measured or not other["word"] or "→" in other["word"] else []

    def _measures_else(self, joined: re.Match[str]) -> bool:
        """Return whether what a price is joined to is none: "$697 and 2.4 kg", "€288 and 44 jars"."""
        if unit_after(self._text, joined.end())[0]:
            return True
        if currency_after(self._text, joined.end())[0] or (joined["word"] or "").strip() not in ("and", "or"):
            return False
        noun = _COUNTED_NOUN.match(self._text, joined.end())
        return noun is not None and noun[1].lower() not in FUNCTION_WORDS

    def _like(
        self,
        other: Found,
        start: int,
        end: int,
        *,
        value: Fraction | None,
        written: str,
        currency: str | None,
    ) -> Found:
        """Return a number in the unit or currency of the one that it is joined to."""
        assert other.amount is not None
        currency, label = currency or other.amount.currency, self._label(start)
        amount = replace(other.amount, value=value, written=written, currency=currency, label=label)
        mention = self._amount(start, end, amount)
        is_bare = not (amount.unit or amount.currency or amount.head)
        return self._timed(mention) if is_bare or amount.unit == "h" else mention

    def _parts(self, start: int, written: str) -> Iterator[Found]:
        """Yield digits whose separators make no single number: a version, or a list without blanks."""
        if re.fullmatch(r"[\d.]+", written):
            end = start + len(written)
            yield self._timed(self._keyed(start, end, written, f"written:{written}"))
            return
        for part in re.finditer(r"[\d.]+", written):
            value = normal_number(part[0])
            first = start + part.start()
            last = start + part.end()
            if value and len(value) <= _LONGEST_NUMBER_CHARS:
                yield self._amount(first, last, Amount(Fraction(value), part[0]))
            else:
                yield self._keyed(first, last, part[0], f"written:{part[0]}")

    # what a number measures or counts

    def _measured(
        self,
        start: int,
        end: int,
        value: Fraction | None,
        written: str,
        *,
        currency: str | None = None,
        label: str = "",
    ) -> Found:
        text = self._text
        places, end = scale_after(text, end, price=currency is not None)
        if value and places:
            value *= 10**places
        after, end_of_currency = currency_after(text, end)
        if after and currency in (None, "USD", after):
            currency = after
            end = end_of_currency
        near = text[start - 1 : start] in ("", " ", "~", "≈")
        about = _ABOUT.search(text, max(0, start - 24), start) if near else None
        beyond = 0
        if about and about["below"]:
            beyond = 1
        elif about and about["above"]:
            beyond = -1
        amount = Amount(value, written, currency, about=bool(about), beyond=beyond)
        if currency:
            rate = rate_after(text, end)[0]
            rates = self._line_rates(start, end)
            return self._amount(start, end, replace(amount, rate=rate, rates=rates))
        unit, end_of_unit = unit_after(text, end)
        if text[end : end + 1] == '"' and self._closes_no_quote(end):
            unit = "in"
            end_of_unit = end + 1
        if unit:
            self._last_unit = (unit, end_of_unit)
            below = unit.startswith("°") and _BELOW_ZERO.match(text, end_of_unit)
            pound = text[end:end_of_unit].strip(" -").lower() in ("pound", "pounds")
            amount = replace(
                amount,
                unit=unit,
                rate=rate_after(text, end_of_unit)[0],
                value=-value if below and value else value,
                behind=frozenset(("pound",)) if pound else _NONE,
            )
            quantity = self._amount(start, end_of_unit, amount)
            return self._timed(quantity) if unit == "h" else quantity
        if ordinal := (_FRENCH_ORDINAL if self._language == "fr" else _ORDINAL).match(text, end):
            return self._amount(start, ordinal.end(), replace(amount, ordinal=True))
        glued = _GLUED.match(text, end)
        token = self._token(start, glued.end()) if glued else None
        if glued and token and (glued[0] != "k" or value is None):
            return token
        if glued and value is not None:  # "5k steps" are 5,000
            end, amount = glued.end(), replace(amount, value=value * 1000, written=_render(value * 1000))
        run, joined, end_of_run = self._run(end)
        rate = rate_after(text, end)[0] or (rate_after(text, end_of_run)[0] if run else "")
        before = self._word_before(start)
        noun, counts = _head(run, joined, value) if not label and before not in LABELS else ("", False)
        if not counts and len(written) == 4 and value in _YEARS:  # "listed for 2026 add up"
            noun = ""
        title, units = self._title(start)
        if _REFERENCE.fullmatch(text, self._last_unit[1], start):  # "142 mg/dL (ref < 130)"
            units |= {self._last_unit[0]}
        versioned = label or _VERSION_BEFORE.search(text, max(0, start - 10), start)
        version = bool(versioned and re.fullmatch(r"\d+(?:\.\d+)+", written))
        amount = replace(
            amount,
            rate=rate,
            rates=self._line_rates(start, end),
            head=stem(noun),
            noun=noun,
            languages=self._languages_of(noun, end),
            counts=counts,
            behind=frozenset(stem(word) for word in run or self._place_behind(end)),
            label=label,
            labels=self._labels(start),
            before=before,
            heading=title,
            units_before=units,
            version=version,
        )
        name = _NAME_BEFORE.search(text, max(0, start - 40), start)
        keys: set[str] = set(token.gives) if token else set()
        if version and not token:
            keys.add(f"written:{written}")
        if name and name[1][0].isupper():
            keys.add(f"token:{fold_name(name[1])}{fold_name(written)}")
        mention = self._amount(start, end, amount, frozenset(keys))
        if _DIVIDED.search(text, max(0, start - 3), start):  # "$90 / 2" is half of it
            mention = replace(mention, needs=mention.needs | {f"part:{written}"})
        return mention if rate or counts or label else self._timed(mention)

    def _timed(self, mention: Found) -> Found:
        """Return a number with what else it may be by what stands beside it: a time or a day."""
        read = read_beside(self._text, mention.start, mention.end, self._language)
        if read is None:
            return mention
        return replace(mention, needs=mention.needs.union(read.needs), gives=mention.gives.union(read.gives))

    def _closes_no_quote(self, at: int) -> bool:
        line = self._text.rfind("\n", 0, at) + 1
        return (bisect(self._quotes, at - 1) - bisect(self._quotes, line - 1)) % 2 == 0

    def _run(self, end: int) -> tuple[list[str], bool, int]:
        """
        Return the words that belong to a number, whether the first is joined to it, and the index behind
        them.
        """
        of = _OF.match(self._text, end)
        at = of.end() if of else end
        joined = False
        words: list[str] = []
        while len(words) < _RUN_WORDS and (match := _RUN_WORD.match(self._text, at)):
            word = match["word"].lower()
            if word in self._not_counted and match["gap"] == " ":
                break
            joined = joined or (not words and match["gap"] == "-")
            words.append(word)
            at = match.end()
        return words, joined, at

    def _languages_of(self, noun: str, at: int) -> frozenset[str]:
        """Return the languages that the noun behind a number may be of; a German one has a capital."""
        if self._language:
            return frozenset((self._language,))
        others = set() if noun.isascii() else {"en"}
        if noun in self._text[at : at + _LOOK_CHARS]:
            others.add("de")
        return frozenset(LANGUAGES) - others

    def _place_behind(self, end: int) -> list[str]:
        """
        Return the word that a number without a word of its own belongs to: "gallery" of "30 on the gallery".
        """
        words = _PLACE.match(self._text, end)
        return [word for word in words[0].split() if word not in FUNCTION_WORDS][:1] if words else []

    def _word_before(self, start: int) -> str:
        if self._text[max(0, start - 1) : start] == "/":
            return "/"
        match = _WORD_BEFORE.search(self._text, max(0, start - 40), start)
        word = match[1].lower() if match else ""
        return "" if word in NOT_COUNTED or word.isdigit() else word

    def _label(self, start: int) -> str:
        match = _WORD_BEFORE.search(self._text, max(0, start - 40), start)
        if not match or not match[1][0].isupper() or len(match[1]) < 2 or is_ordinary(match[1]):
            return ""
        if match[1].lower() in ALL_FOREIGN_WORDS | calendar_names("weekdays", "short_weekdays").keys():
            return ""
        return fold_name(match[1])

    def _labels(self, start: int) -> frozenset[str]:
        labels: set[str] = set()
        for word in reversed(self._text[max(0, start - _LOOK_CHARS) : start].split()):
            if not word[0].isupper() or not word[-1].isalnum():
                break
            labels.add(fold_name(word))
        return frozenset(labels)

    def _title(self, start: int) -> tuple[frozenset[str], frozenset[str]]:
        before = self._text[max(0, start - _LOOK_CHARS) : start].rstrip()
        title = self._column_head(start)
        says = _SAYS.search(before[-12:])
        if before.endswith((":", "=", "|", "(")) or says:
            before = before[: len(before) - len(says[0] if says else before[-1])]
            title += " " + _TITLE_END.split(before)[-1]
        if not title:
            return _NONE, _NONE
        words = re.findall(rf"{_LETTER}+", title.lower())
        units = [unit_after(f"1{unit.strip()}", 1)[0] for unit in _UNITS_IN_TITLE.findall(title + ")")]
        if end_of_name := _UNIT_OF_NAME.search(title):
            units.append(unit_after(f"1 {end_of_name[1]}", 1)[0])
        stems = frozenset(stem(word) for word in words if word not in FUNCTION_WORDS)
        return stems, frozenset(unit for unit in units if unit)

    def _column_head(self, start: int) -> str:
        """Return what stands at the head of the column that an index is in; "" outside of tables."""
        text = self._text
        line = text.rfind("\n", 0, start) + 1
        if not text.startswith("|", line) or start - line > _LONGEST_ROW_CHARS:
            return ""
        first = text.find("|", text.rfind("\n\n", 0, line) + 1)
        heads = text[first : text.find("\n", first)].split("|") if first < line else []
        return heads[text.count("|", line, start)] if text.count("|", line, start) < len(heads) else ""

    def _line_rates(self, start: int, end: int) -> frozenset[str]:
        if not self._has_rates:
            return _NONE
        before = _CLAUSE_END.split(self._text[max(0, start - _LOOK_CHARS) : start])[-1]
        after = _CLAUSE_END.split(self._text[end : end + _LOOK_CHARS])[0]
        rates = set()
        for match in _RATE_WORD.finditer(f"{before}\x00{after}"):
            rate = rate_of(match["of"] or match["per"] or match["adverb"])
            if rate in RATES or match["sure"] or match["per"]:  # "a surcharge" is none
                rates.add(rate)
        return frozenset(rates)


def _is_side(amount: Amount) -> bool:
    """Return whether a number behind a multiplication sign may be a length, as of a side, and no factor."""
    return not amount.currency and (not amount.unit or amount.unit == "px" or size_of(amount.unit)[1] == "m")


def _head(run: list[str], joined: bool, value: Fraction | None) -> tuple[str, bool]:
    """Return the word of a run that is counted, and whether that is sure."""
    if not run or joined:
        return (run[0], True) if run else ("", False)
    if value == 1:
        return (run[-2] if len(run) > 1 and is_plural(run[-1]) else run[-1]), False
    plural = next((word for word in run[:3] if is_plural(word)), "")
    return plural or run[0], bool(plural)


def is_plural(word: str) -> bool:
    """
    Return whether a word is a plural by its form.

    >>> is_plural("laptops"), is_plural("people"), is_plural("bus"), is_plural("glass")
    (True, True, False, False)
    """
    ends = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return ends or word in _IRREGULAR


def _render(value: Fraction) -> str:
    """Return a number as decimals; as a fraction where they would never end."""
    below = value.denominator
    places = next((n for n in range(below.bit_length()) if 10**n % below == 0), None)
    if not places:
        return str(value)
    digits = str(abs(value.numerator) * 10**places // below).rjust(places + 1, "0")
    return ("-" if value < 0 else "") + f"{digits[:-places]}.{digits[-places:]}"
