"""What a message tells, word for word; a key and a value only where they are sure. Pure."""

import re
from collections.abc import Iterator, Sequence

from panda.language.numbers import NUMBER_WORDS
from panda.language.reading import Clause, Statement, overall_mood
from panda.language.sentences import split_sentences
from panda.language.text_front import plain_signs
from panda.language.words import FUNCTION_WORDS, NOT_COUNTED, read_words, split_words

_LEAD = re.compile(
    r"(?:(?:hi|hello|hey|ok|okay|well|so|also|and|but|oh|please|by the way|btw|fyi|for the record|just|"
    r"since|as|because|given that|now that|that)\b[,:!]?\s+)+",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"(?:(?:please|can you|could you|will you)\s+)*(?:remember|note(?: down)?|keep in mind|bear in mind|"
    r"make a note|(?:do not|don't|never) forget|save|write down|jot down|put down)(?:,? please)?"
    r"(?:\s+(?:that|this:?)\s|\s*[:,]\s*)",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"(?:remember|(?:do not|don't|never) forget|note)\s+(?=(?:my|our|the)\b)", re.IGNORECASE)
_AFRESH = re.compile(
    r"(?:(?:actually|correction|sorry|oops|no|wait|scratch that|i meant|i was wrong|my mistake)\b[,:.]?\s+)+",
    re.IGNORECASE,
)
_TURNED = re.compile(
    r"^not\b|\b(?:no longer|any ?more|after all|instead|in the end|from now on|as (?:i|we) (?:thought|said)|"
    r"(?:i|we) (?:was|were) wrong|(?:has|have|had|'ve|'s|is|are|was|were|been|i|we) (?:just |now )?(?:moved|"
    r"changed|switched|postponed|rescheduled|renamed))\b",
    re.IGNORECASE,
)
_JOINT = re.compile(
    r"(?:[,;]|(?<!\s))\s++(?:and|but|so)\s+(?=(?:my|our|i|we|he|she|it|they|there|the)\b)|"
    r"(?:[,;]|(?<!\s))\s++because\s+(?!of\b)|"
    r";\s+|,\s+(?=(?:my|our|i|we|which|what|where|who|how|when|can|could|do|does|is|are|should|any)\b)",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"(?:(?<!\d),|,(?!\d))\s|\s(?:because|but|since|so|when|where|which|who|while|until|after|though)\s|"
    r"\s[–—-]\s|\s\(",
)
_NOW = re.compile(
    r"^(?:now|currently)\s+|\s+(?:now|already|these days|from now on|instead|after all|in the end|too|"
    r"last \w+|yesterday|today|any ?more)$",
    re.IGNORECASE,
)
_MOMENT = re.compile(
    r"\b(?:today|tonight|yesterday|this (?:morning|evening|week)|at the moment|(?:right|for) now)\b",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(
    r"(?:not|no|never|n't|unknown|unclear|too|very|so|going|what|why|how|it|that|this|these|those|them|to|your?|"
    r"an?|the (?:first|second|third|last|other|cheaper) one)\b",
    re.IGNORECASE,
)
_HEARSAY = re.compile(r"\b(?:my|our|the|that|who|which|of|says?|said|thinks?|is|was)\b")
_SPECIFIC = re.compile(r"[^\W\d_a-z]|\d|[$€£@]|://")
_FINITE = re.compile(
    r"\b(?:i|we|he|she|they|it|you|my|our|is|are|was|were|has|have|had|will|can|could|must|should|[a-z]+ed)\b",
    re.IGNORECASE,
)
"""In what a whole clause has, and a mere addition to a question has not."""
_JOINED = re.compile(r"[,;:]|\b(?:and|but|so|because)\b")
_MOST_WORDS = 6

_OFTEN = r"(?: (?:now|currently|still|also|just|really|mostly|usually|absolutely))*"
_ME = rf"(?:i|we)(?:'m|'re|'ve|'d| am| are| have)?{_OFTEN}"
_ONE_OF = r"(?:an?|one|two|three|four|five|six|\d+)"
_OWNED = (
    r"(?:cat|dog|hamster|rabbit|pet|horse|kid|child|children|son|daughter|sister|brother|twin|bike|car|van|"
    r"boat)s?"
)
_LISTED: tuple[tuple[str, str], ...] = (
    ("allergic_to", rf"{_ME} allergic to (?P<value>.+)"),
    ("has", rf"{_ME}(?: have| got)? (?P<value>{_ONE_OF} (?:[\w-]+ )?{_OWNED})"),
    ("owns", rf"{_ME} own (?P<value>.+)"),
    ("likes", rf"{_ME} (?:like|love|enjoy) (?P<value>.+)"),
    ("dislikes", rf"{_ME} (?:dislike|hate|can't stand|(?:don't|do not) like) (?P<value>.+)"),
    ("prefers", rf"{_ME} prefer (?P<value>.+)"),
    ("uses", rf"{_ME} use (?P<value>.+)"),
)
"""Relations that may have several values."""
_GONE: tuple[tuple[str, str], ...] = (
    ("allergic_to", r"(?:i'm|we're|i am|we are) (?:no longer|not) allergic to (?P<value>.+)"),
    ("has", rf"(?:i|we) no longer have (?P<value>.+)|{_ME} sold (?:my|our|the) (?P<sold>.+)"),
    ("owns", r"(?:i|we) no longer own (?P<value>.+)"),
    (
        "likes",
        r"(?:i|we) (?:no longer (?:like|love|enjoy) (?P<value>.+)|don't like (?P<sold>.+) any ?more)",
    ),
    ("uses", r"(?:i|we) (?:no longer use (?P<value>.+)|(?:don't|do not) use (?P<sold>.+) any ?more)"),
)
_KEY = r"(?P<key>(?:[\w'-]+ ){0,3}?[\w-]+)"
_SINGLE: tuple[tuple[str | None, str], ...] = (
    ("name", r"(?:call me|my name's|i am called|i'm called) (?P<value>.+)"),
    ("born", r"i was born (?:in|on) (?P<value>.+)"),
    ("location", rf"{_ME} (?:live|living|based|located) in (?P<value>.+)|{_ME} moved to (?P<moved>.+)"),
    (
        "diet",
        r"(?:i'm|i am|i've become|i became) (?:an? )?"
        r"(?P<value>vegetarian|vegan|pescatarian|lactose intolerant)",
    ),
    ("job", r"i (?:now )?(?:work|am working) as (?:an? )?(?P<value>.+)"),
    ("employer", r"i (?:now )?(?:work|am working) (?:at|for) (?P<value>.+)"),
    (None, rf"(?:my|our|the) {_KEY} (?:is|are) (?:now )?(?P<value>.+)"),
    (None, rf"(?:my|our|the) {_KEY} (?:has |have )?(?:just |now )?changed to (?P<value>.+)"),
    (None, rf"(?:(?:i|we)(?:'ve| have)? )?(?:set|changed?|updated?) (?:my|our|the) {_KEY} to (?P<value>.+)"),
    (None, rf"(?:my |our )?{_KEY}: (?P<value>.+)"),
    (None, r"(?P<key>(?:favou?rite|preferred) (?:[\w'-]+ ){0,2}[\w-]+) (?:is|are) (?P<value>.+)"),
)
_OF_OTHERS = (
    rf"(?:the )?(?P<entity>[A-Z][\w.&-]*(?: [A-Z\d][\w.&-]*)*)'s? {_KEY} (?:is|are) (?:now )?(?P<value>.+)"
)


def find_statements(query: str, clauses: Sequence[Clause]) -> list[Statement]:
    """
    What a message tells.

    Returns:
        Each sentence that tells, once for each key that it surely gives, else once without. Of clauses that
        ask or order only what has a key, or what is to be remembered. Talk of the moment is left out.

    >>> told = "My dog is tired. I live in Oregon. Thanks!"
    >>> [(one.key, one.value) for one in find_statements(told, [Clause(told, "tells")])]
    [(None, None), ('location', 'Oregon')]
    """
    found: dict[Statement, None] = {}
    only_tells = overall_mood(clauses) == "tells"
    for part, tells in _parts(" ".join(query.split()), clauses):
        for sentence in split_sentences(part):
            if sentence.endswith("?") or not (tells or _REMEMBER.match(plain_signs(sentence))):
                found |= dict.fromkeys(_keyed(sentence))
            elif not is_talk(sentence) and (only_tells or _FINITE.search(plain_signs(sentence))):
                unkeyed = Statement(sentence, action="corrects" if says_otherwise(sentence) else None)
                found |= dict.fromkeys(list(_keyed(sentence)) or [unkeyed])
    return list(found)


def _parts(query: str, clauses: Sequence[Clause]) -> Iterator[tuple[str, bool]]:
    """A message in parts that tell or do not, as they stand; what joins clauses that tell stays in them."""
    runs: list[tuple[int, int, bool]] = []
    place = 0
    for clause in clauses:
        text = " ".join(clause.text.split())
        start = query.find(text, place)
        if start < 0:
            continue
        place = start + len(text)
        tells = clause.mood == "tells"
        if runs and runs[-1][2] and tells:
            runs[-1] = (runs[-1][0], place, True)
        else:
            runs.append((start, place, tells))
    for start, end, tells in runs:
        yield query[start:end], tells


def is_talk(sentence: str) -> bool:
    """
    Whether a sentence is only talk of the moment: thanks, greetings, approval.

    >>> [is_talk(said) for said in ("Thanks, looks good!", "ok, transferred it this morning", "Good morning")]
    [True, False, True]
    """
    return {word.lower() for word in split_words(plain_signs(sentence))} <= FUNCTION_WORDS | read_words(
        "talk_words.txt"
    )


def _keyed(sentence: str) -> Iterator[Statement]:
    start = 0
    plain, turned = plain_signs(sentence), says_otherwise(sentence)
    for end in [*(match.span() for match in _JOINT.finditer(plain)), (len(plain), len(plain))]:
        first, last = start, end[0]
        start = end[1]
        if plain[first:last].endswith("?"):
            continue
        for lead in (_REMEMBER, _LEAD, _AFRESH, _LOOSE):
            match = lead.match(plain, first, last)
            first = match.end() if match else first
        one = _statement(sentence, plain, first, last, turned=turned)
        if one is not None:
            yield one


def says_otherwise(sentence: str) -> bool:
    """
    Whether a sentence says that something is otherwise than was said.

    >>> says_otherwise("not Tom after all, his sister comes"), says_otherwise("Tom comes")
    (True, False)
    """
    plain = _LEAD.sub("", plain_signs(sentence), count=1)
    return _AFRESH.match(plain) is not None or _TURNED.search(plain) is not None


def _statement(sentence: str, plain: str, first: int, last: int, *, turned: bool) -> Statement | None:
    part = plain[first:last].rstrip(" .!…")

    def said(match: re.Match[str]) -> str | None:
        name = next(n for n in ("value", "moved", "sold") if n in match.groupdict() and match[n] is not None)
        begin = first + match.start(name)
        end = _ENDS.search(part, match.start(name)) if " are " not in part else None
        value = sentence[begin : first + (end.start() if end else len(part))]
        value = _NOW.sub("", _NOW.sub("", value)).strip(" ,;:\"'“”")
        return value if value and len(value.split()) <= _MOST_WORDS else None

    for key, pattern in _GONE:
        if (match := _match(pattern, part)) and (value := said(match)):
            return Statement(sentence, key, _article_less(value), action="removes")
    for key, pattern in _LISTED:
        if match := _match(pattern, part):
            value = said(match)
            counted = key in ("has", "owns")
            if value is None or _MOMENT.search(part) or (_NO_VALUE.match(value) and not counted):
                return None
            values = re.split(r",\s*(?:and\s+)?|\s+(?:and|or)\s+", value) if key == "allergic_to" else [value]
            return Statement(sentence, key, tuple(values), action="adds")
    for name, pattern in _SINGLE:
        if (match := _match(pattern, part)) and (value := said(match)):
            single = name or _attribute(match["key"], value)
            if single and not _NO_VALUE.match(value):
                return Statement(sentence, single, value, action="corrects" if turned else None)
    match = re.fullmatch(_OF_OTHERS, part)  # its capitals count
    if match and (value := said(match)) and (single := _attribute(match["key"], value)):
        entity = sentence[first + match.start("entity") : first + match.end("entity")]
        if entity.lower() not in FUNCTION_WORDS and not _NO_VALUE.match(value):
            return Statement(sentence, single, value, entity, "corrects" if turned else None)
    return None


def _match(pattern: str, part: str) -> re.Match[str] | None:
    return re.fullmatch(pattern, part, re.IGNORECASE)


def _attribute(words: str, value: str) -> str | None:
    lower = words.lower().replace("favourite", "favorite")
    own = lower.split()[0] in ("favorite", "preferred")
    is_name = lower == "name" and len(value.split()) <= 3
    if not own and not is_name:
        named = lower.split()[-1] in read_words("attributes.txt") and _SPECIFIC.search(value)
        if not named or _HEARSAY.search(lower):
            return None
    return re.sub(r"\W+", "_", lower.replace("'", "")).strip("_")


def split_clauses(sentences: Sequence[str]) -> list[str]:
    """
    The same sentences; one that joins two statements as two.

    >>> split_clauses(["I use Python and my dog is brown, so we walk.", "Why?"])
    ['I use Python', 'my dog is brown', 'we walk.', 'Why?']
    """
    return [part for sentence in sentences for part in _JOINT.split(sentence)]


def says_only(sentence: str, key: str) -> bool:
    """
    Whether a sentence tells the value of a key and nothing else.

    >>> says_only("I live in Lisbon.", "location"), says_only("I live in Lisbon and Tom is ill", "location")
    (True, False)
    """
    return _JOINED.search(sentence) is None and [one.key for one in _keyed(sentence)] == [key]


def _article_less(value: str) -> str:
    return re.sub(r"^(?:an?|the|my|our|any)\s+", "", value, flags=re.IGNORECASE)


_PASSING = NOT_COUNTED | read_words("conversation_words.txt", "passing")
_BEFORE_VERBS = read_words("conversation_words.txt", "before_verbs")
_THING_ENDS = NOT_COUNTED | read_words("marks.txt", "times")
_SELF = re.compile(r"(?:i|we)(?=['\s])", re.IGNORECASE)
_HABIT_WORD = re.compile(r"\s*('?[^\W_]+(?:['-][^\W_]+)*)")
_COUNTED = re.compile(rf"(?:an?|the|my|our|some|no|many|several|few|{NUMBER_WORDS})(?![\w'-])", re.IGNORECASE)


def read_habit(sentence: str) -> tuple[str, str] | None:
    """
    A key made of the verb and the thing, and what the sentence says behind the verb; None if it is no habit.

    >>> read_habit("I drive an old Volvo V70"), read_habit("We have two sheds")
    (('drive_v70', 'an old Volvo V70'), ('have_sheds', 'two sheds'))
    >>> read_habit("I want the blue one"), read_habit("I can't swim"), read_habit("It rains")
    (None, None, None)
    """
    plain = plain_signs(sentence)
    said = _SELF.match(plain)
    place, verb = said.end() if said else len(plain), ""
    while (word := _HABIT_WORD.match(plain, place)) and not verb:
        rest = plain[word.end() :].lstrip()
        place = word.end()
        if word[1].lower() not in _BEFORE_VERBS or (word[1].lower() == "have" and _COUNTED.match(rest)):
            verb = word[1].lower()
    rest = sentence[place:].strip()
    thing = (
        _thing_of(plain[place:].lower())
        if verb == "have" or (verb.isalpha() and verb not in _PASSING)
        else None
    )
    return (f"{verb}_{thing}", rest) if thing else None


def _thing_of(words: str) -> str | None:
    """The noun that words begin with: of "an old Volvo V70 with a dent" the last word before "with"."""
    thing = None
    for match in re.finditer(r"[^\W_]+(?:['-][^\W_]+)*|[^\w\s'-]", words):
        is_end = not match[0][0].isalnum() or match[0] in _THING_ENDS
        if thing and is_end:
            break
        thing = None if is_end else match[0].rpartition("-")[2]
    return thing
