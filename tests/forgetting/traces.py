"""A project that was told something, with a cache of its own, and what its files still hold of a text."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.api import Panda

MARK = re.compile(r"\[forgotten \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\]")


def open_project(home: Path, user: str = "ann") -> Panda:
    """Return the project in a directory; its store and its cache are there or come to be there."""
    return Panda(home, user=user, XDG_CACHE_HOME=str(home / "cache"))


def make_project(home: Path, user: str = "ann") -> Panda:
    """Return a new project without a turn."""
    panda = open_project(home, user)
    panda.user_directory.mkdir(parents=True)
    return panda


def copy_project(source: Path, home: Path, user: str = "ann") -> Panda:
    """Return a copy of a project."""
    shutil.copytree(source, home, symlinks=True)
    return open_project(home, user)


def kept_files(panda: Panda) -> Iterator[Path]:
    """Yield every file of store and cache."""
    for place in (panda.store, panda.home / "cache"):
        for path in sorted(place.rglob("*")):
            if path.is_file():
                yield path


def holding(panda: Panda, *texts: str) -> list[str]:
    """Return the files of store and cache that hold one of the texts as it is, in lower case or in JSON."""
    forms = [form.encode() for text in texts for form in _forms(text)]
    return [str(path) for path in kept_files(panda) if any(form in path.read_bytes() for form in forms)]


def _forms(text: str) -> set[str]:
    coded = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return {text, text.lower(), *coded, *(json.dumps(form)[1:-1] for form in coded)}


def assert_sound(panda: Panda) -> None:
    """Check that nothing is wrong with the store, nothing is half done and no state of a model is left."""
    checked = panda("validate", str(panda.store), "--strict")
    assert checked.code == 0, checked.out
    assert panda("session", "verify").code == 0
    assert not (panda.store / "forgetting.json").exists()
    assert not list((panda.home / "cache").rglob("*.state"))


def say(panda: Panda, query: str, session: str = "talk") -> tuple[int, str]:
    """Return a turn's exit code and what it answers or asks."""
    ended = panda.turn(query, "--session", session)
    return ended.code, ended.data["response"] or ended.data["question"]
