"""What a session was about, told turn by turn: for queries such as "What did we do?"."""

from panda.documents.text import one_line, strip_citations
from panda.errors import FileFormatError, StoreError
from panda.memory.gathered import GatheredItem
from panda.phases.turn import Turn
from panda.session.carry import clip
from panda.storage.records import load_turn

_MOST_TURNS = 8
_ASKED_CHARS, _SAID_CHARS = 120, 240


def recalled_turns(turn: Turn) -> tuple[int, ...]:
    """The first and the last turns of the session if the query asks for all that it was about; else ()."""
    numbers = turn.earlier if turn.reading.recap else ()
    return (*numbers[:1], *numbers[1:][1 - _MOST_TURNS :])


def recalled_items(turn: Turn) -> list[GatheredItem]:
    """
    What was asked and answered in each of these turns, in their own words, clipped.

    Args:
        turn: The running turn.

    Returns:
        One item a turn, which it cites; a turn that cannot be read is a warning.
    """
    found = []
    for number in recalled_turns(turn):
        try:
            record = load_turn(turn.layout.turn(turn.user_id, number), number)
        except (FileFormatError, StoreError) as exc:
            turn.warn(exc.message)
            continue
        said = clip(one_line(strip_citations(record.response)), _SAID_CHARS) if record.answered else ""
        said = f"“{said}”" if said.endswith("?") else said
        asked = clip(record.query, _ASKED_CHARS)
        found.append(GatheredItem(f"“{asked}” – {said or 'no answer was found'}", (f"turn:{number}",)))
    return found
