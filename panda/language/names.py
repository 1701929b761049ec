"""Proper names in a text, in any script, as whole words; an ordinary word at a start is none."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from panda.language.claims import scan
from panda.language.languages import ALL_FOREIGN_WORDS, NUMBERS, language_of
from panda.language.patterns import lazy_pattern, one_of
from panda.language.text import fold_name
from panda.language.words import LABELS, NOT_COUNTED, is_acronym, is_honorific, is_ordinary, read_words

_CASELESS = (
    "\u0590-\u08ff\u0900-\u109f\u10a0-\u10ff\u1100-\u11ff\u1200-\u139f\u1780-\u17ff\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Letters of scripts that have no capitals."""
_RUNS = (
    "\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3005\U00020000-\U0003ffff",  # Han
    "\u3040-\u309f",  # Hiragana
    "\u30a0-\u30ff",  # Katakana
)
"""Scripts without blanks; a change from one to another ends a word."""
_WORD = lazy_pattern(
    rf"(?:[^\W\d_]\.){{2,}}|(?:(?![{_CASELESS}])[^\W_])+(?:['&](?:(?![{_CASELESS}])[^\W_])+)*"
    + "".join(rf"|[{run}]+" for run in _RUNS)
    + rf"|(?:(?![{''.join(_RUNS)}])[{_CASELESS}]|[\u0300-\u036f\u200c\u200d])+"
)
_IS_CASELESS = lazy_pattern(f"[{_CASELESS}]")
_START = lazy_pattern(r"(?:\A|[\n|:;!?…•·>#]|(?<=\s)[–—*+-](?=\s)|\A[–—*+-](?=\s))[\s\"'(\[«„“*_#>+|-]*\Z")
_BEFORE_STARTS = frozenset("|:;!?…•·>#\"'([«„“*_+-")
"""What the last character before a start may be, beside whitespace."""
_AFTER_STOP = lazy_pattern(r"(?P<word>[^\s(\[\"']*)(?P<stop>\.|[。！？])[\"')\]»”]*[\s\"'(\[«„“]+\Z")
_ENUMERATOR = lazy_pattern(r"(?:\A|[\n|])[\s>#*_-]*(?:\d{1,3}|[A-Za-z])[.)]\s+[\"'(*_]*\Z")
_ARTICLE = lazy_pattern(r"(?:\A|\W)(?:The|An?|Our|My|Your)\Z")
_ELIDED = lazy_pattern(r"(?!I')[A-Z][a-z]?'[A-ZÀ-ÖØ-Þ][^\W\d_]")
"""How "O'Brien" and "D'Angelo" begin."""
_LETTERED = read_words("english_words.txt", "lettered")
"""Words that a single letter tells apart, as it does LABELS."""
_BEFORE_NOUN = lazy_pattern(
    rf"(?<!\w)(?i:{one_of({*read_words('languages.txt', 'before_nouns'), *NUMBERS['de']})})"
    r"(?:[ ][a-zäöüß]+e[nmrs]?){0,2}[ ]\Z|\d\.?[ ]\Z"
)
_NOUN_ENDING = lazy_pattern(r"\w{3,}(?:ung|heit|keit|schaft|tion|tät)(?:en)?")
_NOUNS = {noun.lower() for noun in read_words("german_nouns.txt", "nouns")}
_PLACES = tuple(read_words("languages.txt", "places"))
_ALONE = lazy_pattern(r"[^\W\d_]\.?(?:[\s,;:!?)]|\Z)")
_PARTS = lazy_pattern(
    r"(?<![^\W\d_])[^\W\d_]++(?=\d)|(?<=\d)[^\W\d_]\b|(?<=\b[DdLl]')\w+|\b[A-Z]{2,}(?=[A-Z][a-z])|(?<=[A-Z])[A-Z][a-z]+\b"
)
"""Names within a word: of "RTX4050", "14D", "l'Oréal" and "OOMKilled"."""
_JOINED = lazy_pattern(r"(?<![^\W\d_])(?:[^\W\d_]++-)+[^\W\d_]+")
_LOOK_CHARS = 40
_NEVER_LAST = read_words("abbreviations.txt", "never_last")
_GERMAN_ADJECTIVE = lazy_pattern(r"(.{2,}sche)[nrms]?")
_ADJECTIVE_ENDS = ("", "n", "r", "m", "s")


@dataclass(frozen=True)
class Name:
    text: str  # as the text has it
    folded: str  # as names are compared
    start: int  # index of its first character in the plain text
    end: int  # index behind its last character
    follows: str = ""  # the name directly before it, folded, if both are one name


@dataclass(frozen=True)
class Words:
    folded: tuple[str, ...]  # every word, in order
    capital: tuple[bool, ...]  # whether each has a capital and only a blank between it and the next
    upper: tuple[bool, ...]  # whether each has a capital
    places: dict[str, tuple[int, ...]]  # where each stands

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self.places)

    def hold(self, name: str) -> bool:
        """Return whether one of the words is this name, its plural or singular, or its German adjective."""
        if name in self.places:
            return True
        if _IS_CASELESS.match(name):
            at = bisect_left(self._sorted, name)
            return at < len(self._sorted) and self._sorted[at].startswith(name)
        if len(name) > 4 and name.endswith("s") and name[:-1] in self.places:
            return True
        if len(name) > 3 and f"{name}s" in self.places:
            return True
        adjective = _GERMAN_ADJECTIVE.fullmatch(name)  # "die Oldenburgische" of "bei der Oldenburgischen"
        return adjective is not None and any(f"{adjective[1]}{end}" in self.places for end in _ADJECTIVE_ENDS)


@lru_cache(maxsize=256)
def words_of(text: str) -> Words:
    folded: list[str] = []
    capital: list[bool] = []
    upper: list[bool] = []
    places: dict[str, list[int]] = {}
    for match in _WORD.finditer(text):
        word = _stem_of(match[0])
        behind = text[match.end() : match.end() + 1]
        upper.append(match[0][0].isupper())
        capital.append(upper[-1] and behind in (" ", "-"))
        if word not in ("a", "i") or _is_letter(text, match.start()) or not behind.isspace():
            places.setdefault(word, []).append(len(folded))
        folded.append(word)
    for word in (*_PARTS.findall(text), *(joined.replace("-", "") for joined in _JOINED.findall(text))):
        places.setdefault(fold_name(word), [])
    return Words(
        tuple(folded), tuple(capital), tuple(upper), {word: tuple(at) for word, at in places.items()}
    )


def _stem_of(word: str) -> str:
    folded = fold_name(word.replace(".", ""))
    return folded.removesuffix("'s").removesuffix("'")


@lru_cache(maxsize=512)
def find_names(text: str) -> tuple[Name, ...]:
    """
    Return the words of a text, as plain_text gives it, that must be names: within a sentence a word with a
    capital; where every word has one (at the start of a sentence, list item, table cell or title) only what
    is not ordinary English; in capitals throughout what is no common short form; and whatever stands in
    another script than the rest. Dates, units, currencies and addresses are none.
    """
    taken = [
        (mention.start, mention.end)
        for mention in scan(text)
        if not (mention.amount and mention.amount.ordinal)
    ]
    names: list[Name] = []
    at_start = False  # whether only capitals stand between this word and a start
    last_end = -1
    caseless_text = len(_IS_CASELESS.findall(text)) * 2 > sum(map(str.isalpha, text))
    language = language_of(text)
    english = language == "en" or (not language and _is_english(text))
    written = re.findall(r"[^\W\d_]{2,}", text)
    shouted = len(written) > 2 and sum(map(str.isupper, written)) * 3 > len(written) * 2
    spans = iter([*taken, (len(text) + 1, len(text) + 1)])
    span = next(spans)
    for match in _WORD.finditer(text):
        word = match[0]
        start = match.start()
        while span[1] <= start:
            span = next(spans)
        starts = _is_start(text, start)
        titled = at_start and text[last_end:start] in (" ", "-", "'") and word[0].isupper()
        behind_name = bool(names) and names[-1].end == last_end == start - 1
        at_start = starts or (
            titled and not _is_told_of(text, last_end, match.end(), behind_name=behind_name)
        )
        last_end = match.end()
        if text[start - 1 : start] == "`" and text.startswith(("`", "-", "_", "."), match.end()):
            names.append(Name(word, _stem_of(word), start, match.end()))
            continue
        if _is_german_noun(text, match, language):
            continue
        if span[0] <= start or (start and text[start - 1] in "'@#/\\" and not starts):
            continue
        if _is_letter(text, start) or _is_name(word, at_start, caseless_text, english, shouted):
            folded = _stem_of(word)
            close = bool(names) and text[names[-1].end : start] == " "
            bare = re.sub(r"'s?\Z", "", word)
            names.append(Name(bare, folded, start, start + len(bare), names[-1].folded if close else ""))
    return tuple(names)


def _is_letter(text: str, at: int, *, nouns: bool = True) -> bool:
    """
    Return whether a single capital letter is part of a name, as in "zone C"; "I" and "A" only behind a label.
    """
    if not (text[at].isupper() and _ALONE.match(text, at)):
        return False
    before = re.search(r"([^\W\d_]{2,}) \Z", text[max(0, at - _LOOK_CHARS) : at])
    if not before or (text[at] == "I" and text[at + 1 : at + 2].isspace()):
        return False
    noun = before[1].lower()
    if {noun, noun.removesuffix("s")} & (LABELS | _LETTERED):
        return True
    return nouns and text[at] not in "AI" and before[1].islower() and noun not in NOT_COUNTED


def _is_told_of(text: str, before: int, end: int, *, behind_name: bool) -> bool:
    """
    Return whether a capital stands behind a title ("Frau Ott"), or behind an article or a name and goes on in
    small letters ("The Galaxy costs").
    """
    if is_honorific(text[max(0, before - _LOOK_CHARS) : before].rpartition(" ")[2]):
        return True
    article = _ARTICLE.search(text[max(0, before - 5) : before])
    return bool((article or behind_name) and re.match(r"(?:'s)? [a-z]", text[end : end + 4]))


def _is_name(word: str, at_start: bool, caseless_text: bool, english: bool, shouted: bool) -> bool:
    if _IS_CASELESS.match(word):
        return not caseless_text
    if any(map(str.isdigit, word)):
        return False
    if _ELIDED.match(word):
        return True
    if not word[0].isupper():  # "iPhone"
        return word[1:2].isupper() and word.isalpha() and any(char.islower() for char in word[2:])
    if caseless_text:
        return word not in ("A", "I")  # words_of does not hold them either
    base = word.partition("'")[0]
    if len(base) > 1 and all(char.isupper() for char in base if char.isalpha()):
        return not (is_acronym(base) or (is_ordinary(base) and (shouted or len(base) > 3)))
    if is_honorific(base) or is_acronym(base) or len(base) < 2:
        return False
    if at_start and base.lower() in ALL_FOREIGN_WORDS:
        return False
    inner = any(char.isupper() for char in base[1:])
    return inner or not at_start or (english and not is_ordinary(base))


def _is_german_noun(text: str, match: re.Match[str], language: str) -> bool:
    """Return whether a capital is that of a German noun, by what stands before it, its ending or a list."""
    word = match[0]
    if not (word.istitle() and word.isalpha()):
        return False
    small = word.lower()
    if _is_listed_noun(small):
        return language != "en" or not is_ordinary(word)
    if language not in ("de", "") or small.endswith(_PLACES):
        return False
    if language and _NOUN_ENDING.fullmatch(small):
        return True
    behind = text[match.end() : match.end() + 2]
    if behind[:1] in (" ", "-") and behind[1:].isupper():  # "der Lenovo LOQ"
        return False
    before = _BEFORE_NOUN.search(text, max(0, match.start() - _LOOK_CHARS), match.start())
    return before is not None and (bool(language) or before[0][0].isdecimal())


@lru_cache(maxsize=4096)
def _is_listed_noun(small: str) -> bool:
    """Return whether a word or its last part is a noun of the list or a plural of one."""
    forms = {small[:_LOOK_CHARS].removesuffix(ending) for ending in ("", "e", "n", "en", "s", "es")}
    if not _NOUNS.isdisjoint(forms):
        return True
    parts = (form[at:] for form in forms for at in range(3, len(form) - 4))
    return not small.endswith(_PLACES) and any(part in _NOUNS for part in parts)


def _is_start(text: str, start: int) -> bool:
    last = text[start - 1 : start]
    if last == " " and text[start - 2 : start - 1].isalnum():  # as nearly always
        return False
    if last and not last.isspace() and last not in _BEFORE_STARTS:
        return False
    before = text[max(0, start - _LOOK_CHARS) : start]
    if start > _LOOK_CHARS:
        before = f"\x00{before}"
    if _START.search(before) or _ENUMERATOR.search(before):
        return True
    stop = _AFTER_STOP.search(before)
    if not stop:
        return before.endswith(('"', "(", "[", "«", "„")) and not before.rstrip('"([«„').endswith(("-", "'"))
    word = stop["word"]
    letter = start - len(stop[0])
    initial = len(word) == 1 and word.isupper() and word != "I" and not _is_letter(text, letter, nouns=False)
    return stop["stop"] != "." or not (initial or is_honorific(word) or word.lower() in _NEVER_LAST)


def _is_english(text: str) -> bool:
    small = [word for word in re.findall(r"(?<![\w'])[^\W\d_]{2,}(?![\w'])", text) if word.islower()]
    ordinary_count = sum(map(is_ordinary, small))
    return len(small) < 3 or ordinary_count * 2 >= len(small)


def unknown_names(text: str, sources: Sequence[str]) -> Iterator[Name]:
    """
    Yield the names of a text, in order, that none of its sources has, and those that no source joins so: of
    "Ana Weiß" the second, if the sources know Ana Souza and Otto Weiß only.
    """
    names = find_names(text)
    source_words = [words_of(source) for source in sources if names]

    @cache
    def is_unknown(first: str, name: str) -> bool:
        is_held = any(words.hold(name) for words in source_words)
        return not is_held or (bool(first) and _is_torn(first, name, source_words))

    yield from (name for name in names if is_unknown(name.follows, name.folded))


def _is_torn(first: str, second: str, source_words: Sequence[Words]) -> bool:
    followed = preceded = False
    for words in source_words:
        firsts = words.places.get(first, ())
        seconds = words.places.get(second, ())
        near = {i + n for i in firsts for n in range(-3, 4)}
        if not near.isdisjoint(seconds):
            return False
        followed = followed or any(words.capital[i] and any(words.upper[i + 1 : i + 2]) for i in firsts)
        preceded = preceded or any(j > 0 and words.capital[j - 1] for j in seconds)
    return followed and preceded
