"""Whether what was told later replaces what was told before, or is about another thing. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Literal

import msgspec

from panda.language.claims import scan
from panda.language.languages import ALL_FOREIGN_WORDS, calendar_names
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs
from panda.language.words import FUNCTION_WORDS, alternatives, phrases, read_words, split_terms
from panda.messages.clauses import says_otherwise
from panda.messages.wording import is_past_form
from panda.models.regression import measure_probability, read_weights

_WORDS_FILE = "update_words.txt"
WEIGHTS = Path(__file__).with_name("updates.json")
_WORD = lazy_pattern(r"[^\W_]+(?:['-][^\W_]+)*")
_POSSESSIVE = re.compile(r"(?:'s|(?<=s)')\Z")
_BEGINS_WITH_PRONOUN = lazy_pattern(
    rf"\W*(?:(?:{alternatives(_WORDS_FILE, 'opens')})\b[, ]*)?(?:{alternatives(_WORDS_FILE, 'pronouns')})\b",
    re.IGNORECASE,
)
_CALENDAR = frozenset(calendar_names("months", "weekdays"))
_OF = read_words(_WORDS_FILE, "of")
_CONTRACTED = read_words(_WORDS_FILE, "contracted")
_VERBS = read_words("order_verbs.txt")
_PERSONS: tuple[Literal["first", "third"], ...] = ("first", "third")
_POSSESSIVES = {person: read_words(_WORDS_FILE, f"{person}_person") for person in _PERSONS}
_CHANGING = frozenset(term for word in read_words(_WORDS_FILE, "changes") for term in split_terms(word))
_MOST_COUNTED = 3
_MOST_BEGINNING = 4
_MOST_WORDS = 60
_MOST_BEFORE_OWNER = 3
"""Words behind "of" among which the owner stands: "of my big sister"."""
_MOST_OWNED = 4
"""Words behind a possessive that may be what is owned."""
LEAST_UPDATE = 0.6
"""Probability from which on a later statement replaces an earlier one."""


class UpdateWeights(msgspec.Struct, frozen=True):
    """updates.json: a logistic regression, written by `python -m bench.updates --fit`."""

    weights: tuple[float, ...]
    """Of a constant 1, then of the values of `describe_update` in their order."""


@dataclass(frozen=True)
class _Word:
    term: str
    is_telling: bool  # whether it is none of the commonest words
    is_value: bool  # whether it belongs to an amount, a date or a time
    is_owner: bool  # whether it has an 's
    is_of: bool  # whether it stands between what is owned and its owner
    is_verb: bool  # whether it is a past form or an imperative
    person: Literal["first", "third"] | None  # of a possessive: "my" or "her"


@dataclass(frozen=True)
class _Statement:
    text: str

    @cached_property
    def words(self) -> Sequence[_Word]:
        plain = plain_signs(self.text)
        spans = [(mention.start, mention.end) for mention in scan(plain)]
        words = []
        for match in _WORD.finditer(plain):
            bare = _POSSESSIVE.sub("", match[0])
            small = bare.lower()
            terms = split_terms(bare)
            is_common = not {small, match[0].lower()}.isdisjoint(FUNCTION_WORDS | ALL_FOREIGN_WORDS)
            is_date = small in _CALENDAR or any(map(str.isdigit, small))
            is_in_value = any(start < match.end() and match.start() < end for start, end in spans)
            words.append(
                _Word(
                    terms[-1] if terms else small,
                    is_telling=not is_common,
                    is_value=is_date or is_in_value,
                    is_owner=_POSSESSIVE.search(match[0]) is not None and small not in _CONTRACTED,
                    is_of=small in _OF,
                    is_verb=is_past_form(small) or small in _VERBS,
                    person=next((person for person in _PERSONS if small in _POSSESSIVES[person]), None),
                )
            )
        return words

    @cached_property
    def terms(self) -> frozenset[str]:
        """Terms of its telling words, those of values included."""
        return frozenset(word.term for word in self.words if word.is_telling)

    @cached_property
    def named(self) -> Sequence[str]:
        """Terms of its telling words that are no values, in order."""
        return [word.term for word in self.words if word.is_telling and not word.is_value]

    @cached_property
    def frame(self) -> Sequence[str]:
        """Terms of its first words that are no values, the commonest included."""
        return [word.term for word in self.words if not word.is_value][:_MOST_WORDS]

    @cached_property
    def values(self) -> frozenset[tuple[str, str]]:
        return frozenset(
            (mention.claim.kind, mention.claim.value) for mention in scan(plain_signs(self.text))
        )

    @cached_property
    def owned(self) -> Mapping[str, Sequence[str]]:
        """
        Terms of what each owner has: of "Grit's old car" those of "old" and "car" by that of "Grit", of "the
        car of Grit" that of "car".
        """
        owned: dict[str, Sequence[str]] = {}
        for place, word in enumerate(self.words):
            run = []
            for behind in self.words[place + 1 : place + 1 + _MOST_OWNED]:
                if not behind.is_telling or behind.is_value:
                    break
                run.append(behind)
            if word.is_owner and run and not run[0].is_verb:  # "Olga's moved"
                owned[word.term] = [behind.term for behind in run]
        for place, word in enumerate(self.words[:-1]):
            if word.is_of and place and self.words[place - 1].is_telling:
                named = (behind for behind in self.words[place + 1 : place + 1 + _MOST_BEFORE_OWNER])
                owner = next((behind for behind in named if behind.is_telling), None)
                if owner is not None:
                    owned.setdefault(owner.term, [self.words[place - 1].term])
        return owned

    def owned_by(self, person: Literal["first", "third"]) -> frozenset[str]:
        """Return the terms behind possessives of a person, as "car" behind "my"."""
        pairs = zip(self.words, self.words[1:], strict=False)
        return frozenset(
            following.term for word, following in pairs if word.person == person and following.is_telling
        )

    def is_of_another_than(self, answering: "_Statement", question: "_Statement") -> bool:
        """Return whether it is about another thing than a statement that may answer a question."""
        named = answering.terms | question.terms
        for owner, owned in self.owned.items():
            if owner in named and not _CHANGING.intersection(owned):
                there = {*answering.owned.get(owner, ()), *question.owned.get(owner, ())}
                if (there and there.isdisjoint(owned)) or not (there or owned[0] in named):
                    return True
        of_others = {owned[0] for owner, owned in self.owned.items() if owner not in named}
        of_user = answering.owned_by("first") | question.owned_by("first")
        if of_user & (of_others | self.owned_by("third")) - self.owned_by("first"):
            return True
        if self.begins_with_relative and self.words[1].term not in named | _CHANGING:
            return True
        told_apart = question.terms - self.terms
        return any(
            term not in named
            and told_apart.intersection((question.before.get(head), answering.before.get(head)))
            for head, term in self.before.items()
        )

    @property
    def begins_with_relative(self) -> bool:
        """Return whether it begins with what somebody else has, as "her cousin"."""
        return len(self.words) > 1 and self.words[0].person == "third" and self.words[1].is_telling

    @cached_property
    def before(self) -> Mapping[str, str]:
        """By term of a telling word, that of the telling word right before it."""
        pairs: dict[str, str] = {}
        for word, following in zip(self.words, self.words[1:], strict=False):
            if all(neighbour.is_telling and not neighbour.is_value for neighbour in (word, following)):
                pairs.setdefault(following.term, word.term)
        return pairs


@lru_cache(maxsize=512)
def _read(text: str) -> _Statement:
    """Return a statement or query, read once for all that it is compared with."""
    return _Statement(text)


def is_of_another(query: str, answer: str, candidate: str) -> bool:
    """
    Return whether a statement is about another thing than one that may answer a query.

    >>> is_of_another("Where is the red canoe?", "The red canoe is at sea.", "The old canoe is in the barn.")
    True
    >>> is_of_another("Where does Ida live?", "Ida lives in Graz.", "Ida's sister lives in Linz.")
    True
    >>> is_of_another("Where does Ida live?", "Ida lives in Graz.", "Ida's moved to Linz.")
    False
    """
    return _read(candidate).is_of_another_than(_read(answer), _read(query))


def is_of_others(query: str, statement: str) -> bool:
    """
    Return whether a statement tells of what somebody else has, where a query asks for the user's own.

    >>> is_of_others("When is my birthday?", "My mother's birthday is on 5 May.")
    True
    >>> is_of_others("When is my birthday?", "My birthday is on 14 May, Ida's birthday on 5 May.")
    False
    """
    words = _read(statement).words
    of_others = {
        following.term for word, following in pairwise(words) if word.is_owner and following.is_telling
    }
    asked = _read(query).owned_by("first")
    return not (asked & of_others).issubset(_read(statement).owned_by("first"))


def asks_for_past(query: str) -> bool:
    """
    Return whether a query asks how things were before.

    >>> asks_for_past("Where did Beppe live before?"), asks_for_past("Where does Beppe live?")
    (True, False)
    """
    return phrases(_WORDS_FILE, "asks_past").search(plain_signs(query)) is not None


def begins_with_pronoun(statement: str) -> bool:
    """
    Return whether a statement begins with what stands for something that was named before.

    >>> begins_with_pronoun("And it costs 4 now."), begins_with_pronoun("The tent costs 4.")
    (True, False)
    """
    return _BEGINS_WITH_PRONOUN.match(plain_signs(statement)) is not None


def describe_update(query: str, earlier: str, later: str) -> list[float]:
    """
    Return what the probability is worked out from that a later statement replaces an earlier one.

    Shares of the query's words that each has; words that the later one has before the last of those that both
    have; whether it has a word of change, turns something, begins with a pronoun, adds something; whether it
    lacks a value where the earlier one has one, or has one of another kind; whether it is about another
    thing; how alike both are if it lacks a word by which the query names the thing, else how much of their
    beginning is the same; whether its first word goes on from the earlier one; whether it lacks no word of
    the query that the earlier one has.
    """
    asked = _read(query)
    before = _read(earlier)
    after = _read(later)
    size = max(1, len(asked.terms))
    shared = frozenset(before.named) & frozenset(after.named)
    last = max((place for place, term in enumerate(after.named) if term in shared), default=0)
    new = [term for term in after.named[:last] if term not in shared]
    plain = plain_signs(later)
    is_lost = bool((asked.terms & before.terms) - after.terms)
    frames = before.frame, after.frame
    alike = SequenceMatcher(None, *frames, autojunk=False).ratio()
    begins = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*frames, strict=False)))
    first = next((word.term for word in after.words if word.is_telling), "")
    kinds = {kind for kind, _ in before.values}
    return [
        len(asked.terms & before.terms) / size,
        len(asked.terms & after.terms) / size,
        float(min(_MOST_COUNTED, len(new))),
        float(phrases(_WORDS_FILE, "changes").search(plain) is not None),
        float(says_otherwise(later)),
        float(begins_with_pronoun(later)),
        float(phrases(_WORDS_FILE, "adds").search(plain) is not None),
        float(bool(before.values) and not after.values),
        float(any(kind not in kinds for kind, _ in after.values)),
        float(after.is_of_another_than(before, asked)),
        alike if is_lost else 0.0,
        0.0 if is_lost else min(begins, _MOST_BEGINNING) / _MOST_BEGINNING,
        float(first in before.terms),
        float(not is_lost),
    ]


def measure_update(query: str, earlier: str, later: str) -> float:
    """Return how likely a later statement replaces what an earlier one says to a query, 0 to 1."""
    weights = read_weights(WEIGHTS, UpdateWeights).weights
    return measure_probability(weights, describe_update(query, earlier, later))
