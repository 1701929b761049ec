"""Saved turns taken out of a store: as queries for a batch, as lines for an import, as a transcript."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from panda.documents.progress import Progress
from panda.errors import FileFormatError, UsageError
from panda.history.lines import import_line, render_line
from panda.history.past_turn import LeftOut, PastTurn, damaged_turn, load_past_turn
from panda.history.queries import query_line
from panda.history.transcript import render_transcript
from panda.replays.selection import TurnPlace

Format = Literal["queries", "jsonl", "markdown"]
FORMATS: tuple[Format, ...] = ("queries", "jsonl", "markdown")


@dataclass(frozen=True)
class Export:
    """What came of it."""

    text: str  # all of it; "" if nothing could be exported
    lines: tuple[dict[str, Any], ...]  # the objects of its lines; none of a transcript
    turns: tuple[PastTurn, ...]  # turns in it, in order
    left_out: tuple[LeftOut, ...]  # turns that are not


def export_turns(
    places: Sequence[TurnPlace], form: Format, progress: Progress, *, numbered: bool = True
) -> Export:
    """
    Saved turns as text, in the order of their numbers, so that each conversation stands in its own order.
    Raises UsageError: Two stores have the same turn of a user.
    """
    named = Counter((place.user, place.number) for place in places)
    if twice := [f"turn {number} of {user}" for (user, number), count in named.items() if count > 1]:
        message = f"two stores have {twice[0]}"
        raise UsageError(message, where="SELECTION…", fix="export one store after the other")
    users = list(dict.fromkeys(place.user for place in places))
    turns: list[PastTurn] = []
    left_out: list[LeftOut] = []
    with progress("exporting", len(places)) as advance:
        for place in sorted(places, key=lambda one: (users.index(one.user), one.number)):
            try:
                turns.append(load_past_turn(place.folder()))
            except FileFormatError as exc:
                left_out.append(damaged_turn(place.user, place.number, exc))
            advance()
    if form == "markdown":
        return Export(render_transcript(turns), (), tuple(turns), tuple(left_out))
    make: Callable[[PastTurn], dict[str, Any] | LeftOut] = query_line
    if form == "jsonl":
        make = lambda turn: import_line(turn, numbered=numbered)  # noqa: E731
    made = [(turn, make(turn)) for turn in turns]
    left_out += [line for _, line in made if isinstance(line, LeftOut)]
    lines = tuple(line for _, line in made if not isinstance(line, LeftOut))
    kept = tuple(turn for turn, line in made if not isinstance(line, LeftOut))
    return Export("".join(map(render_line, lines)), lines, kept, tuple(left_out))
