"""What is said of a conversation itself: looking back, showing all or again, greetings, deeds. Pure."""

import re
from dataclasses import dataclass
from functools import partial

from panda.language.text_front import MESSAGE_CHARS, plain_signs
from panda.language.words import NOT_COUNTED, alternatives, read_groups, read_words, split_words, stem

_FILE = "conversation_words.txt"
_TONES = ("frustrated", "hurried", "enthusiastic", "polite")
_CALLED = re.compile(r"\?!|!{3,}|!\s*$")
_one_of, _listed = partial(alternatives, _FILE), partial(read_words, _FILE)


def plain_recap(query: str) -> bool:
    """
    Whether a query asks for what the whole session was about, by its words alone, where no encoder can tell.

    >>> [plain_recap(said) for said in ("What did we do?", "Recap, please.", "What have we said so far?")]
    [True, True, True]
    >>> plain_recap("What did we say about the hotel?"), plain_recap("What do we do now?")
    (False, False)
    """
    words = set(split_words(query.lower()))
    told = words & _listed("spoke") and words & _listed("partners")
    return bool(words & _listed("recap") or told) and words <= _listed("recap") | _listed("filling")


def asks_again(clause: str) -> bool:
    """
    Whether a clause asks to see something that was written before, and not to have it written anew.

    >>> [asks_again(said) for said in ("Show me the draft again.", "Write the letter again", "Is it cheap?")]
    [True, False, False]
    """
    named = rf"{_one_of('again')}|(?:the|that|my|your) (?:[\w-]+ )?{_one_of('drafts')}"
    clause = clause[:MESSAGE_CHARS]
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


_WHOLE = re.compile(
    r"""\b(?:all(?!\ (?:right|day|night|week|year|time|the\ time|along)\b)
      | every(?!\ (?:day|night|week|month|year|time|morning|evening|so)\b)
      | the\ (?:whole|entire|full|complete) | each\ of | one\ by\ one | step\ by\ step | everything)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_WHOLE = re.compile(r"\b(?:at|after|above|not|that'?s|is that|in) all\b", re.IGNORECASE)
_ON_LIST = re.compile(r"\bon (?:the|my|our|your) (?:[\w'’-]+ )?list\b", re.IGNORECASE)
_HOW_TO = re.compile(
    r"^(?:(?:and|so|but|then) )?"
    r"(?:how (?:do|does|can|should|to)|what (?:do|should|must|can) (?:I|we|you) do)\b",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"^\W*(?:(?:and|so|but|then) )?(?:which|what)(?P<be> are| were)?(?P<words>(?: [\w'’-]+){1,5})",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(
    r"^(?:is|are|was|were|do|does|did|has|have|can|could|will|would|should|may)\b", re.IGNORECASE
)
_BEHIND_KIND, _BEFORE_ORDERS, _FROM_WHERE, _PEOPLE, _STEP_WORDS, _NO_PLURALS = map(
    _listed, ("behind_kind", "before_orders", "from_where", "people", "step_words", "no_plurals")
)
_ORDINALS = read_groups("item_words.txt")["ordinals"].split()


def wants_whole(query: str) -> bool:
    """
    Whether a query asks for all there are of a kind, or all steps, not for one or what sets some apart.

    >>> asked = ("Which hotels did friends recommend?", "how do we put up the tent", "every step pls")
    >>> [wants_whole(query) for query in asked]
    [True, True, True]
    >>> asked = ("Which hotel has a pool?", "Is all packed?", "which fruit makes her ill?", "not at all")
    >>> [wants_whole(query) for query in asked]
    [False, False, False, False]
    """
    text = plain_signs(query[:MESSAGE_CHARS]).strip()
    if _YES_OR_NO.match(text):
        return False
    if _WHOLE.search(_NOT_WHOLE.sub("", text)) or _ON_LIST.search(text) or _HOW_TO.match(text):
        return True
    if any(map(_is_plural, things_to_show(text))):
        return True
    kind = _KIND.match(text)
    words = kind["words"].lower().split() if kind else []
    for word, following in zip(words, [*words[1:], None], strict=False):
        if word in _BEHIND_KIND and word != "of":
            return False
        if _is_plural(word) and kind:
            return bool(kind["be"]) or following is None or following in _BEHIND_KIND
    return False


def things_to_show(query: str) -> list[str]:
    """
    The words for what a message orders to show, up to where that comes from; none if it orders nothing such.

    >>> things_to_show("please show me the copy shops I wrote down"), things_to_show("what do we have")
    (['me', 'the', 'copy', 'shops'], [])
    """
    words = [word.lower() for word in split_words(plain_signs(query[:MESSAGE_CHARS]))]
    while words and words[0] in _BEFORE_ORDERS:
        words = words[1:]
    verbs = read_groups("narrowing_words.txt")["shows"].split()
    behind = words[1:] if words and words[0] in verbs else []
    end = next((at for at, word in enumerate(behind) if word in _FROM_WHERE), len(behind))
    return behind[:end]


def _is_plural(word: str) -> bool:
    ends = word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))
    return word in _PEOPLE or (ends and word not in _NO_PLURALS and stem(word) != word)


@dataclass(frozen=True)
class StepAsked:
    """A step that a query asks for."""

    place: int  # its number, or how many steps behind the last one that was quoted; -1 is the last of all
    is_relative: bool  # whether it is counted from there
    alone: bool  # whether the query names nothing else, so that it goes on with the steps at hand

    def number(self, quoted: int, count: int) -> int:
        """Its number, where step *quoted* was quoted last, of *count*."""
        if self.is_relative:
            return quoted + self.place
        return count if self.place < 0 else self.place


def asked_step(query: str) -> StepAsked | None:
    """
    The step that a query asks for, by its number or its place.

    >>> asked_step("and what is step 3?"), asked_step("3 eggs?")
    (StepAsked(place=3, is_relative=False, alone=True), None)
    >>> [asked_step(text).place for text in ("and the next step?", "the step before that", "the second step")]
    [1, -1, 2]
    >>> asked_step("read me step 4 of the muffins").alone, asked_step("who comes next week?")
    (False, None)
    """
    words = [word.lower() for word in split_words(query)]
    named = [word for word in words if word not in NOT_COUNTED and word not in _STEP_WORDS]
    numbers = [int(word) for word in named if word.isascii() and word.isdigit() and len(word) < 5]
    ordinals = [_ORDINALS.index(word) + 1 for word in words if word in _ORDINALS]
    alone = all(word.isdigit() or word in _ORDINALS for word in named)
    if "step" in words or "point" in words:
        if len(numbers) == 1 or len(ordinals) == 1:
            return StepAsked((numbers or ordinals)[0], False, alone)
        if "next" in words or "after" in words:
            return StepAsked(1, True, alone)
        if "before" in words or "previous" in words:
            return StepAsked(-1, True, alone)
        return StepAsked(-1, False, alone) if "last" in words or "final" in words else None
    return StepAsked(1, True, True) if "next" in words and alone and not numbers else None
