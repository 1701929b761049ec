"""What panda remembers is for its user alone; what the user names for output follows the umask."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.api import LAPTOPS, ModelServer, Panda, make_demo

OPEN_UMASKS = (0o000, 0o022)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Let new files of this process and of those that it starts have a umask."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes(directory: Path) -> dict[str, str]:
    """The permissions of a directory and of all that lies below it, by path, without links."""
    paths = [directory, *sorted(directory.rglob("*"))]
    return {str(path): oct(path.lstat().st_mode & 0o777) for path in paths if not path.is_symlink()}


def exposed(directory: Path) -> list[str]:
    """Each path at or below a directory that is not 0600 for a file, 0700 for a directory."""
    modes_by_path = modes(directory)
    return [
        path for path in modes_by_path if modes_by_path[path] != ("0o700" if Path(path).is_dir() else "0o600")
    ]


@pytest.mark.parametrize("mask", OPEN_UMASKS, ids=oct)
def test_a_store_is_private_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    """Turns, memory, sessions, logs, indexes, runs, interventions and the cache are for their user alone."""
    server = ModelServer()
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann", XDG_CACHE_HOME=str(tmp_path / "cache"))
    for path in [panda.store, *panda.store.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    panda.write("models.yaml", server.models().replace("encoder: null", ""))
    panda.write("queries.jsonl", '{"id": "loq", "query": "How much is the Lenovo LOQ 15?"}\n')
    with closing(server), umask(mask):
        assert panda("memory", "set", "tea", "Assam").code == 0
        assert panda.turn("How much is the Lenovo LOQ 15?").code == 0
        assert panda("batch", "queries.jsonl", "--save").code in (0, 3)
        server.script = lambda asked: "no reply of any schema"
        assert panda.turn("How much is the Lenovo LOQ 15?").code == 20
        assert panda("import", "--dry-run", "queries.jsonl").code != 1
        assert panda("index", "rebuild").code == 0
    names = {path.relative_to(panda.store).parts[0] for path in panda.store.rglob("*")}
    assert {"users", "runs", "indexes", "interventions", "logs"} <= names
    assert exposed(panda.store) == []
    assert exposed(tmp_path / "cache" / "panda") == []


def test_the_demo_is_private(tmp_path: Path) -> None:
    """The copy that `init --demo` makes is for its user alone too."""
    with umask(0o022):
        make_demo(tmp_path / "demo")
    assert exposed(tmp_path / "demo") == []


def test_a_process_of_its_own_is_private_too(tmp_path: Path) -> None:
    """Files are private for a command that a shell starts too."""
    panda = Panda(tmp_path / "project")
    with umask(0o000):
        assert panda.process("init").code == 0
        assert panda.process("memory", "set", "tea", "Assam").code == 0
    assert exposed(panda.store) == []


def test_files_of_the_user_keep_their_modes(tmp_path: Path) -> None:
    """preferences.md that its user shares stays shared when panda writes into it."""
    panda = Panda(tmp_path / "project")
    assert panda("init").code == 0
    assert panda("memory", "set", "tea", "Assam").code == 0
    preferences = panda.store / "users/default/preferences.md"
    preferences.chmod(0o644)
    assert panda("memory", "set", "coffee", "none").code == 0
    assert "coffee" in preferences.read_text(encoding="utf-8")
    assert oct(preferences.stat().st_mode & 0o777) == "0o644"


def test_output_follows_the_umask(demo: Path, tmp_path: Path) -> None:
    """Pages, exports and ejected recipes are shared as the umask says, on directories too."""
    panda = Panda(tmp_path / "project", store=demo, user="demo")
    user = next(path.name for path in (panda.store / "users").iterdir() if path.is_dir())
    with umask(0o027):
        for words in (
            ("view", "--out", "pages"),
            ("export", "1-999", "--as", "jsonl", "--out", "turns.jsonl"),
            ("recipe", "eject", "pipeline/phase1_reflection"),
        ):
            assert panda(*words, PANDA_USER=user).code == 0, words
    modes_by_path = modes(panda.home / "pages") | modes(panda.home / "recipes")
    assert {mode for path, mode in modes_by_path.items() if Path(path).is_file()} == {"0o640"}
    assert {mode for path, mode in modes_by_path.items() if Path(path).is_dir()} == {"0o750"}
    assert oct((panda.home / "turns.jsonl").stat().st_mode & 0o777) == "0o640"
