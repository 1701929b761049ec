"""The one scanner of what a text claims: amounts with their unit, prices, dates, addresses, model numbers."""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Literal

from panda.language.dates import DATE_FORMS, DATES, TOLD_DATES, dot_time, read_date
from panda.language.numbers import (
    COMMA_DECIMALS,
    CURRENCY_BEFORE,
    DIGITS,
    FRACTION_WORDS,
    NUMBER_WORDS,
    ORDINAL_WORDS,
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
from panda.language.text import fold_name, is_host, plain_text
from panda.language.words import FUNCTION_WORDS, LABELS, NOT_COUNTED, is_ordinary, stem

Kind = Literal["number", "price", "date", "quantity", "url", "name"]


@dataclass(frozen=True)
class Claim:
    text: str
    """The words as the text has them, in the writing of plain_text."""
    kind: Kind
    """What is claimed; a model number such as "A15" and a version are numbers, a time of day is a date."""
    value: str
    """The same value is always written the same way here: "USD 697", "2026-01-04", "16 gb"."""


@dataclass(frozen=True)
class Amount:
    value: Fraction | None
    """The number; None where its writing can be read in two ways."""
    written: str
    """Its digits as they stand, or its normal form where it stands in words."""
    currency: str | None = None
    """Code of a price."""
    unit: str = ""
    """Normal name of the unit; "" if there is none."""
    rate: str = ""
    """What it is counted for: "month" in "$5 per month"."""
    rates: frozenset[str] = frozenset()
    """What else the line counts for: "monthly rent: $900"."""
    head: str = ""
    """Stem of the word that it counts: "laptop" in "12 gaming laptops"."""
    noun: str = ""
    """The same word as it stands, in small letters."""
    counts: bool = False
    """Whether that word is sure to be what is counted: a plural, or one that is joined by a hyphen."""
    behind: frozenset[str] = frozenset()
    """Stems of the words behind it, as far as they belong to it."""
    label: str = ""
    """The name that it belongs to, folded: "loq" in "LOQ 15"."""
    labels: frozenset[str] = frozenset()
    """All words of that name."""
    before: str = ""
    """The word directly before it, unless it is one of the commonest."""
    heading: frozenset[str] = frozenset()
    """Stems of what stands before it as its title: "pages" in "Pages: 12"."""
    units_before: frozenset[str] = frozenset()
    """Units in that title: "kg" in "Weight (kg): 2.4"."""
    ordinal: bool = False
    """Whether it is a place in an order: "3rd"."""
    about: bool = False
    """Whether it says of itself that it is rounded."""
    beyond: int = 0
    """1 where what it rounds is said to be less ("just under"), -1 where it is said to be more."""
    version: bool = False
    """Whether zeros at its end matter: "Python 3.10"."""


@dataclass(frozen=True)
class Found:
    """A claim where it stands, with what can support it and what it supports."""

    claim: Claim
    """The claim."""
    start: int
    """Index of its first character in the plain text."""
    end: int
    """Index behind its last character."""
    needs: frozenset[str] = frozenset()
    """Keys of which a source must give one."""
    gives: frozenset[str] = frozenset()
    """Keys that the same words give when they stand in a source."""
    together: frozenset[str] = frozenset()
    """Keys that support it if a source gives all of them."""
    amount: Amount | None = None
    """The number, if it is one."""
    claims: bool = True
    """Whether the words claim anything; "May" alone only supports."""


_WORD = r"(?:(?=[\0-\u2e7f])\w)"
_LETTER = r"(?:(?=[\0-\u2e7f])[^\W\d_])"
_PHONE = (
    r"(?:\+|(?<!\d)00(?=[1-9]))\d{1,3}(?:[ ./-]?\(?\d{1,5}\)?){2,6}(?!\d)"
    r"|\(\d{2,5}\)[ ]?\d{2,5}(?:[ -]\d{2,5}){1,3}(?!\d)"
    r"|\d{3}[-.]\d{3}[-.]\d{4}(?![\d-])|(?<=[ ])\d{3}-\d{4}(?![\d-])"
    r"|0\d{2,4}[ /-]\d{2,}(?:[ -]\d{2,}){0,4}(?!\d)|\d{3}[ ]\d{3}[ ]\d{3,4}(?=[ ]*(?:[.;)\n]|\Z))"
)
_START = re.compile(
    rf"""
    (?P<url>(?<!(?i:[a-z0-9+.-]))(?i:[a-z][a-z0-9+.-]*://[^\s<>"`|]+))
  | (?P<mail>(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+[\w-]{{2,}})
  | (?P<site>(?<![\w.@-])(?:[\w-]+\.)+[^\W\d_][\w-]*(?::\d+)?(?:/[^\s<>"`|]{{0,300}}+)?)
  | {DATES} | {TOLD_DATES}
  | (?P<phone>(?<![\w.,$€£-]){_PHONE})
  | (?P<number>(?:(?<![\w)\]%])(?P<sign>[-–](?=[\d$€£.])|(?i:minus[ ]))|[+](?=[\d.]))?
      (?:(?<![A-Za-z])(?P<before>{CURRENCY_BEFORE})[ ]?(?P<minus>[-–])?)?(?P<digits>{DIGITS}))
  | (?P<words>(?i:{NUMBER_WORDS}))
  | (?P<part>(?i:\b(?:half|(?:a|one)[ ](?:half|third|quarter|fifth|tenth))(?=[ ](?:an?|of)\b)))
  | (?P<ordinal>(?i:\b(?:[a-z]+ty-)?(?:{"|".join(ORDINAL_WORDS)})\b))
  | (?P<token>(?<!{_WORD})(?=[\0-\u2e7f])[^\W\d]{_WORD}*?\d{_WORD}*(?:\.\d+)*)
    """,
    re.VERBOSE,
)
_RANGE = re.compile(
    r"(?:[ ]?[-–—][ ]?"
    r"|[ ](?:to|and|or|until|through|vs\.?|versus|instead[ ]of|rather[ ]than|→|->)[ ]"
    r"|[ ]?[x×][ ]?)(?P<minus>-)?"
    rf"(?P<before>{CURRENCY_BEFORE})?(?P<digits>{DIGITS})(?![\d:/]|-\d)"
)
_IN_SUM = re.compile(r"[(=][ ]?[$€£]?\Z")
_SPACED = re.compile(r"\d{1,3}(?: \d{3})+(?:[.,]\d{1,2})?(?![\d.,]?\d)")
_SPLIT = re.compile(r"(?P<space>[ -])?(?P<top>\d{1,3})/(?P<bottom>\d{1,3})(?![\d/])")
_POWER = re.compile(r"\^(\d+)")
_GLUED = re.compile(rf"(?![x×]\d){_WORD}+")
_GLUED_DURATION = re.compile(r"(?=\d+[hm]\d)(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+)s)?")
_ORDINAL = re.compile(rf"(?:st|nd|rd|th)(?!{_WORD})")
_WORD_BEFORE = re.compile(rf"({_WORD}+)[ -]\Z")
_SAYS = re.compile(r"\b(?:is|are|was|were)(?: about)?\Z")
_UNITS_IN_TITLE = re.compile(r"[(\[](?:in )?([^()\[\]\d]{1,12})[)\]]")
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|circa|ca\.|some|(?P<below>nearly|almost"
    r"|(?:just|slightly|a[ ](?:little|bit))[ ](?:under|below|short[ ]of))"
    r"|(?P<above>(?:just|slightly|a[ ](?:little|bit))[ ](?:over|above)))[ ]"
    r"(?:(?:an?|the)[ ])?"
    r"|[~≈][ ]?)\Z",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"[^().;\n\d]{0,3}\((?:[^()\d]|\d[\d.,]*[ ]?[-–][ ]?){0,20}")
_VERSION_BEFORE = re.compile(r"(?:\bversion|\brelease|\bver\.?|\bv\.?)[ ]?\Z", re.IGNORECASE)
_RUN_WORD = re.compile(rf"(?P<gap>[ ]|-)(?P<word>{_LETTER}+|[^\W\d_]+)")
_BEFORE_RUN = re.compile(
    r"[ ]of[ ](?:(?:the|these|those|its|our|my|your)[ ])?"
    r"|[ ](?:more|other|different|additional|extra|full|whole|further)(?=[ ])"
)
_RATE_WORD = re.compile(
    r"\b(?:(?P<ly>hour|dai|night|week|month|quarter|year|annual)ly|(?:per|a|an|one|each|every) (?P<of>[a-z]+)"
    r"|/ ?(?P<per>[a-z]+)|(?P<annual>annual))\b",
    re.IGNORECASE,
)
_IRREGULAR = frozenset("people children men women feet mice teeth geese oxen".split())  # noqa: SIM905
_QUOTE = re.compile(r'(?<!\d)"|(?<=\d)"(?=\w)')
_DIGIT = re.compile(r"\d")
_RUN_WORDS = 4
_LOOK_CHARS = 90
_LONGEST_NUMBER_CHARS = 40
_MOST_CLAIMS = 5_000  # of one text; all behind them is one claim, which only the same words support
_MOST_SIDES = 4


def find_claims(text: str) -> list[Claim]:
    """
    The amounts, prices, dates and addresses in a text that a source must hold, in order; a range is two.
    Names are no part of it: whether a word is one depends on what else is known (panda/language/names.py).
    """
    return [found.claim for found in scan(plain_text(text)) if found.claims]


@lru_cache(maxsize=256)
def scan(text: str) -> tuple[Found, ...]:
    """Everything that a text, as plain_text gives it, claims or supports, where it stands."""
    return tuple(_with_durations(text, list(_Scanner(text).run())))


def _with_durations(text: str, claims: Sequence[Found]) -> Iterator[Found]:
    """The claims, "2 h 45 min" as one whose parts claim nothing of their own."""
    at = 0
    while at < len(claims):
        parts = [claims[at]]
        while at + len(parts) < len(claims) and _goes_on(text, parts[-1], claims[at + len(parts)]):
            parts.append(claims[at + len(parts)])
        amounts = [part.amount for part in parts if part.amount]
        if len(parts) > 1:
            unit = amounts[-1].unit
            value = sum((one.value or 0) * size_of(one.unit)[0] / size_of(unit)[0] for one in amounts)
            whole = replace(amounts[0], value=Fraction(value), unit=unit, written=_render(Fraction(value)))
            words = text[parts[0].start : parts[-1].end]
            claim = Claim(words, "quantity", f"{_render(Fraction(value))} {unit}")
            yield Found(claim, parts[0].start, parts[-1].end, amount=whole)
        for part in parts:
            yield part if len(parts) == 1 else replace(part, claims=False)
        at += len(parts)


def _goes_on(text: str, first: Found, second: Found) -> bool:
    one, other = first.amount, second.amount
    if not one or not other or text[first.end : second.start] not in (" ", " and ", ", "):
        return False
    (big, base), (small, same) = size_of(one.unit), size_of(other.unit)
    return base == same == "s" and big > small


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
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
            "ordinal": self._read_ordinal,
            "token": self._read_token,
        }
        while match := _START.search(self._text, at):
            if count == _MOST_CLAIMS:
                rest = frozenset((f"text:{self._text[match.start() :]}",))
                yield self._found(match.start(), match.end(), "number", match[0], needs=rest, gives=rest)
                return
            end = 0
            for found in readers[match.lastgroup or ""](match):
                yield found
                end, count = max(end, found.end), count + 1
                if count == _MOST_CLAIMS:
                    break
            is_no_host = not end and match.lastgroup in ("site", "phone")
            if is_no_host and _DIGIT.search(match[0]):  # what it is made of counts
                for found in self._read_inside(match):
                    yield found
                    end = max(end, found.end)
            at = max(end, match.start() + 1)

    def _found(self, start: int, end: int, kind: Kind, value: str, **more: object) -> Found:
        return Found(Claim(self._text[start:end], kind, value), start, end, **more)  # type: ignore[arg-type]

    def _read_inside(self, match: re.Match[str]) -> Iterator[Found]:
        if match.lastgroup == "phone":
            inner = re.compile(
                rf"(?P<sign>\A\b)?(?P<before>\A\b)?(?P<minus>\A\b)?(?P<digits>{DIGITS})"
            ).search(self._text, match.start(), match.end())
            yield from self._read_number(inner) if inner else ()
            return
        token = re.compile(rf"(?P<token>{_WORD}*\d{_WORD}*(?:\.\d+)*)").search(
            self._text, match.start(), match.end()
        )
        if token:
            yield from (
                self._read_token(token)
                if re.search(r"[^\W\d]", token[0])
                else self._parts(token.start(), token[0])
            )

    def _read_url(self, match: re.Match[str]) -> Iterator[Found]:
        url = match[0]
        unopened, end = url.count(")") - url.count("("), len(url)
        while end and (url[end - 1] in ".,;:!?'*_]}" or (url[end - 1] == ")" and unopened > 0)):
            unopened, end = unopened - (url[end - 1] == ")"), end - 1
        url = url[:end]
        bare = re.sub(r"\A(?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:www\.)?", "", url)
        host = re.split(r"[/:?#]", bare, maxsplit=1)[0].lower()
        start, end = match.start(), match.start() + len(url)
        if match.lastgroup == "url":
            gives = {f"url:{url}", f"site:{bare}", f"site:{bare.rstrip('/')}", f"site:{host}"}
            yield self._found(
                start, end, "url", url, needs=frozenset((f"url:{url}",)), gives=frozenset(gives)
            )
        elif is_host(host):
            value = bare.rstrip("/") if "/" in bare.rstrip("/") else host
            keys = frozenset((f"site:{value}",))
            yield self._found(start, end, "url", value, needs=keys, gives=keys | {f"site:{host}"})

    def _read_mail(self, match: re.Match[str]) -> Iterator[Found]:
        address = match[0].rstrip(".-").lower()
        keys = frozenset((f"mail:{address}",))
        host = frozenset((f"site:{address.partition('@')[2]}",))
        yield self._found(
            match.start(), match.start() + len(address), "url", address, needs=keys, gives=keys | host
        )

    def _read_date(self, match: re.Match[str]) -> Iterator[Found]:
        for read in read_date(match):
            needs, gives = frozenset(read.need), frozenset(read.gives)
            yield self._found(
                match.start(),
                match.end(),
                "date",
                read.value,
                needs=needs,
                gives=gives,
                together=frozenset(read.together),
                claims=bool(needs),
            )

    def _read_phone(self, match: re.Match[str]) -> Iterator[Found]:
        digits = re.sub(r"\D", "", match[0]).removeprefix("00")
        if len(digits) < 7:
            return
        keys = frozenset((f"phone:{digits}", f"phone:{digits.lstrip('0')}"))
        tails = {f"phone:{digits[n:]}" for n in range(len(digits) - 6)} | {
            f"phone:0{digits[n:]}" for n in range(1, len(digits) - 6)
        }
        yield self._found(match.start(), match.end(), "number", digits, needs=keys, gives=keys | tails)

    def _read_token(self, match: re.Match[str]) -> Iterator[Found]:
        found = self._token(match.start(), match.end())
        per = self._text[max(0, found.start - 4) : found.start] == "per " and match[0] in ("m2", "m3")
        yield replace(found, claims=not per)

    def _token(self, start: int, end: int) -> Found:
        word = fold_name(self._text[start:end])
        if lasts := _GLUED_DURATION.fullmatch(word):
            sizes = zip(lasts.groups(), (3600, 60, 1), strict=True)
            seconds = Fraction(sum(int(part or 0) * size for part, size in sizes))
            token = frozenset((f"token:{word}",))
            found = self._amount(start, end, Amount(seconds, _render(seconds), unit="s"))
            return replace(found, needs=token, gives=token)
        keys = {f"token:{word}"}
        if times := re.fullmatch(r"x(\d{1,3})|(\d{1,3})x", word):  # "liner x2"
            number = Fraction(times[1] or times[2])
            return replace(self._amount(start, end, Amount(number, _render(number))), needs=frozenset(keys))
        if re.fullmatch(r"v\d+(?:\.\d+)+", word):
            keys.add(f"written:{word[1:]}")
        needs = frozenset(keys)
        return self._found(start, end, "number", word, needs=needs, gives=needs)

    def _read_words(self, match: re.Match[str]) -> Iterator[Found]:
        text, start, end = self._text, match.start(), match.end()
        half = re.compile(
            r" and (?:a |one )?(half|quarter|third)|[ -](thirds|quarters|fifths|tenths|halves)\b",
            re.IGNORECASE,
        ).match(text, end)
        if match[0].lower() == "zero" and text[max(0, start - 6) : start] in ("below ", "above "):
            return
        *others, last = number_from_words(match[0])
        for number in others:
            yield self._amount(start, end, Amount(Fraction(number), str(number)))
        ordinal = re.compile(rf"-({'|'.join(ORDINAL_WORDS)})\b", re.IGNORECASE).match(text, end)
        if ordinal:
            place = last + ORDINAL_WORDS[ordinal[1].lower()]
            yield self._amount(start, ordinal.end(), Amount(Fraction(place), str(place), ordinal=True))
            return
        value = Fraction(last)
        if half:
            end = half.end()
            part = FRACTION_WORDS[(half[1] or half[2]).lower()]
            value = value + part if half[1] else value * part
        found = self._measured(start, end, value, str(last), currency=None, label="")
        amount = found.amount
        is_pronoun = match[0].lower() == "one" and amount and not (amount.unit or amount.head)
        yield replace(found, claims=False) if is_pronoun else found

    def _read_part(self, match: re.Match[str]) -> Iterator[Found]:
        """ "half an hour", "a third of": part of one."""
        part = FRACTION_WORDS[match[0].lower().split()[-1]]
        end = match.end()
        article = re.compile(r" an?(?= )").match(self._text, end)
        if article:
            yield self._measured(match.start(), article.end(), part, str(part), currency=None, label="")
        elif " " in match[0]:
            yield self._amount(match.start(), end, Amount(part, str(part)))

    def _read_ordinal(self, match: re.Match[str]) -> Iterator[Found]:
        words = match[0].lower().split("-")
        value = sum(ORDINAL_WORDS.get(word, 0) for word in words)
        if len(words) == 2:
            value += number_from_words(words[0])[0]
        adverb = self._text[match.end() : match.end() + 1] in (",", ":")
        amount = Amount(Fraction(value), "", ordinal=True)
        yield replace(self._amount(match.start(), match.end(), amount), claims=not adverb)

    def _read_number(self, match: re.Match[str]) -> Iterator[Found]:
        text, written = self._text, match["digits"]
        start, end = match.start(), match.end()
        currency = currency_code(match["before"]) if match["before"] else None
        negative = bool(match["sign"] or match["minus"])
        if match["sign"] and re.search(r"[\d)][ ]?\Z", text[max(0, start - 2) : start]):
            negative = False  # "10 minus 5", "9 –5" take something away
        spaced = _SPACED.match(text, match.start("digits"))
        if spaced and self._groups(spaced, currency):
            written, end = spaced[0].replace(" ", ""), spaced.end()
        split = self._fraction(written, end)
        if split:
            parted, end = split
            label = self._label(start)
            yield self._measured(
                start,
                end,
                -parted if negative else parted,
                text[match.start("digits") : end],
                currency=currency,
                label=label,
            )
            return
        power = _POWER.match(text, end)
        if power:
            keys = frozenset((f"power:{written}^{power[1]}",))
            yield self._found(start, power.end(), "number", f"{written}^{power[1]}", needs=keys, gives=keys)
            return
        value = self._value(written, currency, end)
        if value is None and not is_ambiguous(written):
            yield from self._parts(match.start("digits"), written)
            return
        chain = [] if spaced else self._range(end, written, currency, negative)
        if chain:
            first = -value if negative and value is not None else value
            yield self._like(chain[-1], start, end, first, written, currency)
            yield from chain
            return
        signed = -value if negative and value is not None else value
        named = re.compile(rf"({_LETTER}+)\Z").search(text, max(0, start - 20), start)
        if written.startswith(".") and named:  # "ID.3" is a name with a number
            named_value = Fraction(normal_number(written[1:]) or 0)
            yield self._measured(
                start, end, named_value, written[1:], currency=None, label=fold_name(named[1])
            )
            return
        yield self._measured(start, end, signed, written, currency=currency, label=self._label(start))

    def _groups(self, spaced: re.Match[str], currency: str | None) -> bool:
        if currency:
            return True
        after = currency_after(self._text, spaced.end())[0] or unit_after(self._text, spaced.end())[0]
        return bool(after) and not self._label(spaced.start())

    def _fraction(self, written: str, end: int) -> tuple[Fraction, int] | None:
        if not written.isdigit() or len(written) > _LONGEST_NUMBER_CHARS:
            return None
        text = self._text
        mixed = _SPLIT.match(text, end)
        if mixed and mixed["space"] and 0 < int(mixed["top"]) < int(mixed["bottom"]) <= 16:
            return Fraction(written) + Fraction(int(mixed["top"]), int(mixed["bottom"])), mixed.end()
        plain = re.compile(r"/(\d{1,3})(?![\d/])").match(text, end)
        if (
            plain
            and 0 < int(written) < int(plain[1]) <= 16
            and text[end - len(written) - 1 : end - len(written)] != "/"
        ):
            return Fraction(int(written), int(plain[1])), plain.end()
        return None

    def _value(self, written: str, currency: str | None, end: int) -> Fraction | None:
        if len(written) > _LONGEST_NUMBER_CHARS:
            return None
        if is_ambiguous(written):
            currency = currency or currency_after(self._text, end)[0]
            comma = self._comma_decimals
            if currency:
                by_currency = currency in COMMA_DECIMALS
                if comma is not None and comma != by_currency and self._is_written(currency, comma=comma):
                    return None
                comma = by_currency
            if comma is None:
                return None
            normal = normal_number(written, comma_decimals=comma)
        else:
            normal = normal_number(written, comma_decimals=bool(self._comma_decimals))
        return Fraction(normal) if normal else None

    def _finds_written(self, currency: str, *, comma: bool) -> bool:
        for match in re.finditer(
            r"(?<![\d.,])\d[\d.]*,\d\d(?!\d)" if comma else r"(?<![\d.,])\d[\d,]*\.\d\d(?!\d)", self._text
        ):
            before = re.search(
                rf"({CURRENCY_BEFORE})[ ]?\Z", self._text[max(0, match.start() - 5) : match.start()]
            )
            if currency in (before and currency_code(before[1]), currency_after(self._text, match.end())[0]):
                return True
        return False

    def _range(
        self, end: int, written: str, currency: str | None, negative: bool, depth: int = 0
    ) -> list[Found]:
        """What a number is joined to: the upper end of a range, the other sides of "36 x 27 x 2 cm"."""
        text, other = self._text, _RANGE.match(self._text, end)
        if not other or (unit_after(text, end)[0] and not re.match(r" ?[x×] ?\d", other[0])):
            return []
        shared = currency_code(other["before"]) if other["before"] else currency
        upper = self._value(other["digits"], shared, other.end())
        lower = self._value(written, shared, end)
        if upper is None or lower is None:
            return []
        begin = end - len(written)
        minus = re.match(r"[ ][-–][ ]", other[0]) and _IN_SUM.search(text, max(0, begin - 3), begin)
        if re.match(r"[ ]?[-–—]", other[0]) and not negative and not lower < upper and not minus:
            return []
        start = other.start("before") if other["before"] else other.start("digits")
        if other["minus"]:
            upper, start = -upper, other.start("minus")
        sides = depth < _MOST_SIDES and re.search("[x×]", other[0])
        further = self._range(other.end(), other["digits"], shared, negative, depth + 1) if sides else []
        if further:
            return [self._like(further[-1], start, other.end(), upper, other["digits"], shared), *further]
        second = self._measured(start, other.end(), upper, other["digits"], currency=shared, label="")
        if re.search("[x×]", other[0]) and second.amount and not _is_side(second.amount):
            return []
        measured = second.amount is not None and (
            second.amount.unit or second.amount.currency or second.amount.head
        )
        if second.amount is None or (re.match(r"[ ]\w{2,}", other[0]) and not measured):
            return []
        return [second]

    def _like(
        self, other: Found, start: int, end: int, value: Fraction | None, written: str, currency: str | None
    ) -> Found:
        """A number in the unit or currency of the one that it is joined to."""
        assert other.amount is not None
        amount = replace(
            other.amount,
            value=value,
            written=written,
            currency=currency or other.amount.currency,
            label=self._label(start),
        )
        found = self._amount(start, end, amount)
        return found if amount.unit or amount.currency or amount.head else self._timed(found)

    def _parts(self, start: int, written: str) -> Iterator[Found]:
        """Digits whose separators make no single number: a version, or a list without blanks."""
        if re.fullmatch(r"[\d.]+", written):
            keys = frozenset((f"written:{written}",))
            found = self._found(start, start + len(written), "number", written, needs=keys, gives=keys)
            yield self._timed(found)
            return
        for part in re.finditer(r"[\d.]+", written):
            value = normal_number(part[0])
            first, last = start + part.start(), start + part.end()
            if value and len(value) <= _LONGEST_NUMBER_CHARS:
                yield self._amount(first, last, Amount(Fraction(value), part[0]))
            else:
                keys = frozenset((f"written:{part[0]}",))
                yield self._found(first, last, "number", part[0], needs=keys, gives=keys)

    def _measured(
        self, start: int, end: int, value: Fraction | None, written: str, *, currency: str | None, label: str
    ) -> Found:
        text = self._text
        places, end = scale_after(text, end, price=currency is not None)
        value = None if value is None else value * 10**places
        after, end_of_currency = currency_after(text, end)
        if after and currency in (None, "USD", after):
            currency, end = after, end_of_currency
        near = text[start - 1 : start] in ("", " ", "~", "≈")
        about = _ABOUT.search(text, max(0, start - 24), start) if near else None
        beyond = 0 if about is None else (1 if about["below"] else -1 if about["above"] else 0)
        amount = Amount(value, written, currency, about=bool(about), beyond=beyond)
        if currency:
            rate, _ = rate_after(text, end)
            amount = replace(amount, rate=rate, rates=self._line_rates(start, end))
            return self._amount(start, end, amount)
        unit, end_of_unit = unit_after(text, end)
        if text[end : end + 1] == '"' and self._closes_no_quote(end):
            unit, end_of_unit = "in", end + 1
        if unit:
            rate, _ = rate_after(text, end_of_unit)
            self._last_unit = (unit, end_of_unit)
            negative = (
                value is not None
                and unit.startswith("°")
                and re.compile(r" below (?:zero|freezing)").match(text, end_of_unit)
            )
            amount = replace(amount, unit=unit, rate=rate, value=-value if negative and value else value)
            if text[end:end_of_unit].strip(" -").lower() in ("pound", "pounds"):
                amount = replace(amount, behind=frozenset(("pound",)))
            return self._amount(start, end_of_unit, amount)
        ordinal = _ORDINAL.match(text, end)
        if ordinal:
            return self._amount(start, ordinal.end(), replace(amount, ordinal=True))
        glued = _GLUED.match(text, end)
        token = self._token(start, glued.end()) if glued else None
        if glued and token and (glued[0] != "k" or value is None):
            return token
        if glued and value is not None:  # "5k steps" are 5,000
            end, amount = glued.end(), replace(amount, value=value * 1000, written=_render(value * 1000))
        run, joined = self._run(end)
        rate, _ = rate_after(text, end)
        if not rate and run:
            rate = rate_after(text, self._end_of_run(end))[0]
        before = self._word_before(start)
        noun, counts = _head(run, joined, value) if not label and before not in LABELS else ("", False)
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
            counts=counts,
            behind=frozenset(stem(word) for word in run or self._place_behind(end)),
            label=label,
            labels=self._labels(start),
            before=before,
            heading=title,
            units_before=units,
            version=version,
        )
        named = re.compile(r"([^\W\d_]{2,})[ -]\Z").search(text, max(0, start - 40), start)
        keys = set(token.gives) if token else {f"written:{written}"} if version else set()
        if named and named[1][0].isupper():
            keys.add(f"token:{fold_name(named[1])}{fold_name(written)}")
        found = self._amount(start, end, amount, frozenset(keys))
        return found if rate or counts or label else self._timed(found)

    def _timed(self, found: Found) -> Found:
        time = dot_time(self._text, found.start, found.end)
        if time is None:
            return found
        return replace(found, needs=found.needs.union(time.need), gives=found.gives.union(time.gives))

    def _amount(self, start: int, end: int, amount: Amount, keys: frozenset[str] = frozenset()) -> Found:
        value = _render(amount.value) if amount.value is not None else amount.written
        if amount.currency:
            return self._found(start, end, "price", f"{amount.currency} {value}", amount=amount)
        if amount.unit:
            return self._found(start, end, "quantity", f"{value} {amount.unit}", amount=amount)
        value = amount.written if amount.version else value
        return self._found(start, end, "number", value, amount=amount, needs=keys, gives=keys)

    def _closes_no_quote(self, at: int) -> bool:
        line = self._text.rfind("\n", 0, at) + 1
        return (bisect(self._quotes, at - 1) - bisect(self._quotes, line - 1)) % 2 == 0

    def _run(self, end: int) -> tuple[list[str], bool]:
        text, joined = self._text, False
        words: list[str] = []
        first = _BEFORE_RUN.match(text, end)
        at = end
        if first:
            at = first.end() - (1 if first[0].endswith(" ") else 0)
        while len(words) < _RUN_WORDS and (match := _RUN_WORD.match(text, at)):
            word = match["word"].lower().removesuffix("'s")
            if (word in NOT_COUNTED and match["gap"] == " ") or (not word.isalpha() and "'" in word):
                break
            joined = joined or (not words and match["gap"] == "-")
            words.append(word)
            at = match.end()
        return words, joined

    def _place_behind(self, end: int) -> list[str]:
        """The word that a number without one of its own is told of: "gallery" of "30 on the gallery"."""
        words = re.compile(r"(?: [a-z]+){2,3}").match(self._text, end)
        small = words[0].split() if words else []
        return [word for word in small if word not in FUNCTION_WORDS][:1]

    def _end_of_run(self, end: int) -> int:
        at, count = end, 0
        while count < _RUN_WORDS and (match := _RUN_WORD.match(self._text, at)):
            if match["word"].lower() in NOT_COUNTED:
                break
            at, count = match.end(), count + 1
        return at

    def _word_before(self, start: int) -> str:
        found = _WORD_BEFORE.search(self._text, max(0, start - 40), start)
        word = found[1].lower() if found else ""
        if self._text[max(0, start - 1) : start] == "/":
            return "/"
        return "" if word in NOT_COUNTED or word.isdigit() else word

    def _label(self, start: int) -> str:
        found = _WORD_BEFORE.search(self._text, max(0, start - 40), start)
        if not found or not found[1][0].isupper() or found[1].isdigit() or len(found[1]) < 2:
            return ""
        return "" if is_ordinary(found[1]) else fold_name(found[1])

    def _labels(self, start: int) -> frozenset[str]:
        kept: set[str] = set()
        for word in reversed(self._text[max(0, start - _LOOK_CHARS) : start].split()):
            if not word[0].isupper() or not word[-1].isalnum():
                break
            kept.add(fold_name(word))
        return frozenset(kept)

    def _title(self, start: int) -> tuple[frozenset[str], frozenset[str]]:
        before = self._text[max(0, start - _LOOK_CHARS) : start].rstrip()
        if before.endswith((":", "=", "|", "(")):
            before = before[:-1]
        elif says := _SAYS.search(before[-12:]):
            before = before[: len(before) - len(says[0])]
        else:
            return frozenset(), frozenset()
        title = re.split(r"[:=|\n.;!?]", before)[-1]
        words = re.findall(rf"{_LETTER}+", title.lower())
        units = [unit_after(f"1{one.strip()}", 1)[0] for one in _UNITS_IN_TITLE.findall(title + ")")]
        return frozenset(stem(w) for w in words if w not in FUNCTION_WORDS), frozenset(u for u in units if u)

    def _line_rates(self, start: int, end: int) -> frozenset[str]:
        if not self._has_rates:
            return frozenset()
        before = re.split(r"[\n.;!?]", self._text[max(0, start - _LOOK_CHARS) : start])[-1]
        after = re.split(r"[\n.;!?]", self._text[end : end + _LOOK_CHARS])[0]
        found = set()
        for match in _RATE_WORD.finditer(f"{before}\x00{after}"):
            found.add(rate_of(match["ly"] or match["of"] or match["per"] or match["annual"]))
        return frozenset(found)


def _is_side(amount: Amount) -> bool:
    """Whether a number behind a sign of multiplication may be a side of something, not what is multiplied."""
    return not amount.currency and (not amount.unit or amount.unit == "px" or size_of(amount.unit)[1] == "m")


def _head(run: list[str], joined: bool, value: Fraction | None) -> tuple[str, bool]:
    if not run:
        return "", False
    if joined:
        return run[0], True
    if value == 1:
        words = run[:-1] if len(run) > 1 and is_plural(run[-1]) else run
        return words[-1], False
    for word in run[:3]:
        if is_plural(word):
            return word, True
    return run[0], False


def is_plural(word: str) -> bool:
    """
    >>> is_plural("laptops"), is_plural("people"), is_plural("bus"), is_plural("glass")
    (True, True, False, False)
    """
    return word in _IRREGULAR or (
        len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    )


def _render(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    twos = value.denominator
    for factor in (2, 5):
        while twos % factor == 0:
            twos //= factor
    if twos != 1:
        return str(value)
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    digits = str(abs(value * 10**places).numerator).rjust(places + 1, "0")
    return ("-" if value < 0 else "") + f"{digits[:-places]}.{digits[-places:]}"
