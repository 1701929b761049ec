"""A revision of an answer: what its check refused is written anew, what it did not refuse stands."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from panda.documents.context import Phase
from panda.documents.safe_text import one_line, shorten
from panda.memory.gathered import answer_items
from panda.phases.running_turn import Turn
from panda.store.records import GatheredItem

_NOTE_CHARS = 200


@dataclass(frozen=True)
class ItemRepair:
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
        """Return what a model is told: each refused item with its problem and the fix, and what stands."""
        refused = [item for item in self.items if self._is_refused(item)]
        problems = [*self.issues, *[""] * len(refused)]  # a verdict on the whole has one for all
        wrong = []
        for item, problem in zip(refused, problems, strict=False):
            wrong.append(f"- {item.text} (cites {', '.join(item.node_ids) or 'nothing'})")
            if problem:
                wrong.append(f"  Problem: {problem}")
        stands = [f"- {item.text}" for item in self.items if not self._is_refused(item)]
        return "\n".join(
            [
                "Some items of your answer are not supported by the lines that they cite:",
                *wrong,
                "Fix: write each anew as its lines say it, cite the lines that say it, mend the expression of"
                " what you worked out, or leave the item out.",
                "These items stand. Do not give them again:",
                *stands,
            ]
        )

    @property
    def left_out_note(self) -> str:
        """Return what a reader is told of the items that are left out."""
        texts = [one_line(item.text) for item in self.items if self._is_refused(item)]
        refused = [f"- {shorten(text, _NOTE_CHARS)}" for text in texts]
        return "\n".join(["Left out, as the cited sources do not say it:", *refused])

    @property
    def standing(self) -> list[GatheredItem]:
        """Return the items that were not refused."""
        return self.merged(())

    def merged(self, written: Sequence[GatheredItem]) -> list[GatheredItem]:
        """The answer with what was written anew in place of the first refused item, without repetitions."""
        stands = [item for item in self.items if not self._is_refused(item)]
        texts = {item.text for item in stands}
        at = next(n for n, item in enumerate(self.items) if self._is_refused(item))
        return [*stands[:at], *(item for item in written if item.text not in texts), *stands[at:]]

    def _is_refused(self, item: GatheredItem) -> bool:
        return item.text in self.refused


def repair_of(turn: Turn, added_items: Collection[GatheredItem]) -> ItemRepair | None:
    """
    Return what of the last answer stands and what is to be written anew, if the check refused some items and
    not all; None if all of it is written anew.

    Args:
        added_items: Items that code adds to the answer; they are no part of it.
    """
    last = turn.superseded()[-1:] if turn.attempt else []
    judgement = last[0].section(Phase.VALIDATOR) if last else None
    meta: Mapping[str, Any] = judgement.meta if judgement else {}
    answer = last[0].section(Phase.SYNTHESIZER) if last else None
    items = tuple(item for item in answer_items(answer) if item not in added_items)
    refused = frozenset(map(str, meta.get("rejected", ()))) & {item.text for item in items}
    is_part = bool(refused) and any(item.text not in refused for item in items)
    issues = tuple(map(str, meta.get("issues", ())))
    return ItemRepair(items, refused, issues, bool(meta.get("left_out"))) if is_part else None
