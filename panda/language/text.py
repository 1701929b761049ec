"""Running text: one sign for one thing, sentences, whether a line asks, what a line tells of. Pure."""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from panda.language.languages import calendar_names
from panda.language.patterns import lazy_pattern
from panda.language.words import read_groups, read_words

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
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
_SUPERSCRIPT = lazy_pattern(rf"(?P<base>\w?)(?P<up>[{_SUPERSCRIPTS}]+)")
_LENGTHS = lazy_pattern(r"(?:\b|\d)(?:[kcdmn]?m|ft|in|yd|mi)\Z", re.IGNORECASE)
_FRACTIONS = (*range(0xBC, 0xBF), *range(0x2150, 0x215F), 0x2189)
_MARKED = (*range(0x2460, 0x2500), *range(0x2776, 0x2794), *range(0x3200, 0x3400))
_APART = {
    code: f" {unicodedata.normalize('NFKC', chr(code))}{'' if code in _FRACTIONS else ' '}"
    for code in (*_FRACTIONS, *_MARKED)
}
"""Fractions, and words and digits in circles: NFKC would glue them to what stands beside them."""
_NARROW_GROUPS = lazy_pattern(r"(?<![\d.,])(\d{1,3})((?:[\u00a0\u2007\u2009\u202f]\d{3})+)(?!\d)")
_EMPHASIS = lazy_pattern(
    r"(?<![\s*])\*{1,3}(?![\d*])|(?<![\d*])\*{1,3}(?![\s*])|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)"
)
_INVISIBLE = {0x00AD: None, 0x034F: None, 0xFEFF: None, **dict.fromkeys([*range(0x200B, 0x2010)])}


def plain_text(text: str) -> str:
    """
    Return a text as its reader takes it, in one writing; whatever compares texts begins with this. One
    apostrophe, quotation mark, hyphen and blank; plain digits; compatibility forms (full width, ligatures) as
    their usual ones; composed letters (NFC); no invisible characters, signs of registration or marks of
    emphasis. Footnote marks go, exponents become "^2", "m²" is "m2", "3½" is "3 1/2", and blanks that only
    group digits go too.
    """
    if text.isascii():
        return _EMPHASIS.sub("", text) if "*" in text or "_" in text else text
    text = _NARROW_GROUPS.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    text = text.translate(_INVISIBLE)
    text = _SUPERSCRIPT.sub(_raised, text)
    text = text.translate(_APART).translate(_SIGNS)
    text = unicodedata.normalize("NFKC", text).translate(_SIGNS).translate(_SEEN)
    return _EMPHASIS.sub("", text)


def plain_signs(text: str) -> str:
    """
    Return a text in plain apostrophes, quotation marks, hyphens and blanks, each character in its place, so
    that what is read in it can be quoted as it stands.
    """
    return text if text.isascii() else text.translate(_PLAIN_SIGNS)


class _Written(dict[int, str]):
    """For str.translate: how each character is written, made when it is first asked for."""

    def __init__(self, write: Callable[[str], str]) -> None:
        self._write = write

    def __missing__(self, code: int) -> str:
        return self.setdefault(code, self._write(chr(code)))


def _plain_sign(char: str) -> str:
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    return {"Zs": " ", "Cf": ""}.get(unicodedata.category(char), char)


def _in_its_place(char: str) -> str:
    char = char.translate(_SIGNS)
    usual = unicodedata.normalize("NFKC", char)
    is_raised = unicodedata.category(char) == "No"  # a footnote's mark is no digit of a number
    return (_plain_sign(usual) or usual) if len(usual) == 1 and not is_raised else char


_PLAIN_SIGNS = _Written(_in_its_place)
_SEEN = _Written(_plain_sign)


def fold_name(name: str) -> str:
    """Return a word of plain_text as names are compared: without regard to capitals, composed."""
    folded = name.casefold().replace("i\u0307", "i").replace("ı", "i")
    return folded if folded.isascii() else unicodedata.normalize("NFC", folded)


def _raised(match: re.Match[str]) -> str:
    """Return a raised number: an exponent behind a bare number, part of a unit, or else a footnote's mark."""
    base = match["base"]
    written = match["up"].translate(str.maketrans(_SUPERSCRIPTS, "0123456789"))
    before = match.string[max(0, match.start() - 20) : match.start("up")]
    if base.isdigit() and written != "1" and re.search(r"(?<![\d.,$€£¥₹])\d{1,4}\Z", before):
        return f"{base}^{written}"
    if base.isalpha() and written in ("2", "3") and _LENGTHS.search(before):
        return f"{base}{written}"
    return base


_RESERVED = frozenset(("example", "test", "invalid", "localhost", "local", "internal", "onion"))
"""Endings that RFC 2606 and its like keep for examples and for networks of one's own."""
_SUFFIXES = "tld/res/effective_tld_names.dat.txt"


@cache
def is_host(name: str) -> bool:
    """
    Return whether words joined by dots may name a host, by the list of public suffixes, without a network
    lookup.
    """
    labels = name.lower().split(".")
    if len(labels) < 2 or not all(labels) or not any(len(label) > 1 for label in labels[:-1]):
        return False
    return labels[-1] in _RESERVED or labels[-1].startswith("xn--") or labels[-1] in _suffixes()


@cache
def _suffixes() -> frozenset[str]:
    """
    Return the public suffixes of one label, from the list of the package tld, whose own code reads it slowly.
    """
    text = Path(str(distribution("tld").locate_file(_SUFFIXES))).read_text(encoding="utf-8")
    rules = map(str.strip, text.splitlines())
    return frozenset(rule for rule in rules if rule and "." not in rule and not rule.startswith("//"))


_ABBREVIATIONS = {name: frozenset(words.split()) for name, words in read_groups("abbreviations.txt").items()}
"""Groups of words that a dot follows within a sentence."""
_OTHER_WORDS = read_words("calendar_words.txt", "other_words")
_END = lazy_pattern(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?=\s)|[。！？]++[」』”]*+")
_LOOK_CHARS = 60
_LEADING_WORD = lazy_pattern(r"[^\W\d_]+")
_DAY_NUMBER = lazy_pattern(r"(?<![\d.,])\d{1,2}\Z|(?<!\d)\d{1,2}\.?[–/-]\d{1,2}\Z")
"""What may be a day before its dot: "5" of "5. November", "3.–5" of "3.–5. November"."""
_MEASURE = lazy_pattern(r"\d[ \u00a0\u202f]?[^\W\d_]\Z")  # "2.5 m." ends a sentence where an initial does not


def split_sentences(text: str) -> list[str]:
    """
    Return the sentences of a paragraph, each one line; dots inside numbers, URLs, abbreviations … end none.
    """
    line = " ".join(text.split())
    return [line[start:end] for start, end in sentence_spans(line)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """
    Return where the sentences of a paragraph begin and end, without surrounding white space, in linear time.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for end in _END.finditer(text):
        before = text[max(start, end.start() - _LOOK_CHARS) : end.start()]
        after = text[end.end() : end.end() + _LOOK_CHARS].lstrip()
        if ends_sentence(before, end.group(), after):
            spans.append((start, end.end()))
            start = end.end()
    spans.append((start, len(text)))
    inner = ((first, last, text[first:last].strip()) for first, last in spans)
    starts = ((text.index(sentence, first, last), sentence) for first, last, sentence in inner if sentence)
    return [(start, start + len(sentence)) for start, sentence in starts]


def begins_with_month(text: str) -> bool:
    """
    Return whether a text begins with the name of a month, as what stands behind a day of it does.

    >>> begins_with_month("November; then more"), begins_with_month("Novembers")
    (True, False)
    """
    word = _LEADING_WORD.match(text[:_LOOK_CHARS])
    return word is not None and word[0].lower() in calendar_names("months", "short_months")


def ends_sentence(before: str, mark: str, after: str) -> bool:
    if not before.strip() or not after:
        return False
    if not mark.startswith(".") or mark.startswith(".."):
        return not after[0].islower() or mark[0] not in ".…"
    if begins_with_month(after) and _DAY_NUMBER.search(before):
        return False
    written = re.split(r"[\s(\[\"“]", before)[-1]
    word = written.lower()
    if word in _ABBREVIATIONS["never_last"] or word.endswith(tuple(_ABBREVIATIONS["endings"])):
        return False
    if len(word) == 1 and word.isalpha() and word != "i" and not _MEASURE.search(before):
        return False
    short_dates = calendar_names("short_months", "short_weekdays")
    is_short_date = word in short_dates and not (written.islower() and word in _OTHER_WORDS)
    if is_short_date or word in _ABBREVIATIONS["sometimes_last"]:
        return after[0].isupper()
    if word.isdigit() and not before[: -len(word)].strip():  # "1. First" is the number of a list item
        return False
    return not after[0].islower()
