"""What a query states about its user, or of somebody or something that it names. Pure."""

import re
from dataclasses import dataclass
from typing import Literal

from panda.documents.questions import is_question
from panda.documents.sentences import split_sentences

_LEAD = re.compile(
    r"^(?:hi|hello|hey|ok|okay|well|so|also|and|but|please|by the way|btw|fyi)\b[,!]?\s+", re.IGNORECASE
)
_REMEMBER = re.compile(
    r"^(?:(?:please|can you|could you)\s+)*(?:remember|note|keep in mind|don't forget|save)"
    r"(?:\s+that)?[:,]?\s+",
    re.IGNORECASE,
)
_NOT_A_VALUE = re.compile(
    r"^(?:not|no|never|n't|unknown|unclear|too|very|so|going|what|why|how)\b", re.IGNORECASE
)
_NOT_A_KEY = re.compile(
    r"\b(?:my|that|who|which|says?|said|thinks?|question|problem|point|guess)\b", re.IGNORECASE
)
_NOW = re.compile(r"^(?:now|currently)\s+|\s+(?:now|these days|last \w+|yesterday|today)$", re.IGNORECASE)
_SOME = r"(?:an?|one|two|three|four|five|six|\d+)"
_OWNED = r"(?:cat|dog|hamster|pet|kid|son|daughter|sister|brother|bike|car)s?"
_SETTABLE = r"(?:(?:favou?rite|preferred) [\w' -]{1,40}?|budget|location|city|address|name)"
_MOMENT = re.compile(
    r"\b(?:today|tonight|yesterday|this (?:morning|evening|week)|at the moment|(?:right|for) now)\b",
    re.IGNORECASE,
)
_JOINT = re.compile(
    r"[,;]?\s+(?:and|but|so)\s+(?=(?:my|our|i|we|he|she|it|they|there)\b)|[,;]?\s+because\s+(?!of\b)|;\s+",
    re.IGNORECASE,
)
_SPECIFIC = re.compile(r"[A-Z\d$€£]|://")
_LASTING = re.compile(rf"^{_SETTABLE}$", re.IGNORECASE)
_KEEPS = frozenset({"location", "name", "born", "diet", "allergic_to", "employer", "job"})
_NO_ENTITY = re.compile(r"it|that|this|what|who|there|here|let|s?he|where|how", re.IGNORECASE)
_ENTITY = r"(?:[Tt]he )?(?P<entity>[A-Z][\w.&-]*(?: [A-Z\d][\w.&-]*)*)"
_OF_OTHERS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"^{_ENTITY}['’]s? (?P<key>[A-Za-z][\w -]{{0,40}}?) (?:is|are|was) (?P<value>.+)$",
        rf"^[Tt]he (?P<key>[A-Za-z][\w -]{{0,40}}?) of {_ENTITY} (?:is|are|was) (?P<value>.+)$",
    )
)
_MOST_KEY_WORDS = 4
_PATTERNS: tuple[tuple[re.Pattern[str], str | None], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), relation)
    for pattern, relation in (
        (
            r"^(?:my|our) (?P<key>[a-z][\w' -]{0,40}?) (?:is|are|is now|are now|will be) (?P<value>.+)$",
            None,
        ),
        (r"^(?P<key>(?:favou?rite|preferred) [\w' -]{1,40}?)(?:: | is | are )(?P<value>.+)$", None),
        (r"^my (?P<key>[a-z][\w' -]{0,40}?) (?:has |have )?(?:just )?changed to (?P<value>.+)$", None),
        (rf"^(?:set|change|update) my (?P<key>{_SETTABLE}) to (?P<value>.+)$", None),
        (r"^my (?P<key>[a-z][\w' -]{0,40}?): (?P<value>.+)$", None),
        (r"^i(?:'m| am) (?:an? )?(?P<value>vegetarian|vegan|pescatarian|lactose intolerant)$", "diet"),
        (rf"^(?:i|we) have (?P<value>{_SOME} (?:[\w-]+ )?{_OWNED})$", "has"),
        (r"^i (?:mostly |mainly |usually )?use (?P<value>.+)$", "uses"),
        (r"^i was born (?:in|on) (?P<value>.+)$", "born"),
        (r"^(?:i|we) (?:now |currently |still )?live in (?P<value>.+)$", "location"),
        (r"^i(?:'m| am) (?:now |currently )?(?:from|based in|located in) (?P<value>.+)$", "location"),
        (r"^(?:i|we)(?:'ve| have)? (?:just )?moved to (?P<value>.+)$", "location"),
        (r"^(?:call me|my name's|i am called|i'm called) (?P<value>.+)$", "name"),
        (r"^i (?:really |would |'d )?prefer (?P<value>.+)$", "prefers"),
        (r"^i (?:really |absolutely )?(?:like|love|enjoy) (?P<value>.+)$", "likes"),
        (
            r"^i (?:really |absolutely )?(?:dislike|hate|can't stand|do not like|don't like) (?P<value>.+)$",
            "dislikes",
        ),
        (r"^i(?:'m| am) allergic to (?P<value>.+)$", "allergic_to"),
        (r"^i (?:work|am working) as (?:an? )?(?P<value>.+)$", "job"),
        (r"^i (?:work|am working) (?:at|for) (?P<value>.+)$", "employer"),
        (r"^i (?:own|have got|already have) (?:an? )?(?P<value>.+)$", "owns"),
    )
)


@dataclass(frozen=True)
class Stated:
    """One thing that a query states."""

    relation: str
    """Key, of the user's words."""
    value: str
    """Verbatim."""
    entity: str | None = None
    """Whom or what it is about, verbatim; None for the user."""
    sure: bool = True
    """Whether it is surely meant to last; else it may be talk of the moment."""

    @property
    def kind(self) -> Literal["preference", "fact"]:
        """A preference is the user's own."""
        return "preference" if self.entity is None else "fact"


def find_statements(query: str) -> list[Stated]:
    """
    What a query states, sure or not.

    Args:
        query: The raw query.

    Returns:
        Each statement once, in order; [] for questions, requests and anything else.

    >>> [(one.relation, one.value, one.sure) for one in find_statements("My dog is tired. I live in Oregon.")]
    [('dog', 'tired', False), ('location', 'Oregon', True)]
    >>> find_statements("Remember that Acme's CEO is Jane Doe")
    [Stated(relation='ceo', value='Jane Doe', entity='Acme', sure=True)]
    """
    found: dict[tuple[str | None, str, str], Stated] = {}
    for sentence in split_clauses(query):
        text = sentence.strip()
        while lead := _LEAD.match(text):
            text = text[lead.end() :]
        text, asked = _REMEMBER.subn("", text, count=1)
        if is_question(text):
            continue
        one = _own(text.rstrip(" .!…")) or _of_other(text.rstrip(" .!…"))
        if one is not None:
            kept = Stated(one.relation, one.value, one.entity, sure=one.sure or bool(asked))
            found.setdefault((kept.entity, kept.relation, kept.value), kept)
    return list(found.values())


def statement_values(query: str) -> list[tuple[str, str]]:
    """
    What a query states about its user, surely meant to last, as keys and verbatim values.

    Args:
        query: The raw query.

    >>> statement_values("My favorite hamster is Syrian.")
    [('favorite_hamster', 'Syrian')]
    >>> statement_values("Please remember that my budget is $900. I live in Oregon!")
    [('budget', '$900'), ('location', 'Oregon')]
    >>> statement_values("What is my budget?"), statement_values("I wonder whether my budget is $900?")
    ([], [])
    """
    return [
        (one.relation, one.value) for one in find_statements(query) if one.sure and one.kind == "preference"
    ]


def _own(text: str) -> Stated | None:
    for pattern, relation in _PATTERNS:
        match = pattern.match(text)
        if match is None:
            continue
        value = _NOW.sub("", match["value"]).strip(" ,;:\"'“”")
        key = relation or _key(match["key"])
        if not value or not key or _NOT_A_VALUE.match(value):
            return None
        lasts = relation in _KEEPS or not _MOMENT.search(text)
        clear = relation is not None or _LASTING.match(match["key"]) or _SPECIFIC.search(value)
        return Stated(key, value, sure=bool(lasts and clear))
    return None


def _of_other(text: str) -> Stated | None:
    for pattern in _OF_OTHERS:
        match = pattern.match(text)
        if match is None or _NO_ENTITY.fullmatch(match["entity"]):
            continue
        value, key = _NOW.sub("", match["value"]).strip(" ,;:\"'“”"), _key(match["key"])
        if value and key and not _NOT_A_VALUE.match(value):
            return Stated(key, value, match["entity"], sure=False)
    return None


def _key(words: str) -> str:
    if _NOT_A_KEY.search(words) or len(words.split()) > _MOST_KEY_WORDS:
        return ""
    return re.sub(r"\W+", "_", re.sub(r"['’]", "", words.lower())).strip("_")


def split_clauses(query: str) -> list[str]:
    """
    The sentences of a query; one that joins two statements as two.

    >>> split_clauses("I use Python and my dog is brown, so we walk. Why?")
    ['I use Python', 'my dog is brown', 'we walk.', 'Why?']
    """
    return [clause for sentence in split_sentences(query) for clause in _JOINT.split(sentence)]
