"""Numbers, units and currencies as people write them, each brought to one normal form."""

import re
from fractions import Fraction

DIGITS = r"\d+(?:[.,'’]\d+)*|\.\d+"
"""What may be one number: digits with separators inside, never one at the end."""

_SYMBOLS_OF: dict[str, str] = {
    "%": "% pct",
    "‰": "‰",
    "pp": "pp",
    "bit": "bit",
    "kbit": "Kb kbit Kbit",
    "mbit": "Mb mbit Mbit",
    "gbit": "Gb gbit Gbit",
    "tbit": "Tb Tbit",
    "kbit/s": "kbps Kbps",
    "mbit/s": "Mbps mbps MBit/s",
    "gbit/s": "Gbps gbps",
    "b": "B",
    "kb": "KB kB kb",
    "mb": "MB mb",
    "gb": "GB gb",
    "tb": "TB tb",
    "pb": "PB",
    "mb/s": "MBps",
    "kib": "KiB",
    "mib": "MiB",
    "gib": "GiB",
    "tib": "TiB",
    "hz": "Hz",
    "khz": "kHz",
    "mhz": "MHz",
    "ghz": "GHz",
    "thz": "THz",
    "rpm": "rpm",
    "ns": "ns",
    "µs": "µs μs us",
    "ms": "ms",
    "s": "s sec secs",
    "min": "min mins",
    "h": "h hr hrs",
    "week": "wk wks",
    "month": "mo mos",
    "year": "yr yrs",
    "µg": "µg μg mcg",
    "mg": "mg",
    "g": "g gr",
    "kg": "kg kgs",
    "t": "t",
    "lb": "lb lbs",
    "oz": "oz",
    "nm": "nm",
    "µm": "µm μm",
    "mm": "mm",
    "cm": "cm",
    "m": "m",
    "km": "km kms",
    "in": "in ″",
    "ft": "ft",
    "yd": "yd yds",
    "mi": "mi",
    "m2": "m2 m^2 sqm qm",
    "cm2": "cm2 cm^2",
    "km2": "km2 km^2",
    "ft2": "ft2 sqft",
    "ha": "ha",
    "m3": "m3 m^3 cbm",
    "cm3": "cm3 cm^3 ccm",
    "km/h": "kmh kph",
    "mi/h": "mph",
    "mi/gal": "mpg",
    "kn": "kn kt kts",
    "ml": "ml mL",
    "cl": "cl",
    "dl": "dl",
    "l": "l L",
    "gal": "gal",
    "tbsp": "tbsp",
    "tsp": "tsp",
    "mw": "mW",
    "w": "W",
    "kw": "kW KW",
    "megawatt": "MW",
    "gigawatt": "GW",
    "mwh": "mWh",
    "wh": "Wh",
    "kwh": "kWh KWh",
    "megawatt-hour": "MWh",
    "va": "VA",
    "ma": "mA",
    "a": "A",
    "mah": "mAh",
    "ah": "Ah",
    "mv": "mV",
    "v": "V",
    "kv": "kV",
    "ohm": "Ω",
    "lm": "lm",
    "lx": "lx",
    "nit": "nits",
    "db": "dB",
    "dba": "dBA dB(A)",
    "°c": "°C ℃ ºC degC",
    "°f": "°F ℉ ºF degF",
    "k": "K",
    "°": "° º deg",
    "bar": "bar",
    "hpa": "hPa mbar",
    "kpa": "kPa",
    "mpa": "MPa",
    "pa": "Pa",
    "psi": "psi",
    "j": "J",
    "kj": "kJ",
    "kcal": "kcal",
    "cal": "cal",
    "hp": "hp bhp",
    "nm torque": "Nm N·m",
    "n": "N",
    "px": "px",
    "mp": "MP Mpx",
    "fps": "fps FPS",
    "dpi": "dpi DPI",
    "ppi": "ppi PPI",
    "ppm": "ppm",
    "x": "x × X",
    "cent": "¢ ct",
}
"""Units by their signs, as written; where no other unit differs from it by capitals alone, in any case."""
_WORDS_OF: dict[str, str] = {
    "%": "percent",
    "bit": "bits",
    "b": "byte bytes",
    "kb": "kilobyte kilobytes",
    "mb": "megabyte megabytes",
    "gb": "gigabyte gigabytes gig gigs",
    "tb": "terabyte terabytes",
    "mbit": "megabit megabits",
    "gbit": "gigabit gigabits",
    "hz": "hertz",
    "khz": "kilohertz",
    "mhz": "megahertz",
    "ghz": "gigahertz",
    "µs": "microsecond microseconds",
    "ms": "millisecond milliseconds",
    "s": "second seconds",
    "min": "minute minutes",
    "h": "hour hours",
    "d": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "year years",
    "µg": "microgram micrograms",
    "mg": "milligram milligrams",
    "g": "gram grams gramme grammes",
    "kg": "kilo kilos kilogram kilograms kilogramme kilogrammes",
    "t": "tonne tonnes",
    "ton": "ton tons",
    "st": "stone",
    "lb": "pound pounds",
    "oz": "ounce ounces",
    "mm": "millimetre millimetres millimeter millimeters",
    "cm": "centimetre centimetres centimeter centimeters",
    "m": "metre metres meter meters",
    "km": "kilometre kilometres kilometer kilometers",
    "in": "inch inches",
    "ft": "foot feet",
    "yd": "yard yards",
    "mi": "mile miles",
    "acre": "acre acres",
    "ha": "hectare hectares",
    "kn": "knot knots",
    "ml": "millilitre millilitres milliliter milliliters",
    "cl": "centilitre centilitres centiliter centiliters",
    "dl": "decilitre decilitres deciliter deciliters",
    "l": "litre litres liter liters",
    "gal": "gallon gallons",
    "pint": "pint pints",
    "quart": "quart quarts",
    "tbsp": "tablespoon tablespoons",
    "tsp": "teaspoon teaspoons",
    "mw": "milliwatt milliwatts",
    "w": "watt watts",
    "kw": "kilowatt kilowatts",
    "megawatt": "megawatt megawatts",
    "gigawatt": "gigawatt gigawatts",
    "ma": "milliamp milliamps milliampere milliamperes",
    "a": "amp amps ampere amperes",
    "mv": "millivolt millivolts",
    "v": "volt volts",
    "kv": "kilovolt kilovolts",
    "ohm": "ohm ohms",
    "lm": "lumen lumens",
    "lx": "lux",
    "nit": "nit",
    "db": "decibel decibels",
    "°": "degree degrees",
    "°c": "celsius",
    "°f": "fahrenheit",
    "k": "kelvin kelvins",
    "j": "joule joules",
    "kj": "kilojoule kilojoules",
    "cal": "calorie calories",
    "kcal": "kilocalorie kilocalories",
    "hp": "horsepower",
    "px": "pixel pixels",
    "mp": "megapixel megapixels",
    "x": "times",
    "cent": "cent cents",
    "dozen": "dozen",
}
"""Units by their names, in any case."""
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
_CURRENCY_NAMES: dict[str, str] = {
    "USD": "$ US$ USD dollar dollars bucks",
    "CAD": "CA$ C$ CAD",
    "AUD": "AU$ A$ AUD",
    "EUR": "€ EUR euro euros",
    "GBP": "£ GBP quid",
    "JPY": "¥ JPY yen 円",
    "INR": "₹ INR Rs Rs. rupee rupees",
    "CHF": "CHF Fr. francs",
    "PLN": "PLN zł złoty zloty",
    "CZK": "CZK Kč",
    "HUF": "HUF Ft forint",
    "RON": "RON lei",
    "BGN": "BGN",
    "BRL": "R$ BRL reais",
    "HKD": "HK$ HKD",
    "SGD": "S$ SGD",
    "TWD": "NT$ TWD",
    "NZD": "NZ$ NZD",
    "MXN": "MX$ MXN pesos",
    "ARS": "ARS",
    "CLP": "CLP",
    "COP": "COP",
    "SEK": "SEK",
    "NOK": "NOK",
    "DKK": "DKK",
    "ISK": "ISK",
    "kr": "kr kr.",
    "CNY": "CNY RMB yuan 元",
    "KRW": "₩ KRW won",
    "THB": "฿ THB baht",
    "VND": "₫ VND dong",
    "IDR": "IDR Rp rupiah",
    "MYR": "MYR RM ringgit",
    "PHP": "₱ PHP",
    "TRY": "₺ TRY lira",
    "ILS": "₪ ILS shekel shekels",
    "AED": "AED dirhams",
    "SAR": "SAR riyals",
    "EGP": "EGP",
    "MAD": "MAD",
    "NGN": "₦ NGN naira",
    "KES": "KES",
    "ZAR": "ZAR rand",
    "UAH": "₴ UAH hryvnia",
    "RUB": "₽ RUB rouble roubles ruble rubles руб руб.",
    "BTC": "₿ BTC bitcoin bitcoins",
}
COMMA_DECIMALS = frozenset(
    "EUR PLN CZK HUF RON BGN BRL ARS CLP COP SEK NOK DKK ISK kr VND IDR TRY UAH RUB".split()  # noqa: SIM905
)
"""Currencies of places where "1.299" is a thousand and more; elsewhere it is a little over 1."""
_CURRENCIES = {name: code for code, names in _CURRENCY_NAMES.items() for name in names.split()}
_SIGNS = {name: unit for unit, names in _SYMBOLS_OF.items() for name in names.split()}
_NAMES = {name: unit for unit, names in _WORDS_OF.items() for name in names.split()}
_FOLDED: dict[str, set[str]] = {}
for _name, _unit in _SIGNS.items():
    _FOLDED.setdefault(_name.lower(), set()).add(_unit)
_ONLY_GLUED = frozenset(("in", "B", "x", "X", "K", "k", "gr", "a", "us", "mo", "st"))
"""Signs that are words or letters of their own behind a blank: "7 in stock", "gate 5 B"."""
_SYMBOLS = r"[$¢£¤¥฿\u20a0-\u20cf]"
_LETTER = r"[^\W\d_\u2e80-\U0010ffff]"
_UNIT = re.compile(
    rf"(?P<gap>[ \t]|-)?(?:(?P<phrase>(?i:{'|'.join(pattern for pattern, _ in _PHRASES)}))(?!{_LETTER})"
    rf"|(?P<unit>dB\(A\)|N·m|[%‰°º¢℃℉″Ω×]{_LETTER}{{0,1}}(?!{_LETTER})|{_LETTER}+(?:\^?[23])?)(?![\w^]))"
)
_OF_RATE = re.compile(
    rf"(?:[ ]?/[ ]?|[ ]per[ ]|[ ](?P<article>an?)[ ]|[ ](?P<each>each|every)[ ])"
    rf"(?P<of>{_LETTER}{{1,12}})(?!\w)",
    re.IGNORECASE,
)
_LY = re.compile(r"[ ](?P<of>hour|dai|night|week|month|quarter|year|annual)ly\b", re.IGNORECASE)
_RATES = {
    "dai": "d",
    "annual": "year",
    "annum": "year",
    "head": "person",
    "capita": "person",
    "people": "person",
}
_COMPOSED = frozenset(("s", "min", "h", "gal", "l", "m2", "m3"))
"""What makes one unit of another: km/h, mg/l."""
_TIMES = frozenset(
    ("s", "min", "h", "d", "week", "month", "year", "night", "person", "quarter", "kg", "l", "lb")
)


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
_SCALES = {
    "k": 3,
    "thousand": 3,
    "m": 6,
    "mn": 6,
    "mio": 6,
    "million": 6,
    "b": 9,
    "bn": 9,
    "billion": 9,
    "trillion": 12,
}
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
FRACTION_WORDS = {
    "half": Fraction(1, 2),
    "halves": Fraction(1, 2),
    "third": Fraction(1, 3),
    "thirds": Fraction(1, 3),
    "quarter": Fraction(1, 4),
    "quarters": Fraction(1, 4),
    "fifth": Fraction(1, 5),
    "fifths": Fraction(1, 5),
    "tenth": Fraction(1, 10),
    "tenths": Fraction(1, 10),
}
"""Parts of one by their words."""


def normal_number(written: str, *, comma_decimals: bool | None = None) -> str | None:
    """
    The value of one written number as plain digits.

    Args:
        written: Text that matches DIGITS, without a sign.
        comma_decimals: Whether decimals follow a comma, so that "1.299" is 1299; None where that is unknown:
            "1,299" is then 1299, and "1.299" is read as it stands, with three decimals.

    Returns:
        Digits without leading zeros, with a dot and decimals only if they are not all zero;
        None if the separators make no single number ("1.2.3", "1,2,3").

    >>> [normal_number(text) for text in ("697.00", "1,299.50", "1.299,5", "749,99", "007", ".50", "1.2.3")]
    ['697', '1299.5', '1299.5', '749.99', '7', '0.5', None]
    >>> normal_number("1.299", comma_decimals=True), normal_number("1,299", comma_decimals=True)
    ('1299', '1.299')
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
    """
    Whether a written number is a thousand and more in one country and between 1 and 1000 in another.

    >>> is_ambiguous("1.299"), is_ambiguous("1.29"), is_ambiguous("0.299")
    (True, False, False)
    """
    return re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", written) is not None


_DECIMAL_DOT = re.compile(r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})+\.\d+|\d+\.(?:\d{1,2}|\d{4,}))(?![\d.,]?\d)")
_DECIMAL_COMMA = re.compile(
    r"(?<![\d.,])(?:\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+,(?:\d{1,2}|\d{4,}))(?![\d.,]?\d)"
)


def reads_comma_decimals(text: str) -> bool | None:
    """
    Whether the numbers of a text have their decimals behind a comma; None if they do not tell.

    >>> reads_comma_decimals("12,50 € und 1.299 €"), reads_comma_decimals("$12.50"), reads_comma_decimals("7")
    (True, False, None)
    """
    comma, dot = _DECIMAL_COMMA.search(text), _DECIMAL_DOT.search(text)
    return None if bool(comma) == bool(dot) else bool(comma)


def _plain(whole: str, decimals: str) -> str:
    decimals = decimals.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{decimals}" if decimals else whole


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
    The unit that follows a number, glued, after a blank or after a hyphen, with what it is "per".

    Returns:
        Normal name of the unit (None if there is none) and the index behind it.

    >>> unit_after("16GB", 2), unit_after("15.6-inch", 4), unit_after("7 in stock", 1)
    (('gb', 4), ('in', 9), (None, 1))
    >>> unit_after("90 km/h", 2), unit_after("90 miles per hour", 2), unit_after("5 MW", 1)
    (('km/h', 7), ('mi/h', 17), ('megawatt', 4))
    """
    found = _UNIT.match(text, at)
    if not found:
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


def _unit_of(written: str) -> str:
    unit = _SIGNS.get(written) or _NAMES.get(written.lower())
    if unit is None and len(written) > 1:
        near = _FOLDED.get(written.lower(), set())
        unit = next(iter(near)) if len(near) == 1 else None
    return unit or ""


def rate_after(text: str, at: int) -> tuple[str, int]:
    """
    What an amount is counted for, as in "$5 per month", "5/day", "3 times a week" or "$9 monthly".

    Returns:
        Its normal name ("" if there is none) and the index behind it.

    >>> rate_after("$5 per month", 2), rate_after("$9 weekly", 2), rate_after("$5 a lot", 2)
    (('month', 12), ('week', 9), ('', 2))
    """
    found = _OF_RATE.match(text, at) or _LY.match(text, at)
    if not found:
        return "", at
    rate = rate_of(found["of"])
    group = found.groupdict()
    if (group.get("article") or group.get("each")) and rate not in _TIMES:
        return "", at
    return rate, found.end()


def rate_of(word: str) -> str:
    """
    The normal name of what an amount is counted for.

    >>> rate_of("months"), rate_of("hr"), rate_of("guests")
    ('month', 'h', 'guest')
    """
    small = word.lower()
    known = _RATES.get(small) or _NAMES.get(small) or (_SIGNS.get(word) if word not in ("in", "a") else None)
    return known or (small[:-1] if small.endswith("s") and not small.endswith("ss") else small)


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

    >>> currency_code("US$"), currency_code("€"), currency_code("₿"), currency_code("₡")
    ('USD', 'EUR', 'BTC', '₡')
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
    >>> number_from_words("two hundred thousand"), number_from_words("hundred"), number_from_words("a dozen")
    ([200000], [100], [12])
    """
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
