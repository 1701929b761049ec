"""Counts, dates and budgets that a user sets, as data. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from panda.documents.constraints import find_constraints
from panda.documents.evidence import find_claims
from panda.language.claims import scan
from panda.language.text_front import plain_text
from panda.session.clipping import clip
from panda.session.values import Constraint

_MOST, _TEXT_CHARS = 30, 160
_NOT = re.compile(r"(?P<value>\d+(?:\.\d+)?),? (?:and )?not (?P<was>\d+(?:\.\d+)?)\b")
_TIMES = frozenset(("nights", "times"))
_MOST_BOUND = re.compile(
    r"\b(?:under|below|less than|no more than|at most|up to|max\w*|within|before|by)\b", re.I
)
_LEAST_BOUND = re.compile(r"\b(?:over|above|at least|more than|min\w*|after|from)\b", re.I)
_LIMIT_WORDS = re.compile(
    r"\b(?:budget|spend|afford|under|below|less than|more than|at most|at least|up to|max\w*|min\w*|over|"
    r"above|before|after|by|until|from|between|for|need|want|make it|only|serves?|servings?)\b",
    re.IGNORECASE,
)


def find_limits(query: str, known: Iterable[Constraint] = ()) -> list[dict[str, Any]]:
    """
    The limits that a query sets.

    Args:
        query: The raw query.
        known: What holds so far: "4 not 6" changes the limit that is 6.

    Returns:
        {key, value, text} of each, in order.

    >>> [(one["key"], one["value"]) for one in find_limits("Find 3 recipes under $20 by 2026-05-01")]
    [('budget_max', 'USD 20'), ('date_max', '2026-05-01'), ('count:recipes', 3)]
    >>> find_limits("Is the tent in stock?")
    []
    """
    found: dict[str, dict[str, Any]] = {}
    text = clip(query, _TEXT_CHARS)
    for match in _NOT.finditer(query):
        keys = [one.key for one in known if one.active and str(one.value) == match["was"]]
        for key in keys or ["count"]:
            found[key] = {"key": key, "value": _number(match["value"]), "text": text}
    counts = _counts(query)
    if not _LIMIT_WORDS.search(query) and not counts:
        return list(found.values())
    for claim in find_claims(query):
        name = {"price": "budget", "date": "date"}.get(claim.kind)
        before = query[: query.find(claim.text)][-24:]
        if name and _LIMIT_WORDS.search(before or query):
            key = (
                f"{name}_max"
                if _MOST_BOUND.search(before)
                else f"{name}_min"
                if _LEAST_BOUND.search(before)
                else name
            )
            found[key] = {"key": key, "value": claim.value, "text": text}
    for noun, number in counts.items():
        found[f"count:{noun}"] = {"key": f"count:{noun}", "value": number, "text": text}
    for clause in find_constraints(query):
        if not found and re.search(r"\b(?:only|must)\b", clause, re.IGNORECASE):
            found["only"] = {"key": "only", "value": clip(clause, _TEXT_CHARS), "text": text}
    return list(found.values())


def _counts(query: str) -> dict[str, int]:
    """How many of what a query speaks of, by what is counted."""
    amounts = [found.amount for found in scan(plain_text(query)) if found.amount]
    return {
        amount.noun: int(amount.value)
        for amount in amounts
        if amount.counts and amount.value is not None and amount.value.denominator == 1
        if not amount.label and amount.noun not in _TIMES
    }


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def merge_limits(
    known: tuple[Constraint, ...], said: Iterable[Mapping[str, Any]], *, turn: int, cleared: bool
) -> tuple[Constraint, ...]:
    """
    The constraints with what a turn said; what it says of a key holds instead of what was said before.

    Args:
        known: As they were.
        said: As find_limits gives them.
        turn: The turn.
        cleared: Whether the user started over.
    """
    new = [Constraint(key=o["key"], value=o["value"], text=o["text"], turn=turn) for o in said]
    keys = {one.key for one in new}
    kept = [replace(one, active=one.active and not cleared and one.key not in keys) for one in known]
    over = len(kept) + len(new) - _MOST
    for one in [one for one in kept if not one.active][: max(0, over)]:
        kept.remove(one)
    return (*kept, *new)[-_MOST:]
