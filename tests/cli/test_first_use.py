"""What somebody sees who begins: where notes go, that there are none yet, a replay that blames nothing."""

from pathlib import Path

from tests.api import Panda

HINT = "there are no notes yet"


def test_notes_have_a_place_from_the_start(tmp_path: Path) -> None:
    """`init` makes the directory that it names, and a question without notes says how to add some."""
    panda = Panda(tmp_path / "home")
    ended = panda("init")
    knowledge = panda.store / "users" / "default" / "knowledge"
    assert (ended.code, str(knowledge) in ended.err, knowledge.is_dir()) == (0, True, True)
    first = panda("turn", "What is the wifi password?")
    assert (
        first.code,
        f"{HINT}: put Markdown, text, CSV, JSON and HTML files into {knowledge}" in first.err,
    ) == (0, True)
    assert HINT not in panda("turn", "My favorite tea is Assam.").err
    (knowledge / "wifi.txt").write_text("The wifi password is kornblume.\n", encoding="utf-8")
    assert "kornblume" in panda("turn", "What is the wifi password?").out
    assert HINT not in panda("turn", "Who repaired the roof of the barn?").err
    assert panda("init", "--user", "ann").code == 0
    assert not (panda.store / "users" / "ann").exists()


def test_a_replay_blames_what_has_changed_alone(tmp_path: Path) -> None:
    """Memory files that were made later for what was told later did not change; the note did."""
    panda = Panda(tmp_path / "home")
    panda("init")
    note = panda.write("store/users/default/knowledge/wifi.md", "The wifi password is kornblume.\n")
    assert panda.turn("What is the wifi password?").code == 0
    assert panda.turn("My favorite tea is Assam.").code == 0
    assert panda("replay", "1").code == 0
    note.write_text("The wifi password is edelweiss.\n", encoding="utf-8")
    (turn,) = panda("replay", "1", "--json", PANDA_NOW="2026-01-05T14:30:00Z").data["turns"]
    assert turn["findings"] == ["changed since the turn: knowledge/wifi.md"]
