"""What a message tells, clause by clause and word for word; a key only where it is sure. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile

from panda.language.languages import ALL_FOREIGN_WORDS
from panda.language.numbers import NUMBER_WORDS
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs, split_sentences
from panda.language.words import FUNCTION_WORDS, NOT_COUNTED, alternatives, phrases, read_words, split_words
from panda.messages.matching import is_foreign
from panda.messages.questions import is_question
from panda.messages.reading import Change, Clause, Mood, Statement

SURE = 0.75
"""How probable it must be that a clause tells for it to be kept and nothing else."""
_SURE_OF_QUESTION_WORD = 0.95
"""The same of one that begins as a question does."""
_MAY_TELL = 0.25
"""From which on a message that rather asks is kept as well, if it corrects something."""
_MAYBE = 0.3
"""How probable it must be that a clause tells where it gives a key."""
_APART = 0.6
"""How probable each mood is of two clauses that are told apart."""
_SENTENCE_CHARS = 400
_WORD_CHARS = 24
_MOST_JOINTS = 12
_LEAST_WORDS = 3
_JOINT = lazy_pattern(
    r"(?P<mark>[,;:–—…]|\s-)?\s+"
    r"(?P<joins>(?:(?:and|also|btw|by the way|oh|but|plus|ps|then)\b[\s,]*)+)?(?P<so>so\s+)?(?P<next>[\w']+)",
    re.IGNORECASE,
)
_END = lazy_pattern(r"(?<![.!?…\s])[.!?…]++\s+(?=[a-z])")
_PASTED_LINES = 3
_STRUCTURE = lazy_pattern(r"#{1,6} |```|~~~|\|.*\|")
_SHORT = read_words("abbreviations.txt", "never_last") | read_words("abbreviations.txt", "sometimes_last")
_WH, _AUX, _PERSON = (alternatives("order_words.txt", name) for name in ("wh", "aux", "person"))
_BEGINS = lazy_pattern(rf"(?:{_WH}(?:'?s)?|{_AUX} {_PERSON})\b", re.IGNORECASE)
_STARTS_WH = lazy_pattern(rf"{_WH}\b", re.IGNORECASE)
_STARTS_WITH_VERB = lazy_pattern(r"(?:is|are|isn't|aren't|does|doesn't)\s", re.IGNORECASE)


Moods = Mapping[str, Mapping[Mood, float]]


@dataclass(frozen=True)
class _Joint:
    left: str
    right: str
    is_new: bool  # whether what stands behind it is a matter of its own
    is_loose: bool  # whether a comma or "so" may join a mere reason
    is_bare: bool  # whether neither mark nor word stands there


def _joints(sentence: str) -> Iterator[_Joint]:
    plain = plain_signs(sentence) if len(sentence) <= _SENTENCE_CHARS else ""
    for match in _JOINT.finditer(plain):
        is_marked = bool(match["mark"] or match["joins"] or match["so"])
        begins = _BEGINS.match(plain, match.start("next")) is not None
        left = sentence[: match.start()].strip()
        right = sentence[match.start("next") :]
        begins &= min(len(left.split()), len(right.split())) >= _LEAST_WORDS
        if not _is_opening(left) and (is_marked or begins):
            is_new = (match["joins"] or "").strip(" ,").lower() not in ("", "and", "but")
            is_loose = bool(match["mark"] or match["so"]) and not match["joins"]
            yield _Joint(left, right, is_new, is_loose, not is_marked)


def _is_opening(text: str) -> bool:
    """Return whether a text only opens what stands behind it, as "oops no", or any one word, does."""
    return len(text.split()) < 2 or is_talk(_AFRESH.sub("", plain_signs(text)))


def typed_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, also of one that is typed without capitals."""
    for sentence in split_sentences(text):
        start = 0
        for match in _END.finditer(sentence):
            word = re.split(r"\W", sentence[max(start, match.start() - _WORD_CHARS) : match.start()])[-1]
            if len(word) > 1 and word.lower() not in _SHORT:
                yield sentence[start : match.end()].rstrip()
                start = match.end()
        yield sentence[start:]


def clause_texts(query: str) -> list[str]:
    """
    Return all that may be a clause of a message: its sentences, and what stands on both sides of each joint.
    """
    texts: dict[str, None] = {}
    for sentence in typed_sentences(query):
        texts[sentence] = None
        for joint in list(_joints(sentence))[:_MOST_JOINTS]:
            texts |= {joint.left: None, joint.right: None}
    return list(texts)


def read_clauses(query: str, moods: Moods) -> tuple[list[Clause], list[str]]:
    """
    Return the clauses of a message, and those that tell something to be kept; one that may ask as well asks,
    too. A sentence is two clauses where both sides of a joint clearly do different things, by the
    probabilities in *moods*. What a comma joins to a question or an order is a mere reason, unless it gives a
    value.
    """
    clauses: list[Clause] = []
    statements: list[str] = []
    may_tell = not is_pasted(query)

    def surest(joint: _Joint) -> float:
        return min(max(moods[text].values()) for text in (joint.left, joint.right))

    for sentence in typed_sentences(query):
        own = moods.get(sentence, {"asks": 1.0})
        joints = [joint for joint in _joints(sentence) if joint.left in moods and joint.right in moods]
        best = max((joint for joint in joints if _is_apart(joint, moods)), key=surest, default=None)
        if best and own.get("tells", 0.0) >= max(SURE, surest(best)):  # its parts are less sure than it is
            best = None
        if best is None and max(own.values()) < SURE:  # its parts are surer of what they do than it is
            own = next(
                (combined for combined in (_told_by_parts(joint, moods) for joint in joints) if combined), own
            )
        texts = (best.left, best.right) if best else (sentence,)
        for text in texts:
            read = moods.get(text, own) if best else own
            mood = best_mood(read)
            sure = read.get("tells", 0.0)
            is_own = not best or (text == best.left and not best.is_loose) or best.is_new
            asks_by_word = sure < _SURE_OF_QUESTION_WORD and _STARTS_WH.match(text)
            asks_by_verb = sure < SURE and _STARTS_WITH_VERB.match(text)
            if mood == "tells" and (asks_by_word or asks_by_verb):
                mood = "asks"
                sure = 0.0
            if sure >= _MAYBE and not text.endswith("?") and any(_keyed(text)):
                mood = "tells"
                sure = 1.0
                is_own = True
            is_sure = sure >= SURE
            may_be_kept = is_sure or len(text.split()) >= _LEAST_WORDS
            corrects = text == query.strip() and says_otherwise(text)
            tells = mood == "tells" or (mood == "asks" and sure >= _MAY_TELL and corrects)
            if tells and is_own and may_tell and may_be_kept and not is_question(text):
                statements.append(text)
                if not is_sure:  # it may ask: it is looked for as well
                    mood = "asks"
            clauses.append(Clause(text, mood))
    return clauses, statements


def is_pasted(text: str) -> bool:
    """
    Return whether a message is a pasted document and nothing that somebody says: it has headings, code or
    rows of a table among its lines, or a sentence that nobody types. Nothing of it is a statement to be kept.

    >>> is_pasted("# Changes\\n\\n- Added the export\\n- Removed the old page")
    True
    >>> is_pasted("coffee: flat white\\nmilk: oat"), is_pasted("To buy:\\n- milk\\n- eggs")
    (False, False)
    """
    lines = [line for line in text.split("\n") if line.strip()]
    is_structured = len(lines) >= _PASTED_LINES and any(map(_STRUCTURE.match, lines))
    return is_structured or any(len(sentence) > _SENTENCE_CHARS for sentence in typed_sentences(text))


def best_mood(scores: Mapping[Mood, float]) -> Mood:
    return max(scores, key=lambda name: scores[name])


def _is_apart(joint: _Joint, moods: Moods) -> bool:
    left = best_mood(moods[joint.left])
    right = best_mood(moods[joint.right])
    is_clear = min(moods[joint.left][left], moods[joint.right][right]) >= _APART
    least = _LEAST_WORDS if left == "tells" else 2  # "or not", "isn't it"
    is_short = len(joint.right.split()) < least
    return is_clear and left != right and not is_short and (left == "tells" or not joint.is_bare)


def _told_by_parts(joint: _Joint, moods: Moods) -> dict[Mood, float]:
    """Return how surely both sides of a joint tell; {} if one rather does something else."""
    sides = [moods[joint.left], moods[joint.right]]
    if any(best_mood(side) != "tells" for side in sides):
        return {}
    return {"tells": min(side["tells"] for side in sides)}


def says_otherwise(text: str) -> bool:
    plain = plain_signs(text)
    return any((_AFRESH.match(plain), _TURNED.search(plain), _corrects_in_foreign_words(text)))


def _corrects_in_foreign_words(text: str) -> bool:
    """Return whether a German, French or Spanish text has a word by which something is corrected."""
    turned = phrases("foreign_words.txt", "turned")
    return is_foreign(text) and turned.search(plain_signs(text)) is not None


_AFRESH = lazy_pattern(
    r"(?:(?:oh|ok|and|but|well),?\s+)*(?:actually|correction|sorry|oops|no|wait|scratch that|i meant|not)\b",
    re.IGNORECASE,
)
_TURNED = lazy_pattern(
    r"\b(?:no longer|any ?more|after all|instead|in the end|from now on|as (?:i|we) (?:thought|said)|"
    r"(?:i|we) (?:was|were) wrong|(?:has|have|had|'ve|'s|is|are|was|were|been|i|we) (?:just |now )?(?:moved|"
    r"changed|switched|postponed|rescheduled|renamed))\b",
    re.IGNORECASE,
)
_ALLERGIC = lazy_pattern(
    r"\b(?:i|we)(?:'m| am|'re| are)(?P<gone> no longer| not)? allergic to "
    r"(?P<value>[^.;!?]+?)(?=\s(?:because|but|since|so|when|which)\s|[.;!?]|$)",
    re.IGNORECASE,
)
_IS = lazy_pattern(
    r"(?:^|[,;:.!]\s+|\b(?:that|and|but|so|because|since|as|remember|actually|sorry|no)\s+)"
    r"(?P<whose>my|our|the) (?P<key>(?:[\w'-]+ ){0,3}?[\w'-]+) "
    r"(?P<is>is|are|(?:has |have )?(?:just |now )?changed to) (?:now )?(?=(?P<value>.+))",
    re.IGNORECASE,
)
_ENDS = lazy_pattern(
    r"[,;!](?=\s|$)|\s(?:because|but|since|so|when|where|which|who|and (?:my|our|i|we|it|he|she|they))\s"
)
_AND = lazy_pattern(r",\s*(?:and\s+)?|(?<!\s)\s++(?:and|or|but|so|because|since)\s+", re.IGNORECASE)
_NOW = lazy_pattern(
    r"(?<!\s)\s++(?:now|already|these days|from now on|instead|after all|in the end|too)$", re.IGNORECASE
)
_MOST_WORDS = 6
_MOST_THING = 3
_KINDS = {
    name: lazy_pattern(pattern)
    for name, pattern in {
        "code": r"(?=\S*[\d_A-Z-])\S+|\+?[\d\s()/-]+|(?=.*\d)[A-Z].*",
        "amount": r"(?:[A-Z]{3}|[$€£])? ?\d[\d.,\s]*(?:[$€£%]|[a-zA-Z]+)?",
        "who": r"(?:[^\W\d_a-z][\w.'’-]*|de|van|von)(?: (?:[^\W\d_a-z][\w.'’-]*|de|van|von))*",
        "any": r".*(?:[^\W\d_a-z]|\d).*",
    }.items()
}
"""What a value of each group of attributes looks like, as a whole."""


def find_statements(clauses: Sequence[str]) -> list[Statement]:
    """
    Return the statements to be kept of clauses that tell something: each sentence, once for each key that it
    surely gives, else once without.
    """
    statements: dict[Statement, None] = {}
    for sentence in (
        typed_sentence
        for clause in clauses
        for typed_sentence in typed_sentences(clause)
        if not is_talk(typed_sentence)
    ):
        action: Change | None = "corrects" if says_otherwise(sentence) else None
        statements |= dict.fromkeys(list(_keyed(sentence)) or [Statement(sentence, action=action)])
    return list(statements)


def is_talk(sentence: str) -> bool:
    words = {word.lower() for word in split_words(plain_signs(sentence))}
    return words <= FUNCTION_WORDS | read_words("talk_words.txt") or is_foreign_talk(sentence)


def is_foreign_talk(sentence: str) -> bool:
    """
    Return whether a sentence is small talk in German, French or Spanish.

    >>> is_foreign_talk("Danke dir!"), is_foreign_talk("merci beaucoup"), is_foreign_talk("no thanks")
    (True, True, False)
    """
    words = {word.lower() for word in split_words(plain_signs(sentence))}
    foreign_talk = read_words("foreign_words.txt", "talk")
    return bool(words & foreign_talk - FUNCTION_WORDS) and words <= ALL_FOREIGN_WORDS | foreign_talk


def _keyed(sentence: str) -> Iterator[Statement]:
    plain = plain_signs(sentence)
    turned = says_otherwise(sentence)
    for match in _ALLERGIC.finditer(plain):
        parts = _AND.split(sentence[match.start("value") : match.end("value")])
        things = tuple(takewhile(lambda part: len(part.split()) <= _MOST_THING, parts))
        if match["gone"]:
            yield from (Statement(sentence, "allergic_to", thing, action="removes") for thing in things)
        elif things:
            yield Statement(sentence, "allergic_to", things, action="adds")
    for match in _IS.finditer(plain):
        key = match["key"].lower().replace("favourite", "favorite")
        start = match.start("value")
        end = None if match["is"] == "are" else _ENDS.search(plain, start)
        value = _NOW.sub("", sentence[start : end.start() if end else len(sentence)].rstrip(" .!…"))
        value = value.strip(" ,;:\"'“”")
        if _is_sure(key, value) and (turned or match["whose"].lower() != "the"):
            name = re.sub(r"\W+", "_", key.replace("'", "")).strip("_")
            yield Statement(sentence, name, value, action="corrects" if turned else None)


def _is_sure(key: str, value: str) -> bool:
    *before, last = key.split()
    if not 1 <= len(value.split()) <= _MOST_WORDS or not FUNCTION_WORDS.isdisjoint(before):
        return False
    if {"favorite", "preferred"} & {*before}:
        return value.split()[0].lower() not in FUNCTION_WORDS
    kinds = (kind for name, kind in _KINDS.items() if last in read_words("attributes.txt", name))
    return any(kind.fullmatch(value) for kind in kinds)


def says_only(sentence: str, key: str) -> bool:
    return _AND.search(sentence) is None and [statement.key for statement in _keyed(sentence)] == [key]


_PASSING = NOT_COUNTED | read_words("conversation_words.txt", "passing")
_BEFORE_VERBS = read_words("conversation_words.txt", "before_verbs")
_THING_ENDS = NOT_COUNTED | read_words("marks.txt", "times")
_COUNTED = lazy_pattern(
    rf"(?:an?|the|my|our|some|no|many|several|few|{NUMBER_WORDS})(?![\w'-])", re.IGNORECASE
)
_SELF = lazy_pattern(r"(?:i|we)(?=['\s])")
_WORD = lazy_pattern(r"'?[^\W_]+(?:['-][^\W_]+)*|[^\w\s'-]")


def read_habit(sentence: str) -> tuple[str, str] | None:
    """Return a key made of the verb and the thing, and what the sentence says behind the verb."""
    plain = plain_signs(sentence).lower()
    subject = _SELF.match(plain)
    words = [*_WORD.finditer(plain, subject.end())] if subject else []
    while len(words) > 1 and words[0][0] in _BEFORE_VERBS:
        if words[0][0] == "have" and _COUNTED.match(words[1][0]):
            break
        words = words[1:]
    verb = words[0][0] if words else ""
    named = takewhile(lambda word: not _ends(word), dropwhile(_ends, words[1:]))
    thing = next(reversed([*named]), None)
    if thing is None or not (verb == "have" or (verb.isalpha() and verb not in _PASSING)):
        return None
    end = _ENDS.search(plain, words[0].end())
    value = sentence[words[0].end() : end.start() if end else len(sentence)]
    return f"{verb}_{thing[0].rpartition('-')[2]}", value.strip()


def _ends(word: re.Match[str]) -> bool:
    return not word[0][-1].isalnum() or word[0] in _THING_ENDS
