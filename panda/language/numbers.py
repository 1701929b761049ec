"""Numbers, units and currencies as people write them, each brought to one normal form."""

import re
from fractions import Fraction

from panda.language.languages import NUMBERS
from panda.language.patterns import lazy_pattern, one_of
from panda.language.words import alternatives, read_groups, read_words

DIGITS = r"\d+(?:[.,'’]\d+)*|\.\d+"  # what may be one number: separators inside, never one at the end

_LETTER = r"(?:(?=[\0-\u2e7f])[^\W\d_])"
_SIGNS: dict[str, str] = {}  # normal names of units by their signs, as written
_NAMES: dict[str, str] = {}  # and by their names, in small letters and without blanks
_SIZES: dict[str, tuple[Fraction, str]] = {}
_FOLDED: dict[str, set[str]] = {}
_PHRASES: set[str] = set()
for _unit, _row in read_groups("units.txt").items():
    _signs, _names, _size = [*_row.split("|"), "", ""][:3]
    _SIGNS |= dict.fromkeys(_signs.split(), _unit)
    _NAMES |= {name.replace("_", ""): _unit for name in _names.split()}
    _PHRASES.update(re.escape(name).replace("_", "[.]?[ -]?") for name in _names.split() if "_" in name)
    if _size:
        _SIZES[_unit] = Fraction(_size.split()[0]), _size.split()[1]
    for _sign in _signs.split():
        _FOLDED.setdefault(_sign.lower(), set()).add(_unit)
_ONLY_GLUED = frozenset(("in", "B", "x", "X", "K", "k", "gr", "a", "us", "mo", "st"))
"""Signs that are words or letters of their own behind a blank: "7 in stock", "gate 5 B"."""
_PREPOSITION = lazy_pattern(
    r"[ ](?:\d{4}(?!\d)|[A-Z][^\W_]*[^\W\dA-Z]|Q[1-4]\b"
    rf"|{alternatives('english_words.txt', 'behind_in')}\b)"
)
"""What follows an "in" that is no inch: a year, a month, a place or another name, "the north", "total"."""
_UNIT = lazy_pattern(
    rf"(?P<gap>[ \t]|-)?(?:(?P<phrase>(?i:{'|'.join(sorted(_PHRASES, key=len, reverse=True))}))(?!{_LETTER})"
    rf"|(?P<unit>dB\(A\)|N·m|[%‰°º¢℃℉″Ω×]{_LETTER}{{0,1}}(?!{_LETTER})|{_LETTER}+(?:\^?[23])?)(?![\w^]))"
)
_RATE_ROWS = {rate: row.split("|") for rate, row in read_groups("rate_words.txt").items() if rate != "before"}
_RATES = {word: rate for rate, row in _RATE_ROWS.items() for column in row for word in column.split()}
RATE_ADVERB = one_of(word for _, adverbs in _RATE_ROWS.values() for word in adverbs.split())
BEFORE_RATE = one_of(read_words("rate_words.txt", "before"))
"""Words that stand before what an amount is counted for, if that is one of RATES, and before other words."""
_OF_RATE = lazy_pattern(
    rf"(?:[ ]?/[ ]?|[ ]per[ ]|[ ](?P<vague>{BEFORE_RATE})[ ])(?P<of>{_LETTER}{{1,12}}|m[23])(?!\w)"
    rf"|[ ](?P<annum>p\.[ ]?a\.)|[ ](?P<adverb>{RATE_ADVERB})\b",
    re.IGNORECASE,
)
RATES = frozenset("s min h d week month year night person quarter kg l lb".split())  # noqa: SIM905
"""What amounts are counted for, by normal names."""
_COMPOSED = frozenset("s min h gal l dl ml m2 m3".split())  # noqa: SIM905
"""What makes one unit of another: km/h, mg/l."""

COMMA_DECIMALS = read_words("currencies.txt", "comma_decimals")
"""Currencies of places where "1.299" is a thousand and more; elsewhere it is a little over 1."""
_CURRENCIES = {
    name: name if code == "codes" else code
    for code, names in read_groups("currencies.txt").items()
    for name in names.split()
    if code != "comma_decimals"
}
_SYMBOLS = r"[$¢£¤¥฿\u20a0-\u20cf]"
_BY_LENGTH = sorted(map(re.escape, _CURRENCIES), key=len, reverse=True)
_CODES = "|".join(name for name in _BY_LENGTH if name.isalpha() and name.isupper())
_CURRENCY_AFTER = lazy_pattern(
    rf"[ \t]?(?P<name>(?:US|CA|C|AU|A|HK|NZ|S)\$|{_SYMBOLS}"
    rf"|(?:{'|'.join(name for name in _BY_LENGTH if name[-1].isalpha() or name[-1] == '.')})(?!{_LETTER}))"
    r"(?![ \t]?-?\.?\d)"
)
CURRENCY_BEFORE = (
    rf"(?:(?:US|CA?|AU?|HK|NZ|NT|MX|R|S)?\$|{_SYMBOLS}"
    rf"|(?:{_CODES}|Rs\.?|Rp|RM|kr\.?"
    r"|Fr\.(?![ ]\d\d?(?:[:/]|\.\d\d?\.|\.[ ]|[ ]?h\b|(?:\.\d\d)?[ ]?[Uu]hr)))[ \t]?)"
)
"""A currency in front of a number, as a pattern."""
_PRICE = lazy_pattern(
    rf"{CURRENCY_BEFORE}[ \t]?\d|\d[ \t]?(?:{_SYMBOLS}|(?:{_CODES}|euros?|dollars?)(?!{_LETTER}))"
)
_FACTOR = lazy_pattern(rf"[ ]?(?:{CURRENCY_BEFORE})?[ ]?\d")  # what is multiplied

_SCALES = {"k": 3, "thousand": 3, "m": 6, "mn": 6, "mio": 6, "million": 6, "b": 9, "bn": 9, "billion": 9}
_SCALES["trillion"] = 12
_SCALE = lazy_pattern(
    rf"[ \t-]?(?P<scale>thousand|million|billion|trillion|mn|mio|bn)(?!{_LETTER})\.?", re.IGNORECASE
)
_PRICE_SCALE = lazy_pattern(rf"(?P<scale>[kKmMB]|mn|bn)(?!{_LETTER})")

_WORD_VALUES = NUMBERS["en"]
_WORD_SCALES = {"hundred": 100, "dozen": 12, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_ANY_WORD = one_of([*_WORD_VALUES, *_WORD_SCALES])
NUMBER_WORDS = (
    rf"\b(?:an?[ ](?=(?:{'|'.join(_WORD_SCALES)})\b))?{_ANY_WORD}"
    rf"(?:(?:[ -]|[ ]and[ ]){_ANY_WORD}){{0,15}}\b"
)
"""A run of number words such as "two hundred and five" or "a dozen"."""
_FOREIGN_WORDS = {word: value for language in ("de", "fr", "es") for word, value in NUMBERS[language].items()}
ALL_NUMBER_WORDS = rf"(?:\b{one_of(word.rstrip('*') for word in _FOREIGN_WORDS)}\b(?!-\w)|{NUMBER_WORDS})"
"""NUMBER_WORDS, or a number word of German, French or Spanish: notes are in these languages as well."""
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()  # noqa: SIM905
ORDINAL_WORDS = {word: number for number, word in enumerate(_ORDINALS, start=1)}
ORDINAL_WORDS |= {f"{word}th": value for word, value in _WORD_VALUES.items() if 13 <= value <= 19}
ORDINAL_WORDS |= {f"{word[:-1]}ieth": value for word, value in _WORD_VALUES.items() if value >= 20}
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "tenth": 10}
FRACTION_WORDS = {word: Fraction(1, n) for part, n in _PARTS.items() for word in (part, f"{part}s")}
FRACTION_WORDS["halves"] = FRACTION_WORDS["half"]
HALVES = one_of(read_words("number_words.txt", "half"))
"""Words for a half that may stand before a unit, as a pattern."""

_AMBIGUOUS = r"[1-9]\d{0,2}\.\d{3}"
_WRITINGS = tuple(
    (lazy_pattern(pattern), mark, only_comma)
    for pattern, mark, only_comma in (
        (r"\.?\d+", ".", False),
        (r"\d{1,3},\d{3}", ",", True),
        (r"(?!0,)\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?", ".", False),
        (r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}\.\d{3},\d+", ",", False),
        (_AMBIGUOUS, ",", True),
        (r"\d+\.\d+", ".", False),
        (r"\d+,\d+", ",", False),
    )
)
"""How a number is written, the mark of its decimals, and whether only where a comma is one."""
_DECIMAL_DOT = lazy_pattern(r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})+\.\d+|\d+\.(?:\d{1,2}|\d{4,}))(?![\d.,]?\d)")
_DECIMAL_COMMA = lazy_pattern(
    r"(?<![\d.,])(?:\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+,(?:\d{1,2}|\d{4,}))(?![\d.,]?\d)"
)


def normal_number(written: str, *, comma_decimals: bool | None = None) -> str | None:
    """
    Return the value of a number without sign that matches DIGITS as plain digits: no leading zeros, decimals
    behind a dot only if they are not all zero; None if the separators make no single number ("1.2.3",
    "1,2,3"). Where *comma_decimals* is unknown, "1,299" is 1299, and "1.299" has three decimals.
    """
    text = written.replace("’", "'")
    if re.fullmatch(r"\d{1,3}(?:'\d{3})+(?:[.,]\d+)?", text):
        text = text.replace("'", "")
    for writing, mark, only_comma in _WRITINGS:
        if writing.fullmatch(text) and (comma_decimals or not only_comma):
            whole, _, decimals = text.replace("," if mark == "." else ".", "").partition(mark)
            return f"{whole.lstrip('0') or '0'}.{decimals.rstrip('0')}".removesuffix(".")
    return None


def is_ambiguous(written: str) -> bool:
    """Return whether a number, as "1.299", is above 1000 in one country and below it in another."""
    return re.fullmatch(_AMBIGUOUS, written) is not None


def reads_comma_decimals(text: str) -> bool | None:
    """Return whether the numbers of a text use a decimal comma; None if they do not tell."""
    comma = _DECIMAL_COMMA.search(text)
    dot = _DECIMAL_DOT.search(text)
    return None if bool(comma) == bool(dot) else bool(comma)


def scale_after(text: str, at: int, *, price: bool) -> tuple[int, int]:
    """
    Return the power of ten that follows a number, else 0, and the index behind it; "k" and "M" scale prices.
    """
    match = _SCALE.match(text, at) or (_PRICE_SCALE.match(text, at) if price else None)
    return (_SCALES[match["scale"].lower()], match.end()) if match else (0, at)


def unit_after(text: str, at: int) -> tuple[str | None, int]:
    """
    Return the normal name of the unit that follows a number, glued, after a blank or after a hyphen, with
    what it is "per", and the index behind it; None and *at* if there is no unit.
    """
    match = _UNIT.match(text, at)
    if not match or (match["unit"] in ("x", "X", "×") and _FACTOR.match(text, match.end())):
        return None, at
    unit = _unit_named(match["unit"] or re.sub("[ .-]", "", match["phrase"]).lower())
    if match["gap"] in (" ", "\t") and match["unit"] in _ONLY_GLUED:
        decimal = re.search(r"\d\.\d+\Z", text[max(0, at - 8) : at])
        is_inch = match["unit"] == "in" and decimal and not _PREPOSITION.match(text, match.end())
        unit = unit if is_inch else ""
    if not unit:
        return None, at
    rate, end = rate_after(text, match.end())
    if rate in _COMPOSED and text[match.end() : end].lstrip()[0] in "/pP" and unit not in ("x", "d", "cent"):
        return f"{unit}/{rate}", end
    return unit, match.end()


def size_of(unit: str) -> tuple[Fraction, str]:
    """
    Return the size of a unit, by its normal name, and the base unit of that size; 1 and itself if it has
    none.
    """
    return _SIZES.get(unit, (Fraction(1), unit))


def name_unit(unit: str) -> str:
    """Return how people write a unit, by its normal name: "days" of "d", "kWh" of "kwh", "km" of "km"."""
    if unit in _SIGNS or "/" in unit:
        return unit
    signs = [sign for sign, own in _SIGNS.items() if own == unit and sign.lower() == unit]
    names = [name for name, own in _NAMES.items() if own == unit]
    return (signs[:1] or names[1:2] or [unit])[0]


def _unit_named(written: str) -> str:
    near = _FOLDED.get(written.lower(), set()) if len(written) > 1 else set()
    return _SIGNS.get(written) or _NAMES.get(written.lower()) or (next(iter(near)) if len(near) == 1 else "")


def rate_after(text: str, at: int) -> tuple[str, int]:
    """
    Return the unit of a rate, as in "5/day" or "$9 monthly", and the index behind it; "" if there is no rate.
    """
    match = _OF_RATE.match(text, at)
    if not match:
        return "", at
    rate = "year" if match["annum"] else rate_of(match["of"] or match["adverb"])
    return ("", at) if match["vague"] and rate not in RATES else (rate, match.end())


def rate_of(word: str) -> str:
    small = word.lower()
    unit = _RATES.get(small) or _NAMES.get(small) or (_SIGNS.get(word) if word not in ("in", "a") else None)
    return unit or (small[:-1] if small.endswith("s") and not small.endswith("ss") else small)


def currency_after(text: str, at: int) -> tuple[str | None, int]:
    """Return the code of the currency that follows a number, None if none does, and the index behind it."""
    match = _CURRENCY_AFTER.match(text, at)
    return (currency_code(match["name"]), match.end()) if match else (None, at)


def currency_code(written: str) -> str:
    """Return the code of a currency's name or sign; an unlisted sign is its own code."""
    return _CURRENCIES.get(written.strip(), written.strip())


def number_from_words(words: str, language: str = "") -> list[int]:
    """
    Return the numbers that a run of number words names (ALL_NUMBER_WORDS), one for each part that is one;
    none of a word that is a number in another language than the text's alone, as "once".
    """
    small = words.lower()
    if small in _FOREIGN_WORDS:
        return [_FOREIGN_WORDS[small]]
    if f"{small}*" in _FOREIGN_WORDS and small not in _WORD_VALUES:
        value = NUMBERS.get(language, {}).get(f"{small}*")
        return [] if value is None else [value]
    numbers: list[int] = []
    total = 0
    current = 0
    last = 0  # size of the part added last, which the next one must undercut
    for word in re.split(r"[ -]+", small):
        if word in ("and", "a", "an"):
            continue
        scale = _WORD_SCALES.get(word, 0)
        value = _WORD_VALUES.get(word, 0)
        if scale >= 1_000:
            total, current, last = total + (current or 1) * scale, 0, scale
        elif scale:
            current, last = (current or 1) * scale, scale
        else:
            if not (last == 0 or last >= 100 or (last >= 20 and 0 < value < 10)):
                numbers.append(total + current)
                total = current = 0
            current, last = current + value, value or 1
    return [*numbers, total + current]


def states_price(text: str) -> bool:
    return _PRICE.search(text) is not None
