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
from panda.language.text import split_sentences
from panda.language.words import split_terms
from panda.models.cl100k import count_tokens


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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--share", type=float, default=0.25)
    options = parser.parse_args()
    documents, cases = load(options.directory)
    made: dict[tuple[str, object], str] = {}

    def run(key: tuple[str, str], query: str | None) -> str:
        if ("panda", (key, query)) not in made:
            budget = int(options.share * count_tokens(documents[key]))
            compression = compress(documents[key], kind="generic", budget_tokens=budget, query=query)
            made["panda", (key, query)] = compression.text
        return made["panda", (key, query)]

    def rank_only(case: Case) -> str:
        key = ("LexRank", case.session)
        if key not in made:
            made[key] = lexrank(documents[case.session], count_tokens(run(case.session, None)))
        return made[key]

    rows: list[tuple[str, Callable[[Case], str]]] = [
        ("panda, with the question", lambda case: run(case.session, case.question)),
        ("panda, no query", lambda case: run(case.session, None)),
        ("LexRank, same size", rank_only),
    ]
    print(f"{len(documents)} sessions, {len(cases)} questions, at {options.share:.0%} of the tokens")  # noqa: T201
    print(f"{'':32}answering sentence  its turn")  # noqa: T201
    for name, output in rows:
        answer, turn = kept_shares(cases, output)
        print(f"{name:32}{answer:18.1%}  {turn:8.1%}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
