"""What of the saved sources belongs into §2, for phases 2.1 and 2.2."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from panda.offline.offline_models import OfflineModels
from panda.retrieval.selection import near_the_first
from panda.steps.inputs import RetrievalInputs, SynthesisInputs
from panda.steps.request import Request

_MAX_ITEMS = 12
_TITLES = (
    *("Forever Memory Knowledge", "Session Preferences", "Relevant Prior Turns"),
    *("Cached Research", "Visit Data"),
)
"""Titles of sections (S0); what was handed over stands under the first, and the phase gives it its own."""


def choose_sources(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return the nodes of the closest passages of all candidates, closest first."""
    inputs = request.inputs_as(RetrievalInputs)
    near = [] if inputs.only_tells else near_the_first(inputs.ranked())
    return {"relevant": list(dict.fromkeys(ranked.passage.node_id for ranked in near))}


def quote_lines(request: Request, models: OfflineModels) -> Mapping[str, Any]:
    """Return the lines of the closest passages, word for word."""
    inputs = request.inputs_as(SynthesisInputs)
    lines = inputs.document_lines() or [line for near in inputs.passages() for line in near.passage.lines]
    sections: list[dict[str, Any]] = []
    for title, group in groupby(lines, key=lambda line: inputs.titles[line.node]):
        items = [{"text": line.text, "node_ids": [line.node]} for line in group]
        for start in range(0, len(items), _MAX_ITEMS):
            of_section = title if title in _TITLES else _TITLES[0]
            sections.append({"title": of_section, "items": items[start : start + _MAX_ITEMS]})
    return {"sections": sections}
