"""
How good answers to everyday questions are, with whole sets left out: `python -m bench.everyday [PART…]`.

Each vault (notes with questions) is ranked by the passages of panda and by those of the frozen baseline
(baseline.py). What decides between an answer and `unsure` is fitted on all other vaults: on their questions,
and on the same questions over what is left without the passages that answer them. Score: right and answered
1, right only in what is shown as closest ½, wrong and answered −1; of questions that nothing answers, and of
those whose answer was removed, only how many are not answered is told. Single misses are not printed.

`--fit` writes the weights of all vaults together to panda/retrieval/selection.json. `--turns` asks panda
itself, turn by turn, with the weights that it has: vaults and conversations. `--without RULE` asks the same
with a rule switched off (rules.py; `all`: each in turn), so that the difference is what the rule earns.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.asking import LIFE, Answer, asker, has_no_answer, kind_of_case, make_store, misses
from bench.baseline import BaselinePassages
from bench.logistic import Weights, fit_signed
from bench.rules import RULES, without
from panda.app import App
from panda.index.vectors import VectorStore
from panda.models.kept_encoder import KeptEncoder
from panda.models.layers import LoadedLayers
from panda.models.models_file import load_models_file
from panda.retrieval.passages import PassageRanker, RankedPassage, WordCoverage, cut_passages
from panda.retrieval.selection import (
    MAX_BEHIND,
    MAX_PASSAGES,
    WEIGHTS,
    answering_passages,
    describe_passages,
)
from panda.settings import load_settings
from panda.store.layout import Layout

LEAST = 0.45
"""Probability from which on passages are called the answer."""
LEAST_BY_WORDS = 0.4
"""The same where words alone count."""
_KEPT = 4  # passages of a question that are looked at
_REMOVED_WEIGHT = 0.25
"""What a question without its answer weighs beside one that has it."""
_UNANSWERABLE_WEIGHT = 2.0
"""What a question weighs that was written so that nothing answers it: there are few of them."""
_SIGNS = np.array([0, 1, 0, 1, 1, 1, -1, 1, 1])
"""Of the weights: of the constant any, and of the share of words: beside how well they are covered it is
evidence against a passage that repeats the question's words and tells of something else."""


@dataclass(frozen=True)
class Ranked:
    """A question with what two ways of ranking put first."""

    case: Mapping[str, Any]
    passages: list[RankedPassage]
    coverage: WordCoverage | None
    """How well the closest covers the question's words; None without an encoder."""
    baseline: list[tuple[float, str]]
    is_removed: bool
    """Whether the passages that answer are left out."""

    @property
    def is_answerable(self) -> bool:
        return not (self.is_removed or has_no_answer(self.case))

    @property
    def weight(self) -> float:
        """Return what the question weighs in the fit."""
        if self.is_removed:
            return _REMOVED_WEIGHT
        return _UNANSWERABLE_WEIGHT if has_no_answer(self.case) else 1.0

    def values(self) -> list[float]:
        """Return a constant 1 and what describes the passages."""
        return [1.0, *describe_passages(self.case["ask"], self.passages, self.coverage)]

    def text(self) -> str:
        """Return what is shown of the passages as an answer."""
        shown = answering_passages(self.case["ask"], self.passages[:MAX_PASSAGES])
        return "\n".join(one.passage.text for one in shown)

    def near_text(self) -> str:
        """Return all passages that are not far behind the closest, also those that an answer leaves out."""
        least = self.passages[0].closeness - MAX_BEHIND
        near = [one for one in self.passages[:MAX_PASSAGES] if one.closeness >= least]
        return "\n".join(one.passage.text for one in near)

    def closest(self) -> str:
        return "\n".join(one.passage.text for one in self.passages[:MAX_PASSAGES])

    def baseline_text(self) -> str:
        return "\n".join(text for _, text in self.baseline)


@dataclass
class Score:
    """What a set comes to."""

    questions: int = 0
    answered: int = 0
    right: int = 0
    held: int = 0
    """Questions of which what is shown holds the answer."""
    points: float = 0.0
    unanswerable: int = 0
    declined: int = 0
    """Of the unanswerable ones those that were not answered."""
    removed: int = 0
    """Questions whose answer was removed."""
    removed_declined: int = 0

    def add(self, case: Mapping[str, Any], *, answered: bool, answer: str, closest: str) -> None:
        if has_no_answer(case):
            self.unanswerable += 1
            self.declined += not answered
            return
        shown = answer if answered else closest
        is_held = _holds_all(case, shown)
        is_right = answered and not misses(case, Answer("approved", True, answer))
        self.questions += 1
        self.answered += answered
        self.right += is_right
        self.held += is_held
        if answered:
            self.points += 1 if is_right else -1
        elif is_held:
            self.points += 0.5

    def __str__(self) -> str:
        return (
            f"score {self.points:g} of {self.questions}, answered {self.answered}, right {self.right},"
            f" shown {self.held}; unanswerable {self.unanswerable}, not answered {self.declined};"
            f" answer removed {self.removed}, not answered {self.removed_declined}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="SET", help="names of files below bench/life/")
    parser.add_argument("--fit", action="store_true", help="write the weights of all vaults")
    parser.add_argument("--turns", action="store_true", help="ask panda itself, turn by turn")
    parser.add_argument(
        "--without", metavar="RULE", choices=(*RULES, "all"), help=f"as --turns; {', '.join(RULES)}, or all"
    )
    arguments = parser.parse_args()
    names = arguments.parts or [path.stem for path in sorted(LIFE.glob("vault*.json"))]
    settings = load_settings({}, os.environ, Path.cwd())
    models = load_models_file(settings.models_file)
    with LoadedLayers(models, cache_dir=settings.cache_dir, environ=os.environ) as layers:
        if arguments.turns or arguments.without:
            rules = (
                [*RULES] if arguments.without == "all" else [arguments.without] if arguments.without else []
            )
            for name in arguments.parts or [path.stem for path in sorted(LIFE.glob("*.json"))]:
                for rule in (None, *rules):
                    ask_turns(layers, name, rule)
            return 0
        vaults = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(LIFE.glob("vault*.json"))}
        ranked = {name: rank_vault(layers, vault) for name, vault in vaults.items()}
        blind = [rank_vault(layers, vault, by_words=True) for vault in vaults.values() if arguments.fit]
    for name in names:
        others = [own for other, own in ranked.items() if other != name]
        print(f"{name}: passages {score_passages(ranked[name], fit_weights(others))}")  # noqa: T201
        threshold = fit_threshold(others)
        print(f"{name}: baseline {score_baseline(ranked[name], threshold)}")  # noqa: T201
        lengths = [len(one.closest()) for one in ranked[name] if not one.is_removed]
        print(f"{name}: median of what is shown {statistics.median(lengths):g} characters")  # noqa: T201
    if arguments.fit:
        weights = [round(float(weight), 4) for weight in fit_weights([*ranked.values()])]
        by_words = [round(float(weight), 4) for weight in fit_weights(blind)]
        values = {"weights": weights, "by_words": by_words, "least": LEAST, "least_by_words": LEAST_BY_WORDS}
        WEIGHTS.write_text(json.dumps(values) + "\n", encoding="utf-8")
    return 0


def rank_vault(layers: LoadedLayers, vault: Mapping[str, Any], *, by_words: bool = False) -> list[Ranked]:
    """Rank the passages of a vault for its questions, and for each once more without those that answer it."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "store"
        make_store(root, vault["notes"])
        settings = load_settings({"root": str(root), "user": "default"}, os.environ, root)
        app = App(settings, settings.store, layers)
        reader = app.tools.reader
        nodes = [reader.load(f"knowledge:{note}") for note in vault["notes"]]
        passages = [passage for node in nodes for passage in cut_passages(node)]
        encoder = layers.encoder()
        assert encoder is not None
        ranker = PassageRanker(None if by_words else KeptEncoder(encoder, VectorStore(Layout(root))))
        baseline = BaselinePassages(encoder, vault["notes"])
        found = []
        for case in vault["questions"]:
            ranked = ranker.rank(case["ask"], passages)
            left = [near for near in ranked if not _holds_any(case, near.passage.text)]
            tried = [(ranked, False)]
            if not has_no_answer(case) and 0 < len(left) < len(ranked):
                tried.append((left, True))
            found += [
                Ranked(
                    case=case,
                    passages=near[:_KEPT],
                    coverage=ranker.measure_coverage(case["ask"], near[0].passage),
                    baseline=[] if by_words or is_removed else baseline.closest(case["ask"]),
                    is_removed=is_removed,
                )
                for near, is_removed in tried
            ]
        return found


def ask_vault(layers: LoadedLayers, directory: Path, vault: Mapping[str, Any]) -> str:
    """Ask panda the questions of a vault, each in a session of its own."""
    make_store(directory, vault["notes"])
    ask = asker(layers, directory)
    score, lengths = Score(), []
    for number, case in enumerate(vault["questions"], 1):
        answer = ask(case["ask"], f"question_{number}")
        lengths.append(len(answer.text if answer.answered else answer.closest))
        score.add(case, answered=answer.answered, answer=answer.text, closest=answer.closest)
    return f"{score}; median {statistics.median(lengths):g} characters"


def ask_conversations(layers: LoadedLayers, directory: Path, talks: Sequence[Mapping[str, Any]]) -> str:
    """Hold conversations with panda, each in a store and session of its own."""
    right: dict[str, list[bool]] = {}
    for talk in talks:
        root = directory / talk["name"]
        make_store(root, talk["notes"])
        ask = asker(layers, root)
        replies: list[Answer] = []
        for case in talk["turns"]:
            answer = ask(case["say"], "talk")
            right.setdefault(kind_of_case(case), []).append(not misses(case, answer, replies))
            replies.append(answer)
    parts = ", ".join(f"{kind} {sum(own)} of {len(own)}" for kind, own in right.items())
    every = [value for own in right.values() for value in own]
    return f"{sum(every)} of {len(every)} turns right: {parts}"


def ask_turns(layers: LoadedLayers, name: str, rule: str | None) -> None:
    """Ask panda the questions of a set, with a rule switched off unless it is None, and print the score."""
    held = json.loads((LIFE / f"{name}.json").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as directory, without(rule):
        ask_set = ask_vault if isinstance(held, dict) else ask_conversations
        score = ask_set(layers, Path(directory) / "store", held)
    asked = f"{name} without {rule}" if rule else name
    print(f"{asked}: panda {score}", flush=True)  # noqa: T201


def fit_weights(sets: Sequence[Sequence[Ranked]]) -> Weights:
    """
    Return the weights of a logistic regression over whether the closest passages answer: constant, values.

    A value whose weight comes out with the wrong sign is left out, the one that is most wrong first: more
    closeness, lead or coverage never make an answer less likely, and what is missing never more.
    """
    cases = [one for own in sets for one in own]
    values = np.array([one.values() for one in cases])
    right = np.array([one.is_answerable and not _wrong(one.case, one.near_text()) for one in cases], float)
    importance = np.array([one.weight for one in cases])
    return fit_signed(values, right, importance, _SIGNS[: values.shape[1]])


def score_passages(cases: Sequence[Ranked], weights: Weights) -> Score:
    score = Score()
    for one in cases:
        answered = bool(1 / (1 + np.exp(-np.array(one.values()) @ weights)) >= LEAST)
        if one.is_removed:
            score.removed += 1
            score.removed_declined += not answered
        else:
            score.add(one.case, answered=answered, answer=one.text(), closest=one.closest())
    return score


def fit_threshold(sets: Sequence[Sequence[Ranked]]) -> float:
    """Return the closeness from which on the baseline answers with the highest score."""
    cases = [one for own in sets for one in own]
    steps = [step / 50 for step in range(70)]
    return max(steps, key=lambda threshold: score_baseline(cases, threshold).points)


def score_baseline(cases: Sequence[Ranked], threshold: float) -> Score:
    score = Score()
    for one in cases:
        if not one.is_removed:
            text = one.baseline_text()
            score.add(one.case, answered=one.baseline[0][0] >= threshold, answer=text, closest=text)
    return score


def _wrong(case: Mapping[str, Any], text: str) -> list[str]:
    return misses(case, Answer("approved", True, text))


def _holds_any(case: Mapping[str, Any], text: str) -> bool:
    """Whether a text holds any part of the answer."""
    parts = [*case.get("all", ()), *(part for parts in case.get("or", ()) for part in parts)]
    return any(not _wrong({"all": [part]}, text) for part in parts)


def _holds_all(case: Mapping[str, Any], text: str) -> bool:
    """Whether a text holds what the answer needs, whatever else it holds."""
    return not _wrong({key: value for key, value in case.items() if key != "not"}, text)


if __name__ == "__main__":
    sys.exit(main())
