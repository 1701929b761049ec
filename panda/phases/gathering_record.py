"""What phase 2 leaves beside §2: gathered_context.json with its figures (S0 §7)."""

from collections.abc import Sequence
from datetime import datetime

from panda.documents.times import render_time
from panda.memory.budget import LoadedDocument
from panda.memory.gathered import CONSTRAINTS, GatheredSection, is_stale, sections_to_json

_GAP = "nothing that was gathered seems to answer the query"


def gathered_values(
    sections: Sequence[GatheredSection],
    documents: Sequence[LoadedDocument],
    now: datetime,
    *,
    verdict: str,
    confidence: float | None,
) -> dict[str, object]:
    """
    The value of gathered_context.json.

    Args:
        sections: The parts of §2.
        documents: What was loaded.
        now: When it was gathered.
        verdict: What 2.5 said.
        confidence: How sure it was; None if unknown.
    """
    averages = [section.confidence_avg for section in sections if section.confidence_avg is not None]
    quality = round(sum(averages) / len(averages), 2) if averages else 0.0
    gaps = [] if verdict == "pass" else [_GAP]
    return {
        "sections": sections_to_json(sections),
        "gathered_at": render_time(now),
        "context_quality": quality,
        "gaps": gaps,
        "stale": [one.node.id for one in documents if is_stale(one.node, now)],
        "documents": [
            {
                "node_id": one.node.id,
                "provenance": one.node.provenance,
                "tokens": one.tokens,
                "kept_tokens": one.kept_tokens,
                "cut": one.is_cut,
            }
            for one in documents
        ],
        "metrics": _metrics(sections, quality),
        "verdict": {
            "status": "clarify" if verdict == "clarify" else "pass",
            "issues": gaps,
            "confidence": confidence,
        },
    }


def _metrics(sections: Sequence[GatheredSection], quality: float) -> dict[str, object]:
    """S0 §7: context quality, source coverage, missing constraints."""
    shown = {section.title: section for section in sections}
    nodes = [node_id for section in sections if section.title != CONSTRAINTS for node_id in section.node_ids]
    kinds = ("turn", "memory", "fact", "knowledge", "research", "visit")
    return {
        "context_quality": quality,
        "coverage": {kind: sum(node_id.startswith(f"{kind}:") for node_id in nodes) for kind in kinds},
        "constraints": len(shown[CONSTRAINTS].items),
        "constraints_missing": not shown[CONSTRAINTS].items,
    }
