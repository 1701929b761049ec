"""The law of the index: delete it, rebuild it, and every row is the same."""

import json
import random
import shutil
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tests.api import Panda
from tests.store_files import (
    NOW,
    dump_database,
    import_line,
    write_research,
    write_turn,
    write_visit,
)

WORDS = ("apple", "pear", "16GB", "RTX", "4060", "Straße", "naïve", "東京都", "hamster", "running", "$697")
ROUNDS = 16


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project whose store has a user without turns."""
    panda = Panda(tmp_path / "project", user="ann", PANDA_WAIT_SECONDS="60")
    panda.user_directory.mkdir(parents=True)
    return panda


def text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 12)))


def change(users: Path, chance: random.Random) -> str:
    """Add, change or remove one thing and return the user."""
    name = chance.choice(("ann", "bob"))
    number = chance.randint(1, 20)
    user = users / name
    turn = user / "turns" / f"turn_{number:06d}"
    kind = chance.random()
    if kind < 0.25 and turn.exists():
        shutil.rmtree(turn)
    elif kind < 0.35 and turn.exists():
        (turn / "metadata.json").write_text("{", encoding="utf-8")
    elif kind < 0.45:
        shutil.rmtree(turn, ignore_errors=True)
        write_research(user, number, topic="pets.x", summary=text(chance))
    elif kind < 0.5 and not (turn / "webpage_cache").exists():
        write_visit(user, number, f"v{number}", {"title": text(chance)}, quality=0.9)
    elif kind < 0.6:
        lines = "".join(f"key_{n}: {text(chance)}\n" for n in range(chance.randint(0, 3)))
        user.mkdir(parents=True, exist_ok=True)
        (user / "preferences.md").write_text(f"---\n{lines}---\n", encoding="utf-8")
    else:
        write_turn(
            user,
            number,
            query=text(chance),
            response=text(chance),
            status=chance.choice(("imported", "imported", "failed", "running")),
            at=NOW + timedelta(hours=number),
            session=f"s{number % 3}",
            summary=chance.choice(("", text(chance))),
        )
    return name


@pytest.mark.parametrize("seed", [1, 2])
def test_changes_in_any_order(panda: Panda, seed: int) -> None:
    """An index that took in changes one by one equals one made from nothing at the end."""
    chance = random.Random(seed)
    database = panda.store / "indexes" / "turn_index.db"
    for _ in range(ROUNDS):
        changed = {change(panda.store / "users", chance) for _ in range(5)}
        for user in sorted(changed):
            assert panda("index", "search", "apple", "--user", user).code == 0
    for user in ("ann", "bob"):
        assert panda("index", "search", "apple", "--user", user).code == 0
        assert panda("index", "status", "--user", user, "--json").data["turns_behind"] == 0
    grown = dump_database(database)
    assert panda("index", "rebuild", "--full", PANDA_USER="").code in (0, 3)
    assert dump_database(database) == grown
    shutil.rmtree(panda.store / "indexes")
    assert panda("index", "rebuild", PANDA_USER="").code in (0, 3)
    assert dump_database(database) == grown


def search(panda: Panda) -> tuple[int, int]:
    """Return how many turns a search finds, and how many changes the index is behind."""
    data = panda.json("index", "search", "apple", "-k", "200")
    return len([result for result in data["results"] if result["node_id"].startswith("turn:")]), data[
        "behind"
    ]


def test_writers_and_a_rebuild(panda: Panda) -> None:
    """Processes that add turns while another one rebuilds lose no row, get numbers of their own, and end."""
    for writer in range(2):
        lines = [
            import_line(user="ann", query=f"apple {writer} {n}", session=f"s{writer}") for n in range(12)
        ]
        panda.write_lines(f"{writer}.jsonl", *lines)
    processes = [panda.start("import", f"{writer}.jsonl", "--json") for writer in range(2)]
    processes.append(panda.start("index", "rebuild", "--full", "--json"))
    numbers: list[int] = []
    for process in processes:
        with process:
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        numbers += [turn["turn"] for turn in json.loads(out)["data"].get("turns", [])]
    assert sorted(numbers) == list(range(1, 25))
    assert search(panda) == (24, 0)


def test_a_killed_rebuild(panda: Panda) -> None:
    """After `kill -9` during full rebuilds the index answers, and the next rebuild clears up."""
    for number in range(1, 100):
        write_turn(panda.user_directory, number, query=f"apple {number}", response="x")
    assert panda("index", "rebuild").code == 0
    began = time.monotonic()
    assert panda.process("index", "rebuild", "--full").code == 0
    lasted = time.monotonic() - began
    for share in (0.6, 0.9):
        with panda.start("index", "rebuild", "--full") as process:
            time.sleep(share * lasted)
            process.send_signal(signal.SIGKILL)
        assert search(panda) == (99, 0)
    assert panda("index", "rebuild", "--full").code == 0
    assert [path.name for path in (panda.store / "indexes").iterdir() if path.name.startswith(".")] == []
