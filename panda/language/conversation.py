"""What is said of a conversation itself: looking back, showing again, greetings, claimed deeds. Pure."""

import re
from functools import partial

from panda.language.stemming import split_words
from panda.language.text_front import plain_signs
from panda.language.word_lists import alternatives, read_words

_FILE = "conversation_words.txt"
_TONES = ("frustrated", "hurried", "enthusiastic", "polite")
_CALLED = re.compile(r"\?!|!{3,}|!\s*$")
_one_of, _list = partial(alternatives, _FILE), partial(read_words, _FILE)


def plain_recap(query: str) -> bool:
    """
    Whether a query asks for what the whole session was about, by its words alone, where no encoder can tell.

    >>> [plain_recap(said) for said in ("What did we do?", "Recap, please.", "What have we said so far?")]
    [True, True, True]
    >>> plain_recap("What did we say about the hotel?"), plain_recap("What do we do now?")
    (False, False)
    """
    words = set(split_words(query.lower()))
    told = words & _list("spoke") and words & _list("partners")
    return bool(words & _list("recap") or told) and words <= _list("recap") | _list("filling")


def asks_again(clause: str) -> bool:
    """
    Whether a clause asks to see something that was written before, and not to have it written anew.

    >>> [asks_again(said) for said in ("Show me the draft again.", "Write the letter again", "Is it cheap?")]
    [True, False, False]
    """
    named = rf"{_one_of('again')}|(?:the|that|my|your) (?:[\w-]+ )?{_one_of('drafts')}"
    return _has(rf"{_one_of('shows')}\b[^.?!]*\b(?:{named})", clause) and not _has(_one_of("makes"), clause)


def orders_change(clause: str) -> bool:
    """
    Whether a clause that orders something orders a change.

    >>> orders_change("then rename it to total"), orders_change("Show me what the edit did")
    (True, False)
    """
    return _has(rf"(?:^|[.;,]\s+|\b(?:and|then|please|you)\s+){_one_of('changes')}(?=\s+\S)", clause.strip())


def asks_for_details(query: str) -> bool:
    """
    Whether a query wants all that a page says of a thing, and not one value.

    >>> asks_for_details("what were the specs on that Lenovo?"), asks_for_details("how much is it?")
    (True, False)
    """
    return _has(_one_of("details"), query)


def named_turns(query: str) -> dict[str, int]:
    """
    The turns that a query names by number: the words with the number, in order.

    >>> named_turns("What did we say in turn 809, and in Turn #7?")
    {'turn 809': 809, 'Turn #7': 7}
    """
    found = re.finditer(r"\bturn\s+#?(\d{1,9})\b", query, re.IGNORECASE)
    return {match[0]: int(match[1]) for match in found}


def claims_done(text: str) -> bool:
    """
    Whether a text says that something was just saved, made, changed or sent.

    >>> claims_done("I’ve saved your budget."), claims_done("The budget is $900.")
    (True, False)
    """
    lately = f"(?: {_one_of('lately')})?"
    return _has(
        rf"(?:(?:I|we)(?:'ve| have)?{lately}|(?:has|have){lately} been|(?:is|are) now) {_one_of('done')}",
        text,
    )


def without_greeting(text: str) -> str:
    """
    A reply without the greeting that it begins with.

    >>> without_greeting("Hello again! The LOQ costs $697."), without_greeting("History is long.")
    ('The LOQ costs $697.', 'History is long.')
    """
    greeting = rf"^{_one_of('greetings')}\b[^.!?\n]{{0,40}}?(?:[.!?]+|,|$)\s*"
    return re.sub(greeting, "", text.lstrip(), count=1, flags=re.IGNORECASE)


def tone_of(text: str) -> str:
    """
    How a user speaks: frustrated, hurried, enthusiastic, polite or neutral.

    >>> [tone_of(said) for said in ("That's wrong!", "Quick, the bus?", "Please open it", "Open it")]
    ['frustrated', 'hurried', 'polite', 'neutral']
    """
    called = _CALLED.search(text)
    marked = "enthusiastic" if called and called[0].strip() == "!" else "frustrated" if called else None
    return next((tone for tone in _TONES if tone == marked or _has(_one_of(tone), text)), "neutral")


def _has(pattern: str, text: str) -> bool:
    return re.search(rf"(?<!\w)(?:{pattern})(?!\w)", plain_signs(text), re.IGNORECASE) is not None
