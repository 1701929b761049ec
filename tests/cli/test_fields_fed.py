"""
Every text of a store's records that sounds like an id or a path, fed with what leads elsewhere, through every
command that reads it.

What is fed is found by walking the files of a project; that every id of the published schemas is among it is
tested too. `PANDA_TEST_ALL=1` feeds every field with every value through every command; else a seeded sample.
"""

import dataclasses
import json
import random
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.api import Ended, ModelServer, Panda, tree
from tests.effort import tried
from tests.make_stores import asking
from tests.outside import Outside, leaks, link
from tests.store_files import write_json

SOUNDS = re.compile(
    r"(.*_)?(ids?|paths?|files?|directory|root|target|session|user|turn|run|item|image|artifacts|interventions?)"
)
"""What a field is called that holds an id or a path."""
QUERY = "What about laptops?"
LINE = "What to look at before buying a gaming laptop for less than $1000."
NOTE = "knowledge:Research/budget_gaming_laptops.md"
RECIPE = "pipeline/phase5_synthesizer_chat"
EVERY = (
    *("list", "list --user bob", "session list", "stats", "log --json", "intervention list --all"),
    *(
        "memory list",
        "index rebuild",
        "index search -- laptops",
        "validate store",
        "export 811-816 --as jsonl",
    ),
)
"""What reads many records."""
TURNS = (
    *("show 811 --json", "show 816", "turn --discard 816", "diff saved last", "forget 814 --yes"),
    *("forget budget --yes", "replay 813", f"turn -c -- {QUERY}", "turn --resume 816"),
)
SESSIONS = (
    *("session show default", "session verify", "session close default", "export 811-816 --as queries"),
    *(f"turn --session default -- {QUERY}", f"turn -c -- {QUERY}"),
)
RUNS = (
    *("diff saved last", "diff last last", "replay --resume 0fed", "batch --resume last", "view --out pages"),
)
READ_BY: Mapping[str, Sequence[str]] = {
    "metadata.json": (*TURNS, *SESSIONS, *RUNS),
    **dict.fromkeys(("step_01.json", "image.json"), TURNS),
    **dict.fromkeys(("session.json", "closed.json"), SESSIONS),
    **dict.fromkeys(("run.json", "turns.jsonl"), RUNS),
    "interventions": (
        *("intervention show stop", "intervention resolve stop --note done", "turn --resume 816"),
    ),
    "recipes": (f"recipe history {RECIPE}", f"recipe eject {RECIPE} --version VERSION"),
    "out.jsonl": ("import out.jsonl", "import out.jsonl --new-user"),
    "out.queries": ("batch out.queries --jobs 1", "batch out.queries --dry-run"),
    "executions.jsonl": (
        *("log --json", "stats", "stats --json", "view --out pages", f"recipe failures {RECIPE}"),
    ),
}
"""What else reads a kind of file; one that is not named is read by every command here."""
EVERYTHING = tuple(dict.fromkeys((*EVERY, *(line for lines in READ_BY.values() for line in lines))))
VALUES = ("absolute", "up", "linked", "foreign", "a\0b", "a\nb")
CODES = {0, 2, 3, 4, 20, 21, 22, 74, 75}
"""How a command may end; 1 is a bug of the program."""
TELLING = ("import out.jsonl", "import out.jsonl --new-user", "batch out.queries --jobs 1")
"""What may write for a user that its file names."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One text of a JSON file of the project."""

    file: str
    line: int
    """Of a file of lines, from 0."""
    place: tuple[str | int, ...]
    """Keys and positions in the value."""

    @property
    def kind(self) -> str:
        """Return the kind of the file, whatever its id."""
        path = Path(self.file)
        folders = [name for name in ("interventions", "recipes") if name in path.parts[:-1]]
        return folders[0] if folders else path.name

    @property
    def key(self) -> str:
        """The nearest key."""
        return next(str(key) for key in reversed(self.place) if isinstance(key, str))

    @property
    def name(self) -> str:
        """Return the name of the field, the same in all files of its kind."""
        return ".".join([self.kind, *(key for key in self.place if isinstance(key, str))])

    def put(self, project: Path, value: str) -> None:
        """Replace the text."""
        path = project / self.file
        lines = path.read_text().split("\n") if path.suffix != ".json" else [path.read_text()]
        record = json.loads(lines[self.line])
        holder: Any = record
        for key in self.place[:-1]:
            holder = holder[key]
        holder[self.place[-1]] = value
        record.pop("seal", None)
        lines[self.line] = json.dumps(record)
        path.write_text("\n".join(lines))


def places_of(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the places of texts in a JSON value."""
    if isinstance(value, str) and place:
        yield place
    elif isinstance(value, list | dict):
        parts: Iterable[tuple[str | int, Any]] = (
            value.items() if isinstance(value, dict) else enumerate(value)
        )
        for key, part in parts:
            if key != "seal":
                yield from places_of(part, (*place, key))


def fields_of(project: Path) -> list[Field]:
    """The first text of each name."""
    fields: dict[str, Field] = {}
    for path in sorted(project.rglob("*")):
        if path.suffix not in (".json", ".jsonl", ".queries") or not path.is_file():
            continue
        text = path.read_text()
        for number, line in enumerate([text] if path.suffix == ".json" else text.split("\n")):
            if not line.strip():
                continue
            for place in places_of(json.loads(line)):
                field = Field(path.relative_to(project).as_posix(), number, place)
                fields.setdefault(field.name, field)
    return list(fields.values())


def sounds(field: Field) -> bool:
    """Return whether a field is to be fed by itself."""
    return SOUNDS.fullmatch(field.key) is not None


def change(path: Path, **changes: Any) -> None:
    """Put other values into a JSON file."""
    write_json(path, {**json.loads(path.read_text()), **changes})


CACHED = json.loads("""
{"turn": 811, "step": 1, "tool": "doc.search", "call": "0000000000000000", "asked": "laptops",
 "outcome": "one", "record_count": 1, "detail": "full", "path": "turns/turn_000811/steps/step_01.json"}
""")
ARCHIVED = json.loads("""
{"key": "t811_s1_text_1", "turn": 811, "step": 1, "type": "text", "description": "what was found",
 "path": "turns/turn_000811/steps/made_01.txt", "chars": 4, "cut": false}
""")
IMAGE = json.loads("""
{"file": "images/0123456789abcdef.png", "media_type": "image/png", "bytes": 9, "width": 1, "height": 1,
 "description": "tea", "recipe": "a/b", "layer": "EYES", "model": "m"}
""")
IMAGE |= {"recipe": RECIPE, "sha256": "0" * 64, "model_digest": "0" * 64}
INTERVENTION = json.loads("""
{"schema": "panda.intervention/1", "id": "stop", "created_at": "2026-01-04T14:30:00Z", "user_id": "demo",
 "turn": 816, "phase": 5, "recipe": "a/b", "type": "halt", "severity": "high", "message": "it halted",
 "where": "context.md", "expected": null, "received": null, "raw_output": null, "what_to_do": null,
 "details": {}, "status": "open", "resolved_at": null, "resolution": null}
""")
INTERVENTION |= {"recipe": RECIPE}


@pytest.fixture(scope="module")
def fed(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project whose store has every record: turns, sessions, runs, an intervention, a log, versions."""
    panda = Panda(tmp_path_factory.mktemp("fed") / "project", recorded, user="demo")
    store = panda.store
    turns = panda.user_directory / "turns"
    for path in turns.iterdir():
        if path.name not in ("turn_000811", "turn_000813", "turn_000814", "turn_000816"):
            shutil.rmtree(path)
    mine = {"user": "demo", "at": "2025-01-04T14:30:00Z", "query": "Which tea?", "response": "Green tea."}
    theirs = {**mine, "user": "bob", "session": "theirs", "query": "Which cake?"}
    asked = {"query": QUERY, "user": "demo", "session": "s2"}
    panda.write_lines("out.jsonl", {**mine, "session": "s1"}, theirs)
    panda.write_lines("out.queries", {"id": "one", **asked}, {"id": "two", **asked})
    with closing(ModelServer(asking(LINE, LINE[:20], NOTE))) as server:
        panda.write("models.yaml", server.models())
        for line in (
            *("import out.jsonl --new-user", "session close s1", "replay 813"),
            *("batch out.queries --save --limit 1", "memory set budget 700", "memory set other x"),
        ):
            assert panda(*line.split()).code in CODES, line
        unsaved = {"saved_at": None, "seal": None, "status": "halted", "intervention": "stop"}
        change(turns / "turn_000816/metadata.json", **unsaved, next={"phase": 5, "round": 0, "attempt": 0})
        (panda.user_directory / "sessions/default/session.json").unlink(missing_ok=True)
        panda.write_lines("gap.jsonl", {**mine, "session": "default", "turn": 812})
        assert panda("import", "gap.jsonl").code == 0
        (panda.home / "gap.jsonl").unlink()
        session_file = panda.user_directory / "sessions/default/session.json"
        session = json.loads(session_file.read_text())
        session["carry"] |= {"step_cache": [CACHED], "content_archive": {"entries": [ARCHIVED], "evicted": 0}}
        write_json(session_file, {key: value for key, value in session.items() if key != "seal"})
        image = {"run": "r", "item": "i", "image": IMAGE["file"], "seal": None}
        change(turns / "turn_000814/metadata.json", **image)
        write_json(turns / "turn_000814/image.json", IMAGE)
        wish = {"mood": "orders", "forgets": True, "forget": ["memory:budget"]}
        change(turns / "turn_000814/query_analysis.json", reading=wish)
        change(turns / "turn_000811/steps/step_01.json", artifacts=["steps/made_01.txt"])
        (turns / "turn_000811/steps/made_01.txt").write_text("tea\n")
        run = next(path for path in sorted((store / "runs").iterdir()) if "-batch" not in path.name)
        shutil.copytree(run, store / "runs/0fed")
        change(store / "runs/0fed/run.json", id="0fed", finished_at=None, results=None)
        (store / "runs/0fed/turns.jsonl").unlink()
        plan = json.loads((run / "run.json").read_text())
        change(run / "run.json", turns=[{**plan["turns"][0], "root": str(store), "session": "default"}])
        (store / "interventions").mkdir(exist_ok=True)
        write_json(store / "interventions/stop.json", INTERVENTION)
        foreign = {**INTERVENTION, "id": "theirs", "user_id": "bob", "turn": 1}
        write_json(store / "interventions/theirs.json", foreign)
        conflict = {
            "conflict_id": "c",
            "fact_a": "a",
            "fact_b": "b",
            "status": "resolved",
            "resolution_fact": "a",
        }
        with (panda.user_directory / "conflicts.jsonl").open("a") as file:
            file.write(json.dumps(conflict) + "\n")
        assert panda("index", "rebuild").code in (0, 3)
        yield panda.home


OTHER = "other/users/demo"
AIMS: Mapping[str, tuple[str, str, str]] = {
    "user": (OTHER, "linked", "bob"),
    "session": (f"{OTHER}/sessions/default", "linked", "theirs"),
    "run": ("other/runs/0fed", "linked", "0fed"),
    "intervention": ("other/interventions/stop", "linked", "theirs"),
    "directory": (f"{OTHER}/turns/turn_000813", "turn_999999", "turn_000001"),
    "root": ("other", "{store}/linked", "{store}/users/bob"),
    "image": ("secret.json", "images/aaaaaaaaaaaaaaaa.png", "images/bbbbbbbbbbbbbbbb.png"),
    "recipe": ("other/logs/recipes", "linked", "pipeline/phase3_planner_chat"),
}
"""By what an id means: what of it is outside, and what names a link or somebody else's."""
FILES = ("secret.json", "linked/secret.json", "turns/turn_000813/metadata.json")
MEANINGS = {"run.json": "run", "interventions": "intervention", "image.json": "image", "recipes": "recipe"}
"""What a bare `id`, or a file of an image, means by where it stands."""
LINKS = {
    "linked": "other",
    "users/linked": OTHER,
    "users/demo/sessions/linked": f"{OTHER}/sessions/default",
    "runs/linked": "other/runs/0fed",
    "interventions/linked.json": "other/interventions/stop.json",
    "users/demo/linked": "",
    "users/demo/turns/turn_000811/linked": "",
    "logs/recipes/linked": "",
    "users/demo/turns/turn_999999": f"{OTHER}/turns/turn_000813",
    "users/demo/turns/turn_000814/images/aaaaaaaaaaaaaaaa.png": "secret.json",
}


class Eaten:
    """Copies of a project that are fed, beside a tree outside, and what commands made of them."""

    def __init__(self, place: Path, source: Path) -> None:
        self.outside = Outside(place / "outside", source / "store")
        self.panda = Panda(
            place / "project", user="demo", PANDA_TRUST="", XDG_STATE_HOME=str(place / "state")
        )
        self.source = source
        self.version = next((source / "store/logs/recipes" / RECIPE).glob("*.json")).stem
        self.lay(is_linked=False)
        assert self.panda("trust").code == 0  # models.yaml names a server

    def lay(self, *, is_linked: bool) -> None:
        """Lay the project out anew."""
        shutil.rmtree(self.panda.home, ignore_errors=True)
        shutil.copytree(self.source, self.panda.home, symlinks=True)
        for path in (self.panda.store / "runs").glob("*/run.json"):
            text = path.read_text()
            path.write_text(text.replace(f'"{self.source / "store"}"', json.dumps(str(self.panda.store))))
        if is_linked:
            for name, target in LINKS.items():
                link(self.panda.store / name, self.outside.place / target)

    def value_of(self, kind: str, field: Field) -> str:
        """A value of a kind, as fits what the field means."""
        word = field.key.removesuffix("_id")
        meaning = MEANINGS.get(field.kind, word) if word in ("id", "file") else word
        aim, linked, foreign = AIMS.get(meaning, FILES)
        target = str(self.outside.place / aim)
        values = {"absolute": target, "up": f"{'../' * 40}{target}", "linked": linked, "foreign": foreign}
        return values.get(kind, kind).replace("//", "/").replace("{store}", str(self.panda.store))

    def check(self, line: str, about: str) -> Ended:
        """Run a command: it is no bug, tells and touches nothing outside, nor what is somebody else's."""
        words, _, query = line.replace("VERSION", self.version).partition(" -- ")
        theirs = tree(self.panda.store / "users/bob")
        arguments = words.split()
        if query:
            arguments += ["--", query]
        ended = self.panda(*arguments)
        about = f"{about}: panda {line}\n{ended.err}"
        assert ended.code in CODES, about
        assert "Traceback" not in ended.err, about
        assert leaks(self.panda, ended) == [], about
        assert self.outside.changes() == [], about
        if line not in TELLING:
            assert tree(self.panda.store / "users/bob") == theirs, about
        return ended


def test_every_published_id_is_fed(fed: Path) -> None:
    """Whatever a schema checks by a pattern stands in the project that is fed, under its name."""
    panda = Panda(fed)
    patterns: set[str] = set()
    for row in panda("schema").rows:
        schema = panda("schema", row.split("\t")[0]).out
        definitions = json.loads(schema)["$defs"].values()
        properties = (item for definition in definitions for item in definition.get("properties", {}).items())
        checked = (name for name, part in properties if '"pattern"' in json.dumps(part))
        patterns.update(name for name in checked if SOUNDS.fullmatch(name))
    keys = {field.key for field in fields_of(fed)} | {"files"}  # of snapshot.json: digests by two names
    assert patterns <= keys, sorted(patterns - keys)


def test_every_command_ends_well(fed: Path, tmp_path: Path) -> None:
    """
    The files that are fed below are read: without anything that leads elsewhere no command refuses its
    project.
    """
    eaten = Eaten(tmp_path, fed)
    refused = {}
    for line in EVERYTHING:
        eaten.lay(is_linked=False)
        ended = eaten.check(line, "nothing")
        if ended.code not in (0, 3):
            refused[line] = ended.err.splitlines()[-4:]
    assert not refused, json.dumps(refused, indent=1)


def drawn_cases(fields: Sequence[Field]) -> Iterator[tuple[Field, str, str]]:
    """Fields with values, each with a command that reads it; all of them if everything is tried."""
    chance = random.Random(29)
    by_kind: dict[str, Iterator[str]] = {}
    for field in filter(sounds, fields):
        lines = list(dict.fromkeys((*READ_BY.get(field.kind, EVERYTHING), *EVERY)))
        rotation = by_kind.setdefault(field.kind, cycle(lines))
        for value in chance.sample(VALUES, tried(1, len(VALUES))):
            drawn = lines if tried(0, 1) else [next(rotation)]
            for line in drawn:
                yield field, value, line


def test_no_id_or_path_leads_elsewhere(fed: Path, tmp_path: Path) -> None:
    """No command reads, tells, writes or removes anything outside, whatever stands in place of a path."""
    eaten = Eaten(tmp_path, fed)
    for field, kind, line in drawn_cases(fields_of(fed)):
        eaten.lay(is_linked=kind == "linked")
        value = eaten.value_of(kind, field)
        field.put(eaten.panda.home, value)
        eaten.check(line, f"{field.name} = {value!r}")


@pytest.mark.parametrize("kind", ["absolute", "up"])
def test_words_are_no_paths(kind: str, fed: Path, tmp_path: Path) -> None:
    """Texts that are called as no path are none to any command, even if all of them look like one."""
    eaten = Eaten(tmp_path, fed)
    eaten.lay(is_linked=False)
    for field in fields_of(fed):
        if not sounds(field):
            field.put(eaten.panda.home, eaten.value_of(kind, field))
    for line in EVERYTHING:
        eaten.check(line, kind)
