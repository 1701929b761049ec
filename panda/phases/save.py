"""Phase 7: what was learnt is written down, then the turn joins its session (S1 §11, S4)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from panda.documents.times import Clock
from panda.errors import HaltError
from panda.memory.gathered import answer_items
from panda.memory.memory import StagedValue, apply_staged
from panda.phases.asking import ask
from panda.phases.contract import Advance
from panda.phases.noted import Noting, render_noted
from panda.phases.summarizing import summarise
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.session.file import commit_turn
from panda.session.fold import (
    REPLY_CHARS,
    SessionTexts,
    merge_by_rule,
    reply_of,
    summary_json,
    summary_of,
    to_merge,
)
from panda.session.pending import fate_of
from panda.session.turn_files import TurnFiles, load_turn_files
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
    Applies staged memory, writes summary.json and index_summary.json, and commits the turn to its session.

    Args:
        executor: Asks the summarisers.
        layout: The store.
        clock: The present.
        wait_seconds: How long to wait for the user's memory.
        noting: Stages what was told.
    """

    number = 7
    name = "save"
    layer = "MIND"

    def __init__(
        self, executor: RecipeExecutor, layout: Layout, clock: Clock, wait_seconds: float, noting: Noting
    ) -> None:
        self._executor = executor
        self._noting = noting
        self._layout = layout
        self._clock = clock
        self._wait_seconds = wait_seconds

    def run(self, turn: Turn) -> Advance:
        """
        Save the turn; a summary that cannot be made is a warning, the index makes it later.

        The last write is session.json: a run that was killed after it finds nothing left to do.
        """
        if turn.session is not None and turn.session.head_turn == turn.turn:
            return Advance()
        noted = self._noting.of(turn)
        self._apply_memory(turn)
        if turn.ending != "approved":
            said = [render_noted(noted)] if noted else []
            turn.folder.write_text(RESPONSE_MD, "\n\n".join([*said, turn.question or _NOT_APPROVED]) + "\n")
        turn.folder.write_json(SUMMARY_JSON, self._summary(turn, self._index_summary(turn)))
        commit_turn(self._layout, turn.user_id, turn.session, turn.turn)
        return Advance()

    def _index_summary(self, turn: Turn) -> str | None:
        try:
            index_summary = summarise(self._executor, turn)
        except HaltError as exc:
            turn.warn(f"no summary for the index yet: {exc.message}")
            return None
        turn.folder.write_json(INDEX_SUMMARY_JSON, index_summary)
        return str(index_summary["summary"])

    def _summary(self, turn: Turn, text: str | None) -> dict[str, Any]:
        """The value of summary.json."""
        items = answer_items(turn.context.section(5))
        written = self._writes("phase7_summarizer", turn)
        ended: dict[str, Any] = {
            "turn": turn.turn,
            "outcome": turn.ending,
            "turn_summary": text,
            "summary_kind": ("model" if written else "verbatim") if text else None,
            "answered": bool(turn.answered),
            "sources": list(dict.fromkeys(n for item in items for n in item.node_ids)),
            "question": turn.question,
        }
        files = replace(load_turn_files(turn.folder.paths, turn.turn), summary=ended)
        made = summary_of(turn.carry, files)
        if turn.ending == "failed" and made.blocked_reason is None:
            made = replace(made, blocked_reason=turn.reason)
        values = {**summary_json(made, self._texts(turn, files)), **ended}
        return {**values, "pending": fate_of(turn.carry, files)}

    def _texts(self, turn: Turn, files: TurnFiles) -> SessionTexts:
        """What the session keeps of the turn in prose, by a model where it writes and there is need."""
        waiting, reply = to_merge(turn.carry), reply_of(files)
        if not waiting and len(reply) <= REPLY_CHARS:
            return SessionTexts()
        if not self._writes("phase7_session", turn):
            text, kind = merge_by_rule(turn.carry)
            return SessionTexts(history=text, history_kind=kind) if waiting else SessionTexts()
        try:
            values = self._ask(turn, reply)
        except HaltError as exc:
            turn.warn(f"no summary for the session yet: {exc.message}")
            return SessionTexts()
        history = values.get("history") or None
        return SessionTexts(
            assistant_summary=values.get("reply") or None,
            assistant_summary_kind="model" if values.get("reply") else None,
            history=history if waiting else None,
            history_kind="model" if waiting and history else None,
            engagement=values.get("engagement") or None,
            engagement_kind="model" if values.get("engagement") else None,
        )

    def _ask(self, turn: Turn, reply: str) -> Mapping[str, Any]:
        carry = turn.carry
        leaving = [one for one in carry.turn_summaries if one.turn in to_merge(carry)]
        return ask(
            self._executor,
            "phase7_session",
            turn,
            extra={
                "earlier_history": carry.history_summary.text,
                "leaving_turns": "\n".join(f"Turn {one.turn}: {one.turn_summary}" for one in leaving),
                "engagement": carry.engagement_summary.text,
                "reply": reply if len(reply) > REPLY_CHARS else "",
            },
        ).values

    def _writes(self, step: str, turn: Turn) -> bool:
        return self._executor.writes(self._executor.book.recipe_for(step, turn.mode).key)

    def _apply_memory(self, turn: Turn) -> None:
        """Write what is staged: all of an approved turn, of others what was told."""
        if not turn.folder.has(STAGED_MEMORY_JSON):
            return
        value = turn.read(STAGED_MEMORY_JSON)
        staged = [StagedValue.from_json(raw) for raw in value["staged"]]
        due = [one for one in staged if one.told or turn.ending == "approved"]
        apply_staged(self._layout, turn.user_id, due, self._clock, self._wait_seconds)
        turn.folder.write_json(STAGED_MEMORY_JSON, {**value, "applied": due == staged})
