"""
Every id and path that a record holds, fed with what leads elsewhere, through every command that reads it.

What is fed is found by walking the types of the records, so a new record is fed as soon as it is one of the
store's, and fails here while a name of it that sounds like an id or a path has none of the checked types.
`PANDA_WHOLE_GRID=1` feeds every field with every value through every command; else a seeded sample.
"""

import dataclasses
import json
import os
import random
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

import panda.evals.cases
import panda.runs.queries
from panda.documents.records import Id, Name, Record
from panda.documents.records import Place as PlaceBelow
from panda.recipes.calls import recipe_digest
from panda.runs.ledger import RunPlan, TurnLine
from panda.session.file import rebuild_session, write_session
from panda.store.layout import Layout
from panda.store.records import BY_DIRECTORY, BY_NAME, ImageName, format_of
from tests.api import NOW, Ended, ModelServer, Panda
from tests.make_stores import asking
from tests.outside import Outside, leaks, link

RUN_FILES = {"run.json": RunPlan, "turns.jsonl": TurnLine}
CHECKED = {*(get_args(one)[1].pattern for one in (Id, Name, PlaceBelow, ImageName)), r"^turn_\d{6,}\Z"}
"""The patterns of the types by which a text may become a path."""
SOUNDS = re.compile(
    r"(.*_)?(ids?|paths?|files?|directory|root|target|session|user|turn|run|item|image|artifacts|interventions?)"
)
"""What a field is called that holds an id or a path."""
NO_PATH = {
    "PlannedTurn.root": "another store, which the user trusts or not: it may be anywhere",
    "TurnLine.directory": "only shown: what is read follows from the plan",
    "RecentTurn.user": "what the user said",
    "Line.list_id": "a line number within its node",
    "Execution.turn_id": "only its number leads to a turn",
    "Entity.target": "a node, looked up in the index",
    "Snapshot.files": "digests by name; the names are two words",
    **dict.fromkeys(
        (
            *("JudgedCandidate.node_id", "Claim.node_id", "ContentReference.node_id", "Document.node_id"),
            *("GatheredItem.node_ids", "Noted.node_id", "GatheredSection.node_ids", "Option.node_ids"),
            "LeftOutLine.node_ids",
        ),
        "a node, looked up in the index",
    ),
    **dict.fromkeys(("Manifest.visit_id", "ResearchClaim.visit_id"), "part of a node, looked up"),
    **dict.fromkeys(
        ("Metadata.item", "Outcome.item", "TurnLine.item", "PlannedTurn.item", "Query.id"),
        "any words of the user's; the files of an item are those of its turn",
    ),
    **dict.fromkeys(
        (
            "Fact.id",
            "Assertion.id",
            "Conflict.conflict_id",
            "Goal.id",
            "GoalProgress.id",
            "Pending.id",
            "Answered.id",
            "Option.id",
        ),
        "told apart by, within its file",
    ),
}
"""Texts that sound like an id or a path and have none of the checked types, each with the reason."""
QUERY = "What about laptops?"
LINE = "What to look at before buying a gaming laptop for less than $1000."
RECIPE = "pipeline/phase5_synthesizer_chat"
KEPT = recipe_digest("name: fed\n", {})
"""The version of the recipe that ran before."""
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
    "diff saved last",
    "diff last last",
    "replay --resume 0fed",
    "batch --resume last",
    "view --out pages",
)
READ_BY: Mapping[str, Sequence[str]] = {
    "Metadata": (*TURNS, *SESSIONS, *RUNS),
    **dict.fromkeys(("Step", "Image"), TURNS),
    **dict.fromkeys(("Session", "SessionTurn", "ClosedSession", "CachedStep", "ArchiveEntry"), SESSIONS),
    **dict.fromkeys(("PlannedTurn", "TurnLine", "Outcome", "RunPlan"), RUNS),
    "Intervention": ("intervention show stop", "intervention resolve stop --note done", "turn --resume 816"),
    "RecipeVersion": (f"recipe history {RECIPE}", f"recipe eject {RECIPE} --version {KEPT}"),
    "ImportLine": ("import out.jsonl", "import out.jsonl --new-user"),
    "Query": ("batch out.queries --jobs 1", "batch out.queries --dry-run"),
    "Execution": ("log --json", "stats", "stats --json", "view --out pages", f"recipe failures {RECIPE}"),
}
"""What else reads a record; one that is not named is read by every command here."""
VALUES = ("absolute", "up", "linked", "foreign", "a\0b", "a\nb")
CODES = {0, 2, 3, 4, 20, 21, 22, 74, 75}
"""How a command may end; 1 is a bug of the program."""

Place = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """One text of a record."""

    field: str  # names of its type and of the key
    place: Place  # keys and positions in the value
    is_path: bool  # whether a path may be made of it, or it sounds as if

    @property
    def record(self) -> str:
        """The name of its type."""
        return self.field.partition(".")[0]


def is_path(field: str, pattern: str | None) -> bool:
    """Whether a text is to be fed by itself."""
    return pattern in CHECKED or field in ("PlannedTurn.root", "TurnLine.directory")


def texts_of(hint: Any, field: str = "", seen: set[Any] | None = None) -> Iterator[tuple[str, str | None]]:
    """Every text that a type can hold, with its pattern."""
    seen = set() if seen is None else seen
    parts = get_args(hint)
    if get_origin(hint) is Annotated and parts[0] is str:
        yield field, next((one.pattern for one in parts[1:] if one.pattern), None)
    elif get_origin(hint) is ClassVar:
        return
    elif hint is str:
        yield field, None
    elif get_origin(hint) is not Literal and parts:
        for part in parts[:1] if get_origin(hint) is Annotated else parts:
            yield from texts_of(part, field, seen)
    elif hint not in seen and (dataclasses.is_dataclass(hint) or hasattr(hint, "__struct_fields__")):
        seen.add(hint)
        for key, part in get_type_hints(hint, include_extras=True).items():
            yield from texts_of(part, f"{hint.__name__}.{key}", seen)


def every_text() -> dict[str, str | None]:
    """Every text of every record, by its field, with its pattern."""
    records: list[Any] = [*BY_NAME.values(), *BY_DIRECTORY.values(), *RUN_FILES.values()]
    for record in (todo := Record.__subclasses__()):
        todo += record.__subclasses__()
        records.append(record)
    return {
        field: pattern
        for record in records
        if getattr(record, "__module__", "panda").startswith("panda")
        for field, pattern in texts_of(record)
        if pattern in CHECKED or SOUNDS.fullmatch(field.partition(".")[2])
    }


def leaves(hint: Any, value: Any, place: Place = (), field: str = "") -> Iterator[Leaf]:
    """The texts that a value holds, by its type; what has no type by its keys."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        pattern = next((one.pattern for one in parts[1:] if one.pattern), None)
        if not isinstance(value, str):
            yield from leaves(parts[0], value, place, field)
        elif pattern is None or pattern in CHECKED:
            yield Leaf(field, place, is_path(field, pattern))
    elif origin in (Union, UnionType):
        part = next((part for part in parts if _fits(value, part)), None)
        if part is not None:
            yield from leaves(part, value, place, field)
    elif origin is Literal:
        return
    elif isinstance(value, list):
        for n, one in enumerate(value):
            yield from leaves(parts[0] if origin is tuple else Any, one, (*place, n), field)
    elif isinstance(value, dict):
        hints = {} if origin or hint is Any else get_type_hints(hint, include_extras=True)
        inner = parts[1] if len(parts) > 1 else Any
        for key, one in value.items():
            name = f"{hint.__name__}.{key}" if hints else field
            yield from leaves(hints.get(key, inner), one, (*place, key), name)
    elif isinstance(value, str) and hint in (str, Any):
        yield Leaf(field, place, is_path(field, None))


def _fits(value: Any, hint: Any) -> bool:
    try:
        msgspec.convert(value, hint, strict=True)
    except (msgspec.ValidationError, TypeError):
        return False
    return True


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    """A model that writes what an approved turn takes."""
    server = ModelServer(asking(LINE, LINE[:20], "knowledge:Research/budget_gaming_laptops.md"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def fed(recorded: Path, models: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose store has every record: turns, sessions, runs, an intervention, a log, versions."""
    project = Panda(tmp_path_factory.mktemp("fed") / "project", recorded, user="demo")
    store, user = project.store, project.store / "users/demo"
    project.write("models.yaml", models.models())
    for path in (user / "turns").iterdir():
        if path.name not in ("turn_000811", "turn_000813", "turn_000814", "turn_000816"):
            shutil.rmtree(path)
    line = {
        "user": "demo",
        "session": "s1",
        "at": "2025-01-04T14:30:00Z",
        "query": "Which tea?",
        "response": "Green tea.",
    }
    theirs = {**line, "user": "bob", "session": "theirs", "query": "Which cake?", "response": "Sacher."}
    project.write("out.jsonl", json.dumps(line) + "\n" + json.dumps(theirs) + "\n")
    asked = {"id": "one", "query": QUERY, "user": "demo", "session": "s2"}
    project.write("out.queries", json.dumps(asked) + "\n" + json.dumps({**asked, "id": "two"}) + "\n")
    for words in (
        *(
            "import out.jsonl --new-user",
            "session close s1",
            "replay 813",
            "batch out.queries --save --limit 1",
        ),
        *("memory set budget 700", "memory set other x"),
    ):
        assert project(*words.split()).code in CODES, words
    turns = user / "turns"
    change(turns / "turn_000816/metadata.json", status="halted", next={"phase": 5, "round": 0, "attempt": 0})
    change(turns / "turn_000816/metadata.json", saved_at=None, seal=None, intervention="stop")
    change(turns / "turn_000814/metadata.json", run="r", item="i", image="images/0123456789abcdef.png")
    layout = Layout(store)
    rebuilt = rebuild_session(layout.of("demo"), "default")
    assert rebuilt is not None
    write_session(layout, rebuilt)
    session = json.loads((user / "sessions/default/session.json").read_text())
    session["carry"] |= {"step_cache": [CACHED], "content_archive": {"entries": [ARCHIVED], "evicted": 0}}
    session.pop("seal", None)
    write(user / "sessions/default/session.json", session)
    step = turns / "turn_000811/steps/step_01.json"
    change(step, artifacts=["steps/made_01.txt"])
    step.with_name("made_01.txt").write_text("tea\n")
    write(turns / "turn_000814/image.json", IMAGE)
    wish = {"mood": "orders", "forgets": True, "forget": ["memory:budget"]}
    change(turns / "turn_000814/query_analysis.json", reading=wish)
    change(turns / "turn_000814/metadata.json", seal=None)
    run = next(path for path in sorted((store / "runs").iterdir()) if "-batch" not in path.name)
    shutil.copytree(run, store / "runs/0fed")
    change(store / "runs/0fed/run.json", id="0fed", finished_at=None, results=None)
    (store / "runs/0fed/turns.jsonl").unlink()
    plan = json.loads((run / "run.json").read_text())
    change(run / "run.json", turns=[{**plan["turns"][0], "root": str(store), "session": "default"}])
    write(store / "interventions/stop.json", INTERVENTION)
    write(store / "interventions/theirs.json", {**INTERVENTION, "id": "theirs", "user_id": "bob", "turn": 1})
    shutil.rmtree(store / "logs/recipes")
    write(store / f"logs/recipes/{RECIPE}/{KEPT}.json", VERSION)
    assert project("index", "rebuild").code in (0, 3)
    return project.home


def change(path: Path, **changes: Any) -> None:
    """Put other values into a JSON file."""
    write(path, {**json.loads(path.read_text()), **changes})


def write(path: Path, value: object) -> None:
    """Write a JSON file, or a text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


CACHED = {
    "turn": 811,
    "step": 1,
    "tool": "doc.search",
    "call": "0" * 16,
    "asked": "laptops",
    "outcome": "one",
    "record_count": 1,
    "detail": "full",
    "path": "turns/turn_000811/steps/step_01.json",
}
ARCHIVED = {
    "key": "t811_s1_text_1",
    "turn": 811,
    "step": 1,
    "type": "text",
    "description": "what was found",
    "path": "turns/turn_000811/steps/made_01.txt",
    "chars": 4,
    "cut": False,
}
IMAGE = {
    "file": "images/0123456789abcdef.png",
    "sha256": "0" * 64,
    "media_type": "image/png",
    "bytes": 9,
    "width": 1,
    "height": 1,
    "description": "tea",
    "recipe": RECIPE,
    "layer": "EYES",
    "model": "m",
    "model_digest": "0" * 64,
}
VERSION = {
    "schema": "panda.recipe_version/1",
    "recipe": RECIPE,
    "version": KEPT,
    "first_seen": NOW,
    "text": "name: fed\n",
    "prompts": {},
}
INTERVENTION = {
    "schema": "panda.intervention/1",
    "id": "stop",
    "created_at": NOW,
    "user_id": "demo",
    "turn": 816,
    "phase": 5,
    "recipe": RECIPE,
    "type": "halt",
    "severity": "high",
    "message": "it halted",
    "where": "context.md",
    "expected": None,
    "received": None,
    "raw_output": None,
    "what_to_do": None,
    "details": {},
    "status": "open",
    "resolved_at": None,
    "resolution": None,
}


@dataclasses.dataclass(frozen=True)
class Fed:
    """One place of the project in which a text is replaced."""

    file: str
    line: int | None  # of a file of lines, from 0
    leaf: Leaf

    def put(self, project: Path, value: str) -> None:
        """Replace the text."""
        path = project / self.file
        lines = path.read_text().split("\n") if self.line is not None else [path.read_text()]
        record = json.loads(lines[self.line or 0])
        at: Any = record
        for key in self.leaf.place[:-1]:
            at = at[key]
        at[self.leaf.place[-1]] = value
        record.pop("seal", None)
        lines[self.line or 0] = json.dumps(record)
        path.write_text("\n".join(lines))


def fields_of(project: Path) -> dict[str, list[Fed]]:
    """Every text of every record of a project, by field."""
    found: dict[str, list[Fed]] = {}
    for path in sorted(project.rglob("*")):
        name = path.relative_to(project).as_posix()
        if path.suffix not in (".json", ".jsonl", ".queries"):
            continue
        known = {"out.jsonl": "import.jsonl"}.get(name, name)
        record = RUN_FILES.get(path.name) if "/runs/" in name else None
        record = record or format_of("recipe_version.json" if "logs/recipes" in name else known)
        record = panda.runs.queries.Query if name == "out.queries" else record
        is_lines = path.suffix != ".json"
        for n, text in enumerate(path.read_text().split("\n") if is_lines else [path.read_text()]):
            value = json.loads(text) if text.strip() else None
            for leaf in leaves(record or Any, value, field=path.stem) if value is not None else ():
                if not leaf.field.count("."):  # of no record: its key says what it is
                    key = f"{leaf.field}.{next(key for key in leaf.place if isinstance(key, str))}"
                    leaf = Leaf(key, leaf.place, SOUNDS.fullmatch(key.partition(".")[2]) is not None)
                found.setdefault(leaf.field, []).append(Fed(name, n if is_lines else None, leaf))
    return found


OTHER = "other/users/demo"
AIMS: Mapping[str, tuple[str, str, str]] = {
    "user": (OTHER, "linked", "bob"),
    "session": (f"{OTHER}/sessions/default", "linked", "theirs"),
    "run": ("other/runs/0fed", "linked", "0fed"),
    "intervention": ("other/interventions/stop", "linked", "theirs"),
    "directory": (f"{OTHER}/turns/turn_000813", "turn_999999", "turn_000001"),
    "line": (f"{OTHER}/turns/turn_000813", "turn_999999", "turn_000001"),
    "root": ("other", "{store}/linked", "{store}/users/bob"),
    "image": ("secret.json", "images/aaaaaaaaaaaaaaaa.png", "images/bbbbbbbbbbbbbbbb.png"),
    "recipe": ("other/logs/recipes", "linked", "pipeline/phase3_planner_chat"),
}
"""By what an id means: what of it is outside, and what names a link or somebody else's."""
FILES = ("secret.json", "linked/secret.json", "turns/turn_000813/metadata.json")
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


def value_of(kind: str, leaf: Leaf, project: Panda, outside: Outside) -> str:
    """A value of a kind, as fits what the field means."""
    word = leaf.field.partition(".")[2].removesuffix("_id")
    if word == "id":
        word = "run" if leaf.record == "RunPlan" else leaf.record.lower()
    aim, linked, foreign = AIMS.get("image" if leaf.record == "Image" else word, FILES)
    target = outside.place / aim
    given = {"absolute": str(target), "up": f"{'../' * 40}{target}", "linked": linked, "foreign": foreign}
    return given.get(kind, kind).replace("//", "/").replace("{store}", str(project.store))


class Eaten:
    """Copies of a project that are fed, beside a tree outside, and what commands made of them."""

    def __init__(self, place: Path, source: Path) -> None:
        self.outside = Outside(place / "outside", source / "store")
        self.panda = Panda(
            place / "project", user="demo", PANDA_TRUST="", XDG_STATE_HOME=str(place / "state")
        )
        self.source = source
        self.lay(is_linked=False)
        assert self.panda("trust").code == 0  # models.yaml names a server

    def lay(self, *, is_linked: bool) -> None:
        """Lay the project out anew."""
        shutil.rmtree(self.panda.home, ignore_errors=True)
        shutil.copytree(self.source, self.panda.home, symlinks=True)
        path = next(
            path
            for path in (self.panda.store / "runs").iterdir()
            if '"root"' in (path / "run.json").read_text()
        )
        plan = json.loads((path / "run.json").read_text())
        change(path / "run.json", turns=[{**one, "root": str(self.panda.store)} for one in plan["turns"]])
        for name, target in LINKS.items() if is_linked else ():
            link(self.panda.store / name, self.outside.place / target)

    def check(self, line: str, about: str) -> Ended:
        """Run a command: it is no bug, tells and touches nothing outside, nor what is somebody else's."""
        words, _, query = line.partition(" -- ")
        theirs = files_of(self.panda.store / "users/bob")
        ended = self.panda(*words.split(), *(["--", query] if query else []))
        about = f"{about}: panda {line}\n{ended.err}"
        assert ended.code in CODES, about
        assert "Traceback" not in ended.err, about
        assert leaks(self.panda, ended) == [], about
        assert self.outside.changes() == [], about
        if "import" not in words and "out.queries" not in words:
            assert files_of(self.panda.store / "users/bob") == theirs, about
        return ended


def files_of(directory: Path) -> dict[str, bytes]:
    """Content of every file below a directory."""
    return {str(path): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def test_every_id_and_path_has_a_type() -> None:
    """A text that is called as an id or a path is checked by its type, or stands in a table with a reason."""
    untyped = {field for field, pattern in every_text().items() if pattern not in CHECKED}
    assert untyped == set(NO_PATH), sorted(untyped ^ set(NO_PATH))


def test_every_id_and_path_is_fed(fed: Path) -> None:
    """The project that is fed has every id and path that a record can hold, and every command reads it."""
    typed = {field for field, pattern in every_text().items() if is_path(field, pattern)}
    found = {field for field, several in fields_of(fed).items() if several[0].leaf.is_path}
    assert typed <= found, sorted(typed - found)


EVERYTHING = tuple(dict.fromkeys((*EVERY, *(line for several in READ_BY.values() for line in several))))


def commands_of(record: str) -> list[str]:
    """The commands that read a record, those that read few others first."""
    return list(dict.fromkeys((*READ_BY.get(record, EVERYTHING), *EVERY)))


def cases(found: Mapping[str, Sequence[Fed]]) -> Iterator[tuple[Fed, str, Sequence[str]]]:
    """Each field with each value, and the commands that it is to be fed through."""
    chance = random.Random(29)
    by_record: dict[str, Iterator[str]] = {}
    for several in found.values():
        leaf = several[0].leaf
        lines = commands_of(leaf.record)
        if leaf.record not in by_record:
            own = [line for line in lines if line not in EVERY]
            by_record[leaf.record] = cycle([*chance.sample(own, len(own)), *chance.sample(EVERY, len(EVERY))])
        for value in chance.sample(VALUES, len(VALUES)) if leaf.is_path else ():
            yield several[0], value, lines if WHOLE_GRID else [next(by_record[leaf.record])]


WHOLE_GRID = bool(os.environ.get("PANDA_WHOLE_GRID"))


def test_every_command_ends_well(fed: Path, tmp_path: Path) -> None:
    """What is fed below is read: without anything that leads elsewhere no command refuses its project."""
    eaten = Eaten(tmp_path, fed)
    refused = {}
    for line in EVERYTHING:
        eaten.lay(is_linked=False)
        if (ended := eaten.check(line, "nothing")).code not in (0, 3):
            refused[line] = ended.err.splitlines()[-4:]
    assert not refused, json.dumps(refused, indent=1)


def test_no_id_or_path_leads_elsewhere(fed: Path, tmp_path: Path) -> None:
    """No command reads, tells, writes or removes anything outside, whatever stands in place of a path."""
    eaten = Eaten(tmp_path, fed)
    wrong = []
    drawn = list(cases(fields_of(fed)))
    assert {line for _, _, lines in drawn for line in lines} == set(EVERYTHING)
    for one, kind, lines in drawn:
        value = value_of(kind, one.leaf, eaten.panda, eaten.outside)
        for line in lines:
            eaten.lay(is_linked=kind == "linked")
            one.put(eaten.panda.home, value)
            try:
                eaten.check(line, f"{one.leaf.field} = {value!r}")
            except AssertionError as exc:
                if not WHOLE_GRID:
                    raise
                wrong.append(str(exc))
    assert wrong == []


@pytest.mark.parametrize("kind", ["absolute", "up"])
def test_words_are_no_paths(kind: str, fed: Path, tmp_path: Path) -> None:
    """Texts that are no paths by their type are none to any command, even if all of them look like one."""
    eaten = Eaten(tmp_path, fed)
    found = [one for several in fields_of(fed).values() for one in several if not one.leaf.is_path]
    eaten.lay(is_linked=False)
    for one in found:
        one.put(eaten.panda.home, value_of(kind, one.leaf, eaten.panda, eaten.outside))
    for line in EVERYTHING:
        eaten.check(line, kind)
