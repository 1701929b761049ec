"""
Which items of a list a question means, by what it says itself and by what the user has told. Pure.

An item is left out only for a reason that its own line shows: an amount beyond a limit of the same unit, a
word that was ruled out or is required, or a name of which was told that it is done or gone.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from panda.language.claims import scan
from panda.language.conversation import things_to_show
from panda.language.items import Item, comparable, factor, find_pronouns, is_weak
from panda.language.text_front import MESSAGE_CHARS, plain_signs, plain_text
from panda.language.words import FUNCTION_WORDS, is_ordinary, read_groups, split_terms, stem

_WORD = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*|\d+")
_PARTS = re.compile(r"[;.:!?(]\s|,(?!\d)|[)–—\n]")
_BEFORE, _BEHIND = 6, 5  # how many words before and behind an amount say what it limits
_LOOK_CHARS = 200


@cache
def _phrases(name: str) -> tuple[tuple[str, ...], ...]:
    held = read_groups("narrowing_words.txt")[name]
    return tuple(tuple(one.split("_")) for one in held.split())


def _says(name: str, words: Sequence[str]) -> bool:
    return any(
        tuple(words[at : at + len(phrase)]) == phrase for phrase in _phrases(name) for at in range(len(words))
    )


def _split(text: str) -> list[str]:
    return [word.removesuffix("'s") for word in _WORD.findall(plain_signs(text[:MESSAGE_CHARS]).lower())]


@dataclass(frozen=True)
class Row:
    """An item of a list."""

    name: str  # what people call it: its label, or the first cell of its row
    text: str  # all that is said of it


@dataclass(frozen=True)
class Bound:
    """A limit of an amount."""

    value: float  # up to where, or from where on
    currency: str | None  # code of a price; None for any price, if there is no unit either
    unit: str  # normal name of what it measures; "" for a price
    most: bool  # whether what is beyond is left out; else what is below
    words: str  # the amount as it stands

    def __str__(self) -> str:
        return f"{'at most' if self.most else 'at least'} {self.words}"

    def rules_out(self, row: Row) -> bool:
        """Whether the item has an amount of the same unit beyond it."""
        prices = {one.amount.currency for one in scan(row.text) if one.amount and one.amount.currency}
        if not (self.currency or self.unit) and len(prices) != 1:
            return False
        currency = None if self.unit else self.currency or prices.pop()
        value = comparable(Item("", row.name, row.text), currency, self.unit, "")
        limit = self.value * factor(self.unit)
        return value is not None and (value > limit if self.most else value < limit)


def find_bounds(text: str) -> list[Bound]:
    """
    The limits that a text sets for prices and measures.

    >>> [str(one) for one in find_bounds("my budget is 30 euros. It has to hold over 5 litres")]
    ['at most 30 euros', 'at least 5 litres']
    >>> [str(one) for one in find_bounds("I won't pay more than 20 €, our limit is 400 crowns a head")]
    ['at most 20 €', 'at most 400']
    >>> [str(one) for one in find_bounds("more than 900 a month is not possible")]
    ['at most 900']
    >>> find_bounds("we paid 30 euros for it, for more than 2 people")
    []
    """
    plain, found = plain_text(text[:MESSAGE_CHARS]), []
    for one in scan(plain):
        amount = one.amount
        if amount is None or amount.value is None:
            continue
        before = _split(_PARTS.split(plain[max(0, one.start - _LOOK_CHARS) : one.start])[-1])[-_BEFORE:]
        behind = _split(_PARTS.split(plain[one.end : one.end + _LOOK_CHARS])[0])[:_BEHIND]
        near = [*before[-3:], *behind]
        is_money = _says("money", before) or _says("bounded", before)
        is_least = _says("at_least", near)
        is_most = _says("at_most", near) or (is_least and _is_denied([*before, *behind]))
        is_most = is_most or (not is_least and _says("bounded", [*before, *behind]))
        if (is_least or is_most) and (is_money or not amount.counts):
            words = plain[one.start : one.end].strip()
            found.append(Bound(float(amount.value), amount.currency, amount.unit, is_most, words))
    return found


def asks_which(query: str) -> bool:
    """
    Whether a query asks which of several, rather than whether or how.

    >>> asks_which("and who still has to pay?"), asks_which("Is it left?"), asks_which("how do I get there")
    (True, False, False)
    """
    words = [word for word in _split(query) if (word,) not in _phrases("splits")]
    return bool(words) and (words[0],) in _phrases("opens")


def asks_what_fits(query: str) -> bool:
    """
    Whether a query asks what of a list is left, fits or can be had, by all that was told.

    >>> [asks_what_fits(text) for text in ("which of them fit my budget", "where can we go with him then")]
    [True, True]
    >>> [asks_what_fits(text) for text in ("which gigs did I write down?", "what does it cost")]
    [False, False]
    """
    words = _split(query)
    may_do = any((a,) in _phrases("may") and (b,) in _phrases("subjects") for a, b in pairwise(words))
    return asks_which(query) and (may_do or _says("fits", words))


def points_back(query: str) -> bool:
    """
    Whether a query asks which of several things that were listed before.

    >>> [points_back(text) for text in ("which of them delivers?", "which ones did I note", "which is it")]
    [True, False, False]
    """
    kinds = {one.kind for one in find_pronouns(query)}
    return asks_which(query) and bool(kinds & {"which", "several"}) and not _says("noted", _split(query))


def names_nothing(query: str) -> bool:
    """
    Whether a query asks and names no thing at all, so that it goes on with what was just spoken of.

    >>> [names_nothing(text) for text in ("and until when?", "how many?", "how are you?", "when is it red?")]
    [True, True, False, False]
    """
    words = _split(query)
    asks = any((word,) in (*_phrases("opens"), *_phrases("asks")) for word in words)
    return asks and all(is_weak(word) and word not in ("you", "your") for word in words)


def words_to_show(query: str) -> frozenset[str]:
    """
    The terms of what a message orders to show, if it names that as a whole; none if it orders nothing such.

    >>> sorted(words_to_show("please show me the whole packing list")), words_to_show("show me row 3")
    (['pack'], frozenset())
    >>> sorted(words_to_show("show me the venues I noted")), words_to_show("book a table")
    (['venu'], frozenset())
    """
    words = [word for word in things_to_show(query) if word not in FUNCTION_WORDS]
    known = {word for (word,) in (*_phrases("kinds"), *_phrases("shows"))}
    if any(word.isdigit() for word in words):
        return frozenset()
    return frozenset(terms_of(" ".join(word for word in words if word not in known)))


def orders_to_look(clause: str) -> bool:
    """
    Whether an order is to find or show something, so that what is stored may do.

    >>> [orders_to_look(text) for text in ("please find the key", "show me the list", "book a table")]
    [True, True, False]
    """
    words = [word for word in _split(clause) if word not in FUNCTION_WORDS and word not in ("please", "now")]
    return (*words[:1],) in (*_phrases("shows"), *_phrases("finds"))


def names_only(query: str, about: str) -> bool:
    """
    Whether a query names nothing but what a list stands under, or no thing at all.

    >>> [names_only(text, "Campsites") for text in ("where can we go then", "where can I buy milk")]
    [True, False]
    """
    return terms_of(query) <= terms_of(about) | {stem(word) for (word,) in _phrases("plain")}


def shared_terms(query: str, about: str) -> int:
    """How many of its words a query shares with what a list stands under."""
    return len(terms_of(query) & terms_of(about) - {stem(word) for (word,) in _phrases("plain")})


def rows_asked_for(query: str, rows: Sequence[Row], about: str) -> list[int]:
    """
    The items that say what a query asks for and others do not; all where it tells none apart.

    Args:
        rows: The items.
        about: What the list stands under: its words tell no items apart.

    >>> hostels = [Row("Montana", "Montana: breakfast included"), Row("Marken", "Marken: no breakfast")]
    >>> rows_asked_for("which ones include breakfast", hostels, "Hostels")
    [0]
    >>> rows_asked_for("which hostels did we collect", hostels, "Hostels")
    [0, 1]
    """
    everything = list(range(len(rows)))
    if not rows or not asks_which(query):
        return everything
    said = [_affirmed(row.text) for row in rows]
    apart = (terms_of(query) - terms_of(about)) & frozenset[str]().union(*said)
    return [at for at in everything if apart <= said[at]] or everything


def ruled_out(query: str, rows: Sequence[Row], about: str, told: Sequence[str]) -> dict[int, tuple[int, str]]:
    """
    The items that what was told leaves out, in answer to what fits or is left.

    Args:
        rows: The items.
        about: What the list stands under.
        told: What the user said, oldest first, the question itself last.

    Returns:
        By item the index of the statement that leaves it out, and the limit that it sets; "" if it sets none.

    >>> shrubs = [Row(name, f"{name}: {price}") for name, price in (("Weigela", "17 €"), ("Hazel", "59 €"))]
    >>> ruled_out("which are left", shrubs, "", ["my budget is 30 euros", "the weigela is sold out"])
    {0: (1, ''), 1: (0, 'at most 30 euros')}
    >>> ruled_out("which fit my budget", shrubs, "", ["my budget is 60 euros", "the weigela is not sold"])
    {}
    """
    said = [_affirmed(row.text) for row in rows]
    of_price = _says("priced", _split(query))
    asked = terms_of(query) - terms_of(about) - {stem(word) for (word,) in _phrases("plain")}
    reasons: dict[int, tuple[int, str]] = {}
    limits: dict[tuple[str | None, str, bool], tuple[int, Bound]] = {}
    for place, text in enumerate(told):
        limits |= {(one.currency, one.unit, one.most): (place, one) for one in find_bounds(text)}
        for part in [] if of_price or text == query else _clauses(text):
            for at in _ruled_out_by(part, rows, said, asked):
                reasons.setdefault(at, (place, ""))
    for place, bound in limits.values():
        for at, row in enumerate(rows):
            if bound.rules_out(row):
                reasons.setdefault(at, (place, str(bound)))
    return reasons


def _ruled_out_by(
    words: Sequence[str], rows: Sequence[Row], said: Sequence[set[str]], asked: Collection[str]
) -> set[int]:
    terms = terms_of(" ".join(words))
    denied = _is_denied(words)
    if not denied and (_says("gone", words) or terms & set(asked)):
        named = {at for at, row in enumerate(rows) if _is_named(row, rows, terms)}
        if named:
            return named
    names = {term for row in rows for term in terms_of(row.name)}
    names |= {stem(word) for phrase in _phrases("must") for word in phrase}
    apart = {term for term in terms - names if 0 < sum(term in own for own in said) < len(said)}
    if denied:
        return {at for at, own in enumerate(said) if apart & own}
    having = {at for at, own in enumerate(said) if apart and apart <= own}
    return set(range(len(rows))) - having if having and _says("must", words) else set()


def _is_named(row: Row, rows: Sequence[Row], terms: Collection[str]) -> bool:
    own = terms_of(row.name)
    others = {term for one in rows if one is not row for term in terms_of(one.name)}
    alone = {
        term for word in _split(row.name) if not is_ordinary(word) for term in split_terms(word)
    } - others
    return bool(own) and (own <= set(terms) or not alone.isdisjoint(terms))


def _clauses(text: str) -> list[list[str]]:
    found: list[list[str]] = []
    for part in _PARTS.split(plain_text(text[:MESSAGE_CHARS])):
        words: list[str] = []
        for word in _split(part):
            if (word,) in _phrases("splits"):
                found.append(words)
                words = []
            else:
                words.append(word)
        found.append(words)
    return [words for words in found if words]


def _is_denied(words: Sequence[str]) -> bool:
    return _says("no", words) or any(word.endswith("n't") for word in words)


def _affirmed(text: str) -> set[str]:
    parts = [_split(part) for part in _PARTS.split(plain_text(text[:MESSAGE_CHARS]))]
    return {term for words in parts if not _is_denied(words) for term in terms_of(" ".join(words))}


def terms_of(text: str) -> set[str]:
    """The terms of the words that say what a text is about."""
    words = [word for word in _split(text) if word not in FUNCTION_WORDS and not word.isdigit()]
    return {term for word in words for term in split_terms(word) if len(term) > 1}
