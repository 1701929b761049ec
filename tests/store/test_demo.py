"""The demo store, and the copy of it that `panda init --demo` makes."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.api import ROOT, Panda, make_demo

DEMO = ROOT / "panda-system-docs"
NOW = "2027-03-28T01:30:07Z"
INSTANT = re.compile(r"\d{4}-\d\d-\d\d(?:T[0-9:.]+(?:Z|[+-]\d\d:\d\d)?)?")
NEWEST_AGE = timedelta(minutes=72)


def read_files(root: Path) -> dict[str, str]:
    """Return the text of each file of users, by its path below users/."""
    users = root / "users"
    return {str(path.relative_to(users)): path.read_text() for path in users.rglob("*") if path.is_file()}


def parse_instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def read_instants(files: Mapping[str, str]) -> list[datetime]:
    """Return all instants of the files in order, and those of the clock of memory.jsonl."""
    instants = [parse_instant(text) for _, body in sorted(files.items()) for text in INSTANT.findall(body)]
    for line in files["demo/memory.jsonl"].splitlines():
        instants.append(datetime.fromtimestamp(int(json.loads(line)["hlc"].split(".")[0]) / 1000, UTC))
    return instants


def newest_turn_time(files: Mapping[str, str]) -> datetime:
    """Return when the newest turn was made."""
    metadata = [json.loads(text) for name, text in files.items() if name.endswith("/metadata.json")]
    return max(parse_instant(turn["created_at"]) for turn in metadata)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo that was made at NOW."""
    return make_demo(tmp_path_factory.mktemp("copied") / "store", PANDA_NOW=NOW)


def test_all_times_move_so_that_the_newest_turn_is_1_2_hours_old(copy: Path) -> None:
    """No two instants come nearer to each other or farther apart."""
    before = read_files(DEMO)
    after = read_files(copy)
    assert newest_turn_time(after) == parse_instant(NOW) - NEWEST_AGE
    pairs = list(zip(read_instants(before), read_instants(after), strict=True))
    assert len(pairs) > 50
    shift = newest_turn_time(after) - newest_turn_time(before)
    assert {later - earlier for earlier, later in pairs} == {shift}


def test_nothing_but_times_differs(copy: Path) -> None:
    """The copy has the demo's files, word for word, and not its read-only mark."""
    assert {path.name for path in DEMO.iterdir()} - {path.name for path in copy.iterdir()} == {".read-only"}
    hlc = re.compile(r'"hlc": "\d+')
    before, after = (
        {name: hlc.sub("", INSTANT.sub("", body)) for name, body in read_files(root).items()}
        for root in (DEMO, copy)
    )
    assert before == after


def test_a_copy_at_the_time_of_the_demo_is_the_demo(tmp_path: Path) -> None:
    """Without a shift every file is the same byte for byte: each way of writing a time is kept."""
    now = newest_turn_time(read_files(DEMO)) + NEWEST_AGE
    make_demo(tmp_path / "store", PANDA_NOW=now.isoformat())
    assert read_files(tmp_path / "store") == read_files(DEMO)


def test_a_user_that_is_there_is_not_touched(copy: Path, tmp_path: Path) -> None:
    """A second copy into the same store is refused and changes nothing."""
    panda = Panda(tmp_path / "project", copy)
    before = read_files(panda.store)
    ended = panda("init", "--demo", PANDA_NOW="2027-03-29T01:30:07Z")
    assert (ended.code, "demo already" in ended.err) == (2, True)
    assert read_files(panda.store) == before


def test_the_copy_is_sound_and_its_pages_are_fresh(copy: Path, tmp_path: Path) -> None:
    """`panda validate` finds nothing, and the laptop pages of turn 811 were seen 1.2 hours ago."""
    panda = Panda(tmp_path / "project", copy, user="demo", PANDA_NOW=NOW)
    assert panda("validate", str(panda.store), "--strict").code == 0
    assert panda("validate", str(DEMO)).code == 0
    turn = panda.turn("How much is the Lenovo LOQ 15?")
    assert "price $697.00" in turn.section(2)
    assert "(1.2h ago)" in turn.section(2)


def test_the_page_on_turn_directories_names_files_of_turn_811() -> None:
    """Each file in a table of docs/turn-directory.md is a file of the demo's turn 811."""
    page = (ROOT / "docs/turn-directory.md").read_text()
    names = re.findall(r"^\| `([\w./]+)` \|", page, re.MULTILINE)
    assert len(names) == 12
    assert [name for name in names if not (DEMO / "users/demo/turns/turn_000811" / name).is_file()] == []
