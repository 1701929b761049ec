"""Links of a store: those that lead out are followed once they are trusted, and stay links."""

import os
from pathlib import Path

import pytest

from tests.api import LAPTOPS, Panda, tree
from tests.outside import SECRET, leaks, link

NOTE = f"The {SECRET} is blue.\n"
REFUSED = "this link leads out of the store"


class Linked:
    """A project without trust, and a directory of the user's own beside it."""

    def __init__(self, place: Path) -> None:
        self.panda = Panda(place / "project", LAPTOPS, user="ann", PANDA_TRUST="")
        self.home = self.panda.user_directory
        self.outside = place / "outside"
        self.outside.mkdir()
        (self.outside / "note.md").write_text(NOTE, encoding="utf-8")

    def trust(self) -> None:
        assert self.panda("trust").code == 0

    def search_notes(self) -> list[str]:
        """Return the notes that a search finds, below knowledge/."""
        results = self.panda.json("index", "search", SECRET)["results"]
        return sorted(result["node_id"].removeprefix("knowledge:") for result in results)


@pytest.fixture
def linked(tmp_path: Path) -> Linked:
    """A project without trust, and a directory beside it."""
    return Linked(tmp_path)


@pytest.mark.parametrize("target", ["{outside}", "{home}/../../../../outside"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("users/ann/preferences.md", "memory list"),
        ("users/ann/preferences.md", "memory set tea Assam"),
        ("users/ann/memory.jsonl", "memory set tea Assam"),
        ("users/ann/turns/turn_000001/context.md", "show 1"),
        ("users/ann/sessions/default/session.json", "session show default"),
        ("logs/executions.jsonl", "log"),
    ],
)
def test_a_link_out_of_the_store_is_not_followed(linked: Linked, name: str, words: str, target: str) -> None:
    """Neither reading nor writing passes it, by whatever words it leads there; a fix is told."""
    path = linked.panda.store / name
    path.unlink(missing_ok=True)
    place = Path(target.format(outside=linked.outside, home=linked.home))
    link(path, place / "note.md")
    ended = linked.panda(*words.split())
    assert (ended.code, REFUSED in ended.err, "fix: look at it with panda trust" in ended.err) == (
        2,
        True,
        True,
    )
    assert leaks(linked.panda, ended) == []
    assert (linked.outside / "note.md").read_text() == NOTE


@pytest.mark.parametrize("name", ["users/bob", "users/bob/turns"])
def test_nothing_passes_a_linked_directory(linked: Linked, name: str) -> None:
    """Files below a directory that is a link out are neither read nor made."""
    link(linked.panda.store / name, linked.outside)
    line = '{"user": "bob", "session": "s", "at": "2026-01-04", "query": "q", "response": "r"}'
    for ended in (
        linked.panda("list", "--user", "bob"),
        linked.panda("memory", "set", "tea", "Assam", "--user", "bob"),
        linked.panda("import", "-", stdin=line),
    ):
        assert leaks(linked.panda, ended) == []
    assert tree(linked.outside) == {"note.md": NOTE.encode()}


def test_a_link_through_a_link(linked: Linked) -> None:
    """A link to a link that leads out is as good as that one; so is one out of a trusted directory."""
    vault = linked.outside / "vault"
    vault.mkdir()
    link(linked.home / "first", vault)
    link(linked.home / "knowledge", linked.home / "first")
    link(vault / "far.md", linked.outside / "note.md")
    (vault / "near.md").write_text(NOTE, encoding="utf-8")
    assert linked.search_notes() == []
    linked.trust()
    assert linked.search_notes() == ["near.md"]
    linked.trust()
    assert linked.search_notes() == ["far.md", "near.md"]


def test_links_within_the_store_pass(linked: Linked) -> None:
    """A link that stays below the root needs no trust, nor does one within a trusted directory."""
    (linked.home / "preferences.md").rename(linked.panda.store / "shared.md")
    link(linked.home / "preferences.md", Path("../../shared.md"))
    assert "budget" in linked.panda("memory", "list").out
    (linked.outside / "a").mkdir()
    (linked.outside / "note.md").rename(linked.outside / "a" / "note.md")
    link(linked.outside / "b.md", Path("a/note.md"))
    link(linked.home / "knowledge", linked.outside)
    linked.trust()
    assert linked.search_notes() == ["a/note.md", "b.md"]


def test_notes_behind_links(linked: Linked) -> None:
    """They are found once each when trusted; circles end; an untrusted directory is told as unread."""
    (linked.outside / "sub").mkdir()
    (linked.outside / "note.md").rename(linked.outside / "sub" / "note.md")
    link(linked.outside / "sub" / "back", linked.outside)
    for name in ("a", "b"):
        link(linked.home / "knowledge" / name, linked.outside)
    link(linked.home / "knowledge" / "circle.md", Path("circle.md"))
    link(linked.home / "knowledge" / "own" / "again", Path(".."))
    assert linked.search_notes() == []
    errors = linked.panda("index", "search", SECRET).err
    assert [f"knowledge/{name}: {REFUSED}" in errors for name in ("a", "b")] == [True, True]
    linked.trust()
    assert linked.search_notes() == ["a/sub/note.md"]


def test_a_file_is_written_through_a_link(linked: Linked) -> None:
    """A trusted link stays a link: its target is replaced in one step and keeps its mode."""
    target = linked.outside / "preferences.md"
    target.write_text("---\ntea: Assam\n---\n")
    target.chmod(0o640)
    path = linked.home / "preferences.md"
    path.unlink()
    link(path, Path(os.path.relpath(target, linked.home)))
    linked.trust()
    for value in ("green", "black"):
        assert linked.panda("memory", "set", "tea", value).code == 0
        assert path.is_symlink()
        assert f'tea: {{value: "{value}"' in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(entry.name for entry in linked.outside.iterdir()) == ["note.md", "preferences.md"]
    target.unlink()
    assert linked.panda("memory", "set", "cup", "blue").code == 0
    assert (path.is_symlink(), "cup" in target.read_text()) == (True, True)


def test_nothing_is_swept_behind_a_link(linked: Linked) -> None:
    """
    The next command that writes removes what killed commands left, but not behind a link that leads out.
    """
    left = [place / ".x.0123456789ab.panda.tmp" for place in (linked.outside, linked.home)]
    for path in left:
        path.write_text("left", encoding="utf-8")
    link(linked.panda.store / "users" / "bob", linked.outside)
    assert linked.panda("memory", "set", "tea", "Assam").code == 0
    assert [path.exists() for path in left] == [True, False]
