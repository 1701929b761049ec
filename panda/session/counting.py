"""Which items of a list "the second one", "the last two" or "number 3" count. Pure."""

import re
from collections.abc import Callable, Sequence

_ORDINALS = [
    *("first", "second", "third", "fourth", "fifth", "sixth"),
    *("seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"),
]
_ORDINAL = (
    rf"(?:second[ -](?:to[ -])?last|next[ -]to[ -]last|last but one|penultimate|{'|'.join(_ORDINALS)}|"
    rf"\d{{1,2}}(?:st|nd|rd|th)|"
    r"last|final|(?:middle|top|bottom)(?= one| option| item| of|[?.!,;]|$))"
)
_NOT_ITEMS = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|\d+|couple|several|"
    r"time|times|day|days|week|weeks|month|months|year|years|hour|hours|minute|minutes|night|turn|turns|"
    r"question|"
    r"message|answer|half|floor|season|chapter|thing|step|steps|part|world|minute|century|few|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|of)\b"
)
_FUNCTION_WORDS = (
    r"(?:is|are|was|were|be|has|have|had|do|does|did|can|could|will|would|should|may|might|and|or|but|not|"
    r"too|also|"
    r"please|in|on|at|of|for|to|from|with|without|by|as|than|cost|costs|look|looks|go|goes|get|gets|work|"
    r"works)\b"
)
COUNTING = re.compile(
    r"\b(?:the )?(?P<edge>first|last|top|bottom) (?P<many>two|three|four|five|[2-5])(?: (?:ones|of them|"
    r"options|items))?"
    rf"(?! {_NOT_ITEMS})\b|"
    rf"\b(?:the|that|this|my|your) (?P<list>{_ORDINAL}(?:(?:, | and | or |, and )(?:the )?{_ORDINAL})*)"
    rf"(?P<noun> (?!{_NOT_ITEMS}|{_FUNCTION_WORDS}|{_ORDINAL})[a-z][\w-]*)?(?! {_NOT_ITEMS})(?!\w)|"
    r"\b(?:the )?(?:number|no\.|option|item|choice|entry|result|#) ?"
    r"(?P<number>\d{1,2}|one|two|three|four|five|six|seven|eight|nine|ten|[a-f]\b)(?![\d%$.]*\d|\w)|"
    r"(?<!\w)#(?P<hash>\d{1,2})\b|"
    r"\bthe (?P<pair>former|latter)(?: one)?\b|"
    r"\b(?P<both>both(?: of (?:them|these|those))?|all (?:two|three|four|five) of (?:them|these|those))\b",
    re.IGNORECASE,
)
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_FOREIGN = re.compile(r" [A-Z][a-z]")
_OF_ITS_OWN = re.compile(
    r" (?P<noun>[a-z][\w-]*) (?:of (?!(?:them|these|those|the|that|your|my)\b)|"
    r"(?:to|from|in|on|at|for|by|with) (?!(?:the|that|your|this) list\b))",
    re.IGNORECASE,
)


def is_function_word(word: str) -> bool:
    """
    Whether a word is no name of a thing.

    >>> is_function_word("has"), is_function_word("laptop")
    (True, False)
    """
    return re.fullmatch(_FUNCTION_WORDS, word.strip(), re.IGNORECASE) is not None


def counted_items(
    match: re.Match[str], refs: Sequence[str], is_thing: Callable[[str], bool]
) -> tuple[tuple[str, ...], int] | None:
    """
    The items that words count.

    Args:
        match: Of COUNTING.
        refs: The list, in its order.
        is_thing: Whether a noun is one that the conversation has for its things.

    Returns:
        The items, () if the list is too short, and where the words end; None if they count no items of a
        list, as in "the second World War" and "the first law of motion".
    """
    noun = match["noun"] or ""
    if match["list"]:
        own = _OF_ITS_OWN.match(match.string, match.end("list"))
        foreign = own is not None and not is_function_word(own["noun"]) and not is_thing(own["noun"])
        if foreign or _FOREIGN.match(match.string, match.end()):
            return None
    return _counted(match, refs), match.end() - (0 if is_thing(noun) else len(noun))


def _counted(match: re.Match[str], refs: Sequence[str]) -> tuple[str, ...]:
    """The items; none if the list is too short."""
    if match["both"]:
        wanted = {"both": 2, "two": 2, "three": 3, "four": 4, "five": 5}
        size = next(count for word, count in wanted.items() if word in match["both"].lower())
        return tuple(refs) if len(refs) == size else ()
    if match["many"]:
        many = match["many"].lower()
        size = int(many) if many.isdigit() else _NUMBERS.index(many) + 1
        taken = refs[:size] if match["edge"].lower() in ("first", "top") else refs[-size:]
        return tuple(taken) if len(refs) >= size else ()
    if match["pair"]:
        return (refs[0 if match["pair"].lower() == "former" else 1],) if len(refs) == 2 else ()
    number = match["number"] or match["hash"]
    if number:
        at = int(number) if number.isdigit() else _position(number.lower())
        return (refs[at - 1],) if 0 < at <= len(refs) else ()
    found = [_index(word, len(refs)) for word in re.findall(_ORDINAL, match["list"], re.IGNORECASE)]
    return tuple(refs[at] for at in found if at is not None) if None not in found else ()


def _position(word: str) -> int:
    return _NUMBERS.index(word) + 1 if word in _NUMBERS else ord(word) - ord("a") + 1


def _index(word: str, size: int) -> int | None:
    word = re.sub(r"[ -]", " ", word.lower())
    if word in ("last", "final", "bottom"):
        at = size - 1
    elif word == "top":
        at = 0
    elif word == "middle":
        at = size // 2 if size % 2 else -1
    elif word in ("penultimate", "second to last", "second last", "next to last", "last but one"):
        at = size - 2
    else:
        at = _ORDINALS.index(word) if word in _ORDINALS else int(word[:-2]) - 1
    return at if 0 <= at < size else None
