"""A comparison as one HTML page that needs nothing else, and as JUnit XML for a CI server."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined

from panda.documents.context import PHASES, parse_context, render_section
from panda.errors import PandaError
from panda.replays.comparison import (
    Cost,
    RunDiff,
    Side,
    Thresholds,
    changed_sections,
    find_faults,
    find_growth,
)
from panda.replays.runs import Outcome, TurnKey
from panda.storage.files import read_text, write_atomic
from panda.storage.layout import CONTEXT_MD

_TEMPLATE = "page.html.j2"
_PLOT_WIDTH = 420
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Bar:
    """One pair of bars of a plot."""

    label: str  # what it is of
    before: float | None  # value in the first run; None if unknown
    after: float | None  # value in the second run
    before_width: int  # length of the first bar in pixels
    after_width: int  # length of the second bar


def write_page(path: Path, diff: RunDiff, before: Side, after: Side, regressions: Sequence[str]) -> None:
    """Write a comparison as an HTML page, with what is more than was allowed, a sentence each."""
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
    names = [f"{cost.name} {PHASES[int(cost.name)]}" for cost in costs]
    pairs = [(getattr(cost, f"{what}_before"), getattr(cost, f"{what}_after")) for cost in costs]
    return _scaled([(name, *pair) for name, pair in zip(names, pairs, strict=True)])


def _scaled(rows: Sequence[tuple[str, float | None, float | None]]) -> list[Bar]:
    most = max((value or 0 for _, *pair in rows for value in pair), default=0) or 1

    def width(value: float | None) -> int:
        return round(_PLOT_WIDTH * (value or 0) / most)

    return [Bar(label, one, two, width(one), width(two)) for label, one, two in rows]


def _turns(diff: RunDiff, before: Side, after: Side) -> list[dict[str, Any]]:
    """What the page shows of each turn that both sides hold; those that differ first."""
    one = {outcome.key: outcome for outcome in before.outcomes}
    shown = []
    for outcome in after.outcomes:
        if (key := outcome.key) in one:
            shown.append(_turn(diff, one[key], outcome, before.directories[key], after.directories[key]))
    return sorted(shown, key=lambda turn: not turn["differs"])


def _turn(diff: RunDiff, old: Outcome, new: Outcome, before: Path, after: Path) -> dict[str, Any]:
    flips = [flip for flip in diff.flips if (flip.user, flip.turn) == new.key]
    changed = changed_sections(old, new)
    texts = (_sections(before), _sections(after)) if changed else ({}, {})
    return {
        "turn": new.turn,
        "query": new.query,
        "differs": bool(flips) or old.answer != new.answer,
        "before": old,
        "after": new,
        "flips": flips,
        "sections": [
            {"number": n, "before": texts[0].get(n, ""), "after": texts[1].get(n, "")} for n in changed
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


def write_junit(path: Path, diff: RunDiff, before: Side, after: Side, thresholds: Thresholds) -> None:
    """
    Write a comparison as JUnit XML.

    A turn with a flip or another answer is a failure; one that was not compared is an error, or skipped where
    that is allowed. A case of its own says what is wrong with the runs as a whole.
    """
    differences: dict[TurnKey, list[str]] = defaultdict(list)
    for flip in diff.flips:
        values = f"{flip.before!r} -> {flip.after!r}"
        differences[flip.user, flip.turn].append(f"{flip.recipe}: {flip.name}: {values}")
    for change in diff.answers:
        differences[change.user, change.turn].append(f"{change.recipe}: the answer changed")
    lacking: dict[TurnKey, list[str]] = defaultdict(list)
    for one in diff.not_judged:
        lacking[one.user, one.turn].append(f"{one.side}: {one.reason}")
    seconds = {
        outcome.key: sum(cost.seconds or 0 for cost in outcome.phases)
        for side in (before, after)
        for outcome in side.outcomes
    }
    suite = ElementTree.Element("testsuite", name=f"panda diff {before.name} {after.name}")
    for user, turn in sorted(seconds.keys() | lacking.keys()):
        case = _case(suite, user, f"turn {turn}", seconds.get((user, turn), 0))
        _tell(case, "failure", differences[user, turn])
        _tell(case, "skipped" if thresholds.missing else "error", lacking[user, turn])
    whole = _case(suite, "panda diff", "all turns")
    _tell(whole, "failure", find_growth(diff, thresholds))
    _tell(whole, "error", find_faults(diff, thresholds))
    suite.set("tests", str(len(suite)))
    for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(kind) is not None for case in suite)))
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
    write_atomic(path, text + "\n")


def _case(suite: ElementTree.Element, of: str, name: str, seconds: float = 0) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=of, name=name, time=f"{seconds:.3f}")


def _tell(case: ElementTree.Element, kind: str, said: Sequence[str]) -> None:
    if said:
        message, text = (_NO_XML.sub("\ufffd", part) for part in (said[0], "\n".join(said)))
        ElementTree.SubElement(case, kind, message=message).text = text
