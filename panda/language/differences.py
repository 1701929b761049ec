"""Which of two amounts a difference between them says to be the larger one."""

import re

from panda.language.patterns import lazy_pattern
from panda.language.words import alternatives

_LESS = lazy_pattern(rf"(?:[ ]\w+)?[ ]{alternatives('difference_words.txt', 'less')}(?!\w)", re.IGNORECASE)
_MORE = lazy_pattern(rf"(?:[ ]\w+)?[ ]{alternatives('difference_words.txt', 'more')}(?!\w)", re.IGNORECASE)


def is_reversed(text: str, end: int, *, falls: bool) -> bool:
    """
    Return whether the words behind a difference say the reverse of two amounts, of which one stands before it
    and one behind.

    Args:
        end: Index behind the difference.
        falls: Whether the amount before it is the larger one.

    >>> is_reversed("$9, which is $2 less than $7", len("$9, which is $2"), falls=True)
    True
    """
    says_opposite = _LESS if falls else _MORE
    return says_opposite.match(text, end) is not None
