"""The document `carry`: what a phase of a running turn reads of its session."""

from collections.abc import Sequence

from panda.compression.tokens import count_tokens
from panda.errors import FileFormatError, StoreError
from panda.phases.turn import Turn
from panda.recipes.recipe import Recipe
from panda.recipes.steps import CARRY
from panda.session.carry import Carry
from panda.session.fold import carry_within
from panda.session.render import CARRY_TOKENS, render_carry
from panda.session.turn_files import TurnFiles
from panda.storage.files import parse_json, read_text
from panda.storage.layout import PLAN_JSON, QUERY_ANALYSIS_JSON, REFLECTION_JSON

_SLACK_TOKENS = 40


def running_files(turn: Turn) -> TurnFiles:
    """The files of a running turn that its phases before the present one wrote."""

    def read(name: str, phase: int) -> dict[str, object] | None:
        return turn.read(name) if turn.phase > phase and turn.folder.has(name) else None

    return TurnFiles(
        turn=turn.turn,
        session_id=turn.session_id,
        at="",
        query=turn.query,
        analysis=read(QUERY_ANALYSIS_JSON, 0),
        reflection=read(REFLECTION_JSON, 1),
        plan=read(PLAN_JSON, 3),
        steps=tuple(turn.steps()) if turn.phase > 4 else (),
    )


def present_carry(turn: Turn) -> Carry:
    """What a running turn knows of its session, with what its own phases have decided so far."""
    return carry_within(turn.carry, running_files(turn))


def carry_document(turn: Turn, recipe: Recipe) -> str:
    """
    The document of the phase that is running.

    Args:
        turn: The running turn.
        recipe: What is asked; its input budget bounds the document.

    Returns:
        At most 600 tokens; "" in the first turn of a session, and for a recipe that does not name it.
    """
    if CARRY not in recipe.input_docs or turn.session is None:
        return ""
    room = recipe.token_budget.input - 2 * count_tokens(turn.query) - count_tokens(turn.meant) - _SLACK_TOKENS
    return render_carry(
        present_carry(turn),
        turn.phase,
        count=count_tokens,
        load=lambda path: load_lines(turn, path),
        shown=shown_content(turn),
        budget_tokens=min(CARRY_TOKENS, room),
    )


def shown_content(turn: Turn) -> str | None:
    """Path of the kept content that the query asks to see again, relative to the user's directory."""
    if turn.phase == 0 or not turn.folder.has(QUERY_ANALYSIS_JSON):
        return None
    key = turn.read(QUERY_ANALYSIS_JSON).get("kept_content")
    return next((one.path for one in turn.carry.content_archive.entries if one.key == key), None)


def load_lines(turn: Turn, path: str) -> Sequence[str]:
    """The lines of a kept result or content; what is gone says so."""
    place = turn.layout.user(turn.user_id) / path
    try:
        text = read_text(place)
        if place.suffix != ".json" or place.parent.name != "steps":
            return text.splitlines()
        step = parse_json(text, where=str(place))
        return [*(claim["text"] for claim in step["claims"]), *step.get("text", "").splitlines()]
    except (StoreError, FileFormatError):
        return [f"[{path} cannot be read]"]
