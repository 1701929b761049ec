"""Stores that earlier versions made open, validate, show and replay as is recorded, and a next turn works."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api import CASES, ModelServer, Panda, digest, unpack_store
from tests.make_stores import LINE, SAID, STORES, USER, asking, what_is_said
from tests.record_shapes import differences


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    """The model of every layer."""
    running = ModelServer(asking(LINE, "Harriet", "knowledge:Home/boiler.md"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what today's program says of each store, by its name."""
    return {name: what_is_said(name, tmp_path_factory.mktemp(name)) for name in STORES}


@pytest.mark.parametrize("words", SAID)
@pytest.mark.parametrize("name", STORES)
def test_what_is_said(name: str, words: str, current: dict[str, Any]) -> None:
    """Every value is as recorded; a change is a line of the changelog, and `python -m tests.make_stores`."""
    recorded = json.loads((CASES / "stores" / f"{name}.json").read_text(encoding="utf-8"))
    changed = differences(recorded[words], current[name][words])
    hint = "if it is meant, a line of CHANGELOG.md, then: python -m tests.make_stores"
    assert not changed, "\n".join([f"of the store of {name}, panda {words}:", *changed, hint])


@pytest.mark.parametrize("name", STORES)
def test_the_next_turn(name: str, tmp_path: Path, server: ModelServer) -> None:
    """A turn goes on in a session of then, finds the note of then, and leaves every older turn as it was."""
    panda = Panda(tmp_path / "project", unpack_store(name, tmp_path), user=USER)
    panda.write("models.yaml", server.models())
    turns = panda.store / "users" / USER / "turns"
    before = {path.name: digest(path) for path in turns.iterdir()}
    ended = panda.turn("And who serviced the boiler?", "--session", "tea", PANDA_NOW="2026-01-05T00:00:00Z")
    assert (ended.code, ended.data["status"]) == (0, "approved")
    assert LINE in ended.data["response"]
    assert {name: digest(turns / name) for name in before} == before
    assert panda.sessions_differ("tea") == []
    added = [line for line in panda.problems() if f"turn_{ended.data['turn']:06d}" in line]
    assert added == []


@pytest.mark.parametrize("name", STORES)
def test_reading_writes_nothing(name: str, tmp_path: Path) -> None:
    """Commands that only look leave the turns, memory and sessions of then byte for byte."""
    panda = Panda(tmp_path / "project", unpack_store(name, tmp_path), user=USER)
    before = digest(panda.store, "indexes")
    for words in ("list", "show 817", "session list", "memory list", "stats", "validate store", "log"):
        assert panda(*words.split()).code in (0, 3)
    assert digest(panda.store, "indexes") == before
