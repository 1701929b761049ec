"""Notes that cannot be read are findings of `panda validate`."""

import json
from pathlib import Path

import pytest

from tests.api import Panda


@pytest.fixture
def panda(imported: Path, tmp_path: Path) -> Panda:
    """A project whose user has notes that are in order."""
    panda = Panda(tmp_path / "project", imported, user="demo")
    write(panda, "good.md", "---\ntitle: Good\n---\n\nTea.\n")
    write(panda, ".obsidian/bad.md", b"\xff")
    return panda


def write(panda: Panda, name: str, text: str | bytes) -> Path:
    return panda.write(f"store/users/demo/knowledge/{name}", text)


def reported(panda: Panda, place: Path, kind: str) -> dict[str, str]:
    """Return what `validate PLACE` tells of a kind: messages by name of the file, with the line."""
    ended = panda("validate", str(place), "--json")
    assert ended.code == (3 if ended.data["problems"] else 0), ended.out
    return {f"{Path(entry['path']).name}:{entry['line']}": entry["message"] for entry in ended.data[kind]}


def test_notes_that_cannot_be_read_are_findings(panda: Panda) -> None:
    """All that no turn can quote as it is meant is told with its path; other notes are not."""
    notes = panda.user_directory / "knowledge"
    assert reported(panda, panda.store, "as_text") == {}
    write(panda, "deep/latin.md", "Käse".encode("latin-1"))
    write(panda, "date.md", "---\nupdated: soon\n---\n\nTea.\n")
    (notes / "gone.md").symlink_to(notes / "nowhere.md")
    findings = reported(panda, panda.store, "as_text")
    assert set(findings) == {"latin.md:None", "date.md:2"}
    assert set(reported(panda, panda.store, "problems")) == {"gone.md:None"}
    assert "UTF-8" in findings["latin.md:None"]
    assert "the line is text" in findings["date.md:2"]
    assert set(reported(panda, notes / "deep", "as_text")) == {"latin.md:None"}
    assert reported(panda, panda.user_directory / "turns", "as_text") == {}


def test_lines_that_cannot_be_quoted_are_told(panda: Panda) -> None:
    """With line and reason, as information: the note itself is sound."""
    body = f"Tea is green.\n\nWhy tea?\n\n{'so ' * 400}long.\n\n[[Money]], [[Trips]]\n"
    write(panda, "tea.md", f"---\ntitle: Tea\n---\n\n{body}")
    findings = reported(panda, panda.store, "unquotable")
    assert {place: message.partition(": ")[2][:20] for place, message in findings.items()} == {
        "tea.md:7": "it is a question",
        "tea.md:9": "it has 1,205 charact",
        "tea.md:11": "it holds nothing but",
    }
    assert json.loads(panda("validate", "--json").out)["data"]["verdict"] == "sound"
