"""Small recipe books in a temporary directory, and a journal that keeps what it is told."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panda.documents.records import encode
from panda.errors import HaltError
from panda.models.contract import Model
from panda.recipes.book import RecipeBook
from panda.recipes.calls import Recordings
from panda.recipes.executor import RecipeExecutor
from panda.recipes.messages import Request
from panda.recipes.plan import CallPlan, Capability, compile_call
from panda.recipes.recipe import Recipe, parse_recipe
from panda.store.layout import asset
from panda.store.records import ModelCall
from tests.builders import still_clock
from tests.scripted_model import ScriptedModel

CLASSES = """# yes
- Do it.
- Go on.

# no
- Stop.
"""

PROMPTS = {"judge.md": "You judge.\n\n# Task\nJudge.", "classes.md": CLASSES}


def recipe_values(**changes: object) -> dict[str, Any]:
    """A recipe that is right, with a text and a choice; a key that is given as None is left out."""
    values: dict[str, Any] = {
        "name": "judge",
        "description": "Judges.",
        "model_layer": "MIND",
        "token_budget": {"total": 1000, "prompt": 300, "input": 500, "output": 100},
        "prompt_files": ["tests/judge.md"],
        "output_format": "json",
        "output_schema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["verdict", "why"],
            "properties": {"why": {"type": "string"}, "verdict": {"enum": ["yes", "no"]}},
        },
        "templates": {"why": "Because of “{{query}}”."},
    }
    return {key: value for key, value in {**values, **changes}.items() if value is not None}


def parsed(**changes: object) -> Recipe:
    """The recipe of recipe_values with changes."""
    return parse_recipe(json.dumps(recipe_values(**changes)), path=Path("r.yaml"), key="tests/judge")


def planned(capability: Capability = "writes", /, **changes: object) -> CallPlan:
    """The call of that recipe under a capability."""
    return compile_call(parsed(**changes), capability)


def schema_of(**properties: object) -> dict[str, Any]:
    """An output schema with these properties, all required."""
    return {"type": "object", "required": list(properties), "properties": properties}


def write_recipe(root: Path, name: str = "judge", /, **changes: object) -> Path:
    """Write recipes/tests/{name}.yaml below *root* and return it."""
    path = root / "recipes" / "tests" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(recipe_values(**changes), indent=1, ensure_ascii=False), encoding="utf-8")
    return path


def write_book(root: Path, /, **changes: object) -> RecipeBook:
    """A book with the recipe tests/judge, its prompts, and what is packaged."""
    write_recipe(root, **changes)
    prompts = root / "prompts" / "tests"
    prompts.mkdir(parents=True, exist_ok=True)
    for name, text in PROMPTS.items():
        (prompts / name).write_text(text, encoding="utf-8")
    return RecipeBook([root / "recipes", asset("recipes")], [root / "prompts", asset("prompts")])


@dataclass
class ListJournal:
    """A turn's record of its calls, in lists."""

    user_id: str = "ann"
    session_id: str = "default"
    turn: int = 7
    phase: int = 6
    most: int = 25
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    executions: list[str] = field(default_factory=list)
    prefixes: set[str] = field(default_factory=set)
    recordings: Recordings = field(default_factory=lambda: Recordings([]))

    def seed(self, recipe: str, attempt: int) -> int:
        """Another seed for each attempt."""
        return 100 + attempt

    def count_execution(self, recipe: str) -> None:
        """Count, up to `most`."""
        self.executions.append(recipe)
        if len(self.executions) > self.most:
            raise HaltError("too many executions")

    def add_call(self, call: ModelCall) -> None:
        """Keep its line."""
        self.calls.append(encode(call))

    def knows_prefix(self, digest: str) -> bool:
        """Whether it was asked for before."""
        known = digest in self.prefixes
        self.prefixes.add(digest)
        return known


@dataclass(frozen=True)
class OneModel:
    """Every layer has the same model, but NERVES one that does not write."""

    only: Model
    sees: bool = False

    def model(self, layer: str) -> Model:
        """The model, whatever the layer."""
        return ScriptedModel(lambda asked: None, writes=False) if layer == "NERVES" else self.only

    def release(self, layer: str) -> None:
        """Nothing is loaded."""

    def encoder(self) -> None:
        """There is none."""


@dataclass
class Runner:
    """Executes tests/judge with one model."""

    book: RecipeBook
    model: Model
    journal: ListJournal = field(default_factory=ListJournal)
    log: list[Mapping[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.executor = RecipeExecutor(
            self.book, OneModel(self.model), clock=still_clock, log=lambda line: self.log.append(encode(line))
        )

    def run(self, **request: Any) -> Any:
        """The reply to a request; the query is "Is it so?" unless given."""
        asked = Request(**{"query": "Is it so?", **request})
        return self.executor.execute("tests/judge", asked, self.journal)
