"""
How well the operation that a question wants of a table is read: `python -m bench.table_operations [--fit]`.

Reads bench/table_operations.jsonl, labelled questions by domain and language, fits the classifier with a
sixth of the domains left out, six times, and prints how many of the left-out ones are read right. `--fit`
writes the weights of all to panda/retrieval/operations.json.
"""

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from panda.language.text import plain_signs
from panda.models.contract import Encoder
from panda.models.layers import Layers
from panda.models.models_file import load_models_file
from panda.retrieval.operations import OPERATIONS, WORD_SCALE, OperationWeights, word_runs
from panda.settings import load_settings

CASES = Path(__file__).with_name("table_operations.jsonl")
WEIGHTS = Path(__file__).parents[1] / "panda" / "retrieval" / "operations.json"
SEED = 3
_FOLDS = 6
_LEAST_RUNS = 6
"""Questions that a run of words has to stand in to be read."""
_STEPS = 150
_RATE = 0.05
_DECAY = 0.001
_WORD_DECAY = 0.0005
_LEAST = 0.35
_FAR = -1e9
"""What the score of a word that is not there counts as."""
_STEPS_A_SIDE = 127

Matrix = NDArray[np.float64]


class Case(msgspec.Struct, frozen=True):
    query: str
    label: str
    domain: str
    language: str

    @property
    def operation(self) -> str:
        return self.label if self.label in OPERATIONS else "rows"


class Model(msgspec.Struct, frozen=True):
    """What is fitted: shapes (runs, operations), (operations,) and (width, operations)."""

    runs: tuple[str, ...]
    of_runs: Matrix
    bias: Matrix
    of_words: Matrix


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fit", action="store_true", help="write the weights of all cases")
    arguments = parser.parse_args()
    cases = [msgspec.json.decode(line, type=Case) for line in CASES.read_text("utf-8").splitlines()]
    settings = load_settings({}, os.environ, Path.cwd())
    models = load_models_file(settings.models_file)
    with Layers(models, cache_dir=settings.cache_dir, environ=os.environ) as layers:
        encoder = layers.encoder()
        assert encoder is not None
        vectors, mask = encode_cases(cases, encoder)
        digest = encoder.info.digest
    if arguments.fit:
        write_weights(fit_model(cases, vectors, mask), digest)
        return 0
    domains = sorted({case.domain for case in cases})
    random.Random(SEED).shuffle(domains)
    folds = np.array([domains.index(case.domain) % _FOLDS for case in cases])
    read: list[tuple[Case, str, float]] = []
    for fold in range(_FOLDS):
        inside = np.flatnonzero(folds != fold)
        outside = np.flatnonzero(folds == fold)
        model = fit_model([cases[at] for at in inside], vectors[inside], mask[inside])
        left_out = [cases[at] for at in outside]
        shares = probabilities(model, left_out, vectors[outside], mask[outside])
        best = shares.argmax(1)
        highest = shares.max(1)
        read += [
            (case, OPERATIONS[at], float(share))
            for case, at, share in zip(left_out, best, highest, strict=True)
        ]
    for language in sorted({case.language for case in cases}):
        own = [one for one in read if one[0].language == language]
        said = [one for one in own if one[1] != "rows" and one[2] >= _LEAST]
        wanted = [one for one in own if one[0].operation != "rows"]
        right = sum(case.operation == operation for case, operation, _ in own)
        hits = sum(case.operation == operation for case, operation, _ in said)
        print(  # noqa: T201
            f"{language}: {right} of {len(own)} right; {hits} of {len(wanted)} operations read,"
            f" {len(said) - hits} read wrongly"
        )
    return 0


def encode_cases(cases: Sequence[Case], encoder: Encoder) -> tuple[Matrix, Matrix]:
    """Return the vectors of words, shape (cases, words, width), and a score to add where there is none."""
    words = [[vector for _, vector in encoder.encode_words(plain_signs(case.query))] for case in cases]
    longest = max(map(len, words))
    vectors = np.zeros((len(cases), longest, len(words[0][0])))
    mask = np.full((len(cases), longest, 1), _FAR)
    for at, own in enumerate(words):
        scaled = np.asarray(own, np.float64)
        vectors[at, : len(own)] = WORD_SCALE * scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
        mask[at, : len(own)] = 0.0
    return vectors, mask


def fit_model(cases: Sequence[Case], vectors: Matrix, mask: Matrix) -> Model:
    """Return what Adam finds for a softmax over runs of words and the smooth maximum over words."""
    counts = Counter(run for case in cases for run in word_runs(case.query))
    runs = tuple(sorted(run for run, count in counts.items() if count >= _LEAST_RUNS))
    marks = _mark(cases, runs)
    wanted = np.eye(len(OPERATIONS))[[OPERATIONS.index(case.operation) for case in cases]]  # type: ignore[arg-type]
    width = vectors.shape[2]
    start = np.random.default_rng(SEED).normal(scale=0.01, size=(width, len(OPERATIONS)))
    found = [np.zeros((len(runs), len(OPERATIONS))), np.zeros(len(OPERATIONS)), start]
    mean = [np.zeros_like(part) for part in found]
    square = [np.zeros_like(part) for part in found]
    for step in range(1, _STEPS + 1):
        model = Model(runs, *found)
        shares, attention = _forward(model, marks, vectors, mask)
        error = (shares - wanted) / len(cases)
        slopes = [
            marks.T @ error + _DECAY * found[0],
            error.sum(0),
            np.einsum("nld,nlk->dk", vectors, attention * error[:, None, :], optimize=True)
            + _WORD_DECAY * found[2],
        ]
        for at, slope in enumerate(slopes):
            mean[at] = 0.9 * mean[at] + 0.1 * slope
            square[at] = 0.999 * square[at] + 0.001 * slope**2
            unbiased = mean[at] / (1 - 0.9**step)
            found[at] = found[at] - _RATE * unbiased / (np.sqrt(square[at] / (1 - 0.999**step)) + 1e-8)
    return Model(runs, *found)


def probabilities(model: Model, cases: Sequence[Case], vectors: Matrix, mask: Matrix) -> Matrix:
    return _forward(model, _mark(cases, model.runs), vectors, mask)[0]


def _mark(cases: Sequence[Case], runs: Sequence[str]) -> Matrix:
    places = {run: place for place, run in enumerate(runs)}
    marks = np.zeros((len(cases), len(runs)))
    for at, case in enumerate(cases):
        marks[at, [places[run] for run in word_runs(case.query) if run in places]] = 1.0
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


def write_weights(model: Model, digest: str) -> None:
    word_step = float(np.abs(model.of_words).max()) / _STEPS_A_SIDE
    mark_step = float(np.abs(model.of_runs).max()) / _STEPS_A_SIDE
    values = OperationWeights(
        encoder=digest,
        bias=tuple(round(float(value), 4) for value in model.bias),
        words=tuple(tuple(map(int, row)) for row in np.rint(model.of_words.T / word_step)),
        word_step=round(word_step, 8),
        marks={
            run: tuple(map(int, row))
            for run, row in zip(model.runs, np.rint(model.of_runs / mark_step), strict=True)
        },
        mark_step=round(mark_step, 8),
    )
    text = json.dumps(msgspec.to_builtins(values), ensure_ascii=False, separators=(",", ":"))
    WEIGHTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
