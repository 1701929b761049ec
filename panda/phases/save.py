"""Phase 7: what was learnt is written down, then the summary for the index (S1 §11)."""

from panda.documents.times import Clock
from panda.errors import HaltError
from panda.memory.applying import apply_staged
from panda.memory.gathered import answer_items
from panda.memory.staging import StagedValue
from panda.phases.contract import Advance
from panda.phases.summarizing import summarise
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.storage.layout import (
    INDEX_SUMMARY_JSON,
    RESPONSE_MD,
    STAGED_MEMORY_JSON,
    SUMMARY_JSON,
    Layout,
)

_NOT_APPROVED = "No answer was approved; §5 and §6 of context.md say what was tried and why it was refused."


class Save:
    """
    Applies staged memory, writes summary.json and index_summary.json.

    Args:
        executor: Asks the summariser.
        layout: The store.
        clock: The present.
        wait_seconds: How long to wait for the user's memory.
    """

    number = 7
    name = "save"
    layer = "MIND"

    def __init__(self, executor: RecipeExecutor, layout: Layout, clock: Clock, wait_seconds: float) -> None:
        self._executor = executor
        self._layout = layout
        self._clock = clock
        self._wait_seconds = wait_seconds

    def run(self, turn: Turn) -> Advance:
        """Save the turn; a summary that cannot be made is a warning, the index makes it later."""
        self._apply_memory(turn)
        if turn.ending != "approved":
            turn.folder.write_text(RESPONSE_MD, f"{turn.question or _NOT_APPROVED}\n")
        items = answer_items(turn.context.section(5))
        summary: str | None = None
        try:
            index_summary = summarise(self._executor, turn)
            turn.folder.write_json(INDEX_SUMMARY_JSON, index_summary)
            summary = str(index_summary["summary"])
        except HaltError as exc:
            turn.warn(f"no summary for the index yet: {exc.message}")
        turn.folder.write_json(
            SUMMARY_JSON,
            {
                "turn": turn.turn,
                "outcome": turn.ending,
                "turn_summary": summary,
                "summary_kind": "verbatim" if summary else None,
                "answered": bool(turn.answered),
                "sources": list(dict.fromkeys(n for item in items for n in item.node_ids)),
                "steps_completed": sum(step["status"] == "success" for step in turn.steps()),
                "errors": [f"{step['tool']}: {step['error']}" for step in turn.steps() if step["error"]],
            },
        )
        return Advance()

    def _apply_memory(self, turn: Turn) -> None:
        if not turn.folder.has(STAGED_MEMORY_JSON) or turn.ending != "approved":
            return
        value = turn.read(STAGED_MEMORY_JSON)
        staged = [StagedValue.from_json(raw) for raw in value["staged"]]
        apply_staged(self._layout, turn.user_id, staged, self._clock, self._wait_seconds)
        turn.folder.write_json(STAGED_MEMORY_JSON, {**value, "applied": True})
