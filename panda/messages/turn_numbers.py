"""The turns of a conversation that a message names by number. Pure."""

import re
from collections.abc import Sequence
from functools import partial

from panda.language.claims import scan
from panda.language.patterns import lazy_pattern
from panda.language.text import plain_signs
from panda.language.words import read_words, split_words
from panda.messages.wording import is_past_form

_LOOK_CHARS = 60
MOST_NAMED_TURNS = 50
"""How many turns a range of numbers can name; one more tells that there are more."""
_TURNS = lazy_pattern(
    r"\bturn(?P<several>s)?[ _]+(?P<sign>#|(?:no\.?|numbers?)[ ]+)?(?P<first>\d{1,100})\b(?![.:/]\d)"
    r"(?P<more>(?:(?:[ ]?(?:-|–|,|&)|[ ](?:to|through|and|or)|,[ ](?:and|or))"
    r"[ ]?(?:turn[ ])?#?\d{1,100}\b)*)",
    re.IGNORECASE,
)
_MORE = lazy_pattern(r"(?P<join>-|–|to|through)?[ ]?(?P<turn>turn[ ])?#?(?P<number>\d{1,100})", re.IGNORECASE)
_BEFORE_TURN = lazy_pattern(r"(?:\b(?P<outer>[\w'’]+)[ ])?(?P<word>[\w'’]+)[ ]\Z")
_BESIDE_TURN = partial(read_words, "turn_words.txt")


def named_turns(query: str) -> dict[str, tuple[int, ...]]:
    """
    Return the saved turns that a query names by number ("turn 809", "turns 3, 5 and 7", "turns 3-5"): the
    words with the numbers, in order. "Turn 90 degrees left", "turn 10 pages into a PDF" and "she will turn
    40" name none; in doubt nothing does.
    """
    text = plain_signs(query)
    named = {}
    for match in _TURNS.finditer(text):
        numbers = _turn_numbers(match)
        end = match.end() if len(numbers) > 1 else match.end("first")
        if numbers and (match["sign"] or _is_named_turn(text, match, end)):
            named[query[match.start() : end]] = numbers
    return named


def _turn_numbers(match: re.Match[str]) -> tuple[int, ...]:
    """Return the numbers behind "turn" in order; none behind "turns" if there is but one ("she turns 30")."""
    numbers = [int(match["first"])]
    is_from = match.string[: match.start()].lower().endswith("from ")
    for more in _MORE.finditer(match["more"]):
        last = int(more["number"])
        join = (more["join"] or "").lower()
        if not (match["several"] or more["turn"] or join in ("-", "–")):
            break
        if not join or (more["turn"] and join == "to" and not is_from):  # "compare turn 3 to turn 5"
            numbers.append(last)
            continue
        low, high = sorted((numbers.pop(), last))
        numbers += range(low, min(high, low + MOST_NAMED_TURNS) + 1)
    if match["several"] and len(numbers) == 1 and not match["sign"]:
        return ()
    return tuple(dict.fromkeys(numbers))


def _is_named_turn(text: str, match: re.Match[str], end: int) -> bool:
    """
    Return whether "turn" with a number, the last of which ends at *end*, is a noun for a turn of a
    conversation.
    """
    behind = [word.lower() for word in split_words(text[end : end + _LOOK_CHARS])][:4]
    if text[end:].lstrip()[:1] in (",", ";", ":", ".", "?", "!", ""):
        behind = []
    if behind[:1] == ["of"] and not _BESIDE_TURN("conversations").intersection(behind):
        return False
    before = _BEFORE_TURN.search(text[: match.start()])
    word = before["word"].lower() if before else ""
    if word == "to":
        return (before["outer"] or "").lower() in _BESIDE_TURN("before_to") if before else False
    is_verb = word in read_words("order_verbs.txt") or is_past_form(word)
    if word and word not in _BESIDE_TURN("before") and not is_verb:
        return False
    if word and word not in _BESIDE_TURN("open"):
        return True
    return not (_is_count(text[match.start("first") : end + _LOOK_CHARS], behind) or _goes_a_way(behind))


def _is_count(text: str, behind: Sequence[str]) -> bool:
    """Return whether a text begins with a number of something."""
    first = next(iter(scan(re.split(r"[ ](?:and|or)[ ]", text, maxsplit=1)[0])), None)
    if first is None or first.start > 0:
        return False
    amount = first.amount
    counts = amount is not None and (amount.counts or bool(amount.unit or amount.currency))
    return first.claim.kind in ("price", "quantity") or (
        counts and not _BESIDE_TURN("verbs").intersection(behind[:1])
    )


def _goes_a_way(behind: Sequence[str]) -> bool:
    return bool(_BESIDE_TURN("ways").intersection(behind[:1]))
