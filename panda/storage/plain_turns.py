"""
Saved turns of the plainest form, read at the speed of the disk.

A rebuild of the index reads every turn. Most of them are imported, with a query and an answer in plain
lines; for those a pattern does what the parser of context.md does. Anything else is left to the parser.
"""

import os
import re
from collections.abc import Collection
from typing import Any

from panda.documents.context_scan import RENDERED_FRONT
from panda.documents.json_text import load_json
from panda.documents.times import parse_time
from panda.storage.layout import CONTEXT_MD, INDEX_SUMMARY_JSON, METADATA_JSON, RESEARCH_JSON
from panda.storage.links import check_links
from panda.storage.records import TurnRecord

_PLAIN = re.compile(
    rf"---\n{RENDERED_FRONT}---\n\n"
    r"## 0\. User Query\n\n(?P<query>.+?)\n\n## 5\. Synthesis\n\n(?P<answer>.+)\n",
    re.DOTALL,
)
_MOST_BYTES = 1 << 17
_STRUCTURE = re.compile(r"(?:^|[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029])\\*(?:## \d|```|~~~|---|_meta:)")
"""A line that may be structure, or text escaped so as not to be."""


def _read(path: str) -> str:
    """A file of ordinary size; ValueError if it is larger or not UTF-8."""
    check_links(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe is not waited for
    try:
        data = os.read(descriptor, _MOST_BYTES)
    finally:
        os.close(descriptor)
    if len(data) == _MOST_BYTES:
        raise ValueError("too long")
    return data.decode()


def read_plain_turn(directory: str, number: int, names: Collection[str]) -> TurnRecord | None:
    """
    What an imported turn says.

    Args:
        directory: Its directory.
        number: Its number.
        names: Names of its files.

    Returns:
        The same as load_turn; None if that has to be asked, because the turn has another form or is damaged.
    """
    if RESEARCH_JSON in names:
        return None
    summary: dict[str, Any] = {}
    try:
        if INDEX_SUMMARY_JSON in names:
            summary = load_json(_read(f"{directory}/{INDEX_SUMMARY_JSON}"))
        metadata = load_json(_read(f"{directory}/{METADATA_JSON}"))
        found = _PLAIN.fullmatch(_read(f"{directory}/{CONTEXT_MD}"))
        if found is None or metadata["status"] != "imported" or metadata["turn"] != number:
            return None
        query, answer, session = metadata["query"], found["answer"], metadata["session_id"]
        at = parse_time(metadata["created_at"])
        text, topics = summary.get("summary") or "", tuple(summary.get("topics") or ())
        topic = summary.get("research_topic")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not all(isinstance(one, str) for one in (query, session, text, topic or "", *topics)):
        return None
    if _STRUCTURE.search(found["query"]) or _STRUCTURE.search(answer):
        return None
    return TurnRecord(
        number, "imported", session, at, query, answer, text, topics, topic or None, (query,), answer
    )
