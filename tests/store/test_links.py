"""Links of a store: which may be followed, and that files keep theirs and their permissions."""

import os
from pathlib import Path

import pytest

from panda.errors import FileFormatError, UntrustedError
from panda.index.sources import list_notes
from panda.store.files import (
    append_json_line,
    begin_writing,
    check_links,
    end_writing,
    held_lock,
    may_pass,
    read_text,
    watch_store,
    write_atomic,
)
from panda.store.layout import Layout, below


class Watched:
    """A watched store beside a directory of the user's own, and the links of it that may be followed."""

    def __init__(self, tmp_path: Path) -> None:
        self.root, self.outside = tmp_path / "store", tmp_path / "outside"
        self.layout = Layout(self.root)
        self.user = self.layout.of("ann").home
        self.user.mkdir(parents=True)
        self.outside.mkdir()
        self.allowed: set[tuple[str, str]] = set()
        watch_store(self.root, self.allows)

    def allows(self, link: str, target: str) -> bool:
        return (link, target) in self.allowed

    def allow(self, link: Path) -> None:
        self.allowed.add((str(link), os.path.realpath(link)))

    def link(self, name: str, target: Path | str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        return path


@pytest.fixture
def store(tmp_path: Path) -> Watched:
    """A watched store."""
    return Watched(tmp_path)


WAYS = (
    ("users/ann/preferences.md", "{outside}/secret"),
    ("users/ann/preferences.md", "../../../outside/secret"),
    ("users/ann/turns/turn_000001/context.md", "{outside}/secret"),
    ("users/ann/knowledge/note.md", "{outside}/secret"),
    ("users/ann/sessions/s/session.json", "{outside}/secret"),
    ("logs/executions.jsonl", "{outside}/secret"),
    ("users/ann/memory.jsonl", "{root}/users/../../outside/secret"),
)


@pytest.mark.parametrize(("name", "target"), WAYS)
def test_a_link_out_of_the_store_is_not_followed(name: str, target: str, store: Watched) -> None:
    """Neither reading, writing, appending nor locking passes it, by whatever words it leads there."""
    secret = store.outside / "secret"
    secret.write_text("secret", encoding="utf-8")
    path = store.link(name, target.format(outside=store.outside, root=store.root))
    with pytest.raises(UntrustedError, match="leads out of the store"):
        read_text(path)
    with pytest.raises(UntrustedError):
        write_atomic(path, "mine")
    with pytest.raises(UntrustedError):
        append_json_line(path, 1)
    with pytest.raises(UntrustedError), held_lock(path, holder="me", wait_seconds=0):
        pass
    assert secret.read_text(encoding="utf-8") == "secret"


@pytest.mark.parametrize("link", ["users/bob", "users/ann/turns", "users/ann/turns/turn_000001"])
def test_nothing_passes_a_linked_directory(link: str, store: Watched) -> None:
    """Files below a directory that is a link out are neither read nor made."""
    (store.outside / "x").mkdir()
    (store.outside / "x/file.md").write_text("secret", encoding="utf-8")
    path = store.link(link, store.outside)
    with pytest.raises(UntrustedError):
        read_text(path / "x/file.md")
    with pytest.raises(UntrustedError):
        write_atomic(path / "new/deeper/file.md", "mine")
    assert sorted(one.name for one in store.outside.rglob("*")) == ["file.md", "x"]


def test_a_link_through_a_link(store: Watched) -> None:
    """A link to a link that leads out is as good as that one."""
    (store.outside / "note.md").write_text("note", encoding="utf-8")
    first = store.link("users/ann/first", store.outside)
    second = store.link("users/ann/second", store.user / "first")
    assert not may_pass(second / "note.md")
    store.allow(first)
    assert read_text(second / "note.md") == "note"


def test_links_within_the_store_pass(store: Watched) -> None:
    """A link that stays below the root needs no trust, nor does one within a trusted directory."""
    write_atomic(store.root / "shared/facts.md", "facts")
    assert read_text(store.link("users/ann/facts.md", "../../shared/facts.md")) == "facts"
    (store.outside / "a").mkdir()
    (store.outside / "a/note.md").write_text("note", encoding="utf-8")
    (store.outside / "b").symlink_to("a")
    store.allow(store.link("users/ann/knowledge", store.outside))
    assert read_text(store.layout.of("ann").knowledge / "b/note.md") == "note"


def test_a_link_out_of_a_trusted_directory_is_another_link(store: Watched, tmp_path: Path) -> None:
    """What a trusted directory links to elsewhere has to be trusted by itself."""
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (store.outside / "note.md").symlink_to(tmp_path / "secret")
    store.allow(store.link("users/ann/knowledge", store.outside))
    with pytest.raises(UntrustedError):
        read_text(store.layout.of("ann").knowledge / "note.md")


def test_a_circle_passes_and_ends(store: Watched) -> None:
    """A link that leads to itself is left to whoever opens it; one to its own directory is followed once."""
    circle = store.link("users/ann/knowledge/circle.md", "circle.md")
    check_links(circle)
    store.link("users/ann/knowledge/a/again", "..")
    write_atomic(store.layout.of("ann").knowledge / "a/note.md", "note")
    notes = list_notes(str(store.layout.of("ann").knowledge))
    assert sorted(notes) == ["a/note.md", "circle.md"]


def test_linked_directories_of_knowledge(store: Watched) -> None:
    """Notes behind a trusted link are listed under it, once; an untrusted link is listed as unreadable."""
    (store.outside / "sub").mkdir()
    (store.outside / "sub/note.md").write_text("note", encoding="utf-8")
    (store.outside / "sub/back").symlink_to(store.outside)
    first = store.link("users/ann/knowledge/a", store.outside)
    store.link("users/ann/knowledge/b", store.outside)
    knowledge = str(store.layout.of("ann").knowledge)
    assert list_notes(knowledge) == {"a": False, "b": False}
    store.allow(first)
    assert list_notes(knowledge) == {"a/sub/note.md": True, "b": False}
    store.allow(store.root / "users/ann/knowledge/b")
    assert list_notes(knowledge) == {"a/sub/note.md": True}


def test_a_vault_in_the_place_of_knowledge(store: Watched) -> None:
    """knowledge/ itself may be a link: refused as a whole, then followed."""
    (store.outside / "note.md").write_text("note", encoding="utf-8")
    link = store.link("users/ann/knowledge", store.outside)
    assert list_notes(str(link)) == {"": False}
    store.allow(link)
    assert list_notes(str(link)) == {"note.md": True}


def test_dots_do_not_lead_out(store: Watched) -> None:
    """Names that stand in files and hold .. or begin with / are refused."""
    with pytest.raises(UntrustedError):
        read_text(store.user / "../../../outside/secret")
    for name in ("../x", "/etc/passwd", "a/../../x", "a\0b"):
        with pytest.raises(FileFormatError):
            below(store.user, name)
        with pytest.raises(FileFormatError):
            store.layout.of("ann").turn(1) / name


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_a_file_keeps_its_mode(mode: int, store: Watched) -> None:
    """What is replaced keeps its permissions; nobody else can read it in between."""
    path = store.layout.of("ann").preferences
    path.write_text("old", encoding="utf-8")
    path.chmod(mode)
    write_atomic(path, "new")
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("new", mode)


def test_a_link_is_written_through(store: Watched) -> None:
    """A trusted link stays a link: its target is replaced in one step and keeps its mode."""
    target = store.outside / "preferences.md"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o600)
    path = store.link("users/ann/preferences.md", "../../../outside/preferences.md")
    store.allow(path)
    inode = target.stat().st_ino
    write_atomic(path, "new")
    assert path.is_symlink()
    assert (target.read_text(encoding="utf-8"), target.stat().st_mode & 0o777) == ("new", 0o600)
    assert target.stat().st_ino != inode
    assert [one.name for one in store.outside.iterdir()] == ["preferences.md"]
    target.unlink()
    write_atomic(path, "again")
    assert (path.is_symlink(), target.read_text(encoding="utf-8")) == (True, "again")


def test_nothing_is_swept_behind_a_link(store: Watched) -> None:
    """What killed commands left goes with the next one that writes, but not behind a link that leads out."""
    left = store.outside / ".x.0123456789ab.panda.tmp"
    left.write_text("left", encoding="utf-8")
    own = store.user / ".x.0123456789ab.panda.tmp"
    own.write_text("left", encoding="utf-8")
    store.link("users/bob", store.outside)
    begin_writing(store.root)
    end_writing()
    assert (left.exists(), own.exists()) == (True, False)
