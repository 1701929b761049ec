"""What the context gatherer may choose from, and the retrieval plan that it makes of that (S1 §4.1)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from panda.documents.problems import Problem
from panda.documents.text import one_line, shorten
from panda.documents.times import Clock
from panda.language.reading import Reading
from panda.language.topics import matters_to_buyers
from panda.memory.confidence import age_days
from panda.memory.gathered import is_stale
from panda.memory.node import Node
from panda.memory.past import Moment
from panda.retrieval.meaning import Meaning
from panda.retrieval.ranking import Bounds, rank_rows
from panda.storage.index import Index
from panda.storage.index_tables import IndexEntry, IndexView

_SHARES = 3
_NEWEST_TURNS = 8
_TURN_CHARS = 500
_TEXT_CHARS = 240
_Scored = tuple[IndexEntry, float]
_TOTAL_TOKENS = 3_900
"""Budget tokens of all candidates together: the input of the call less 300 for the query's analysis."""
_BUDGETS: Mapping[str, int] = {"turn": 2_500, "memory": 400, "research": 500, "visit": 500, "knowledge": 500}
_KINDS = {"fact": "memory"}
By = Literal["model", "always_include"]
_FULL = 0.80
_PARTIAL = 0.50


@dataclass(frozen=True)
class Candidate:
    """One node that may be relevant."""

    node_id: str  # as "turn:811"
    text: str  # what it says in one line, clipped: by this its relevance is judged
    score: float  # higher is better; 0 if it neither shares a word with the query nor means something near
    shares_words: bool = False  # whether a word of the query is in it


class Retriever:
    """
    Ranks the nodes of one user.

    Args:
        index: The store's index.
        user: Whose nodes.
        clock: From when "last week" counts; None takes the user's newest turn.
        moment: What counts; None for all, as it is.
        meaning: Finds rows by meaning; None for words alone.
    """

    def __init__(
        self,
        index: Index,
        user: str,
        clock: Clock | None = None,
        moment: Moment | None = None,
        meaning: Meaning | None = None,
    ) -> None:
        self._meaning = meaning
        self._moment = moment
        self._index = index
        self._user = user
        self._clock = clock
        self.problems: tuple[Problem, ...] = ()
        """Files that the last find could not take in."""
        self.behind = 0
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
        The candidates for a query, best first.

        Args:
            query: The query as resolved; may be any text.
            limit: Most candidates, at least 1; more only if must_include alone has more.
            must_include: Node ids that are candidates whatever their score. Ids of nodes that do not exist
                are left out: the caller sees that by comparing.
            before_turn: Turns from this number on are no candidates; None for no bound.
            fill_up: Give places that are left over to what is nearest in meaning, however far, and where
                that is not known to the newest documents and turns, so that a source in other words than
                the query's can be found.

        Returns:
            Turns, memory keys, research, visits and knowledge documents merged by score. Keys of
            preferences and facts need no shared word, but take at most a third of the places unless
            places are left over. Turns leave the best documents a third of them, so that a question that
            was asked often pushes out no page or note.
        """
        report = self._index.freshen(self._user)
        self.problems, self.behind = report.problems, report.behind

        def look(view: IndexView) -> list[Candidate]:
            now = self._clock() if self._clock else None
            bounds = Bounds(before_turn=before_turn, however_far=fill_up)
            found = rank_rows(view, query, now=now, bounds=bounds, meaning=self._meaning)
            worded = {one.entry.node_id for one in found if one.words > 0}
            forced = _newest_of_each([(entry, 0.0) for entry in view.nodes(must_include)])
            memory = _newest_of_each([(entry, 0.0) for entry in view.memory_keys()])
            places = limit - len({one.entry.node_id for one in found} | set(memory) | set(forced))
            newest = (
                view.newest(limit, before_turn, most_turns=_NEWEST_TURNS) if fill_up and places > 0 else []
            )
            others = _newest_of_each([(entry, 0.0) for entry in newest])
            ranked = _newest_of_each([(one.entry, one.score) for one in found])
            chosen = {node_id: ranked.get(node_id, forced[node_id]) for node_id in forced}
            keys = sorted(
                (ranked.get(node_id, memory[node_id]) for node_id in memory), key=lambda pair: -pair[1]
            )
            share = max(1, limit // _SHARES)
            documents = [pair for pair in ranked.values() if pair[0].number is None]
            for pair in [*keys[:share], *documents[:share], *ranked.values(), *keys, *others.values()]:
                if len(chosen) < limit:
                    chosen.setdefault(pair[0].node_id, pair)
            return [_candidate(*pair, worded) for pair in sorted(chosen.values(), key=lambda pair: -pair[1])]

        return self._index.read(self._user, look, as_of=self._moment.index if self._moment else None)


def _newest_of_each(pairs: Sequence[_Scored]) -> dict[str, _Scored]:
    """
    One entry a node id with the best score of all, in the order of the first of each.

    It is the newest where several files hold the node, and the best section of a knowledge document.
    """
    kept: dict[str, _Scored] = {}
    for entry, score in pairs:
        other, best = kept.get(entry.node_id, (entry, score))
        newer = entry.at is not None and (other.at is None or entry.at > other.at)
        kept[entry.node_id] = (entry if newer else other, max(best, score))
    return kept


def _candidate(entry: IndexEntry, score: float, worded: Collection[str]) -> Candidate:
    return Candidate(
        node_id=entry.node_id,
        text=_text(entry),
        score=round(score, 4),
        shares_words=entry.node_id in worded,
    )


def _text(entry: IndexEntry) -> str:
    """What was said in a turn; of anything else its title and what it holds."""
    if entry.number is not None:
        return shorten(f"{entry.query} {entry.response}", _TURN_CHARS)
    if entry.node_id.startswith(("memory:", "fact:")):
        return one_line(entry.header)
    return shorten(f"{entry.summary}: {entry.response}", _TEXT_CHARS)


def offered_candidates(candidates: Sequence[Candidate], *, count: Callable[[str], int]) -> list[Candidate]:
    """
    The candidates that fit the budgets of their kinds, best first.

    Returns:
        Those that fit, in the same order. Turns share 2,500 tokens, preferences and facts 400, research,
        visits and knowledge documents 500 each; what exceeds all of it together is left out too.

    Source:
        S1 §7.1.
    """
    room, total = dict(_BUDGETS), _TOTAL_TOKENS
    offered: list[Candidate] = []
    for candidate in candidates:
        kind = candidate.node_id.partition(":")[0]
        kind = _KINDS.get(kind, kind)
        tokens = count(candidate.text)
        if tokens <= min(room[kind], total):
            offered.append(candidate)
            room[kind] -= tokens
            total -= tokens
    return offered


@dataclass(frozen=True)
class Judged:
    """A candidate with what was found about it."""

    candidate: Candidate  # the candidate
    score: float | None  # how relevant its best line is; None if that was not scored
    chosen: bool  # whether it is relevant
    by: By  # who decided: the choice of 2.1, or a rule


def judge_candidates(
    candidates: Sequence[Candidate],
    *,
    scores: Mapping[str, float],
    chosen: Collection[str],
    by_rule: Collection[str],
) -> list[Judged]:
    """
    What became of every candidate, in the same order.

    Args:
        scores: How relevant they are, by node id; {} where that was not scored.

    Source:
        Design §4 "Retrieval"; S1 §13.2.
    """
    return [
        Judged(
            one,
            scores.get(one.node_id),
            one.node_id in chosen or one.node_id in by_rule,
            "always_include" if one.node_id in by_rule else "model",
        )
        for one in candidates
    ]


def ruled_nodes(
    reading: Reading, analysis: Mapping[str, Any], offered: Sequence[str], previous: str | None
) -> list[str]:
    """
    The candidates that are relevant by rule.

    Args:
        offered: Ids of the candidates.
        previous: Id of the session's previous turn; None if there is none.

    Returns:
        Turns that the query names, what it refers to, the previous turn if it refers to something that was
        not found, and for somebody who looks for something to buy the preferences about money and brands.

    >>> about = {"content_reference": None, "reference_resolution": {"status": "not_needed"}}
    >>> about["intent"] = "commerce"
    >>> ruled_nodes(Reading("orders"), about, ["memory:budget", "memory:hamster"], None)
    ['memory:budget']
    """
    wanted = reading.turns
    reference = analysis["content_reference"]
    if reference:
        wanted += [reference["node_id"], *analysis.get("reference_nodes", ())]
    elif previous and analysis["reference_resolution"]["status"] == "failed":
        wanted.append(previous)
    if analysis["intent"] == "commerce" and (reading.mood == "orders" or reading.limits):
        keys = (node_id for node_id in offered if node_id.startswith("memory:"))
        wanted += [node_id for node_id in keys if matters_to_buyers(node_id)]
    return [node_id for node_id in dict.fromkeys(wanted) if node_id in offered]


def build_plan(
    judged: Sequence[Judged], research: Node | None, now: datetime, *, reasoning: str | None
) -> dict[str, Any]:
    """
    The plan of one query.

    Args:
        judged: All candidates that were looked at, best first.
        research: The research that was chosen, loaded; None if none was.

    Source:
        S1 §4.1, with `relevant_knowledge` (design §4).
    """
    chosen = [one for one in judged if one.chosen]
    turns = [one for one in chosen if one.candidate.node_id.startswith("turn:")]
    return {
        "relevant_turns": [int(_name(one)) for one in turns],
        "turn_relevance": {
            _name(one): {"relevance": _level(one, turns), "reason": _reason(one)} for one in turns
        },
        "relevant_memory_keys": _names(chosen, "memory:", "fact:"),
        "relevant_knowledge": _names(chosen, "knowledge:"),
        "research_cache_match": _research(research, now),
        "webpage_cache_needed": _names(chosen, "visit:"),
        "candidates": [
            {
                "node_id": one.candidate.node_id,
                "score": None if one.score is None else round(one.score, 4),
                "index": one.candidate.score,
                "chosen": one.chosen,
                "by": one.by,
            }
            for one in judged
        ],
        "reasoning": reasoning,
    }


def planned_nodes(plan: Mapping[str, Any]) -> list[str]:
    """The ids of the nodes that a plan chose, best first."""
    return _ranked([one for one in plan["candidates"] if one["chosen"]])


def further_nodes(plan: Mapping[str, Any]) -> list[str]:
    """The ids of the candidates that a plan left out, best first."""
    return _ranked([one for one in plan["candidates"] if not one["chosen"]])


def _ranked(candidates: Sequence[Mapping[str, Any]]) -> list[str]:
    def rank(one: Mapping[str, Any]) -> tuple[bool, float]:
        return one["by"] != "always_include", -(one["score"] or 0.0)

    return [str(one["node_id"]) for one in sorted(candidates, key=rank)]


def _name(one: Judged) -> str:
    return one.candidate.node_id.partition(":")[2]


def _names(chosen: Sequence[Judged], *prefixes: str) -> list[str]:
    return [_name(one) for one in chosen if one.candidate.node_id.startswith(prefixes)]


def _level(one: Judged, turns: Sequence[Judged]) -> str:
    best = max((other.score or 0.0 for other in turns), default=0.0)
    return "high" if one.by == "always_include" or (one.score or 0.0) >= best else "medium"


def _reason(one: Judged) -> str:
    if one.by == "always_include":
        return "the query or the session refers to it"
    words = "shares words with the query" if one.candidate.shares_words else "fits the query in other words"
    return words if one.score is None else f"{words}; model and index together {one.score:.2f}"


def _research(node: Node | None, now: datetime) -> dict[str, Any]:
    if node is None:
        return {
            "matched": False,
            "topic": None,
            "freshness": None,
            "quality": None,
            "reuse_recommendation": None,
        }
    quality = round(node.confidence, 2)
    stale = is_stale(node, now)
    reuse = "refresh" if stale or quality < _PARTIAL else "full" if quality >= _FULL else "partial"
    return {
        "matched": True,
        "topic": node.id.partition(":")[2],
        "freshness": None if node.at is None else f"{age_days(node.at, now) * 24:.1f} hours",
        "quality": quality,
        "reuse_recommendation": reuse,
    }
