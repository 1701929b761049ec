"""The demo store, and the copy of it that `panda init --demo` makes."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from panda.documents.times import parse_time
from panda.errors import UsageError
from panda.memory.reader import NodeReader
from panda.store.demo import copy_demo, newest_turn_time
from panda.store.layout import Layout, UserStore, asset
from panda.store.validate import check_store
from tests.builders import file_of

NOW = datetime(2027, 3, 28, 1, 30, 7, tzinfo=UTC)
DEMO = asset("panda-system-docs")
INSTANT = re.compile(r"\d{4}-\d\d-\d\d(?:T[0-9:.]+(?:Z|[+-]\d\d:\d\d)?)?")


def files(root: Path) -> dict[str, str]:
    users = root / "users"
    return {str(path.relative_to(users)): path.read_text() for path in users.rglob("*") if path.is_file()}


def times(root: Path) -> list[datetime]:
    found = [parse_time(text) for name, body in sorted(files(root).items()) for text in INSTANT.findall(body)]
    for line in (root / "users/demo/memory.jsonl").read_text().splitlines():
        found.append(datetime.fromtimestamp(int(json.loads(line)["hlc"].split(".")[0]) / 1000, UTC))
    return found


def test_the_newest_turn_of_the_copy_is_1_2_hours_old(tmp_path: Path) -> None:
    """The demo looks as if it was used 72 minutes ago."""
    copy_demo(DEMO, tmp_path / "store", NOW)
    assert newest_turn_time(tmp_path / "store") == NOW - timedelta(minutes=72)


def test_all_times_move_by_the_same_constant(tmp_path: Path) -> None:
    """No two instants come nearer to each other or farther apart."""
    copy_demo(DEMO, tmp_path, NOW)
    before, after = times(DEMO), times(tmp_path)
    assert len(before) > 50
    assert {new - old for old, new in zip(before, after, strict=True)} == {after[0] - before[0]}


def test_nothing_but_times_differs(tmp_path: Path) -> None:
    """The copy has the demo's files, word for word, and not its read-only mark."""
    copy_demo(DEMO, tmp_path, NOW)
    assert not Layout(tmp_path).read_only_mark.exists()
    hlc = re.compile(r'"hlc": "\d+')
    plain = [
        {name: hlc.sub("", INSTANT.sub("", body)) for name, body in files(root).items()}
        for root in (DEMO, tmp_path)
    ]
    assert plain[0] == plain[1]


def test_a_copy_at_the_time_of_the_demo_is_the_demo(tmp_path: Path) -> None:
    """Without a shift every file is the same byte for byte: each way of writing a time is kept."""
    copy_demo(DEMO, tmp_path, newest_turn_time(DEMO) + timedelta(minutes=72))
    assert files(tmp_path) == files(DEMO)


def test_a_user_that_is_there_is_not_touched(tmp_path: Path) -> None:
    """A second copy into the same store is refused and changes nothing."""
    copy_demo(DEMO, tmp_path, NOW)
    before = files(tmp_path)
    with pytest.raises(UsageError, match="demo already"):
        copy_demo(DEMO, tmp_path, NOW + timedelta(days=1))
    assert files(tmp_path) == before


def test_the_copied_store_is_valid(tmp_path: Path) -> None:
    """`panda validate` finds nothing, and every node that a §2 names can be loaded."""
    copy_demo(DEMO, tmp_path, NOW)
    assert check_store(Layout(tmp_path)) == check_store(Layout(DEMO)) == []
    reader = NodeReader(UserStore(tmp_path, "demo", lambda: NOW))
    store = UserStore(tmp_path, "demo", lambda: NOW)
    for number in store.numbers():
        turn = store.open(number)
        assert turn.read_context().front.turn == number == turn.read_metadata().turn
        if turn.has("gathered_context.json"):
            for section in file_of(turn, "gathered_context.json")["sections"]:
                assert all(reader.load(node_id).items for node_id in section["node_ids"])


def test_the_visits_of_the_copy_are_fresh(tmp_path: Path) -> None:
    """The laptop pages of turn 811 were seen 1.2 hours ago, with price and stock."""
    copy_demo(DEMO, tmp_path, NOW)
    reader = NodeReader(UserStore(tmp_path, "demo", lambda: NOW))
    loq, tuf = reader.load("visit:visit_abc123"), reader.load("visit:visit_def456")
    assert loq.at is not None
    assert round((NOW - loq.at) / timedelta(hours=1), 1) == 1.2
    assert "price $697.00" in loq.text
    assert "In Stock" in loq.text
    assert "price $749.99" in tuf.text


def test_the_page_on_turn_directories_names_files_of_turn_811() -> None:
    """Each file in a table of docs/turn-directory.md is a file of the demo's turn 811."""
    page = (Path(__file__).parents[2] / "docs/turn-directory.md").read_text()
    names = re.findall(r"^\| `([\w./]+)` \|", page, re.MULTILINE)
    assert len(names) == 12
    assert [name for name in names if not (Layout(DEMO).of("demo").turn(811) / name).is_file()] == []
