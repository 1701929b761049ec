"""Notes that cannot be read are findings of `panda validate`."""

from pathlib import Path

from panda.errors import Problem, Verdict
from panda.memory.validation import check_memory
from panda.store.layout import Layout
from tests.builders import NOW, build_store


def check(layout: Layout, *places: Path) -> list[Problem]:
    return check_memory(layout.root, places, NOW)


def test_notes_that_cannot_be_read_are_findings(tmp_path: Path) -> None:
    """What no turn can quote and no index takes in is told with its path; other notes are none."""
    layout = build_store(tmp_path / "store")
    notes = layout.of("demo").knowledge
    (notes / "deep").mkdir(parents=True)
    (notes / "good.md").write_text("---\ntitle: Good\n---\n\nTea.\n", encoding="utf-8")
    (notes / ".obsidian").mkdir()
    (notes / ".obsidian" / "bad.md").write_bytes(b"\xff")
    assert check(layout) == []
    (notes / "deep" / "latin.md").write_bytes("Käse".encode("latin-1"))
    (notes / "date.md").write_text("---\nupdated: soon\n---\n\nTea.\n", encoding="utf-8")
    (notes / "gone.md").symlink_to(notes / "nowhere.md")
    found = {Path(one.path).name: one.message for one in check(layout)}
    assert set(found) == {"latin.md", "date.md", "gone.md"}
    assert "UTF-8" in found["latin.md"]
    assert "the line is text" in found["date.md"]


def test_notes_below_a_place(tmp_path: Path) -> None:
    """Of a place only its own notes are checked."""
    layout = build_store(tmp_path / "store")
    notes = layout.of("demo").knowledge
    (notes / "deep").mkdir(parents=True)
    for path in (notes / "one.md", notes / "deep" / "two.md"):
        path.write_bytes(b"\xff")
    assert [Path(one.path).name for one in check(layout, notes / "deep")] == ["two.md"]
    assert check(layout, layout.of("demo").turns) == []


def test_lines_that_cannot_be_quoted_are_told(tmp_path: Path) -> None:
    """With line and reason, as information: the note itself is sound."""
    layout = build_store(tmp_path / "store")
    notes = layout.of("demo").knowledge
    notes.mkdir(parents=True)
    body = f"Tea is green.\n\nWhy tea?\n\n{'so ' * 400}long.\n\n[[Money]], [[Trips]]\n"
    text = f"---\ntitle: Tea\n---\n\n{body}"
    (notes / "tea.md").write_text(text, encoding="utf-8")
    found = check(layout)
    assert [(one.line, one.message.partition(": ")[2][:20], one.verdict) for one in found] == [
        (7, "it is a question", Verdict.SOUND),
        (9, "it has 1,205 charact", Verdict.SOUND),
        (11, "it holds nothing but", Verdict.SOUND),
    ]
