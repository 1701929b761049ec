"""
How often the index finds the turns that answer a question, beside rank_bm25 and plain FTS5.

Reads a directory with turns.jsonl (as `panda import` takes it) and questions.jsonl (user, question, turns
that answer it). Imports the turns into a store of its own, without their summaries unless asked, fills in
their vectors, and prints recall@20, recall@5, MRR and milliseconds a question for each: by words and meaning,
by words alone, by meaning alone.
"""

import argparse
import json
import os
import re
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi

from panda.addons.exchange.intake import import_turns
from panda.documents.times import parse_time
from panda.index.full_text import Index
from panda.index.tables import IndexView
from panda.index.vectors import VectorStore
from panda.models.kept_encoder import KeptEncoder
from panda.retrieval.meaning import Meaning
from panda.retrieval.ranking import Bounds, rank_rows
from panda.settings import load_settings
from panda.store.layout import Layout
from panda.trust import open_layers

Rows = Sequence[dict[str, Any]]
Find = Callable[[str, str], list[int]]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="directory with turns.jsonl and questions.jsonl")
    parser.add_argument("--summaries", action="store_true", help="keep the summaries of turns.jsonl")
    parser.add_argument("--store", type=Path, help="keep the store and its vectors here for the next time")
    arguments = parser.parse_args()
    turns, questions = (_lines(arguments.data / name) for name in ("turns.jsonl", "questions.jsonl"))
    if not arguments.summaries:
        turns = [{key: turn[key] for key in turn if key not in ("summary", "topics")} for turn in turns]
    print(f"{len(turns)} turns, {len(questions)} questions")  # noqa: T201 - the result
    print(f"{'':12}{'recall@20':>10}{'recall@5':>10}{'MRR':>8}{'ms':>8}")  # noqa: T201
    with tempfile.TemporaryDirectory() as directory:
        index, meaning = _indexed(turns, Layout(arguments.store or Path(directory)))
        for name, find in (
            ("panda", _panda(index, meaning)),
            ("words", _panda(index, None)),
            ("meaning", _by_meaning(index, meaning)),
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


def _indexed(turns: Rows, layout: Layout) -> tuple[Index, Meaning]:
    layout.users.mkdir(parents=True, exist_ok=True)
    import_turns([json.dumps(turn) for turn in turns], layout, lambda: parse_time("2026-01-01"))
    index = Index(layout)
    clock = partial(parse_time, "2026-01-01")
    index.rebuild()
    settings = load_settings({}, os.environ, layout.root)
    encoder = open_layers(settings, os.environ).encoder()
    assert encoder is not None
    meaning = Meaning(KeptEncoder(encoder, VectorStore(layout)), index, layout, clock)
    started = time.perf_counter()
    for user in sorted({turn["user"] for turn in turns}):
        meaning.fill(user)
    print(f"vectors: {time.perf_counter() - started:.1f} s, {layout.vectors.stat().st_size / 1e6:.1f} MB")  # noqa: T201
    return index, meaning


def _panda(index: Index, meaning: Meaning | None) -> Find:
    def find(user: str, question: str) -> list[int]:
        search = partial(rank_rows, query=question, now=None, bounds=Bounds(turns_only=True), meaning=meaning)
        return [ranked.entry.number for ranked in index.read(user, search)[:50]]

    return find


def _by_meaning(index: Index, meaning: Meaning) -> Find:
    def find(user: str, question: str) -> list[int]:
        def look(view: IndexView) -> list[int]:
            is_turn = view.statistics.sessions != 0
            cosines = meaning.near(view, question, is_turn, np.empty(0, np.intp))
            return [int(view.statistics.rows[at]) for at in sorted(cosines, key=lambda at: -cosines[at])[:50]]

        return index.read(user, look)

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
