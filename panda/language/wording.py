"""How a message is worded, as numbers: its function words, how it begins, and its outward shape."""

import re
from functools import cache
from importlib.resources import files
from math import log1p

from panda.language.text_front import plain_signs

_WORDS = files("panda.language").joinpath("function_words.txt").read_text(encoding="utf-8").split()
_PLACE = {word: place for place, word in enumerate(_WORDS)}
_APOSTROPHE_T = re.compile(r"(\w)(n't)\b")
_TOKEN = re.compile(r"n't|'s|'m|'re|'ve|'ll|'d|[a-z]+|\d+|[^\w\s]")
_CAPITAL_WITHIN = re.compile(r"(?<!^)\b[A-Z][a-z]")
_STEM_CHARS = 5


def split_words(text: str) -> list[str]:
    """
    The words of an English text in lower case, contractions apart.

    >>> split_words("Isn't it Tom's 2nd?")
    ['is', "n't", 'it', 'tom', "'s", '2', 'nd']
    """
    plain = _APOSTROPHE_T.sub(r"\1 \2", plain_signs(text).lower())
    return [
        token for token in _TOKEN.findall(plain) if token[0].isalnum() or token[0] == "'" or token == "n't"
    ]


def content_stems(text: str) -> set[str]:
    """
    What the text is about: the beginnings of its words that are no function words.

    >>> sorted(content_stems("What do the gardens cost?"))
    ['cost', 'garde']
    """
    return {word[:_STEM_CHARS] for word in split_words(text) if word not in _PLACE}


def leave_shared(query: str, text: str) -> tuple[str, str]:
    """
    What each of two texts says beyond the content words that both have.

    Args:
        query: What is asked; if all that it is about stands in the text, both stay whole.
        text: What may answer it; stays whole if it says nothing else.

    >>> leave_shared("How heavy is the Merle?", "Dinghy Merle: hull weight 62 kg")
    ('How heavy is the', 'Dinghy hull weight 62 kg')
    >>> leave_shared("What about the Merle?", "The Merle is a boat")
    ('What about the Merle?', 'The Merle is a boat')
    """
    shared = content_stems(query) & content_stems(text)
    rest, other = (
        " ".join(word for word in one.split() if not (own := content_stems(word)) or own - shared)
        for one in (query, text)
    )
    return (rest, other or text) if content_stems(rest) else (query, text)


@cache
def describe_wording(text: str) -> tuple[float, ...]:
    """
    Numbers for a linear head, the same count for every text.

    Args:
        text: A message.

    Returns:
        For each function word whether it occurs; which of them is the first word, and the second (one more
        place for all other words); twelve values of shape, such as whether it ends with a question mark.
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
