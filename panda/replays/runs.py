"""The directory of a run: what was to be judged, one line a turn as it finishes, and what came of it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from panda import __version__
from panda.documents.problems import Verdict
from panda.documents.times import Clock, render_time
from panda.errors import ModelFileError, NotFoundError, UsageError
from panda.models.layers import EYES
from panda.recipes.book import RecipeBook
from panda.recipes.executor import Layers
from panda.recipes.versions import version_in_force
from panda.replays.outcomes import Outcome
from panda.replays.selection import TurnPlace
from panda.storage.files import append_json_line, read_json, read_json_lines, store_errors, write_json
from panda.storage.layout import RUN_JSON, RUN_TURNS_JSONL, Layout, turn_name
from panda.storage.schemas import check_json

RUN_SCHEMA = "panda.run/1"


@dataclass(frozen=True)
class TurnLine:
    """What came of one turn of a run."""

    turn: int
    """Its number."""
    user: str
    """Whose turn it is."""
    directory: str
    """The saved turn."""
    result: str
    """same, differs, halted, sound, unsound, not judged or error."""
    findings: tuple[str, ...] = ()
    """What is wrong, a line each."""
    different: Mapping[str, str] = field(default_factory=dict)
    """Documents that differ from the saved ones, with the difference."""
    misses: tuple[Mapping[str, str], ...] = ()
    """Calls that no recording answers."""
    outcome: Outcome | None = None
    """What the turn came to; None if that does not read."""

    @property
    def verdict(self) -> Verdict:
        """What the run says of the turn."""
        if self.result in ("not judged", "error"):
            return Verdict.NOT_JUDGED
        return Verdict.SOUND if self.result in ("same", "sound") else Verdict.UNSOUND

    @property
    def unfinished(self) -> str | None:
        """Why the turn has not come to an end that could be compared; None if it has."""
        if self.result == "halted" or self.outcome is None:
            return f"{self.result}: {self.findings[0]}" if self.findings else self.result
        return None

    def to_json(self) -> dict[str, Any]:
        """As it stands in turns.jsonl."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "TurnLine":
        """The line that a checked value holds."""
        outcome = Outcome.from_json(value["outcome"]) if value["outcome"] else None
        return cls(
            **{
                **value,
                "findings": tuple(value["findings"]),
                "misses": tuple(value["misses"]),
                "outcome": outcome,
            }
        )


def fingerprint(book: RecipeBook, layers: Layers) -> dict[str, object]:
    """
    What a run depends on: the version of the code, each recipe with its prompts, each layer's model.

    Args:
        book: Recipes and prompts in force.
        layers: Models by layer; each is loaded as far as its digest needs.
    """
    recipes, used = {}, set()
    for key in book.recipe_keys():
        recipes[key] = version_in_force(book, key).digest
        used.add(book.load_recipe(key).model_layer)
    models = {}
    for layer in sorted(used):
        with suppress(*([ModelFileError] if layer == EYES else [])):  # the only layer that may be unset
            info = layers.model(layer).info
            models[layer] = {"name": info.name, "digest": info.digest}
    return {"panda": __version__, "recipes": recipes, "models": models}


class RunFolder:
    """
    The files of one run.

    Args:
        directory: `runs/{id}`.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def id(self) -> str:
        """The run's id."""
        return self.directory.name

    @classmethod
    def create(
        cls,
        layout: Layout,
        clock: Clock,
        mode: str,
        places: Sequence[TurnPlace],
        *,
        fingerprint: Mapping[str, object],
        options: Mapping[str, object],
    ) -> "RunFolder":
        """
        Make the directory of a new run, and write down what it will do.

        Args:
            layout: The store it is kept in.
            clock: The present.
            mode: verify, simulate or rerun.
            places: The turns.
            fingerprint: As of the function of that name.
            options: Options of the command.

        Raises:
            UsageError: Two of the turns are of one user name and number, in two stores.
            StoreError: It cannot be written.
        """
        named = Counter((place.user, place.number) for place in places)
        if twice := [f"turn {number} of {user}" for (user, number), count in named.items() if count > 1]:
            raise UsageError(
                f"two stores have {twice[0]}, and a run holds each turn of a user once",
                where="SELECTION…",
                fix="replay one store after the other",
            )
        started = clock()
        name = f"{started:%Y%m%dT%H%M%SZ}-{mode}"
        with store_errors(layout.runs, "create"):
            layout.runs.mkdir(parents=True, exist_ok=True)
            directory, number = layout.runs / name, 1
            while True:
                try:
                    directory.mkdir()
                    break
                except FileExistsError:
                    number += 1
                    directory = layout.runs / f"{name}-{number}"
        plan = {
            "schema": RUN_SCHEMA,
            "id": directory.name,
            "mode": mode,
            "started_at": render_time(started),
            "finished_at": None,
            "turns": [{"turn": place.number, "user": place.user} for place in places],
            "fingerprint": dict(fingerprint),
            "options": dict(options),
            "results": None,
        }
        folder = cls(directory)
        folder._write(plan)
        return folder

    def kept_turn(self, user: str, number: int) -> Path:
        """Where the directory of a turn that was run goes."""
        return self.directory / "turns" / user / turn_name(number)

    def add(self, line: TurnLine) -> None:
        """
        Add the line of a turn that has finished.

        Raises:
            StoreError: It cannot be written.
        """
        value = json.loads(json.dumps(line.to_json()))
        check_json(RUN_TURNS_JSONL, value, str(self.directory / RUN_TURNS_JSONL))
        append_json_line(self.directory / RUN_TURNS_JSONL, value)

    def finish(self, clock: Clock) -> None:
        """
        Write down what came of the run.

        Raises:
            StoreError: It cannot be written.
        """
        results = dict(Counter(line.result for line in self.lines()))
        self._write({**self.plan(), "finished_at": render_time(clock()), "results": results})

    def plan(self) -> dict[str, Any]:
        """
        What the run was to do, and what came of it.

        Raises:
            FileFormatError: run.json is damaged.
        """
        path = self.directory / RUN_JSON
        value = read_json(path)
        check_json(RUN_JSON, value, str(path))
        assert isinstance(value, dict)
        return value

    def lines(self) -> Iterator[TurnLine]:
        """
        The turns that have finished, by number; a last line that a crash cut short is left out.

        Raises:
            FileFormatError: A line is damaged.
        """
        path = self.directory / RUN_TURNS_JSONL
        for number, value in enumerate(read_json_lines(path) if path.exists() else [], 1):
            check_json(RUN_TURNS_JSONL, value, f"{path}:{number}")
            yield TurnLine.from_json(value)

    def _write(self, value: Mapping[str, object]) -> None:
        check_json(RUN_JSON, value, str(self.directory / RUN_JSON))
        write_json(self.directory / RUN_JSON, value)


def open_run(layout: Layout, name: str) -> RunFolder:
    """
    A run by its id or its directory; "last" is the newest.

    Raises:
        NotFoundError: There is none.
    """
    files = sorted(layout.runs.glob(f"*/{RUN_JSON}"), key=lambda path: path.stat().st_mtime_ns)
    runs = [path.parent for path in files]
    directory = runs[-1] if name == "last" and runs else layout.runs / name
    for path in (directory, Path(name)):
        if (path / RUN_JSON).is_file():
            return RunFolder(path)
    known = (
        f"the newest are {', '.join(path.name for path in runs[-3:])}" if runs else "run panda replay first"
    )
    raise NotFoundError(f"there is no run {name!r}", where=str(layout.runs), fix=known)
