"""The one front of every text that is compared: one sign for one thing; which dotted words are hosts."""

import re
import unicodedata
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

MESSAGE_CHARS = 4_000
"""As much of a message is read by the rules on what it means; a query has at most 500 tokens."""
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201b\u02bc\u02b9\u2032\uff07`´", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u02ba\uff02", '"'),
        **dict.fromkeys("\u2010\u2011\u2212\ufe63\uff0d\u207b", "-"),
        **dict.fromkeys("\u2012\u2013", "–"),
        **dict.fromkeys("\u2014\u2015\u2e3a", "—"),
        **dict.fromkeys("™®©℠", " "),
        "\u2044": "/",
        "\u066b": ".",
        "\u066c": ",",
        "\u00ba": "°",
    }
)
_SUPERSCRIPT = re.compile(rf"(?P<base>\w?)(?P<up>[{_SUPERSCRIPTS}]+)")
_LENGTHS = re.compile(r"(?:\b|\d)(?:[kcdmn]?m|ft|in|yd|mi)\Z", re.IGNORECASE)
_FRACTIONS = (*range(0xBC, 0xBF), *range(0x2150, 0x215F), 0x2189)
_MARKED = (*range(0x2460, 0x2500), *range(0x2776, 0x2794), *range(0x3200, 0x3400))
_APART = {
    code: f" {unicodedata.normalize('NFKC', chr(code))}{'' if code in _FRACTIONS else ' '}"
    for code in (*_FRACTIONS, *_MARKED)
}
"""Fractions, and words and digits in circles: NFKC would glue them to what stands beside them."""
_NARROW_GROUPS = re.compile(r"(?<![\d.,])(\d{1,3})((?:[\u00a0\u2007\u2009\u202f]\d{3})+)(?!\d)")
_EMPHASIS = re.compile(
    r"(?<![\s*])\*{1,3}(?![\d*])|(?<![\d*])\*{1,3}(?![\s*])|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)"
)
_INVISIBLE = {0x00AD: None, 0x034F: None, 0xFEFF: None, **dict.fromkeys([*range(0x200B, 0x2010)])}


def plain_text(text: str) -> str:
    """
    A text as its reader takes it, in one writing: the entry of whatever compares texts.

    One apostrophe, quotation mark, hyphen and blank; plain digits; compatibility forms (full width,
    ligatures) as their usual ones; composed letters (NFC); no invisible characters, signs of
    registration or marks of emphasis. Footnote marks go, exponents become "^2", "m²" is "m2", "3½" is
    "3 1/2", and blanks that only group digits go too.

    >>> plain_text("$697¹ or 3½ cups, 10⁶ cells, 45 m², H₂O")
    '$697 or 3 1/2 cups, 10^6 cells, 45 m2, H2O'
    >>> plain_text("1\\u202f299 – 6\\u200b97, “Zoe\\u0308’s” RTX™ ４０５０, −5 **°C**")
    '1299 – 697, "Zoë\\'s" RTX  4050, -5 °C'
    """
    if text.isascii():
        return _EMPHASIS.sub("", text) if "*" in text or "_" in text else text
    text = _NARROW_GROUPS.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    text = text.translate(_INVISIBLE)
    text = _SUPERSCRIPT.sub(_raised, text)
    text = re.sub(rf"(?<=\d)[{_SUBSCRIPTS}]+", "", text.translate(_APART).translate(_SIGNS))
    text = unicodedata.normalize("NFKC", text).translate(_SIGNS).translate(_SEEN)
    return _EMPHASIS.sub("", text)


def plain_signs(text: str) -> str:
    """
    A text in plain apostrophes, quotation marks, hyphens and blanks, each character in its place.

    Whatever reads what a text means begins with it, so that what it finds can be quoted as it stands.

    >>> plain_signs("I’m\\u00a0here – in June")
    "I'm here – in June"
    """
    if text.isascii():
        return text
    return text.translate(_PLAIN_SIGNS)


class _PlainSigns(dict[int, str]):
    """For str.translate: each character as plain_signs writes it, made when it is first asked for."""

    def __missing__(self, code: int) -> str:
        char = chr(code).translate(_SIGNS)
        usual = unicodedata.normalize("NFKC", char)
        is_raised = unicodedata.category(char) == "No"  # a footnote's mark is no digit of a number
        self[code] = _plain_sign(usual) if len(usual) == 1 and not is_raised else char
        return self[code]


_PLAIN_SIGNS = _PlainSigns()


class _Seen(dict[int, str]):
    """For str.translate: each character as it is seen, plain if it is a digit or blank; made likewise."""

    def __missing__(self, code: int) -> str:
        self[code] = "" if unicodedata.category(chr(code)) == "Cf" else _plain_sign(chr(code))
        return self[code]


_SEEN = _Seen()


def fold_name(name: str) -> str:
    """
    A name as names are compared: without regard to capitals, composed.

    Args:
        name: One word, as plain_text gives it.

    >>> fold_name("WEISS") == fold_name("Weiß"), fold_name("İstanbul") == fold_name("istanbul")
    (True, True)
    """
    folded = name.casefold().replace("i\u0307", "i").replace("ı", "i")
    return folded if folded.isascii() else unicodedata.normalize("NFC", folded)


def _raised(match: re.Match[str]) -> str:
    """A raised number: an exponent behind a bare number, part of a unit, or else a footnote's mark."""
    base, written = match["base"], match["up"].translate(str.maketrans(_SUPERSCRIPTS, "0123456789"))
    before = match.string[max(0, match.start() - 20) : match.start("up")]
    if base.isdigit() and written != "1" and re.search(r"(?<![\d.,$€£¥₹])\d{1,4}\Z", before):
        return f"{base}^{written}"
    if base.isalpha() and written in ("2", "3") and _LENGTHS.search(before):
        return f"{base}{written}"
    return base


def _plain_sign(char: str) -> str:
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    return " " if unicodedata.category(char) == "Zs" else char


_RESERVED = frozenset(("example", "test", "invalid", "localhost", "local", "internal", "onion"))
"""Endings that RFC 2606 and its like keep for examples and for networks of one's own."""
_PAGE = re.compile(
    r"(?:\b(?:the|that|this) (?:web)?(?:page|site) )?\bhttps?://[^\s<>\"`|]*[^\s<>\"`|.,;:!?)\]'’”]",
    re.IGNORECASE,
)
_SUFFIXES = "tld/res/effective_tld_names.dat.txt"


@cache
def is_host(name: str) -> bool:
    """
    Whether a dotted name may be that of a host, by the list of public suffixes; nothing is looked up.

    Args:
        name: Words joined by dots, in any case.

    >>> [is_host(name) for name in ("cheap-tents.store", "shop.co.uk", "shop.example", "e.g", "pytest.ini")]
    [True, True, True, False, False]
    """
    labels = name.lower().split(".")
    if len(labels) < 2 or not all(labels) or not any(len(label) > 1 for label in labels[:-1]):
        return False
    return labels[-1] in _RESERVED or labels[-1].startswith("xn--") or labels[-1] in _suffixes()


def with_pages_named(query: str) -> str:
    """
    A query with a plain name for every web address, whose letters would outweigh what is asked.

    >>> with_pages_named("What does http://a.example/x.html?y=1 say about tea?")
    'What does the page say about tea?'
    """
    return _PAGE.sub("the page", query)


@cache
def _suffixes() -> frozenset[str]:
    """The public suffixes of one label, from the list that the package tld brings; its code reads slowly."""
    text = Path(str(distribution("tld").locate_file(_SUFFIXES))).read_text(encoding="utf-8")
    rules = map(str.strip, text.splitlines())
    return frozenset(rule for rule in rules if rule and "." not in rule and not rule.startswith("//"))
