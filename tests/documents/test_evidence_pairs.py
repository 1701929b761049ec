"""How often the evidence check is wrong, in both directions, on pairs that a seed draws."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from panda.documents.evidence import check_evidence
from panda.evals.cases import Case, load_cases
from tests.documents.evidence_pairs import Pair, draw_pairs

CASES = Path(__file__).with_name("evidence_cases.jsonl")
JUDGED = Path(__file__).with_name("evidence_judged.jsonl")
LANGUAGES = Path(__file__).with_name("evidence_languages.jsonl")
"""Answers and notes in English, German, French and Spanish, in two halves (tests/evals/README.md)."""
WRITINGS = [
    json.loads(line)
    for line in Path(__file__).with_name("evidence_writings.jsonl").read_text(encoding="utf-8").splitlines()
]
"""One value in two writings, and values that another source does not support however near they come."""
MOST_FALSE_APPROVED = 0.002
MOST_TRUE_REFUSED = 0.005


def wrong_pairs(pairs: list[Pair]) -> list[Pair]:
    """Those that the check judges wrongly."""
    return [pair for pair in pairs if bool(check_evidence(pair.answer, [pair.source])) is pair.supported]


@pytest.mark.parametrize("seed", [7, 1999])
def test_pairs(seed: int) -> None:
    """Of drawn pairs, at most two false ones in a thousand pass and five true ones in a thousand do not."""
    pairs = list(draw_pairs(seed, 2_000))
    number = Counter(pair.supported for pair in pairs)
    wrong = wrong_pairs(pairs)
    approved = [pair for pair in wrong if not pair.supported]
    refused = [pair for pair in wrong if pair.supported]
    assert len(approved) <= MOST_FALSE_APPROVED * number[False], approved
    assert len(refused) <= MOST_TRUE_REFUSED * number[True], refused


@pytest.mark.parametrize("case", load_cases(CASES), ids=lambda case: f"{case.query} | {case.options[0].text}")
def test_labelled_pairs(case: Case) -> None:
    """Each pair that was written by hand is judged as it is labelled."""
    claims = check_evidence(case.query, [option.text for option in case.options])
    assert bool(claims) is (case.label == "unsupported"), claims


@pytest.mark.parametrize(
    "case", load_cases(LANGUAGES), ids=lambda case: f"{case.split} {case.query} | {case.options[0].text}"
)
def test_answers_are_judged_alike_in_four_languages(case: Case) -> None:
    """A value is held whatever language the source writes it in; another day, time, count or price is not."""
    missing = check_evidence(case.query, [option.text for option in case.options])
    assert bool(missing) is (case.label == "unsupported"), missing


@pytest.mark.parametrize("case", WRITINGS, ids=lambda case: f"{case['text']} | {case['source']}")
def test_writings(case: dict[str, Any]) -> None:
    """A value is supported however the source writes it; another currency, unit, day or order is not."""
    assert (check_evidence(case["text"], [case["source"]]) == []) is case["supported"]


@pytest.mark.parametrize(
    "case", load_cases(JUDGED), ids=lambda case: f"{case.query} | {case.options[0].text}"
)
def test_pairs_for_the_judge(case: Case) -> None:
    """A value that is held, but of another thing or denied there, is left to the model that judges."""
    assert case.label == "unsupported"
    assert check_evidence(case.query, [option.text for option in case.options]) == []


def test_every_kind_of_value_is_drawn() -> None:
    """The pairs falsify each kind of value often enough to tell."""
    changes = Counter(pair.change for pair in draw_pairs(7, 2_000) if not pair.supported)
    assert min(changes.values()) >= 10
    assert len(changes) >= 12
