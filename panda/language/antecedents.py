"""Pronouns that stand for something that their own query has named before them. Pure."""

import re
from collections.abc import Collection

from panda.language.lexicon import FUNCTION_WORDS
from panda.language.stemming import stem

_INTRODUCED = re.compile(
    r"\b(?:which|what|whose|the|a|an|my|our|your|his|her|any|some|every|this|that)\s+"
    r"(?!(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|one|ones|first|second|third|last|other|"
    r"same|it|they|i|you|we)\b)[a-z][\w-]+",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,;] )(?!I\b)[A-Z][\w-]+")
_SINGULAR = re.compile(r"\b(?:it|its|he|him|his|she|her)\b", re.IGNORECASE)
_JOINT = re.compile(r"^[\s,;:]*(?:(?:and|but|or|so)\b\s*)?", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:]|\b(?:and|but|or|so|because|if|when|while)\b", re.IGNORECASE)
_REFERENCES = re.compile(
    r"\b(?:it|its|they|them|their|this one|that one|these|those|this [a-z]+|that (?P<noun>[a-z]+)|"
    r"the (?:first|second|third|last|other|cheaper|same) one|one of them)\b",
    re.IGNORECASE,
)


def words_reaching_back(query: str, known: Collection[str]) -> list[str]:
    """
    Words that refer to something earlier, but not what the query itself has named before them.

    Args:
        query: The user's words.
        known: Stems of the words that were said lately.

    >>> words_reaching_back("Is it light?", ()), words_reaching_back("the best tent that money can buy", ())
    (['it'], [])
    """
    found = []
    for match in _REFERENCES.finditer(query):
        before = query[: match.start()]
        is_known = match["noun"] is None or stem(match["noun"].lower()) in known
        if not has_antecedent(before) and (is_known or not _ends_in_thing(before)):
            found.append(match[0])
    return found


def _ends_in_thing(before: str) -> bool:
    """Whether a "that" behind these words can tell which one is meant, as in "the best laptop that …"."""
    last = re.search(r"([\w'’-]+)\s*$", before)
    return last is not None and last[1].lower() not in FUNCTION_WORDS


def has_antecedent(before: str) -> bool:
    """
    Whether a pronoun behind these words most likely stands for something that they name.

    Args:
        before: The query up to the pronoun.

    Returns:
        True if an earlier clause of the same query names a thing and a new clause has begun since.

    >>> has_antecedent("Which laptop was the top pick, and is ")
    True
    >>> has_antecedent("And how much does the Lenovo cost, or is ")
    True
    >>> has_antecedent("How much is "), has_antecedent("And is "), has_antecedent("Does the shop have ")
    (False, False, False)
    """
    return bool(_split(before)[0])


def parts_about_one_thing(query: str) -> tuple[str, str] | None:
    """
    A query that says which one thing it is about and goes on to ask about "it", in these two parts.

    >>> parts_about_one_thing("Which laptop was the top pick, and is it in stock?")
    ('Which laptop was the top pick', 'is it in stock?')
    >>> parts_about_one_thing("Which laptops are new, and are they in stock?") is None
    True
    >>> parts_about_one_thing("Is it in stock, and what does it cost?") is None
    True
    """
    for pronoun in _SINGULAR.finditer(query):
        introducing, start = _split(query[: pronoun.start()])
        if introducing:
            return introducing, _JOINT.sub("", query[start:])
    return None


def _split(before: str) -> tuple[str, int]:
    """The clauses before the last one, "" unless they name a thing; and where the last one starts."""
    start = max((match.start() for match in _CLAUSE.finditer(before)), default=0)
    named = _INTRODUCED.search(before[:start]) or _NAME.search(before[:start])
    return (before[:start].rstrip(" ,;:") if named else ""), start
