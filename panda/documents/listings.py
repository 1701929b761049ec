"""What a text lists, in its order: numbered and bulleted items, table rows, enumerations. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from panda.documents.sentences import one_line, split_sentences

_ITEM = re.compile(r"^(?P<indent>\s*)(?P<mark>\d{1,3}[.)]|[-*+•])\s+(?P<text>.+)$")
_ROW = re.compile(r"^\s*\|(?P<cells>.+)\|\s*$")
_RULE = re.compile(r"^[\s|:-]+$")
_CITATION = re.compile(r"\s*\[\d{1,3}\]")
_HEAD = re.compile(
    r"\s+[–—-]\s+|:\s+|;\s+|\s*\(|,\s+|\.\s+|\s+(?:is|are|was|costs?|has)\s|\s+(?:at|for|@)\s+(?=[$€£\d])|"
    r"\s+with\s+(?=an?\s|the\s|\d|[A-Z]{2})"
)
_NAME = r"(?:[Tt]he |[Aa]n? )?(?:[A-Z][\w'’+-]*|\d+)(?: (?:[A-Z0-9][\w'’+-]*|of|de|la))*(?: \([^()]{1,60}\))?"
_NAMES = re.compile(rf"{_NAME}(?:, {_NAME})*,? (?:and|or) {_NAME}")
_SPLIT = re.compile(r",?\s+(?:and|or)\s+|,\s+")
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
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
    for found in (_marked(lines), _rows(lines), list(statements), *_enumerations(lines)):
        items = {label_of(one).lower(): ListedItem(label_of(one), one) for one in reversed(found)}
        if len(items) > 1:
            return list(reversed(items.values()))
    return []


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
    return head if len(head) <= _LABEL_CHARS else head[: _LABEL_CHARS - 2].rstrip() + " …"


def _marked(lines: Sequence[str]) -> list[str]:
    """The items of the longest list, numbered ones first; a deeper level belongs to its item."""
    lists: list[tuple[bool, list[str]]] = []
    indent: int | None = None
    for line in lines:
        match = _ITEM.match(line)
        if match is None:
            if line.strip() and not line.startswith((" ", "\t")):
                indent = None
            continue
        numbered, deep = match["mark"][0].isdigit(), len(match["indent"])
        if indent is None or (numbered != lists[-1][0] and deep <= indent):
            lists.append((numbered, []))
            indent = deep
        if deep <= indent:
            lists[-1][1].append(one_line(match["text"]))
    return max(lists, key=lambda one: (one[0] and len(one[1]) > 1, len(one[1])), default=(False, []))[1]


def _rows(lines: Sequence[str]) -> list[str]:
    cells = [match["cells"] for line in lines if (match := _ROW.match(line)) and not _RULE.match(line)]
    return [": ".join(filter(None, (part.strip() for part in row.split("|", 1)))) for row in cells[1:]]


def _enumerations(lines: Sequence[str]) -> list[list[str]]:
    """What sentences enumerate: after a colon, or names one after the other; the longest first."""
    found: list[list[str]] = []
    for sentence in (one for line in lines for one in split_sentences(line)):
        tail = sentence.partition(": ")[2].rstrip(" .!?")
        parts = _SPLIT.split(re.sub(r"\([^)]*\)", "", tail)) if tail else []
        if len(parts) > 1 and all(0 < len(part.split()) <= _MOST_WORDS for part in parts):
            found.append(parts)
        found += [_SPLIT.split(match.group()) for match in _NAMES.finditer(sentence)]
    return sorted(found, key=len, reverse=True)
