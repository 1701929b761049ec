"""Running text into sentences, without losing a character inside one, and whether a line asks. Pure."""

import re

from panda.language.text_front import plain_signs
from panda.language.words import read_groups

_ABBREVIATIONS = {name: frozenset(words.split()) for name, words in read_groups("abbreviations.txt").items()}
"""Groups of words that a dot follows within a sentence."""
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?=\s)|[。！？]++[」』”]*+")
_LOOK_CHARS = 60
_MEASURE = re.compile(r"\d[ \u00a0\u202f]?[^\W\d_]\Z")
"""A number with a unit of one letter, which ends a sentence where an initial does not."""


def split_sentences(text: str) -> list[str]:
    """
    The sentences of running text, in order.

    Args:
        text: One paragraph; line breaks in it count as spaces.

    Returns:
        Sentences with their end marks, each one line, none empty. Dots inside numbers, URLs, file names,
        abbreviations and initials end none.

    >>> split_sentences("It costs $697.00, e.g. at bestbuy.com. Updated 1.2 hours ago! See https://a.io/x.y?z")
    ['It costs $697.00, e.g. at bestbuy.com.', 'Updated 1.2 hours ago!', 'See https://a.io/x.y?z']
    >>> split_sentences("Dr. J. Smith lives in the U.S. and likes it. So do I")
    ['Dr. J. Smith lives in the U.S. and likes it.', 'So do I']
    >>> split_sentences("The ceiling is 2,51 m. The window is 1,20 m wide. Am 3. Oktober kommt Dr. A. Lang.")
    ['The ceiling is 2,51 m.', 'The window is 1,20 m wide.', 'Am 3. Oktober kommt Dr. A. Lang.']
    >>> split_sentences('He said "no." Then he left.')
    ['He said "no."', 'Then he left.']
    >>> split_sentences("  ")
    []
    """
    line = " ".join(text.split())
    return [line[start:end] for start, end in sentence_spans(line)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """
    Where the sentences of running text begin and end, for callers that must not change a character.

    Args:
        text: One paragraph, line breaks as they are; of any length, read in linear time.

    Returns:
        Start and end of each sentence, white space around it left out.

    >>> text = "It costs $697.00.\\n Why? See a.io"
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['It costs $697.00.', 'Why?', 'See a.io']
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for end in _END.finditer(text):
        before = text[max(start, end.start() - _LOOK_CHARS) : end.start()]
        after = text[end.end() : end.end() + _LOOK_CHARS].lstrip()
        if ends_sentence(before, end.group(), after):
            spans.append((start, end.end()))
            start = end.end()
    spans.append((start, len(text)))
    trimmed = []
    for first, last in spans:
        inner = text[first:last]
        if inner.strip():
            trimmed.append(
                (first + len(inner) - len(inner.lstrip()), last - len(inner) + len(inner.rstrip()))
            )
    return trimmed


def ends_sentence(before: str, mark: str, after: str) -> bool:
    """
    Whether a mark behind a text ends a sentence there.

    >>> ends_sentence("It is by Dr", ".", "Weiß"), ends_sentence("It is here", ".", "So is he")
    (False, True)
    """
    if not before.strip() or not after:
        return False
    if not mark.startswith(".") or mark.startswith(".."):
        return not after[0].islower() or mark[0] not in ".…"
    word = re.split(r"[\s(\[\"“]", before)[-1].lower()
    if word in _ABBREVIATIONS["never_last"] or word.endswith(tuple(_ABBREVIATIONS["endings"])):
        return False
    if len(word) == 1 and word.isalpha() and word != "i" and not _MEASURE.search(before):
        return False
    if word in _ABBREVIATIONS["months"] or word in _ABBREVIATIONS["sometimes_last"]:
        return after[0].isupper()
    if word.isdigit():
        is_item = not before[: -len(word)].strip()  # "1. First" is the number of a list item
        return not is_item and not after[0].islower() and not _is_day(word, after)
    return not after[0].islower()


def _is_day(number: str, after: str) -> bool:
    return (
        len(number) <= 2 and re.split(r"[\s.,]", after, maxsplit=1)[0].lower() in _ABBREVIATIONS["day_names"]
    )


_LIST_MARK = re.compile(r"^(?:[-*+•>]|\d{1,3}[.)]|\[[ xX]\]|#+)\s+")
_CLOSING = "\"'”’»)*_` "
_BE = "is|are|was|were|isn't|aren't|wasn't|weren't"
_DO = "does|did|doesn't|didn't"
_MODAL = "can|could|will|would|should|can't|couldn't|won't|wouldn't|shouldn't"
_PERSON = "i|you|we|he|she|it|they|there|anyone|anybody|someone|somebody|everyone|everybody"
_SUBJECT = rf"(?:{_PERSON}|this|that|these|those|the|my|our|your|his|her|its|their|any)"
_INVERTED = re.compile(
    rf"(?:(?:{_BE}|does|doesn't|{_MODAL}) {_SUBJECT}|"
    rf"(?:do|don't|did|didn't|have|haven't|has|hasn't|had|may|shall|am) (?:{_PERSON})|"
    rf"(?:what|when|where|why|how|who|whom|whose) (?:{_BE}|{_DO})|(?:what|where|who|when|how)'s|"
    rf"(?:what|when|where|why|how) (?:do|have|{_MODAL}|had|has|may|shall) {_SUBJECT}|who (?:{_MODAL})|"
    rf"(?:which|what|whose|how)(?: [\w-]+){{1,3}} (?:{_DO}|(?:{_BE}|do|have|{_MODAL}) {_SUBJECT}))\b",
    re.IGNORECASE,
)
"""How a question begins: with a verb before its subject. "May 12", "Will plays", "What I paid" do not."""
_MORE = re.compile(r"[,;:–—=|]|[.!?…](?:\s|$)| - |\)$")


def is_question(line: str) -> bool:
    """
    Whether a stored line asks and states nothing: its asking clause is the last thing in it.

    Args:
        line: A line of a note or of an answer; markers of lists and cells of a table may stand in it.

    >>> [is_question(line) for line in ("what is my budget", "Is it open?", "Does the charger fit the lamp")]
    [True, True, True]
    >>> [is_question(line) for line in ("May 12: dentist at 9:30", "Will plays the horn", "| When | 9:30 |")]
    [False, False, False]
    >>> [is_question(line) for line in ("Where to find the key: in the shed", "Is it open? Yes, till ten.")]
    [False, False]
    """
    text = plain_signs(line).strip()
    while mark := _LIST_MARK.match(text):
        text = text[mark.end() :]
    if text.startswith("|"):
        cells = [cell.strip() for cell in text.strip("|").split("|") if cell.strip()]
        return bool(cells) and cells[-1].endswith("?")
    if text.rstrip(_CLOSING + "?!").count("?") and re.search(r"\?[^\s?]* (?:=|→|->|–)", text):
        return False  # what stands behind the first question says what it means, or answers it
    bare = text.rstrip(_CLOSING)
    if bare.endswith(("?", "?!", "?!!")):
        quoted = bool(text[len(bare) :].strip(" *_`"))
        return not (
            quoted and max(map(bare.rfind, '"“„«(')) > 0
        )  # a question that only stands in what is said
    return _INVERTED.match(text) is not None and _MORE.search(text) is None
