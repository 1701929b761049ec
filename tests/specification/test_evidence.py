"""The check of evidence on labelled pairs that nobody mends one by one: the share that is right stays."""

from tests.api import CASES, run_here

RIGHT = 168
"""Of the cases, by code alone: a model that writes judges the rest. `make bench` lists the wrong ones."""


def test_unseen_pairs() -> None:
    """Of pairs of domains that the check was not written by, as many are judged as a careful reader does."""
    words = ("eval", "--cases", str(CASES / "evidence_unseen.jsonl"), "--split", "all", "--json")
    (kind,) = run_here(words).data["kinds"]
    assert kind["right"] >= RIGHT, f"{kind['right']} of {kind['cases']}: {kind['confusion']}"
