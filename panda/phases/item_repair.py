"""The first revision of an answer: what its check refused is written anew, what it did not refuse stands."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    last = turn.superseded()[-1:] if turn.attempt == 1 else []
    judgement = last[0].section(6) if last else None
    meta: Mapping[str, Any] = judgement.meta if judgement else {}
    if not meta.get("issues"):
        return None
    items = tuple(one for one in answer_items(last[0].section(5)) if one not in told)
    refused = frozenset(map(str, meta["rejected"])) & {one.text for one in items}
    is_part = bool(refused) and any(one.text not in refused for one in items)
    return Repair(items, refused, tuple(map(str, meta["issues"]))) if is_part else None
