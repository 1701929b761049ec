"""The labelled cases that come with the project, and how a file of cases is read."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from panda.errors import FileFormatError, Location, NotFoundError
from panda.evals.cases import KINDS, Case, load_cases, parse_cases
from panda.store.layout import asset

CASES = asset("tests/evals")
ALIKE = 0.6
LEAST_WORDS = 3
PLAIN = frozenset(
    [
        "the",
        "a",
        "an",
        "is",
        "are",
        "was",
        "were",
        "of",
        "to",
        "in",
        "on",
        "for",
        "and",
        "or",
        "at",
        "it",
        "i",
        "my",
        "me",
        "you",
        "what",
        "which",
        "how",
        "who",
        "when",
        "where",
        "do",
        "does",
        "did",
        "with",
        "that",
        "this",
        "be",
        "from",
        "by",
        "not",
        "no",
        "as",
        "about",
        "one",
        "ones",
        "your",
        "we",
        "our",
        "have",
        "has",
        "had",
        "can",
        "could",
        "will",
        "would",
    ]
)
NO_NAMES = frozenset(
    [
        "The",
        "You",
        "Mr",
        "Mrs",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
        "Sundays",
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
        "Christmas",
        "Eve",
        "Day",
    ]
)
"""Words that no story is about."""


@pytest.mark.parametrize("kind", [kind for kind in KINDS if (CASES / f"{kind}.jsonl").is_file()])
def test_every_kind_has_enough_cases(kind: str) -> None:
    """Each kind has at least 150 cases, and each split at least two fifths of them, or 200."""
    splits = Counter(case.split for case in load_cases(CASES / f"{kind}.jsonl"))
    assert splits.total() >= 150
    assert min(splits["fit"], splits["test"]) >= min(0.4 * splits.total(), 200)


def texts_of(case: Case) -> set[str]:
    """Everything that a case says, as plain words: query, history, options, and phrases of the query."""
    of_query = isinstance(case.label, tuple) and case.kind != "period" and not case.options
    phrases = case.label if of_query else ()
    texts = [case.query, *case.history, *(text for _, text in case.options), *phrases]
    return {plain for text in texts if (plain := plain_words(text))}


def plain_words(text: str) -> str:
    """
    A text without capitals, punctuation and differences of white space.

    >>> plain_words("  What am I  allergic to? ")
    'what am i allergic to'
    """
    return " ".join(re.findall(r"\w+", text.casefold()))


def names_of(case: Case) -> set[str]:
    """The capitalised words within a case's sentences: who and what its story is about."""
    texts = [case.query, *case.history, *(text for _, text in case.options)]
    return {name for text in texts for name in re.findall(r"(?<=[a-z,;:] )[A-Z][\w-]+", text)} - NO_NAMES


def alike(texts: Iterable[str], others: Iterable[str]) -> list[tuple[str, str]]:
    """
    The pairs that share most of their telling words; texts with less than three such words count for nothing.

    >>> alike(["open the page of the public library"], ["open the page of the library", "who is she"])
    [('open the page of the public library', 'open the page of the library')]
    """
    told = [(text, words) for text in others if len(words := set(text.split()) - PLAIN) >= LEAST_WORDS]
    having: dict[str, set[int]] = {}
    for place, (_, words) in enumerate(told):
        for word in words:
            having.setdefault(word, set()).add(place)
    found = []
    for text in texts:
        words = set(text.split()) - PLAIN
        near = Counter(place for word in words for place in having.get(word, ()))
        for place, shared in near.items() if len(words) >= LEAST_WORDS else ():
            if shared / len(words | told[place][1]) >= ALIKE:
                found.append((text, told[place][0]))
    return found


def texts_shown_to_models() -> set[str]:
    """The examples of prompts and recipes, line by line and their parts."""
    paths = [*asset("prompts").rglob("*.md"), *asset("recipes").rglob("*.yaml")]
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return {plain_words(part) for line in lines for part in (line, *re.split(r"[|:→]|->", line))} - {""}


CASES_OF_HALF = {split: [c for c in load_cases(CASES) if c.split == split] for split in ("fit", "test")}
TEST_TEXTS = {text for case in CASES_OF_HALF["test"] for text in texts_of(case)}


def test_the_halves_share_no_text() -> None:
    """No query, history, option or phrase of any kind is in both halves: what is fitted is not measured."""
    assert {text for case in CASES_OF_HALF["fit"] for text in texts_of(case)} & TEST_TEXTS == set()


def test_the_halves_tell_no_story_twice() -> None:
    """No name is in both halves, and no text of one is nearly one of the other."""
    fit, test = (set().union(*map(names_of, cases)) for cases in CASES_OF_HALF.values())
    assert fit & test == set()
    seen = {text for case in CASES_OF_HALF["fit"] for text in texts_of(case)}
    assert alike(seen, TEST_TEXTS) == []


def test_the_test_half_is_in_no_prompt() -> None:
    """What models are shown as examples is not measured, nor anything much like it."""
    shown = {text for text in texts_shown_to_models() if len(text.split()) > 1}
    assert shown & TEST_TEXTS == set()
    assert alike(shown, TEST_TEXTS) == []


def test_right_options_are_offered() -> None:
    """The label of a case with spans is one of its ten options."""
    for case in load_cases(CASES / "span.jsonl"):
        ids = [option_id for option_id, _ in case.options]
        assert len(set(ids)) == 10
        assert case.label in ids


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "moood"},
        {"split": "train"},
        {"query": " "},
        {"label": None},
        {"label": ["a"]},
        {"now": "soon"},
        {"options": [{"text": "no id"}]},
        {"hint": "x"},
    ],
)
def test_bad_lines(changes: dict[str, object]) -> None:
    """A line that is no case is refused with its place."""
    line = {"kind": "intent", "split": "fit", "query": "Hi", "label": "greeting", **changes}
    with pytest.raises(FileFormatError) as caught:
        parse_cases([(json.dumps(line), Location("cases.jsonl", line=7))])
    assert (caught.value.path, caught.value.line) == ("cases.jsonl", 7)


def test_no_cases(tmp_path: Path) -> None:
    """A directory without cases is an error, not a perfect score."""
    with pytest.raises(NotFoundError):
        load_cases(tmp_path)
