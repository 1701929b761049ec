"""
Phase 2: what this query needs from memory (S0, S1).

2.1 chooses among ranked candidates, code follows their links and loads them, 2.2 chooses the lines that
belong into §2, code renders them, checks them, and 2.5 judges whether they suffice. §2 quotes: no line of it
is written by a model, so none can say what its node does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from panda.documents.constraints import find_constraints
from panda.documents.questions import is_question, named_turns
from panda.documents.times import Clock, render_time
from panda.errors import HaltError
from panda.memory.confidence import EXPIRED_BELOW
from panda.memory.gathered import (
    GatheredSection,
    build_sections,
    check_sections,
    render_gathered,
    sections_to_json,
)
from panda.memory.nodes import Item, Node, NodeReader
from panda.phases.asking import ask
from panda.phases.contract import Advance, Outcome, Stop
from panda.phases.evidence_spans import title_of
from panda.phases.turn import Turn
from panda.recipes.choices import Option
from panda.recipes.executor import RecipeExecutor, Reply
from panda.retrieval.candidates import Candidate, Retriever
from panda.retrieval.overlap import share_of_words
from panda.retrieval.recent import recent_turns
from panda.storage.layout import GATHERED_CONTEXT_JSON, QUERY_ANALYSIS_JSON, RETRIEVAL_PLAN_JSON

_MOST_CANDIDATES = 30
_MOST_SPANS = 40
_WIDER = 4
_LONGEST_LINE = 1_000


@dataclass(frozen=True)
class _Span:
    """One line that may go into §2."""

    option: Option
    """As the choice sees it."""
    node: Node
    """Where it comes from."""
    item: Item
    """The line."""


class ContextGatherer:
    """
    Writes §2, retrieval_plan.json and gathered_context.json.

    Args:
        executor: Asks the recipes.
        retriever: Ranks candidates.
        reader: Loads nodes.
        clock: The present.
    """

    number = 2
    name = "context gatherer"
    layer = "MIND"

    def __init__(
        self, executor: RecipeExecutor, retriever: Retriever, reader: NodeReader, clock: Clock
    ) -> None:
        self._executor = executor
        self._retriever = retriever
        self._reader = reader
        self._clock = clock

    def run(self, turn: Turn) -> Outcome:
        """Choose, load, quote, check, judge; a judgement `retry` widens the search once."""
        candidates = self._candidates(turn)
        chosen = self._retrieve(turn, candidates)
        guidance: str | None = None
        for round_ in (0, 1):
            nodes = self._load(chosen)
            spans = self._spans(turn, nodes)
            lines = self._synthesise(turn, spans, guidance)
            lines += _first_of_named(turn, spans, lines)
            now = self._clock()
            sections = build_sections([(s.node, s.item) for s in lines], find_constraints(turn.query), now)
            issues = check_sections(sections, {node.id: node for node in nodes}, now)
            reply = self._judge(turn, sections, lines, guidance)
            verdict = str(reply.values["verdict"])
            wider = [c for c in candidates if c.node_id not in {node.id for node in nodes}][:_WIDER]
            if not issues and (verdict != "retry" or round_ == 1 or not wider):
                return self._finish(turn, candidates, chosen, nodes, sections, reply, verdict)
            guidance = "; ".join(issues) or str(reply.values.get("guidance") or "Look at further sources.")
            chosen = chosen + ([] if issues else [candidate.node_id for candidate in wider])
        raise HaltError(
            "§2 failed its checks twice",
            where=str(turn.folder.paths / GATHERED_CONTEXT_JSON),
            expected="every line of §2 supported by the node it cites",
            received="; ".join(issues),
            fix="look at the nodes that are named; correct the file or the reader, then resume the turn",
        )

    def _candidates(self, turn: Turn) -> list[Candidate]:
        analysis = turn.read(QUERY_ANALYSIS_JSON)
        named = [f"turn:{number}" for number in named_turns(turn.query)]
        recent = recent_turns(turn.layout, turn.user_id, turn.session_id, turn.turn, limit=1)
        reference = analysis["content_reference"]
        must = [
            *named,
            *(f"turn:{number}" for number, _ in recent),
            *([reference["node_id"]] if reference else []),
        ]
        query = " ".join(filter(None, [analysis["resolved_query"], reference and reference["title"]]))
        found = self._retriever.find(query, limit=_MOST_CANDIDATES, must_include=must, before_turn=turn.turn)
        for problem in self._retriever.problems:
            turn.warn(f"not in the index: {problem.where}: {problem.message}")
        missing = [node_id for node_id in named if node_id not in {c.node_id for c in found}]
        if missing:
            turn.warn(f"the query names {', '.join(missing)}, which does not exist")
        return found

    def _retrieve(self, turn: Turn, candidates: Sequence[Candidate]) -> list[str]:
        top = max((c.score for c in candidates), default=0.0) or 1.0
        options = [Option(c.node_id, c.header, (c.node_id,), max(0.0, c.score) / top) for c in candidates]
        reply = ask(self._executor, "phase2_1_retrieval", turn, options={"relevant": options})
        reference = turn.read(QUERY_ANALYSIS_JSON)["content_reference"]
        named = [f"turn:{number}" for number in named_turns(turn.query)]
        forced = [
            n
            for n in [*named, *([reference["node_id"]] if reference else [])]
            if n in {o.id for o in options}
        ]
        chosen = list(dict.fromkeys([*forced, *reply.values["relevant"]]))
        turn.folder.write_json(RETRIEVAL_PLAN_JSON, self._plan(reply, candidates, chosen, forced))
        return chosen

    def _plan(
        self, reply: Reply, candidates: Sequence[Candidate], chosen: Sequence[str], forced: Sequence[str]
    ) -> dict[str, object]:
        scores = reply.choices["relevant"].scores if "relevant" in reply.choices else {}
        turns = [int(n.removeprefix("turn:")) for n in chosen if n.startswith("turn:")]
        research = [self._reader.load(n) for n in chosen if n.startswith("research:")]
        return {
            "relevant_turns": turns,
            "turn_relevance": {
                str(n): {"relevance": "high" if rank == 0 else "medium", "reason": None}
                for rank, n in enumerate(turns)
            },
            "relevant_memory_keys": [
                n.partition(":")[2] for n in chosen if n.startswith(("memory:", "fact:"))
            ],
            "relevant_knowledge": [n.partition(":")[2] for n in chosen if n.startswith("knowledge:")],
            "research_cache_match": {
                "matched": bool(research),
                "topic": research[0].id.partition(":")[2] if research else None,
                "freshness": None,
                "quality": round(research[0].confidence, 2) if research else None,
                "reuse_recommendation": None,
            },
            "webpage_cache_needed": [n.partition(":")[2] for n in chosen if n.startswith("visit:")],
            "candidates": [
                {
                    "node_id": c.node_id,
                    "score": round(scores[c.node_id], 4) if c.node_id in scores else None,
                    "chosen": c.node_id in chosen,
                    "by": "always_include" if c.node_id in forced else "model",
                }
                for c in candidates
            ],
            "reasoning": reply.values.get("reasoning"),
        }

    def _load(self, chosen: Sequence[str]) -> list[Node]:
        nodes: dict[str, Node] = {}
        waiting = list(chosen)
        while waiting:
            node_id = waiting.pop(0)
            if node_id not in nodes:
                nodes[node_id] = self._reader.load(node_id)
                waiting += nodes[node_id].links
        return list(nodes.values())

    def _spans(self, turn: Turn, nodes: Sequence[Node]) -> list[_Span]:
        """The lines of the nodes; where a turn repeats another source, the source is kept."""
        found: list[_Span] = []
        for node in sorted(nodes, key=lambda node: node.source_type == "turn_summary"):
            for warning in node.warnings:
                turn.warn(warning)
            for item in node.items:
                if len(item.text) > _LONGEST_LINE:
                    turn.warn(f"{node.id}: a line of {len(item.text):,} characters is too long to quote")
                elif item.confidence >= EXPIRED_BELOW and not is_question(item.text):
                    prior = share_of_words(turn.query, item.text)
                    found.append(
                        _Span(
                            Option(
                                f"s{len(found) + 1}",
                                item.text,
                                (node.id,),
                                prior,
                                title_of(node.id, turn.query),
                            ),
                            node,
                            item,
                        )
                    )
        unique = {span.item.text: span for span in reversed(found)}
        ranked = sorted(unique.values(), key=lambda span: -span.option.prior)[:_MOST_SPANS]
        return sorted(ranked, key=lambda span: int(span.option.id[1:]))

    def _synthesise(self, turn: Turn, spans: Sequence[_Span], guidance: str | None) -> list[_Span]:
        options = [span.option for span in spans]
        reply = ask(
            self._executor, "phase2_2_synthesis", turn, options={"lines": options}, guidance=guidance
        )  # fmt: skip
        by_id = {span.option.id: span for span in spans}
        return [by_id[id_] for id_ in reply.values["lines"]]

    def _judge(
        self, turn: Turn, sections: Sequence[GatheredSection], lines: Sequence[_Span], guidance: str | None
    ) -> Reply:
        draft = "\n".join(f"{section.title}: {item.text}" for section in sections for item in section.items)
        return ask(
            self._executor,
            "phase2_5_context_validator",
            turn,
            options={"evidence": [span.option for span in lines]},
            extra={"gathered_context": draft},
            guidance=guidance,
        )

    def _finish(
        self,
        turn: Turn,
        candidates: Sequence[Candidate],
        chosen: Sequence[str],
        nodes: Sequence[Node],
        sections: Sequence[GatheredSection],
        reply: Reply,
        verdict: str,
    ) -> Outcome:
        now = self._clock()
        averages = [section.confidence_avg for section in sections if section.confidence_avg is not None]
        gaps = [] if verdict == "pass" else ["nothing that was gathered seems to answer the query"]
        values = {
            "sections": sections_to_json(sections),
            "gathered_at": render_time(now),
            "context_quality": round(sum(averages) / len(averages), 2) if averages else 0.0,
            "gaps": gaps,
            "stale": [node.id for node in nodes if node.expires_at is not None and node.expires_at < now],
            "verdict": {
                "status": "clarify" if verdict == "clarify" else "pass",
                "issues": gaps,
                "confidence": reply.confidence,
            },
        }
        if verdict == "clarify":
            return Stop(
                "clarify", None, {GATHERED_CONTEXT_JSON: values}, question=str(reply.values["question"])
            )
        return Advance(render_gathered(sections), {GATHERED_CONTEXT_JSON: values})


def _first_of_named(turn: Turn, spans: Sequence[_Span], lines: Sequence[_Span]) -> list[_Span]:
    """The first line of each turn that the query names and of which no line was chosen."""
    shown = {span.node.id for span in lines}
    wanted = [node_id for n in named_turns(turn.query) if (node_id := f"turn:{n}") not in shown]
    firsts = [next((span for span in spans if span.node.id == node_id), None) for node_id in wanted]
    return [span for span in firsts if span is not None]
