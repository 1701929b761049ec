"""
How often a turn quotes what answers, asked of saved dialogues: turns.jsonl and questions.jsonl, as
bench/recall.py takes them.

Each question is asked in a copy of a store of the dialogues' turns; an answer counts that quotes one of
the right turns.
"""

import argparse
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from panda.addons.exchange.intake import import_turns
from panda.app import App
from panda.models.layers import LoadedLayers
from panda.models.models_file import load_models_file
from panda.settings import Settings, load_settings
from panda.store.demo import create_store
from panda.store.layout import Layout


def main() -> None:
    """Print each question with what came of it, then the share."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="directory with turns.jsonl and questions.jsonl")
    parser.add_argument("--every", type=int, default=5, help="ask every n-th question only")
    arguments = parser.parse_args()
    settings = load_settings({}, os.environ, Path.cwd())
    models = load_models_file(settings.models_file)
    right: list[bool] = []
    with (
        tempfile.TemporaryDirectory() as directory,
        LoadedLayers(models, cache_dir=settings.cache_dir, environ=os.environ) as layers,
    ):
        store = Path(directory) / "dialogues"
        create_store(store)
        import_turns(arguments.data / "turns.jsonl", Layout(store), settings.clock)
        for one in _lines(arguments.data / "questions.jsonl")[:: arguments.every]:
            data = _ask(settings, layers, store, one["user"], one["question"])
            wanted = {f"turn:{number}" for number in one["turns"]}
            right.append(any(wanted & set(item["node_ids"]) for item in data["items"]))
            said = "; ".join(item["text"] for item in data["items"]) or data["status"]
            print(f"{'right' if right[-1] else 'WRONG'}  {one['question']}  →  {said}", flush=True)  # noqa: T201
    print(f"{sum(right)} of {len(right)} quote an answer")  # noqa: T201 - the result


def _ask(settings: Settings, layers: LoadedLayers, store: Path, user: str, query: str) -> dict[str, Any]:
    """One turn in a copy of the store: its status, and the items of its answer."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory) / "store"
        shutil.copytree(store, root)
        own = load_settings({"root": str(root), "user": user, "session": "bench"}, os.environ, Path.cwd())
        app = App(own, own.store, layers)
        turn = app.start_turn(query, "chat")
        app.run_turn(turn)
        answer = turn.folder.read_context().section(5)
        return {
            "status": turn.metadata.status,
            "items": answer.meta["items"] if answer else [],
        }


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


if __name__ == "__main__":
    main()
