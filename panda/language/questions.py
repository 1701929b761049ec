"""Whether a stored line asks, and so states nothing that could be quoted. Pure."""

import re

from panda.language.text_front import plain_signs

_MARK = re.compile(r"^(?:[-*+•>]|\d{1,3}[.)]|\[[ xX]\]|#+)\s+")
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
    while mark := _MARK.match(text):
        text = text[mark.end() :]
    if text.startswith("|"):
        cells = [cell.strip() for cell in text.strip("|").split("|") if cell.strip()]
        return bool(cells) and cells[-1].endswith("?")
    if text.rstrip(_CLOSING + "?!").count("?") and re.search(r"\?\S* (?:=|→|->|–)", text):
        return False  # what stands behind the first question says what it means, or answers it
    bare = text.rstrip(_CLOSING)
    if bare.endswith(("?", "?!", "?!!")):
        quoted = bool(text[len(bare) :].strip(" *_`"))
        return not (
            quoted and max(map(bare.rfind, '"“„«(')) > 0
        )  # a question that only stands in what is said
    return _INVERTED.match(text) is not None and _MORE.search(text) is None
