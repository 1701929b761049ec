"""Phase 2 by itself: a turn taken as far as its context, or a look at what it would be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from panda.app import App
from panda.documents.context import render_section
from panda.errors import UsageError
from panda.phases.contract import Phase
from panda.phases.turn import Turn
from panda.pipeline import mark_turn
from panda.storage.layout import GATHERED_CONTEXT_JSON, RETRIEVAL_PLAN_JSON

Until = Literal["plan", "draft", "commit"]
_GATHERING = 2


@dataclass(frozen=True)
class Look:
    """What came of phase 2."""

    plan: dict[str, Any] | None
    """The retrieval plan; None if the turn ended before."""
    gathered: dict[str, Any] | None
    """gathered_context.json, on disk or as drafted; None with a plan alone."""
    section: str | None
    """§2 as it stands in context.md or would; None with a plan alone."""


def check_gatherable(app: App, number: int) -> None:
    """
    Raises unless phase 2 of a turn is still to come.

    Args:
        app: The program.
        number: The turn.

    Raises:
        NotFoundError: There is no such turn.
        UsageError: Its §2 is committed, or it has ended.
    """
    folder = app.store.open(number)
    metadata = folder.read_metadata()
    if metadata.next is None or metadata.next.phase > _GATHERING:
        raise UsageError(
            f"§2 of turn {number} is committed"
            if _GATHERING in metadata.route
            else f"turn {number} has ended",
            where=str(folder.paths.directory),
            fix=f"`panda show {number} --section 2` shows it; to gather anew, give the query with --query",
        )


def gather(app: App, turn: Turn, until: Until, watch: Callable[[Phase], None]) -> Look:
    """
    Take a turn through phase 2, or up to it for a look.

    Args:
        app: The program.
        turn: As start_turn or resume_turn gave it.
        until: commit writes §2 and leaves the turn with status gathered; plan and draft leave it before
            phase 2, with status interrupted and its retrieval plan written. A turn that ends on the way is
            saved.
        watch: Told of each phase before it runs.

    Raises:
        HaltError: The turn cannot go on; an intervention is written.
    """
    app.pipeline.run(turn, watch, before=_GATHERING if until != "commit" else _GATHERING + 1)
    if turn.folder.read_metadata().next is None:
        app.index.record(app.settings.user, [turn.turn])
        return _on_disk(turn)
    if until == "commit":
        mark_turn(turn, "gathered")
        return _on_disk(turn)
    if until == "plan":
        plan = app.pipeline.look(turn, _GATHERING, lambda: dict(app.gatherer.plan(turn)))
        look = Look(plan, None, None)
    else:
        found = app.pipeline.look(turn, _GATHERING, lambda: app.gatherer.gather(turn))
        look = Look(dict(found.plan), dict(found.values), render_section(found.section))
    mark_turn(turn, "interrupted")
    return look


def _on_disk(turn: Turn) -> Look:
    def read(name: str) -> dict[str, Any] | None:
        return turn.folder.read_json(name) if turn.folder.has(name) else None

    section = turn.folder.read_context().section(_GATHERING)
    text = render_section(section) if section else None
    return Look(read(RETRIEVAL_PLAN_JSON), read(GATHERED_CONTEXT_JSON), text)
