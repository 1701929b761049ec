"""Plots as plain values: lines, columns and dots in percent, each with its numbers as a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_WIDEST = 8.0  # percent that a column takes at most
Point = tuple[float, float]
"""Across and down, in percent, from the upper left corner."""


class PlotLine(NamedTuple):
    """A line of a plot, perhaps in several stretches."""

    name: str  # as the legend has it
    style: str  # one, two, ahead or even
    stretches: Sequence[Sequence[Point]]


@dataclass(frozen=True)
class Plot:
    """One plot. Its labels stand beside it, so that they can be read however narrow it is."""

    id: str
    title: str
    heads: tuple[str, ...]  # of the table of its numbers
    rows: Sequence[tuple[str, ...]]  # the table; the first cell of a row names it
    top: str  # label of the upper end
    bottom: str  # label of the lower end
    ends: tuple[str, str]  # labels of the left and the right end
    lines: Sequence[PlotLine] = ()
    columns: Sequence[tuple[float, float, float, str]] = ()  # left, width, height, all in percent, and text
    dots: Sequence[tuple[float, float, float, str]] = ()  # across and down in percent, radius, and text
    marks: Sequence[tuple[float, str]] = ()  # lines across: percent from above, and what they mean
    now: float | None = None  # a line down at the present, in percent from the left
    is_square: bool = False  # whether it is as high as wide


def share_of(part: float, whole: float) -> float:
    """
    Percent, two decimals at most; 0 of nothing.

    >>> share_of(1, 3), share_of(1, 0)
    (33.33, 0.0)
    """
    return round(100 * part / whole, 2) if whole else 0.0


def plot_columns(
    names: Sequence[str], values: Sequence[float | None], texts: Sequence[str]
) -> list[tuple[float, float, float, str]]:
    """A column for each value that there is, side by side, the highest as high as the plot."""
    most = max((value for value in values if value), default=0) or 1
    slot = 100 / max(1, len(values))
    width = min(slot * 0.8, _WIDEST)
    return [
        (
            round(place * slot + (slot - width) / 2, 3),
            round(width, 3),
            share_of(value, most),
            f"{name}: {text}",
        )
        for place, (name, value, text) in enumerate(zip(names, values, texts, strict=True))
        if value
    ]


def plot_line(name: str, style: str, values: Sequence[float | None], most: float) -> PlotLine:
    """A line through the middles of as many columns; a value that is not there interrupts it."""
    stretches: list[list[Point]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            stretches.append([])
        else:
            across = share_of(place + 0.5, len(values))
            stretches[-1].append((across, 100 - share_of(value, most)))
    return PlotLine(name, style, [stretch for stretch in stretches if stretch])
