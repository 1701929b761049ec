"""The words of English: lists of them, their stems as an index compares them, which are ordinary. Pure."""

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from panda.language.patterns import lazy_pattern


@cache
def read_groups(file: str) -> Mapping[str, str]:
    """
    Return the text of each group of a file by its name, in order: `name: words`, continued in lines that
    begin with a blank; lines that begin with # are comments.
    """
    groups: dict[str, str] = {}
    name = ""
    for line in _read(file).splitlines():
        if line.startswith(" "):
            groups[name] += f" {line.strip()}"
        elif line and not line.startswith("#"):
            name, _, words = line.partition(":")
            groups[name] = words.strip()
    return groups


@cache
def read_words(file: str, group: str | None = None) -> frozenset[str]:
    """
    Return the words of a file, or of one of its groups; "_" stands for a blank within words that go together.
    """
    text = _read(file) if group is None else read_groups(file)[group]
    return frozenset(word.replace("_", " ") for word in text.split())


@cache
def alternatives(file: str, group: str) -> str:
    """Return the words of a group as alternatives of a regular expression; "*" stands for any ending."""
    words = sorted(read_words(file, group), key=lambda word: (-len(word), word))
    return "(?:" + "|".join(word.replace("*", r"\w*") for word in words) + ")"


@cache
def phrases(file: str, group: str) -> re.Pattern[str]:
    spaced = r"[^\W\u2e80-\U0010ffff]"  # Chinese and Japanese set no blanks
    return re.compile(rf"(?<!{spaced}){alternatives(file, group)}(?!{spaced})", re.IGNORECASE)


_FOLDERS = (files("panda.language"), files("panda.messages"))
"""Where word lists stand: those of verification, and those of what only messages say."""


def _read(file: str) -> str:
    lists = (folder.joinpath(file) for folder in _FOLDERS)
    return next(words for words in lists if words.is_file()).read_text(encoding="utf-8")


_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0df3\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc"
    "\u0ec8-\u0ecd\u102b-\u103e\u1056-\u1059\u17b4-\u17d3\u3099\u309a"
)
"""Signs that stand within words, though they are no letters."""
_PLAIN_WORD = lazy_pattern(r"[^\W_]+")
_WORD = lazy_pattern(rf"(?:[^\W_]|[{_MARKS}])+")
_TYPED_WORD = lazy_pattern(rf"(?:\w|[{_MARKS}])+")
_UNSPACED = lazy_pattern(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]+)"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese."""
_OTHER = lazy_pattern(
    rf"[{_MARKS}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2070-\u218f\u2460-\u24ff\u3040-\uffff\U00010000-\U0010ffff]"
)
"""What makes more or less than one term of a word."""
_MOST_STEMS = 300_000
_LONGEST_TERM_CHARS = 64

_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"),
    ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"),
    ("ousness", "ous"), ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"), ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""),
    ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism",
    "ate", "iti", "ous", "ive", "ize",
)  # fmt: skip


def split_words(text: str) -> list[str]:
    """Return the words of a text as typed, with underscores and the signs of their script."""
    return _TYPED_WORD.findall(text)


def split_terms(text: str) -> list[str]:
    """
    Return the terms of a text, in order, repetitions included: letters and digits between anything else,
    small, without diacritics and English endings. Scripts written without spaces give each character and each
    pair.
    """
    if text.isascii():
        return list(map(_STEMS.__getitem__, text.translate(_ASCII).split()))
    if _OTHER.search(text) is None:
        return list(map(_STEMS.__getitem__, _PLAIN_WORD.findall(text)))
    return [term for word in _WORD.findall(text) for term in word_terms(word)]


def query_terms(word: str) -> tuple[str, ...]:
    """
    Return the terms to search for a word: its terms, without single characters that one of its pairs
    contains.
    """
    terms = split_terms(word)
    pairs = [term for term in terms if len(term) == 2 and _UNSPACED.fullmatch(term)]
    single = {char for pair in pairs for char in pair}
    return tuple(dict.fromkeys(term for term in terms if term not in single))


def word_terms(word: str) -> tuple[str, ...]:
    terms: list[str] = []
    for index, part in enumerate(_UNSPACED.split(_fold(word))):
        if index % 2 == 0:
            terms += [_STEMS[piece] for piece in _WORD.findall(part)]
        else:
            for at, char in enumerate(part):
                terms += [char, part[at : at + 2]] if at + 1 < len(part) else [char]
    return tuple(terms)


class _Stems(dict[str, str]):
    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_STEMS:
            self.clear()
        term = stem(word.lower() if word.isascii() else _fold(word))[:_LONGEST_TERM_CHARS]
        self[word] = term
        return term


_STEMS = _Stems()
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
"""For str.translate: small letters, digits, and a space for anything else."""


def _fold(word: str) -> str:
    parts = []
    for part in _UNSPACED.split(unicodedata.normalize("NFKC", word)):
        if not _UNSPACED.match(part):
            whole = unicodedata.normalize("NFKD", part.casefold())
            part = "".join(char for char in whole if not unicodedata.combining(char))
        parts.append(part)
    return "".join(parts)


def stem(word: str) -> str:
    """
    Return an English word of small letters without its ending; what has anything but a-z is given back as it
    is. By M. F. Porter, An algorithm for suffix stripping, Program 14 (1980), with his two later changes
    (bli, logi).
    """
    if len(word) <= 2 or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    word = _without_past(word)
    if word.endswith("y") and "v" in _kinds(word[:-1]):
        word = word[:-1] + "i"
    for table in (_STEP_2, _STEP_3):
        ending, other = next((pair for pair in table if word.endswith(pair[0])), ("", ""))
        if ending and _measure(word.removesuffix(ending)) > 0:
            word = word.removesuffix(ending) + other
    ending = max((suffix for suffix in _STEP_4 if word.endswith(suffix)), key=len, default="")
    rest = word.removesuffix(ending)
    if ending and _measure(rest) > 1 and (ending != "ion" or rest.endswith(("s", "t"))):
        word = rest
    rest = word.removesuffix("e")
    if rest != word and (_measure(rest) > 1 or (_measure(rest) == 1 and not _ends_short(rest))):
        word = rest
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _without_past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    rest = word.removesuffix("ed" if word.endswith("ed") else "ing")
    kinds = _kinds(rest)
    if rest == word or "v" not in kinds:
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest[-1:] == rest[-2:-1] and kinds[-1] == "c" and rest[-1] not in "lsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _kinds(word: str) -> str:
    """Return a "v" for each vowel and a "c" for each consonant; "y" is a vowel behind a consonant."""
    kinds = ""
    for char in word:
        kinds += "v" if char in "aeiou" or (char == "y" and kinds.endswith("c")) else "c"
    return kinds


def _measure(word: str) -> int:
    """Return how often a vowel is followed by a consonant."""
    return _kinds(word).count("vc")


def _ends_short(word: str) -> bool:
    return _kinds(word).endswith("cvc") and word[-1] not in "wxy"


_UNCONTRACTED = read_words("english_words.txt", "function")
FUNCTION_WORDS = _UNCONTRACTED | read_words("english_words.txt", "contracted")
"""The commonest words: a search looks for others, and none of them is what a number counts."""
CONTENT_FREE_WORDS = _UNCONTRACTED | read_words("english_words.txt", "content_free")
"""Words that say nothing of what a text is about."""
NOT_COUNTED = FUNCTION_WORDS | read_words("english_words.txt", "beside_numbers")
"""Words that end the run of words behind a number: none of them is, or leads to, what is counted."""
LABELS = read_words("english_words.txt", "labels")
"""Words that a number behind them only tells apart: "room 12" is no twelve of anything."""
_HONORIFICS = read_words("english_words.txt", "honorifics")
_ACRONYMS = read_words("english_words.txt", "acronyms")


@cache
def is_ordinary(word: str) -> bool:
    """
    Return whether an English word, given in any case, is written in lower case within a sentence. The list
    beside this file has words of two tokenizers' vocabularies that stand there more often small than with a
    capital (docs/decisions/0014).
    """
    small = word.lower().partition("'")[0]
    stems = read_words("ordinary_words.txt")
    if not (small.isascii() and small.isalpha()):
        return False
    if len(small) == 1 or small in NOT_COUNTED or small in _HONORIFICS or stem(small) in stems:
        return True
    base = small.removesuffix("ly")  # an adverb is as ordinary as what it is made of; "Waverly" is none
    return base != small and len(base) > 4 and not base.endswith("er") and stem(base) in stems


def is_acronym(word: str) -> bool:
    """Return whether a word in capitals names a kind of thing, as "RAM", and no particular one."""
    return word.lower() in _ACRONYMS or word.lower() in FUNCTION_WORDS


def is_honorific(word: str) -> bool:
    return word.lower().rstrip(".") in _HONORIFICS
