"""
Phase 2: what this query needs from memory (S0, S1).

2.1 chooses among ranked candidates, code follows their links and loads them, 2.2 drafts the lines that belong
into §2, code renders and checks them, and 2.5 judges whether they suffice. A model that does not write
quotes; what one that writes words anew must hold in the nodes that it cites.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panda.documents.constraints import find_constraints
from panda.documents.context import Section
from panda.documents.questions import named_turns
from panda.documents.times import Clock
from panda.errors import GateError, HaltError, MemoryNodeError, ReplyError
from panda.memory.gathered import (
    DraftSection,
    GatheredSection,
    build_sections,
    render_gathered,
    with_own_confidence,
)
from panda.memory.gathered_checks import check_sections
from panda.memory.loading import LONGEST_LINE_CHARS, LoadedDocument, fit_nodes, load_nodes
from panda.memory.nodes import Node, NodeReader
from panda.memory.source_groups import group_documents
from panda.phases.asking import ask, quote
from panda.phases.contract import Advance, Outcome, Stop
from panda.phases.drafting import Draft, draft_of, evidence_of, line_options
from panda.phases.gathering_record import gathered_values
from panda.phases.recalling import recalled_turns
from panda.phases.turn import Turn
from panda.recipes.choices import Option
from panda.recipes.executor import RecipeExecutor, Reply
from panda.retrieval.candidates import Candidate, Retriever
from panda.retrieval.offers import offered_candidates
from panda.retrieval.overlap import share_of_words
from panda.retrieval.plan import build_plan, further_nodes, planned_nodes
from panda.retrieval.query_words import find_names
from panda.retrieval.recent import recent_turns
from panda.retrieval.relevance import judge_candidates
from panda.retrieval.rules import ruled_nodes
from panda.storage.layout import GATHERED_CONTEXT_JSON, QUERY_ANALYSIS_JSON, RETRIEVAL_PLAN_JSON

_MOST_CANDIDATES = 30
_WIDER = 4
_SESSION_TURNS = 20


@dataclass(frozen=True)
class Gathered:
    """What phase 2 found, whether it is committed or not."""

    plan: Mapping[str, Any]
    """The retrieval plan."""
    documents: tuple[LoadedDocument, ...]
    """What was loaded, and what of it was cut."""
    section: Section
    """§2."""
    values: Mapping[str, Any]
    """gathered_context.json."""
    outcome: Outcome
    """How the phase ends."""


class ContextGatherer:
    """
    Writes §2, retrieval_plan.json and gathered_context.json.

    Args:
        executor: Asks the recipes.
        retriever: Ranks candidates.
        reader: Loads nodes.
        clock: The present.
        count: Maps a text to budget tokens.
    """

    number = 2
    name = "context gatherer"
    layer = "MIND"

    def __init__(
        self,
        executor: RecipeExecutor,
        retriever: Retriever,
        reader: NodeReader,
        clock: Clock,
        count: Callable[[str], int],
    ) -> None:
        self._executor = executor
        self._retriever = retriever
        self._reader = reader
        self._clock = clock
        self._count = count

    def run(self, turn: Turn) -> Outcome:
        """Plan, load, draft, check, judge; a draft that fails is made again once, with guidance."""
        return self.gather(turn).outcome

    def plan(self, turn: Turn) -> Mapping[str, Any]:
        """
        2.1: the retrieval plan, which is written to the turn; one that is there already is kept.

        Raises:
            HaltError: The model gave no valid reply, or research that was chosen cannot be read.
        """
        if turn.folder.has(RETRIEVAL_PLAN_JSON):
            turn.count_execution(self._executor.book.recipe_for("phase2_1_retrieval", turn.mode).key)
            return turn.read(RETRIEVAL_PLAN_JSON)
        candidates, previous = self._candidates(turn)
        offered = offered_candidates(candidates, count=self._count)
        options = [Option(c.node_id, c.text, (c.node_id,), max(0.0, c.score)) for c in offered]
        reply = ask(self._executor, "phase2_1_retrieval", turn, options={"relevant": options})
        relevant = reply.choices.get("relevant")
        ids = [candidate.node_id for candidate in candidates]
        judged = judge_candidates(
            candidates,
            query=turn.meant,
            likelihoods=relevant.scores if relevant else {},
            written=reply.values["relevant"],
            by_rule=[
                *ruled_nodes(turn.query, turn.read(QUERY_ANALYSIS_JSON), ids, previous),
                *(one for number in recalled_turns(turn) if (one := f"turn:{number}") in ids),
            ],
        )
        chosen = [one.candidate.node_id for one in judged if one.chosen]
        if not chosen:
            turn.warn("no saved source is relevant to the query")
        research = next((self._reader.load(one) for one in chosen if one.startswith("research:")), None)
        plan = build_plan(judged, research, self._clock(), reasoning=reply.values.get("reasoning"))
        turn.folder.write_json(RETRIEVAL_PLAN_JSON, plan)
        return plan

    def gather(self, turn: Turn) -> Gathered:
        """
        All of phase 2; nothing but the plan is written.

        Raises:
            HaltError: A planned document is missing or corrupt, or §2 failed its checks twice.
        """
        plan = self.plan(turn)
        further: list[str] = []
        guidance: str | None = None
        issues: list[str] = []
        valid: Gathered | None = None
        for round_ in (0, 1):
            documents = self._load(turn, [*planned_nodes(plan), *further])
            nodes = {one.node.id: one.node for one in documents}
            try:
                draft = self._draft(turn, documents, plan, guidance, further)
                sections = self._build(turn, draft, nodes, plan)
                issues = check_sections(sections, nodes, self._clock(), query=turn.query)
                if issues and valid is None:
                    guidance = "; ".join(issues)
                    continue
                sections = with_own_confidence(sections, nodes, self._clock())
                reply = self._judge(turn, sections, draft, guidance) if not issues else None
            except (ReplyError, GateError) as exc:
                if valid is None:
                    raise
                reply, issues = None, [exc.message]
            if reply is None:
                assert valid is not None
                turn.warn(f"the second draft of §2 failed, the first is kept: {'; '.join(issues)}")
                return valid
            further = [one for one in further_nodes(plan) if one not in nodes][:_WIDER]
            if reply.values["verdict"] != "retry" or round_ == 1 or not further:
                return self._gathered(turn, plan, documents, sections, reply)
            valid = self._gathered(turn, plan, documents, sections, reply)
            guidance = str(reply.values.get("guidance") or "Look at further sources.")
        raise HaltError(
            "§2 failed its checks twice",
            where=str(turn.folder.paths / GATHERED_CONTEXT_JSON),
            expected="every line of §2 supported by the node it cites",
            received="; ".join(issues),
            fix="look at the nodes that are named; correct the file, the prompt or the model, then resume",
        )

    def _candidates(self, turn: Turn) -> tuple[list[Candidate], str | None]:
        """The ranked candidates, and the session's previous turn."""
        analysis = turn.read(QUERY_ANALYSIS_JSON)
        named = [f"turn:{number}" for number in named_turns(turn.query)]
        recent = recent_turns(turn.layout, turn.user_id, turn.earlier, limit=1)
        previous = f"turn:{recent[0][0]}" if recent else None
        reference = analysis["content_reference"]
        must = [*named, *filter(None, [previous]), *([reference["node_id"]] if reference else [])]
        must += analysis.get("reference_nodes", ())
        must += [f"turn:{number}" for number in recalled_turns(turn)]
        image = turn.described_image
        shown = find_names(image["description"]) if image else []
        asked = [analysis["resolved_query"], reference and reference["title"], *shown]
        query = " ".join(dict.fromkeys(filter(None, asked)))
        found = self._retriever.find(
            query, limit=_MOST_CANDIDATES, must_include=must, before_turn=turn.turn, fill_up=True
        )
        for problem in self._retriever.problems:
            turn.warn(f"not in the index: {problem.told}")
        if self._retriever.behind:
            turn.warn(
                f"the index lacks {self._retriever.behind} changed files: another process is writing it"
            )
        missing = [node_id for node_id in named if node_id not in {c.node_id for c in found}]
        if missing:
            turn.warn(f"the query names {', '.join(missing)}, which does not exist")
        return found, previous

    def _load(self, turn: Turn, chosen: Sequence[str]) -> list[LoadedDocument]:
        try:
            nodes = load_nodes(self._reader, chosen)
        except MemoryNodeError as exc:
            plan = turn.folder.paths / RETRIEVAL_PLAN_JSON
            fix = f"restore or mend it, or delete {plan} so that the turn plans anew; then resume the turn"
            raise MemoryNodeError(
                exc.message, where=exc.where, fix=fix, expected=exc.expected, details=exc.details
            ) from exc
        meant = turn.meant
        documents = fit_nodes(nodes, count=self._count, fit=lambda text: share_of_words(meant, text))
        for document in documents:
            for warning in document.node.warnings:
                turn.warn(warning)
            if document.is_cut:
                sizes = f"from {document.tokens} to {document.kept_tokens} tokens"
                turn.warn(f"{document.node.id} cut {sizes}")
            for item in document.node.items:
                if len(item.text) > LONGEST_LINE_CHARS:
                    length = f"{len(item.text):,} characters"
                    turn.warn(f"{document.node.id}: a line of {length} is too long to quote")
        return documents

    def _draft(
        self,
        turn: Turn,
        documents: Sequence[LoadedDocument],
        plan: Mapping[str, Any],
        guidance: str | None,
        further: Sequence[str],
    ) -> Draft:
        session = recent_turns(
            turn.layout, turn.user_id, turn.earlier, limit=_SESSION_TURNS
        )  # fmt: skip
        lines = line_options(turn.meant, documents)
        sources = [Option(one.node.id, one.node.title) for one in documents if one.items]
        reply = ask(
            self._executor,
            "phase2_2_synthesis",
            turn,
            options={"lines": [line.option for line in lines], "sources": sources},
            extra={**group_documents(documents, self._clock(), [number for number, _ in session])},
            guidance=guidance,
        )
        scores = reply.choices["lines"].scores if "lines" in reply.choices else {}
        return draft_of(turn.meant, reply.values, lines, plan, scores, further)

    def _build(
        self, turn: Turn, draft: Draft, nodes: Mapping[str, Node], plan: Mapping[str, Any]
    ) -> list[GatheredSection]:
        ruled = [one["node_id"] for one in plan["candidates"] if one["by"] == "always_include"]
        sections: Sequence[DraftSection] = draft.sections
        stated = find_constraints(turn.query)
        return build_sections(sections, nodes, stated, self._clock(), by_rule=ruled)

    def _judge(
        self, turn: Turn, sections: Sequence[GatheredSection], draft: Draft, guidance: str | None
    ) -> Reply:
        text = "\n".join(f"{section.title}: {item.text}" for section in sections for item in section.items)
        return ask(
            self._executor,
            "phase2_5_context_validator",
            turn,
            options={"evidence": evidence_of(turn.meant, draft)},
            extra={"gathered_context": text},
            guidance=guidance,
        )

    def _gathered(
        self,
        turn: Turn,
        plan: Mapping[str, Any],
        documents: Sequence[LoadedDocument],
        sections: Sequence[GatheredSection],
        reply: Reply,
    ) -> Gathered:
        now = self._clock()
        nodes = {one.node.id: one.node for one in documents}
        section = render_gathered(sections, nodes, now)
        verdict = str(reply.values["verdict"])
        values = gathered_values(sections, documents, now, verdict=verdict, confidence=reply.confidence)
        files = {GATHERED_CONTEXT_JSON: values}
        outcome: Outcome = Advance(section, files)
        if verdict == "clarify":
            question = reply.values.get("question") or f"What exactly do you mean by “{quote(turn.query)}”?"
            outcome = Stop("clarify", None, files, question=str(question))
        return Gathered(plan, tuple(documents), section, values, outcome)
