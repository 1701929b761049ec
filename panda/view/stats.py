"""The page of stats: latency, tokens, validity, confidence against verdicts, by day, recipe, layer, phase."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from panda.documents.times import read_instant
from panda.errors import NotFoundError
from panda.store.log import ExecutionStats
from panda.view.execution_columns import (
    BINS,
    MOST_TURNS,
    Columns,
    ExecutionLog,
    Floats,
    Mask,
    bins_of,
    group_columns,
    sum_columns,
)
from panda.view.formats import number as number_text
from panda.view.formats import seconds as seconds_text
from panda.view.plots import Dot, Line, Plot, plot_columns, plot_line, share_of
from panda.view.shelf import Query, Shelf

_MOST_DAYS = 366
_MOST_GROUPS = 100
_GROUPS = {"recipe": "By recipe", "layer": "By layer", "phase": "By phase"}


@dataclass(frozen=True)
class GroupRow:
    """What one group adds up to, with its bars."""

    name: str
    sums: ExecutionStats
    executions_share: float  # percent of the highest group
    p50_share: float
    p95_share: float
    tokens_share: float


@dataclass(frozen=True)
class Group:
    """The groups of one kind."""

    by: str
    title: str
    rows: tuple[GroupRow, ...]  # those with most executions, sorted by name
    left: int


@dataclass(frozen=True)
class StatsPage:
    """What the page shows."""

    user: str
    users: list[str]
    fields: Mapping[str, str]  # the filter as it was typed
    recipes: tuple[str, ...]  # what the filter offers
    layers: tuple[str, ...]
    total: int  # executions of the user
    whole: ExecutionStats | None  # of those that were asked for; None if there are none
    first: str  # first and last day of these
    last: str
    plots: tuple[Plot, ...]  # by day
    days_left: int  # older days that are not shown
    calibration: Plot | None
    turns_left: int  # older turns of which it was not looked up how they ended
    most_turns: int
    groups: tuple[Group, ...]
    bad: tuple[tuple[int, str], ...]
    bad_left: int
    problem: str | None


def load_stats(shelf: Shelf, query: Query) -> StatsPage:
    """The stats of a user. Raises UsageError: a field of the filter is wrong."""
    user = query.parameters.get("user") or shelf.store.user
    shelf.turns(user)
    log = shelf.kept("executions", lambda: ExecutionLog(shelf.store))
    state = log.read(user)
    mask = _mask(state.columns, query)
    columns, held = state.columns.where(mask), state.held[mask]
    days = list(group_columns(columns, held, "day"))
    shown = days[-_MOST_DAYS:]
    return StatsPage(
        user=user,
        users=shelf.users(),
        fields=query.fields,
        recipes=_offered(state.columns, "recipe"),
        layers=_offered(state.columns, "layer"),
        total=state.columns.count,
        whole=sum_columns(columns, held) if columns.count else None,
        first=days[0][0] if days else "",
        last=days[-1][0] if days else "",
        plots=tuple(_day_plots(shown)) if shown else (),
        days_left=len(days) - len(shown),
        calibration=_calibration(columns.confidence, held),
        turns_left=state.turns_left,
        most_turns=MOST_TURNS,
        groups=tuple(_group(columns, held, by) for by in _GROUPS) if columns.count else (),
        bad=state.bad,
        bad_left=state.bad_left,
        problem=state.problem,
    )


def _offered(columns: Columns, name: str) -> tuple[str, ...]:
    used = np.unique(getattr(columns, name)).tolist()
    return tuple(sorted(columns.names[name][number] for number in used))[:_MOST_GROUPS]


def _mask(columns: Columns, query: Query) -> Mask:
    mask: Mask = np.ones(columns.count, np.bool_)
    for name in ("recipe", "layer"):
        if wanted := query.fields.get(name):
            texts = columns.names[name]
            if wanted not in texts:
                raise NotFoundError(f"the log has no {name} {wanted[:80]!r}", where=name)
            mask &= getattr(columns, name) == texts.index(wanted)
    days = np.array(columns.names["day"], np.str_) if columns.names["day"] else np.array([""])
    for name, keep in (("since", np.greater_equal), ("until", np.less_equal)):
        moment = read_instant(query.fields.get(name), name)
        if moment is not None and columns.count:
            mask &= keep(days, f"{moment:%Y-%m-%d}")[columns.day]
    return mask


def _day_plots(days: Sequence[tuple[str, ExecutionStats]]) -> list[Plot]:
    known = dict(days)
    names = _every_day([name for name, _ in days])
    sums = [known.get(name) for name in names]
    ends = (names[0], names[-1] if len(names) > 1 else "")
    counts = [one.executions if one else None for one in sums]
    tokens = [one.tokens if one else None for one in sums]
    slow = [one.p95_ms if one else None for one in sums]
    usual = [one.p50_ms if one else None for one in sums]
    valid = [100 * one.valid if one and one.valid is not None else None for one in sums]
    longest = max((value for value in slow if value is not None), default=0.0) or 1.0
    lines = (
        plot_line("95 in 100 take at most", "two", slow, longest),
        plot_line("median", "one", usual, longest),
    )
    retries = [one.retries if one else None for one in sums]
    return [
        Plot(
            id="executions",
            title="Executions a day",
            heads=("day", "executions"),
            rows=_rows(names, counts),
            top=_most(counts),
            bottom="0",
            columns=plot_columns(names, counts, [number_text(one) for one in counts]),
            ends=ends,
        ),
        Plot(
            id="latency",
            title="Latency",
            heads=("day", "median ms", "p95 ms"),
            rows=_rows(names, usual, slow),
            top=seconds_text(longest / 1000),
            bottom="0",
            lines=lines,
            ends=ends,
        ),
        Plot(
            id="tokens",
            title="Tokens a day, in and out",
            heads=("day", "tokens"),
            rows=_rows(names, tokens),
            top=_most(tokens),
            bottom="0",
            columns=plot_columns(names, tokens, [number_text(one) for one in tokens]),
            ends=ends,
        ),
        Plot(
            id="validity",
            title="Valid replies, percent",
            heads=("day", "valid %", "retries"),
            rows=_rows(names, valid, retries),
            top="100",
            bottom="0",
            lines=(plot_line("valid", "one", valid, 100.0),),
            marks=((50.0, "50"),),
            ends=ends,
        ),
    ]


def _every_day(names: Sequence[str]) -> list[str]:
    """All days from the first to the last, those without executions too; what is no day stands as it is."""
    try:
        first, last = date.fromisoformat(names[0]), date.fromisoformat(names[-1])
    except ValueError:
        return list(names)
    if not 0 <= (last - first).days < 4 * _MOST_DAYS:
        return list(names)
    days = [date.fromordinal(one).isoformat() for one in range(first.toordinal(), last.toordinal() + 1)]
    return days if set(names) <= set(days) else list(names)


def _rows(names: Sequence[str], *values: Sequence[float | None]) -> tuple[tuple[str, ...], ...]:
    rows = [
        (name, *(number_text(one) for one in some))
        for name, *some in zip(names, *values, strict=True)
        if any(one is not None for one in some)
    ]
    return tuple(rows[::-1])


def _most(values: Sequence[float | None]) -> str:
    return number_text(max((value for value in values if value is not None), default=0))


def _calibration(confidence: Floats, held: Floats) -> Plot | None:
    """How often what was believed so far held, by tenths of confidence; None if nothing can be said."""
    judged = ~np.isnan(held)
    if not judged.any():
        return None
    sure, ended = confidence[judged], held[judged]
    bins = bins_of(sure)
    counts = np.bincount(bins, minlength=BINS)
    dots, rows = [], []
    for at in np.flatnonzero(counts).tolist():
        own = bins == at
        mean, share, count = float(sure[own].mean()), float(ended[own].mean()), int(counts[at])
        radius = 4 + 8 * (count / int(counts.max())) ** 0.5
        text = f"{count:,} of confidence {mean:.2f}: {100 * share:.0f} % approved"
        dots.append(Dot(share_of(mean, 1), 100 - share_of(share, 1), round(radius, 1), text))
        span = f"{at / BINS:.1f} to {(at + 1) / BINS:.1f}"
        rows.append((span, f"{count:,}", f"{mean:.3f}", f"{share:.3f}", f"{mean - share:+.3f}"))
    return Plot(
        id="calibration",
        title="Share that ended approved, by confidence",
        heads=("confidence", "executions", "mean confidence", "approved", "apart"),
        rows=tuple(rows),
        top="1",
        bottom="0",
        ends=("0", "confidence 1"),
        lines=(Line("as sure as right", "even", (((0.0, 100.0), (100.0, 0.0)),)),),
        dots=tuple(dots),
        is_square=True,
    )


def _group(columns: Columns, held: Floats, by: str) -> Group:
    found = list(group_columns(columns, held, by))
    names = {name for name, _ in sorted(found, key=lambda one: -one[1].executions)[:_MOST_GROUPS]}
    shown = [(name, one) for name, one in found if name in names]
    executions = max(one.executions for _, one in shown)
    slowest = max((one.p95_ms or 0 for _, one in shown), default=0)
    tokens = max((one.tokens or 0 for _, one in shown), default=0)
    rows = tuple(
        GroupRow(
            name,
            one,
            share_of(one.executions, executions),
            share_of(one.p50_ms or 0, slowest),
            share_of(one.p95_ms or 0, slowest),
            share_of(one.tokens or 0, tokens),
        )
        for name, one in shown
    )
    return Group(by, _GROUPS[by], rows, len(found) - len(shown))
