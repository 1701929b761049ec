"""
Heads: linear, with softmax, on what the encoder reads of a message and on how it is worded.

A step names its fit and what it reads; the values of a layout are made here alone, for tuning and for use.
They are not standardised: each part is scaled so that one strength of regularisation suits all.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from msgspec import structs

from panda.choosing.ask import Ask, Vectors
from panda.choosing.decision import PARTS, PHRASES, Question
from panda.choosing.fits import fit_name, softmax
from panda.language.wording import (
    content_stems,
    describe_antecedents,
    describe_order,
    describe_wording,
    word_runs,
)
from panda.models.contract import ScoreCase, Usage

LAYOUT = 1  # to be raised with every change of what a part holds: fits of another layout are not found
_SCALE, _LITTLE, _MARK = 5.0, 1.5, 0.7
_TURN = re.compile(r"^Turn \d+: ")
_HISTORY = "turn_summaries"
_LEAST = 1e-12
_NEAR = 0.45  # cosine from which a line is taken to be about the query


def name_head(question: Question, ask: Ask) -> str:
    """Name of the file of a step's fit: it belongs to one encoder and one layout."""
    assert ask.encoder is not None
    step = question.step
    return fit_name(step.fit or "", f"{LAYOUT} {' '.join(step.reads)}", ask.encoder.info.digest)


def score_head(question: Question, ask: Ask) -> Mapping[str, float]:
    """
    Probability of each class of the step's fit; nothing without an encoder or a fit for it. Of a subset, each
    option is read in place of the query, and gets the probability of the step's class; to one that is a part
    of what its title says, that counts as much as itself. Where the options come with the call, classes that
    are not among them have no probability, and what the fit does not know has no score.
    """
    if question.spec.many and question.step.class_:
        read = {one.id: _score_part(question, one.text, one.title, ask) for one in question.options}
        return {id_: scores[question.step.class_] for id_, scores in read.items() if scores}
    fit = ask.find_fit(name_head(question, ask)) if ask.encoder is not None else None
    if fit is None or ask.encoder is None:
        return {}

    def compute() -> tuple[Sequence[float], Usage, float]:
        said = mark_phrases(question.inputs.query, fit.phrases)
        logprobs = fit.logprobs(np.concatenate([read_values(question, ask), said]))
        return [logprobs[label] for label in fit.classes], Usage(0, 0, 0), 0.0

    reads = question.step.reads  # every text that the values depend on
    texts = [f"[fit {fit.digest}]", question.inputs.query]
    texts += _history(question) if "antecedents" in reads else []
    texts += [option.near for option in question.options] if "lines" in reads else []
    cases = [ScoreCase("", label) for label in fit.classes]
    logprobs = zip(fit.classes, ask.judge(ask.encoder.info, "\n".join(texts), cases, compute), strict=True)
    spec = question.spec
    offered = spec.values or [option.id for option in question.inputs.options.get(spec.name, ())]
    if question.step.class_:
        return softmax(dict(logprobs))
    return softmax({label: value for label, value in logprobs if label in map(str, offered)})


def _score_part(question: Question, text: str, whole: str, ask: Ask) -> Mapping[str, float]:
    """The probabilities for a text in place of the query, and as much for the whole that it is a part of."""
    own = _score_text(question, text, ask)
    if not whole or not own:
        return own
    both = _score_text(question, whole, ask)
    return softmax({label: math.log(own[label] * both[label] + _LEAST) / 2 for label in own})


def _score_text(question: Question, text: str, ask: Ask) -> Mapping[str, float]:
    spec, step = replace(question.spec, many=None, values=()), structs.replace(question.step, over=None)
    return score_head(Question(spec, step, (), replace(question.inputs, query=text)), ask)


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
    return [_TURN.sub("", line) for line in text.splitlines() if line.strip()]


def _read_query(question: Question, ask: Ask, *, scale: float) -> Sequence[float]:
    query = question.inputs.query
    return [*(scale * ask.vectors([query])[0]), *describe_wording(query)]


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
    "query": partial(_read_query, scale=_SCALE),
    "wording": partial(_read_query, scale=_LITTLE),
    "order": lambda question, ask: describe_order(question.inputs.query),
    "antecedents": _read_antecedents,
    "lines": _read_lines,
}
assert (*_READERS, PHRASES) == PARTS
