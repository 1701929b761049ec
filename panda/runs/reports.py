"""A comparison as one HTML page that needs nothing else, and as JUnit XML for a CI server."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from panda.documents.context import PHASES, parse_context, render_section
from panda.errors import Problem
from panda.runs.compare import (
    Cost,
    RunDiff,
    Side,
    Thresholds,
    changed_sections,
    find_faults,
    find_growth,
)
from panda.runs.ledger import Outcome, TurnKey, in_order
from panda.store.files import REPORT_MARK, read_text, write_atomic
from panda.store.layout import CONTEXT_MD

_TEMPLATE = "compare.html.j2"
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
    flips = Counter(flip.recipe for flip in diff.flips if flip.first)
    page = render_page(
        _TEMPLATE,
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
    write_atomic(path, page)


def render_page(template: str, **values: Any) -> bytes:
    """A template of this package as UTF-8; text of values can't become markup."""
    environment = Environment(
        loader=PackageLoader("panda.runs", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template(template).render(mark=Markup(REPORT_MARK), **values)
    return page.encode("utf-8", errors="replace")


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
        "turn": new.key[1],
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
    except Problem:
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
    skipped = "skipped" if thresholds.missing else "error"
    cases = [
        Case(
            user,
            f"turn {turn}" if isinstance(turn, int) else turn,
            seconds.get((user, turn), 0),
            {"failure": differences[user, turn], skipped: lacking[user, turn]},
        )
        for user, turn in in_order(seconds.keys() | lacking.keys())
    ]
    of_all = {"failure": find_growth(diff, thresholds), "error": find_faults(diff, thresholds)}
    write_suite(
        path, f"panda diff {before.name} {after.name}", [*cases, Case("panda diff", "all turns", 0, of_all)]
    )


@dataclass(frozen=True)
class Case:
    """One case of a test suite."""

    of: str  # what it belongs to
    name: str  # its name
    seconds: float  # how long it took
    said: Mapping[str, Sequence[str]]
    """What is wrong, a sentence each: under failure, error or skipped; nothing of a case that passed."""


def write_suite(path: Path, name: str, cases: Iterable[Case]) -> None:
    """Write cases as JUnit XML; control characters, which XML can't hold, become U+FFFD."""
    suite = ElementTree.Element("testsuite", name=name)
    for one in cases:
        case = ElementTree.SubElement(
            suite, "testcase", classname=one.of, name=_plain(one.name), time=f"{one.seconds:.3f}"
        )
        for kind, said in one.said.items():
            if said:
                ElementTree.SubElement(case, kind, message=_plain(said[0])).text = _plain("\n".join(said))
    suite.set("tests", str(len(suite)))
    for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(case.find(kind) is not None for case in suite)))
    ElementTree.indent(suite)
    declaration, _, text = ElementTree.tostring(suite, encoding="unicode", xml_declaration=True).partition(
        "\n"
    )
    write_atomic(path, f"{declaration}\n{REPORT_MARK}\n{text}\n")


def _plain(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
