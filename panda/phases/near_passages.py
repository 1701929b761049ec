"""The passages that phase 2 ranked, as later phases have them."""

from collections.abc import Sequence

from panda.retrieval.passages import Passage, RankedPassage
from panda.retrieval.selection import select_passages
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


def surely_answer(query: str, evidence: Evidence, *, by_words: bool) -> bool:
    """Return whether the closest passages of §2 surely answer; True where none were compared."""
    ranked = near_passages(evidence, evidence.gathered)
    return not ranked or select_passages(query, ranked, by_words=by_words).is_sure
