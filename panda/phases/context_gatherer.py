"""
Phase 2: what this query needs from memory (S0, S1).

2.1 chooses among ranked candidates, code follows their links and loads them, 2.2 chooses the lines that
belong into §2 by their ids, code adds what belongs to them, renders and checks them, and 2.5 judges whether
they suffice.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import structs

from panda.documents.context import HEADINGS, Phase, Section
from panda.documents.memory_file import statement_key
from panda.documents.safe_text import count_noun, one_line, shorten
from panda.documents.times import Clock, render_time
from panda.errors import GateError, HaltError, MemoryNodeError, Problem, ReplyError
from panda.memory.budget import (
    DOCUMENTS_TOKENS,
    LoadedDocument,
    fit_nodes,
    group_documents,
    is_usable,
    load_nodes,
    long_lines,
)
from panda.memory.gathered import (
    CONSTRAINTS,
    DraftSection,
    build_sections,
    check_sections,
    draft_of_lines,
    is_line_stale,
    is_stale,
    node_label,
    render_gathered,
)
from panda.memory.node import Node, is_statement_id
from panda.memory.reader import NodeReader, find_node
from panda.messages.matching import tells_figure
from panda.phases.from_session import recalled_turns
from panda.phases.named_turns import check_named_turns
from panda.phases.near_passages import passages_answer
from panda.phases.phase_contract import PhaseOutcome, PhaseResult, Stop
from panda.phases.recipe_request import ask, question_of
from panda.phases.running_turn import Turn
from panda.phases.turn_evidence import (
    ClosestLines,
    as_options,
    gather,
    label_lines,
    lines_of,
    read_lines,
    render_lines,
)
from panda.recipes.executor import RecipeExecutor
from panda.recipes.reply import Reply
from panda.retrieval.candidates import (
    PASSAGE_CHARS,
    Candidate,
    Retriever,
    build_plan,
    offered_candidates,
    planned_nodes,
    ruled_nodes,
)
from panda.retrieval.passages import Passage, PassageRanker, RankedPassage, cut_passages
from panda.retrieval.relevance import find_names, share_of_words
from panda.retrieval.selection import near_the_first
from panda.steps.all_steps import CONTEXT_VALIDATION, RETRIEVAL, SYNTHESIS
from panda.steps.inputs import NO_ANSWER_GATHERED, ContextInputs, RetrievalInputs, SynthesisInputs
from panda.steps.lazy import Lazy
from panda.steps.options import Option
from panda.steps.reply_contents import RetrievalReply
from panda.store.node_id import NodeKind, kind_of
from panda.store.reason import Reason
from panda.store.records import (
    ContextMetrics,
    ContextVerdict,
    Coverage,
    DocumentRecord,
    Evidence,
    GatheredContext,
    GatheredSection,
    Line,
    NearPassage,
    RetrievalPlan,
)

_SECOND_LOOK = "You asked for a further look. It was made, and nothing more will be looked at."
_MAX_OFFERED = 30
"""Candidates of which a prompt has those that fit."""
_MAX_RANKED = 60
"""Candidates whose passages are compared."""
_WIDER = 4
_SESSION_TURNS = 20
_CHARS = 240


def _ruled(plan: RetrievalPlan) -> list[str]:
    return [candidate.node_id for candidate in plan.candidates if candidate.by == "always_include"]


def _is_stale(node: Node, sections: Sequence[GatheredSection], now: datetime) -> bool:
    """Return whether a node has expired, or a line of §2 gives a price or stock that was seen long ago."""
    items = [item for section in sections for item in section.items if node.id in item.node_ids]
    return is_stale(node, now) or any(is_line_stale(node, item.text) for item in items)


@dataclass(frozen=True)
class _Pool:
    """What may be relevant to a query."""

    ranked: Sequence[Candidate] = ()  # as the index ranks it
    previous: str | None = None  # node of the session's previous turn
    candidates: Sequence[Candidate] = ()  # with the origins of what a turn only repeats
    origins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What took the place of a turn that says nothing of its own, by its node id."""


_Ranking = Lazy[list[RankedPassage]]
"""The passages of some nodes, closest first."""


def _closeness_by_node(ranked: Sequence[RankedPassage]) -> dict[str, float]:
    """Return the closeness of each node's closest passage."""
    closeness: dict[str, float] = {}
    for near in ranked:
        closeness.setdefault(near.passage.node_id, near.closeness)
    return closeness


@dataclass(frozen=True)
class _Judgement:
    """What phase 2.5 says of §2."""

    status: Literal["pass", "retry", "clarify"]
    confidence: float | None = None  # None where it was not measured
    guidance: str = ""  # what a further look should find; of a pass what is missing all the same
    question: str = ""  # what the user is asked


def gathered_values(
    sections: Sequence[GatheredSection],
    documents: Sequence[LoadedDocument],
    now: datetime,
    *,
    verdict: ContextVerdict,
    gaps: Sequence[str],
) -> GatheredContext:
    averages = [section.confidence_avg for section in sections if section.confidence_avg is not None]
    quality = round(sum(averages) / len(averages), 2) if averages else 0.0
    limits = next(section for section in sections if section.title == CONSTRAINTS)
    nodes = [node_id for section in sections if section.title != CONSTRAINTS for node_id in section.node_ids]
    coverage = {kind: sum(id_.startswith(f"{kind}:") for id_ in nodes) for kind in Coverage.__struct_fields__}
    return GatheredContext(
        sections=tuple(sections),
        gathered_at=render_time(now),
        context_quality=quality,
        gaps=tuple(gaps),
        stale=tuple(document.node.id for document in documents if _is_stale(document.node, sections, now)),
        documents=tuple(
            DocumentRecord(
                document.node.id,
                document.node.provenance,
                document.tokens,
                document.kept_tokens,
                document.is_cut,
            )
            for document in documents
        ),
        metrics=ContextMetrics(quality, Coverage(**coverage), len(limits.items), not limits.items),
        verdict=verdict,
    )


@dataclass(frozen=True)
class Gathered:
    plan: RetrievalPlan
    documents: tuple[LoadedDocument, ...]  # what was loaded, and what of it was cut
    section: Section  # §2
    values: GatheredContext
    outcome: PhaseOutcome  # how the phase ends


@dataclass(frozen=True)
class ContextGatherer:
    """Writes §2, retrieval_plan.json and gathered_context.json."""

    number = Phase.CONTEXT_GATHERER
    layer = "MIND"

    executor: RecipeExecutor  # asks the recipes
    retriever: Retriever  # ranks candidates
    reader: NodeReader  # loads nodes
    closest: ClosestLines  # orders lines by how close they are to the query
    ranker: PassageRanker  # orders passages by how close they are to the query
    clock: Clock  # the present

    def run(self, turn: Turn) -> PhaseOutcome:
        return self.gather(turn).outcome

    def plan(self, turn: Turn) -> RetrievalPlan:
        """2.1: the retrieval plan, which is written to the turn; one that is there already is kept."""
        return self._plan(turn)[0]

    def _plan(self, turn: Turn) -> tuple[RetrievalPlan, _Ranking]:
        """Return the plan and the ranking of its candidates' passages."""
        if (saved_plan := turn.folder.find(RetrievalPlan)) is not None:
            turn.count_execution(self.executor.book.recipe_for(RETRIEVAL.name, turn.mode).key)
            return saved_plan, self._ranking(
                turn, [candidate.node_id for candidate in saved_plan.candidates], {}
            )
        nodes: dict[str, Node] = {}
        few = Lazy(lambda: self._find(turn, _MAX_OFFERED, nodes))
        all_ = Lazy(lambda: self._find(turn, _MAX_RANKED, nodes))
        ranking = _Ranking(
            lambda: self._rank(
                turn, self._known([candidate.node_id for candidate in all_().candidates], nodes)
            )
        )
        options = Lazy(lambda: self._offered(turn, few().candidates, nodes))
        relevant: Sequence[str] = ()
        reasoning = None
        offered: set[str] = set()
        pool = _Pool()
        if not turn.reading.only_tells:  # else nothing is looked for
            reply = self._choose(turn, options, few, all_, ranking)
            pool = all_() if ranking.is_made else few()
            offered |= {candidate.node_id for candidate in pool.candidates}
            relevant = self._without_unknown(turn, reply.content.relevant, offered, "the plan")
            reasoning = reply.content.reasoning
        ids = [candidate.node_id for candidate in pool.ranked]
        ruled = ruled_nodes(turn.analysis, ids, pool.previous)
        asked_for = [
            *turn.document_nodes,
            *(origin_id for node_id in ruled for origin_id in pool.origins.get(node_id, (node_id,))),
            *(NodeKind.TURN.id(number) for number in recalled_turns(turn) if NodeKind.TURN.id(number) in ids),
        ]
        candidates = pool.candidates
        taken = {*relevant, *asked_for}
        chosen = [candidate.node_id for candidate in candidates if candidate.node_id in taken]
        if not chosen and candidates:
            turn.warn("no saved source is relevant to the query")
        plan = build_plan(
            candidates,
            next(
                (self.reader.load(node_id) for node_id in chosen if kind_of(node_id) is NodeKind.RESEARCH),
                None,
            ),
            self.clock(),
            scores=_closeness_by_node(ranking()) if ranking.is_made else {},
            chosen=relevant,
            by_rule=asked_for,
            chosen_by="closeness" if ranking.is_made else "model",
            unseen=set[str]() if ranking.is_made else offered.difference(option.id for option in options()),
            reasoning=reasoning,
        )
        turn.folder.save(plan)
        return plan, ranking

    def _find(self, turn: Turn, limit: int, nodes: dict[str, Node]) -> _Pool:
        """Return the candidates of a query, those that were handed over first."""
        ranked, previous = self._candidates(turn, limit)
        candidates, origins = self._followed(turn, ranked, nodes)
        return _Pool(ranked, previous, [*self._documents(turn, nodes), *candidates], origins)

    def _choose(
        self,
        turn: Turn,
        candidate_options: Lazy[Sequence[Option]],
        few: Lazy[_Pool],
        all_: Lazy[_Pool],
        ranking: _Ranking,
    ) -> Reply[RetrievalReply]:
        """Return which of the candidates are relevant; a prompt has options of but a *few* of *all_*."""

        def node_ids() -> Sequence[str]:
            pool = all_() if ranking.is_made else few()
            return [candidate.node_id for candidate in pool.candidates]

        return ask(
            self.executor,
            RETRIEVAL,
            turn,
            options={"relevant": candidate_options},
            ids={"relevant": node_ids},
            inputs=RetrievalInputs(ranked=ranking),
        )

    @staticmethod
    def _without_unknown(turn: Turn, ids: Sequence[str], offered: Collection[str], place: str) -> list[str]:
        """Return the ids that were offered, each once, with a warning of the others."""
        unknown = [id_ for id_ in ids if id_ not in offered]
        if unknown:
            turn.warn(f"left out of {place}, as it was not offered: {', '.join(unknown)}")
        return [id_ for id_ in dict.fromkeys(ids) if id_ in offered]

    def _offered(
        self, turn: Turn, candidates: Sequence[Candidate], nodes: dict[str, Node]
    ) -> Sequence[Option]:
        """Return the candidates that fit the budgets of a prompt, each with its closest line."""
        offered = offered_candidates(candidates)
        others = [own.node_id for own in offered if own.node_id not in turn.document_nodes]
        read = self._known(others, nodes)
        best = {line.node: line for line in self.closest.best_lines(turn.meant, read)}
        now = self.clock()
        options = []
        for candidate in offered:
            line = best.get(candidate.node_id, Line(candidate.text))
            node = nodes.get(candidate.node_id)
            prompt_text = candidate.text
            if node is not None:
                passage = f"{line.above}: {line.text}" if line.above else line.text
                if node.title not in passage:
                    passage = f"{node.title} {passage}"
                prompt_text = f"{node_label(node, now)}: {shorten(passage, PASSAGE_CHARS)}"
            options.append(
                Option(
                    candidate.node_id,
                    line.text,
                    node_ids=(candidate.node_id,),
                    title=line.above,
                    shown=prompt_text,
                )
            )
        return options

    def _ranking(self, turn: Turn, node_ids: Sequence[str], nodes: dict[str, Node]) -> _Ranking:
        return _Ranking(lambda: self._rank(turn, self._known(node_ids, nodes)))

    def _rank(self, turn: Turn, nodes: Sequence[Node]) -> list[RankedPassage]:
        """Return the passages of some nodes, closest first; what a turn repeats is that of its source."""
        unique: dict[str, Passage] = {}
        for node in sorted(nodes, key=lambda node: kind_of(node.id) is NodeKind.TURN):
            for passage in cut_passages(node):
                unique.setdefault(passage.text, passage)
        return self.ranker.rank(turn.meant, [*unique.values()])

    def gather(self, turn: Turn) -> Gathered:
        """
        All of phase 2; nothing but the plan is written.

        Where 2.5 asks for more, further sources are loaded and chosen from once.

        Raises:
            HaltError: §2 fails its checks.
        """
        plan, ranking = self._plan(turn)
        further: list[str] = []
        guidance: str | None = None
        first: Gathered | None = None
        for is_last in (False, True):
            loaded_nodes = self._load(turn, [*planned_nodes(plan), *further])
            try:
                draft, evidence, documents = self._draft(turn, loaded_nodes, plan, guidance, ranking)
                sections = self._checked(turn, plan, draft, documents)
                if first is not None and _lacks_lines(sections, first):
                    return self._without_second(turn, first, "it holds no line")
                judgement = self._judge(turn, sections, evidence, is_second=first is not None)
            except (ReplyError, GateError) as exc:
                if first is None:
                    raise
                return self._without_second(turn, first, exc.message)
            loaded = {document.node.id for document in documents}
            unloaded = [id_ for id_ in planned_nodes(plan, chosen=False) if id_ not in loaded]
            further = unloaded[:_WIDER]
            gathered = self._gathered(
                turn, plan, documents, sections=sections, evidence=evidence, judgement=judgement
            )
            if is_last or not further or judgement.status != "retry":
                return self._settled(turn, gathered)
            first = gathered
            guidance = judgement.guidance or "Look at further sources."
        raise AssertionError("the second choice is the last")

    def _checked(
        self,
        turn: Turn,
        plan: RetrievalPlan,
        draft: Sequence[DraftSection],
        documents: Sequence[LoadedDocument],
    ) -> list[GatheredSection]:
        """Return §2 as values. Raises HaltError: it fails its checks."""
        nodes = {document.node.id: document.node for document in documents}
        limits = [limit.text for limit in turn.reading.limits]
        sections = build_sections(draft, nodes, limits, self.clock(), by_rule=_ruled(plan))
        issues = check_sections(sections, nodes, self.clock(), query=turn.query)
        if issues:
            raise HaltError(
                "§2 fails its checks",
                where=str(turn.folder.paths / GatheredContext.FILE),
                expected="lines that the nodes they cite support",
                received="; ".join(issues),
                fix=f"look at {', '.join(nodes)}; correct the file, then resume",
            )
        return sections

    def _without_second(self, turn: Turn, first: Gathered, reason: str) -> Gathered:
        turn.warn(f"the second choice for §2 failed, the first is kept: {reason}")
        return self._settled(turn, first)

    def _settled(self, turn: Turn, gathered: Gathered) -> Gathered:
        """Return the result of phase 2; warn where the answer may not rest on enough."""
        if gathered.values.verdict.status == "retry":
            turn.warn("phase 2.5 asked for more than was gathered; the answer may not rest on enough")
        return gathered

    def _candidates(self, turn: Turn, limit: int) -> tuple[list[Candidate], str | None]:
        analysis = turn.analysis
        named = turn.reading.turns
        recent = turn.recent(1)
        previous = NodeKind.TURN.id(recent[0][0]) if recent else None
        reference = analysis.content_reference
        must = [*named]
        if previous is not None:
            must.append(previous)
        if reference is not None:
            must.append(reference.node_id)
        must += analysis.reference_nodes
        must += [NodeKind.TURN.id(number) for number in recalled_turns(turn)]
        image = turn.described_image
        pictured_names = find_names(image.description) if image else []
        asked = [analysis.resolved_query, reference.title if reference else None, *pictured_names]
        query = " ".join(dict.fromkeys(filter(None, asked)))
        candidates = self.retriever.find(
            query, limit=limit, must_include=must, before_turn=turn.turn, fill_up=True
        )
        self._warn_of_unread(turn, self.retriever.problems)
        if self.retriever.behind:
            files = count_noun(self.retriever.behind, "changed file")
            turn.warn(f"the index lacks {files}: another process is writing it")
        if (
            reference
            and is_statement_id(reference.node_id)
            and not tells_figure(turn.query, reference.title or "")
        ):
            source = reference.source_turn
            own = NodeKind.FACT.id(statement_key(source or 0, 1)[:-1])  # what is asked goes on from there
            excluded = {
                NodeKind.TURN.id(source),
                *(candidate.node_id for candidate in candidates if candidate.node_id.startswith(own)),
            }
            candidates = [candidate for candidate in candidates if candidate.node_id not in excluded]
        if named:
            check_named_turns(turn.reading, {candidate.node_id for candidate in candidates}, turn.store)
            candidates = [
                candidate
                for candidate in candidates
                if candidate.node_id in named or kind_of(candidate.node_id) is not NodeKind.TURN
            ]
        return candidates, previous

    def _documents(self, turn: Turn, nodes: dict[str, Node]) -> list[Candidate]:
        """The documents that were handed over: candidates whatever they say."""
        loaded = [self.reader.load(node_id) for node_id in turn.document_nodes]
        nodes |= {node.id: node for node in loaded}
        return [Candidate(node.id, shorten(f"{node.title}: {node.text}", _CHARS), 0.0) for node in loaded]

    @staticmethod
    def _warn_of_unread(turn: Turn, problems: Sequence[Problem]) -> None:
        """Warn of each file that is not in the index; of notes, which are the user's own, only how many."""
        knowledge = turn.store.knowledge
        unread_notes = 0
        for problem in problems:
            if Path(problem.path).is_relative_to(knowledge):
                unread_notes += 1
            else:
                turn.warn(f"not in the index: {problem.told}")
        if unread_notes:
            turn.warn(f"notes that cannot be read: {unread_notes}; `panda validate` names them")

    def _followed(
        self, turn: Turn, candidates: Sequence[Candidate], nodes: dict[str, Node]
    ) -> tuple[list[Candidate], dict[str, tuple[str, ...]]]:
        named = {*turn.reading.turns, *(NodeKind.TURN.id(number) for number in recalled_turns(turn))}
        followed: dict[str, Candidate] = {}
        replaced: dict[str, tuple[str, ...]] = {}
        for candidate in candidates:
            is_turn = kind_of(candidate.node_id) is NodeKind.TURN and candidate.node_id not in named
            node = next(iter(self._known([candidate.node_id] if is_turn else [], nodes)), None)
            for origin in self._known(node.origins if node else (), nodes):
                text = shorten(f"{origin.title}: {origin.text}", _CHARS)
                followed.setdefault(origin.id, replace(candidate, node_id=origin.id, text=text))
            if node is None or any(map(is_usable, node.items)):
                followed.setdefault(candidate.node_id, candidate)
            else:
                replaced[candidate.node_id] = tuple(id_ for id_ in node.origins if id_ in followed)
        return list(followed.values()), replaced

    def _known(self, node_ids: Sequence[str], nodes: dict[str, Node]) -> list[Node]:
        for node_id in node_ids:
            if node_id not in nodes and (node := find_node(self.reader, node_id)):
                nodes[node_id] = node
        return [nodes[node_id] for node_id in node_ids if node_id in nodes]

    def _load(self, turn: Turn, chosen: Sequence[str]) -> list[Node]:
        try:
            nodes = load_nodes(self.reader, chosen)
        except MemoryNodeError as exc:
            plan = turn.folder.paths / RetrievalPlan.FILE
            fix = f"restore or mend it, or delete {plan} so that the turn plans anew; then resume the turn"
            raise MemoryNodeError(
                exc.message, where=exc.where, fix=fix, expected=exc.expected, details=exc.details
            ) from exc
        for node in nodes:
            for warning in (*node.warnings, *long_lines(node)):
                turn.warn(warning)
        return nodes

    def _fit(self, turn: Turn, nodes: Sequence[Node], budget_tokens: int) -> list[LoadedDocument]:
        """Return the nodes as documents, with a warning of each that does not fit the budget."""
        meant = turn.meant
        documents = fit_nodes(
            nodes, fit=lambda text: share_of_words(meant, text), budget_tokens=budget_tokens
        )
        for document in documents:
            if document.is_cut:
                sizes = f"from {document.tokens} to {document.kept_tokens} tokens"
                turn.warn(f"{document.node.id} cut {sizes}")
        return documents

    def _draft(
        self,
        turn: Turn,
        loaded_nodes: Sequence[Node],
        plan: RetrievalPlan,
        guidance: str | None,
        ranking: _Ranking,
    ) -> tuple[Sequence[DraftSection], Evidence, Sequence[LoadedDocument]]:
        """Return the draft of §2, the lines that it is made from, and the documents that were read for it."""
        documents = self._fit(turn, loaded_nodes, sys.maxsize)
        lines = [line for document in documents for line in document.items]
        ids = {line.id: f"L{n}" for n, line in enumerate(lines, 1)}
        prompt_documents = Lazy(lambda: self._fit(turn, loaded_nodes, DOCUMENTS_TOKENS))
        session = [number for number, _ in turn.recent(_SESSION_TURNS)]
        grouped = Lazy(lambda: group_documents(prompt_documents(), self.clock(), session, ids=ids))

        def headed(name: str) -> str:
            return grouped().get(name, "")

        def offered() -> Sequence[Option]:
            own_ids = [ids[line.id] for document in prompt_documents() for line in document.items]
            return [Option(own_id, own_id) for own_id in own_ids]

        if not lines:
            draft, evidence = self._quoted(turn, documents, plan, ranking, ())
            return draft, evidence, documents
        reply = ask(
            self.executor,
            SYNTHESIS,
            turn,
            options={"lines": offered},
            extra={name: partial(headed, name) for name in HEADINGS},
            guidance=guidance,
            ids={"lines": [*ids.values()]},
            inputs=SynthesisInputs(
                passages=partial(self._near_passages, turn, documents, ranking),
                document_lines=partial(self._document_lines, turn, documents),
                ids=ids,
            ),
        )
        by_id = dict(zip(ids.values(), lines, strict=True))
        chosen = [by_id[own_id] for own_id in self._without_unknown(turn, reply.content.lines, by_id, "§2")]
        draft, evidence = self._quoted(turn, documents, plan, ranking, chosen)
        return draft, evidence, prompt_documents() if prompt_documents.is_made else documents

    def _near_passages(
        self, turn: Turn, documents: Sequence[LoadedDocument], ranking: _Ranking
    ) -> list[RankedPassage]:
        """Return the closest passages of the loaded documents; none where nothing is asked."""
        if turn.reading.only_tells:
            return []
        loaded = {document.node.id for document in documents}
        return near_the_first([near for near in ranking() if near.passage.node_id in loaded])

    def _document_lines(self, turn: Turn, documents: Sequence[LoadedDocument]) -> list[Line]:
        """Return what answers a request about documents that were handed over; empty if it is none."""
        if not turn.reading.of_documents:
            return []
        read = read_lines(turn.meant, documents, self.closest)
        return self.closest.passages(turn.query, [line for line in read if line.node in turn.document_nodes])

    def _quoted(
        self,
        turn: Turn,
        documents: Sequence[LoadedDocument],
        plan: RetrievalPlan,
        ranking: _Ranking,
        chosen: Sequence[Line],
    ) -> tuple[Sequence[DraftSection], Evidence]:
        """Return a draft of whole lines: those chosen, in their order, and what rules bring in."""
        nodes = {document.node.id: document.node for document in documents}
        closest = self._near_passages(turn, documents, ranking)
        by_meaning = turn.reading.of_documents  # else the passages are what is compared by meaning
        read = read_lines(turn.meant, documents, self.closest if by_meaning else ClosestLines(None))
        of_documents = {line.id: line for line in self._document_lines(turn, documents)}
        lines_to_quote = [of_documents.get(line.id, line) for line in chosen]
        lines = gather(
            turn.meant, turn.reading, read=read, chosen=lines_to_quote, nodes=nodes, ruled=_ruled(plan)
        )
        taken = {line.id for line in lines}
        others = (
            structs.replace(line, left_out=Reason.FURTHER_THAN_OTHERS)
            for line in read
            if line.id not in taken
        )
        passages = tuple(
            NearPassage(
                lines=tuple(line.id for line in near.passage.lines),
                best=near.best.id,
                closeness=round(near.closeness, 6),
                words=round(near.words, 6),
            )
            for near in closest
        )
        return draft_of_lines(lines, nodes), Evidence((*lines, *others), passages=passages)

    def _judge(
        self, turn: Turn, sections: Sequence[GatheredSection], evidence: Evidence, *, is_second: bool
    ) -> _Judgement:
        """Return what 2.5 says of §2; where nothing was gathered nothing is asked (S0 §6.1)."""
        if not _holds_nodes(sections):
            return _Judgement("pass")

        def gathered_context() -> str:
            label = label_lines(self.reader, self.clock())
            text = render_lines(lines_of(turn, sections, evidence.gathered), label)
            limits = [item.text for item in sections[-1].items if not item.node_ids]
            return "\n".join([text, *(f"{CONSTRAINTS}: {limit}" for limit in limits)])

        def rated() -> Sequence[Option]:
            lines = lines_of(turn, sections, evidence.gathered)
            return as_options(self.closest.scored(turn.meant, lines))

        reply = ask(
            self.executor,
            CONTEXT_VALIDATION,
            turn,
            options={"evidence": rated},
            extra={"gathered_context": gathered_context},
            guidance=_SECOND_LOOK if is_second else None,
            inputs=ContextInputs(is_answered=lambda: passages_answer(turn, evidence, self.ranker)),
        )
        if reply.asks_back or reply.content.verdict == "clarify":
            return _Judgement("clarify", reply.confidence, question=question_of(reply.content.question, turn))
        return _Judgement(reply.content.verdict, reply.confidence, reply.content.guidance or "")

    def _gathered(
        self,
        turn: Turn,
        plan: RetrievalPlan,
        documents: Sequence[LoadedDocument],
        *,
        sections: Sequence[GatheredSection],
        evidence: Evidence,
        judgement: _Judgement,
    ) -> Gathered:
        now = self.clock()
        nodes = {document.node.id: document.node for document in documents}
        section = render_gathered(sections, nodes, now)
        is_lacking = not _holds_nodes(sections) and not turn.reading.only_tells
        issues = () if judgement.status == "pass" else (NO_ANSWER_GATHERED,)
        missing = one_line(judgement.guidance) if judgement.status == "pass" else ""
        gaps = (missing,) if missing else issues
        values = gathered_values(
            sections,
            documents,
            now,
            verdict=ContextVerdict(judgement.status, issues, judgement.confidence),
            gaps=(NO_ANSWER_GATHERED,) if is_lacking else gaps,
        )
        files = (values, evidence)
        outcome: PhaseOutcome = PhaseResult(section, files)
        if judgement.status == "clarify":
            outcome = Stop("clarify", None, files, question=judgement.question)
        return Gathered(plan, tuple(documents), section, values, outcome)


def _lacks_lines(sections: Sequence[GatheredSection], first: Gathered) -> bool:
    """Return whether a second draft holds no line although the first does."""
    return not _holds_nodes(sections) and _holds_nodes(first.values.sections)


def _holds_nodes(sections: Sequence[GatheredSection]) -> bool:
    """Return whether §2 holds a line of a node, and not the query's constraints alone."""
    return any(section.node_ids for section in sections)
