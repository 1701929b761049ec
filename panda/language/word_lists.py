"""The word lists in the files beside this one, the one reader of all of them."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def read_groups(file: str) -> Mapping[str, str]:
    """
    What stands behind each name of a file of groups, in order.

    Args:
        file: A file of this folder. A group is `name: words`, and goes on in lines that begin with a blank;
            lines that begin with # are comments.

    >>> read_groups("currencies.txt")["CHF"]
    'CHF Fr. francs'
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
    The words of a file, or of one of its groups; "_" stands for a blank within words that go together.

    >>> "drop off" in read_words("item_words.txt", "drop_with"), "told" in read_words("irregular_pasts.txt")
    (False, True)
    """
    text = _read(file) if group is None else read_groups(file)[group]
    return frozenset(word.replace("_", " ") for word in text.split())


@cache
def alternatives(file: str, group: str) -> str:
    """
    The words of a group as alternatives of a regular expression; "*" stands for any ending.

    >>> alternatives("conversation_words.txt", "lately")
    '(?:already|also|just|now)'
    """
    words = sorted(read_words(file, group), key=lambda word: (-len(word), word))
    return "(?:" + "|".join(word.replace("*", r"\w*") for word in words) + ")"


def _read(file: str) -> str:
    return files("panda.language").joinpath(file).read_text(encoding="utf-8")
