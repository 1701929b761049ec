"""A comparison as JUnit XML: one test case for each turn, so that a CI server shows what flipped."""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from panda.replays.comparing import RunDiff, Thresholds, find_faults, find_growth
from panda.replays.sides import Side, TurnKey
from panda.storage.files import write_atomic

_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_junit(
    path: Path,
    diff: RunDiff,
    before: Side,
    after: Side,
    thresholds: Thresholds,
) -> None:
    """
    Write a comparison as JUnit XML.

    A turn with a flip or another answer is a failure; one that was not compared is an error, or skipped where
    that is allowed. A case of its own says what is wrong with the runs as a whole.

    Args:
        path: The file.
        diff: The differences.
        before: First side.
        after: Second side.
        thresholds: What is allowed.

    Raises:
        StoreError: It cannot be written.
    """
    differences: dict[TurnKey, list[str]] = defaultdict(list)
    for flip in diff.flips:
        differences[flip.user, flip.turn].append(
            f"{flip.recipe}: {flip.name}: {flip.before!r} -> {flip.after!r}"
        )
    for change in diff.answers:
        differences[change.user, change.turn].append(f"{change.recipe}: the answer changed")
    lacking: dict[TurnKey, list[str]] = defaultdict(list)
    for one in diff.not_judged:
        lacking[one.user, one.turn].append(f"{one.side}: {one.reason}")
    seconds = {
        (outcome.user, outcome.turn): sum(cost.seconds or 0 for cost in outcome.phases)
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
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    suite.set("tests", str(len(suite)))
    for name, kind in kinds.items():
        suite.set(name, str(sum(case.find(kind) is not None for case in suite)))
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
    write_atomic(path, text + "\n")


def _case(suite: ElementTree.Element, of: str, name: str, seconds: float = 0) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=of, name=name, time=f"{seconds:.3f}")


def _tell(case: ElementTree.Element, kind: str, said: Sequence[str]) -> None:
    if said:
        found = ElementTree.SubElement(case, kind, message=_printable(said[0]))
        found.text = _printable("\n".join(said))


def _printable(text: str) -> str:
    """The text without what XML cannot hold."""
    return _NO_XML.sub("\ufffd", text)
