"""What a text lists, and which of a list a question means by what was told of it. Pure."""

import re
import textwrap
from collections.abc import Collection, Sequence
from functools import cache

from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs, plain_text
from panda.language.words import (
    FUNCTION_WORDS,
    is_ordinary,
    split_terms,
    split_words,
    stem,
)
from panda.messages.mentions import find_pronouns, one_of, within, words_of
from panda.messages.questions import things_to_show
from panda.messages.reading import MESSAGE_CHARS

_ITEM = lazy_pattern(r"^(?P<indent>\s*)(?P<mark>\(?(?:\d{1,3}|[A-Za-z])[.)]|[-*+•])\s+(?P<text>.+)$")
_HEADING = lazy_pattern(r"^(?P<level>#{2,6})\s+(?:\(?(?:\d{1,3}|[A-Za-z])[.):]\s+)?(?P<text>.+?)\s*#*$")
_HEAD = lazy_pattern(
    r"\s+[–—-]\s+|:\s+|;\s+|\s*\(|,\s+|(?<!\b[DM]r)(?<!\bSt)(?<!\bM[rs]s)(?<!\bProf)\.\s+|"
    r"\s+(?:is|are|was|costs?|has)\s|\s+(?:at|for|@)\s+(?=[$€£\d])|\s+with\s+(?=an?\s|the\s|\d|[A-Z]{2})"
)
_NAME = (
    r"(?:[Tt]he |[Aa]n? )?(?:[A-Z][\w'’+-]*|\d\w*)(?: (?:[A-Z0-9][\w'’+-]*|of|de|la))*(?: \([^()]{1,60}\))?"
)
_NAMES = lazy_pattern(rf"(?<!\w){_NAME}(?:, {_NAME})*,? (?:and|or) {_NAME}")
_TRAIT = lazy_pattern(
    rf"[~<>]?[$€£]\s?\d.*|"
    rf"[~<>]?\d[\d.,]*[ -]?[a-z%]+\b.*|(?:[\w-]+ )*{one_of('traits')}(?: (?:life|size|rate|time|type))?",
    re.IGNORECASE,
)
_LABEL_CHARS = 100
_REPLY_CHARS = 10_000
_NAME_WORDS = 8
_WITHIN_NAMES = frozenset({"of", "a", "an", "the"})
"""Words that stand within what a thing is called."""


def listed_things(text: str, statements: Sequence[str] = ()) -> list[tuple[str, str]]:
    """
    Return what a reply lists: label and text of each, at least two with different labels, in order; if it has
    no list, its *statements* count as one.
    """
    plain = re.sub(r"\s*\[\d{1,3}\]", "", text[:_REPLY_CHARS])
    marked = _marked(plain.split("\n"))
    sentences = [statement for statement in statements if not statement.rstrip().endswith(":")]
    if (
        all(": " in sentence for sentence in sentences)
        and len({sentence.partition(": ")[0] for sentence in sentences}) == 1
    ):
        sentences = [sentence.partition(": ")[2] for sentence in sentences]
    named = [match[0] for match in _NAMES.finditer(plain)] + re.findall(
        r": ([^.:;!?\n]+ (?:and|or) [^.:;!?\n]+)", plain
    )
    series = max(
        (re.split(r",?\s+(?:and|or)\s+|,\s+", re.sub(r"\([^)]*\)", "", phrase)) for phrase in named),
        key=len,
        default=[],
    )
    for entries in (*marked, sentences if all(map(_begins_with_name, sentences)) else [], series):
        things = {label_of(entry).lower(): (label_of(entry), entry) for entry in reversed(entries)}
        traits = sum(_TRAIT.fullmatch(label) is not None for label, _ in things.values())
        are_things = entries is not series or all(names_thing(label) for label, _ in things.values())
        if len(things) > 1 and are_things and traits * 2 <= len(things):
            return list(reversed(things.values()))
    return []


def names_thing(label: str) -> bool:
    """
    Return whether a part of a sentence is what a thing is called, and no clause.

    >>> [names_thing(label) for label in ("proof of address", "HP Victus", "it", "valve that drips")]
    [True, True, False, False]
    """
    words = split_words(label.lower())
    if not words or len(words) > _NAME_WORDS or not FUNCTION_WORDS.isdisjoint((words[0], words[-1])):
        return False
    is_name = label[0].isupper() or label[0].isdigit()
    return is_name or FUNCTION_WORDS.isdisjoint(word for word in words if word not in _WITHIN_NAMES)


def _begins_with_name(statement: str) -> bool:
    label = label_of(statement)
    return label != statement.rstrip(".") and len(label.split()) <= _NAME_WORDS and label[:1].isupper()


def label_of(text: str) -> str:
    """Return the name at the head of a line."""
    plain = " ".join(re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", text[:MESSAGE_CHARS]).split())
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", plain)
    if title := re.match(r"[\"“«„]([^\"”»“]{2,})[\"”»“]", plain):
        return title[1][:_LABEL_CHARS]
    head = _HEAD.split(plain, maxsplit=1)[0].strip(" .!?\"'“”") or plain
    return textwrap.shorten(
        re.sub(r"^(?:the|an?)\s+", "", head, flags=re.IGNORECASE), _LABEL_CHARS, placeholder="…"
    )


def _marked(lines: Sequence[str]) -> list[list[str]]:
    """
    Return numbered lists, bulleted ones, sections, rows and columns of tables; of each the longest first.
    """
    numbers = list[list[str]]()
    marks = list[list[str]]()
    sections = list[str]()
    tables: list[list[list[str]]] = []
    indent = None
    in_table = False
    levels = [len(heading["level"]) for heading in map(_HEADING.match, lines) if heading]
    for line in lines:
        plain = " ".join(line.split())
        head = _HEADING.match(line)
        if match := _ITEM.match(line):
            if indent is None:
                indent = len(match["indent"])
                items = list[str]()
                (numbers if match["mark"][-1] in ".)" else marks).append(items)
            if len(match["indent"]) <= indent:
                items.append(" ".join(match["text"].split()))
            elif items:
                items[-1] += f"; {' '.join(match['text'].split())}"
        elif plain and not line.startswith((" ", "\t")):
            indent = None
        if head and len(head["level"]) == max(levels):
            sections.append(f"{head['text']}:")
        elif plain and sections:
            sections[-1] += f" {plain}"
        is_row = plain.startswith("|") and plain.endswith("|")
        is_rule = not plain.strip("|:- ")
        if is_row and is_rule and in_table and tables[-1][1:]:  # its head stands above a rule
            tables.append([tables[-1].pop()])
        elif is_row and not is_rule:
            if not in_table:
                tables.append([])
            tables[-1].append([cell.strip() for cell in plain.strip("|").split("|")])
        in_table = is_row
    rows = [_rows_of(table) for table in tables]
    return [
        group
        for groups in (numbers, marks, [sections], rows)
        for group in sorted(groups, key=len, reverse=True)
    ]


def _rows_of(table: Sequence[Sequence[str]]) -> list[str]:
    """
    Return what a table lists: its rows; its columns where the first head is empty, as in a comparison
    side by side, or where there is only one row.
    """
    is_side_by_side = len(table) == 2 or not table[0][0]
    lines = [*zip(*table, strict=False)] if is_side_by_side else table
    name = _naming_column(lines[1:])
    return [_row_text(lines[0], line, name) for line in lines[1:]]


def _naming_column(table_rows: Sequence[Sequence[str]]) -> int:
    """Return the place of the cells that name rows: the first with letters, if possible all different."""
    with_letters = [
        place
        for place, cells in enumerate(zip(*table_rows, strict=False))
        if any(character.isalpha() for cell in cells for character in cell)
    ]
    apart = [
        place
        for place in with_letters
        if len({cells[place].lower() for cells in table_rows}) == len(table_rows)
    ]
    return next(iter([*apart, *with_letters]), 0)


def _row_text(heads: Sequence[str], row: Sequence[str], name: int) -> str:
    cells = [" ".join(pair) for at, pair in enumerate(zip(heads, row, strict=False)) if at != name]
    return f"{row[name]}: {'; '.join(cells)}"


# which of a list a question means

_OPENS = lazy_pattern(rf"\W*(?:(?:and|so|but|then)\b\W*)?{one_of('opens')}\b", re.IGNORECASE)
_FITS = lazy_pattern(
    rf"\b(?:{one_of('fits')}|(?:can|could|should|would|will) (?:i|we|he|she|they|it|one))\b", re.IGNORECASE
)
_DENIES = lazy_pattern(rf"\b(?:{one_of('denies')})\b|n't\b", re.IGNORECASE)
_REQUIRES = lazy_pattern(rf"\b{one_of('requires')}\b", re.IGNORECASE)
_DONE, _UNDONE = (lazy_pattern(rf"\b{one_of(name)}\b", re.IGNORECASE) for name in ("done", "undone"))
_NO_CELL = lazy_pattern(r"(?:^|(?<=; ))[^;:]+: (?:no|none|[-–—])(?=[,;]|$)", re.IGNORECASE)
_GONE = lazy_pattern(rf"\b{one_of('gone')}\b", re.IGNORECASE)
_PART = lazy_pattern(
    r"[;.:!?(]\s|,(?!\d)|[)–—\n]|\b(?:so|but|and|because|since|as|when|while|though|if)\b", re.IGNORECASE
)


def asks_which(query: str) -> bool:
    return _OPENS.match(query) is not None


def asks_what_fits(query: str) -> bool:
    """Return whether a query asks what of a list is left, fits or can be had, by all that was told."""
    return asks_which(query) and _FITS.search(plain_signs(query[:MESSAGE_CHARS])) is not None


def points_back(query: str) -> bool:
    noted = re.search(rf"\b{one_of('noted')}\b", query, re.IGNORECASE)
    return asks_which(query) and not noted and any(pronoun.how == "which" for pronoun in find_pronouns(query))


def terms_of(text: str) -> set[str]:
    words = (word.lower() for word in split_words(plain_signs(text[:MESSAGE_CHARS])))
    content = " ".join(word for word in words if word not in FUNCTION_WORDS and not word.isdigit())
    return {term for term in split_terms(content) if len(term) > 1}


@cache
def _plain() -> frozenset[str]:
    return frozenset(map(stem, words_of("plain")))


def shared_terms(query: str, about: str) -> int:
    """Return how many of its words a query shares with what a list stands under."""
    return len((terms_of(query) & terms_of(about)) - _plain())


def names_only(query: str, about: str) -> bool:
    """Return whether a query names nothing but what a list stands under, or no thing at all."""
    return terms_of(query) <= terms_of(about) | _plain()


def rows_asked_for(query: str, rows: Sequence[str], about: str) -> list[int]:
    """
    Return the lines of a list that say what a query asks for and others do not, or that lack what it denies;
    of things to tick off those that it wants, done or open; all where it tells none apart.
    """
    ticked = [row.lower().startswith("[x]") for row in rows]
    done = _DONE.search(query)
    denied = _DENIES.search(plain_signs(query))
    if any(ticked) and not all(ticked) and (_UNDONE.search(query) or done):
        is_open = bool(_UNDONE.search(query) or denied)
        return [at for at, is_ticked in enumerate(ticked) if is_ticked != is_open]
    affirmed = [_affirmed(row) for row in rows]
    lacking = [terms_of(row) - own for row, own in zip(rows, affirmed, strict=True)]
    above = terms_of(about).difference(*lacking)
    apart = (terms_of(query) - above) & frozenset[str]().union(*affirmed) if asks_which(query) else set()
    places = [at for at, own in enumerate(affirmed) if (apart.isdisjoint(own) if denied else apart <= own)]
    return (places if apart else []) or list(range(len(rows)))


def ruled_out(rows: Sequence[tuple[str, str]], statements: Sequence[str]) -> dict[int, int]:
    """
    Return the rows of a list that *statements*, oldest first, rule out; a row is a name and a whole line.
    Each place in the list is mapped to the place of the first statement that says the row is gone, rules out
    a word that it holds, or requires one that it lacks.
    """
    affirmed = [_affirmed(text) for _, text in rows]
    excluded = dict[int, int]()
    names = [terms_of(name) for name, _ in rows]
    strange = [" ".join(word for word in split_words(name) if not is_ordinary(word)) for name, _ in rows]
    own = [
        {*split_terms(words)}.difference(*names[:at], *names[at + 1 :]) for at, words in enumerate(strange)
    ]
    for place, text in enumerate(statements):
        for part in _PART.split(plain_text(text[:MESSAGE_CHARS])):
            terms = terms_of(_REQUIRES.sub("", part))
            denied = _DENIES.search(part)
            named = [at for at, name in enumerate(names) if (name and name <= terms) or own[at] & terms]
            apart = {
                term
                for term in terms.difference(*names)
                if 0 < sum(term in row_terms for row_terms in affirmed) < len(affirmed)
            }
            out: Collection[int] = ()
            if (bounded := within(part, [text for _, text in rows])) is not None:
                out = [at for at, fits in enumerate(bounded) if fits is not None and fits == bool(denied)]
            elif named and (_GONE.search(part) if not denied else terms <= names[named[0]]):
                out = named
            elif denied:
                out = [at for at, row_terms in enumerate(affirmed) if apart & row_terms]
            elif apart and _REQUIRES.search(part) and any(apart <= row_terms for row_terms in affirmed):
                out = [at for at, row_terms in enumerate(affirmed) if not apart <= row_terms]
            for at in out:
                excluded.setdefault(at, place)
    return excluded


def _affirmed(text: str) -> set[str]:
    parts = _PART.split(_NO_CELL.sub("", plain_text(text[:MESSAGE_CHARS])))
    return {term for part in parts if not _DENIES.search(part) for term in terms_of(part)}


def words_to_show(query: str) -> frozenset[str]:
    """Return the terms of what a message orders to show, if it names that as a whole."""
    words = [word for word in things_to_show(query) if word not in FUNCTION_WORDS]
    if any(word.isdigit() for word in words):
        return frozenset()
    named = (word for word in words if word not in words_of("kinds") | words_of("shows"))
    return frozenset(terms_of(" ".join(named)))


def orders_to_look(clause: str) -> bool:
    """Return whether an order is to find or show something, which stored documents may answer."""
    words = (word.lower() for word in split_words(plain_signs(clause)))
    verb = next((word for word in words if word not in FUNCTION_WORDS and word not in ("please", "now")), "")
    return verb in words_of("shows") | words_of("finds")
