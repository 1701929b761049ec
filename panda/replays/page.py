"""A comparison as one HTML page that needs nothing else: plots as SVG, each turn side by side."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from panda.documents.context import PHASES, parse_context, render_section
from panda.errors import PandaError
from panda.replays.comparing import Cost, RunDiff
from panda.replays.outcomes import Outcome
from panda.replays.sides import Side
from panda.storage.files import read_text, write_atomic
from panda.storage.layout import CONTEXT_MD

_TEMPLATE = "page.html.j2"
_PLOT_WIDTH = 420


@dataclass(frozen=True)
class Bar:
    """One pair of bars of a plot."""

    label: str
    """What it is of."""
    before: float | None
    """Value in the first run; None if unknown."""
    after: float | None
    """Value in the second run."""
    before_width: int
    """Length of the first bar in pixels."""
    after_width: int
    """Length of the second bar."""


def write_page(path: Path, diff: RunDiff, before: Side, after: Side, regressions: Sequence[str]) -> None:
    """
    Write a comparison as an HTML page.

    Args:
        path: The file.
        diff: The differences.
        before: First side.
        after: Second side.
        regressions: What is more than was allowed, a sentence each.

    Raises:
        StoreError: It cannot be written.
    """
    loader = PackageLoader("panda.replays", "")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    flips = Counter(flip.recipe for flip in diff.flips if flip.first)
    page = environment.get_template(_TEMPLATE).render(
        diff=diff,
        before=before.name,
        after=after.name,
        regressions=regressions,
        tokens=_bars(diff.phases, "tokens"),
        seconds=_bars(diff.phases, "seconds"),
        flips=_scaled([(recipe, None, count) for recipe, count in sorted(flips.items())]),
        turns=_turns(diff, before, after),
        plot_width=_PLOT_WIDTH,
    )
    write_atomic(path, page.encode("utf-8", errors="replace"))


def _bars(costs: Sequence[Cost], what: str) -> list[Bar]:
    rows = [
        (
            f"{cost.name} {PHASES[int(cost.name)]}",
            getattr(cost, f"{what}_before"),
            getattr(cost, f"{what}_after"),
        )
        for cost in costs
    ]
    return _scaled(rows)


def _scaled(rows: Sequence[tuple[str, float | None, float | None]]) -> list[Bar]:
    most = max((value or 0 for _, *pair in rows for value in pair), default=0) or 1

    def width(value: float | None) -> int:
        return round(_PLOT_WIDTH * (value or 0) / most)

    return [Bar(label, one, two, width(one), width(two)) for label, one, two in rows]


def _turns(diff: RunDiff, before: Side, after: Side) -> list[dict[str, Any]]:
    """What the page shows of each turn that both sides hold; those that differ first."""
    one = {(outcome.user, outcome.turn): outcome for outcome in before.outcomes}
    shown = []
    for outcome in after.outcomes:
        key = (outcome.user, outcome.turn)
        if key in one:
            shown.append(_turn(diff, one[key], outcome, before.directories[key], after.directories[key]))
    return sorted(shown, key=lambda turn: not turn["differs"])


def _turn(diff: RunDiff, old: Outcome, new: Outcome, before: Path, after: Path) -> dict[str, Any]:
    flips = [flip for flip in diff.flips if (flip.user, flip.turn) == (new.user, new.turn)]
    changed = [
        n for n in old.sections.keys() | new.sections.keys() if old.sections.get(n) != new.sections.get(n)
    ]
    texts = (_sections(before), _sections(after)) if changed else ({}, {})
    return {
        "turn": new.turn,
        "query": new.query,
        "differs": bool(flips) or old.answer != new.answer,
        "before": old,
        "after": new,
        "flips": flips,
        "sections": [
            {"number": n, "before": texts[0].get(n, ""), "after": texts[1].get(n, "")}
            for n in sorted(changed)
        ],
    }


def _sections(directory: Path) -> Mapping[int, str]:
    """The sections of a turn's context.md; none if it is gone or damaged."""
    path = directory / CONTEXT_MD
    try:
        document = parse_context(read_text(path), where=str(path))
    except PandaError:
        return {}
    return {section.number: render_section(section) for section in document.sections}
