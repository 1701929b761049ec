"""The passages that phase 2 ranked, as later phases have them."""

from collections.abc import Sequence

from panda.phases.running_turn import Turn
from panda.retrieval.passages import Passage, PassageRanker, RankedPassage
from panda.retrieval.selection import Selection, prefer_own, select_passages
from panda.store.records import Evidence, Line


def near_passages(evidence: Evidence, lines: Sequence[Line]) -> list[RankedPassage]:
    """Return the passages of phase 2, closest first, as far as their lines are among some lines."""
    by_id = {line.id: line for line in lines}
    ranked = []
    for near in evidence.passages:
        left = tuple(by_id[id_] for id_ in near.lines if id_ in by_id)
        if left:
            best = next((line for line in left if line.id == near.best), left[0])
            ranked.append(RankedPassage(Passage(left), near.closeness, best, near.words))
    return ranked


def passages_answer(turn: Turn, evidence: Evidence | None, ranker: PassageRanker) -> bool:
    """Return whether the closest passages of §2 surely answer; True where none were compared."""
    if evidence is None or turn.reading.of_documents:
        return True
    ranked = near_passages(evidence, evidence.gathered)
    return not ranked or select_closest(turn.meant, ranked, ranker).is_sure


def select_closest(query: str, ranked_passages: Sequence[RankedPassage], ranker: PassageRanker) -> Selection:
    """Return which of the closest passages answer a query, and whether they surely do."""
    own = prefer_own(query, ranked_passages)
    coverage = ranker.measure_coverage(query, own[0].passage) if own else None
    return select_passages(query, own, coverage)
