"""
Phase 2: what this query needs from memory (S0, S1).

2.1 chooses among ranked candidates, code follows their links and loads them, 2.2 drafts the lines that belong
into §2, code renders and checks them, and 2.5 judges whether they suffice. What only
quotes gets what belongs to its lines; what is worded anew must hold in the nodes that it cites.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import UNSET, structs

from panda.documents.context import HEADINGS, Phase, Section
from panda.documents.memory_file import statement_key
from panda.documents.text import count_noun, one_line, shorten
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
    TITLES,
    DraftSection,
    build_sections,
    check_sections,
    draft_of_lines,
    is_line_stale,
    is_stale,
    keep_supported,
    node_label,
    render_gathered,
    with_own_confidence,
)
from panda.memory.node import Node, is_statement_id
from panda.memory.reader import NodeReader, find_node
from panda.phases.contract import Advance, PhaseOutcome, Stop
from panda.phases.evidence import (
    ClosestLines,
    as_options,
    by_rule,
    gather,
    lines_of,
    read_lines,
    reason,
)
from panda.phases.from_session import recalled_turns
from panda.phases.named_turns import check_named_turns
from panda.phases.near_passages import passages_answer
from panda.phases.request import ask, question_of
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.recipes.reply import Reply
from panda.retrieval.candidates import (
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
from panda.steps.inputs import RetrievalInputs, SynthesisInputs
from panda.steps.lazy import Lazy
from panda.steps.options import Option
from panda.steps.reply_contents import GatheredSectionReply, RetrievalReply
from panda.store.node_id import NodeKind, kind_of
from panda.store.reason import Reason
from panda.store.records import (
    ContextMetrics,
    Coverage,
    Document,
    Evidence,
    GatheredContext,
    GatheredItem,
    GatheredSection,
    LeftOutLine,
    Line,
    NearPassage,
    RetrievalPlan,
    Verdict,
)

_GAP = "nothing that was gathered seems to answer the query"
_MAX_OFFERED = 30
"""Candidates of which a prompt has those that fit."""
_MAX_RANKED = 60
"""Candidates whose passages are compared."""
_WIDER = 4
_SESSION_TURNS = 20
_CHARS = 240


def _written(section: GatheredSectionReply) -> DraftSection:
    pairs = [(one_line(item.text), tuple(dict.fromkeys(item.node_ids))) for item in section.items]
    items = tuple(GatheredItem(*pair) for pair in pairs if pair[0])
    return DraftSection(one_line(section.title), items, section.confidence_avg)


def _with_documents(sections: Sequence[DraftSection], nodes: Mapping[str, Node]) -> list[DraftSection]:
    """The sections, and in one of its own what rests on documents handed over, whatever its title was."""
    title = TITLES["user_document"]
    own: list[GatheredItem] = []
    others: list[DraftSection] = []
    for section in sections:
        kinds = [{nodes[id_].source_type for id_ in item.node_ids if id_ in nodes} for item in section.items]
        is_own = [kind == {"user_document"} and section.title != CONSTRAINTS for kind in kinds]
        own += [item for item, moves in zip(section.items, is_own, strict=True) if moves]
        left = tuple(item for item, moves in zip(section.items, is_own, strict=True) if not moves)
        others.append(replace(section, items=left))
    if own:
        others.append(DraftSection(title, tuple(own)))
    return others


def _merged(sections: Sequence[DraftSection]) -> tuple[DraftSection, ...]:
    merged: dict[str, DraftSection] = {}
    for section in sections:
        other = merged.get(section.title)
        items = tuple(dict.fromkeys((*other.items, *section.items) if other else section.items))
        merged[section.title] = DraftSection(section.title, items, None if other else section.confidence_avg)
    return tuple(merged.values())


def _ruled(plan: RetrievalPlan) -> list[str]:
    return [one.node_id for one in plan.candidates if one.by == "always_include"]


def _is_stale(node: Node, sections: Sequence[GatheredSection], now: datetime) -> bool:
    """Whether a node has expired, or a line of §2 tells of a price or stock that it saw long ago."""
    items = [item for section in sections for item in section.items if node.id in item.node_ids]
    return is_stale(node, now) or any(is_line_stale(node, item.text) for item in items)


@dataclass(frozen=True)
class _Pool:
    """What may be relevant to a query."""

    found: Sequence[Candidate] = ()  # as the index ranks it
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


def _quoted_line(
    draft_section: DraftSection,
    item: GatheredItem,
    lines_by_text: Mapping[tuple[str, str], Line],
    nodes: Mapping[str, Node],
) -> Line | None:
    """Return the line that an item quotes word for word; None if it is worded, or its section says more."""
    quoted = (lines_by_text.get((item.text, node_id)) for node_id in item.node_ids)
    line = next((line for line in quoted if line is not None), None)
    if line is None or draft_section.confidence_avg is not None:
        return None
    kind = nodes[line.node].source_type
    return line if kind == "user_document" or draft_section.title == TITLES[kind] else None


@dataclass(frozen=True)
class _Judgement:
    """What phase 2.5 says of §2."""

    status: Literal["pass", "retry", "clarify"]
    confidence: float | None = None  # None where it was not measured
    guidance: str = ""  # what a further look should find
    question: str = ""  # what the user is asked


def gathered_values(
    sections: Sequence[GatheredSection],
    documents: Sequence[LoadedDocument],
    now: datetime,
    *,
    verdict: Verdict,
    gaps: Sequence[str],
    left_out: Sequence[LeftOutLine] = (),
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
            Document(one.node.id, one.node.provenance, one.tokens, one.kept_tokens, one.is_cut)
            for one in documents
        ),
        metrics=ContextMetrics(quality, Coverage(**coverage), len(limits.items), not limits.items),
        left_out=tuple(left_out) or UNSET,
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
        if (known := turn.folder.find(RetrievalPlan)) is not None:
            turn.count_execution(self.executor.book.recipe_for(RETRIEVAL.name, turn.mode).key)
            return known, self._ranking(turn, [candidate.node_id for candidate in known.candidates], {})
        nodes: dict[str, Node] = {}
        few = Lazy(lambda: self._find(turn, _MAX_OFFERED, nodes))
        all_ = Lazy(lambda: self._find(turn, _MAX_RANKED, nodes))
        ranking = _Ranking(
            lambda: self._rank(
                turn, self._known([candidate.node_id for candidate in all_().candidates], nodes)
            )
        )
        reply = self._choose(turn, few, all_, nodes, ranking)
        relevant = reply.content.relevant
        only_tells = turn.reading.only_tells
        pool = _Pool()
        if ranking.is_made:
            pool = all_()
        elif relevant or not only_tells:
            pool = few()
        ids = [candidate.node_id for candidate in pool.found]
        ruled = ruled_nodes(turn.analysis, ids, pool.previous)
        asked_for = [
            *turn.document_nodes,
            *(one for node_id in ruled for one in pool.origins.get(node_id, (node_id,))),
            *(NodeKind.TURN.id(number) for number in recalled_turns(turn) if NodeKind.TURN.id(number) in ids),
        ]
        candidates = pool.candidates
        taken = {*relevant, *asked_for}
        chosen = [one.node_id for one in candidates if one.node_id in taken]
        if not chosen and candidates:
            turn.warn("no saved source is relevant to the query")
        plan = build_plan(
            candidates,
            next((self.reader.load(one) for one in chosen if kind_of(one) is NodeKind.RESEARCH), None),
            self.clock(),
            scores=_closeness_by_node(ranking()) if ranking.is_made else {},
            chosen=relevant,
            by_rule=asked_for,
            chosen_by="closeness" if ranking.is_made else "model",
            reasoning=reply.content.reasoning,
        )
        turn.folder.save(plan)
        return plan, ranking

    def _find(self, turn: Turn, limit: int, nodes: dict[str, Node]) -> _Pool:
        """Return the candidates of a query, those that were handed over first."""
        found, previous = self._candidates(turn, limit)
        candidates, origins = self._followed(turn, found, nodes)
        return _Pool(found, previous, [*self._documents(turn, nodes), *candidates], origins)

    def _choose(
        self,
        turn: Turn,
        few: Lazy[_Pool],
        all_: Lazy[_Pool],
        nodes: dict[str, Node],
        ranking: _Ranking,
    ) -> Reply[RetrievalReply]:
        """Return which of the candidates are relevant; a prompt has but a *few* of *all_*."""

        def offered() -> Sequence[Option]:
            return self._offered(turn, few().candidates, nodes)

        def node_ids() -> Sequence[str]:
            if turn.reading.only_tells and not few.is_made:
                return []
            pool = all_() if ranking.is_made else few()
            return [candidate.node_id for candidate in pool.candidates]

        return ask(
            self.executor,
            RETRIEVAL,
            turn,
            options={"relevant": offered},
            ids={"relevant": node_ids},
            inputs=RetrievalInputs(ranked=ranking, only_tells=turn.reading.only_tells),
        )

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
            label = f"{node_label(nodes[candidate.node_id], now)}: " if candidate.node_id in nodes else ""
            shown = f"{label}{candidate.text}"
            options.append(Option(candidate.node_id, line.text, (candidate.node_id,), 0.0, line.above, shown))
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

        A draft that fails its checks is made again once; what of the second is not supported is left out.

        Raises:
            HaltError: No line of the second draft is supported.
        """
        plan, ranking = self._plan(turn)
        further: list[str] = []
        guidance: str | None = None
        first: Gathered | None = None
        for is_last in (False, True):
            loaded_nodes = self._load(turn, [*planned_nodes(plan), *further])
            try:
                draft, evidence, documents = self._draft(turn, loaded_nodes, plan, guidance, ranking)
                is_final = is_last and first is None
                sections, left_out, issues = self._checked(turn, plan, draft, documents, is_final=is_final)
                if first is not None and (issues or _lacks_lines(sections, first)):
                    return self._without_second(turn, first, issues or ["it holds no line"])
                if issues and not is_final:
                    guidance = "; ".join(issues)
                    continue
                judgement = self._judge(turn, sections, evidence)
            except (ReplyError, GateError) as exc:
                if first is None:
                    raise
                return self._without_second(turn, first, [exc.message])
            loaded = {document.node.id for document in documents}
            unloaded = [id_ for id_ in planned_nodes(plan, chosen=False) if id_ not in loaded]
            further = unloaded[:_WIDER]
            gathered = self._gathered(turn, plan, documents, sections, evidence, judgement, left_out)
            if is_last or not further or judgement.status != "retry":
                return self._settled(turn, gathered)
            first = gathered
            guidance = judgement.guidance or "Look at further sources."
        raise AssertionError("the second draft is the last")

    def _checked(
        self,
        turn: Turn,
        plan: RetrievalPlan,
        draft: Sequence[DraftSection],
        documents: Sequence[LoadedDocument],
        *,
        is_final: bool,
    ) -> tuple[list[GatheredSection], tuple[LeftOutLine, ...], list[str]]:
        """
        Return §2 as values, what a final draft has to leave out, and what is wrong with the draft.

        Raises:
            HaltError: Nothing of a final draft is supported.
        """
        nodes = {document.node.id: document.node for document in documents}
        limits = [limit.text for limit in turn.reading.limits]

        def build(parts: Sequence[DraftSection]) -> list[GatheredSection]:
            return build_sections(parts, nodes, limits, self.clock(), by_rule=_ruled(plan))

        sections = build(draft)
        issues = check_sections(sections, nodes, self.clock(), query=turn.query)
        left_out: tuple[LeftOutLine, ...] = ()
        if issues and is_final:
            supported = keep_supported(draft, nodes, self.clock(), query=turn.query)
            left_out = supported.left_out
            sections = build(supported.draft)
            if not supported.draft or check_sections(sections, nodes, self.clock(), query=turn.query):
                named = [node_id for node_id in nodes if any(node_id in issue for issue in issues)]
                where = ", ".join(named or nodes)
                raise HaltError(
                    "nothing of §2 is supported, and its checks failed twice",
                    where=str(turn.folder.paths / GatheredContext.FILE),
                    expected="a line that the node it cites supports",
                    received="; ".join(issues),
                    fix=f"look at {where}; correct the file, the prompt or the model, then resume",
                )
            if not left_out:
                turn.warn(f"§2 failed its checks twice; code has put it right: {'; '.join(issues)}")
        return with_own_confidence(sections, nodes, self.clock()), left_out, issues

    def _without_second(self, turn: Turn, first: Gathered, issues: Sequence[str]) -> Gathered:
        turn.warn(f"the second draft of §2 failed, the first is kept: {'; '.join(issues)}")
        return self._settled(turn, first)

    def _settled(self, turn: Turn, gathered: Gathered) -> Gathered:
        """What phase 2 comes to, with a warning of what a reader of the answer should know."""
        for line in gathered.values.left_out or ():
            turn.warn(f"left out of §2, which failed its checks twice: {line.text!r:.80} ({line.reason})")
        if gathered.values.verdict.status == "retry":
            turn.warn("phase 2.5 asked for more than was gathered; the answer may not rest on enough")
        return gathered

    def _candidates(self, turn: Turn, limit: int) -> tuple[list[Candidate], str | None]:
        analysis = turn.analysis
        named = turn.reading.turns
        recent = turn.recent(1)
        previous = NodeKind.TURN.id(recent[0][0]) if recent else None
        reference = analysis.content_reference
        must = [*named, *filter(None, [previous]), *([reference.node_id] if reference else [])]
        must += analysis.reference_nodes
        must += [NodeKind.TURN.id(number) for number in recalled_turns(turn)]
        image = turn.described_image
        shown = find_names(image.description) if image else []
        asked = [analysis.resolved_query, reference.title if reference else None, *shown]
        query = " ".join(dict.fromkeys(filter(None, asked)))
        found = self.retriever.find(
            query, limit=limit, must_include=must, before_turn=turn.turn, fill_up=True
        )
        self._warn_of_unread(turn, self.retriever.problems)
        if self.retriever.behind:
            files = count_noun(self.retriever.behind, "changed file")
            turn.warn(f"the index lacks {files}: another process is writing it")
        if reference and is_statement_id(reference.node_id):
            source = reference.source_turn
            own = NodeKind.FACT.id(statement_key(source or 0, 1)[:-1])  # what is asked goes on from there
            known = {NodeKind.TURN.id(source), *(one.node_id for one in found if one.node_id.startswith(own))}
            found = [candidate for candidate in found if candidate.node_id not in known]
        if named:
            check_named_turns(turn.reading, {one.node_id for one in found}, turn.store)
            found = [
                one for one in found if one.node_id in named or kind_of(one.node_id) is not NodeKind.TURN
            ]
        return found, previous

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
        found: dict[str, Candidate] = {}
        replaced: dict[str, tuple[str, ...]] = {}
        for one in candidates:
            is_turn = kind_of(one.node_id) is NodeKind.TURN and one.node_id not in named
            node = next(iter(self._known([one.node_id] if is_turn else [], nodes)), None)
            for origin in self._known(node.origins if node else (), nodes):
                text = shorten(f"{origin.title}: {origin.text}", _CHARS)
                found.setdefault(origin.id, replace(one, node_id=origin.id, text=text))
            if node is None or any(map(is_usable, node.items)):
                found.setdefault(one.node_id, one)
            else:
                replaced[one.node_id] = tuple(id_ for id_ in node.origins if id_ in found)
        return list(found.values()), replaced

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
        nodes = {document.node.id: document.node for document in documents}
        shown = Lazy(lambda: self._fit(turn, loaded_nodes, DOCUMENTS_TOKENS))
        read = Lazy(lambda: read_lines(turn.meant, shown(), self.closest))
        session = [number for number, _ in turn.recent(_SESSION_TURNS)]
        grouped = Lazy(lambda: group_documents(shown(), self.clock(), session))

        def headed(name: str) -> str:
            return grouped().get(name, "")

        sources = [Option(loaded.node.id, loaded.node.title) for loaded in documents if loaded.items]
        reply = ask(
            self.executor,
            SYNTHESIS,
            turn,
            options={"lines": lambda: as_options(read()), "sources": sources},
            extra={name: partial(headed, name) for name in HEADINGS},
            guidance=guidance,
            inputs=SynthesisInputs(
                passages=partial(self._near_passages, turn, documents, ranking),
                document_lines=partial(self._document_lines, turn, documents),
                titles={node.id: TITLES[node.source_type] for node in loaded_nodes},
            ),
        )
        parts = [_written(section) for section in reply.content.sections]
        lines = {
            (line.text, line.node): line for node in loaded_nodes for line in node.items if is_usable(line)
        }
        quoted = [_quoted_line(part, item, lines, nodes) for part in parts for item in part.items]
        if all(line is not None for line in quoted):
            chosen = [line for line in quoted if line is not None]
            draft, evidence = self._quoted(turn, documents, plan, ranking, chosen)
            return draft, evidence, shown() if shown.is_made else documents
        written = _with_documents(parts, nodes)
        cited = {node_id for part in written for item in part.items for node_id in item.node_ids}
        ruled = by_rule(turn.meant, turn.reading, read(), nodes, _ruled(plan), ())
        missing = [reason(line, why) for why, line in ruled if line.node not in cited]
        draft = _merged([*written, *draft_of_lines(missing, nodes)])
        return draft, Evidence((*read(), *missing)), shown()

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
        given = [of_documents.get(line.id, line) for line in chosen]
        lines = gather(turn.meant, turn.reading, read, given, nodes, _ruled(plan))
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

    def _judge(self, turn: Turn, sections: Sequence[GatheredSection], evidence: Evidence) -> _Judgement:
        """Return what 2.5 says of §2; where nothing was gathered nothing is asked (S0 §6.1)."""
        if not _holds_nodes(sections):
            return _Judgement("pass")
        text = "\n".join(f"{section.title}: {item.text}" for section in sections for item in section.items)

        def rated() -> Sequence[Option]:
            lines = lines_of(turn, sections, evidence.gathered)
            return as_options(self.closest.scored(turn.meant, lines))

        reply = ask(
            self.executor,
            CONTEXT_VALIDATION,
            turn,
            options={"evidence": rated},
            extra={"gathered_context": text},
        )
        if reply.asks_back or reply.content.verdict == "clarify":
            return _Judgement("clarify", reply.confidence, question=question_of(reply.content.question, turn))
        return _Judgement(reply.content.verdict, reply.confidence, reply.content.guidance or "")

    def _gathered(
        self,
        turn: Turn,
        plan: RetrievalPlan,
        documents: Sequence[LoadedDocument],
        sections: Sequence[GatheredSection],
        evidence: Evidence,
        judgement: _Judgement,
        left_out: Sequence[LeftOutLine],
    ) -> Gathered:
        now = self.clock()
        nodes = {document.node.id: document.node for document in documents}
        section = render_gathered(sections, nodes, now)
        is_lacking = not _holds_nodes(sections) and not turn.reading.only_tells
        is_answered = passages_answer(turn, evidence, self.ranker)
        issues = () if judgement.status == "pass" else (_GAP,)
        values = gathered_values(
            sections,
            documents,
            now,
            verdict=Verdict(judgement.status, issues, judgement.confidence),
            gaps=issues or ((_GAP,) if is_lacking or not is_answered else ()),
            left_out=left_out,
        )
        files = (values, evidence)
        outcome: PhaseOutcome = Advance(section, files)
        if judgement.status == "clarify":
            outcome = Stop("clarify", None, files, question=judgement.question)
        return Gathered(plan, tuple(documents), section, values, outcome)


def _lacks_lines(sections: Sequence[GatheredSection], first: Gathered) -> bool:
    """Whether a second draft holds no line, and the first does."""
    return not _holds_nodes(sections) and _holds_nodes(first.values.sections)


def _holds_nodes(sections: Sequence[GatheredSection]) -> bool:
    """Whether §2 holds a line of a node, and not the query's constraints alone."""
    return any(section.node_ids for section in sections)
