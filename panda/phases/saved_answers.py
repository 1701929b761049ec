"""How likely what is saved answers a message that is read one way or another."""

from collections.abc import Collection
from dataclasses import dataclass

from panda.memory.reader import NodeReader, find_node
from panda.phases.near_passages import select_closest
from panda.phases.running_turn import Turn
from panda.retrieval.candidates import Retriever
from panda.retrieval.passages import PassageRanker, cut_passages
from panda.retrieval.relevance import share_of_words

_LOOKED_AT = 20
"""Nodes whose passages are compared."""


@dataclass(frozen=True)
class SavedAnswers:
    """Finds the passages that are closest to a text and compares them with it and the query of a turn."""

    retriever: Retriever
    reader: NodeReader
    ranker: PassageRanker

    def measure(self, turn: Turn, text: str, excluded: Collection[str]) -> float:
        """
        Return how likely the closest passages answer a text, times how well the closest one covers the
        telling words of the turn's query, 0 to 1.

        Args:
            excluded: Ids of nodes that are not looked at.
        """
        candidates = self.retriever.find(text, limit=_LOOKED_AT, before_turn=turn.turn, fill_up=True)
        ids = [candidate.node_id for candidate in candidates if candidate.node_id not in excluded]
        nodes = [node for node_id in ids if (node := find_node(self.reader, node_id))]
        ranked = self.ranker.rank(text, [passage for node in nodes for passage in cut_passages(node)])
        if not ranked:
            return 0.0
        coverage = self.ranker.measure_coverage(turn.query, ranked[0].passage)
        covered = coverage.mean if coverage else share_of_words(turn.query, ranked[0].passage.encoded)
        return select_closest(text, ranked, self.ranker).probability * covered
