"""Whether a pronoun stands for something that its own sentence has named before it. Pure."""

import re

_INTRODUCED = re.compile(
    r"\b(?:which|what|whose|the|a|an|my|our|your|his|her|any|some|every|this|that)\s+"
    r"(?!(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|one|ones|first|second|third|last|other|"
    r"same|it|they|i|you|we)\b)[a-z][\w-]+",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,;] )(?!I\b)[A-Z][\w-]+")
_CLAUSE = re.compile(r"[,;:]|\b(?:and|but|or|so|because|if|when|while)\b", re.IGNORECASE)


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
    clauses = [match.start() for match in _CLAUSE.finditer(before)]
    if not clauses:
        return False
    earlier = before[: clauses[-1]]
    return bool(_INTRODUCED.search(earlier) or _NAME.search(earlier))
