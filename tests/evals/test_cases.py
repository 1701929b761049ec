"""The labelled cases that come with the project, and how a file of cases is read."""

import json
from collections import Counter
from pathlib import Path

import pytest

from panda.errors import FileFormatError, NotFoundError
from panda.evals.cases import load_cases, parse_cases
from panda.evals.kinds import KINDS

CASES = Path(__file__).parent


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_enough_cases(kind: str) -> None:
    """Each kind has at least 150 cases, and each split at least two fifths of them."""
    splits = Counter(case.split for case in load_cases(CASES / f"{kind}.jsonl"))
    assert splits.total() >= 150
    assert min(splits["fit"], splits["test"]) >= 0.4 * splits.total()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "reflection"])
def test_no_query_is_in_both_halves(kind: str) -> None:
    """What is fitted is not measured."""
    cases = load_cases(CASES / f"{kind}.jsonl")
    halves = [{case.query.lower() for case in cases if case.split == split} for split in ("fit", "test")]
    assert not halves[0] & halves[1]


def test_right_options_are_offered() -> None:
    """The label of a case with spans is one of its ten options."""
    for case in load_cases(CASES / "span.jsonl"):
        ids = [option_id for option_id, _ in case.options]
        assert len(set(ids)) == 10
        assert case.label in ids


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "mood"},
        {"split": "train"},
        {"query": " "},
        {"label": None},
        {"label": ["a"]},
        {"options": [{"text": "no id"}]},
        {"hint": "x"},
    ],
)
def test_bad_lines(changes: dict[str, object]) -> None:
    """A line that is no case is refused with its place."""
    line = {"kind": "intent", "split": "fit", "query": "Hi", "label": "greeting", **changes}
    with pytest.raises(FileFormatError) as caught:
        parse_cases([(json.dumps(line), "cases.jsonl:7")])
    assert caught.value.where == "cases.jsonl:7"


def test_no_cases(tmp_path: Path) -> None:
    """A directory without cases is an error, not a perfect score."""
    with pytest.raises(NotFoundError):
        load_cases(tmp_path)
