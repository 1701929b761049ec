"""
How well a correction is told from what is said of another thing: `python -m bench.updates [--fit] [FILE…]`.

told_pairs.jsonl has two statements, a question that the first answers, and whether the second replaces it, is
about another thing, or adds to it. The share told right is of pairs that the weights were not fitted to, a
tenth at a time. `--fit` writes the weights of all pairs to panda/retrieval/updates.json.

Each FILE of bench/pairs/ is asked of panda itself: both statements are told, then the question is asked. An
answer is right that holds the value that counts, and the other one at most behind "Before:".
"""

import argparse
import json
import os
import tempfile
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench.asking import asker, make_store, misses
from bench.logistic import Weights, fit_signed
from panda.models.layers import LoadedLayers
from panda.models.models_file import load_models_file
from panda.retrieval.updates import LEAST_UPDATE, WEIGHTS, describe_update
from panda.settings import load_settings

PAIRS = Path(__file__).parent / "told_pairs.jsonl"
_PARTS = 10
_SIGNS = np.array([0, 0, 0, 0, 1, 1, 1, -1, -1, -1, -1, -1, 1, 1, 0])
"""Of a constant and of the values of `describe_update`: where it is 0, any sign is right."""


def main() -> None:
    """Print the share told right by label and language; with --fit, write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", type=Path, help="pairs to ask panda itself")
    parser.add_argument("--fit", action="store_true", help="write the weights of all pairs")
    arguments = parser.parse_args()
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    described = [[1.0, *describe_update(pair["ask"], pair["first"], pair["second"])] for pair in pairs]
    values = np.array(described)
    replaces = np.array([float(pair["label"] == "replaces") for pair in pairs])
    right: dict[str, list[bool]] = defaultdict(list)
    for pair, probability, wanted in zip(pairs, _leave_out(values, replaces), replaces, strict=True):
        for group in ("all", pair["label"], pair["language"]):
            right[group].append((probability >= LEAST_UPDATE) == bool(wanted))
    print(", ".join(f"{group} {np.mean(own):.0%} of {len(own)}" for group, own in right.items()))  # noqa: T201
    if arguments.fit:
        weights = [round(weight, 4) for weight in _fit(values, replaces).tolist()]
        WEIGHTS.write_text(json.dumps({"weights": weights}) + "\n", encoding="utf-8")
    if arguments.files:
        settings = load_settings({}, os.environ, Path.cwd())
        models = load_models_file(settings.models_file)
        with LoadedLayers(models, cache_dir=settings.cache_dir, environ=os.environ) as layers:
            for path in arguments.files:
                print(ask_pairs(layers, path), flush=True)  # noqa: T201 - the result


def ask_pairs(layers: LoadedLayers, path: Path) -> str:
    """Tell panda both statements of each pair, ask, and return how many answers are right."""
    outcomes: Counter[str] = Counter()
    pairs = json.loads(path.read_text(encoding="utf-8"))
    for pair in pairs:
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory) / "store"
            make_store(root, {})
            ask = asker(layers, root)
            for statement in (pair["first"], pair["second"]):
                ask(statement, "talk")
            answer = ask(pair["ask"], "talk")
        standing = [line for line in answer.text.splitlines() if not line.startswith("Before:")]
        if not misses(pair, answer):
            outcomes["right"] += 1
        elif not misses(pair, replace(answer, text="\n".join(standing))):
            outcomes["right, with the older value behind Before:"] += 1
        else:
            outcomes["wrong" if answer.answered else "not answered"] += 1
    parts = ", ".join(f"{outcome} {count}" for outcome, count in outcomes.items())
    return f"{path.stem}: of {len(pairs)} {parts}"


def _leave_out(values: Weights, replaces: Weights) -> Weights:
    """Return the probability of each pair by the weights of the others, a tenth left out at a time."""
    order = np.random.default_rng(0).permutation(len(values))
    probabilities = np.zeros(len(values))
    for part in range(_PARTS):
        left_out = order[part::_PARTS]
        kept = np.setdiff1d(order, left_out)
        probabilities[left_out] = 1 / (1 + np.exp(-values[left_out] @ _fit(values[kept], replaces[kept])))
    return probabilities


def _fit(values: Weights, replaces: Weights) -> Weights:
    return fit_signed(values, replaces, np.ones(len(replaces)), _SIGNS)


if __name__ == "__main__":
    main()
