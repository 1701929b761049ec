"""The first revision of an answer: what its check refused is written anew, what it did not refuse stands."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panda.documents.context import Phase
from panda.memory.gathered import answer_items
from panda.phases.turn import Turn
from panda.store.records import GatheredItem


@dataclass(frozen=True)
class Repair:
    """An answer of which some items hold and some do not."""

    items: tuple[GatheredItem, ...]
    """All of them, in order."""
    refused: frozenset[str]
    """Texts of those that are not held by what they cite."""
    issues: tuple[str, ...]
    """What is wrong, a sentence each."""
    leaves_out: bool = False
    """Whether those that are refused had their repair and are to be left out."""

    @property
    def guidance(self) -> str:
        wrong = [
            f"- {one.text} (cites {', '.join(one.node_ids)})" for one in self.items if self._is_refused(one)
        ]
        stands = [f"- {one.text}" for one in self.items if not self._is_refused(one)]
        return "\n".join(
            [
                "Some items of your answer are not held by what they cite. Write these anew, and no others:",
                *wrong,
                f"What is wrong: {'; '.join(self.issues)}",
                "These stand and are not given again:",
                *stands,
            ]
        )

    def merged(self, written: Sequence[GatheredItem]) -> list[GatheredItem]:
        """The answer with what was written anew in place of the first refused item, without repetitions."""
        stands = [one for one in self.items if not self._is_refused(one)]
        texts = {one.text for one in stands}
        at = next(n for n, one in enumerate(self.items) if self._is_refused(one))
        return [*stands[:at], *(one for one in written if one.text not in texts), *stands[at:]]

    def _is_refused(self, one: GatheredItem) -> bool:
        return one.text in self.refused


def repair_of(turn: Turn, told: Collection[GatheredItem]) -> Repair | None:
    """
    What of the last answer is to be written anew alone, in the first revision, if the check refused some
    items and not all, but for what code adds (*told*). What is refused a second time makes the whole answer
    anew.
    """
    last = _last_judged(turn, told)
    return last if turn.attempt == 1 and last and last.issues else None


def standing_items(turn: Turn, told: Collection[GatheredItem]) -> list[GatheredItem] | None:
    """What stands of an answer whose unsupported items are only left out; None if it is written anew."""
    last = _last_judged(turn, told)
    return last.merged(()) if last and last.leaves_out else None


def _last_judged(turn: Turn, told: Collection[GatheredItem]) -> Repair | None:
    last = turn.superseded()[-1:] if turn.attempt else []
    judgement = last[0].section(Phase.VALIDATOR) if last else None
    meta: Mapping[str, Any] = judgement.meta if judgement else {}
    answer = last[0].section(Phase.SYNTHESIZER) if last else None
    items = tuple(item for item in answer_items(answer) if item not in told)
    refused = frozenset(map(str, meta.get("rejected", ()))) & {one.text for one in items}
    is_part = bool(refused) and any(one.text not in refused for one in items)
    issues = tuple(map(str, meta.get("issues", ())))
    return Repair(items, refused, issues, bool(meta.get("left_out"))) if is_part else None
