"""Tool results of earlier turns that a turn takes instead of calling again."""

from collections.abc import Mapping
from typing import Any

from panda.documents.times import parse_time
from panda.errors import FileFormatError, StoreError
from panda.memory.log import MemoryLog
from panda.memory.past import known_then
from panda.phases.turn import Turn
from panda.session.carry import CachedStep
from panda.session.steps import call_digest, step_type
from panda.storage.files import read_json
from panda.storage.layout import QUERY_ANALYSIS_JSON

Step = Mapping[str, Any]


def reused_step(turn: Turn, step: Step) -> Step | None:
    """
    A step with the result that an earlier turn of the session got for the same call.

    Args:
        turn: The running turn.
        step: The step as far as it is known: tool, arguments and what it is for.

    Returns:
        The whole step, with `reused` saying where the result comes from; None if the call has to be made:
        nobody made it, it does not read, something was written since, it has expired, or is wanted anew.
    """
    digest = call_digest(step["tool"], step["arguments"])
    found = [one for one in turn.carry.step_cache if one.call == digest]
    made = _result(turn, found[-1]) if found else None
    if made is None or _wants_live_data(turn) or _written_since(turn, found[-1]):
        return None
    return {**made, **step, "reused": {"turn": found[-1].turn, "step": found[-1].step}}


def reused_steps(turn: Turn) -> list[Step]:
    """The results of the session's last turn that read something, as steps of this one."""
    newest = [one for one in turn.carry.step_cache if one.detail == "full"]
    found: list[Step] = []
    for one in newest:
        made = _result(turn, one)
        if made is not None and not _wants_live_data(turn):
            decided = {
                "step": len(found) + 1,
                "plan": turn.round,
                "round": 1,
                "note": None,
                "conclusion": None,
            }
            found.append({**made, **decided, "reused": {"turn": one.turn, "step": one.step}})
    return found


def _wants_live_data(turn: Turn) -> bool:
    return bool(turn.read(QUERY_ANALYSIS_JSON)["data_requirements"]["needs_live_data"])


def _result(turn: Turn, cached: CachedStep) -> dict[str, Any] | None:
    """The step that made a cached result, if it may be used."""
    try:
        made = read_json(turn.layout.user(turn.user_id) / cached.path)
    except (StoreError, FileFormatError):
        turn.warn(f"{cached.path} cannot be read; the call is made again")
        return None
    if made["status"] != "success" or step_type(made) not in ("read", "analyze"):
        return None
    now = turn.context.front.created_at
    expiries = [parse_time(claim["expires_at"]) for claim in made["claims"] if claim["expires_at"]]
    if any(at <= now for at in expiries):
        return None
    return {**made, "artifacts": [], "seconds": None}


def _written_since(turn: Turn, cached: CachedStep) -> bool:
    """Whether something was written after a result was got: by a tool, or into the user's memory."""
    place = (cached.turn, cached.step)
    later = [one for one in turn.carry.step_cache if (one.turn, one.step) > place]
    if any(step_type({"tool": one.tool}) == "write" for one in later):
        return True
    if any(step_type(step) == "write" for step in turn.steps()):
        return True
    got = next((one.timestamp for one in turn.carry.recent_turns if one.turn == cached.turn), None)
    log = MemoryLog(turn.layout, turn.user_id)
    log.refresh()
    metadata = turn.folder.read_metadata()
    known = known_then(log, turn.turn, metadata.created_at, turn.folder.snapshot())
    return got is None or any(one.asserted_at > parse_time(got) for one in known)
