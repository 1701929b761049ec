"""What a text lists, in its order: numbered and bulleted items, headings, table rows, enumerations. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from panda.documents.sentences import one_line, shorten, split_sentences

_ITEM = re.compile(r"^(?P<indent>\s*)(?P<mark>\(?(?:\d{1,3}|[A-Za-z])[.)]|[-*+•])\s+(?P<text>.+)$")
_ROW = re.compile(r"^\s*\|(?P<cells>.+)\|\s*$")
_RULE = re.compile(r"^[\s|:-]+$")
_HEADING = re.compile(r"^(?P<level>#{2,6})\s+(?:\(?(?:\d{1,3}|[A-Za-z])[.):]\s+)?(?P<text>.+?)\s*#*$")
_CITATION = re.compile(r"\s*\[\d{1,3}\]")
_HEAD = re.compile(
    r"\s+[–—-]\s+|:\s+|;\s+|\s*\(|,\s+|\.\s+|\s+(?:is|are|was|costs?|has)\s|\s+(?:at|for|@)\s+(?=[$€£\d])|"
    r"\s+with\s+(?=an?\s|the\s|\d|[A-Z]{2})"
)
_NAME = (
    r"(?:[Tt]he |[Aa]n? )?(?:[A-Z][\w'’+-]*|\d\w*)(?: (?:[A-Z0-9][\w'’+-]*|of|de|la))*(?: \([^()]{1,60}\))?"
)
_NAMES = re.compile(rf"(?<!\w){_NAME}(?:, {_NAME})*,? (?:and|or) {_NAME}")
_SPLIT = re.compile(r",?\s+(?:and|or)\s+|,\s+")
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
_NAMED = re.compile(rf"(?:{_NAME}|[A-Z0-9][^.!?]*)")
_ONE_THING = re.compile(
    rf"{_NAME}(?: (?i:is|was|has|comes|features|offers|costs|includes|ships)\b.*)?|"
    r"(?i:it|this|that|which|the \w+) (?:is|has|comes|features|offers|costs|includes|ships)\b.*"
)
_OWNS = re.compile(r"\b(?:has|with|features|offers|supports|includes)(?: an?| the)? *$", re.IGNORECASE)
_MEASURE = re.compile(
    r"^[~<>≤≥]?[$€£]\s?\d|^[~<>≤≥]?\d[\d.,]*[ -]?(?:[gtmk]b|[gmk]?hz|kg|g|lbs?|[cmk]?m|inch(?:es)?|in|w|wh|v|"
    r"mah|%|hours?|minutes?|min|h|nits?|fps|px|mp|ml|l|usd|eur|cores?|threads?|years?|x)(?![a-z])",
    re.IGNORECASE,
)
_TRAIT = re.compile(
    r"(?:(?:(?-i:[a-z])[\w-]* )+)?(?:price|cost|weight|display|screen|panel|[gc]pu|processor|graphics|memory|"
    r"ram|storage|ssd|hdd|battery|keyboard|camera|webcam|bezels?|availability|stock|rating|warranty|shipping|"
    r"delivery|size|colou?r|resolution|ports?|url|link|address|calories)(?: (?:life|size|rate|time|type))?|"
    r"in stock\b.*",
    re.IGNORECASE,
)
_LABEL_CHARS = 100
_MOST_WORDS = 8


@dataclass(frozen=True)
class ListedItem:
    """One thing that a text lists."""

    label: str
    """Its name, as far as the text sets it apart."""
    text: str
    """The whole item, one line."""


def listed_items(text: str, statements: Sequence[str] = ()) -> list[ListedItem]:
    """
    The things that a reply lists.

    Args:
        text: The reply, in Markdown.
        statements: Its statements, if they are known one by one; they count as a list if it has none.

    Returns:
        At least two items with different labels, in order; else [].

    >>> [item.label for item in listed_items("I found:\\n1. **LOQ 15** - $697\\n2. Victus 15: $749")]
    ['LOQ 15', 'Victus 15']
    >>> [item.label for item in listed_items("We saw the Lenovo LOQ 15, the HP Victus and the Acer Nitro.")]
    ['Lenovo LOQ 15', 'HP Victus', 'Acer Nitro']
    >>> listed_items("It costs $697.")
    []
    """
    lines = _CITATION.sub("", text).split("\n")
    told = statements if all(_names_thing(one) for one in statements) else []
    numbered = [items for is_numbered, items in _marked(lines) if is_numbered]
    bulleted = [items for is_numbered, items in _marked(lines) if not is_numbered]
    lists: list[tuple[Sequence[str], float]] = [(one, 1.0) for one in numbered]
    lists += [(one, 0.5) for one in (*bulleted, _headed(lines), *_tables(lines))]
    lists += [(one, 0.0) for one in (told, *_enumerations(lines))]
    for found, most_traits in lists:
        items = {label_of(one).lower(): ListedItem(label_of(one), one) for one in reversed(found)}
        traits = sum(_is_trait(item.label) for item in items.values())
        if len(items) > 1 and traits <= most_traits * len(items):
            return list(reversed(items.values()))
    return []


def _names_thing(statement: str) -> bool:
    """Whether a statement begins with a name, or is one."""
    label = label_of(statement)
    is_short = len(label.split()) <= _MOST_WORDS
    return (
        bool(_NAMED.fullmatch(label)) and is_short and (label != statement.rstrip(".") or label == statement)
    )


def _is_trait(label: str) -> bool:
    """Whether a label is a trait of a thing, as "16GB DDR5" or "thin bezels", and no thing."""
    return bool(_MEASURE.match(label) or _TRAIT.fullmatch(label))


def label_of(text: str) -> str:
    """
    The name at the head of an item.

    >>> label_of("**Lenovo LOQ 15**: price $697.00"), label_of("the HP Victus (15 inch)")
    ('Lenovo LOQ 15', 'HP Victus')
    """
    plain = one_line(re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", text))
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", plain)
    head = _HEAD.split(plain, maxsplit=1)[0].strip(" .!?\"'“”") or plain
    head = _ARTICLE.sub("", head)
    return shorten(head, _LABEL_CHARS)


def _marked(lines: Sequence[str]) -> list[tuple[bool, list[str]]]:
    """Each list, whether it is numbered, and its items, longest first; deeper levels belong to it."""
    lists: list[tuple[bool, list[str]]] = []
    indent: int | None = None
    for line in lines:
        match = _ITEM.match(line)
        if match is None:
            if line.strip() and not line.startswith((" ", "\t")):
                indent = None
            continue
        numbered, deep = match["mark"][-1] in ".)", len(match["indent"])
        if indent is None or (numbered != lists[-1][0] and deep <= indent):
            lists.append((numbered, []))
            indent = deep
        if deep <= indent:
            lists[-1][1].append(one_line(match["text"]))
    return sorted(lists, key=lambda one: len(one[1]), reverse=True)


def _headed(lines: Sequence[str]) -> list[str]:
    """What the headings of the deepest level name."""
    found = [match for line in lines if (match := _HEADING.match(line))]
    deepest = max((len(match["level"]) for match in found), default=0)
    return [match["text"] for match in found if len(match["level"]) == deepest]


def _tables(lines: Sequence[str]) -> list[list[str]]:
    """The rows of a table, or its columns where the rows are traits of what heads the columns."""
    cells = [match["cells"] for line in lines if (match := _ROW.match(line)) and not _RULE.match(line)]
    table = [[part.strip() for part in row.split("|")] for row in cells]
    rows = [": ".join(filter(None, (row[0], " | ".join(row[1:])))) for row in table[1:]]
    columns = [
        ": ".join((head, *(row[at] for row in table[1:] if at < len(row))))
        for at, head in enumerate(table[0] if table else ())
        if at and head
    ]
    return [rows, columns]


def _enumerations(lines: Sequence[str]) -> list[list[str]]:
    """
    What sentences enumerate: after a colon, or names one after the other; the longest first.

    What is said of one thing is no list of things, as in "The LOQ 15 is the top pick: RTX 4050, thin bezels".
    """
    found: list[list[str]] = []
    for sentence in (one for line in lines for one in split_sentences(line)):
        head, _, tail = sentence.partition(": ")
        if _describes(head):
            sentence, tail = head, ""
        tail = re.sub(r"\([^)]*\)", "", tail.rstrip(" .!?"))
        match = _NAMES.match(tail)
        parts = _SPLIT.split(tail) if tail and (match is None or match.end() == len(tail)) else []
        if len(parts) > 1 and all(0 < len(part.split()) <= _MOST_WORDS for part in parts):
            found.append(parts)
        found += [
            _SPLIT.split(match.group())
            for match in _NAMES.finditer(sentence)
            if not _OWNS.search(sentence[: match.start()])
        ]
    return sorted(found, key=len, reverse=True)


def _describes(head: str) -> bool:
    """Whether what stands before a colon speaks of one thing by its name."""
    return bool(_ONE_THING.fullmatch(head)) and (len(head.split()) > 1 or any(c.isdigit() for c in head))
