"""A comparison, or a batch, as one HTML page that needs nothing else, and as JUnit XML for a CI server."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from panda.documents.context import Phase, parse_context, render_section
from panda.errors import Problem, Verdict
from panda.runs.compare import RunDiff, Side, Thresholds, changed_sections, find_faults, find_growth
from panda.runs.ledger import PlannedTurn, RunFolder, TurnKey, TurnLine, in_order
from panda.store.files import REPORT_MARK, read_text, write_output
from panda.store.layout import CONTEXT_MD

_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_LEFT = "the run ended before it"


def write_diff_page(path: Path, diff: RunDiff, before: Side, after: Side, regressions: Sequence[str]) -> None:
    """Write a comparison as an HTML page, with what is more than was allowed, a sentence each."""
    costs = [(f"{cost.name} {Phase(int(cost.name)).label}", cost) for cost in diff.phases]
    first = Counter(flip.recipe for flip in diff.flips if flip.first)
    held = {outcome.key: outcome for outcome in before.outcomes}
    turns: list[dict[str, Any]] = []
    for new in after.outcomes:
        if (old := held.get(new.key)) is None:
            continue
        changed = changed_sections(old, new)
        texts = [_sections(side.directories[new.key]) if changed else {} for side in (before, after)]
        own = [flip for flip in diff.flips if (flip.user, flip.turn) == new.key]
        turn: dict[str, Any] = {
            "turn": new.key[1],
            "query": new.query,
            "before": old,
            "after": new,
            "flips": own,
        }
        turn["differs"] = bool(own) or old.answer != new.answer
        turn["sections"] = [(n, *(text.get(n, "") for text in texts)) for n in changed]
        turns.append(turn)
    _write_page(
        path,
        "compare.html.j2",
        diff=diff,
        before=before.name,
        after=after.name,
        regressions=regressions,
        tokens=[(name, cost.tokens_before, cost.tokens_after) for name, cost in costs],
        seconds=[(name, cost.seconds_before, cost.seconds_after) for name, cost in costs],
        flips=[(recipe, None, count) for recipe, count in sorted(first.items())],
        turns=sorted(turns, key=lambda turn: not turn["differs"]),
    )


def _sections(directory: Path) -> Mapping[int, str]:
    """The sections of a turn's context.md; none if it is gone or damaged."""
    path = directory / CONTEXT_MD
    try:
        document = parse_context(read_text(path), where=str(path))
    except Problem:
        return {}
    return {section.number: render_section(section) for section in document.sections}


def write_batch_page(
    path: Path,
    run: RunFolder,
    lines: Sequence[TurnLine],
    left: Sequence[PlannedTurn],
    queries: Mapping[str, str],
) -> None:
    """Write a batch as an HTML page, what failed first."""
    turns = {line.turn for line in lines}  # others have been tried again
    answers = {line.key: line.outcome.answer for line in run.lines() if line.outcome and line.turn in turns}
    _write_page(
        path,
        "batch.html.j2",
        run=run.id,
        answers=answers,
        lines=sorted(lines, key=lambda line: line.verdict is Verdict.SOUND),
        left=left,
        queries=queries,
        failed=sum(line.verdict is not Verdict.SOUND for line in lines),
    )


def _write_page(path: Path, template: str, **values: Any) -> None:
    """Write a template of this package as UTF-8; text of values can't become markup."""
    environment = Environment(
        loader=PackageLoader("panda.runs", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template(template).render(mark=Markup(REPORT_MARK), **values)
    write_output(path, page.encode("utf-8", errors="replace"))


@dataclass(frozen=True, kw_only=True)
class _Case:
    of: str  # what it belongs to
    name: str  # its name
    seconds: float  # how long it took
    findings: Mapping[str, Sequence[str]]
    """What is wrong, a sentence each: under failure, error or skipped; nothing of a case that passed."""
    outcome: str | None = None  # what the turn of an item came to


def write_diff_junit(path: Path, diff: RunDiff, before: Side, after: Side, thresholds: Thresholds) -> None:
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
    for unjudged in diff.not_judged:
        lacking[unjudged.user, unjudged.turn].append(f"{unjudged.side}: {unjudged.reason}")
    seconds = {
        outcome.key: sum(cost.seconds or 0 for cost in outcome.phases)
        for side in (before, after)
        for outcome in side.outcomes
    }
    skipped = "skipped" if thresholds.missing else "error"
    cases = []
    for key in in_order(seconds.keys() | lacking.keys()):
        user, turn = key
        name = f"turn {turn}" if isinstance(turn, int) else turn
        messages = {"failure": differences[key], skipped: lacking[key]}
        cases.append(_Case(of=user, name=name, seconds=seconds.get(key, 0), findings=messages))
    of_all = {"failure": find_growth(diff, thresholds), "error": find_faults(diff, thresholds)}
    cases.append(_Case(of="panda diff", name="all turns", seconds=0, findings=of_all))
    _write_suite(path, f"panda diff {before.name} {after.name}", cases)


def write_batch_junit(path: Path, run: str, lines: Sequence[TurnLine], left: Sequence[PlannedTurn]) -> None:
    """
    Write a batch as JUnit XML.

    Each case has the outcome of its turn as a property. An item that is not as it was to be is a failure; one
    for which there was no model server is an error. One that was not run is an error where others failed, and
    skipped where --limit left it for another day.
    """
    cases = []
    for line in lines:
        kind = "error" if line.result == "away" else "failure"
        findings = {kind: line.findings}
        seconds = line.seconds or 0
        cases.append(
            _Case(
                of=line.user,
                name=str(line.item),
                seconds=seconds,
                findings=findings,
                outcome=line.turn_outcome,
            )
        )
    kind = "error" if any(line.findings for line in lines) else "skipped"
    cases += [
        _Case(of=planned.user, name=str(planned.item), seconds=0, findings={kind: [_LEFT]})
        for planned in left
    ]
    _write_suite(path, f"panda batch {run}", cases)


def _write_suite(path: Path, name: str, cases: Iterable[_Case]) -> None:
    """Control characters, which XML can't hold, become U+FFFD."""
    suite = ElementTree.Element("testsuite", name=name)
    for case in cases:
        element = ElementTree.SubElement(
            suite, "testcase", classname=case.of, name=_plain(case.name), time=f"{case.seconds:.3f}"
        )
        if case.outcome is not None:
            properties = ElementTree.SubElement(element, "properties")
            ElementTree.SubElement(properties, "property", name="outcome", value=case.outcome)
        for kind, texts in case.findings.items():
            if texts:
                ElementTree.SubElement(element, kind, message=_plain(texts[0])).text = _plain(
                    "\n".join(texts)
                )
    suite.set("tests", str(len(suite)))
    for count, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(element.find(kind) is not None for element in suite)))
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
    declaration, _, text = text.partition("\n")
    write_output(path, f"{declaration}\n{REPORT_MARK}\n{text}\n")


def _plain(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
