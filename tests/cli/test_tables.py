"""Tables on a terminal of 80 columns: no number and no word is broken over lines."""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from panda.cli.render import markdown_text, table_text
from tests.api import LAPTOPS, ModelServer, Panda, on_terminal

KEY = "pipeline/phase2_5_context_validator"
NUMBERS = ("11340", "350153.3", "99999999", "2026-11-28T14:21:55Z")


def test_commands_keep_numbers_and_words_whole(tmp_path: Path) -> None:
    """Each word that a terminal shows stands in the piped table too; no line is longer than 80 columns."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    with closing(ModelServer()) as server:
        panda.write("models.yaml", server.models())
        assert panda.turn("How much is the Lenovo LOQ 15?").code == 0
    for command in ("log", "stats", "recipe list"):
        screen = on_terminal(panda, *command.split())
        piped = panda(*command.split()).out
        table, _, note = screen.partition("Left out on a terminal of 80 columns: ")
        assert max(map(len, screen.split("\n"))) <= 80, command
        assert note.replace("\n", " ").endswith(". --json has all. ")
        assert set(table.split()) <= set(piped.split()), command


@pytest.mark.parametrize(
    ("columns", "row", "extra", "whole", "left_out"),
    [
        (("key", "tokens"), (KEY, 11340), (), (KEY, *NUMBERS[:1]), ""),
        (("key", "time", "a", "b"), (KEY, NUMBERS[3], 350153.3, 99999999), (), NUMBERS[1:], ""),
        (
            ("key", "time", "text", "n"),
            (KEY, NUMBERS[3], "some words that are many", 11340),
            ("time",),
            (KEY, "11340", "some words that are many"),
            "time",
        ),
        (("key", "nothing", "text"), (KEY, None, "word " * 20), ("text",), (KEY, "word"), ""),
    ],
)
def test_what_gives_way(
    monkeypatch: pytest.MonkeyPatch,
    columns: Sequence[str],
    row: Sequence[object],
    extra: Sequence[str],
    whole: Sequence[str],
    left_out: str,
) -> None:
    """Texts wrap first, then an extra column goes, then a long word is shortened; a number never."""
    monkeypatch.setenv("COLUMNS", "80")
    screen = table_text(columns, [row], extra=extra, stream=sys.stdout, color=False)
    assert all(text in screen for text in whole)
    assert max(map(len, screen.split("\n"))) <= 80
    assert screen.partition("80 columns: ")[2].partition(".")[0] == left_out


def test_a_wide_table_of_an_answer_keeps_its_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Markdown table that does not fit wraps its texts; where that is too wide, its lines are longer."""
    heads = ["a provider of servers", *(f"tokens in the year {n}" for n in range(8))]
    cells = ["Hetzner Online in Falkenstein", *(str(1134000 + n) for n in range(8))]
    table = "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * 9, cells))
    for width in (80, 40):
        monkeypatch.setenv("COLUMNS", str(width))
        screen = markdown_text(table, stream=sys.stdout, color=False)
        assert set(cells[1:]) <= set(screen.split()), screen
