"""
Whether a message orders or wishes that something is forgotten, or asks that it is not kept. Pure.

An irreversible effect needs the user's own imperative, so everything here is strict: text in quotes, in code,
behind a colon or below the first line is somebody else's; a question, a report of who forgot what, and a
negation order nothing. What is not surely an order is at most a wish, which is asked about.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import Literal

from panda.language.languages import ALL_FOREIGN_WORDS
from panda.language.numbers import ORDINAL_WORDS
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs
from panda.language.words import alternatives, phrases, read_words, split_terms, split_words
from panda.messages.clauses import says_otherwise, typed_sentences
from panda.messages.matching import is_foreign
from panda.messages.wording import is_past_form

_FILE = "forgetting_words.txt"
_ANSWER_WORDS = 8
_MOST_DIGITS = 3
_SHORT_FOR_BE = lazy_pattern(r"\b(it|that)'?s\b|\bi mean\b", re.IGNORECASE)
_DIGIT = lazy_pattern(r"\d")
_DENIED = lazy_pattern(r"\b(?:not|instead of|rather than)\s+([^,;!?]+)", re.IGNORECASE)
_DECLINING = read_words("order_words.txt", "no") | read_words("forgetting_words.txt", "declines")
_EVERYTHING = read_words("forgetting_words.txt", "everything")
_YES = read_words("order_words.txt", "yes")
_CHOICE_WORDS = _YES | _EVERYTHING | read_words("forgetting_words.txt", "choice")
_EXCEPTION = lazy_pattern(r"\b(?:except|but|apart\s+from|other\s+than|save\s+for|without)\b", re.IGNORECASE)
_NEGATION = lazy_pattern(
    r"\b(?:not|never|no|nothing|keep|wait|joking|kidding|lol|haha)\b|n't\b|\bdont\b", re.IGNORECASE
)
_PARTS = lazy_pattern(r"\s+(?:and|or|plus)\s+|[,;]\s*", re.IGNORECASE)
_LEAST_CLAUSE_WORDS = 3
_VERB_WITHIN = 8
_THIRD_PERSON_WITHIN = 3
_JOINT = lazy_pattern(r"[,;]?\s+(?:and|but|while|whereas)\s+|[,;.!]\s+", re.IGNORECASE)
_REFERS = lazy_pattern(
    r"(?:it|its|that|this|those|these|which|who|whose|they|their|them|he|his|him|she|hers?|there|or)\b",
    re.IGNORECASE,
)
_THIRD_PERSON = lazy_pattern(r"\w*[^s]s")
_PERSONS = read_words("order_words.txt", "person")
_VERBS_OF_ANY = read_words("order_words.txt", "aux") | read_words("order_words.txt", "be")
_VERB, _WEAK_VERB, _PARTICIPLE, _LEAD, _STORE, _TAIL, _NOTHING = (
    alternatives(_FILE, group)
    for group in ("verb", "weak_verb", "participle", "lead", "store", "tail", "nothing")
)
_AUX, _WH, _PERSON = (alternatives("order_words.txt", group) for group in ("aux", "wh", "person"))
_ORDER_VERBS = read_words("order_verbs.txt")
_FILLING = frozenset(
    term
    for group in ("filling", "verb", "weak_verb", "lead", "subject", "tail")
    for word in read_words(_FILE, group)
    for term in split_terms(word)
)
_FOREIGN_FILLING = frozenset(
    term
    for word in ALL_FOREIGN_WORDS | read_words("foreign_words.txt", "forgets")
    for term in split_terms(word)
) | frozenset(ascii_lowercase)
_VALUE_NOUNS = frozenset(
    term
    for group in ("code", "amount", "any")
    for word in read_words("attributes.txt", group)
    for term in split_terms(word)
)
"""Terms of nouns for values, which a statement with the value need not repeat: the "number" of a phone."""
_WANTS_IT_GONE = lazy_pattern(
    rf"(?:\bnot|n't|\bdont)\s+(?:want|like|need)\b(?:(?!n't|\b(?:not|and|but|forg|delet|remov|eras|los))[^,.;:!?()–—-])*?"
    rf"\b(?:kept|stored|saved|noted|recorded|remembered|written|(?:{_STORE})|(?:keep|stor|sav|writ|not|record)ing)\b",
    re.IGNORECASE,
)
"""What says once more that something is not to be kept."""
_MESSAGE_CHARS = 400  # a longer message is a text, not an order
_STATEMENT_CHARS = 2_000  # a longer statement goes as a whole
_START = rf"(?:(?:{_LEAD})\b[\s,!.]*)*"
_CORRECTS = lazy_pattern(rf"\A{_START}(?:(?:no|wait|sorry|actually)\b[\s,]*)*", re.IGNORECASE)
_ORDER = lazy_pattern(
    rf"{_START}(?:(?P<strong>{_VERB})|(?P<weak>{_WEAK_VERB}))(?![\w'’-])(?!\s+(?:to|how|me\s+nots?)\b)(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_WISHES = tuple(
    lazy_pattern(rf"{_START}{pattern}", re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"(?:can|could|would|will|won't|may|might)\s+(?:you|u)\s+(?:{_LEAD}\s+)*(?:{_VERB}|{_WEAK_VERB})\b(?P<rest>.*)",
        r"(?:would|do)\s+(?:you|u)\s+mind\s+(?:forgetting|deleting|removing|erasing)\b(?P<rest>.*)",
        rf"(?:i|we)(?:'d|\s+would)?\s+(?:like|want|need|wish|prefer)\s+(?:you|u)\s+to\s+(?:{_VERB}|{_WEAK_VERB})\b"
        r"(?P<rest>.*)",
        rf"(?:you|u)\s+(?:can|could|should|may|must|might)\s+(?:{_LEAD}\s+)*(?:{_VERB}|{_WEAK_VERB})\b(?P<rest>.*)",
        rf"(?:i|we)(?:'d|\s+would)?\s+(?:like|want|need|prefer)\s+(?P<rest>.+?)\s+(?:to\s+be\s+)?{_PARTICIPLE}\b",
    )
)
_REPORTED = lazy_pattern(
    rf"\b(?:{_PERSON}|who|people|everyone|everybody|nobody|somebody|someone|to|not|never|n't|don't|dont|before|"
    r"in\s+case|keep|keeps|kept|if|when|of|for|than)\s+(?:\w+ly\s+|always\s+|never\s+|often\s+|just\s+|ever\s+|even\s+|"
    r"had\s+|have\s+|has\s+)*(?:forget|forgets|forgot|forgotten|forgetting)\b|\bunforget|\bforgetful|\bforget-me",
    re.IGNORECASE,
)
_SPEAKS_OF_IT = lazy_pattern(rf"\b(?:{_VERB}|{_WEAK_VERB}|{_PARTICIPLE}|memory)\b", re.IGNORECASE)
_ASKS = lazy_pattern(rf"\s*{_START}(?:{_WH}(?:'?s)?|{_AUX}\s+{_PERSON})\b", re.IGNORECASE)
_OWN_CLAUSE = lazy_pattern(rf"\s*(?:{_PERSON}|there|it|do\s+not|don'?t)(?:'\w+)?\b", re.IGNORECASE)
_COMMA = lazy_pattern(r"[,;–—]|\s-\s")
_CONDITION = lazy_pattern(rf"\s(?:and|or|then|so)\s+(?:{_PERSON})\b", re.IGNORECASE)
_BEHIND_COLON = lazy_pattern(r":(?=\s|$)")
_QUOTED = lazy_pattern(
    r"```.*?(?:```|\Z)|`[^`]*(?:`|\Z)|“[^”]*(?:”|\Z)|„[^“”]*(?:[“”]|\Z)|«[^»]*(?:»|\Z)|‹[^›]*(?:›|\Z)|「[^」]*(?:」|\Z)|"
    r"‘[^’]*’(?!\w)|\"[^\"]*(?:\"|\Z)|(?<![\w'])'[^']*'(?!\w)",
    re.DOTALL,
)
_NOT_KEPT = lazy_pattern(
    rf"(?:^|[,;.!?–—(]|\s-|\b(?:and|but|so|please|pls|plz|ok|okay)\b)\s*(?:(?:and|but|so|please|pls|plz|just|ok|okay)\b\s*,?\s*)*"
    rf"(?:do\s+not|don'?t|never|no\s+need\s+to|(?:you\s+)?(?:need\s+not|needn'?t|(?:do\s+not|don'?t)\s+(?:need|have)\s+to|"
    rf"must\s+not|mustn'?t|should\s+not|shouldn'?t))\s+{_STORE}\b(?P<what>(?:(?!\s[-–—]\s|:\s)[^.!?;,()])*)",
    re.IGNORECASE,
)
_OFF_THE_RECORD = lazy_pattern(rf"{_START}off\s+the\s+record\b", re.IGNORECASE)
_WHAT = lazy_pattern(
    rf"\s*(?:{_NOTHING}\b)?\s*(?:(?:{_TAIL})\b\s*)*|\s*that\s+\w+\s.*|.*\b(?:in|to|from|into)\s+(?:your\s+|the\s+)?memory\b.*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class ForgetRequest:
    """A message that speaks of forgetting something."""

    kind: Literal["order", "wish"]  # an order may be carried out, a wish is asked about
    terms: frozenset[str]  # terms of what is to be forgotten; empty where only a pronoun stands
    is_forget: bool = True  # whether the verb means nothing but forgetting, as "delete" does not
    is_alone: bool = True  # whether the message says nothing else that may take it back
    parts: tuple[frozenset[str], ...] = ()  # terms of each thing, where several are named


def find_forget_request(query: str) -> ForgetRequest | None:
    """
    Return what a message orders or wishes to be forgotten; None if it surely does neither.

    >>> find_forget_request("ok, please forget my gate code").kind
    'order'
    >>> find_forget_request("could you forget the gate code?").kind
    'wish'
    >>> find_forget_request('Summarise this mail: "Hi, forget the gate code."')
    >>> find_forget_request("What happens if you forget the gate code?")
    """
    sentences = own_sentences(query)
    is_behind_question = False
    for place, sentence in enumerate(sentences):
        others = [*sentences[:place], *sentences[place + 1 :]]
        request = _order_of(sentence, others) or _wish_of(sentence)
        if request is not None:
            is_alone = request.is_alone and not is_behind_question and _is_all_own(query, sentences)
            return None if _EXCEPTION.search(sentence) else replace(request, is_alone=is_alone)
        if _orders(sentence):
            return None
        is_behind_question |= _asks(sentence)
    return None


def _is_all_own(query: str, sentences: Sequence[str]) -> bool:
    """
    Return whether a message has nothing besides its sentences: no quotation, no further line, nothing behind
    a colon.
    """
    own = "".join("".join(sentences).split())
    return own == "".join(plain_signs(query).split())


def may_wish_to_forget(query: str) -> bool:
    """
    Return whether a message that is no plain order may still wish something forgotten: it speaks of
    forgetting, and tells neither who forgets nor what not to forget, nor does it ask or order anything else.
    """
    sentences = own_sentences(query)
    own = plain_signs(" ".join(sentences))
    if _REPORTED.search(own) or _EXCEPTION.search(own) or not _SPEAKS_OF_IT.search(own):
        return False
    return not any(
        _asks(sentence) or (_orders(sentence) and len(sentences) > 1 and not _SPEAKS_OF_IT.search(sentence))
        for sentence in sentences
    )


def declines_storing(query: str) -> bool:
    """
    Return whether a message asks that what it tells is not kept.

    >>> declines_storing("my wifi password is tulip9, don't store it")
    True
    >>> declines_storing("don't store the bikes in the hall")
    False
    """
    text = _QUOTED.sub(" … ", plain_signs(query))
    if _OFF_THE_RECORD.match(text):
        return True
    own = re.sub(r"\s*\n\s*", ". ", text)
    return any(_WHAT.fullmatch(match["what"]) is not None for match in _NOT_KEPT.finditer(own))


@dataclass(frozen=True)
class ForgetChoice:
    """What an answer to the question what is to be forgotten chooses."""

    places: frozenset[int]  # numbers of the list, from 1
    terms: frozenset[str]  # words that name things
    is_all: bool
    agrees: bool  # whether it only says yes


def read_forget_choice(answer: str) -> ForgetChoice | None:
    """
    Return what an answer chooses; None if it declines, asks, is long or tells something of its own.

    >>> read_forget_choice("1 and the third").places
    frozenset({1, 3})
    >>> read_forget_choice("the garage code is 4711")
    """
    plain = _SHORT_FOR_BE.sub(" ", plain_signs(answer).lower().replace(".", " "))
    words = split_words(plain)
    if len(words) > _ANSWER_WORDS or answer.rstrip().endswith("?"):
        return None
    if not (_DECLINING | _VERBS_OF_ANY).isdisjoint(words):
        return None
    places = {ORDINAL_WORDS[word] for word in words if word in ORDINAL_WORDS}
    places |= {int(word) for word in words if word.isdecimal() and len(word) <= _MOST_DIGITS}
    others = [word for word in words if word not in ORDINAL_WORDS and not word.isdecimal()]
    is_all = not _EVERYTHING.isdisjoint(words)
    agrees = not _YES.isdisjoint(words[:1])
    is_plain = _CHOICE_WORDS.issuperset(others)
    if (places or is_all) and not is_plain:
        return None
    terms = frozenset() if is_plain else forget_terms(plain)
    return ForgetChoice(frozenset(places), terms, is_all, agrees and is_plain)


def declines_forgetting(answer: str) -> bool:
    """Return whether an answer to the question what is to be forgotten says that nothing is."""
    words = split_words(plain_signs(answer).lower())
    return len(words) <= _ANSWER_WORDS and not _DECLINING.isdisjoint(words)


def refers_back(statement: str) -> bool:
    """
    Return whether a statement tells what has become of something that it does not name, as "it changed to
    4417".
    """
    plain = _CORRECTS.sub("", plain_signs(statement), count=1)
    changes = phrases("update_words.txt", "changes")
    is_change = says_otherwise(statement) or changes.search(plain) is not None
    return _REFERS.match(plain) is not None and is_change


def denied_terms(text: str) -> frozenset[str]:
    """
    Return the terms of the values that a correction denies.

    >>> denied_terms("no, the gate code is 4417, not 4471")
    frozenset({'4471'})
    """
    return frozenset(term for word in _DENIED.findall(text) for term in forget_terms(word))


def own_sentences(query: str) -> list[str]:
    """
    Return the user's own sentences of a message: its first line, without quotes and what a colon leads in.
    """
    if len(query) > _MESSAGE_CHARS:
        return []
    text = _QUOTED.sub(" … ", plain_signs(query))
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.lstrip().startswith(">"):
        return []
    own = first[: colon.start()] if (colon := _BEHIND_COLON.search(first)) else first
    return [sentence.strip() for sentence in typed_sentences(own) if sentence.strip()]


def forget_terms(words: str) -> frozenset[str]:
    """Return the terms by which what is to be forgotten is found: its content words."""
    terms = frozenset(split_terms(words)) - _FILLING
    return terms - _FOREIGN_FILLING if is_foreign(words) else terms


def is_meant_by(terms: frozenset[str], text: str) -> bool:
    """
    Return whether a text has all the terms of what is to be forgotten, but for one that names its value.

    >>> is_meant_by(forget_terms("Lena's phone number"), "Lena's phone is 0171 555")
    True
    >>> is_meant_by(forget_terms("Lena's number"), "Lena takes the room")
    False
    """
    missing = terms - forget_terms(text)
    names_value = (
        len(missing) == 1 < len(terms) and missing <= _VALUE_NOUNS and _DIGIT.search(text) is not None
    )
    return bool(terms) and (not missing or names_value)


def rest_of_statement(text: str, removed: Sequence[tuple[int, int]]) -> str:
    """
    Return what is left of a statement without some of its clauses and what joined them; "" if nothing is.

    >>> rest_of_statement("Lena takes the room and Tom brings the cake.", [(0, 19)])
    'Tom brings the cake.'
    """
    left = [span for span in clause_spans(text) if span not in removed]
    if not left:
        return ""
    end = text[clause_spans(text)[-1][1] :]
    return "; ".join(text[start:stop] for start, stop in left) + end


def clause_spans(text: str) -> list[tuple[int, int]]:
    """
    Return where the clauses of a statement stand that can do without each other, in order, without the marks
    and words that join them.

    >>> text = "Lena takes the room and Tom brings the cake."
    >>> [text[start:end] for start, end in clause_spans(text)]
    ['Lena takes the room', 'Tom brings the cake']
    """
    plain = plain_signs(text)
    end = len(plain.rstrip().rstrip(".!?…;"))
    if len(plain) > _STATEMENT_CHARS:
        return [(0, end)]
    spans: list[tuple[int, int]] = []
    start = 0
    for joint in _JOINT.finditer(plain):
        behind = plain[joint.end() :]
        if (
            _stands_alone(plain[start : joint.start()])
            and _stands_alone(behind)
            and not _REFERS.match(behind)
        ):
            spans.append((start, joint.start()))
            start = joint.end()
    return [*spans, (start, end)]


def _stands_alone(clause: str) -> bool:
    """Return whether a clause has a verb of its own, as far as its form shows."""
    words = [word.lower() for word in split_words(clause)]
    if len(words) < _LEAST_CLAUSE_WORDS:
        return False
    has_verb = any(word in _VERBS_OF_ANY or is_past_form(word) for word in words[:_VERB_WITHIN])
    is_third_person = any(_THIRD_PERSON.fullmatch(word) for word in words[1:_THIRD_PERSON_WITHIN])
    return has_verb or is_third_person or words[0] in _PERSONS


def _order_of(sentence: str, others: list[str]) -> ForgetRequest | None:
    match = _ORDER.fullmatch(plain_signs(sentence))
    if match is None or sentence.rstrip().endswith("?"):
        return None
    rest = match["rest"]
    if re.match(r"\s+(?:not|nicht)\b", rest, re.IGNORECASE):
        return None
    words, is_conditional = _object_of(rest)
    takes_back = any(_NEGATION.search(_WANTS_IT_GONE.sub("", part)) for part in (rest, *others))
    is_alone = not (is_conditional or takes_back) and not any(map(_says_more, others))
    terms = forget_terms(words)
    kind: Literal["order", "wish"] = "order" if terms else "wish"
    return ForgetRequest(
        kind, terms, is_forget=match["strong"] is not None, is_alone=is_alone, parts=_parts_of(words)
    )


def _says_more(sentence: str) -> bool:
    """Return whether a sentence beside an order is more than thanks."""
    return not frozenset(split_terms(sentence)) <= _FILLING


def _parts_of(words: str) -> tuple[frozenset[str], ...]:
    parts = [forget_terms(part) for part in _PARTS.split(words)]
    return tuple(part for part in parts if part)


def _object_of(rest: str) -> tuple[str, bool]:
    """
    Return what an imperative is about, and whether the sentence goes on with what may make it none ("forget
    the key and we stay outside"). A clause of its own behind a comma is no part of it; any other words are.
    """
    pieces = _COMMA.split(rest)
    object_parts = [pieces[0]]
    is_conditional = False
    is_led_by_clause = is_foreign(rest)  # "vergiss, was ich gesagt habe"
    further = pieces[1:] if forget_terms(pieces[0]) or is_led_by_clause else []
    for piece in further:
        if _ORDER.fullmatch(piece.strip()) or not forget_terms(piece):
            object_parts.append(piece)
        elif _OWN_CLAUSE.match(piece) and not piece.rstrip().endswith("?"):
            break
        elif _asks(piece) or _orders(piece):
            is_conditional = True
            break
        else:
            object_parts.append(piece)
    words = " ".join(object_parts)
    if condition := _CONDITION.search(words):
        return words[: condition.start()], True
    return words, is_conditional


def _wish_of(sentence: str) -> ForgetRequest | None:
    plain = plain_signs(sentence).rstrip(" ?.!")
    for pattern in _WISHES:
        if match := pattern.fullmatch(plain) or pattern.match(plain):
            words = _object_of(match["rest"])[0]
            return ForgetRequest("wish", forget_terms(words), parts=_parts_of(words))
    return None


def _asks(sentence: str) -> bool:
    begins = re.match(
        rf"\s*(?:{_START})(?:{_WH}(?:'?s)?|{_AUX}\s+{_PERSON})\b", plain_signs(sentence), re.IGNORECASE
    )
    return sentence.rstrip().endswith("?") or begins is not None


def _orders(sentence: str) -> bool:
    plain = re.sub(rf"\A{_START}", "", plain_signs(sentence).lower().strip())
    return (split_words(plain) or [""])[0] in _ORDER_VERBS
