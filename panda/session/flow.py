"""How a conversation goes, by rule: its phase, the user's tone, what the user says of feelings. Pure."""

import re

from panda.documents.sentences import split_sentences
from panda.session.clipping import clip
from panda.session.step_records import step_type
from panda.session.turn_files import TurnFiles
from panda.session.values import Carry, Curation, Flow, FlowPhase, Tone
from panda.session.words import greets, looks_back, narrows

_EXPRESSED_CHARS = 160
_EXPRESSES = re.compile(
    r"\bI(?:'m| am|'d| would| really| absolutely)? ?(?:\w+ )?(?:love|like|hate|dislike|prefer|want|wish|hope|"
    r"fear|enjoy|miss|worried|afraid|happy|sad|annoyed|excited|tired|sorry|glad|confused|unsure)\b|"
    r"\b(?:thanks|thank you|great job|well done)\b",
    re.IGNORECASE,
)
_TONES: tuple[tuple[Tone, str], ...] = (
    (
        "frustrated",
        r"\b(?:wrong again|still wrong|not what i|useless|annoy\w*|ridiculous|i (?:already )?told you|"
        r"come on|ugh|that'?s wrong|doesn'?t work|frustrat\w*)\b|\?!|!{3,}",
    ),
    ("hurried", r"\b(?:asap|quick(?:ly)?|hurry|urgent(?:ly)?|right now|in a rush)\b"),
    ("enthusiastic", r"\b(?:awesome|amazing|fantastic|perfect|wonderful|brilliant|love it|great)\b|!\s*$"),
    ("polite", r"\b(?:please|thanks?|thank you|could you|would you|kindly)\b"),
)


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
        tone=next((tone for tone, words in _TONES if re.search(words, files.query, re.I)), "neutral"),
        user_expressed=_expressed(files.query) or previous.flow.user_expressed,
        greeted=previous.flow.greeted or greets(reply),
    )


def _phase(previous: Carry, files: TurnFiles, curation: Curation, asks: str | None) -> FlowPhase:
    answered = (files.analysis or {}).get("pending") or {}
    if asks in ("proposal", "choice"):
        return "confirming"
    if answered.get("status") == "answered" and answered.get("agreed"):
        return "executing"
    if looks_back(files.query):
        return "reflecting"
    if any(step_type(call) == "write" and call["status"] == "success" for _, call in files.calls()):
        return "executing"
    excluded = curation.demoted or curation.dropped
    if excluded or (previous.recent_turns and narrows(files.query)):
        return "narrowing"
    return "exploring"


def _expressed(query: str) -> str | None:
    found = next((s for s in split_sentences(query) if _EXPRESSES.search(s)), None)
    return clip(found, _EXPRESSED_CHARS) if found else None
