"""What a query or sentence asks for. Pure."""

import re

_ASKING = re.compile(
    r"^(?:who|what|when|where|why|which|whose|how|is|are|was|were|do|does|did|can|could|will|would|should|"
    r"shall|may|"
    r"am|have|has|what's|who's|where's|tell me|show me|find|search|look)\b",
    re.IGNORECASE,
)

_COMMAND = re.compile(
    r"^(?:please,?\s+|now,?\s+|then,?\s+)*(?:run|test|rename|edit|change|fix|add|remove|delete|create|"
    r"write|read|"
    r"show|list|open|search|find|grep|replace|refactor|move|insert|update|implement|check|"
    r"print)\s+(?P<what>.+)",
    re.IGNORECASE | re.DOTALL,
)
_CHANGE = re.compile(
    r"(?:^|[.;,]\s+|\b(?:and|then|please|you)\s+)(?:rename|edit|change|fix|add|remove|delete|create|write|replace|"
    r"refactor|move|insert|update|implement)\s+\S",
    re.IGNORECASE,
)
_NAMELESS = re.compile(
    r"^(?:it|that|this|them|those|these|one|(?:the|some|another|other) (?:thing|other|one)s?)?[\s.!]*$",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"\b(?:which|what)(?: [\w'-]+){0,3}? (?:[\w-]+[^su\W]s|people|men|women|children)\b(?! ?'s)(?: "
    r"[\w'-]+){0,4}? "
    r"(?:are there|were there|(?:do|did|does|can|could|should|would|might|have|has|had) "
    r"(?:I|we|you|they|he|she|it|the|my|our|[a-z]+s|[A-Z]\w+)\b)|"
    r"\b(?:what|which) (?:are|were) (?:the|my|our|your|all)\b|"
    r"\b(?:list|name|show|give|tell)(?: me| us)? (?:all|every|the|my|our)(?: [\w'-]+){0,3}? (?:[\w-]+s|of "
    r"them)\b",
    re.IGNORECASE,
)
_NAMED_TURN = re.compile(r"\bturn\s+#?(\d{1,9})\b", re.IGNORECASE)
_PAGE = re.compile(
    r"(?:\b(?:the|that|this) (?:web)?(?:page|site) )?\bhttps?://[^\s<>\"`|]*[^\s<>\"`|.,;:!?)\]'’”]",
    re.IGNORECASE,
)


def named_turns(query: str) -> list[int]:
    """
    The turns that a query names by number, in order.

    >>> named_turns("What did we say in turn 809, and in Turn #7?")
    [809, 7]
    """
    return [int(number) for number in dict.fromkeys(_NAMED_TURN.findall(query))]


def asks_for_several(query: str) -> bool:
    """
    Whether a query asks for all there are of a kind, not for one or for what sets some of them apart.

    >>> [asks_for_several(q) for q in ("Which hotels did friends recommend?", "Which passes are there?")]
    [True, True]
    >>> [asks_for_several(q) for q in ("Which hotel has a pool?", "What does it cost?", "Which bus is it?")]
    [False, False, False]
    """
    return _SEVERAL.search(query) is not None


def with_pages_named(query: str) -> str:
    """
    A query with a plain name for every web address, whose letters would outweigh what is asked.

    >>> with_pages_named("What does http://a.example/x.html?y=1 say about tea?")
    'What does the page say about tea?'
    """
    return _PAGE.sub("the page", query)


def is_question(sentence: str) -> bool:
    """
    Whether a sentence asks for something and so states nothing.

    >>> is_question("what is my budget"), is_question("My budget is $800."), is_question("Really?")
    (True, False, True)
    """
    text = sentence.strip()
    return text.endswith("?") or _ASKING.match(text) is not None


def is_command(query: str) -> bool:
    """
    Whether a query tells what to do with something that it names.

    >>> is_command("Run the tests."), is_command("please rename add_one to plus_one"), is_command("Fix it.")
    (True, True, False)
    """
    match = _COMMAND.match(query.strip())
    return match is not None and not _NAMELESS.match(match["what"].strip())


def orders_change(query: str) -> bool:
    """
    Whether a query tells to change something.

    >>> orders_change("Run the tests, then rename it to total."), orders_change("What did the edit change?")
    (True, False)
    """
    return _CHANGE.search(query.strip()) is not None
