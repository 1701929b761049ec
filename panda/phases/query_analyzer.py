"""Phase 0: what the query is, what it refers to, what it needs (S1 §3.1, S3 §16.1)."""

import re
from collections.abc import Sequence

from panda.documents.context import Meta, Section, Text
from panda.memory.nodes import NodeReader
from panda.phases.asking import ask
from panda.phases.contract import Advance
from panda.phases.turn import Turn
from panda.recipes.choices import Option
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.query_words import find_names
from panda.retrieval.recent import recent_turns
from panda.storage.layout import QUERY_ANALYSIS_JSON

_REFERENCES = re.compile(
    r"\b(?:it|its|they|them|their|this one|that one|these|those|(?:this|that) [a-z]+|"
    r"the (?:first|second|third|last|other|cheaper|same) one|one of them)\b",
    re.IGNORECASE,
)
_RECENT = 3


class QueryAnalyzer:
    """
    Writes §0 and query_analysis.json.

    Args:
        executor: Asks the recipe.
        reader: Loads the nodes that a reference may mean.
    """

    number = 0
    name = "query analyzer"
    layer = "REFLEX"

    def __init__(self, executor: RecipeExecutor, reader: NodeReader) -> None:
        self._executor = executor
        self._reader = reader

    def run(self, turn: Turn) -> Advance:
        """Analyse the query; the references in it are found by rule, what they mean by choice."""
        recent = recent_turns(turn.layout, turn.user_id, turn.session_id, turn.turn, limit=_RECENT)
        words = [match.group(0) for match in _REFERENCES.finditer(turn.query)]
        targets = self._targets(recent) if words else []
        reply = ask(
            self._executor,
            "phase0_query_analyzer",
            turn,
            options={"content_reference": targets},
            variables={"names": ", ".join(find_names(turn.query))},
            extra={
                "raw_query": turn.query,
                "turn_summaries": "\n".join(f"Turn {n}: {said}" for n, said in recent),
            },
        )
        values = reply.values
        target = next((option for option in targets if option.id == values.get("content_reference")), None)
        status = "not_needed" if not words else "resolved" if target else "failed"
        analysis = {
            "original_query": turn.query,
            "resolved_query": values["resolved_query"] or turn.query,
            "reference_resolution": {
                "status": status,
                "original_references": words,
                "resolved_to": target.text if target else None,
            },
            "query_type": values["query_type"],
            "intent": values["intent"],
            "entities": find_names(turn.query),
            "user_purpose": values.get("user_purpose"),
            "data_requirements": {
                "needs_current_prices": values["needs_current_prices"],
                "needs_live_data": values["needs_live_data"],
                "freshness": None,
            },
            "content_reference": {"title": target.text, "node_id": target.id, "source_turn": None}
            if target
            else None,
            "reasoning": values.get("reasoning"),
        }
        meta = {key: value for key, value in analysis.items() if key != "original_query"}
        if analysis["resolved_query"] == turn.query:
            meta["resolved_query"] = None  # §0 holds a long query once
        provenance = {"source_type": "user_query", "node_ids": [], "provenance": ["§0.raw_query"]}
        section = Section(0, (Text(turn.query), Meta({**provenance, **meta})))
        return Advance(section, {QUERY_ANALYSIS_JSON: analysis})

    def _targets(self, recent: Sequence[tuple[int, str]]) -> list[Option]:
        found: dict[str, Option] = {}
        for number, _ in reversed(recent):
            waiting = list(self._reader.load(f"turn:{number}").links)
            while waiting:
                node_id = waiting.pop(0)
                node = self._reader.load(node_id)
                waiting += [link for link in node.links if link not in found]
                if node_id.startswith("visit:"):
                    found.setdefault(node_id, Option(node_id, node.title, (node_id,)))
        return list(found.values())
