"""How a conversation goes, by rule: its phase, the user's tone, what the user told. Pure."""

from typing import cast

from panda.language.conversation import tone_of, without_greeting
from panda.session.clipping import clip
from panda.session.step_records import step_type
from panda.session.turn_files import TurnFiles
from panda.session.values import Carry, Curation, Flow, FlowPhase, Tone

_EXPRESSED_CHARS = 160


def flow_of(previous: Carry, files: TurnFiles, curation: Curation, *, asks: str | None, reply: str) -> Flow:
    """
    How the conversation goes with a turn.

    Args:
        previous: What the turn found.
        files: The turn, as far as it has come.
        curation: What its phase 1 decided.
        asks: The kind of question that it ended with; None if it ended otherwise or has not ended.
        reply: What it said so far.
    """
    return Flow(
        phase=_phase(previous, files, curation, asks),
        tone=cast(Tone, tone_of(files.query)),
        user_expressed=_expressed(files) or previous.flow.user_expressed,
        greeted=previous.flow.greeted or without_greeting(reply) != reply.lstrip(),
    )


def _phase(previous: Carry, files: TurnFiles, curation: Curation, asks: str | None) -> FlowPhase:
    answered = (files.analysis or {}).get("pending") or {}
    if asks in ("proposal", "choice"):
        return "confirming"
    if answered.get("status") == "answered" and answered.get("agreed"):
        return "executing"
    if files.reading.recap:
        return "reflecting"
    if any(step_type(call) == "write" and call["status"] == "success" for _, call in files.calls()):
        return "executing"
    if curation.demoted or curation.dropped or (previous.recent_turns and files.reading.limits):
        return "narrowing"
    return "exploring"


def _expressed(files: TurnFiles) -> str | None:
    """What the user told first, be it a feeling or a wish."""
    told = next((one.text for one in files.reading.clauses if one.mood == "tells"), None)
    return clip(told, _EXPRESSED_CHARS) if told else None
