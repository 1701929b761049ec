"""Whether a text is English, as far as its words tell."""

import re

from panda.language.lexicon import FUNCTION_WORDS, is_ordinary

_WORD = re.compile(r"(?<![\w'’-])[^\W\d_]{2,}(?!\w)")
_LEAST = 0.9
"""English texts measured 1.0 and more, others .86 and less: function words count twice."""


def is_english(text: str) -> bool:
    """
    Whether most words that no name could be are English; a text without any is, if its letters are Latin.

    >>> is_english("How much is the tent?"), is_english("RTX 4060"), is_english("dosage of metformin")
    (True, True, True)
    >>> is_english("Wie viel kostet das Zelt?"), is_english("帐篷多少钱")
    (False, False)
    """
    words = _WORD.findall(text)
    small = [word for word in words if word[0].islower()]
    if not small:
        return all(word.isascii() for word in words)
    value = sum((word in FUNCTION_WORDS) + is_ordinary(word) for word in small)
    return value >= _LEAST * len(small)
