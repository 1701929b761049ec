"""Which candidates are put before the model, and in what words (S1 §4.1, §7.1)."""

from collections.abc import Callable, Mapping, Sequence

from panda.retrieval.candidates import Candidate

_TOTAL_TOKENS = 3_900
"""Budget tokens of all candidates together: the input of the call less 300 for the query's analysis."""
_BUDGETS: Mapping[str, int] = {"turn": 2_500, "memory": 400, "research": 500, "visit": 500, "knowledge": 500}
_KINDS = {"fact": "memory"}


def offered_candidates(candidates: Sequence[Candidate], *, count: Callable[[str], int]) -> list[Candidate]:
    """
    The candidates that fit the budgets of their kinds, best first.

    Args:
        candidates: At most some dozens, best first.
        count: Maps a text to budget tokens.

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
