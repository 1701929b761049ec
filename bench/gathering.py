"""
How good phase 2's choice of sources is with the model in force.

Reads a directory with turns.jsonl and questions.jsonl, as bench/recall.py does. For a sample of the questions
it gathers the context in a store of its own and prints how often a right turn is among those that §2 cites,
beside as many of the index's first ones; then how many turns are cited where only another user's turns could
answer. With --pairs it asks for pairs of sources instead (bench/relevance_pairs.jsonl): how often the
right one comes in and the wrong one stays out.
"""

import argparse
import json
import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from panda.actions.turn_run import gather
from panda.addons.exchange.intake import import_turns
from panda.app import App, build
from panda.documents.times import parse_time
from panda.settings import load_settings
from panda.store.layout import Layout

_NOW = parse_time("2024-06-01T12:00:00Z")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", help="directory with turns.jsonl and questions.jsonl")
    parser.add_argument("--sample", type=int, default=40, help="so many questions")
    parser.add_argument("--pairs", type=Path, help="file of pairs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        if arguments.pairs:
            _measure_pairs(Path(directory), _lines(arguments.pairs))
        elif arguments.data:
            _measure_questions(Path(directory), arguments.data, arguments.sample)


def _measure_questions(root: Path, data: Path, sample: int) -> None:
    turns, questions = (_lines(data / name) for name in ("turns.jsonl", "questions.jsonl"))
    kept = [{key: turn[key] for key in turn if key not in ("summary", "topics")} for turn in turns]
    layout = Layout(root)
    layout.users.mkdir()
    import_turns([json.dumps(turn) for turn in kept], layout, lambda: _NOW)
    users = sorted({turn["user"] for turn in turns})
    chosen = random.Random(7).sample(questions, min(sample, len(questions)))
    cited, right, by_index = 0, 0, 0
    for n, one in enumerate(chosen, 1):
        found, first = _gather(layout, one["user"], one["question"])
        gold = {f"turn:{number}" for number in one["turns"]}
        cited += len(found)
        right += bool(gold & set(found))
        by_index += bool(gold & set(first[: len(found)]))
        print(f"\r{n}/{len(chosen)}", end="", flush=True)  # noqa: T201
    count = len(chosen)
    print(f"\n{count} questions: {cited / count:.2f} turns cited on average")  # noqa: T201
    print(f"a right one among them {right / count:.3f}, index {by_index / count:.3f}")  # noqa: T201
    foreign = chosen[: max(1, count // 4)]
    lost = [
        _gather(layout, next(user for user in users if user != one["user"]), one["question"])[0]
        for one in foreign
        if len(users) > 1
    ]
    if lost:
        mean = sum(map(len, lost)) / len(lost)
        print(f"{len(lost)} questions that nothing answers: {mean:.2f} turns cited on average")  # noqa: T201


def _measure_pairs(root: Path, pairs: Sequence[dict[str, Any]]) -> None:
    layout = Layout(root)
    right, wrong = 0, 0
    for n, pair in enumerate(pairs, 1):
        user = f"pair{n}"
        ids = [_write(layout, user, pair[name]) for name in ("right", "wrong")]
        look = _look(layout, user, pair["query"])
        cited = {node_id for part in look["sections"] for node_id in part["node_ids"]}
        right += ids[0] in cited
        wrong += ids[1] not in cited
        told = "".join("+-"[ok] for ok in (ids[0] not in cited, ids[1] in cited))
        print(f"{told} {pair['query']}", flush=True)  # noqa: T201
    total = (right + wrong) / (2 * len(pairs))
    print(f"{len(pairs)} pairs: right in {right}, wrong out {wrong}, together {total:.3f}")  # noqa: T201


def _write(layout: Layout, user: str, source: Sequence[str]) -> str:
    kind, name, text = source
    if kind == "turn":  # name is the query, text the answer
        line = {
            "user": user,
            "session": "before",
            "at": "2024-05-30T12:00:00Z",
            "query": name,
            "response": text,
        }
        [turn] = import_turns([json.dumps(line)], layout, lambda: _NOW).turns
        return f"turn:{turn.turn}"
    if kind == "knowledge":
        path = layout.of(user).knowledge / f"{name.replace(' ', '_')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\ntitle: {name}\n---\n\n{text}\n", encoding="utf-8")
        return f"knowledge:{path.name}"
    path = layout.of(user).facts if kind == "fact" else layout.of(user).preferences
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8").removesuffix("---\n") if path.exists() else "---\n"
    path.write_text(f"{before}{name}: {json.dumps(text)}\n---\n", encoding="utf-8")
    return f"{kind}:{name}"


def _gather(layout: Layout, user: str, question: str) -> tuple[list[str], list[str]]:
    """The turns that §2 cites, and the index's turns in its order."""
    look = _look(layout, user, question)
    found = [node_id for part in look["sections"] for node_id in part["node_ids"]]
    ranked = sorted(look["candidates"], key=lambda one: -one["index"])
    return [node_id for node_id in dict.fromkeys(found) if node_id.startswith("turn:")], [
        one["node_id"] for one in ranked if one["node_id"].startswith("turn:")
    ]


_APPS: dict[str, App] = {}


def _look(layout: Layout, user: str, question: str) -> dict[str, Any]:
    app = _app(layout, user)
    turn = app.start_turn(question, "chat")
    look = gather(app, turn, "draft")
    if look.plan is None or look.gathered is None:  # the turn asked back
        return {"sections": [], "candidates": []}
    return {"sections": look.gathered["sections"], "candidates": look.plan["candidates"]}


def _app(layout: Layout, user: str) -> App:
    """One program a user, all with the models of the first."""
    if user not in _APPS:
        flags = {"root": str(layout.root), "user": user, "now": _NOW, "session": "bench"}
        settings = load_settings(flags, dict(os.environ), Path.cwd())
        first = next(iter(_APPS.values()), None)
        _APPS[user] = build(settings, layout, dict(os.environ), first.layers if first else None)
    return _APPS[user]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


if __name__ == "__main__":
    main()
