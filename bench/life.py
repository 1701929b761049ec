"""
How often ordinary questions are answered right: `python -m bench.life [PART…]`.

Parts: `demo` asks the demo store the questions of answers.jsonl, each in a copy of its own; `vault` a folder
of notes; `conversations` six conversations of twelve turns, in which later turns rest on earlier ones. Prints
each turn with what is wrong with it, then the shares. Ends with 3 if one is below its floor in floors.json.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from bench.asking import ANSWERS, LIFE, Answer, Tally, asker, make_store, misses
from panda.models.layers import Layers
from panda.models.models_file import load_models_file
from panda.settings import load_settings
from panda.storage.assets import asset
from panda.storage.creation import create_store
from panda.storage.demo import copy_demo


def main() -> int:
    """Ask the parts; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *_PARTS], help="which of them; default: all")
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question or conversation only")
    arguments = parser.parse_args()
    settings = load_settings({}, os.environ, Path.cwd())
    models = load_models_file(settings.models_file)
    tally = Tally()
    with (
        tempfile.TemporaryDirectory() as directory,
        Layers(models, cache_dir=settings.cache_dir, environ=os.environ) as layers,
    ):
        for part in arguments.parts or _PARTS:
            (Path(directory) / part).mkdir()
            _PARTS[part](layers, Path(directory) / part, tally, arguments.every)
    return tally.close(whole=arguments.every == 1)


def ask_demo(layers: Layers, directory: Path, tally: Tally, every: int) -> None:
    """The questions of answers.jsonl, each in a copy of the demo store."""
    demo = directory / "demo"
    create_store(demo)
    copy_demo(asset("panda-system-docs"), demo, load_settings({}, os.environ, directory).clock())
    for case in [json.loads(line) for line in ANSWERS.read_text(encoding="utf-8").splitlines()][::every]:
        with tempfile.TemporaryDirectory(dir=directory) as own:
            root = shutil.copytree(demo, Path(own) / "store")
            answer = asker(layers, root, "demo")(case["query"], "bench")
        part = "demo" if case["answered"] else "demo, nothing to tell"
        tally.add(part, case["query"], answer, misses(case, answer))


def ask_vault(layers: Layers, directory: Path, tally: Tally, every: int) -> None:
    """The questions of the vault, each in a session of its own."""
    vault = json.loads((LIFE / "vault.json").read_text(encoding="utf-8"))
    make_store(directory / "store", vault["notes"])
    ask = asker(layers, directory / "store")
    for number, case in enumerate(vault["questions"]):
        if number % every:
            continue
        answer = ask(case["ask"], f"question_{number}")
        part = "vault, other words" if case["other_words"] else "vault"
        tally.add(part, case["ask"], answer, misses(case, answer))


def ask_conversations(layers: Layers, directory: Path, tally: Tally, every: int) -> None:
    """The conversations, each in a store and session of its own."""
    talks = json.loads((LIFE / "conversations.json").read_text(encoding="utf-8"))
    for talk in talks[::every]:
        make_store(directory / talk["name"], talk["notes"])
        ask = asker(layers, directory / talk["name"])
        replies: list[Answer] = []
        for case in talk["turns"]:
            answer = ask(case["say"], "talk")
            part = "conversations, told" if case.get("tell") else "conversations, asked"
            tally.add(part, f"{talk['name']}: {case['say']}", answer, misses(case, answer, replies))
            replies.append(answer)


_PARTS = {"demo": ask_demo, "vault": ask_vault, "conversations": ask_conversations}

if __name__ == "__main__":
    sys.exit(main())
