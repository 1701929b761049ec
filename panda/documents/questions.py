"""Whether a sentence asks. Pure."""

import re

_ASKING = re.compile(
    r"^(?:who|what|when|where|why|which|whose|how|is|are|was|were|do|does|did|can|could|will|would|should|shall|may|"
    r"am|have|has|what's|who's|where's|tell me|show me|find|search|look)\b",
    re.IGNORECASE,
)


def is_question(sentence: str) -> bool:
    """
    Whether a sentence asks for something and so states nothing.

    >>> is_question("what is my budget"), is_question("My budget is $800."), is_question("Really?")
    (True, False, True)
    """
    text = sentence.strip()
    return text.endswith("?") or _ASKING.match(text) is not None
