"""Phase 0: what the query is, what it refers to, what it needs (S1 §3.1, S3 §16.1)."""

from collections.abc import Sequence
from typing import Any

from panda.choosing.clauses import clause_options
from panda.choosing.decision import Option
from panda.documents.context import Meta, Section, Text
from panda.language.items import words_reaching_back
from panda.language.reading import Reading
from panda.language.words import split_words, stem
from panda.memory.reader import NodeReader
from panda.phases.asking import ask
from panda.phases.contract import Advance
from panda.phases.image_document import describe_image
from panda.phases.query_reading import entity_options, read_query, written_reading
from panda.phases.session_references import (
    References,
    kept_content,
    nodes_of,
    references_of,
    references_read,
    subject_of,
    target_of,
)
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.retrieval.query_words import find_names, find_query_words
from panda.retrieval.recent import recent_turns
from panda.session.fold import kept_limits
from panda.session.pending import agreed_query, answer_of
from panda.storage.layout import IMAGE_JSON, QUERY_ANALYSIS_JSON

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
        describe_image(self._executor, turn)
        recent = recent_turns(turn.layout, turn.user_id, turn.earlier, limit=_RECENT)
        recipe = self._executor.book.recipe_for("phase0_query_analyzer", turn.mode)
        references = references_of(turn)
        known = {stem(word) for _, said in recent for word in split_words(said)}
        words = references.words or words_reaching_back(turn.query, known)
        named = references.options()
        targets = [*named, *self._targets(recent)] if words and not references.refs else []
        clauses = clause_options(turn.query)
        reply = ask(
            self._executor,
            "phase0_query_analyzer",
            turn,
            options={
                "content_reference": targets,
                "entities": entity_options(turn.carry) if self._executor.writes(recipe.key) else [],
                "orders": clauses,
                "asks": clauses,
                "tells": clauses,
            },
            variables={
                "names": ", ".join(find_names(turn.query)),
                "today": f"{turn.context.front.created_at:%A, %Y-%m-%d}",
            },
            extra={
                "raw_query": turn.query,
                "turn_summaries": "\n".join(f"Turn {n}: {said}" for n, said in recent),
            },
        )
        values = reply.values
        target = next((option for option in targets if option.id == values.get("content_reference")), None)
        written = written_reading(turn, reply)
        if written is not None:
            references = references_read(written, turn)
            words = references.words or ([target.text] if target else [])
        elif target in named and target is not None:
            references = references.chosen(target.id)
        subject = subject_of(turn, self._reader) if written is None else None
        words = words or ([turn.query] if subject else [])
        content = subject.content if subject else self._content(references, target)
        status = "not_needed" if not words else "resolved" if content else "failed"
        reading = written or read_query(turn, references, reply)
        pending = answer_of(turn.carry.pending_clarification, turn.query, reading)
        resolved = agreed_query(turn.carry, pending, turn.query)
        if written is not None and values["resolved_query"].strip() not in ("", turn.query.strip()):
            resolved = values["resolved_query"]
        elif subject is not None:
            resolved = resolved or subject.query
        prices = values["needs_current_prices"]
        live = values["needs_live_data"] and (written is not None or prices or not reading.details)
        analysis = {
            "original_query": turn.query,
            "resolved_query": resolved or references.resolved_query(turn.query, values["resolved_query"]),
            "reference_resolution": {
                "status": status,
                "original_references": words,
                "resolved_to": content["title"] if content else None,
            },
            "query_type": values["query_type"],
            "intent": values["intent"],
            "entities": find_names(turn.query),
            "user_purpose": values.get("user_purpose"),
            "data_requirements": {
                "needs_current_prices": prices,
                "needs_live_data": live,
                "freshness": None,
            },
            "content_reference": content,
            "reasoning": values.get("reasoning"),
            **self._session_part(turn, references, pending, reading),
            "reading": reading.as_json(),
        }
        meta = {key: value for key, value in analysis.items() if key not in ("original_query", "reading")}
        if analysis["resolved_query"] == turn.query:
            meta["resolved_query"] = None  # §0 holds a long query once
        places = ["§0.raw_query", *([IMAGE_JSON] if turn.image else [])]
        provenance = {"source_type": "user_query", "node_ids": [], "provenance": places}
        section = Section(0, (Text(turn.query), Meta({**provenance, **meta})))
        return Advance(section, {QUERY_ANALYSIS_JSON: analysis})

    def _content(self, references: References, target: Option | None) -> dict[str, object] | None:
        """What the references mean, as content_reference; the first of several leads."""
        entities = references.entities
        if entities:
            node_id, source = target_of(entities[0], self._reader)
            title = ", ".join(one.label for one in entities)
            return {"title": title, "node_id": node_id, "source_turn": source}
        return {"title": target.text, "node_id": target.id, "source_turn": None} if target else None

    def _session_part(
        self, turn: Turn, references: References, pending: dict[str, Any] | None, reading: Reading
    ) -> dict[str, object]:
        """What the session learns from the query; nothing where there is nothing."""
        terms = [word.lower() for word in find_query_words(turn.query)]
        found = {
            "references": list(references.refs),
            "reference_nodes": nodes_of(references, self._reader),
            "constraints": kept_limits(reading.limits),
            "pending": pending,
            "kept_content": kept_content(turn.query, turn.carry, terms),
        }
        return {name: value for name, value in found.items() if value}

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
