"""What the context gatherer may choose from, and the retrieval plan that it makes of that (S1 §4.1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from msgspec import UNSET

from panda.documents.safe_text import one_line, shorten
from panda.documents.times import Clock
from panda.errors import Problem
from panda.index.full_text import Index
from panda.index.sources import IndexEntry
from panda.index.tables import IndexView
from panda.language.words import phrases
from panda.memory.confidence import MISSING, age_days
from panda.memory.gathered import is_stale
from panda.memory.node import Node
from panda.memory.reader import Moment
from panda.messages.questions import is_question
from panda.models.cl100k import count_tokens
from panda.retrieval.meaning import Meaning
from panda.retrieval.ranking import Bounds, rank_rows
from panda.store.node_id import NodeKind, key_of, kind_of
from panda.store.records import (
    JudgedCandidate,
    QueryAnalysis,
    ResearchCacheMatch,
    RetrievalPlan,
    TurnRelevance,
)

_SHARES = 3
_NEWEST_TURNS = 8
_TURN_CHARS = 500
_TEXT_CHARS = 240
_Scored = tuple[IndexEntry, float]
_TOTAL_TOKENS = 3_900
"""Budget tokens of all candidates together: the input of the call less 300 for the query's analysis."""
_LABEL_TOKENS = 24
"""What kind, date, age, quality and confidence of a candidate take in a prompt."""
PASSAGE_CHARS = 160
"""How much of a candidate a prompt shows at most."""
_BUDGETS: Mapping[str, int] = {
    "document": 1_000,
    "turn": 2_500,
    "memory": 400,
    "research": 500,
    "visit": 500,
    "knowledge": 1_000,
}
_KINDS = {"fact": "memory"}
_FULL = 0.80
_PARTIAL = 0.50


@dataclass(frozen=True)
class Candidate:
    node_id: str  # as "turn:811"
    text: str  # what it says in one line, clipped: by this its relevance is judged
    score: float  # higher is better; 0 if it neither shares a word with the query nor means something near
    shares_words: bool = False  # whether a word of the query is in it


@dataclass
class Retriever:
    """Ranks the nodes of one user."""

    index: Index
    user: str  # whose nodes
    clock: Clock | None = None  # from when "last week" counts; None takes the user's newest turn
    moment: Moment | None = None  # what counts; None for all, as it is
    meaning: Meaning | None = None  # finds rows by meaning; None for words alone
    problems: tuple[Problem, ...] = ()  # files that the last find could not take in
    behind: int = 0
    """Changed files that the last find did not know, because another process was writing the index."""

    def find(
        self,
        query: str,
        *,
        limit: int = 30,
        must_include: Sequence[str] = (),
        before_turn: int | None,
        fill_up: bool = False,
    ) -> list[Candidate]:
        """
        The candidates for a query as resolved, best first: turns, memory keys, research, visits and knowledge
        documents merged by score. Keys of preferences and facts need no shared word, but take at most a third
        of the places unless places are left over. Turns leave the best documents a third of them, so that a
        question that was asked often pushes out no page or note.

        *must_include* are node ids that are candidates whatever their score, even beyond *limit*; those that
        do not exist are left out: the caller sees that by comparing. Turns from *before_turn* on are none.
        *fill_up* gives places that are left over to what is nearest in meaning, however far, and where that
        is not known to the newest documents and turns, so that a source in other words than the query's can
        be found.
        """
        report = self.index.freshen(self.user)
        self.problems = report.problems
        self.behind = report.behind

        def look(view: IndexView) -> list[Candidate]:
            now = self.clock() if self.clock else None
            bounds = Bounds(before_turn=before_turn, however_far=fill_up)
            ranked_rows = rank_rows(view, query, now=now, bounds=bounds, meaning=self.meaning)
            worded = {row.entry.node_id for row in ranked_rows if row.words > 0}
            forced = _newest_of_each([(entry, 0.0) for entry in view.nodes(must_include)])
            memory = _newest_of_each([(entry, 0.0) for entry in view.memory_keys()])
            places = limit - len({row.entry.node_id for row in ranked_rows} | set(memory) | set(forced))
            room = limit if fill_up and places > 0 else 0
            newest = view.newest(room, before_turn, most_turns=_NEWEST_TURNS) if room else []
            others = _newest_of_each([(entry, 0.0) for entry in newest])
            ranked = _newest_of_each([(row.entry, row.score) for row in ranked_rows])
            chosen = {node_id: ranked.get(node_id, pair) for node_id, pair in forced.items()}
            keys = [ranked.get(node_id, pair) for node_id, pair in memory.items()]
            keys.sort(key=lambda pair: -pair[1])
            share = max(1, limit // _SHARES)
            documents = [pair for pair in ranked.values() if pair[0].number is None]
            for pair in [*keys[:share], *documents[:share], *ranked.values(), *keys, *others.values()]:
                if len(chosen) < limit:
                    chosen.setdefault(pair[0].node_id, pair)
            return [_candidate(*pair, worded) for pair in sorted(chosen.values(), key=lambda pair: -pair[1])]

        return self.index.read(self.user, look, as_of=self.moment.index if self.moment else None)


def _newest_of_each(pairs: Sequence[_Scored]) -> dict[str, _Scored]:
    """
    One entry a node id with the best score of all, in the order of the first of each: the newest where
    several files hold the node, and the best section of a knowledge document.
    """
    by_node: dict[str, _Scored] = {}
    for entry, score in pairs:
        other, best = by_node.get(entry.node_id, (entry, score))
        newer = entry.at is not None and (other.at is None or entry.at > other.at)
        by_node[entry.node_id] = (entry if newer else other, max(best, score))
    return by_node


def _candidate(entry: IndexEntry, score: float, worded: Collection[str]) -> Candidate:
    """A row with what was said in a turn; of anything else its title and what it holds."""
    text = shorten(f"{entry.summary}: {entry.response}", _TEXT_CHARS)
    if entry.number is not None:
        text = shorten(f"{entry.query} {entry.response}", _TURN_CHARS)
    elif kind_of(entry.node_id) in (NodeKind.MEMORY, NodeKind.FACT):
        text = one_line(entry.header)
    return Candidate(entry.node_id, text, round(score, 4), entry.node_id in worded)


def offered_candidates(candidates: Sequence[Candidate]) -> list[Candidate]:
    """
    The candidates that fit the budgets of their kinds (S1 §7.1), in the same order: turns share 2,500 tokens,
    preferences and facts 400, research and visits 500 each, knowledge documents 1,000; what exceeds all of it
    together is left out too. Each counts with as much as a prompt shows of it.
    """
    room = dict(_BUDGETS)
    total = _TOTAL_TOKENS
    offered: list[Candidate] = []
    for candidate in candidates:
        kind = candidate.node_id.partition(":")[0]
        kind = _KINDS.get(kind, kind)
        tokens = count_tokens(shorten(candidate.text, PASSAGE_CHARS)) + _LABEL_TOKENS
        if tokens <= min(room[kind], total):
            offered.append(candidate)
            room[kind] -= tokens
            total -= tokens
    return offered


def ruled_nodes(analysis: QueryAnalysis, offered: Sequence[str], previous: str | None) -> list[str]:
    """
    The offered candidates that are relevant by rule: turns that the query names, what it refers to, the
    session's previous turn if it refers to something that was not found, and for somebody who looks for
    something to buy the preferences about money and brands.
    """
    reading = analysis.reading
    wanted = analysis.reading.turns
    reference = analysis.content_reference
    if reference:
        wanted += [reference.node_id, *analysis.reference_nodes]
    elif previous and analysis.reference_resolution.status == "failed":
        wanted.append(previous)
    searches = analysis.query_type == "commerce_search" and not is_question(analysis.resolved_query)
    buys = searches or reading.mood == "orders" or reading.limits
    if analysis.intent == "commerce" and buys:
        keys = (node_id for node_id in offered if kind_of(node_id) is NodeKind.MEMORY)
        buying = phrases("topic_words.txt", "buying")
        wanted += [node_id for node_id in keys if buying.search(node_id.replace("_", " "))]
    return [node_id for node_id in dict.fromkeys(wanted) if node_id in offered]


def build_plan(
    candidates: Sequence[Candidate],
    research: Node | None,
    now: datetime,
    *,
    scores: Mapping[str, float],
    chosen: Collection[str],
    by_rule: Collection[str],
    chosen_by: Literal["model", "closeness"],
    unseen: Collection[str] = (),
    reasoning: str | None,
) -> RetrievalPlan:
    """
    The retrieval plan (design §4, S1 §4.1, §13.2) of all candidates that were looked at, best first. *scores*
    tells by node id how relevant the best line of each is; *chosen* are those that *chosen_by* took, a model
    or how close they are to the query, *by_rule* those that a rule took, *unseen* those that the prompt had
    no room for.
    """
    relevant = [
        candidate for candidate in candidates if candidate.node_id in chosen or candidate.node_id in by_rule
    ]
    turns = [candidate for candidate in relevant if kind_of(candidate.node_id) is NodeKind.TURN]
    best = max((scores.get(candidate.node_id, 0.0) for candidate in turns), default=0.0)

    def relevance(candidate: Candidate) -> TurnRelevance:
        if candidate.node_id in by_rule:
            return TurnRelevance("high", "the query or the session refers to it")
        score = scores.get(candidate.node_id)
        words = "shares words with the query" if candidate.shares_words else "fits the query in other words"
        scored = "" if score is None else f"; {chosen_by} and index together {score:.2f}"
        return TurnRelevance("high" if (score or 0.0) >= best else "medium", words + scored)

    visits = [key_of(node_id) for node_id in research.links] if research else []

    def decided_by(node_id: str) -> Literal["model", "closeness", "index", "always_include"]:
        if node_id in by_rule:
            return "always_include"
        return "index" if node_id in unseen else chosen_by

    def keys(*kinds: NodeKind) -> tuple[str, ...]:
        return tuple(
            key_of(candidate.node_id) for candidate in relevant if kind_of(candidate.node_id) in kinds
        )

    return RetrievalPlan(
        relevant_turns=tuple(map(int, keys(NodeKind.TURN))),
        turn_relevance={key_of(candidate.node_id): relevance(candidate) for candidate in turns},
        relevant_memory_keys=keys(NodeKind.MEMORY, NodeKind.FACT),
        relevant_knowledge=keys(NodeKind.KNOWLEDGE),
        research_cache_match=_research(research, now),
        webpage_cache_needed=tuple(dict.fromkeys([*keys(NodeKind.VISIT), *visits])),
        candidates=tuple(
            JudgedCandidate(
                node_id=candidate.node_id,
                score=round(scores[candidate.node_id], 4) if candidate.node_id in scores else None,
                index=candidate.score,
                chosen=candidate in relevant,
                by=decided_by(candidate.node_id),
            )
            for candidate in candidates
        ),
        reasoning=reasoning,
        relevant_documents=keys(NodeKind.DOCUMENT) or UNSET,
    )


def planned_nodes(plan: RetrievalPlan, *, chosen: bool = True) -> list[str]:
    """The ids of the nodes that a plan chose, or of those that it left out, best first."""
    candidates = [candidate for candidate in plan.candidates if candidate.chosen == chosen]
    candidates.sort(key=lambda candidate: (candidate.by != "always_include", -(candidate.score or 0.0)))
    return [candidate.node_id for candidate in candidates]


def _research(node: Node | None, now: datetime) -> ResearchCacheMatch:
    if node is None:
        return ResearchCacheMatch(False, None, None, None, None)
    quality = MISSING if node.quality is None else node.quality
    worth = min(quality, node.confidence)  # what was good has aged since
    stale = is_stale(node, now)
    reuse = "partial"
    if stale or worth < _PARTIAL:
        reuse = "refresh"
    elif worth >= _FULL:
        reuse = "full"
    return ResearchCacheMatch(
        matched=True,
        topic=key_of(node.id),
        freshness=None if node.at is None else f"{age_days(node.at, now) * 24:.1f} hours",
        quality=quality,
        reuse_recommendation=reuse,
    )
