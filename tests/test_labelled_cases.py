"""The labelled cases that come with the project, and how a file of cases is read."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from panda.errors import FileFormatError, NotFoundError
from panda.evals.cases import KINDS, Case, load_cases
from panda.recipes.book import RecipeBook
from panda.store.layout import asset
from tests.api import ROOT

CASES = asset("tests/evals")
BOOK = RecipeBook([asset("recipes")], [asset("prompts")])
ALIKE = 0.6
LEAST_WORDS = 3
PLAIN = frozenset(
    """
    the a an is are was were of to in on for and or at it i my me you what which how who when where do
    does did with that this be from by not no as about one ones your we our have has had can could
    will would
    """.split()  # noqa: SIM905
)
NO_NAMES = frozenset(
    """
    The You Mr Mrs Monday Tuesday Wednesday Thursday Friday Saturday Sunday Sundays January February
    March April May June July August September October November December Christmas Eve Day
    """.split()  # noqa: SIM905
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
    texts = [case.query, *case.history, *(option.text for option in case.options), *phrases]
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
    texts = [case.query, *case.history, *(option.text for option in case.options)]
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
    """No query, history, option or phrase is in both halves: what was trained on is not measured."""
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


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"kind": "intend"}, "kind", "there is no kind 'intend'", "did you mean intent?"),
        ({"kind": None}, "kind", "kind must be a text, but is None", "give a text"),
        (
            {"kind": ""},
            "kind",
            "what is asked is not clear",
            "name a kind, or choice with a step or a recipe",
        ),
        ({"recipe": "a/b", "choice": "c"}, "kind", "what is asked is not clear", "name a kind"),
        ({"kind": "", "recipe": "a/b", "choice": "c"}, "", "no recipe a/b", ""),
        ({"split": "train"}, "split", "split is 'train'", "fit"),
        ({"query": " "}, "query", "query must be a text, but is ' '", "give a text"),
        ({"label": None}, "label", "label must be", "give a text"),
        ({"label": ["a"]}, "label", "label must be a text", "give a text"),
        ({"label": "greetings"}, "label", "label is 'greetings'", "did you mean greeting?"),
        ({"kind": "constraint"}, "label", "label must be a list of texts", "give a list of texts"),
        ({"kind": "period", "label": []}, "now", "now is missing", "add now"),
        ({"kind": "span"}, "kind", "there is no kind 'span'", ""),
        ({"kind": "", "step": "phase1_reflection"}, "kind", "what is asked is not clear", "name a kind"),
        (
            {"kind": "", "step": "phase1_reflection", "choice": "decison"},
            "choice",
            "pipeline/phase1_reflection has no property 'decison'",
            "did you mean decision?",
        ),
        ({"now": "soon"}, "now", "now must be an instant", "give an instant such as"),
        ({"options": [{"text": "no id"}]}, "options[0].id", "id is missing", "add id"),
        ({"hint": "x"}, "hint", "unknown key 'hint'", ""),
    ],
)
def test_bad_lines(changes: dict[str, object], key: str, message: str, fix: str, tmp_path: Path) -> None:
    """A line that is no case is refused with file, line, key and what to do."""
    line = {"kind": "intent", "split": "fit", "query": "Hi", "label": "greeting"}
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(line) + "\n\n" + json.dumps({**line, **changes}) + "\n")
    with pytest.raises(FileFormatError, match=re.escape(message)) as caught:
        load_cases(path, BOOK)
    error = caught.value
    assert (error.path, error.line, error.key or "") == (str(path), 3, key)
    assert error.fix is not None
    assert fix in error.fix


def test_cut_line(tmp_path: Path) -> None:
    """A last line that is no JSON is refused like any other."""
    path = tmp_path / "cases.jsonl"
    path.write_text('{"kind": "intent", "query"')
    with pytest.raises(FileFormatError) as caught:
        load_cases(path)
    assert (caught.value.line, "docs/cases.md" in str(caught.value.fix)) == (1, True)


def test_every_case_is_an_answer_of_its_recipe() -> None:
    """The labels of all cases are values that their recipes choose from."""
    assert len(load_cases(CASES, BOOK)) > 10_000


def test_the_examples_of_the_docs(tmp_path: Path) -> None:
    """docs/cases.md has a case of each kind, in the order of the kinds, and each is read as one."""
    blocks = re.findall(r"(?ms)^```json\n(.*?)^```", (ROOT / "docs" / "cases.md").read_text(encoding="utf-8"))
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(" ".join(block.split()) + "\n" for block in blocks), encoding="utf-8")
    cases = load_cases(path, BOOK)
    assert [case.kind for case in cases if case.kind] == list(KINDS)
    assert {"research/strategy kind", "pipeline/phase3_planner_chat tools"} <= {case.name for case in cases}


def test_no_cases(tmp_path: Path) -> None:
    """A directory without cases is an error, not a perfect score."""
    with pytest.raises(NotFoundError):
        load_cases(tmp_path)
