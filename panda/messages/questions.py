"""What a message asks for, by its words. Pure."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Literal

from panda.language.numbers import ORDINAL_WORDS
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs
from panda.language.words import (
    NOT_COUNTED,
    alternatives,
    read_groups,
    read_words,
    split_words,
    stem,
)
from panda.messages.reading import MESSAGE_CHARS

_LIST_MARK = lazy_pattern(r"^(?:[-*+•>]|\d{1,3}[.)]|\[[ xX]\]|#+)\s+")
_CLOSING = "\"'”’»)*_` "
_BE = "is|are|was|were|isn't|aren't|wasn't|weren't"
_DO = "does|did|doesn't|didn't"
_MODAL = "can|could|will|would|should|can't|couldn't|won't|wouldn't|shouldn't"
_PERSON = "i|you|we|he|she|it|they|there|anyone|anybody|someone|somebody|everyone|everybody"
_SUBJECT = rf"(?:{_PERSON}|this|that|these|those|the|my|our|your|his|her|its|their|any)"
_INVERTED = lazy_pattern(
    rf"(?:(?:{_BE}|does|doesn't|{_MODAL}) {_SUBJECT}|"
    rf"(?:do|don't|did|didn't|have|haven't|has|hasn't|had|may|shall|am) (?:{_PERSON})|"
    rf"(?:what|when|where|why|how|who|whom|whose) (?:{_BE}|{_DO})|(?:what|where|who|when|how)'s|"
    rf"(?:what|when|where|why|how) (?:do|have|{_MODAL}|had|has|may|shall) {_SUBJECT}|who (?:{_MODAL})|"
    rf"(?:which|what|whose|how)(?: [\w-]+){{1,3}} (?:{_DO}|(?:{_BE}|do|have|{_MODAL}) {_SUBJECT}))\b",
    re.IGNORECASE,
)
"""How a question begins: with a verb before its subject. "May 12", "Will plays", "What I paid" do not."""
_MORE = lazy_pattern(r"[,;:–—=|]|[.!?…](?:\s|$)| - |\)$")


def is_question(line: str) -> bool:
    """
    Return whether a stored line, list markers and cells included, ends with what it asks and states nothing.
    """
    text = plain_signs(line).strip()
    while mark := _LIST_MARK.match(text):
        text = text[mark.end() :]
    if text.startswith("|"):
        cells = [cell.strip() for cell in text.strip("|").split("|") if cell.strip()]
        return bool(cells) and cells[-1].endswith("?")
    bare = text.rstrip(_CLOSING)
    if bare.endswith(("?", "?!", "?!!")):
        is_quoted = text[len(bare) :].strip(" *_`") and max(map(bare.rfind, '"“„«(')) > 0
        return not is_quoted  # what only stands in what is said asks nothing
    return _INVERTED.match(text) is not None and _MORE.search(text) is None


_LISTED = partial(read_words, "conversation_words.txt")
_ANY = {name: alternatives("conversation_words.txt", name) for name in read_groups("conversation_words.txt")}


def _says(pattern: str, text: str) -> bool:
    whole = re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)
    return whole.search(plain_signs(text[:MESSAGE_CHARS])) is not None


def plain_recap(query: str) -> bool:
    """
    Return whether a query asks what the whole session was about, by its words, where no encoder can tell.
    """
    words = set(split_words(query.lower()))
    names_conversation = words & _LISTED("spoke") and words & _LISTED("partners")
    return bool(words & _LISTED("recap") or names_conversation) and words <= _LISTED("recap") | _LISTED(
        "filling"
    )


def asks_again(clause: str) -> bool:
    """
    Return whether a clause asks to see something that was written before, and not to have it written anew.
    """
    named = rf"{_ANY['again']}|(?:the|that|my|your) (?:[\w-]+ )?{_ANY['drafts']}"
    return _says(rf"{_ANY['shows']}\b[^.?!]*\b(?:{named})", clause) and not _says(_ANY["makes"], clause)


def orders_change(clause: str) -> bool:
    return _says(rf"(?:^|[.;,]\s+|\b(?:and|then|please|you)\s+){_ANY['changes']}(?=\s+\S)", clause.strip())


def asks_for(kind: Literal["details", "now", "address"], query: str) -> bool:
    return _says(_ANY[kind], query)


_WHOLE = lazy_pattern(
    r"""\b(?:all(?!\ (?:right|day|night|week|year|time|the\ time|along)\b)
      | every(?!\ (?:day|night|week|month|year|time|morning|evening|so)\b)
      | the\ (?:whole|entire|full|complete) | each\ of | one\ by\ one | step\ by\ step | everything)\b
      | \bon\ (?:the|my|our|your)\ (?:[\w'-]+\ )?list\b
      | ^(?:(?:and|so|but|then)\ )?
        (?:how\ (?:do|does|can|should|to)|what\ (?:do|should|must|can)\ (?:I|we|you)\ do)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_WHOLE = lazy_pattern(r"\b(?:at|after|above|not|that'?s|is that|in) all\b", re.IGNORECASE)
_KIND = lazy_pattern(
    r"^\W*(?:(?:and|so|but|then) )?(?:which|what)(?P<be> are| were)?(?P<words>(?: [\w'-]+){1,5})",
    re.IGNORECASE,
)


def wants_whole(query: str) -> bool:
    """
    Return whether a query asks for all there are of a kind, or all steps, not for one or what sets some
    apart.
    """
    text = plain_signs(query[:MESSAGE_CHARS]).strip()
    if text.partition(" ")[0].lower() in read_words("order_words.txt", "aux"):  # yes or no
        return False
    if _WHOLE.search(_NOT_WHOLE.sub("", text)) or any(map(_is_plural, things_to_show(text))):
        return True
    kind = _KIND.match(text)
    words = kind["words"].lower().split() if kind else []
    for word, following in zip(words, [*words[1:], None], strict=False):
        if word in _LISTED("behind_kind") and word != "of":
            return False
        if _is_plural(word) and kind:
            return bool(kind["be"]) or following is None or following in _LISTED("behind_kind")
    return False


def things_to_show(query: str) -> list[str]:
    """Return the words for what a message orders to show, up to where that comes from."""
    words = [word.lower() for word in split_words(plain_signs(query[:MESSAGE_CHARS]))]
    begin = next((at for at, word in enumerate(words) if word not in _LISTED("before_orders")), 0)
    verb, *behind = words[begin:] or [""]
    if verb not in read_words("item_words.txt", "shows"):
        return []
    end = next((at for at, word in enumerate(behind) if word in _LISTED("from_where")), len(behind))
    return behind[:end]


def _is_plural(word: str) -> bool:
    ends = word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))
    return word in _LISTED("people") or (ends and word not in _LISTED("no_plurals") and stem(word) != word)


@dataclass(frozen=True)
class StepAsked:
    place: int  # its number, or how many steps behind the last one that was quoted; -1 is the last of all
    is_relative: bool  # whether it is counted from there

    def number(self, quoted: int, count: int) -> int:
        """Return its number, where step *quoted* was quoted last, of *count*."""
        if self.is_relative:
            return quoted + self.place
        return count if self.place < 0 else self.place


_WAYS = {"next": (1, True), "after": (1, True), "before": (-1, True), "previous": (-1, True)}
_WAYS |= {"last": (-1, False), "final": (-1, False)}


def asked_step(query: str) -> StepAsked | None:
    words = [word.lower() for word in split_words(query)]
    named = [word for word in words if word not in NOT_COUNTED and word not in _LISTED("step_words")]
    if {"step", "point"}.isdisjoint(words):
        alone = all(word in ORDINAL_WORDS for word in named)
        return StepAsked(1, is_relative=True) if "next" in words and alone else None
    numbers = [int(word) for word in named if word.isascii() and word.isdigit() and len(word) < 5]
    numbers += [ORDINAL_WORDS[word] for word in words if word in ORDINAL_WORDS]
    if len(numbers) == 1:
        return StepAsked(numbers[0], is_relative=False)
    return next((StepAsked(*_WAYS[word]) for word in words if word in _WAYS), None)
