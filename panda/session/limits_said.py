"""Limits that a user sets, as a session carries them. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from panda.language.limits import find_counts, find_limits
from panda.language.reading import Limit
from panda.session.clipping import clip
from panda.session.values import Constraint

_MOST, _TEXT_CHARS = 30, 160


def limits_of(query: str, known: Iterable[Constraint] = ()) -> tuple[Limit, ...]:
    """
    The limits that a query sets.

    Args:
        query: The raw query.
        known: What holds so far: "4 not 6" changes the limit that is 6.

    >>> [(one.key, one.value) for one in limits_of("Find 3 recipes under $20 by 2026-05-01")]
    [('budget_max', 'USD 20'), ('date_max', '2026-05-01'), ('count:recipes', 3)]
    >>> limits_of("Is the tent in stock?")
    ()
    """
    holding = {one.key: one.value for one in known if one.active}
    return (*find_limits(query), *find_counts(query, holding))


def kept_limits(limits: Iterable[Limit]) -> list[dict[str, Any]]:
    """Limits whose key and value are sure, as query_analysis.json holds them, each key once."""
    kept = {
        one.key: {"key": one.key, "value": one.value, "text": clip(one.text, _TEXT_CHARS)}
        for one in limits
        if one.key is not None and one.value is not None
    }
    return list(kept.values())


def merge_limits(
    known: tuple[Constraint, ...], said: Iterable[Mapping[str, Any]], *, turn: int, cleared: bool
) -> tuple[Constraint, ...]:
    """
    The constraints with what a turn said; what it says of a key holds instead of what was said before.

    Args:
        known: As they were.
        said: As kept_limits gives them.
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
