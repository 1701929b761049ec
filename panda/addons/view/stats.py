"""The page of stats: latency, tokens, validity, confidence against verdicts, by day, recipe, layer, phase."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from types import SimpleNamespace
from typing import Any

from panda.addons.view import formats
from panda.addons.view.plots import Plot, PlotLine, plot_columns, plot_line, share_of
from panda.addons.view.shelf import PageQuery, RowsPage, Shelf
from panda.documents.times import read_instant
from panda.errors import NotFoundError, Problem
from panda.index.executions import BINS, BY, MOST_TURNS, Executions, ExecutionStats, Where
from panda.store.files import why_unread

_MOST_DAYS = 366
_MOST_GROUPS = 100


def load_stats(shelf: Shelf, query: PageQuery) -> SimpleNamespace:
    """The stats of a user. Raises UsageError: a field of the filter is wrong."""
    user = query.parameters["user"]
    shelf.turns(user)
    log = shelf.get_reader("executions", lambda: Executions(shelf.store))
    with log.guard:
        turns_left = 0
        problem = None
        try:
            turns_left = log.read(user)
        except (Problem, OSError) as exc:
            problem = why_unread(exc)
        own = {"user_id = ?": user}
        offered = {
            name: [text for (text,) in log.select(f"DISTINCT {BY[name]}", own)]
            for name in ("recipe", "layer")
        }
        where = {**own, **_filter(query, offered)}
        whole = log.sums(where).get("")
        days = log.sums(where, "day")
        return SimpleNamespace(
            user=user,
            users=shelf.users(),
            fields=query.fields,
            offered={name: sorted(texts)[:_MOST_GROUPS] for name, texts in offered.items()},
            total=log.select("count(*)", own)[0][0],
            whole=whole,
            first=min(days, default=""),
            last=max(days, default=""),
            plots=_day_plots(dict(list(days.items())[-_MOST_DAYS:])) if days else (),
            days_left=max(0, len(days) - _MOST_DAYS),
            calibration=_calibration(log.bins(where)),
            turns_left=turns_left,
            most_turns=MOST_TURNS,
            groups={by: _largest(log.sums(where, by)) for by in BY if by != "day"} if whole else {},
            damaged=list(log.damaged),
            problem=problem,
        )


def _filter(query: PageQuery, offered: Mapping[str, Sequence[str]]) -> Where:
    where: dict[str, object] = {}
    for name, texts in offered.items():
        if wanted := query.fields.get(name):
            if wanted not in texts:
                raise NotFoundError(f"the log has no {name} {wanted[:80]!r}", where=name)
            where[f"{BY[name]} = ?"] = wanted
    for name, how in (("since", ">="), ("until", "<=")):
        moment = read_instant(query.fields.get(name), name)
        if moment is not None:
            where[f"{BY['day']} {how} ?"] = f"{moment:%Y-%m-%d}"
    return where


def _largest(sums: Mapping[str, ExecutionStats]) -> RowsPage[tuple[str, ExecutionStats]]:
    """The groups with most executions, sorted by name."""
    largest = RowsPage(sorted(sums.items(), key=lambda group: -group[1].executions), _MOST_GROUPS)
    largest.sort(key=lambda group: group[0])
    return largest


def _day_plots(days: Mapping[str, ExecutionStats]) -> list[Plot]:
    names = _every_day(list(days))

    def values(value_of: Callable[[ExecutionStats], float | None]) -> list[float | None]:
        return [value_of(days[name]) if name in days else None for name in names]

    def plot(
        plot_id: str, title: str, top: str, heads: Mapping[str, Sequence[float | None]], **marks: Any
    ) -> Plot:
        rows = [
            (name, *map(formats.number, cells))
            for name, *cells in zip(names, *heads.values(), strict=True)
            if any(cell is not None for cell in cells)
        ]
        ends = (names[0], names[-1] if len(names) > 1 else "")
        return Plot(
            plot_id, title, heads=("day", *heads), rows=rows[::-1], top=top, bottom="0", ends=ends, **marks
        )

    def columns(plot_id: str, title: str, counts: Sequence[float | None]) -> Plot:
        top = formats.number(max((count for count in counts if count is not None), default=0))
        texts = [formats.number(count) for count in counts]
        return plot(plot_id, title, top, {plot_id: counts}, columns=plot_columns(names, counts, texts))

    usual = values(lambda sums: sums.p50_ms)
    slow = values(lambda sums: sums.p95_ms)
    longest = max((value for value in slow if value is not None), default=0.0) or 1.0
    latency = plot(
        "latency",
        "Latency",
        formats.seconds(longest / 1000),
        {"median ms": usual, "p95 ms": slow},
        lines=[
            plot_line("95 in 100 take at most", "two", slow, longest),
            plot_line("median", "one", usual, longest),
        ],
    )
    valid = values(lambda sums: None if sums.valid is None else 100 * sums.valid)
    validity = plot(
        "validity",
        "Valid replies, percent",
        "100",
        {"valid %": valid, "retries": values(lambda sums: sums.retries)},
        lines=[plot_line("valid", "one", valid, 100.0)],
        marks=[(50.0, "50")],
    )
    return [
        columns("executions", "Executions a day", values(lambda sums: sums.executions)),
        latency,
        columns("tokens", "Tokens a day, in and out", values(lambda sums: sums.tokens)),
        validity,
    ]


def _every_day(names: Sequence[str]) -> Sequence[str]:
    """All days from the first to the last, those without executions too; what is no day stands as it is."""
    try:
        first = date.fromisoformat(names[0])
        last = date.fromisoformat(names[-1])
    except ValueError:
        return names
    if not 0 <= (last - first).days < 4 * _MOST_DAYS:
        return names
    days = [date.fromordinal(day).isoformat() for day in range(first.toordinal(), last.toordinal() + 1)]
    return days if set(names) <= set(days) else names


def _calibration(bins: Sequence[Sequence[Any]]) -> Plot | None:
    """Return a plot of how often answers held, by tenths of confidence; None if nothing can be said."""
    if not bins:
        return None
    most = max(count for _, _, count, *_ in bins)
    dots = []
    rows = []
    for _, place, count, sure, ended in bins:
        sure, held = sure / count, ended / count
        text = f"{count:,} of confidence {sure:.2f}: {100 * held:.0f} % approved"
        radius = round(4 + 8 * (count / most) ** 0.5, 1)
        dots.append((share_of(sure, 1), 100 - share_of(held, 1), radius, text))
        span = f"{place / BINS:.1f} to {(place + 1) / BINS:.1f}"
        rows.append((span, f"{count:,}", f"{sure:.3f}", f"{held:.3f}", f"{sure - held:+.3f}"))
    return Plot(
        id="calibration",
        title="Share that ended approved, by confidence",
        heads=("confidence", "executions", "mean confidence", "approved", "apart"),
        rows=rows,
        top="1",
        bottom="0",
        ends=("0", "confidence 1"),
        lines=[PlotLine("as sure as right", "even", [[(0.0, 100.0), (100.0, 0.0)]])],
        dots=dots,
        is_square=True,
    )
