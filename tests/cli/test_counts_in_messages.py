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


def test_one_file_is_no_plural(tmp_path: Path) -> None:
    """The index is behind by one file, and a directory holds one."""
    panda = Panda(tmp_path / "home", LAPTOPS, user="ann")
    assert panda("index", "rebuild").code == 0
    panda.write("store/users/ann/knowledge/tea.md", "The tea is in the blue box.\n")
    assert "behind by 0 turns and 1 file" in panda("index", "status").out
    panda.write("src/tea.py", "print('tea')\n")
    words = ["tool", "run", "file.list", "--json", "--args"]
    listed = panda(*words, '{"directory": "src"}')
    assert "src holds 1 file" in listed.out
