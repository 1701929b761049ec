"""Numbers, units and currencies as people write them, each brought to one normal form."""

import re

DIGITS = r"\d+(?:[.,'’]\d+)*|\.\d+"
"""What may be one number: digits with separators inside, never one at the end."""

_UNIT_NAMES: dict[str, str] = {
    "%": "% percent per\x20cent pct",
    "b": "byte bytes",
    "kb": "kb kilobyte kilobytes",
    "mb": "mb megabyte megabytes",
    "gb": "gb gigabyte gigabytes",
    "tb": "tb terabyte terabytes",
    "kib": "kib",
    "mib": "mib",
    "gib": "gib",
    "tib": "tib",
    "mb/s": "mb/s",
    "gb/s": "gb/s",
    "mbit/s": "mbps mbit/s",
    "gbit/s": "gbps gbit/s",
    "hz": "hz hertz",
    "khz": "khz",
    "mhz": "mhz",
    "ghz": "ghz gigahertz",
    "ms": "ms milliseconds millisecond",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "d": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "yr yrs year years",
    "mg": "mg milligram milligrams",
    "g": "g gram grams gramme grammes",
    "kg": "kg kgs kilo kilos kilogram kilograms",
    "lb": "lb lbs pound pounds",
    "oz": "oz ounce ounces",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "cm": "cm centimetre centimetres centimeter centimeters",
    "m": "m metre metres meter meters",
    "km": "km kilometre kilometres kilometer kilometers",
    "km/h": "km/h kmh",
    "mi": "mi mile miles",
    "mph": "mph",
    "in": "in inch inches ′′",
    "ft": "ft foot feet",
    "ml": "ml millilitre millilitres milliliter milliliters",
    "l": "l L litre litres liter liters",
    "w": "W watt watts",
    "wh": "wh",
    "kwh": "kwh",
    "kw": "kw",
    "mah": "mah",
    "v": "V volt volts",
    "nit": "nit nits",
    "fps": "fps",
    "mp": "mp megapixel megapixels",
    "°c": "°c",
    "°f": "°f",
    "°": "° degree degrees",
    "token": "token tokens",
    "cent": "cent cents",
}
_CURRENCY_NAMES: dict[str, str] = {
    "USD": "$ US$ USD dollar dollars bucks",
    "CAD": "CA$ C$ CAD",
    "AUD": "AU$ A$ AUD",
    "EUR": "€ EUR euro euros",
    "GBP": "£ GBP quid",
    "JPY": "¥ JPY yen",
    "INR": "₹ INR rupee rupees",
    "CHF": "CHF",
    "PLN": "PLN zł",
    "CZK": "CZK Kč",
    "BRL": "R$ BRL",
    "HKD": "HK$ HKD",
    "NZD": "NZ$ NZD",
    "SEK": "SEK",
    "NOK": "NOK",
    "DKK": "DKK",
    "kr": "kr kr.",
    "CNY": "CNY RMB yuan",
    "RUB": "₽ RUB rouble roubles ruble rubles руб руб.",
}
_UNITS = {name: unit for unit, names in _UNIT_NAMES.items() for name in names.split()}
_UNITS |= {"per cent": "%"}
_CURRENCIES = {name: code for code, names in _CURRENCY_NAMES.items() for name in names.split()}
_SHORT_ONLY_GLUED = {"in", "m", "s", "g", "l", "b", "V", "W"}  # "7 in stock", "5 s": a unit only as "7in"
_CASED = {"g", "s", "m", "h", "l", "L", "W", "V"}  # "5G" is no weight
_SYMBOLS = r"[$¢£¤¥฿\u20a0-\u20cf]"
_LETTER = r"[^\W\d_\u2e80-\U0010ffff]"


def _one_of(names: list[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_UNIT = re.compile(rf"(?P<gap>[ \t]|-)?(?P<unit>{_one_of(list(_UNITS))})(?!{_LETTER})", re.IGNORECASE)
_CURRENCY_WORDS = _one_of([name for name in _CURRENCIES if name[-1].isalpha()])
_CURRENCY_CODES = _one_of([name for name in _CURRENCIES if name.isalpha() and name.isupper()])
_CURRENCY_AFTER = re.compile(
    rf"[ \t]?(?P<name>{_SYMBOLS}|(?:{_CURRENCY_WORDS})(?!{_LETTER}))(?![ \t]?-?\.?\d)"
)
CURRENCY_BEFORE = rf"(?:(?:US|CA?|AU?|HK|NZ|R)?\$|{_SYMBOLS}|(?:{_CURRENCY_CODES})[ \t]?)"
"""A currency in front of a number, as a pattern."""
_SCALES = {
    "k": 3,
    "thousand": 3,
    "m": 6,
    "mn": 6,
    "million": 6,
    "b": 9,
    "bn": 9,
    "billion": 9,
    "trillion": 12,
}
_SCALE = re.compile(rf"[ \t]?(?P<scale>thousand|million|billion|trillion|mn|bn)(?!{_LETTER})", re.IGNORECASE)
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
NUMBER_WORDS = rf"\b(?:{_ANY_WORD})(?:(?:[ -]|[ ]and[ ])(?:{_ANY_WORD})){{0,15}}\b"
"""A run of number words such as "two hundred and five"."""


def normal_number(written: str, *, dot_groups: bool = False) -> str | None:
    """
    The value of one written number as plain digits.

    Args:
        written: Text that matches DIGITS, without a sign.
        dot_groups: Whether "1.299" means 1299, as in prices in euros.

    Returns:
        Digits without leading zeros, with a dot and decimals only if they are not all zero;
        None if the separators make no single number ("1.2.3", "1,2,3").

    >>> [normal_number(text) for text in ("697.00", "1,299.50", "1.299,5", "749,99", "007", ".50", "1.2.3")]
    ['697', '1299.5', '1299.5', '749.99', '7', '0.5', None]
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
    if re.fullmatch(r"\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?", text) and not text.startswith("0,"):
        whole, _, decimals = text.partition(".")
        return _plain(whole.replace(",", ""), decimals)
    many = re.fullmatch(r"\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}\.\d{3},\d+", text)
    if many or (dot_groups and re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", text)):
        whole, _, decimals = text.partition(",")
        return _plain(whole.replace(".", ""), decimals)
    parts = re.split(r"[.,]", text)
    return _plain(parts[0], parts[1]) if len(parts) == 2 else None


def _plain(whole: str, decimals: str) -> str:
    decimals = decimals.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{decimals}" if decimals else whole


def scaled(value: str, places: int) -> str:
    """
    A normal number times ten to the power of *places*.

    >>> scaled("1.5", 6), scaled("12", 3), scaled("0.2", 0)
    ('1500000', '12000', '0.2')
    """
    whole, _, decimals = value.partition(".")
    decimals = decimals.ljust(places, "0")
    return _plain(whole + decimals[:places], decimals[places:])


def scale_after(text: str, at: int, *, price: bool) -> tuple[int, int]:
    """
    The scale word or letter that follows a number.

    Args:
        text: Any text.
        at: Index behind the number.
        price: Whether "k" and "M" scale too, as in "$1k".

    Returns:
        Power of ten (0 if there is none) and the index behind the scale.

    >>> scale_after("2 million", 1, price=False), scale_after("$1k", 2, price=True)
    ((6, 9), (3, 3))
    """
    found = _SCALE.match(text, at) or (_PRICE_SCALE.match(text, at) if price else None)
    return (_SCALES[found["scale"].lower()], found.end()) if found else (0, at)


def unit_after(text: str, at: int) -> tuple[str | None, int]:
    """
    The unit that follows a number, glued, after a blank or after a hyphen.

    Returns:
        Normal name of the unit (None if there is none) and the index behind it.

    >>> unit_after("16GB", 2), unit_after("15.6-inch", 4), unit_after("7 in stock", 1)
    (('gb', 4), ('in', 9), (None, 1))
    """
    found = _UNIT.match(text, at)
    if not found:
        return None, at
    written = found["unit"]
    if found["gap"] not in (None, "-") and (written in _SHORT_ONLY_GLUED or written.lower() == "in"):
        return None, at
    if len(written) == 1 and written.isalpha() and written not in _CASED:
        return None, at
    return _UNITS.get(written) or _UNITS[written.lower()], found.end()


def currency_after(text: str, at: int) -> tuple[str | None, int]:
    """
    The currency that follows a number.

    >>> currency_after("697 dollars", 3), currency_after("697 €", 3), currency_after("697 laptops", 3)
    (('USD', 11), ('EUR', 5), (None, 3))
    """
    found = _CURRENCY_AFTER.match(text, at)
    return (currency_code(found["name"]), found.end()) if found else (None, at)


def currency_code(written: str) -> str:
    """
    The code of a currency's name or sign; an unlisted sign is its own code.

    >>> currency_code("US$"), currency_code("€"), currency_code("₿")
    ('USD', 'EUR', '₿')
    """
    return _CURRENCIES.get(written.strip(), written.strip())


def number_from_words(words: str) -> list[int]:
    """
    The numbers that a run of number words names.

    Args:
        words: Text that matches NUMBER_WORDS, in any case.

    Returns:
        One number for each part that reads as one: "nine ten" is two numbers.

    >>> [number_from_words(words) for words in ("Twelve", "twenty-one", "two hundred and five", "nine ten")]
    [[12], [21], [205], [9, 10]]
    >>> number_from_words("two hundred thousand"), number_from_words("hundred")
    ([200000], [100])
    """
    numbers: list[int] = []
    total, current, last = 0, 0, 0  # last: size of the part added last, which the next one must undercut
    for word in re.split(r"[ -]+", words.lower()):
        if word == "and":
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
