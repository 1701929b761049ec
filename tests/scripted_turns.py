"""Whole turns on a small store, with models whose replies are scripted by step of the pipeline."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from panda.app import App
from panda.choosing.ask import read_examples
from panda.errors import Problem
from panda.models.contract import Encoder, ScoreCase
from panda.models.layers import Layers
from panda.phases.turn import Turn
from panda.settings import load_settings
from panda.store.layout import Layout, UserStore, asset
from panda.store.records import Metadata
from panda.store.turns import TurnFolder
from panda.store.validate import check_store
from panda.trust import open_layers
from tests.api import LAPTOPS
from tests.script import Script, step_of
from tests.scripted_model import Asked, Reply, ScriptedModel
from tests.store_files import NOW

USER = "ann"


def still_clock() -> datetime:
    """The present of all tests."""
    return NOW


@pytest.fixture(scope="module")
def layers() -> Iterator[Layers]:
    """The embedded models, loaded once."""
    settings = load_settings({}, os.environ, Path.cwd())
    with open_layers(settings, os.environ) as loaded:
        yield loaded


class Preferring:
    """
    Log-probabilities for a model that only scores.

    Args:
        preferred: Classes of the scorers' prompt files, and parts of evidence, that score well.
    """

    def __init__(self, *preferred: str) -> None:
        self._preferred = preferred
        self._classes: dict[str, list[str]] = {}
        for path in sorted((asset("prompts") / "pipeline").glob("*.md")):
            text = path.read_text(encoding="utf-8")
            for name, items in read_examples(text, path.name).items() if text.startswith("# ") else ():
                lines = "".join(f"Message: {line}\n" for line in items)
                self._classes.setdefault(lines, []).append(name)

    def __call__(self, asked: Asked) -> Sequence[float]:
        return [self._value(asked.prefix, case) for case in asked.cases]

    def _value(self, prefix: str, case: ScoreCase) -> float:
        told = case.context + "\n" + "\n".join(self._classes.get(prefix, ()))
        words = len(case.continuation.split())
        return -1.0 * words if any(text in told for text in self._preferred) else -9.0 * words


@dataclass(frozen=True)
class OneModel:
    """Layers that all have the same model."""

    scripted: ScriptedModel
    """The model."""
    encodes: Encoder | None = None
    """What turns texts into vectors."""
    sees: bool = False
    """Whether EYES is among them."""

    def model(self, layer: str) -> ScriptedModel:
        """The one model."""
        return self.scripted

    def release(self, layer: str) -> None:
        """Nothing is loaded."""

    def encoder(self) -> Encoder | None:
        """The encoder, if there is one."""
        return self.encodes


@dataclass(frozen=True)
class Ran:
    """What a turn left behind."""

    app: App
    """What ran it."""
    turn: Turn
    """The turn."""
    error: Problem | None
    """What halted it."""
    model: ScriptedModel
    """Everything that was asked."""
    layout: Layout = field(init=False)
    """The store."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "layout", self.app.store)

    @property
    def folder(self) -> TurnFolder:
        """The turn's files."""
        return self.turn.folder

    @property
    def metadata(self) -> Metadata:
        """metadata.json."""
        return self.folder.read_metadata()

    @property
    def problems(self) -> list[Problem]:
        """What `panda validate` would find in the store."""
        return check_store(self.layout)

    @property
    def response(self) -> str:
        """response.md."""
        return self.folder.read_text("response.md")

    def body(self, number: int) -> str:
        """Text of a section of context.md."""
        section = self.folder.read_context().section(number)
        return section.text if section else ""

    def meta(self, number: int) -> Mapping[str, Any]:
        """First `_meta` of a section of context.md."""
        section = self.folder.read_context().section(number)
        return section.meta if section else {}

    def sections(self) -> list[int]:
        """Numbers of the sections of context.md."""
        return [section.number for section in self.folder.read_context().sections]

    def asked(self, step: str) -> list[Asked]:
        """What a model that writes was asked at a step."""
        return [asked for asked in self.model.asked if not asked.is_score and step_of(asked) == step]

    def interventions(self) -> list[dict[str, Any]]:
        """All intervention files."""
        return [json.loads(path.read_text()) for path in sorted(self.layout.interventions.glob("*.json"))]


def laptop_store(root: Path) -> Layout:
    """User ann: a turn that found a laptop, its visit, her budget, and a turn about tea."""
    shutil.copytree(LAPTOPS, root, dirs_exist_ok=True)
    root.chmod(0o700)  # as panda makes it, however a checkout was made
    return Layout(root)


def scripted_app(
    layout: Layout,
    model: ScriptedModel,
    *,
    session: str = "default",
    project: Path | None = None,
    encoder: Encoder | None = None,
) -> App:
    """The program for user ann at a fixed time, with this model in every layer, in a project's directory."""
    given = {"root": str(layout.root), "user": USER, "session": session, "now": NOW, "trust": True}
    settings = load_settings(given, {"HOME": "/nowhere"}, project or layout.root)
    return App(settings, settings.store, OneModel(model, encoder))


def run_turn(
    layout: Layout,
    query: str = "How much is the Lenovo LOQ 15?",
    answer: Callable[[Asked], Reply | None] | None = None,
    *,
    writes: bool = True,
    scores: bool = False,
    session: str = "default",
    model: Any = None,
    project: Path | None = None,
    encoder: Encoder | None = None,
) -> Ran:
    """
    One turn to its end.

    Args:
        layout: The store.
        query: The query.
        answer: Script or Preferring; None is the script of an approved turn.
        writes: Whether the model writes.
        scores: Whether it scores.
        session: Session of the turn.
        model: Asked instead of a scripted one.
        project: Directory of the project; None is the store.
        encoder: Turns texts into vectors; without one words decide.
    """
    model = model or ScriptedModel(answer or Script(), writes=writes, scores=scores)
    app = scripted_app(layout, model, session=session, project=project, encoder=encoder)
    turn = app.start_turn(query, "chat")
    try:
        app.run_turn(turn)
    except Problem as exc:
        return Ran(app, turn, exc, model)
    return Ran(app, turn, None, model)


def open_turn(layout: Layout, number: int) -> TurnFolder:
    """The files of one of ann's turns."""
    return UserStore(layout.root, USER, still_clock).open(number)
