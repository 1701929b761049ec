"""A comparison as JUnit XML: one test case for each turn, so that a CI server shows what flipped."""

import re
from pathlib import Path
from xml.etree import ElementTree

from panda.replays.comparing import RunDiff
from panda.replays.sides import Side
from panda.storage.files import write_atomic

_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_junit(path: Path, diff: RunDiff, before: Side, after: Side) -> None:
    """
    Write a comparison as JUnit XML.

    Args:
        path: The file.
        diff: The differences.
        before: First side.
        after: Second side.

    Raises:
        StoreError: It cannot be written.
    """
    suite = ElementTree.Element("testsuite", name=f"panda diff {before.name} {after.name}")
    failures = 0
    for outcome in after.outcomes:
        seconds = sum(cost.seconds or 0 for cost in outcome.phases)
        case = ElementTree.SubElement(
            suite, "testcase", classname=outcome.user, name=f"turn {outcome.turn}", time=f"{seconds:.3f}"
        )
        found = [
            f"{flip.recipe}: {flip.name}: {flip.before!r} -> {flip.after!r}"
            for flip in diff.flips
            if (flip.user, flip.turn) == (outcome.user, outcome.turn)
        ]
        found += [
            f"{change.recipe}: the answer changed"
            for change in diff.answers
            if (change.user, change.turn) == (outcome.user, outcome.turn)
        ]
        if found:
            failures += 1
            failure = ElementTree.SubElement(case, "failure", message=_printable(found[0]))
            failure.text = _printable("\n".join(found))
    suite.set("tests", str(len(after.outcomes)))
    suite.set("failures", str(failures))
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)
    write_atomic(path, text + "\n")


def _printable(text: str) -> str:
    """The text without what XML cannot hold."""
    return _NO_XML.sub("\ufffd", text)
