"""The law of the index: delete it, rebuild it, and every row is the same."""

import random
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panda.index.index import Index
from panda.retrieval.ranking import Bounds, rank_rows
from panda.store.layout import Layout
from tests.stores import NOW, dump_index, write_research, write_turn, write_visit

WORDS = "apple pear 16GB RTX 4060 Straße naïve 東京都 hamster running laptops $697".split()  # noqa: SIM905


def text(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(1, 12)))


def change(layout: Layout, chance: random.Random) -> str:
    """Add, change or remove one thing; returns the user."""
    user, number = chance.choice(("ann", "bob")), chance.randint(1, 40)
    paths = layout.of(user).turn(number)
    kind = chance.random()
    if kind < 0.25 and paths.directory.exists():
        shutil.rmtree(paths.directory)
    elif kind < 0.35 and paths.directory.exists():
        (paths / "metadata.json").write_text("{", encoding="utf-8")
    elif kind < 0.45:
        shutil.rmtree(paths.directory, ignore_errors=True)
        write_research(layout, number, {"topic": "pets.x", "summary": text(chance)}, user=user)
    elif kind < 0.5 and not paths.webpage_cache.exists():
        write_visit(layout, number, f"v{number}", {"title": text(chance)}, quality=0.9, user=user)
    elif kind < 0.6:
        lines = "".join(f"key_{n}: {text(chance)}\n" for n in range(chance.randint(0, 3)))
        layout.of(user).home.mkdir(parents=True, exist_ok=True)
        layout.of(user).preferences.write_text(f"---\n{lines}---\n", encoding="utf-8")
    else:
        write_turn(
            layout,
            number,
            query=text(chance),
            response=text(chance),
            status=chance.choice(("imported", "imported", "failed", "running")),
            at=NOW + timedelta(hours=number),
            session=f"s{number % 3}",
            summary=chance.choice(("", text(chance))),
            user=user,
        )
    return user


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_500_changes_in_any_order(tmp_path: Path, seed: int) -> None:
    """An index that took in 500 changes one by one equals one made from nothing at the end."""
    layout, chance = Layout(tmp_path / str(seed)), random.Random(seed)
    index = Index(layout)
    for _ in range(500):
        index.freshen(change(layout, chance))
    for user in ("ann", "bob"):
        index.freshen(user)
        assert not index.behind(user).sources
    index.close()
    grown = dump_index(layout)
    for way in ("deleted", "full"):
        if way == "deleted":
            shutil.rmtree(layout.indexes)
        other = Index(layout)
        other.rebuild(full=way == "full")
        other.close()
        assert dump_index(layout) == grown
    shutil.rmtree(layout.root)


def test_changes_of_many_files_are_taken_in(tmp_path: Path) -> None:
    """Whether changes are written into what is there or into nothing, the rows are the same."""
    layout = Layout(tmp_path)
    index = Index(layout)
    for first in (1, 11):
        for number in range(first, first + 10):
            write_turn(layout, number, query=f"apple {number}", response="x", session=f"s{number % 2}")
        write_research(layout, first, {"topic": "pets.x", "summary": f"hamster {first}"})
        index.rebuild(["ann"])["ann"]
    index.close()
    grown = dump_index(layout)
    index.rebuild(full=True)
    index.close()
    assert dump_index(layout) == grown


ADD = """
import sys
from pathlib import Path
from panda.exchange.intake import import_turns
from panda.index.index import Index
from panda.store.layout import Layout
from tests.stores import NOW
layout = Layout(Path(sys.argv[1]))
for n in range(12):
    line = '{"user": "ann", "session": "s%s", "at": "2026-01-04", "query": "apple %s", "response": "x"}'
    report = import_turns([line % (sys.argv[2], n)], layout, lambda: NOW)
    Index(layout).record("ann", [turn.turn for turn in report.turns])
"""

REBUILD = """
import sys, time
from pathlib import Path
from panda.index.index import Index
from panda.store.layout import Layout
from tests.stores import NOW
layout = Layout(Path(sys.argv[1]))
index = Index(layout)
until = time.monotonic() + float(sys.argv[2])
while time.monotonic() < until:
    index.rebuild(full=True)
    print("rebuilt", flush=True)
"""


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent.parent,
    )


def test_four_writers_and_a_rebuild(tmp_path: Path) -> None:
    """Processes that add turns while another one rebuilds lose no row, and none fails."""
    layout = Layout(tmp_path)
    writers = [start(ADD, str(tmp_path), str(n)) for n in range(4)]
    rebuilder = start(REBUILD, str(tmp_path), "3")
    for process in [*writers, rebuilder]:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    index = Index(layout)
    index.freshen("ann")
    assert len(index.read("ann", lambda view: rank_rows(view, "apple", bounds=Bounds()))) == 48
    assert not index.behind("ann").sources
    index.close()


def test_killed_rebuild(tmp_path: Path) -> None:
    """After `kill -9` during full rebuilds the index answers, and the next rebuild clears up."""
    layout = Layout(tmp_path)
    for number in range(1, 200):
        write_turn(layout, number, query=f"apple {number}", response="x")
    index = Index(layout)
    index.rebuild(["ann"])["ann"]
    for wait in (0.0, 0.02, 0.05):
        process = start(REBUILD, str(tmp_path), "30")
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert index.freshen("ann").problems == ()
        assert len(index.read("ann", lambda view: rank_rows(view, "apple", bounds=Bounds()))) == 199
    index.rebuild(full=True)
    index.close()
    assert [path.name for path in layout.indexes.iterdir() if path.name.startswith(".")] == []
