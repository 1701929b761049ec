"""
How well texts are classified: `python -m bench.classifiers [NAME…] [--fit]`.

Fits each classifier and prints how many left-out texts are read right: of messages (tests/evals/) those of
the half `test`, of questions on tables (table_operations.jsonl) a sixth of the domains at a time, by
language. `--fit` writes the weights: of messages by the half `fit`, of questions on tables by all.
"""

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.logistic import fit_signed
from panda.models.layers import LoadedLayers
from panda.models.model_contract import Encoder
from panda.models.models_file import load_models_file
from panda.models.text_classifier import ClassifierWeights, find_runs, read_words
from panda.offline.answering import AnswerWeights
from panda.offline.encoded_texts import CLASSIFIERS
from panda.offline.offline_models import OfflineModels
from panda.offline.planning import may_order, may_tell
from panda.retrieval.operations import OPERATIONS, WEIGHTS
from panda.settings import load_settings

EVALS = Path(__file__).parents[1] / "tests" / "evals"
TABLES = Path(__file__).with_name("table_operations.jsonl")
MESSAGES: Mapping[str, str] = {
    "agreement": "agreement",
    "clear": "clear",
    "current_prices": "needs_current_prices",
    "forget": "forget",
    "intent": "intent",
    "lasting": "lasts",
    "live_data": "needs_live_data",
    "mood": "mood",
    "query_type": "query_type",
    "recap": "recap",
    "research_kind": "research_kind",
    "talk": "talk",
    "tool": "tools",
}
"""Classifiers of messages, and the files of their cases."""
OPERATION = "operation"
ANSWER = "answer"
"""Not a text alone but lines beside it: whether the closest answers (route.jsonl)."""
_NEVER_TALK = (
    ("mood", "asks"),
    ("mood", "orders"),
    ("forget", "forget"),
    ("recap", "recap"),
    ("clear", "unclear"),
)
"""Classifiers with a label whose texts are no small talk."""
SEED = 3
_FOLDS = 6
_LEAST_TEXTS = 3
"""Texts that a run of words has to stand in to be read."""
_MOST_RUNS = 1000
"""Runs that are kept, those that tell most."""
_STEPS = 150
_RATE = 0.05
_DECAY = 0.75
"""Over the number of texts, within _DECAYS: how much the weights of runs are drawn to zero."""
_DECAYS = (0.0003, 0.001)
_WORD_DECAY = 0.0005
_LEAST = 0.35
_FAR = -1e9
"""What the score of a word that is not there counts as."""
_STEPS_A_SIDE = 127

Matrix = NDArray[np.float32]


class Case(msgspec.Struct, frozen=True):
    text: str
    label: str
    group: str
    """What it is left out with: its half, or its domain."""
    language: str = ""


class Model(msgspec.Struct, frozen=True):
    """What is fitted; r runs, c classes."""

    classes: tuple[str, ...]
    runs: tuple[str, ...]
    of_runs: Matrix  # shape (r, c)
    bias: Matrix  # shape (c,)
    of_words: Matrix  # shape (width, c)


class Texts:
    """The vectors of the words of texts; every text is encoded once."""

    def __init__(self, encoder: Encoder) -> None:
        self.digest = encoder.info.digest
        self._encoder = encoder
        self._vectors: dict[str, Matrix] = {}

    def stack(self, texts: Sequence[str]) -> tuple[Matrix, Matrix]:
        """Return vectors, shape (texts, words, width), and a score to add where there is no word."""
        for text in texts:
            if text not in self._vectors:
                self._vectors[text] = read_words(text, self._encoder).astype(np.float32)
        own = [self._vectors[text] for text in texts]
        width = max(vectors.shape[1] for vectors in own)
        stacked = np.zeros((len(own), max(map(len, own)), width), np.float32)
        mask = np.full((len(own), stacked.shape[1], 1), _FAR, np.float32)
        for at, vectors in enumerate(own):
            if len(vectors):
                stacked[at, : len(vectors)] = vectors
            mask[at, : max(1, len(vectors))] = 0.0
        return stacked, mask


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(MESSAGES)}, {OPERATION}, {ANSWER}"
    )
    parser.add_argument("--fit", action="store_true", help="write the weights")
    arguments = parser.parse_args()
    settings = load_settings({}, os.environ, Path.cwd())
    models = load_models_file(settings.models_file)
    with LoadedLayers(models, cache_dir=settings.cache_dir, environ=os.environ) as layers:
        encoder = layers.encoder()
        assert encoder is not None
        texts = Texts(encoder)
        for name in arguments.names or [*MESSAGES, OPERATION, ANSWER]:
            if name == ANSWER:
                fit_answer(OfflineModels(encoder), is_written=arguments.fit)
            elif arguments.fit:
                path = WEIGHTS if name == OPERATION else CLASSIFIERS / f"{name}.json"
                inside = [case for case in load_cases(name) if case.group != "test"]
                write_weights(fit_model(inside, texts), texts.digest, path)
            else:
                print("\n".join(measure(name, texts)), flush=True)  # noqa: T201
    return 0


def load_cases(name: str) -> list[Case]:
    """Return the labelled texts of a classifier."""
    if name == OPERATION:
        rows = [json.loads(line) for line in TABLES.read_text("utf-8").splitlines()]
        return [
            Case(
                text=row["query"],
                label=row["label"] if row["label"] in OPERATIONS else "rows",
                group=row["domain"],
                language=row["language"],
            )
            for row in rows
        ]
    lines = (EVALS / f"{MESSAGES[name]}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    cases = [
        Case(text=row["query"], label=str(row["label"]), group=row["split"])
        for row in rows
        if not row.get("history")
    ]
    return [*cases, *_never_talk()] if name == "talk" else cases


def _never_talk() -> list[Case]:
    """Return texts of the halves `fit` of other classifiers whose labels say that they are no small talk."""
    return [
        Case(text=case.text, label="other", group="fit")
        for name, label in _NEVER_TALK
        for case in load_cases(name)
        if case.group == "fit" and case.label == label
    ]


def fit_answer(models: OfflineModels, *, is_written: bool) -> None:
    """
    Fit how probable it is that the closest of some lines answers a question, on the half `fit` of route.jsonl
    without what orders or tells; write it, or print how many of the half `test` are read right.
    """
    values: dict[str, list[list[float]]] = {"fit": [], "test": []}
    answers: dict[str, list[float]] = {"fit": [], "test": []}
    for row in map(json.loads, (EVALS / "route.jsonl").read_text("utf-8").splitlines()):
        lines = [option["text"] for option in row["options"]]
        if lines and not may_order(row["query"], models) and not may_tell(row["query"], models):
            values[row["split"]].append([1.0, *models.describe_lines(row["query"], lines)])
            answers[row["split"]].append(float(row["label"] == "synthesis"))
    right = np.array(answers["fit"])
    weights = fit_signed(np.array(values["fit"]), right, np.ones(len(right)), np.array([0, 1, 1, 1, 1]))
    if is_written:
        assert models.encoder is not None
        rounded = tuple(round(float(weight), 4) for weight in weights)
        found = AnswerWeights(encoder=models.encoder.info.digest, weights=rounded)
        (CLASSIFIERS / "answer.json").write_bytes(msgspec.json.encode(found) + b"\n")
        return
    is_read = (np.array(values["test"]) @ weights >= 0) == np.array(answers["test"])
    print(f"{ANSWER}: {is_read.sum()} of {len(is_read)} right ({is_read.mean():.3f})")  # noqa: T201


def measure(name: str, texts: Texts) -> list[str]:
    """Return how many left-out texts are read right, a line each for what is told apart."""
    cases = load_cases(name)
    groups = sorted({case.group for case in cases})
    random.Random(SEED).shuffle(groups)
    folds = [["test"]]
    if name == OPERATION:
        folds = [groups[at::_FOLDS] for at in range(_FOLDS)]
    read: list[tuple[Case, str, float]] = []
    for left_out in folds:
        outside = [case for case in cases if case.group in left_out]
        model = fit_model([case for case in cases if case.group not in left_out], texts)
        shares = probabilities(model, outside, texts)
        read += [
            (case, model.classes[int(own.argmax())], float(own.max()))
            for case, own in zip(outside, shares, strict=True)
        ]
    lines = []
    for language in sorted({case.language for case in cases}):
        own = [one for one in read if one[0].language == language]
        right = sum(case.label == label for case, label, _ in own)
        lines.append(f"{name} {language}: {right} of {len(own)} right ({right / len(own):.3f})")
        if name == OPERATION:
            said = [one for one in own if one[1] != "rows" and one[2] >= _LEAST]
            wanted = sum(case.label != "rows" for case, _, _ in own)
            hits = sum(case.label == label for case, label, _ in said)
            lines.append(f"  {hits} of {wanted} operations read, {len(said) - hits} read wrongly")
    return lines


def fit_model(cases: Sequence[Case], texts: Texts) -> Model:
    """Return the model with the runs that tell most, fitted anew with these alone."""
    counts = Counter(run for case in cases for run in find_runs(case.text))
    runs = sorted(run for run, count in counts.items() if count >= _LEAST_TEXTS)
    model = _descend(cases, runs, texts)
    if len(runs) <= _MOST_RUNS:
        return model
    spread = model.of_runs.max(1) - model.of_runs.min(1)
    told = spread * np.sqrt([counts[run] for run in runs])
    telling = sorted(runs[at] for at in np.argsort(-told)[:_MOST_RUNS])
    return _descend(cases, telling, texts)


def _descend(cases: Sequence[Case], runs: Sequence[str], texts: Texts) -> Model:
    """Return what Adam finds for a softmax over runs of words and the smooth maximum over words."""
    classes = tuple(sorted({case.label for case in cases}))
    marks = _mark(cases, runs)
    vectors, mask = texts.stack([case.text for case in cases])
    wanted = np.eye(len(classes), dtype=np.float32)[[classes.index(case.label) for case in cases]]
    weight = np.ones((len(cases), 1), np.float32)
    if "rows" in classes:  # most questions want rows: an operation weighs more the fewer there are of it
        of_classes = wanted.sum(0)
        weight = np.sqrt(of_classes.mean() / of_classes)[wanted.argmax(1)][:, None]
    start = np.random.default_rng(SEED).normal(scale=0.01, size=(vectors.shape[2], len(classes)))
    found = [
        np.zeros((len(runs), len(classes)), np.float32),
        np.zeros(len(classes), np.float32),
        start.astype(np.float32),
    ]
    mean = [np.zeros_like(part) for part in found]
    square = [np.zeros_like(part) for part in found]
    decay = float(np.clip(_DECAY / len(cases), *_DECAYS))
    for step in range(1, _STEPS + 1):
        shares, attention = _forward(Model(classes, tuple(runs), *found), marks, vectors, mask)
        error = (shares - wanted) * weight / len(cases)
        slopes = [
            marks.T @ error + decay * found[0],
            error.sum(0),
            np.einsum("nld,nlk->dk", vectors, attention * error[:, None, :], optimize=True)
            + _WORD_DECAY * found[2],
        ]
        for at, slope in enumerate(slopes):
            mean[at] = 0.9 * mean[at] + 0.1 * slope
            square[at] = 0.999 * square[at] + 0.001 * slope**2
            unbiased = mean[at] / (1 - 0.9**step)
            found[at] = found[at] - _RATE * unbiased / (np.sqrt(square[at] / (1 - 0.999**step)) + 1e-8)
    return Model(classes, tuple(runs), *found)


def probabilities(model: Model, cases: Sequence[Case], texts: Texts) -> Matrix:
    """Return the probability of each class, shape (cases, classes)."""
    vectors, mask = texts.stack([case.text for case in cases])
    return _forward(model, _mark(cases, model.runs), vectors, mask)[0]


def _mark(cases: Sequence[Case], runs: Sequence[str]) -> Matrix:
    places = {run: place for place, run in enumerate(runs)}
    marks = np.zeros((len(cases), len(runs)), np.float32)
    for at, case in enumerate(cases):
        marks[at, [places[run] for run in find_runs(case.text) if run in places]] = 1.0
    return marks


def _forward(model: Model, marks: Matrix, vectors: Matrix, mask: Matrix) -> tuple[Matrix, Matrix]:
    scores = vectors @ model.of_words + mask
    highest = scores.max(1, keepdims=True)
    raised = np.exp(scores - highest)
    total = raised.sum(1, keepdims=True)
    logits = marks @ model.of_runs + model.bias + (highest + np.log(total))[:, 0]
    logits -= logits.max(1, keepdims=True)
    shares = np.exp(logits)
    return shares / shares.sum(1, keepdims=True), raised / total


def write_weights(model: Model, digest: str, path: Path) -> None:
    word_step = float(np.abs(model.of_words).max()) / _STEPS_A_SIDE
    run_step = float(np.abs(model.of_runs).max()) / _STEPS_A_SIDE
    rounded = np.rint(model.of_runs / run_step).astype(int)
    values = ClassifierWeights(
        encoder=digest,
        classes=model.classes,
        bias=tuple(round(float(value), 4) for value in model.bias),
        words=tuple(tuple(map(int, row)) for row in np.rint(model.of_words.T / word_step)),
        word_step=round(word_step, 8),
        runs={run: tuple(map(int, row)) for run, row in zip(model.runs, rounded, strict=True) if row.any()},
        run_step=round(run_step, 8),
    )
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(msgspec.to_builtins(values), ensure_ascii=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
