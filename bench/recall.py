"""
How often the index finds the turns that answer a question, beside rank_bm25 and plain FTS5.

Reads a directory with turns.jsonl (as `panda import` takes it) and questions.jsonl (user, question, turns
that answer it). Imports the turns into a store of its own, without their summaries unless asked, and prints
recall@20, recall@5, MRR and milliseconds a question for each.
"""

import argparse
import json
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi

from panda.documents.times import parse_time
from panda.retrieval.searching import Question, answer_questions
from panda.storage.importing import import_turns
from panda.storage.index import Index
from panda.storage.index_rebuild import rebuild_index
from panda.storage.layout import Layout

Rows = Sequence[dict[str, Any]]
Find = Callable[[str, str], list[int]]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="directory with turns.jsonl and questions.jsonl")
    parser.add_argument("--summaries", action="store_true", help="keep the summaries of turns.jsonl")
    arguments = parser.parse_args()
    turns, questions = (_lines(arguments.data / name) for name in ("turns.jsonl", "questions.jsonl"))
    if not arguments.summaries:
        turns = [{key: turn[key] for key in turn if key not in ("summary", "topics")} for turn in turns]
    print(f"{len(turns)} turns, {len(questions)} questions")  # noqa: T201 - the result
    print(f"{'':12}{'recall@20':>10}{'recall@5':>10}{'MRR':>8}{'ms':>8}")  # noqa: T201
    with tempfile.TemporaryDirectory() as directory:
        for name, find in (
            ("panda", _panda(turns, Layout(Path(directory)))),
            ("rank_bm25", _rank_bm25(turns)),
            ("FTS5", _fts5(turns)),
        ):
            print(f"{name:12}{_measured(find, questions)}")  # noqa: T201


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _measured(find: Find, questions: Rows) -> str:
    find(questions[0]["user"], questions[0]["question"])  # start-up apart
    started = time.perf_counter()
    found = [find(one["user"], one["question"]) for one in questions]
    milliseconds = (time.perf_counter() - started) / len(questions) * 1000
    gold = [set(one["turns"]) for one in questions]
    pairs = list(zip(gold, found, strict=True))
    recall = {
        k: sum(len(wanted & set(got[:k])) / len(wanted) for wanted, got in pairs) / len(pairs)
        for k in (20, 5)
    }
    first = [next((n for n, turn in enumerate(got, 1) if turn in wanted), 0) for wanted, got in pairs]
    mrr = sum(1 / rank for rank in first if rank) / len(pairs)
    return f"{recall[20]:10.3f}{recall[5]:10.3f}{mrr:8.3f}{milliseconds:8.1f}"


def _panda(turns: Rows, layout: Layout) -> Find:
    layout.users.mkdir()
    import_turns([json.dumps(turn) for turn in turns], layout, lambda: parse_time("2026-01-01"))
    index = Index(layout)
    rebuild_index(index, layout, lambda: parse_time("2026-01-01"))

    def find(user: str, question: str) -> list[int]:
        answers, _ = answer_questions(index, [Question(user, question, None)], limit=50)
        return [result["turn"] for result in answers[0]["results"]]

    return find


def _rank_bm25(turns: Rows) -> Find:
    numbers, models = {}, {}
    for user in {turn["user"] for turn in turns}:
        mine = [turn for turn in turns if turn["user"] == user]
        numbers[user] = [turn["turn"] for turn in mine]
        models[user] = BM25Okapi([_words(_text(turn)) for turn in mine])

    def find(user: str, question: str) -> list[int]:
        order = np.argsort(-models[user].get_scores(_words(question)), kind="stable")
        return [numbers[user][position] for position in order[:50]]

    return find


def _fts5(turns: Rows) -> Find:
    connection = sqlite3.connect(":memory:")
    for user in {turn["user"] for turn in turns}:
        tokenizer = "porter unicode61 remove_diacritics 2"
        connection.execute(f"CREATE VIRTUAL TABLE \"{user}\" USING fts5(body, tokenize = '{tokenizer}')")
        rows = [(turn["turn"], _text(turn)) for turn in turns if turn["user"] == user]
        connection.executemany(f'INSERT INTO "{user}" (rowid, body) VALUES (?, ?)', rows)

    def find(user: str, question: str) -> list[int]:
        match = " OR ".join(f'"{word}"' for word in _words(question)) or '""'
        query = f'SELECT rowid FROM "{user}" WHERE "{user}" MATCH ? ORDER BY rank, rowid LIMIT 50'
        return [row[0] for row in connection.execute(query, (match,))]

    return find


def _text(turn: dict[str, Any]) -> str:
    topics = " ".join(turn.get("topics") or ())
    return "\n".join([turn["query"], turn["response"], turn.get("summary") or "", topics])


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


if __name__ == "__main__":
    main()
