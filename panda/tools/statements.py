"""What a query states about its user. Pure."""

import re

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
_JOINT = re.compile(r"(?:,|;)?\s+and\s+(?=(?:my|i|i'm|i am)\s)|;\s+", re.IGNORECASE)
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
_MOST_KEY_WORDS = 4
_PATTERNS: tuple[tuple[re.Pattern[str], str | None], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), relation)
    for pattern, relation in (
        (
            r"^my (?P<key>[a-z][\w' -]{0,40}?) (?:is|are|is now|are now|will be) (?P<value>.+)$",
            None,
        ),
        (r"^my (?P<key>[a-z][\w' -]{0,40}?) (?:has |have )?(?:just )?changed to (?P<value>.+)$", None),
        (rf"^(?:set|change|update) my (?P<key>{_SETTABLE}) to (?P<value>.+)$", None),
        (r"^my (?P<key>[a-z][\w' -]{0,40}?): (?P<value>.+)$", None),
        (r"^i(?:'m| am) (?:an? )?(?P<value>vegetarian|vegan|pescatarian|lactose intolerant)$", "diet"),
        (rf"^i have (?P<value>{_SOME} (?:[\w-]+ )?{_OWNED})$", "has"),
        (r"^i (?:mostly |mainly |usually )?use (?P<value>.+)$", "uses"),
        (r"^i was born (?:in|on) (?P<value>.+)$", "born"),
        (r"^i (?:now |currently )?live in (?P<value>.+)$", "location"),
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


def statement_values(query: str) -> list[tuple[str, str]]:
    """
    What a query states about its user, as keys and verbatim values.

    Args:
        query: The raw query.

    Returns:
        (relation, value) of each statement, in order; [] for questions, requests and anything else.

    >>> statement_values("My favorite hamster is Syrian.")
    [('favorite_hamster', 'Syrian')]
    >>> statement_values("Please remember that my budget is $900. I live in Oregon!")
    [('budget', '$900'), ('location', 'Oregon')]
    >>> statement_values("What is my budget?"), statement_values("I wonder whether my budget is $900?")
    ([], [])
    """
    found: list[tuple[str, str]] = []
    for sentence in _clauses(query):
        text = sentence.strip()
        while lead := _LEAD.match(text):
            text = text[lead.end() :]
        text = _REMEMBER.sub("", text, count=1)
        if is_question(text):
            continue
        for pattern, relation in _PATTERNS:
            match = pattern.match(text.rstrip(" .!…"))
            if match is None:
                continue
            value = _NOW.sub("", match["value"]).strip(" ,;:\"'“”")
            key = relation or _key(match["key"])
            if value and key and not _NOT_A_VALUE.match(value):
                found.append((key, value))
            break
    return list(dict.fromkeys(found))


def _key(words: str) -> str:
    if _NOT_A_KEY.search(words) or len(words.split()) > _MOST_KEY_WORDS:
        return ""
    return re.sub(r"\W+", "_", re.sub(r"['’]", "", words.lower())).strip("_")


def _clauses(query: str) -> list[str]:
    from_sentences = []
    for sentence in split_sentences(query):
        from_sentences += re.split(
            r"(?:,|;)?\s+and\s+(?=(?:my|i|i'm|i am)\s)|;\s+", sentence, flags=re.IGNORECASE
        )
    return from_sentences
