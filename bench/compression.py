"""
What is left of the sentences that answer questions when whole sessions are compressed.

Reads a directory with turns.jsonl (user, turn, session, query, response, summary) and questions.jsonl (user,
question, turns that answer it). Compresses each session to a share of its tokens, with the question as query
and without one, and counts how often the answering sentence is still there, beside LexRank at the same size.

The data name turns, not sentences: the answering sentence is taken to be the one of the turn that has most
rare words in common with the question and the turn's summary.
"""

import argparse
import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
from sumy.nlp.stemmers import Stemmer
from sumy.summarizers.lex_rank import LexRankSummarizer
from sumy.utils import get_stop_words

from panda.compression.compress import compress
from panda.compression.surprise import NervesReader
from panda.language.text import split_sentences
from panda.language.words import split_terms
from panda.models.cl100k import count_tokens
from panda.models.contract import Model, ScoreCase, ScoreParams
from panda.models.layers import Layers
from panda.models.models_file import load_models_file
from panda.settings import load_settings, process_environment


@dataclass(frozen=True)
class Case:
    """One question on one session."""

    session: tuple[str, str]
    """User and session."""
    question: str
    """The question."""
    answer: str
    """The sentence that answers it."""
    turn: tuple[str, ...]
    """All sentences of the turn that it stands in."""


class _Words:
    """The tokenizer that sumy asks for, without nltk's data."""

    def to_words(self, text: str) -> list[str]:
        return re.findall(r"\w+", text)


def load(directory: Path) -> tuple[dict[tuple[str, str], str], list[Case]]:
    """The sessions as documents, and the questions on them."""
    turns = [json.loads(line) for line in (directory / "turns.jsonl").read_text("utf-8").splitlines()]
    questions = [json.loads(line) for line in (directory / "questions.jsonl").read_text("utf-8").splitlines()]
    documents: dict[tuple[str, str], list[str]] = {}
    for turn in turns:
        lines = documents.setdefault((turn["user"], turn["session"]), [f"Session of {turn['at'][:10]}", ""])
        lines += [turn["query"], turn["response"]]
    by_number = {(turn["user"], turn["turn"]): turn for turn in turns}
    counts = Counter(term for turn in turns for term in set(split_terms(turn["query"] + turn["response"])))
    cases = [
        _case(by_number[question["user"], number], question["question"], counts)
        for question in questions
        for number in question["turns"]
    ]
    return {key: "\n".join(lines) + "\n" for key, lines in documents.items()}, cases


def _case(turn: dict[str, Any], question: str, counts: Counter[str]) -> Case:
    texts = [text.split(": ", 1)[-1] for text in (turn["query"], turn["response"])]
    sentences = [sentence for text in texts for sentence in split_sentences(text)]
    wanted = set(split_terms(question)) | set(split_terms(turn["summary"]))

    def fit(sentence: str) -> float:
        terms = set(split_terms(sentence))
        return sum(1 / math.log(2 + counts[term]) for term in terms & wanted) / math.sqrt(3 + len(terms))

    return Case((turn["user"], turn["session"]), question, max(sentences, key=fit), tuple(sentences))


def lexrank(document: str, size_tokens: int) -> str:
    """The sentences that LexRank puts first, as many as the size holds."""
    lines = [line.split(": ", 1)[-1] for line in document.split("\n")]
    sentences = [sentence for line in lines for sentence in split_sentences(line)]
    summarizer = LexRankSummarizer(Stemmer("english"))
    summarizer.stop_words = get_stop_words("english")
    model = ObjectDocumentModel([Paragraph([Sentence(text, _Words()) for text in sentences])])
    low, high = 0, len(sentences)
    while low < high:
        middle = (low + high + 1) // 2
        text = "\n".join(map(str, summarizer(model, middle)))
        low, high = (middle, high) if count_tokens(text) <= size_tokens else (low, middle - 1)
    return "\n".join(map(str, summarizer(model, low)))


def kept_shares(cases: list[Case], output: Callable[[Case], str]) -> tuple[float, float]:
    """How often the answering sentence, and any longer sentence of its turn, stands in the output."""
    answers = turns = 0
    for case in cases:
        text = " ".join(output(case).split())
        answers += case.answer in text
        turns += any(sentence in text for sentence in case.turn if len(sentence) > 25 or len(case.turn) < 3)
    return answers / len(cases), turns / len(cases)


def show_speed(model: Model, document: str) -> None:
    """Rung 3 beside a bare prefill of the same text, and what a document within budget adds to a call."""
    size = model.count_model_tokens(document)
    params = ScoreParams(600.0)
    model.score("Warm.", [ScoreCase("", " x")], params)
    rates: dict[str, list[float]] = {"prefill": [], "rung 3": []}
    for n in range(3):
        start = time.monotonic()
        model.score(f"{n} {document}", [ScoreCase("", " x")], params)
        rates["prefill"].append(size / (time.monotonic() - start))
        start = time.monotonic()
        reader = NervesReader(model)
        budget = count_tokens(document) // 4
        compress(document, kind="generic", budget_tokens=budget, surprise=reader)
        rates["rung 3"].append(size / (time.monotonic() - start))
    bare, third = (sorted(found)[1] for found in rates.values())
    print(f"rung 3: {third:.0f} tokens a second, {third / bare:.0%} of a bare prefill ({bare:.0f})")  # noqa: T201
    start = time.monotonic()
    compress(document, kind="generic", budget_tokens=10**6)
    share = (time.monotonic() - start) / (size / bare)
    print(f"within budget: {share:.2%} of the prefill of the same text")  # noqa: T201


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--share", type=float, default=0.25)
    options = parser.parse_args()
    documents, cases = load(options.directory)
    environ = process_environment()
    settings = load_settings({}, environ, Path.cwd())
    seconds: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    with Layers(
        load_models_file(settings.models_file), cache_dir=settings.cache_dir, environ=environ
    ) as layers:
        reader = NervesReader(layers.model("NERVES"))
        made: dict[tuple[str, object], str] = {}

        def run(name: str, key: tuple[str, str], query: str | None, use_model: bool) -> str:
            if (name, (key, query)) not in made:
                budget = int(options.share * count_tokens(documents[key]))
                start = time.monotonic()
                found = compress(
                    documents[key],
                    kind="generic",
                    budget_tokens=budget,
                    query=query,
                    surprise=reader if use_model else None,
                )
                seconds[name] += time.monotonic() - start  # type: ignore[assignment]  # a Counter of floats
                sizes[name] += found.after_tokens
                made[name, (key, query)] = found.text
            return made[name, (key, query)]

        def rank_only(case: Case) -> str:
            key = ("LexRank", case.session)
            if key not in made:
                made[key] = lexrank(
                    documents[case.session], count_tokens(run("model", case.session, None, True))
                )
            return made[key]

        rows: list[tuple[str, Callable[[Case], str]]] = [
            ("panda, with the question", lambda case: run("query", case.session, case.question, False)),
            ("panda, no query, model", lambda case: run("model", case.session, None, True)),
            ("panda, no query, words alone", lambda case: run("words", case.session, None, False)),
            ("LexRank, same size", rank_only),
        ]
        print(f"{len(documents)} sessions, {len(cases)} questions, at {options.share:.0%} of the tokens")  # noqa: T201
        print(f"{'':32}answering sentence  its turn")  # noqa: T201
        for name, output in rows:
            answer, turn = kept_shares(cases, output)
            print(f"{name:32}{answer:18.1%}  {turn:8.1%}", flush=True)  # noqa: T201
        show_speed(layers.model("NERVES"), max(documents.values(), key=len))
    total = sum(map(count_tokens, documents.values()))
    rate = total / seconds["model"]
    print(f"model: {seconds['model']:.0f} seconds for {total} tokens ({rate:.0f} a second)")  # noqa: T201


if __name__ == "__main__":
    main()
