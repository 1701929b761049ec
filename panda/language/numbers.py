"""Numbers, units and currencies as people write them, each brought to one normal form."""

import re
from fractions import Fraction

from panda.language.words import read_groups, read_words

DIGITS = r"\d+(?:[.,'’]\d+)*|\.\d+"
"""What may be one number: digits with separators inside, never one at the end."""

_PHRASES: tuple[tuple[str, str], ...] = (
    (r"per[ -]cent", "%"),
    (r"percentage points?", "pp"),
    (r"(?:degrees?|deg\.?|°) ?(?:c\b|celsius|centigrade)", "°c"),
    (r"(?:degrees?|deg\.?|°) ?(?:f\b|fahrenheit)", "°f"),
    (r"(?:square|sq\.?) ?(?:met(?:re|er)s?|m)", "m2"),
    (r"(?:square|sq\.?) ?(?:kilomet(?:re|er)s?|km)", "km2"),
    (r"(?:square|sq\.?) ?(?:foot|feet|ft)", "ft2"),
    (r"cubic ?(?:met(?:re|er)s?|m)", "m3"),
    (r"(?:kilowatt|kw)[ -]?h(?:ou)?rs?", "kwh"),
    (r"(?:megawatt|mw)[ -]hours?", "megawatt-hour"),
    (r"watt[ -]?h(?:ou)?rs?", "wh"),
    (r"milliamp(?:ere)?[ -]?hours?", "mah"),
    (r"amp(?:ere)?[ -]?hours?", "ah"),
    (r"newton[ -]?met(?:re|er)s?", "nm torque"),
    (r"(?:fl\.?|fluid) ?(?:oz|ounces?)", "fl oz"),
    (r"frames per second", "fps"),
    (r"(?:revolutions|rounds) per minute", "rpm"),
)
COMMA_DECIMALS = read_words("currencies.txt", "comma_decimals")
"""Currencies of places where "1.299" is a thousand and more; elsewhere it is a little over 1."""
_CURRENCIES = {
    name: code
    for code, names in read_groups("currencies.txt").items()
    for name in names.split()
    if code != "comma_decimals"
}


def _read_units(column: int) -> dict[str, str]:
    rows = ((unit, row.split("|")) for unit, row in read_groups("units.txt").items())
    return {word: unit for unit, row in rows if column < len(row) for word in row[column].split()}


_SIGNS, _NAMES = _read_units(0), _read_units(1)
_SIZES = {
    unit: (Fraction(size), base)
    for unit, row in read_groups("units.txt").items()
    if row.count("|") == 2
    for size, base in [row.rpartition("|")[2].split()]
}
_FOLDED: dict[str, set[str]] = {}
for _name, _unit in _SIGNS.items():
    _FOLDED.setdefault(_name.lower(), set()).add(_unit)
_ONLY_GLUED = frozenset(("in", "B", "x", "X", "K", "k", "gr", "a", "us", "mo", "st"))
"""Signs that are words or letters of their own behind a blank: "7 in stock", "gate 5 B"."""
_TIMES_SIGNS = frozenset(("x", "X", "×"))
_SYMBOLS = r"[$¢£¤¥฿\u20a0-\u20cf]"
_LETTER = r"(?:(?=[\0-\u2e7f])[^\W\d_])"
_UNIT = re.compile(
    rf"(?P<gap>[ \t]|-)?(?:(?P<phrase>(?i:{'|'.join(pattern for pattern, _ in _PHRASES)}))(?!{_LETTER})"
    rf"|(?P<unit>dB\(A\)|N·m|[%‰°º¢℃℉″Ω×]{_LETTER}{{0,1}}(?!{_LETTER})|{_LETTER}+(?:\^?[23])?)(?![\w^]))"
)
_OF_RATE = re.compile(
    rf"(?:[ ]?/[ ]?|[ ]per[ ]|[ ](?P<article>an?)[ ]|[ ](?P<each>each|every)[ ])"
    rf"(?P<of>{_LETTER}{{1,12}}|m[23])(?!\w)"
    r"|[ ](?P<annum>p\.[ ]?a\.)",
    re.IGNORECASE,
)
_LY = re.compile(r"[ ](?P<of>hour|dai|night|week|month|quarter|year|annual)ly\b", re.IGNORECASE)
_RATES = {
    "dai": "d",
    "annual": "year",
    "annum": "year",
    **dict.fromkeys(("head", "capita", "people"), "person"),
}
_COMPOSED = frozenset(("s", "min", "h", "gal", "l", "dl", "ml", "m2", "m3"))
"""What makes one unit of another: km/h, mg/l."""
RATES = frozenset(
    ("s", "min", "h", "d", "week", "month", "year", "night", "person", "quarter", "kg", "l", "lb")
)
"""What amounts are counted for, by normal names."""


def _one_of(names: list[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_CURRENCY_WORDS = _one_of([name for name in _CURRENCIES if name[-1].isalpha() or name[-1] == "."])
_CURRENCY_CODES = _one_of([name for name in _CURRENCIES if name.isalpha() and name.isupper()])
_CURRENCY_AFTER = re.compile(
    rf"[ \t]?(?P<name>(?:US|CA|C|AU|A|HK|NZ|S)\$|{_SYMBOLS}|(?:{_CURRENCY_WORDS})(?!{_LETTER}))"
    r"(?![ \t]?-?\.?\d)"
)
CURRENCY_BEFORE = (
    rf"(?:(?:US|CA?|AU?|HK|NZ|NT|MX|R|S)?\$|{_SYMBOLS}|(?:{_CURRENCY_CODES}|Rs\.?|Rp|RM|kr\.?|Fr\.)[ \t]?)"
)
"""A currency in front of a number, as a pattern."""
_PRICE = re.compile(
    rf"{CURRENCY_BEFORE}[ \t]?\d|\d[ \t]?(?:{_SYMBOLS}|(?:{_CURRENCY_CODES}|euros?|dollars?)(?!{_LETTER}))"
)
_FACTOR = re.compile(rf"[ ]?(?:{CURRENCY_BEFORE})?[ ]?\d")
"""What stands behind a sign of multiplication."""
_SCALES = dict.fromkeys(("k", "thousand"), 3) | dict.fromkeys(("m", "mn", "mio", "million"), 6)
_SCALES |= dict.fromkeys(("b", "bn", "billion"), 9) | {"trillion": 12}
_SCALE = re.compile(
    rf"[ \t-]?(?P<scale>thousand|million|billion|trillion|mn|mio|bn)(?!{_LETTER})\.?", re.IGNORECASE
)
_PRICE_SCALE = re.compile(rf"(?P<scale>[kKmMB]|mn|bn)(?!{_LETTER})")

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve"
    " thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_WORD_VALUES = {word: number for number, word in enumerate(_SMALL.split())}
_WORD_VALUES |= {word: 10 * number for number, word in enumerate(_TENS.split(), start=2)}
_WORD_SCALES = {"hundred": 100, "dozen": 12, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_ANY_WORD = "|".join([*_WORD_VALUES, *_WORD_SCALES])
NUMBER_WORDS = (
    rf"\b(?:an?[ ](?=(?:{'|'.join(_WORD_SCALES)})\b))?(?:{_ANY_WORD})"
    rf"(?:(?:[ -]|[ ]and[ ])(?:{_ANY_WORD})){{0,15}}\b"
)
"""A run of number words such as "two hundred and five" or "a dozen"."""
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh"
    " twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
ORDINAL_WORDS = {word: number for number, word in enumerate(_ORDINALS.split(), start=1)}
ORDINAL_WORDS |= {f"{word[:-1]}ieth": 10 * number for number, word in enumerate(_TENS.split(), start=2)}
"""Ordinals by their words."""
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
FRACTION_WORDS = {word: Fraction(1, n) for part, n in _PARTS.items() for word in (part, f"{part}s")}
FRACTION_WORDS["halves"] = FRACTION_WORDS["half"]
"""Parts of one by their words."""


def normal_number(written: str, *, comma_decimals: bool | None = None) -> str | None:
    """
    The value of a number without sign that matches DIGITS as plain digits: no leading zeros, decimals behind
    a dot only if they are not all zero; None if the separators make no single number ("1.2.3", "1,2,3").
    Where *comma_decimals* is unknown, "1,299" is 1299, and "1.299" has three decimals.
    """
    text = written.replace("’", "'")
    if re.fullmatch(r"\d{1,3}(?:'\d{3})+(?:[.,]\d+)?", text):
        text = text.replace("'", "")
    if "'" in text:
        return None
    if text.startswith("."):
        return _plain("0", text[1:])
    if text.isdigit():
        return _plain(text, "")
    if comma_decimals and re.fullmatch(r"\d{1,3},\d{3}", text):
        whole, _, decimals = text.partition(",")
        return _plain(whole, decimals)
    if re.fullmatch(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?", text) and not text.startswith("0,"):
        whole, _, decimals = text.partition(".")
        return _plain(whole.replace(",", ""), decimals)
    many = re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}\.\d{3},\d+", text)
    if many or (comma_decimals and is_ambiguous(text)):
        whole, _, decimals = text.partition(",")
        return _plain(whole.replace(".", ""), decimals)
    parts = re.split(r"[.,]", text)
    return _plain(parts[0], parts[1]) if len(parts) == 2 else None


def is_ambiguous(written: str) -> bool:
    """Whether a number, as "1.299", is a thousand and more in one country and below 1000 in another."""
    return re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", written) is not None


_DECIMAL_DOT = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})+\.\d+|\d+\.(?:\d{1,2}|\d{4,}))(?![\d.,]?\d)")
_DECIMAL_COMMA = re.compile(
    r"(?<![\d.,])(?:\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+,(?:\d{1,2}|\d{4,}))(?![\d.,]?\d)"
)


def reads_comma_decimals(text: str) -> bool | None:
    """Whether the numbers of a text have their decimals behind a comma; None if they do not tell."""
    comma, dot = _DECIMAL_COMMA.search(text), _DECIMAL_DOT.search(text)
    return None if bool(comma) == bool(dot) else bool(comma)


def _plain(whole: str, decimals: str) -> str:
    decimals = decimals.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{decimals}" if decimals else whole


def scale_after(text: str, at: int, *, price: bool) -> tuple[int, int]:
    """The power of ten that follows a number, else 0, and the index behind it; "k" and "M" scale prices."""
    found = _SCALE.match(text, at) or (_PRICE_SCALE.match(text, at) if price else None)
    return (_SCALES[found["scale"].lower()], found.end()) if found else (0, at)


def unit_after(text: str, at: int) -> tuple[str | None, int]:
    """
    The normal name of the unit that follows a number, glued, after a blank or after a hyphen, with what it is
    "per", None if there is none; and the index behind it.
    """
    found = _UNIT.match(text, at)
    if not found or (found["unit"] in _TIMES_SIGNS and _FACTOR.match(text, found.end())):
        return None, at
    if found["phrase"]:
        unit = next(
            unit for pattern, unit in _PHRASES if re.fullmatch(pattern, found["phrase"], re.IGNORECASE)
        )
    else:
        unit = _unit_of(found["unit"])
        if unit and found["gap"] not in (None, "-") and found["unit"] in _ONLY_GLUED:
            decimal = re.search(r"\d\.\d+\Z", text[max(0, at - 8) : at])
            unit = unit if found["unit"] == "in" and decimal else ""
    if not unit:
        return None, at
    rate, end = rate_after(text, found.end())
    if rate in _COMPOSED and text[found.end() : end].lstrip()[0] in "/pP" and unit not in ("x", "d", "cent"):
        return f"{unit}/{rate}", end
    return unit, found.end()


def size_of(unit: str) -> tuple[Fraction, str]:
    """How large a unit is, by its normal name, and in which other unit that is told; else in itself."""
    return _SIZES.get(unit, (Fraction(1), unit))


def _unit_of(written: str) -> str:
    unit = _SIGNS.get(written) or _NAMES.get(written.lower())
    if unit is None and len(written) > 1:
        near = _FOLDED.get(written.lower(), set())
        unit = next(iter(near)) if len(near) == 1 else None
    return unit or ""


def rate_after(text: str, at: int) -> tuple[str, int]:
    """What an amount is counted for, as in "5/day" or "$9 monthly", else "", and the index behind it."""
    found = _OF_RATE.match(text, at) or _LY.match(text, at)
    if not found:
        return "", at
    group = found.groupdict()
    rate = "year" if group.get("annum") else rate_of(found["of"])
    if (group.get("article") or group.get("each")) and rate not in RATES:
        return "", at
    return rate, found.end()


def rate_of(word: str) -> str:
    small = word.lower()
    known = _RATES.get(small) or _NAMES.get(small) or (_SIGNS.get(word) if word not in ("in", "a") else None)
    return known or (small[:-1] if small.endswith("s") and not small.endswith("ss") else small)


def currency_after(text: str, at: int) -> tuple[str | None, int]:
    """The code of the currency that follows a number, None if none does, and the index behind it."""
    found = _CURRENCY_AFTER.match(text, at)
    return (currency_code(found["name"]), found.end()) if found else (None, at)


def currency_code(written: str) -> str:
    """The code of a currency's name or sign; an unlisted sign is its own code."""
    return _CURRENCIES.get(written.strip(), written.strip())


def number_from_words(words: str) -> list[int]:
    """The numbers that a run of number words (NUMBER_WORDS) names, one for each part that reads as one."""
    numbers: list[int] = []
    total, current, last = 0, 0, 0  # last: size of the part added last, which the next one must undercut
    for word in re.split(r"[ -]+", words.lower()):
        if word in ("and", "a", "an"):
            continue
        scale = _WORD_SCALES.get(word)
        if scale is None:
            value = _WORD_VALUES[word]
            fits = last == 0 or last >= 100 or (last >= 20 and 0 < value < 10)
            if not fits:
                numbers.append(total + current)
                total = current = 0
            current += value
            last = value or 1
        elif scale >= 1_000:
            total, current, last = total + (current or 1) * scale, 0, scale
        else:
            current, last = (current or 1) * scale, scale
    return [*numbers, total + current]


def states_price(text: str) -> bool:
    return _PRICE.search(text) is not None
