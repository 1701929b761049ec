"""Which words of a text are a claim, and how each writing of a value is read."""

import json
from pathlib import Path

import pytest

from panda.documents.evidence import find_claims

CLAIMS = [
    (case["text"], case["claims"])
    for line in Path(__file__).with_name("claims.jsonl").read_text(encoding="utf-8").splitlines()
    for case in [json.loads(line)]
]
"""Texts, each with its claims and what they mean, if that is written otherwise."""


@pytest.mark.parametrize(("text", "claims"), CLAIMS)
def test_each_writing_is_read_as_what_it_means(text: str, claims: str) -> None:
    """A claim keeps its words and has one normal value, however it is written."""
    read = [
        claim.text if claim.text == claim.value else f"{claim.text}: {claim.value}"
        for claim in find_claims(text)
    ]
    assert " | ".join(read) == claims
