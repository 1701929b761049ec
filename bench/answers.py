"""
How often a turn quotes what answers, and says so when nothing does.

Asks the demo store the questions of answers.jsonl, each in a copy of its own, so that none hears of another.
With a directory of dialogues (turns.jsonl and questions.jsonl, as bench/recall.py takes them) it asks some of
their questions too, of a store of the dialogues' turns, and counts answers that quote one of the right turns.
"""

import argparse
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from panda.app import build_with
from panda.models.layers import Layers
from panda.models.models_file import load_models_file
from panda.settings import Settings, load_settings
from panda.storage.assets import asset
from panda.storage.creation import create_store
from panda.storage.demo import copy_demo
from panda.storage.importing import import_turns
from panda.storage.layout import Layout

QUESTIONS = Path(__file__).parent / "answers.jsonl"


def main() -> None:
    """Print each question with what came of it, then the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?", help="directory with turns.jsonl and questions.jsonl")
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question only")
    arguments = parser.parse_args()
    settings = load_settings({}, os.environ, Path.cwd())
    models = load_models_file(settings.models_file)
    with (
        tempfile.TemporaryDirectory() as directory,
        Layers(models, cache_dir=settings.cache_dir, environ=os.environ) as layers,
    ):
        demo = Path(directory) / "demo"
        create_store(demo)
        copy_demo(asset("panda-system-docs"), demo, settings.clock())
        _measure(
            settings, layers, demo, [{"user": "demo", **one} for one in _lines(QUESTIONS)][:: arguments.every]
        )
        if arguments.data:
            store = Path(directory) / "dialogues"
            create_store(store)
            import_turns(arguments.data / "turns.jsonl", Layout(store), settings.clock)
            questions = _lines(arguments.data / "questions.jsonl")[:: arguments.every]
            _measure(settings, layers, store, [{**one, "query": one["question"]} for one in questions])


def _measure(settings: Settings, layers: Layers, store: Path, questions: Sequence[dict[str, Any]]) -> None:
    right: dict[bool, list[bool]] = {}
    for one in questions:
        data = _ask(settings, layers, store, one["user"], one["query"])
        can_answer = "answers" in one or "turns" in one
        ok = _is_right(one, data) if can_answer else not data["items"] and data["status"] == "approved"
        right.setdefault(can_answer, []).append(ok)
        said = "; ".join(item["text"] for item in data["items"]) or data["status"]
        print(f"{'right' if ok else 'WRONG'}  {one['query']}  →  {said}", flush=True)  # noqa: T201 - the result
    for can_answer, found in right.items():
        what = "quote an answer" if can_answer else "say that nothing answers"
        print(f"{sum(found)} of {len(found)} {what}")  # noqa: T201


def _is_right(one: dict[str, Any], data: dict[str, Any]) -> bool:
    if "answers" in one:
        return any(re.search(one["answers"], item["text"]) for item in data["items"])
    wanted = {f"turn:{number}" for number in one["turns"]}
    return any(wanted & set(item["node_ids"]) for item in data["items"])


def _ask(settings: Settings, layers: Layers, store: Path, user: str, query: str) -> dict[str, Any]:
    """One turn in a copy of the store: its status, and the items of its answer."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "store"
        shutil.copytree(store, root)
        own = load_settings({"root": str(root), "user": user, "session": "bench"}, os.environ, Path.cwd())
        app = build_with(own, Layout(root), layers)
        turn = app.start_turn(query, "chat")
        app.run_turn(turn)
        answer = turn.folder.read_context().section(5)
        return {
            "status": turn.folder.read_metadata().status,
            "items": answer.meta["items"] if answer else [],
        }


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


if __name__ == "__main__":
    main()
