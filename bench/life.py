"""
How often ordinary questions are answered right: `python -m bench.life [PART|FILE…]`.

Parts: `demo` asks the demo store the questions of answers.jsonl, each in a copy of its own; `vaults` the
files below life/ that hold a folder of notes with questions; `conversations` those with conversations, in
which later turns rest on earlier ones. FILE is another file of either form. Prints each turn, of a wrong one
also what is wrong with it and which phase lost it, then the shares, and how many questions the two closest
lines alone answer (closest.py); a set on which panda is below that is marked. Ends with 3 if a share is below
its floor in floors.json.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.asking import (
    ANSWERS,
    LIFE,
    Answer,
    Tally,
    asker,
    has_no_answer,
    holds,
    is_question,
    kind_of_case,
    make_store,
    misses,
)
from bench.closest import ClosestLines
from panda.models.layers import LoadedLayers
from panda.models.models_file import load_models_file
from panda.settings import load_settings
from panda.store.demo import copy_demo, create_store
from panda.store.layout import asset


def main() -> int:
    """Ask the parts; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART|FILE", help="demo, vaults, conversations, or FILE.json"
    )
    parser.add_argument("--every", type=int, default=1, help="ask every n-th question or conversation only")
    parser.add_argument("--keep", type=Path, help="directory for the stores, to look at the turns afterwards")
    arguments = parser.parse_args()
    settings = load_settings({}, os.environ, Path.cwd())
    models = load_models_file(settings.models_file)
    tally = Tally()
    with (
        tempfile.TemporaryDirectory() as temporary,
        LoadedLayers(models, cache_dir=settings.cache_dir, environ=os.environ) as layers,
    ):
        directory = arguments.keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        for part in arguments.parts or ("demo", "vaults", "conversations"):
            if part == "demo":
                ask_demo(layers, directory, tally, arguments.every)
                continue
            files = [Path(part)] if part.endswith(".json") else sorted(LIFE.glob(f"{part.rstrip('s')}*.json"))
            if not files or not all(file.is_file() for file in files):
                parser.error(f"{part}: no part, and no file that ends in .json")
            for file in files:
                ask_file(layers, directory, file, tally, arguments.every)
    return tally.close(whole=arguments.every == 1)


def ask_demo(layers: LoadedLayers, directory: Path, tally: Tally, every: int) -> None:
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


def ask_file(layers: LoadedLayers, directory: Path, file: Path, tally: Tally, every: int) -> None:
    """What a file holds: a vault with its questions, or conversations."""
    held = json.loads(file.read_text(encoding="utf-8"))
    ask = _ask_vault if isinstance(held, dict) else _ask_conversations
    ask(layers, directory / file.stem, held, tally, every)


def _ask_vault(layers: LoadedLayers, directory: Path, vault: Any, tally: Tally, every: int) -> None:
    """The questions of a vault, each in a session of its own."""
    make_store(directory, vault["notes"])
    ask, closest = asker(layers, directory), _closest(layers, vault["notes"])
    cases = vault["questions"][::every]
    for number, case in enumerate(cases, 1):
        answer = ask(case["ask"], f"question_{number}")
        kind = "nothing to tell" if has_no_answer(case) else "other words" if case["other_words"] else ""
        part = f"{directory.name}, {kind}" if kind else directory.name
        wrong = misses(case, answer)
        tally.add(part, case["ask"], answer, wrong, place=f"{number}/{len(cases)}")
        if closest and is_question(case):
            alone = Answer("approved", True, closest.answer(case["ask"]))
            tally.compare(directory.name, not wrong, not misses(case, alone))


def _ask_conversations(layers: LoadedLayers, directory: Path, talks: Any, tally: Tally, every: int) -> None:
    """The conversations, each in a store and session of its own."""
    asked, count = 0, sum(len(talk["turns"]) for talk in talks[::every])
    for talk in talks[::every]:
        make_store(directory / talk["name"], talk["notes"])
        ask, closest = asker(layers, directory / talk["name"]), _closest(layers, talk["notes"])
        replies: list[Answer] = []
        for turn, case in enumerate(talk["turns"]):
            asked += 1
            answer = ask(case["say"], "talk")
            wrong = misses(case, answer, replies)
            if case.get("forget"):  # what the question after it must not bring up again
                gone, store = talk["turns"][turn + 1].get("not", ()), directory / talk["name"]
                wrong += [f"{part!r} is still there" for part in gone if _holds_still(store, part)]
            part = f"{directory.name}, {kind_of_case(case)}"
            tally.add(part, f"{talk['name']}: {case['say']}", answer, wrong, place=f"{asked}/{count}")
            if closest and is_question(case) and not case.get("tell"):
                alone = Answer("approved", True, closest.answer(case["say"]))
                tally.compare(directory.name, not wrong, not misses(case, alone, replies))
            if closest and case.get("tell"):
                closest.tell(case["say"])
            replies.append(answer)


def _closest(layers: LoadedLayers, notes: Mapping[str, str]) -> ClosestLines | None:
    encoder = layers.encoder()
    return ClosestLines(encoder, notes) if encoder and notes else None


def _holds_still(root: Path, text: str) -> bool:
    """Whether a turn or the memory of a store has a text, notes apart."""
    users = (path for path in (root / "users").rglob("*") if path.is_file() and "knowledge" not in path.parts)
    return any(holds(path.read_text(encoding="utf-8", errors="replace"), text) for path in users)


if __name__ == "__main__":
    sys.exit(main())
