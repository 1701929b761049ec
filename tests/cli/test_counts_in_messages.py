"""Messages count in plain English: one turn, two turns."""

from pathlib import Path

from tests.api import LAPTOPS, Panda


def test_one_is_no_plural(tmp_path: Path) -> None:
    """An export of one turn says "1 turn", of more how many turns."""
    panda = Panda(tmp_path / "home", LAPTOPS, user="ann")
    numbers = [path.name for path in sorted((panda.store / "users" / "ann" / "turns").iterdir())]
    first = str(int(numbers[0].removeprefix("turn_")))
    assert "1 turn, 0 left out" in panda("export", first, "--as", "queries").err
    assert f"{len(numbers)} turns, " in panda("export", "1-999999", "--as", "queries").err
