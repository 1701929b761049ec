"""What people say to a store of notes and what comes of it: the table said.yaml, with the embedded models."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api import CASES, Panda
from tests.effort import tried

TABLE: dict[str, Any] = yaml.safe_load((CASES / "said.yaml").read_text(encoding="utf-8"))
EVERY = tried(2, 1)
"""Every how many-th example is tried."""
TRIED = [
    pytest.param(name, marks=[pytest.mark.xfail(reason=example["open"])] if "open" in example else [])
    for name, example in TABLE["examples"].items()
][::EVERY]


def faults(panda: Panda, example: dict[str, Any]) -> list[str]:
    """Say what an example says, in a store of its own, and tell what is wrong with what comes of it."""
    assert panda("init").code == 0
    user = panda.store / "users" / "default"
    for name, text in TABLE["stores"].get(example.get("store"), {}).items():
        path = user / "knowledge" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for before in example.get("before", ()):
        panda.turn(before, "--session", "talk")
    ended = panda.turn(example["say"], "--session", "talk")
    if ended.code != example.get("code", 0):
        return [f"ended {ended.code}: {ended.out[:300]}"]
    answer = (ended.data["response"] or ended.data["question"]).lower()
    wrong = [f"lacks {part!r}" for part in example.get("holds", ()) if part.lower() not in answer]
    wrong += [f"holds {part!r}" for part in example.get("lacks", ()) if part.lower() in answer]
    noted = [note["text"] for note in ended.data["noted"]]
    if "kept" in example and len(noted) != len(example["kept"]):
        wrong.append(f"noted {noted}")
    wrong += [
        f"noted {note_text!r}"
        for note_text, text in zip(noted, example.get("kept", ()), strict=False)
        if text not in note_text
    ]
    for part in example.get("gone", ()):
        files = (path for path in user.rglob("*") if path.is_file() and "knowledge" not in path.parts)
        wrong += [f"{path.name} holds {part}" for path in files if part.encode() in path.read_bytes()]
    return [*wrong, f"said: {answer}"] if wrong else []


@pytest.mark.parametrize("name", TRIED)
def test_what_is_said(name: str, tmp_path: Path) -> None:
    """A message is answered, asked back, carried out or kept as the table says."""
    panda = Panda(tmp_path / "project", PANDA_NOW="2026-11-23T10:00:00Z")
    assert faults(panda, TABLE["examples"][name]) == []
