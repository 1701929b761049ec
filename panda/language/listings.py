"""What a text lists, in its order: numbered and bulleted items, headings, table rows, enumerations. Pure."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from panda.language.names import find_names
from panda.language.sentences import split_sentences
from panda.language.text_front import MESSAGE_CHARS
from panda.language.words import alternatives, split_terms

_one_of = partial(alternatives, "listing_words.txt")
_ITEM = re.compile(r"^(?P<indent>\s*)(?P<mark>\(?(?:\d{1,3}|[A-Za-z])[.)]|[-*+•])\s+(?P<text>.+)$")
_ROW = re.compile(r"^\s*\|(?P<cells>.+)\|\s*$")
_RULE = re.compile(r"^[\s|:-]+$")
_HEADING = re.compile(r"^(?P<level>#{2,6})\s+(?:\(?(?:\d{1,3}|[A-Za-z])[.):]\s+)?(?P<text>.+?)\s*#*$")
_TITLE = re.compile(r"[\"“«„](?P<title>[^\"”»“]{2,})[\"”»“]")
_CITATION = re.compile(r"\s*\[\d{1,3}\]")
_HEAD = re.compile(
    r"\s+[–—-]\s+|:\s+|;\s+|\s*\(|,\s+|(?<!\b[DM]r)(?<!\bSt)(?<!\bM[rs]s)(?<!\bProf)\.\s+|\s+(?:is|are|was|"
    r"costs?|has)\s|\s+(?:at|for|@)\s+(?=[$€£\d])|"
    r"\s+with\s+(?=an?\s|the\s|\d|[A-Z]{2})"
)
_NAME = (
    r"(?:[Tt]he |[Aa]n? )?(?:[A-Z][\w'’+-]*|\d\w*)(?: (?:[A-Z0-9][\w'’+-]*|of|de|la))*(?: \([^()]{1,60}\))?"
)
_NAMES = re.compile(rf"(?<!\w){_NAME}(?:, {_NAME})*,? (?:and|or) {_NAME}")
_SPLIT = re.compile(r",?\s+(?:and|or)\s+|,\s+")
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
_NAMED = re.compile(rf"(?:{_NAME}|[A-Z0-9][^.!?]*)")
_SUBJECT = re.compile(
    rf"(?!{_one_of('no_subject')}\b)"
    r"(?:The )?(?:(?:Dr|Mr|Mrs|Ms|Prof|St)\. )?[A-Z][\w'’&-]*(?: (?:[A-Z0-9][\w'’&-]*|of|de|&))*(?= [a-z])"
)
_ONE_THING = re.compile(
    rf"{_NAME}(?: (?i:was|{_one_of('describes')})\b.*)?|"
    rf"(?i:it|this|that|which|the \w+) {_one_of('describes')}\b.*"
)
_OWNS = re.compile(r"\b(?:has|with|features|offers|supports|includes)(?: an?| the)? *$", re.IGNORECASE)
_MEASURE = re.compile(
    r"^[~<>≤≥]?[$€£]\s?\d|^[~<>≤≥]?\d[\d.,]*[ -]?(?:[gtmk]b|[gmk]?hz|kg|g|lbs?|[cmk]?m|inch(?:es)?|in|w|wh|v|"
    r"mah|%|hours?|minutes?|min|h|nits?|fps|px|mp|ml|l|usd|eur|cores?|threads?|years?|x)(?![a-z])",
    re.IGNORECASE,
)
_TRAIT = re.compile(
    rf"(?:(?:(?-i:[a-z])[\w-]* )+)?{_one_of('traits')}(?: (?:life|size|rate|time|type))?|in stock\b.*",
    re.IGNORECASE,
)
_OFFERS = re.compile(
    r"\b(?:we|you|I|they|there|options|choices|ideas|alternatives)(?:[’'](?:d|ll|ve))?(?: [a-z]+){0,2}? "
    rf"{_one_of('offers')}(?: (?:between|from|either))? (?=[a-z])|"
    r"\b(?:offers?|sells?|serves?|teach(?:es)?|stocks?) (?=[a-z])",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r"(?<=[.!?;])\s+|\n+|,\s+(?:and|but|while|whereas)\s+|,\s+(?=(?-i:the)\s)")
_LABEL_CHARS = 100
_MOST_CHARS = 10_000  # of a reply; what it lists behind them is not offered
_MOST_WORDS = 8
_MOST_OFFERED_WORDS = 5
_LEAST_OFFERED = 3


@dataclass(frozen=True)
class ListedItem:
    """One thing that a text lists."""

    label: str  # its name, as far as the text sets it apart
    text: str  # all that is said of it, one line


def listed_items(text: str, statements: Sequence[str] = ()) -> list[ListedItem]:
    """
    The things that a reply lists.

    Args:
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
    text = text[:_MOST_CHARS]
    lines = _CITATION.sub("", text).split("\n")
    statements = _without_heads([one for one in statements if not one.rstrip().endswith(":")])
    told = statements if all(_names_thing(one) for one in statements) else []
    numbered = [items for is_numbered, items in _marked(lines) if is_numbered]
    bulleted = [items for is_numbered, items in _marked(lines) if not is_numbered]
    lists: list[tuple[Sequence[str], float]] = [(one, 1.0) for one in numbered]
    tables = [one for table in _tables(lines) for one in _rows_and_columns(table)]
    lists += [(one, 0.5) for one in (*bulleted, _headed(lines), *tables)]
    lists += [(one, 0.0) for one in (told, *_enumerations(lines), _offers(lines), _named_one_by_one(text))]
    for found, most_traits in lists:
        items = {label_of(one).lower(): ListedItem(label_of(one), one) for one in reversed(found)}
        traits = sum(
            bool(_MEASURE.match(n) or _TRAIT.fullmatch(n)) for n in (item.label for item in items.values())
        )
        if len(items) > 1 and traits <= most_traits * len(items):
            return _with_details(list(reversed(items.values())), text)
    return []


def _with_details(items: Sequence[ListedItem], text: str) -> list[ListedItem]:
    terms = [set(split_terms(item.label)) for item in items]
    said: list[list[str]] = [[] for _ in items]
    if all(item.text != item.label for item in items):
        return list(items)
    for clause in _CLAUSES.split(_CITATION.sub("", text)):
        words = set(split_terms(clause))
        named = [at for at, own in enumerate(terms) if words & own.difference(*terms[:at], *terms[at + 1 :])]
        if len(named) == 1 and not words <= terms[named[0]]:
            said[named[0]].append(_one_line(clause))
    return [
        ListedItem(
            item.label, f"{item.text}: {' '.join(more)}" if more and item.text == item.label else item.text
        )
        for item, more in zip(items, said, strict=True)
    ]


def _without_heads(statements: Sequence[str]) -> Sequence[str]:
    heads = {one.partition(": ")[0] if ": " in one else "" for one in statements}
    return [one.partition(": ")[2] for one in statements] if len(heads) == 1 and any(heads) else statements


def _names_thing(statement: str) -> bool:
    label = label_of(statement)
    if not label:
        return False
    is_short = len(label.split()) <= _MOST_WORDS
    rest = statement.partition(label)[2].lstrip("*_`")
    is_head = rest[:1] in ("", ":", "(", ",") or rest[:3] in (" - ", " – ", " — ", " (")
    begins = is_head or any(label.startswith(name.text) for name in find_names(statement))
    return (
        begins
        and bool(_NAMED.fullmatch(label))
        and is_short
        and (label != statement.rstrip(".") or label == statement)
    )


def label_of(text: str) -> str:
    """
    The name at the head of an item.

    >>> label_of("**Lenovo LOQ 15**: price $697.00"), label_of("the HP Victus (15 inch)")
    ('Lenovo LOQ 15', 'HP Victus')
    >>> label_of("“Piranesi” by Susanna Clarke (2020)")
    'Piranesi'
    """
    plain = _one_line(re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", text[:MESSAGE_CHARS]))
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", plain)
    if title := _TITLE.match(plain):
        return title["title"][:_LABEL_CHARS]
    head = _HEAD.split(plain, maxsplit=1)[0].strip(" .!?\"'“”") or plain
    head = _ARTICLE.sub("", head)
    return head if len(head) <= _LABEL_CHARS else textwrap.shorten(head, _LABEL_CHARS, placeholder="…")


def _marked(lines: Sequence[str]) -> list[tuple[bool, list[str]]]:
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
            lists[-1][1].append(_one_line(match["text"]))
        elif lists[-1][1]:
            lists[-1][1][-1] += f"; {_one_line(match['text'])}"
    return sorted(lists, key=lambda one: len(one[1]), reverse=True)


def _headed(lines: Sequence[str]) -> list[str]:
    levels = {at: len(match["level"]) for at, line in enumerate(lines) if (match := _HEADING.match(line))}
    deepest = max(levels.values(), default=0)
    found = []
    for at in (at for at, level in levels.items() if level == deepest):
        end = next((other for other in levels if other > at), len(lines))
        match = _HEADING.match(lines[at])
        body = _one_line(" ".join(lines[at + 1 : end]))
        found.append(": ".join(filter(None, (match["text"] if match else "", body))))
    return found


def _tables(lines: Sequence[str]) -> list[list[list[str]]]:
    tables: list[list[list[str]]] = []
    goes_on = False
    for line in lines:
        match = _ROW.match(line)
        if match is None:
            goes_on = False
        elif _RULE.match(line):
            if goes_on and len(tables[-1]) > 1:  # a rule below the first row: what stands above it is a head
                tables.append([tables[-1].pop()])
        else:
            if not goes_on:
                tables.append([])
            tables[-1].append([part.strip() for part in match["cells"].split("|")])
            goes_on = True
    return tables


def _rows_and_columns(table: Sequence[Sequence[str]]) -> list[list[str]]:
    heads = table[0]
    traits = [row[0] for row in table[1:]]
    rows = [_told(row[0], heads[1:], row[1:]) for row in table[1:]]
    columns = [
        _told(head, traits, [row[at] for row in table[1:] if at < len(row)])
        for at, head in enumerate(heads)
        if at and head
    ]
    return [rows, columns]


def _told(name: str, traits: Sequence[str], values: Sequence[str]) -> str:
    said = [_one_line(" ".join(pair)) for pair in zip(traits, values, strict=False)]
    return ": ".join(filter(None, (name, "; ".join(said))))


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


def _offers(lines: Sequence[str]) -> list[str]:
    for sentence in (one for line in lines for one in split_sentences(line)):
        match = _OFFERS.search(sentence)
        parts = _SPLIT.split(sentence[match.end() :].rstrip(" .!?")) if match else []
        if len(parts) >= _LEAST_OFFERED and all(0 < len(one.split()) <= _MOST_OFFERED_WORDS for one in parts):
            return parts
    return []


def _named_one_by_one(text: str) -> list[str]:
    told = [
        (match[0] if (match := _SUBJECT.match(one)) else "", one) for one in split_sentences(_one_line(text))
    ]
    while told and not told[0][0]:  # "Three offers came in."
        del told[0]
    while told and not told[-1][0]:  # "All of them are open."
        del told[-1]
    names = [name for name, _ in told]
    if len(names) < _LEAST_OFFERED or not all(names) or len(set(names)) < len(names):
        return []
    return [f"{name}: {said[len(name) :].strip()}" for name, said in told]


def _describes(head: str) -> bool:
    return bool(_ONE_THING.fullmatch(head)) and (len(head.split()) > 1 or any(c.isdigit() for c in head))


def _one_line(text: str) -> str:
    return " ".join(text.split())
