"""How a message is worded, as numbers for a head, and its mood where no model can tell. Pure."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import log1p

from panda.language.dates import is_past_form
from panda.language.patterns import lazy_pattern
from panda.language.reading import Agreement, Mood
from panda.language.text import is_question, plain_signs
from panda.language.words import read_words

_WORDS = files("panda.language").joinpath("function_words.txt").read_text(encoding="utf-8").split()
_PLACE = {word: place for place, word in enumerate(_WORDS)}
_APOSTROPHE_T = lazy_pattern(r"(\w)(n't)\b")
_TYPED_NOT = lazy_pattern(
    r"\b(is|are|was|were|do|does|did|has|have|had|ca|wo|could|should|would)n'?t\b", re.I
)
_TYPED_SHORT = lazy_pattern(
    r"\b((?:what|that|there|how|where|who|when|s?he|here|let)(?='?s\b)|i(?='?(?:m|ve)\b)|"
    r"(?:you|they)(?='?(?:re|ve|ll)\b))'?",
    re.IGNORECASE,
)
_TOKEN = lazy_pattern(r"n't|'s|'m|'re|'ve|'ll|'d|[a-z]+|\d+|[^\w\s]")
_CAPITAL_WITHIN = lazy_pattern(r"(?<!^)\b[A-Z][a-z]")
_NAME_WITHIN = lazy_pattern(r"(?<=[a-z:;,] )[A-Z]")
_STEM_CHARS = 5


def split_words(text: str) -> list[str]:
    """The words of a text, small, what an apostrophe shortens apart; no marks."""
    plain = _APOSTROPHE_T.sub(r"\1 \2", plain_signs(text).lower())
    return [
        token for token in _TOKEN.findall(plain) if token[0].isalnum() or token[0] == "'" or token == "n't"
    ]


def content_stems(text: str) -> set[str]:
    """The beginnings of the words that are no function words."""
    return {word[:_STEM_CHARS] for word in split_words(text) if word not in _PLACE}


@cache
def describe_wording(text: str) -> tuple[float, ...]:
    """
    Numbers for a linear head, always as many: for each function word whether it occurs; which is the first
    word, and the second (one more place for all other words); twelve of shape, such as whether it ends with a
    question mark.
    """
    words, stripped = split_words(text), text.strip()
    occurs = {_PLACE[word] for word in words if word in _PLACE}
    begins = [_PLACE.get(word, len(_WORDS)) for word in (*words[:2], "", "")[:2]]
    plain = sum(word in _PLACE for word in words)
    content = len(words) - plain
    shape = (
        stripped.endswith("?"),
        stripped.endswith("."),
        stripped.endswith("!"),
        ":" in text,
        "," in text,
        log1p(len(words)),
        any(word.isdigit() for word in words),
        plain / max(1, len(words)),
        len(words) <= 3,
        bool(_CAPITAL_WITHIN.search(stripped)),
        content == 0,
        log1p(content),
    )
    places = [float(n in occurs) for n in range(len(_WORDS))]
    places += [float(n == begin) for begin in begins for n in range(len(_WORDS) + 1)]
    return (*places, *map(float, shape))


_VERBS = read_words("order_verbs.txt")
_AUX, _PERSON, _THINGS, _WH, _LEAD, _BEFORE_WH, _BE, _YES, _NO = (
    read_words("order_words.txt", group)
    for group in ("aux", "person", "things", "wh", "lead", "before_wh", "be", "yes", "no")
)
_LEFT_OUT = [read_words("order_words.txt", group) for group in ("persons", "single", "several", "rest")]
_SUBJECT = _PERSON | _THINGS
_ALIKE, _TIMES = read_words("order_words.txt", "alike"), read_words("marks.txt", "times")
_NAMES, _BEHIND_NAMES = (read_words("order_words.txt", name) for name in ("names", "behind_names"))
_MARKED = lazy_pattern(r"n't|'(?:s|m|re|ve|ll|d)\b|[^\W\d_]+|\d[\d.,:]*|[^\w\s]")
_ASKED_TO = lazy_pattern(r"\b(?:i'?d like you|i want you|i need you|let'?s|how about you|why don'?t you)\b")
_WONDERS = lazy_pattern(
    r"\b(?:i wonder|(?:like|want) to know|tell me|do you know|any idea|no idea|not sure)\b"
)
_SHORT_IS = lazy_pattern(r"\b(who|what|when|where|why|how)'?s\b")
_NEXT_ORDER = lazy_pattern(r"(?:, |\band |\bthen |[.;] )(\w+)")


def leaves_out(text: str) -> bool:
    """Whether a text leaves to others what it is about: by a pronoun, or by naming nothing."""
    words = set(split_words(text))
    return not content_stems(text) or any(words & group for group in _LEFT_OUT[:3])


def describe_antecedents(query: str, said: Sequence[str], near: float) -> tuple[float, ...]:
    """
    Numbers for a head that tells whether earlier turns, a line of *said* each, say what a message leaves out:
    nine of the message (its pronouns, how many words say what it is about), each times nine of what was said
    (names, plurals, two things, its length, the cosine of the nearest).
    """
    words, content = set(split_words(query)), len(content_stems(query))
    left = [bool(words & group) for group in _LEFT_OUT]
    asked = (*left, not any(left), content == 0, content == 1, log1p(content) / 2, True)
    names = sum(len(_NAME_WITHIN.findall(line)) for line in said)
    told = {word for line in said for word in split_words(line)}
    kinds = (not said, bool(said) and not names, names == 1, names > 1)
    several = not told.isdisjoint(("and", "or", "both", "two"))
    plural = any(len(word) > 3 and word.endswith("s") for word in told)
    length = log1p(sum(len(content_stems(line)) for line in said))
    before = (*kinds, several, plural, 3 * near, near > 0.3, length)
    return tuple(3 * float(one) * float(other) for one in asked for other in before)


def split_denials(text: str) -> str:
    """
    Return a text in which denials stand apart from their verbs.

    >>> split_denials("which havent been paid")
    'which have not been paid'
    """
    return _TYPED_NOT.sub(r"\1 not", text)


def word_runs(text: str) -> Iterator[str]:
    """
    All runs of one to three words of a text, and of one to four of their kinds, numbers alike, with its
    beginning and end. A function word is its own kind; other words in a row are one, and marks count.
    """
    plain = _TYPED_SHORT.sub(r"\1 '", _TYPED_NOT.sub(r"\1 n't", plain_signs(text)))  # "dont", "whats"
    words = ["<", *("#" if word.isdigit() else word for word in split_words(plain)), ">"]
    for most, row in ((3, words), (4, _kinds(plain))):
        for size in range(1, most + 1):
            yield from (" ".join(row[at : at + size]) for at in range(len(row) - size + 1))


def _kinds(text: str) -> list[str]:
    kinds = ["<"]
    tokens = _MARKED.findall(text)
    for token, behind in zip(tokens, [*tokens[1:], ""], strict=True):
        kind = _kind(token, kinds[-1], behind.lower())
        if kind and not kind == kinds[-1] == "X":
            kinds.append(kind)
    while kinds[-1] in ",.!":
        kinds.pop()
    return [*kinds, ">"]


def _kind(token: str, before: str, behind: str) -> str:
    """
    Of a word: # number, N name, B verb whose past is alike, P past, V what often orders, D time, X any other,
    with its ending; of a mark itself, dashes being commas.
    """
    word = token.lower()
    if not word[-1].isalpha():
        return "#" if word[0].isdigit() else "," if word[0] in "-–—" else word[0] * (word[0] in ",.:;!?")
    tells = behind in _BEHIND_NAMES or is_past_form(behind) or (behind[-1:] == "s" and behind not in _SUBJECT)
    is_name = before not in "<.!?:" or (word in _NAMES and tells)  # "Will from next door"
    if is_name and len(word) > 1 and token[0].isupper() and token[1].islower():
        return "N"
    known = (("B", _ALIKE), ("P", {word} if is_past_form(word) else ()), (word, _PLACE), ("V", _VERBS))
    kind = next((kind for kind, words in (*known, ("D", _TIMES)) if word in words), "")
    return kind or ("Xing" if word.endswith("ing") else "Xs" if re.search("..s$", word) else "X")


@cache
def describe_order(text: str) -> tuple[float, ...]:
    """
    Zeros and ones for a linear head, always as many, on what stands before what: a verb before its subject, a
    first word that often orders, a question word with or without a verb behind it, who is spoken of first,
    how a yes or no goes on.
    """
    plain = _SHORT_IS.sub(r"\1 is", plain_signs(text).strip().lower())
    words = spoken = split_words(plain)
    while len(words) > 1 and words[0] in _LEAD:
        words = words[1:]
    first, second, *_ = (*words, "", "")
    asks, pairs = plain.endswith("?"), list(pairwise(words))
    inner = pairs[1:]
    orders, later, wh = first in _VERBS, frozenset(words[2:]), first in _WH
    opening, size = (spoken or [""])[0], len(spoken)
    mark = re.match(r"[\w'-]+\s*([,.!])", plain) is not None or size == 1
    yes, no, negative = opening in _YES, opening in _NO, any(word in _NO for word in spoken)
    values = (
        asks,
        first in _AUX and second in _PERSON,
        first in _AUX and second in _SUBJECT,
        first in _AUX and second not in _SUBJECT and not asks,
        first in ("can", "could", "will", "would") and second in ("you", "u"),
        any(a in ("can", "could", "will", "would") and b in ("you", "u") for a, b in pairs),
        first == "may" and second == "i",
        wh and second in _AUX,
        wh and second in _SUBJECT,
        wh and any(a in _AUX and b in _SUBJECT for a, b in inner),
        wh and not any(word in _AUX for word in words[1:4]),
        wh and ":" in plain and not asks,
        first in _BEFORE_WH and second in _WH,
        any(a in _AUX and b in _PERSON for a, b in inner),
        any(a in _WH and b in _AUX | _SUBJECT for a, b in inner),
        first in _PERSON,
        first in ("i", "we"),
        first in _SUBJECT - _PERSON,
        first in ("my", "our"),
        orders,
        orders and not later & _BE,
        orders and second in _SUBJECT | {"me", "us", "him", "them", "all", "everything", "to"},
        orders and any(word in _BE for word in words[1:4]),
        "please" in words,
        "please" in (first, (words or [""])[-1]),
        any(word in _VERBS for word in _NEXT_ORDER.findall(plain)),
        _ASKED_TO.search(plain) is not None,
        _WONDERS.search(plain) is not None,
        first in ("remember", "note", "fyi", "actually", "correction", "thanks", "thank"),
        second in ("is", "are", "was", "has", "had", "'s", "will", "plays", "works", "moved", "comes"),
        first.endswith("ed"),
        ":" in plain,
        size <= 2,
        size <= 4,
        size > 6,
        yes and mark,
        yes and not mark,
        yes and asks,
        yes and not asks and size <= 3,
        no and mark,
        no and asks,
        negative and yes,
        negative and size <= 5,
        negative and not asks,
        re.search(r"\bdo (?:it|so|that|this)\b|\b(?:go|carry) (?:ahead|on|for it)\b", plain) is not None,
        re.search(r"\b(?:that|it)(?:'s| is| would be| works| sounds)\b", plain) is not None,
        re.search(r"\b(?:necessary|needed|need|myself|bother|later|rather|prefer)\b", plain) is not None,
        any(word in _WH | _AUX for word in spoken[1:]),
    )
    return tuple(map(float, values))


_UNDECIDED = re.compile(
    r"\W*(?:(?:hm+|well|um+|ok|okay)\W+)?"
    r"(?:maybe|perhaps|possibly|(?:i(?:'m| am) )?(?:not sure|unsure)|i (?:don't|do not) know|no idea"
    r"|let me think(?: about it)?|i(?:'ll| will) think about it)(?: yet| later)?\W*",
    re.IGNORECASE,
)


def plain_mood(clause: str) -> Mood:
    first, *later = split_words(clause) or [""]
    is_verb = first in _VERBS and _BE.isdisjoint(later[1:])
    return "asks" if is_question(clause) else "orders" if is_verb else "tells"


def is_undecided(query: str) -> bool:
    """
    Return whether a reply says neither yes nor no, and nothing else.

    >>> is_undecided("Hm, maybe."), is_undecided("not sure yet"), is_undecided("maybe the red one")
    (True, True, False)
    """
    return _UNDECIDED.fullmatch(query) is not None


def plain_agreement(query: str) -> Agreement:
    """What a reply says to a question if it begins with a bare yes or no."""
    match = re.match(r"\s*([^\W\d_]+)\s*(?:[,.!;]|$)", query.lower())
    if match is None or query.rstrip().endswith("?"):
        return "neither"
    return "agrees" if match[1] in _YES else "declines" if match[1] in _NO else "neither"
