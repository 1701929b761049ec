"""What a message puts aside, insists on, or clears, among items on offer. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from panda.language.claims import is_plural
from panda.language.items import (
    Item,
    Mention,
    amounts_in,
    amounts_of,
    fitting_bound,
    holds,
    is_weak,
    known,
    tokens_of,
    word_list,
)
from panda.language.reading import Action, Excluded

_CLAUSE = frozenset((",", "–", "—", ":", "(", ")"))
_SENTENCE = frozenset((".", "!", "?", ";", "\n"))
_CONNECTS = word_list("connects")
_SEVERAL = word_list("several")
_IT = word_list("it")
_ARTICLES = word_list("articles")
_POINTING = frozenset(("the", "that", "this", "those", "these"))
_THINGS = word_list("things")
_OTHERS = ("*",)  # refs of all items that the message does not name
_MOST_WORDS = 6


@dataclass(frozen=True)
class _Object:
    """What a verb is about."""

    refs: tuple[str, ...]
    end: int  # index of the token behind it
    definite: bool = True  # whether items themselves are meant, not all of a kind


def find_exclusions(
    text: str, items: Sequence[Item], mentions: Sequence[Mention], *, meant: Sequence[str] = ()
) -> list[Excluded]:
    """
    What a message decides on items: in orders and declarations about that very thing, never in questions.

    Args:
        items: What is on offer.
        mentions: The words of the message that mean items, as find_mentions gives them.
        meant: What "it" means where the message names nothing before.

    Returns:
        One for each item at most; the last word counts.

    >>> tents = [Item("a", "Vaude Campo"), Item("b", "Coleman Darwin"), Item("c", "Quechua")]
    >>> from panda.language.items import find_mentions
    >>> def said(text):
    ...     found = find_exclusions(text, tents, find_mentions(text, tents))
    ...     return [(one.action, one.ref) for one in found]
    >>> said("forget the Coleman, and don't drop the Vaude"), said("how do I remove the poles of the Vaude?")
    ([('drop', 'b'), ('keep', 'a')], [])
    """
    return _Reader(text, items, mentions, meant).read()


def find_clearing(text: str) -> str | None:
    """
    The words that clear the table; None if there are none.

    >>> find_clearing("ok, let's start over"), find_clearing("Do I have to start over if it crashes?")
    ('start over', None)
    """
    return _Reader(text, (), (), ()).clearing()


def without_exclusions(text: str) -> str:
    """
    A text without what it leaves out.

    >>> without_exclusions("Plan dinner without cod, with rice")
    'Plan dinner, with rice'
    """
    kept: list[str] = []
    skipping = False
    end = 0
    for token in tokens_of(text):
        if token.low in word_list("excepts"):
            skipping = True
        elif skipping and (token.low in _CLAUSE or token.low in _SENTENCE):
            skipping = False
        if not skipping:
            gap = text[end : token.start] if not kept or text[: token.start].endswith(" ") else ""
            kept.append((" " if gap else "") + token.text if kept else token.text)
        end = token.end
    return "".join(kept)


def _against(thing: _Object) -> Action:
    return "drop" if thing.definite else "demote"


class _Reader:
    """Reads a message clause by clause."""

    def __init__(
        self, text: str, items: Sequence[Item], mentions: Sequence[Mention], meant: Sequence[str]
    ) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._items = items
        self._meant = tuple(meant)
        self._mentions = mentions
        self._starts = {token.start: at for at, token in enumerate(self._tokens)}

    def read(self) -> list[Excluded]:
        """Every decision, in order."""
        found: dict[str, Excluded] = {}
        named = {ref for one in self._mentions for ref in one.refs}
        others = [item.ref for item in self._items if item.ref not in named] if named else []
        for start in self._clauses():
            decided = self._decide(start)
            if decided is None:
                continue
            action, thing = decided
            words = self._text[self._tokens[start].start : self._tokens[thing.end - 1].end]
            for ref in others if thing.refs == _OTHERS else thing.refs:
                if action != "demote" or ref not in found or found[ref].action != "drop":
                    found[ref] = Excluded(ref, action, words)
        return list(found.values())

    def clearing(self) -> str | None:
        """The words that clear everything."""
        for start in self._clauses():
            at, negated = self._after_openers(start)
            size = self._longest("afresh", at)
            if size and not negated and self._ends(at + size):
                return self._text[self._tokens[at].start : self._tokens[at + size - 1].end]
        return None

    # clauses

    def _clauses(self) -> list[int]:
        found: list[int] = []
        for begin, end in self._sentences():
            starts = [begin]
            starts += [at + 1 for at in range(begin, end) if self._joins(at) and at + 1 < end]
            asked = self._low(end) == "?"
            asking = [at for at in starts if self._asks(at)]
            if (asked or asking) and self._low(begin) == "without":
                continue
            hindered = False
            for start in starts:
                is_condition = self._low(start) in word_list("hinders")
                hindered |= is_condition and self._low(start - 1) not in _CONNECTS
                if start in asking:
                    hindered |= self._low(start) != "whose"
                    continue
                free = not asked or self._is_polite(start, end) or any(at > start for at in asking)
                if free and not hindered and not is_condition and not self._joins(start):
                    found.append(start)
        return found

    def _joins(self, at: int) -> bool:
        is_dash = self._low(at) == "-" and self._text[: self._tokens[at].start].endswith(" ")
        return self._low(at) in _CLAUSE | _CONNECTS or is_dash

    def _sentences(self) -> list[tuple[int, int]]:
        found, begin = [], 0
        for at, token in enumerate(self._tokens):
            if token.text in _SENTENCE:
                found.append((begin, at))
                begin = at + 1
        found.append((begin, len(self._tokens)))
        return [(begin, end) for begin, end in found if begin < end]

    def _asks(self, at: int) -> bool:
        at = self._skip(at, "leads")
        if self._low(at) in ("do", "will", "have") and self._low(at + 1) in ("not", "nothing"):
            return False
        if any(one.start == self._tokens[at].start for one in self._mentions if at < len(self._tokens)):
            return False  # "Will is out"
        return self._low(at) in word_list("asks") and not self._is_polite(at, len(self._tokens))

    def _is_polite(self, at: int, end: int) -> bool:
        at = self._skip(at, "leads")
        if self._low(at) not in ("can", "could", "would", "will") or self._low(at + 1) != "you":
            return False
        words = [self._low(n) for n in range(at, end)]
        return "please" in words or "pls" in words or any(self._list_phrase(n) for n in range(at, end))

    def _skip(self, at: int, name: str) -> int:
        while self._low(at) in word_list(name):
            at += 1
        return at

    def _low(self, at: int) -> str:
        return self._tokens[at].low if 0 <= at < len(self._tokens) else "."

    def _words(self, at: int, size: int) -> str:
        return " ".join(token.low for token in self._tokens[at : at + size])

    def _longest(self, name: str, at: int) -> int:
        for size in range(_MOST_WORDS, 0, -1):
            if at + size <= len(self._tokens) and self._words(at, size) in word_list(name):
                return size
        return 0

    def _after_openers(self, at: int) -> tuple[int, bool]:
        negated = False
        while at < len(self._tokens):
            size = self._longest("not", at)
            if size and self._low(at) != "no":
                negated, at = not negated, at + size
                continue
            if self._low(at) in word_list("openers") and not self._mention_at(at):
                at += 1
                continue
            break
        return at, negated

    # decisions

    def _decide(self, begin: int) -> tuple[Action, _Object] | None:
        at, negated = self._after_openers(begin)
        opened = {self._low(n) for n in range(begin, at)}
        if negated and {"i", "never"} <= opened and "would" not in opened:
            return None
        if of := self._bound(begin):
            return "demote", of
        if not negated and (thing := self._declared("out", begin)):
            return "drop", thing
        if not negated and (thing := self._declared("in", begin)):
            return "keep", thing
        if negated and self._low(at - 1) == "not" and opened <= word_list("bare_not"):
            thing = self._thing(at)
            if thing and self._ends(thing.end) and self._low(thing.end) != "yet":
                return _against(thing), thing
        for name in ("drop", "avoid", "keep"):
            if thing := self._verb(name, at):
                if (name == "keep") != negated:
                    return "keep", thing
                return ("drop" if name != "avoid" else _against(thing)), thing
        thing = self._unwanted(at, negated=negated, opened=opened)
        return (_against(thing), thing) if thing and self._ends(thing.end) else None

    def _unwanted(self, at: int, *, negated: bool, opened: set[str]) -> _Object | None:
        """ "no cod", "nothing with nuts", "I don't want an e-bike"."""
        if negated and opened & word_list("wishers"):
            fond = self._longest("fond", at)
            return self._quality(at + fond) if fond or opened & word_list("wish_not") else None
        if negated or self._low(at) not in word_list("none"):
            return None
        if self._low(at) in word_list("any"):
            thing = self._quality(at)
        else:
            thing = self._thing(at + 1 + (self._low(at + 1) == "more"), kind=True)
        return replace(thing, definite=False) if thing else None

    def _quality(self, at: int) -> _Object | None:
        if self._low(at) in word_list("any"):
            end = self._skip(at + 1, "prepositions")
            return self._thing(end, kind=True) if end > at + 1 else None
        return self._thing(at, kind=True)

    def _verb(self, name: str, at: int) -> _Object | None:
        size = self._longest(f"{name}_with", at) or int(self._low(at) in word_list(name))
        if size and (rest := self._longest("rest", at + size)):
            return _Object(_OTHERS, at + size + rest) if self._ends(at + size + rest) else None
        but = self._longest("all_but", at + size) if size and name == "drop" else 0
        thing = self._thing(at + (size or 1) + but)
        if thing is None:
            return None
        with_particle = f"{self._low(at)} {self._low(thing.end)}" in word_list(f"{name}_with") and not but
        if with_particle and self._ends(thing.end + max(1, self._list_phrase(thing.end))):
            return thing
        is_bare = self._words(at, 2) in ("forget it", "forget that") and not self._before(at)
        if not size or not self._ends(thing.end) or (is_bare and thing.end == at + 2):
            return None  # "forget it" alone means nothing that is on offer
        return _Object(_OTHERS, thing.end) if but else thing

    def _declared(self, name: str, at: int) -> _Object | None:
        thing = self._thing(self._skip(at, "leads"))
        if thing is None or not thing.definite:
            return None
        end = self._skip(thing.end, "adverbs")
        lead = "is " if self._low(thing.end - 1).endswith("'s") else ""
        for size in range(_MOST_WORDS, -1, -1):
            said = (lead + self._words(end, size)).strip() in word_list(name)
            if said and end + size <= len(self._tokens) and self._ends(end + size):
                return _Object(thing.refs, end + size)
        return None

    def _bound(self, at: int) -> _Object | None:
        """All that lies beyond a bound: "nothing over 500 euros"."""
        if self._low(at) not in ("no", "nothing", "none"):
            return None
        end = at
        while end < len(self._tokens) and self._low(end) not in _CLAUSE | _SENTENCE:
            end += 1
        words = self._text[self._tokens[at].start : self._tokens[end - 1].end]
        refs = fitting_bound(words, self._items)
        return _Object(tuple(refs), end, definite=False) if refs else None

    # things

    def _mention_at(self, at: int) -> Mention | None:
        if at >= len(self._tokens):
            return None
        return next((one for one in self._mentions if one.start == self._tokens[at].start), None)

    def _thing(self, at: int, *, kind: bool = False) -> _Object | None:
        """The items that stand here as an object: pronoun, names in a row, or with `kind` all of a kind."""
        if self._low(at) in _IT and not self._mention_at(at):
            refs = self._before(at) or self._meant
            sure = len(refs) == 1 or (self._low(at) in _SEVERAL and refs)
            return _Object(refs, at + 1 + (self._low(at + 1) == "one")) if sure else None
        named: list[_Object] = []
        by_or = False
        while one := self._single(at, kind=kind):
            named.append(one)
            at = self._skip(one.end, "row")
            by_or |= at > one.end and self._low(at - 1) == "or" and self._single(at, kind=kind) is not None
            if at == one.end:
                break
        if not named or (by_or and not kind):
            return None
        refs = tuple(dict.fromkeys(ref for one in named for ref in one.refs))
        return _Object(refs, named[-1].end, all(one.definite for one in named))

    def _single(self, at: int, *, kind: bool) -> _Object | None:
        first = at
        while self._low(at) in _ARTICLES and not self._mention_at(at):
            at += 1
        articles = [self._low(n) for n in range(first, at)]
        mention = self._mention_at(at)
        if mention is None:
            return self._kind(at, only=articles[-1:] == ["the"] and not kind)
        end = self._end_of(mention)
        several = articles[:1] in (["all"], ["both"]) or is_plural(self._low(end - 1))
        refs = mention.refs or (mention.options if several and mention.how == "named" else ())
        definite = not kind or not _POINTING.isdisjoint((*articles[:1], self._low(at)))
        definite |= mention.how == "named" and len(refs) == 1 and mention.words[0].isupper()
        if not definite and (wider := self._kind(at)) and set(wider.refs) >= set(refs):
            return wider
        end += self._low(end) in ("one", "thing", "option", "idea")
        return _Object(refs, end, definite) if refs else None

    def _kind(self, at: int, *, only: bool = False) -> _Object | None:
        end = at
        while end < min(len(self._tokens), at + _MOST_WORDS):
            token = self._tokens[end]
            weak = not token.is_word or (is_weak(token.low) and token.low not in _THINGS)
            if weak or self._longest("tails", end) or (token.low in ("off", "out", "away") and end > at):
                break
            end += 1
        said = [*self._tokens[at:end]]
        if said and said[-1].low in _THINGS:
            said.pop()
        for words in (said, said[:-1] if said and is_plural(said[-1].low) else []):
            if not words or not all(token.terms for token in words):
                continue
            terms = [term for token in words for term in token.terms]
            amounts = amounts_of(" ".join(token.text for token in words))
            fit = [
                item.ref
                for item in self._items
                if (amounts and amounts <= amounts_in(item))
                or all(holds(known(item).told, term) for term in terms)
            ]
            if fit and len(fit) < max(2, len(self._items)) and (not only or len(fit) == 1):
                return _Object(tuple(fit), end, definite=False)
        return None

    def _end_of(self, mention: Mention) -> int:
        return next(
            (at for at, token in enumerate(self._tokens) if token.start >= mention.end), len(self._tokens)
        )

    def _before(self, at: int) -> tuple[str, ...]:
        """What was named last before a pronoun, unless as a part of something else ("the lid of the …")."""
        named = [one for one in self._mentions if one.end <= self._tokens[at].start and one.refs]
        if not named:
            return ()
        start = self._starts[named[-1].start]
        part = self._low(start - 1) in ("of", "on", "in", "inside") and not is_weak(self._low(start - 2))
        return () if part else named[-1].refs

    # ends

    def _ends(self, at: int) -> bool:
        while at < len(self._tokens):
            word = self._low(at)
            if word in _SENTENCE or self._joins(at):
                return not (word in ("as", "so") and self._low(at + 1) in ("long", "much", "far"))
            size = self._longest("tails", at) or self._list_phrase(at)
            if not size:
                return word in word_list("subjects")
            at += size
        return True

    def _list_phrase(self, at: int) -> int:
        """How many words of "off the list", "from our options" stand here."""
        end = at + self._longest("list_leads", at)
        if end > at and self._low(end) in word_list("list_articles"):
            end += 1 + (self._low(end + 2) in word_list("lists"))
        return end + 1 - at if end > at and self._low(end) in word_list("lists") else 0
