"""What a query or sentence asks for. Pure."""

import re

_ASKING = re.compile(
    r"^(?:who|what|when|where|why|which|whose|how|is|are|was|were|do|does|did|can|could|will|would|should|shall|may|"
    r"am|have|has|what's|who's|where's|tell me|show me|find|search|look)\b",
    re.IGNORECASE,
)


_NAMED_TURN = re.compile(r"\bturn\s+#?(\d{1,9})\b", re.IGNORECASE)


def named_turns(query: str) -> list[int]:
    """
    The turns that a query names by number, in order.

    >>> named_turns("What did we say in turn 809, and in Turn #7?")
    [809, 7]
    """
    return [int(number) for number in dict.fromkeys(_NAMED_TURN.findall(query))]


def is_question(sentence: str) -> bool:
    """
    Whether a sentence asks for something and so states nothing.

    >>> is_question("what is my budget"), is_question("My budget is $800."), is_question("Really?")
    (True, False, True)
    """
    text = sentence.strip()
    return text.endswith("?") or _ASKING.match(text) is not None
