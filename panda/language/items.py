"""Which items of a list the words of a message mean: places, ranks, descriptions, names, pronouns. Pure."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Literal

from panda.language.claims import Amount, is_plural, scan
from panda.language.text_front import MESSAGE_CHARS, plain_signs
from panda.language.words import FUNCTION_WORDS, is_ordinary, read_groups, read_words, split_terms, stem

_INTRODUCED = re.compile(
    r"\b(?:which|what|whose|the|a|an|my|our|your|his|her|any|some|every|this|that)\s+"
    r"(?!(?:is|are|was|were|do|does|did|can|could|will|would|has|have|had|one|ones|first|second|third|last|other|"
    r"same|it|they|i|you|we)\b)[a-z][\w-]+",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,;] )(?!I\b)[A-Z][\w-]+")
_SINGULAR = re.compile(r"\b(?:it|its|he|him|his|she|her)\b", re.IGNORECASE)
_JOINT = re.compile(r"^[\s,;:]*(?:(?:and|but|or|so)\b\s*)?", re.IGNORECASE)
_CLAUSE = re.compile(r"[,;:]|\b(?:and|but|or|so|because|if|when|while)\b", re.IGNORECASE)
_REFERENCES = re.compile(
    r"\b(?:it|its|they|them|their|this one|that one|these|those|this [a-z]+|that (?P<noun>[a-z]+)|"
    r"the (?:first|second|third|last|other|cheaper|same) one|one of them)\b",
    re.IGNORECASE,
)


def words_reaching_back(query: str, known: Collection[str]) -> list[str]:
    """
    Words that refer to something earlier (*known*: stems of what was said lately), not what it names itself.

    >>> words_reaching_back("Is it light?", ()), words_reaching_back("the best tent that money can buy", ())
    (['it'], [])
    """
    found = []
    for match in _REFERENCES.finditer(query[:MESSAGE_CHARS]):
        before = query[: match.start()]
        is_known = match["noun"] is None or stem(match["noun"].lower()) in known
        if not has_antecedent(before) and (is_known or not _ends_in_thing(before)):
            found.append(match[0])
    return found


def _ends_in_thing(before: str) -> bool:
    """Whether a "that" behind these words can tell which one is meant, as in "the best laptop that …"."""
    last = re.search(r"([\w'’-]+)\s*$", before)
    return last is not None and last[1].lower() not in FUNCTION_WORDS


def has_antecedent(before: str) -> bool:
    """
    Whether a pronoun behind these words most likely stands for something that they name.

    Returns:
        True if an earlier clause of the same query names a thing and a new clause has begun since.

    >>> has_antecedent("Which laptop was the top pick, and is ")
    True
    >>> has_antecedent("And how much does the Lenovo cost, or is ")
    True
    >>> has_antecedent("How much is "), has_antecedent("And is "), has_antecedent("Does the shop have ")
    (False, False, False)
    """
    return bool(_split_clauses(before)[0])


def parts_about_one_thing(query: str) -> tuple[str, str] | None:
    """
    A query that says which one thing it is about and goes on to ask about "it", in these two parts.

    >>> parts_about_one_thing("Which laptop was the top pick, and is it in stock?")
    ('Which laptop was the top pick', 'is it in stock?')
    >>> parts_about_one_thing("Which laptops are new, and are they in stock?") is None
    True
    >>> parts_about_one_thing("Is it in stock, and what does it cost?") is None
    True
    """
    for pronoun in _SINGULAR.finditer(query[:MESSAGE_CHARS]):
        introducing, start = _split_clauses(query[: pronoun.start()])
        if introducing:
            return introducing, _JOINT.sub("", query[start:])
    return None


def _split_clauses(before: str) -> tuple[str, int]:
    start = max((match.start() for match in _CLAUSE.finditer(before)), default=0)
    named = _INTRODUCED.search(before[:start]) or _NAME.search(before[:start])
    return (before[:start].rstrip(" ,;:") if named else ""), start


_TOKEN = re.compile(r"[^\W_](?:[\w&+]|(?<=\d)[.,:](?=\d)|['’!/-](?=[^\W_]))*|[^\w\s]|\n")
_GLUE = re.compile(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}\b)")
_PARTS = re.compile(r"[,;|:()\n](?!\d)|\s[–—-]\s")
_LABEL_END = re.compile(r"[,;:|(\n](?!\d)|\s[–—-]\s")
_PLACE = re.compile(r"(\d{1,2})(?:st|nd|rd|th)")
_WRITTEN = {
    "clock": re.compile(r"\d\d:.*"),
    "day": re.compile(r"\d{4}-.*"),
    "year": re.compile(r"(?:1[5-9]|20)\d\d"),
}
"""How the value of a date begins, by what it tells."""
_DATE_NAMES = read_words("abbreviations.txt", "day_names") | {"sunday", "monday", "friday"}
_STARTS = frozenset(".!?:;\n")
_LEAST_LETTERS, _LONGER = 4, 3
_LONGEST_NAME, _AMOUNT_CHARS = 40, 200  # tokens; how far an amount goes with its unit


@dataclass(frozen=True)
class Item:
    """Something that a message may speak of."""

    ref: str  # its name for the caller
    label: str  # how people call it
    text: str = ""  # all that was said of it; may begin with the label
    type: str = ""  # what it is, as "laptop"


@dataclass(frozen=True)
class Mention:
    """Words of a message that mean items."""

    words: str  # as they stand
    start: int  # index of their first character
    refs: tuple[str, ...] = ()
    """What they mean, in the order of the list; empty if nothing that is there fits."""
    options: tuple[str, ...] = ()  # what they may mean where that is open
    how: Literal["counted", "described", "named"] = "named"
    """counted: by a place in the list; described: by what was said of it; named: by name or kind."""
    is_rest: bool = False  # whether they mean what is left of the list, as "the other one"

    @property
    def end(self) -> int:
        """Index behind their last character."""
        return self.start + len(self.words)


@dataclass(frozen=True)
class Token:
    """One word or sign of a message."""

    text: str  # as it stands
    low: str  # in small letters, with a plain apostrophe
    start: int  # index of its first character
    end: int  # index behind its last character
    terms: tuple[str, ...]  # what an item must hold to be meant by it; () for words that set nothing apart

    @property
    def is_word(self) -> bool:
        """Whether it is no sign."""
        return self.text[0].isalnum()


word_list = partial(read_words, "item_words.txt")
"""The words, or groups of words, of a group of item_words.txt."""
_OPENING = word_list("asks") | word_list(
    "verbs"
)  # what a question has before its noun: "are the tomatoes ripe"


@cache
def _in_order(name: str) -> tuple[str, ...]:
    return tuple(read_groups("item_words.txt")[name].split())


@cache
def is_weak(word: str) -> bool:
    """Whether a small word only holds a sentence together."""
    return word in FUNCTION_WORDS or any(
        word in word_list(name) for name in ("joins", "prepositions", "item_nouns", "determiners")
    )


@lru_cache(maxsize=256)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The words and signs of a message."""
    found = []
    for match in _TOKEN.finditer(text[:MESSAGE_CHARS]):
        low = plain_signs(match[0].lower())
        weak = is_weak(low) and not match[0][0].isupper()
        found.append(Token(match[0], low, match.start(), match.end(), () if weak else _terms(match[0])))
    return tuple(found)


@lru_cache(maxsize=4096)
def _terms(text: str) -> tuple[str, ...]:
    bare = re.sub(r"['’]s?\b", "", text)
    return tuple(split_terms(_GLUE.sub(" ", _GROUPED.sub("", bare))))


@dataclass(frozen=True)
class Known:
    """An item as it is compared."""

    item: Item  # the item
    name: tuple[str, ...]  # terms of its label
    told: frozenset[str]  # terms of all that was said of it, without what it is said to lack
    lacks: frozenset[str]  # terms of what it is said to lack
    kinds: frozenset[tuple[str, ...]]
    """Terms of each part of what was said, up to its first preposition: what it is, as ("rabbit",)."""
    heads: frozenset[str]
    """Terms that alone can stand for the label: "honey" of "a pot of honey from the farm"."""
    before_heads: frozenset[str]
    """The terms before those: "carrot" of "carrot cake"."""
    proper: frozenset[str]
    """Terms of capitalised words of the label, and of words of letters and digits."""
    strange: frozenset[str]
    """Terms of words that are no English words, anywhere in what was said."""


@lru_cache(maxsize=2048)
def known(item: Item) -> Known:
    """An item with all that is compared, worked out once."""
    label = (item.label or _LABEL_END.split(item.text, maxsplit=1)[0])[:MESSAGE_CHARS]
    whole = f"{label}\n{item.text}\n{item.type}"[:MESSAGE_CHARS]
    lacks: set[str] = set()
    for match in re.finditer(r"\b(?:no|without|not) (?:an? |any )?([\w-]+)", whole, re.IGNORECASE):
        lacks.update(_terms(match[1]))
    heads, before = _heads(label)
    proper, strange = set[str](), set[str]()
    titled = re.fullmatch(r"\S+|\S+ [^a-z].*", label) is not None  # else a first capital is a sentence's
    for token in tokens_of(whole):
        mixed = any(char.isdigit() for char in token.text) and not token.text.isdigit()
        if token.text[0].isupper() or mixed or token.text.isdigit():
            is_name = mixed or (token.text[0].isupper() and not is_ordinary(token.text))
            if token.end <= len(label) and not token.text.isdigit() and (token.start or is_name or titled):
                proper.update(_terms(token.text))
            if is_name:
                strange.update(_terms(token.text))
    kinds = {_kind(part) for part in _PARTS.split(whole)}
    told = frozenset(_terms(whole))
    return Known(
        item, _terms(label), told - lacks, frozenset(lacks), frozenset(kinds) - {()}, heads, before,
        frozenset(proper), frozenset(strange),
    )  # fmt: skip


def _kind(part: str) -> tuple[str, ...]:
    found: list[str] = []
    for token in tokens_of(part.strip()):
        if token.low in word_list("prepositions"):
            break
        found += token.terms
    return tuple(found)


def _heads(label: str) -> tuple[frozenset[str], frozenset[str]]:
    heads, before, run = set[str](), set[str](), list[str]()
    for token in (*tokens_of(label), None):
        if token is None or (token.low in word_list("prepositions") or not token.is_word):
            if run:
                heads.add(run[-1])
                before.update(run[:-1])
            run = []
            if token is not None and token.low != "of":
                break
        else:
            run += token.terms
    return frozenset(heads), frozenset(before)


def holds(terms: Collection[str], term: str) -> bool:
    """
    Whether a term stands there, or one that differs by a short ending, as Korea and Korean.

    >>> holds({"korea"}, "korean"), holds({"car"}, "card")
    (True, False)
    """
    if term in terms:
        return True
    if len(term) < _LEAST_LETTERS or not term.isalpha():
        return False
    return any(
        (one.startswith(term) or term.startswith(one)) and abs(len(one) - len(term)) < _LONGER
        for one in terms
        if len(one) >= _LEAST_LETTERS and one.isalpha()
    )


def find_mentions(
    text: str,
    items: Sequence[Item],
    others: Sequence[Item] = (),
    *,
    nouns: Collection[str] = (),
    aside: Collection[str] = (),
) -> list[Mention]:
    """
    The words of a message that mean items, by place, rank, description, name or kind.

    Args:
        items: The list that was shown last, in its order.
        others: What else was spoken of; it is meant by name alone.
        nouns: Terms that the conversation has for its things, as "laptop".
        aside: Refs that are out of the running: "the cheapest" passes them over.

    Returns:
        In the order of the text; no two overlap. Pronouns are not among them: the text alone cannot tell.

    >>> tents = [Item("a", "Vaude Campo", "Vaude Campo, 330 €, sand"), Item("b", "Coleman", "Coleman, 145 €")]
    >>> [(one.words, one.refs) for one in find_mentions("is the cheaper one or the Vaude in stock?", tents)]
    [('the cheaper one', ('b',)), ('the Vaude', ('a',))]
    >>> find_mentions("a second opinion on the third day", tents)
    []
    """
    return _Finder(text, items, others, nouns, aside).find()


class _Finder:
    """Looks for mentions of each kind in turn; words that one has taken are no other's."""

    def __init__(
        self,
        text: str,
        items: Sequence[Item],
        others: Sequence[Item],
        nouns: Collection[str],
        aside: Collection[str],
    ) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._items = [known(item) for item in items]
        self._ranks = [item for item in items if item.ref not in aside]
        refs = {item.ref for item in items}
        self._all = self._items + [known(item) for item in others if item.ref not in refs]
        kinds = (term for one in self._all for term in _terms(one.item.type))
        heads = (term for one in self._items for term in one.heads - one.proper)
        self._nouns = {*nouns, *kinds, *heads}
        self._terms = {term for one in self._all for term in (*one.name, *one.told)}
        self._found: list[Mention] = []
        self._taken = [False] * len(self._tokens)

    def find(self) -> list[Mention]:
        """Everything that is meant, in order."""
        if self._items:
            for look in (self._counted, self._ranked, self._described):
                self._scan(look)
        self._scan(self._named)
        if self._items:
            self._scan(self._remaining)
        return sorted(self._found, key=lambda one: one.start)

    def _scan(self, look: Callable[[int], tuple[int, Mention] | None]) -> None:
        at = 0
        while at < len(self._tokens):
            found = None if self._taken[at] else look(at)
            if found is None or any(self._taken[at : found[0]]):
                at += 1
                continue
            end, mention = found
            self._taken[at:end] = [True] * (end - at)
            self._found.append(mention)
            at = end

    def _mention(
        self, start: int, end: int, refs: Sequence[str], how: Literal["counted", "described", "named"],
        *, open_: bool = False,
    ) -> tuple[int, Mention]:  # fmt: skip
        first, last = self._tokens[start].start, self._tokens[end - 1].end
        options = tuple(one.item.ref for one in self._items) if open_ and not refs else ()
        return end, Mention(self._text[first:last], first, tuple(refs), options, how)

    # words

    def _low(self, at: int) -> str:
        return self._tokens[at].low if 0 <= at < len(self._tokens) else "."

    def _is_thing(self, at: int) -> bool:
        word = self._low(at)
        return word in word_list("item_nouns") or (
            word.isalpha()
            and not is_weak(word)
            and word not in word_list("no_item")
            and set(_terms(word)) <= self._nouns
        )

    def _stops(self, at: int, *, plural: bool = False) -> bool:
        word = self._low(at)
        if not word[0].isalnum() or word in FUNCTION_WORDS or word in word_list("verbs"):
            return True
        if word in word_list("joins") or word in word_list("prepositions"):
            return True
        return word.endswith(("'s", "'d", "'ll")) and not plural

    def _is_noun(self, at: int) -> bool:
        """Whether a word that may be a verb has its verb behind it: "the first leaves are …"."""
        word = self._low(at)
        return word in word_list("verbs") - FUNCTION_WORDS and self._low(at + 1) in word_list("verbs")

    def _opened_by_verb(self, at: int) -> bool:
        """Whether a question has its verb before this place, so that another may follow: "does the X …"."""
        for before in range(at - 1, max(-1, at - 6), -1):
            word = self._low(before)
            if word in word_list("asks") or word in word_list("verbs"):
                return True
            if not word[0].isalnum() and word != "'":
                return False
        return False

    # places

    def _counted(self, at: int) -> tuple[int, Mention] | None:
        return self._number(at) or self._places(at) or self._all_of(at)

    def _number(self, at: int) -> tuple[int, Mention] | None:
        start, word = at, self._low(at)
        if word == "#" or word in word_list("counts"):
            at += 1 + (self._low(at + 1) == "." and word in ("no", "nr"))
        elif match := re.fullmatch(r"(?:#|no|nr)\.?(\d{1,2})", word):
            return self._at_places(start, at + 1, [int(match[1]) - 1])
        else:
            return None
        value, behind = self._low(at), self._low(at + 1)
        if word == "no" and not (value.isdigit() and self._low(start + 1) == "."):
            return None
        place = self._place_of(value, letters=word == "option")
        if (
            place is None
            or self._low(start - 1) in word_list("labels")
            or behind in ("%", "$", "€", "£", "°")
        ):
            return None
        if not self._stops(at + 1) or (behind == "of" and not self._of_list(at + 1)):
            return None
        return self._at_places(start, at + 1, [place])

    @staticmethod
    def _place_of(word: str, *, letters: bool = False) -> int | None:
        if word.isdecimal() and len(word) <= 2 and int(word):
            return int(word) - 1
        if word in _in_order("numbers"):
            return _in_order("numbers").index(word)
        return ord(word) - ord("a") if letters and len(word) == 1 and "a" <= word <= "f" else None

    def _places(self, at: int) -> tuple[int, Mention] | None:
        """ "the second one", "the first and the third", "the last two"."""
        start = at
        if self._low(at) not in word_list("determiners") and self._low(at) != "your":
            many = self._low(at) in ("first", "last", "top", "bottom") and self._many(at) is not None
            if not many or self._low(at - 1) in word_list("owners"):
                return None
        else:
            at += 1
        places: list[int] = []
        end = at
        while True:
            place, size = self._ordinal(end)
            if place is None:
                break
            count = self._many(end) if not places else None
            if count is not None:
                return self._first_or_last(start, end, count)
            places.append(place)
            end += size
            step = end
            while self._low(step) in (",", "and", "or", "&", "then"):
                step += 1
            step += self._low(step) == "the"
            if step == end or self._ordinal(step)[0] is None:
                break
            end = step
        if not places:
            return None
        dated = any(_PLACE.fullmatch(token.low) for token in self._tokens[at:end])
        lead, last = self._low(start - 1), end if self._is_asked_of(start, end) else self._closed(end)
        if not self._is_thing(end) and self._low(end) != "of":
            day = lead == "on" or (dated and lead in word_list("dates_on")) or self._low(start) == "your"
            if day or self._low(end) == "to" or self._is_noun(end):
                return None
        if last is None or self._low(last) in word_list("no_item"):
            return None
        return self._at_places(start, last, places)

    def _is_asked_of(self, start: int, end: int) -> bool:
        """Whether what is asked of a thing stands behind it: "when is the second due", which of each is said,
        or "what does the third charge", which has no other verb."""
        verb, word = self._low(start - 1), self._low(end)
        if not word.isalpha() or self._low(end + 1)[0].isalnum() or self._is_thing(end):
            return False
        if verb in ("does", "did", "do"):
            return self._low(start - 2) in word_list("asks")
        return verb in ("is", "was") and all(
            holds(one.told, term) for one in self._items for term in _terms(word)
        )

    def _ordinal(self, at: int) -> tuple[int | None, int]:
        """The place that a word or two name, and how many words; (None, 0) if they name none."""
        size = len(self._items)
        for words in (4, 3, 2, 1):
            name = " ".join(self._low(n) for n in range(at, at + words))
            if name in word_list("before_last"):
                return size - 2, words
        word = self._low(at)
        if word in _in_order("ordinals"):
            return _in_order("ordinals").index(word), 1
        if word in word_list("last"):
            return size - 1, 1
        if match := _PLACE.fullmatch(word):
            return int(match[1]) - 1, 1
        if word in word_list("place"):
            one = self._low(at + 1) in (*word_list("item_nouns"), "of") or not self._low(at + 1)[0].isalnum()
            if one or self._many(at):
                return (
                    0 if word == "top" else size - 1 if word == "bottom" else size // 2 if size % 2 else -1
                ), 1
        return None, 0

    def _many(self, at: int) -> int | None:
        """How many of the first or last are meant: "the last two"."""
        if self._low(at) not in ("first", "last", "top", "bottom"):
            return None
        place = self._place_of(self._low(at + 1))
        return place + 1 if place is not None and 0 < place < 12 else None

    def _first_or_last(self, start: int, at: int, many: int) -> tuple[int, Mention] | None:
        end, size = self._closed(at + 2), len(self._items)
        if end is None or many > size:
            return None
        from_start = self._low(at) in ("first", "top")
        return self._at_places(start, end, list(range(many) if from_start else range(size - many, size)))

    def _closed(self, at: int) -> int | None:
        """Where a phrase ends that may end here, or behind its noun and "of the three"; else None."""
        noun = self._is_thing(at)
        if not noun and not self._stops(at):
            return None
        at += noun
        if self._low(at) != "of":
            return at
        counted = noun and self._low(at - 1) not in word_list("item_nouns")
        return None if counted else self._of_list(at)

    def _of_list(self, at: int) -> int | None:
        """Where "of them", "of the three" or "of the tents" ends; None if other things are counted."""
        if self._low(at) != "of":
            return None
        at += 1
        if self._low(at) in ("them", "all"):
            return at + 1
        if self._low(at) not in word_list("determiners"):
            return None
        if self._low(at) in ("these", "those") and self._stops(at + 1):
            return at + 1
        at += 1
        place = self._place_of(self._low(at))
        if place is not None and place + 1 != len(self._items):
            return None
        at += place is not None
        if self._is_thing(at) or self._low(at) in word_list("lists"):
            return at + 1
        return at if place is not None else None

    def _at_places(self, start: int, end: int, places: Sequence[int]) -> tuple[int, Mention] | None:
        there = all(0 <= place < len(self._items) for place in places)
        refs = [self._items[place].item.ref for place in places] if there else []
        return self._mention(start, end, refs, "counted")

    def _all_of(self, at: int) -> tuple[int, Mention] | None:
        words, size = (self._low(at), self._low(at + 1)), len(self._items)
        if words[0] == "both":
            behind, places = at + 1, [0, 1] if size == 2 else [size]
        elif words[0] == "all" and self._place_of(words[1]) == size - 1 and size > 1:
            behind, places = at + 2, list(range(size))
        elif words[0] == "the" and words[1] in ("former", "latter") and size == 2:
            behind, places = at + 2, [int(words[1] == "latter")]
        else:
            return None
        end = self._closed(behind)
        return self._at_places(at, end, places) if end is not None else None

    # ranks

    def _ranked(self, at: int) -> tuple[int, Mention] | None:
        start = at
        if self._low(at) not in ("the", "that", "this"):
            return None
        at += 1
        place, word = 0, self._low(at)
        lead, dash, rest = word.partition("-")
        scale, size = (_base(rest), 1) if dash else self._scale(at)
        if dash and lead in _in_order("ordinals"):
            place = _in_order("ordinals").index(lead)
        elif word in _in_order("ordinals"):
            place, at = _in_order("ordinals").index(word), at + 1
            scale, size = self._scale(at)
        if scale is None:
            return None
        end = self._closed(at + size)
        if end is None:
            return None
        if self._low(end - 1) in ("ones", "options", "items"):
            return None
        ref = self._extreme(scale, place, less=self._low(at) in ("least", "less"))
        return self._mention(start, end, [ref] if ref else [], "described", open_=True)

    def _scale(self, at: int) -> tuple[str | None, int]:
        if self._low(at) in ("most", "least", "more", "less"):
            return (self._low(at + 1) if self._low(at + 1) in _scales() else None), 2
        return _base(self._low(at)), 1

    def _extreme(self, scale: str, place: int, *, less: bool) -> str | None:
        for way, kinds in _scales()[scale]:
            for kind in kinds:
                values = [(amount(item, kind), item.ref) for item in self._ranks]
                there = [(value, ref) for value, ref in values if value is not None]
                there.sort(reverse=(way == "max") != less)
                enough = len(there) >= max(2, len(values) - 1) and place < len(there)
                if enough and [value for value, _ in there].count(there[place][0]) == 1:
                    return there[place][1]
        return None

    # descriptions

    def _described(self, at: int) -> tuple[int, Mention] | None:
        if self._low(at) not in word_list("determiners"):
            return None
        end = at + 1
        while end < at + 6 and not self._is_thing(end) and not self._ends_description(end):
            end += 1
        is_one, said = self._low(end) == "one", self._tokens[at + 1 : end]
        if said and self._is_thing(end):
            refs = self._fitting(said)
            if len(refs) != 1 and not (is_one and refs):
                return None
            return self._mention(at, end + 1, refs if len(refs) == 1 else [], "described", open_=True)
        if end == at + 1 and self._is_thing(end) and self._low(end + 1) in word_list("relatives"):
            return self._having(at, end + 1, one=is_one)
        return self._measured(at)

    def _ends_description(self, at: int) -> bool:
        word = self._low(at)
        sign = not word[0].isalnum() and word not in "€$£%"
        return sign or (self._stops(at) and word not in ("for", "to", "on", "in"))

    def _fitting(self, said: Sequence[Token]) -> list[str]:
        terms = [term for token in said for term in token.terms]
        amounts = amounts_of(" ".join(token.text for token in said))
        fit = [
            one.item.ref
            for one in self._items
            if (terms and all(holds(one.told, term) for term in terms))
            or (amounts and amounts <= amounts_in(one.item))
        ]
        return fit if len(fit) < len(self._items) else []

    def _having(self, at: int, start: int, *, one: bool) -> tuple[int, Mention] | None:
        """ "the one that …": the item of which most is said that follows, rare words before common ones."""
        end = start
        while end < len(self._tokens) and (self._low(end)[0].isalnum() or self._low(end) in "€$£%'-"):
            end += 1
        most = self._most(start)
        if most:
            return self._mention(at, most[1], [most[0]], "described")
        words = self._text[self._tokens[start].start : self._tokens[end - 1].end]
        bounded = fitting_bound(words, [item.item for item in self._items])
        if bounded is not None and len(bounded) == 1:
            return self._mention(at, end, bounded, "described")
        negated = self._low(start) == "without" or self._low(start + 1) in ("no", "without", "not")
        scores = [0.0] * len(self._items)
        last = start
        for n in range(start, end):
            for term in self._tokens[n].terms:
                having = [
                    k
                    for k, item in enumerate(self._items)
                    if (term in item.lacks if negated else holds(item.told, term))
                ]
                for k in having if len(having) < len(self._items) else ():
                    scores[k] += 1 / len(having)
                    last = n
        best = max(scores)
        if best > 0 and scores.count(best) == 1:
            return self._mention(at, last + 1, [self._items[scores.index(best)].item.ref], "described")
        return self._mention(at, start, [], "described", open_=True) if one else None

    def _most(self, start: int) -> tuple[str, int] | None:
        """ "with the most RAM", "with the biggest battery"."""
        at = start + 1
        if self._low(at) != "the" or not self._tokens[at + 2 : at + 3]:
            return None
        word, what = self._low(at + 1), self._tokens[at + 2]
        less = word in ("least", "fewest") or _direction(_base(word)) == "min"
        if not less and word not in ("most", "best") and _base(word) is None:
            return None
        values = [(_beside(item, what.terms), item.ref) for item in self._ranks]
        there = sorted(((value, ref) for value, ref in values if value is not None), reverse=not less)
        if len(there) < 2 or there[0][0] == there[1][0]:
            return None
        return there[0][1], at + 3

    def _measured(self, at: int) -> tuple[int, Mention] | None:
        """ "the 9 kg machine": an amount that only one item has, and what is counted behind it."""
        for end in range(min(at + 4, len(self._tokens)), at + 1, -1):
            said = self._tokens[at + 1 : end]
            amounts = (
                amounts_of(self._text[said[0].start : said[-1].end]) if said[0].text[0].isdigit() else ()
            )
            fit = [one.item.ref for one in self._items if amounts and amounts <= amounts_in(one.item)]
            if len(fit) == 1:
                noun = self._low(end).isalpha() and not self._stops(end) and not is_weak(self._low(end))
                return self._mention(at, end + noun, fit, "described")
        return None

    # names

    def _named(self, at: int) -> tuple[int, Mention] | None:
        """Names, whole or in part, and what only one item is: "the Bosch", "Les Pins", "the rabbit"."""
        start, first = at, at
        pointed = self._low(at) in word_list("determiners") or self._low(at) in word_list("owners")
        if pointed and not self._in_name(at):
            first += 1
        else:
            pointed = self._low(at - 1) in word_list("determiners")
        if not self._tokens[first : first + 1] or not self._tokens[first].is_word:
            return None
        if not self._tokens[first].terms and not self._in_name(first):
            return None
        if not all(holds(self._terms, term) for term in _terms(self._tokens[first].text)):
            return None
        end, fit = first, list(self._all)
        for n in range(first, min(first + _LONGEST_NAME, len(self._tokens))):
            token = self._tokens[n]
            terms = token.terms or _terms(token.text)
            left = [one for one in fit if terms and all(self._says(one, term, pointed) for term in terms)]
            if not token.is_word or not left or self._taken[n]:
                break
            fit, end = left, n + 1
        while end > first and is_weak(self._low(end - 1)) and not self._tokens[end - 1].text[0].isupper():
            end -= 1
        run = self._tokens[first:end]
        if not run or not any(token.terms for token in run):
            return None
        fit = [one for one in fit if self._means(one, first, run, end, pointed=pointed)]
        exact = [one for one in fit if len(one.name) == sum(len(t.terms or _terms(t.text)) for t in run)]
        fit = exact or fit
        refs = [one.item.ref for one in fit]
        begin = start if pointed and first > start else first
        if not refs or len(refs) == len(self._all) > 1:
            return None
        if len(refs) > 1:
            end_, mention = self._mention(begin, end, [], "named")
            return end_, replace(mention, options=tuple(refs))
        return self._mention(begin, end, refs, "named")

    def _in_name(self, at: int) -> bool:
        terms = _terms(self._tokens[at].text)
        behind = self._tokens[at + 1 : at + 2]
        return bool(behind) and any(
            one.name[: len(terms)] == terms
            and one.name[len(terms) : len(terms) + 1] == behind[0].terms[:1] != ()
            for one in self._all
        )

    @staticmethod
    def _says(one: Known, term: str, pointed: bool) -> bool:
        return holds(one.name, term) or (pointed and holds(one.told, term)) or term in one.strange

    def _means(self, one: Known, first: int, run: Sequence[Token], end: int, *, pointed: bool) -> bool:
        terms = [term for token in run for term in token.terms or _terms(token.text)]
        content = [token for token in run if token.terms]
        digits = all(token.text.isdigit() for token in content)
        in_name = all(holds(one.name, term) for term in terms)
        whole = in_name and len(terms) == len(one.name)
        if not content or (whole and (len(content) > 1 or pointed)):
            return whole
        strange = any(not t.text.isdigit() and all(holds(one.strange, x) for x in t.terms) for t in content)
        if strange and (in_name or pointed or len(content) > 1):
            return True
        proper = [t for t in content if t.text[0].isupper() and all(holds(one.proper, x) for x in t.terms)]
        if in_name and proper:
            inside = first > 0 and self._low(first - 1) not in _STARTS
            if not pointed and len(proper) == 1 and not inside:
                return self._is_subject(end)
            dated = run[0].low in _DATE_NAMES and self._low(first - 1) in word_list("dates_on")
            return pointed or not dated
        if digits and in_name and len(run) == 1:
            code = run[0].text
            return (code[0] == "0" or (len(code) > 2 and pointed)) and self._stops(end)
        if digits or not (self._stops(end) or self._is_predicate(first, end, run)):
            return False
        if whole or not pointed:
            return whole
        if in_name and (holds(one.heads, terms[-1]) or one.before_heads.issuperset(terms)):
            small = len(content) == 1 and content[0].text[0].islower() and one.proper.issuperset(terms)
            return not (small and self._low(first - 1) == "the")  # "the club" is not the Surly Bridge Club
        return tuple(terms) in {kind[-len(terms) :] for kind in one.kinds if len(kind) - len(terms) < 2}

    def _is_subject(self, end: int) -> bool:
        """Whether a capital word that begins a sentence and is an ordinary one too, is a name there."""
        word = self._low(end)
        if end >= len(self._tokens) or not word[0].isalpha():
            return word in ",.?!"
        lists = ("determiners", "owners", "after_verbs")
        return not self._tokens[end].text[0].isupper() and not any(word in word_list(one) for one in lists)

    def _is_predicate(self, first: int, end: int, run: Sequence[Token]) -> bool:
        word = self._low(end)
        is_verb = word.endswith(("s", "ed")) and not word.endswith(("ss", "us", "is"))
        return self._opened_by_verb(first) or (is_verb and not is_plural(run[-1].low))

    def _remaining(self, at: int) -> tuple[int, Mention] | None:
        """ "the other one": what is left of the list when the others are named in the same message."""
        if self._low(at) not in ("the", "that") or self._low(at + 1) != "other":
            return None
        end = at + 2 + (self._is_thing(at + 2))
        if not self._stops(end):
            return None
        named = {ref for one in self._found for ref in one.refs}
        left = [one.item.ref for one in self._items if one.item.ref not in named]
        only = left if len(left) == 1 else []
        end_, mention = self._mention(at, end, only, "described")
        return end_, replace(mention, refs=tuple(only), options=tuple(left), is_rest=True)


@dataclass(frozen=True)
class Pronoun:
    """A word that stands for what was spoken of before."""

    words: str  # as it stands
    start: int  # index of its first character
    kind: Literal["one", "several", "which"]
    """one: a single thing; several: more; which: a choice among what was listed."""


def find_pronouns(text: str) -> list[Pronoun]:
    """
    The pronouns of a message that stand for things, but not for what the message itself names before them.

    >>> [(one.words, one.kind) for one in find_pronouns("is it red, and which one of them is dear?")]
    [('it', 'one'), ('which one of them', 'which')]
    >>> find_pronouns("the best laptop that money can buy"), find_pronouns("take the tent and pitch it")
    ([], [])
    >>> find_pronouns("who is our vet these days")
    []
    """
    tokens = tokens_of(text)
    low = [token.low for token in tokens]
    found, at = [], 0
    while at < len(low):
        kind, size = _pronoun(low, at)
        if kind is None:
            at += 1
            continue
        start = tokens[at].start
        if kind == "which" or not has_antecedent(text[:start]):
            found.append(Pronoun(text[start : tokens[at + size - 1].end], start, kind))
        at += size
    return found


def _pronoun(low: Sequence[str], at: int) -> tuple[Literal["one", "several", "which"] | None, int]:
    for size in (4, 3, 2, 1):
        words = " ".join(low[at : at + size])
        for kind in ("which", "several", "one"):
            if at + size <= len(low) and words in word_list(f"pronouns_{kind}"):
                counts_no_item = low[at + size : at + size + 1] and low[at + size] in word_list("no_item")
                return (None, 0) if counts_no_item and size == 1 else (kind, size)
    return None, 0


def says_only(text: str, mentions: Sequence[tuple[int, int]]) -> bool:
    """Whether a message says nothing besides some of its words, as "And the last one?"."""
    return all(
        not token.is_word
        or token.low in word_list("filling")
        or any(start <= token.start < end for start, end in mentions)
        for token in tokens_of(text)
    )


# amounts


@lru_cache(maxsize=2048)
def amounts_in(item: Item) -> frozenset[str]:
    """What is measured in what was said of an item, each as kind and value."""
    return amounts_of(f"{item.label}\n{item.text}")


@lru_cache(maxsize=2048)
def amounts_of(text: str) -> frozenset[str]:
    found = set()
    for one in scan(text[:MESSAGE_CHARS]):
        counts = one.amount is not None and (one.amount.unit or one.amount.currency or one.amount.counts)
        if one.claim.kind == "date" or counts:
            head = one.amount.head if one.amount and one.amount.counts else ""
            found.add(f"{one.claim.value} {head}")
    return frozenset(found)


_UNITS: dict[str, Mapping[str, float]] = {
    "weight": {"mg": 1e-6, "g": 0.001, "kg": 1, "oz": 0.02835, "lb": 0.4536},
    "time": {
        "ms": 1 / 60_000, "s": 1 / 60, "min": 1, "h": 60, "d": 1_440, "week": 10_080, "month": 43_800,
        "year": 525_600,
    },
    "length": {"mm": 0.001, "cm": 0.01, "m": 1, "km": 1_000, "mi": 1_609, "in": 0.0254, "ft": 0.3048},
    "size": {"kb": 1e-6, "mb": 0.001, "gb": 1, "tb": 1_000},
    "volume": {"ml": 0.001, "l": 1},
}  # fmt: skip
"""Units by what they measure, each in terms of one of them."""


@lru_cache(maxsize=4096)
def amount(item: Item, kind: str) -> float | str | None:
    """How much of a kind is said of an item first: a price, weight, year, time of day …; None if none."""
    text = (item.text or item.label)[:MESSAGE_CHARS]
    if kind in _WRITTEN:
        values = (one.claim.value for one in scan(text) if one.claim.kind in ("date", "number"))
        written = next((match[0] for value in values if (match := _WRITTEN[kind].match(value))), None)
        return float(written) if written and kind == "year" else written
    units = _UNITS["time" if kind == "age" else kind] if kind in (*_UNITS, "age") else ()
    if kind == "price":
        return _first(text, lambda one: bool(one.currency))
    return _first(text, lambda one: one.unit in units or kind == one.head == "page")


def _first(text: str, is_meant: Callable[[Amount], bool]) -> float | None:
    for one in scan(text[:MESSAGE_CHARS]):
        if one.amount is not None and one.amount.value is not None and is_meant(one.amount):
            return float(one.amount.value) * factor(one.amount.unit)
    return None


def factor(unit: str) -> float:
    """What an amount is multiplied by to be compared with one of another unit of its kind."""
    return next((units[unit] for units in _UNITS.values() if unit in units), 1.0)


def _beside(item: Item, what: Collection[str]) -> float | None:
    """The number in the part of a text that speaks of something: 500 beside "battery" in "500 Wh battery"."""
    parts = (
        part
        for part in _PARTS.split(item.text[:MESSAGE_CHARS])
        if all(holds(_terms(part), term) for term in what)
    )
    return _first(next(parts, ""), lambda one: bool(one.value))


def fitting_bound(words: str, items: Sequence[Item]) -> list[str] | None:
    """
    The items within a bound that words set.

    Returns:
        Refs; None if the words set none, or no item has such an amount.

    >>> phones = [Item("a", "Nokia", "Nokia, 199 €"), Item("b", "Pixel", "Pixel, 549 €")]
    >>> fitting_bound("over 500 euros", phones)
    ['b']
    """
    words = words[:MESSAGE_CHARS]
    for side in ("over", "under"):
        for lead in sorted(word_list(side), key=len, reverse=True):
            match = re.search(rf"\b{lead} (?=\D{{0,3}}\d)", words, re.IGNORECASE)
            behind = words[match.end() :][:_AMOUNT_CHARS] if match else ""
            limit = next((one.amount for one in scan(behind) if one.amount), None)
            bound = _first(behind, lambda one: True)
            if limit is None or bound is None:
                continue
            values = {item.ref: comparable(item, limit.currency, limit.unit, limit.head) for item in items}
            told = {ref: value for ref, value in values.items() if value is not None}
            fit = [ref for ref, value in told.items() if (value > bound if side == "over" else value < bound)]
            return fit if told else None
    return None


def comparable(item: Item, currency: str | None, unit: str, head: str) -> float | None:
    """The first amount of an item of a currency, kind of unit, or thing that is counted; None if none."""
    units = next((units for units in _UNITS.values() if unit in units), ())

    def is_like(one: Amount) -> bool:
        if currency or unit:
            return one.currency == currency and (bool(currency) or one.unit in units)
        return bool(head) and one.head == head

    return _first(f"{item.label}\n{item.text}", is_like)


@cache
def _scales() -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    found = {}
    for name, words in read_groups("scales.txt").items():
        ways = [way.split() for way in words.split("|")]
        found[name] = [(way[0], tuple(way[1:])) for way in ways]
    return found


def _direction(scale: str | None) -> str:
    return _scales()[scale][0][0] if scale else ""


@cache
def _base(word: str) -> str | None:
    """
    The adjective of a comparative or superlative that ranks.

    >>> [_base(word) for word in ("cheapest", "heavier", "biggest", "largest", "cheap", "best")]
    ['cheap', 'heavy', 'big', 'large', None, None]
    """
    for ending in ("est", "er"):
        if word.endswith(ending):
            root = word.removesuffix(ending)
            for base in (root, root + "e", root[:-1], root[:-1] + "y"):
                if base in _scales():
                    return base
    return None
