"""`panda forget` asks first; where it cannot ask it needs --yes."""

from pathlib import Path

import pytest

from tests.api import LAPTOPS, Panda, digest

DERIVED = ("indexes/", "users/ann/memory")


@pytest.mark.parametrize("words", [("1",), ("--text", "-")])
def test_nothing_is_forgotten_unasked_without_a_terminal(tmp_path: Path, words: tuple[str, ...]) -> None:
    """In a script the command is wrong usage without --yes, and names that option; with it all goes."""
    panda = Panda(tmp_path, LAPTOPS, user="ann")
    assert panda("forget", *words, "--dry-run", stdin="Lenovo").code == 0
    before = digest(panda.store, *DERIVED)
    refused = panda("forget", *words, stdin="Lenovo")
    assert refused.code == 2
    assert "error: no terminal to ask on: nothing was forgotten" in refused.err
    assert "--yes" in refused.err
    assert digest(panda.store, *DERIVED) == before
    assert panda("forget", *words, "--yes", stdin="Lenovo").code in (0, 3)
    assert digest(panda.store, *DERIVED) != before
