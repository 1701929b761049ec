"""
Fits: linear heads with softmax, made from labelled cases, and what they read of a message.

A fit belongs to one encoder and to one layout of what it reads: its file is named by them. Anything else
changed (bars, budgets) leaves it valid, and recipes that name the same fit share it; without a matching file
the step is passed over. What is read is not standardised: each part is scaled so that one strength of
regularisation suits all.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from panda.choosing.ask import Ask, Vectors
from panda.choosing.decision import PARTS, PHRASES, Question
from panda.errors import FileFormatError
from panda.language.text import PAGE_ADDRESS
from panda.language.wording import (
    content_stems,
    describe_antecedents,
    describe_order,
    describe_wording,
    word_runs,
)
from panda.models.contract import ScoreCase

FITS_DIR = "fits"  # folder of the fits, beside the recipes' categories
_LAYOUTS = {"head": 1, "options": 5}
"""By scorer; to be raised with every change of what a value is: fits of another layout are not found."""
_NAME_DIGITS = 12
_SCALE, _LITTLE, _MARK = 5.0, 1.5, 0.7
_TURN = re.compile(r"(?m)^Turn \d+: ")
_HISTORY = "turn_summaries"
_NEAR = 0.45  # cosine from which a line is taken to be about the query


@dataclass(frozen=True)
class Fit:
    classes: tuple[str, ...]  # k classes
    weights: NDArray[np.float32]  # shape (k, n): n values that are read
    bias: NDArray[np.float32]  # shape (k,)
    temperature: float  # what the logits are divided by
    digest: str  # sha256 of the file, hex; "" before it is written
    cases: int  # how many labelled cases it was made from
    phrases: tuple[str, ...] = ()  # runs of words whose occurrence is read behind the other values

    def logprobs(self, values: Sequence[float] | Vectors) -> dict[str, float]:
        logits = (self.weights @ np.asarray(values, np.float64) + self.bias) / self.temperature
        logits -= logits.max()
        found = logits - np.log(np.exp(logits).sum())
        return dict(zip(self.classes, map(float, found), strict=True))


def softmax(values: Mapping[str, float]) -> dict[str, float]:
    """Probabilities by logarithms; empty for none."""
    top = max(values.values(), default=0.0)
    total = sum(math.exp(value - top) for value in values.values())
    return {key: math.exp(value - top) / total for key, value in values.items()}


def load_fit(path: Path) -> Fit:
    """Read a fit. Raises FileFormatError: the file is no fit."""
    text = path.read_text(encoding="utf-8")
    try:
        values = json.loads(text)
        classes = tuple(map(str, values["classes"]))
        return Fit(
            classes,
            np.frombuffer(base64.b64decode(values["weights"]), np.float32).reshape(len(classes), -1),
            np.asarray(values["bias"], np.float32),
            float(values["temperature"]),
            hashlib.sha256(text.encode()).hexdigest(),
            int(values["cases"]),
            tuple(map(str, values.get("phrases", ()))),
        )
    except (ValueError, KeyError, TypeError) as exc:
        raise FileFormatError(f"this is no fit: {exc}", where=str(path), fix="delete it") from exc


def name_fit(question: Question, ask: Ask) -> str:
    """Name of the file of a step's fit; there must be an encoder."""
    assert ask.encoder is not None
    step = question.step
    layout = hashlib.sha256(f"{_LAYOUTS[step.scorer]} {' '.join(step.reads)}".encode()).hexdigest()
    parts = PurePath(step.fit or "").name, ask.encoder.info.digest[:_NAME_DIGITS], layout[:_NAME_DIGITS]
    return f"{'-'.join(parts)}.json"


def find_fit(question: Question, ask: Ask) -> Fit | None:
    """The fit of a step; None without an encoder, or a fit for it."""
    return ask.find_fit(name_fit(question, ask)) if ask.encoder is not None else None


def score_head(question: Question, ask: Ask) -> Mapping[str, float]:
    """
    Probability of each class of the step's fit; nothing without an encoder or a fit for it. Of a subset, each
    option is read in place of the query, and gets the probability of the step's class; to one that is a part
    of what its title says, that counts as much as itself. Where the options come with the call, classes that
    are not among them have no probability, and what the fit does not know has no score.
    """
    spec, step = question.spec, question.step
    if spec.many and step.class_:
        probable: dict[str, float] = {}
        for option in question.options:
            texts = (PAGE_ADDRESS.sub("the page", text) for text in (option.text, option.title) if text)
            read = [_classify(question, ask, text) for text in texts]
            both = {label: sum(one[label] for one in read) / len(read) for label in read[0]}
            probable |= {option.id: softmax(both)[step.class_]} if both else {}
        return probable
    logprobs = _classify(question, ask)
    options = question.inputs.options.get(spec.name, ())
    offered = set(map(str, spec.values)) or {option.id for option in options}
    return softmax({label: v for label, v in logprobs.items() if step.class_ or label in offered})


def _classify(question: Question, ask: Ask, text: str | None = None) -> Mapping[str, float]:
    """Log-probability of each class of the step's fit for the query, or for a text in its place."""
    fit = find_fit(question, ask)
    if fit is None:
        return {}
    if text is not None:
        question = replace(question, options=(), inputs=replace(question.inputs, query=text))
    query, reads = question.inputs.query, question.step.reads

    def compute() -> list[float]:
        values = np.concatenate([read_values(question, ask), mark_phrases(query, fit.phrases)])
        return [*fit.logprobs(values).values()]

    texts = [f"[fit {fit.digest}]", query]  # everything that the values depend on
    texts += _history(question) if "antecedents" in reads else []
    texts += [option.near for option in question.options] if "lines" in reads else []
    cases = [ScoreCase("", label) for label in fit.classes]
    return dict(zip(fit.classes, ask.judge("\n".join(texts), cases, compute), strict=True))


def read_values(question: Question, ask: Ask) -> Vectors:
    """
    What the step's fit reads, in the order of `reads`.

    - query: the vector of the query, and how it is worded
    - wording: the same with less weight on the vector, for what hangs on how things are said
    - order: what stands before what in it
    - antecedents: what earlier turns are about, and what of it the query's pronouns could stand for
    - lines: how near the options are, the words they share with the query, and whether there are any
    - phrases: nothing here; the fit knows the runs of words that are marked behind the others
    """
    parts = (_READERS[part](question, ask) for part in question.step.reads if part != PHRASES)
    return np.concatenate([np.asarray(values, np.float32) for values in parts])


def mark_phrases(query: str, phrases: Sequence[str]) -> Vectors:
    """Which of n runs of words a query has, shape (n,)."""
    places, marks = _places(tuple(phrases)), np.zeros(len(phrases), np.float32)
    marks[[places[run] for run in word_runs(query) if run in places]] = _MARK
    return marks


@lru_cache(maxsize=8)
def _places(phrases: tuple[str, ...]) -> Mapping[str, int]:
    return {run: place for place, run in enumerate(phrases)}


def _history(question: Question) -> list[str]:
    """Without the numbers of the turns."""
    documents = question.inputs.documents
    text = next((text for name, text in documents.items() if name.partition(".")[0] == _HISTORY), "")
    return [line for line in _TURN.sub("", text).splitlines() if line.strip()]


def _read_query(scale: float) -> Callable[[Question, Ask], Sequence[float]]:
    def read(question: Question, ask: Ask) -> Sequence[float]:
        query = question.inputs.query
        return [*(scale * ask.vectors([query])[0]), *describe_wording(query)]

    return read


def _read_antecedents(question: Question, ask: Ask) -> Sequence[float]:
    query, said = question.inputs.query, _history(question)
    own, *told = ask.vectors([query, *said])
    about = np.mean(told, axis=0) if told else np.zeros_like(own)
    near = max(ask.cosines(query, said), default=0.0)
    return [*(_SCALE * about), *describe_antecedents(query, said, near)]


def _read_lines(question: Question, ask: Ask) -> Sequence[float]:
    texts = [option.near for option in question.options]
    if not texts:
        return [0.0] * 6
    near = sorted(ask.cosines(question.inputs.query, texts), reverse=True)
    asked = content_stems(question.inputs.query)
    shared = max(len(asked & content_stems(text)) for text in texts)
    lead = near[0] - near[1] if len(near) > 1 else near[0]
    share = shared / max(1, len(asked))
    return [1.0, _SCALE * near[0], 2 * lead, 2 * share, 0.7 * min(3, shared), float(near[0] > _NEAR)]


_READERS: Mapping[str, Callable[[Question, Ask], Sequence[float]]] = {
    "query": _read_query(_SCALE),
    "wording": _read_query(_LITTLE),
    "order": lambda question, ask: describe_order(question.inputs.query),
    "antecedents": _read_antecedents,
    "lines": _read_lines,
}
assert (*_READERS, PHRASES) == PARTS
