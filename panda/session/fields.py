"""The fields of a session's carry: who writes each, which phases read it, and its limit (S4)."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """One field of the carry."""

    what: str
    """What it holds, for people."""
    written_by: tuple[int, ...]
    """Phases that decide it; phase 7 puts all of them into session.json."""
    read_by: tuple[int, ...]
    """Phases in whose prompts it stands, where it is not empty."""
    limit: str
    """How much of it is kept."""
    files: tuple[str, ...]
    """Files of a turn that it comes from."""


FIELDS: Mapping[str, Field] = {
    "recent_turns": Field(
        "the last turns, nearly whole",
        (7,),
        (0, 1, 2, 3, 4, 5),
        "3; a reply over 400 characters is summarised",
        ("context.md", "summary.json"),
    ),
    "history_summary": Field(
        "what happened before the recent turns",
        (7,),
        (0, 1, 2, 3, 5),
        "1,200 characters; what could not be merged waits by number",
        ("summary.json",),
    ),
    "engagement_summary": Field(
        "what the session is about", (7,), (0, 1, 2, 3, 5), "one sentence", ("summary.json", "plan.json")
    ),
    "turn_summaries": Field(
        "what each turn did", (7,), (1, 2, 3, 4, 5, 6), "2 whole, 20 more as one line", ("summary.json",)
    ),
    "step_cache": Field(
        "tool results that need not be asked for again", (4, 7), (3, 4, 6), "2 executed turns", ("steps/",)
    ),
    "carry_notes": Field(
        "notes and conclusions that steps left for later",
        (4, 7),
        (3, 4, 5),
        "8, for three turns",
        ("steps/",),
    ),
    "content_archive": Field(
        "generated or analysed content, kept verbatim",
        (4, 7),
        (3, 4, 5, 6),
        "50 entries of 256 KiB",
        ("steps/",),
    ),
    "entity_curation": Field(
        "what the last curation decided", (1,), (3, 4), "the last one", ("reflection.json",)
    ),
    "decision_log": Field(
        "decisions on entities", (1, 7), (1, 3), "20; the last 5 shown", ("reflection.json",)
    ),
    "registry": Field(
        "the entities of the session",
        (1, 4, 7),
        (0, 1, 2, 3, 4, 5, 6),
        "500 records; active: touched in this turn or the two before, or retained",
        ("steps/", "context.md", "reflection.json"),
    ),
    "flow": Field(
        "how the conversation goes", (5, 7), (0, 1, 3, 5), "one", ("query_analysis.json", "context.md")
    ),
    "pending_clarification": Field(
        "the question that is open",
        (0, 1, 2, 3, 7),
        (0, 1, 3, 5),
        "one; two turns on other matters drop it",
        ("query_analysis.json", "reflection.json", "plan.json"),
    ),
    "constraints": Field("limits that the user set", (0, 7), (3, 4, 6), "30", ("query_analysis.json",)),
}
"""Every field of the carry; a test holds it to the values and to the prompts."""
