"""English, German, French, Spanish: names of months, weekdays and numbers, and which a text is in. Pure."""

from collections import Counter, defaultdict
from functools import cache, lru_cache

from panda.language.patterns import lazy_pattern
from panda.language.words import CONTENT_FREE_WORDS, FUNCTION_WORDS, is_ordinary, read_groups, read_words

LANGUAGES = ("en", "de", "fr", "es")
FOREIGN_WORDS = {language: read_words("languages.txt", language) for language in LANGUAGES[1:]}
"""The commonest words of each language but English."""
ALL_FOREIGN_WORDS = frozenset().union(*FOREIGN_WORDS.values())
NUMBERS: dict[str, dict[str, int]] = {language: {} for language in LANGUAGES}
"""Number words by language with their values; one that counts in its own language alone ends with "*"."""
_NUMBER_ROWS = read_groups("number_words.txt")
for _value, _row in _NUMBER_ROWS.items():
    if _value.isdecimal():
        for _language, _words in zip(LANGUAGES, _row.split("|"), strict=True):
            NUMBERS[_language] |= {word.replace("_", " "): int(_value) for word in _words.split()}


def _compose_numbers(ten: int, digit: int) -> None:
    """Add the German, French and Spanish words of a number between 21 and 99, made of those of its parts."""
    german, french, spanish = (names.split() for names in _NUMBER_ROWS["units"].split("|"))
    _, german_tens, _, spanish_tens = (names.split() for names in _NUMBER_ROWS[str(ten)].split("|"))
    for name in german_tens:
        NUMBERS["de"][f"{german[digit - 1]}und{name}"] = ten + digit
    if ten == 20:
        twenties = _NUMBER_ROWS["twenties"].split()[digit - 1]
        NUMBERS["es"] |= dict.fromkeys(twenties.split("/"), ten + digit)
    else:
        NUMBERS["es"][f"{spanish_tens[0]} y {spanish[digit - 1]}"] = ten + digit
    french_ten = ten - 10 if ten in (70, 90) else ten  # "soixante et onze", "quatre-vingt-onze"
    rest = ten + digit - french_ten
    joint = " et " if rest in (1, 11) and french_ten != 80 else "-"
    french_name = _NUMBER_ROWS[str(french_ten)].split("|")[2].split()[-1]
    NUMBERS["fr"][f"{french_name}{joint}{french[rest - 1]}"] = ten + digit


for _ten in range(20, 100, 10):
    for _unit in range(1, 10):
        _compose_numbers(_ten, _unit)


@cache
def calendar_names(*groups: str, language: str = "") -> dict[str, int]:
    """Return the names of some groups ("months") in a language, or in all, with their places from 1."""
    rows = read_groups("calendar_words.txt")
    return {
        name: place
        for group in groups
        for tongue in LANGUAGES
        if language in ("", tongue)
        for place, names in enumerate(rows[f"{group}_{tongue}"].split(), start=1)
        for name in names.split("/")
        if name != "-"
    }


_WORD = lazy_pattern(r"[^\W\d_]+")
_SMALL_WORD = lazy_pattern(r"\b[a-z]{3,}\b")
_FIRST_WORD = lazy_pattern(r"(?:\A|\n|[.!?:] )([^\W\d_]+)")
_OFTEN_NAMES = ALL_FOREIGN_WORDS | read_words("calendar_words.txt", "other_words")
"""Words that with a capital within a sentence say nothing of its language: "Do", "Pour", "Don"."""
_READ_CHARS = 4_000  # they tell the language of a text of any length
_LANGUAGES_BY_WORD: dict[str, set[str]] = defaultdict(set)
_UNSURE = {word for words in NUMBERS.values() for word in words if word.endswith("*")}
for _language in LANGUAGES:
    _common = FOREIGN_WORDS.get(_language) or FUNCTION_WORDS | CONTENT_FREE_WORDS
    for _word in (*_common, *NUMBERS[_language], *calendar_names("months", "weekdays", language=_language)):
        if not {_word, f"{_word}*"} & _UNSURE:
            _LANGUAGES_BY_WORD[_word].add(_language)


@lru_cache(maxsize=512)
def language_of(text: str) -> str:
    """
    Return the language that more words of a text are of than of any other; "" if that does not tell.

    >>> language_of("vier Sänger"), language_of("le samedi"), language_of("3 rooms"), language_of("5")
    ('de', 'fr', 'en', '')
    """
    start = text[:_READ_CHARS]
    words = {
        word.lower() for word in _WORD.findall(start) if word.islower() or word.lower() not in _OFTEN_NAMES
    }
    words.update(word.lower() for word in _FIRST_WORD.findall(start))
    votes = Counter(language for word in words for language in _LANGUAGES_BY_WORD.get(word, ()))
    small = _SMALL_WORD.findall(start)
    if not votes and small and all(map(is_ordinary, small)):
        return "en"
    (first, most), (_, next_most) = [*votes.most_common(2), ("", 0), ("", 0)][:2]
    return first if most > next_most else ""
