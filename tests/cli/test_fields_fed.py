"""
Every id and path that a record holds, fed with what leads elsewhere, through every command that reads it.

What is fed is found by walking the types of the records, so a new record is fed as soon as it is one of the
store's: its texts are either paths by their type, or named below as words that no path is made of.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from panda.documents.records import PATH_RULES
from panda.recipes.calls import recipe_digest
from panda.replays.runs import RunPlan, TurnLine
from panda.session.file import rebuild_session, write_session
from panda.storage.formats import ImageName, format_of
from panda.storage.layout import Layout
from tests.api import NOW, Panda
from tests.outside import SECRET, Outside, leaks, link

RUN_FILES = {"run.json": RunPlan, "turns.jsonl": TurnLine}
PATTERNS = {*PATH_RULES, get_args(ImageName)[1].pattern, r"^turn_\d{6,}\Z"}
"""Of the types by which a text may become a path."""
BY_MEANING = {("PlannedTurn", "root"), ("TurnLine", "directory"), ("StepRecord", "result")}
"""Paths by what they mean that have no type: the first needs trust, the others are only shown."""
COMMANDS = (
    *("list", "session list", "stats", "intervention list --all", "index rebuild", "export --as jsonl"),
)
"""What reads many records."""
WHOLE = ("validate store", "forget 814 --yes")
"""What reads every file: fed once with an absolute path."""
TURNS = ("show 811 --json", "show 813", "turn --discard 816", "diff saved last")
SESSIONS = ("session show default", "session verify", "session close s1 --reopen", "export --as queries")
MORE: Mapping[str, Sequence[str]] = {
    "Metadata": (*TURNS, *SESSIONS, "log --json"),
    "Step": TURNS,
    **dict.fromkeys(
        ("SealedSession", "SessionTurn", "ClosedSession", "CachedStep", "ArchiveEntry"), SESSIONS
    ),
    **dict.fromkeys(("PlannedTurn", "TurnLine", "Outcome", "RunPlan"), ("diff saved last", "diff last last")),
    "Intervention": ("intervention show stop", "intervention resolve stop --note done", "log"),
    "RecipeVersion": ("recipe history pipeline/fed",),
}
LONG: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("SealedSession", "ArchiveEntry"), ("turn --session default -- What about laptops?",)),
    "PlannedTurn": ("replay --resume 0fed", "view --out pages"),
    "TurnLine": ("view --out pages",),
    "Step": ("replay 811 --on-miss run",),
    "Metadata": ("replay 813", "gather 816"),
}
"""Commands that take longer: fed once with an absolute path."""


Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Leaf:
    """One text of a record."""

    record: str  # name of its type
    field: str
    place: Place  # keys and positions in the value
    is_path: bool  # whether a path may be made of it


def leaves(
    hint: Any, value: Any, place: tuple[str | int, ...] = (), of: tuple[str, str] = ("", "")
) -> Iterator[Leaf]:
    """The texts that a value holds, by its type."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        if isinstance(value, str) and (forms := [one.pattern for one in parts[1:] if one.pattern]):
            if forms[0] in PATTERNS:
                yield Leaf(*of, place, is_path=True)
            return
        yield from leaves(parts[0], value, place, of)
    elif origin in (Union, UnionType):
        for part in parts:
            if _fits(value, part):
                yield from leaves(part, value, place, of)
                return
    elif origin is Literal or hint is type(None):
        return
    elif isinstance(value, list):
        inner = parts[0] if origin is tuple else Any
        for n, one in enumerate(value):
            yield from leaves(inner, one, (*place, n), of)
    elif isinstance(value, dict):
        hints = {} if origin or hint is Any else get_type_hints(hint, include_extras=True)
        for key, one in value.items():
            name = (hint.__name__, key) if hints else of
            yield from leaves(hints.get(key, parts[1] if len(parts) > 1 else Any), one, (*place, key), name)
    elif isinstance(value, str) and hint in (str, Any):
        yield Leaf(*of, place, is_path=of in BY_MEANING)


def _fits(value: Any, hint: Any) -> bool:
    try:
        msgspec.convert(value, hint, strict=True)
    except (msgspec.ValidationError, TypeError):
        return False
    return True


VALUES = (
    "{outside}/secret.json",
    "../../../../../outside/secret.json",
    "linked/secret.json",
    "bob",
    "a\0b",
    "a\n",
)
"""Absolute, by `..`, behind a link, somebody else's, with a NUL, with a line break."""


@pytest.fixture(scope="module")
def fed(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with every record: turns, sessions, runs, an intervention, a log, versions, conflicts."""
    place = tmp_path_factory.mktemp("fed")
    panda = Panda(place, recorded, user="demo")
    store, user = panda.store, panda.store / "users/demo"
    for path in (user / "turns").iterdir():
        if path.name not in ("turn_000808", "turn_000811", "turn_000813", "turn_000814", "turn_000816"):
            shutil.rmtree(path)
    line = {"user": "demo", "session": "s1", "at": NOW, "query": "Which tea?", "response": "Green tea."}
    panda.write("more.jsonl", json.dumps(line) + "\n" + json.dumps({**line, "user": "bob"}) + "\n")
    assert panda("import", "more.jsonl", "--new-user", "bob").code in (0, 2)
    for words in ("import more.jsonl", "session close s1", "replay 813", "index rebuild", "memory set a_b c"):
        assert panda(*words.split()).code in (0, 2, 3), words
    layout = Layout(store)
    session = rebuild_session(layout, "demo", "default")
    assert session is not None
    write_session(layout, session)
    change(
        user / "turns/turn_000816/metadata.json", status="halted", next={"phase": 5, "round": 0, "attempt": 0}
    )
    change(user / "turns/turn_000816/metadata.json", saved_at=None, seal=None, intervention="stop")
    change(user / "turns/turn_000814/metadata.json", run="r", item="i", image="images/0123456789abcdef.png")
    (run,) = (store / "runs").iterdir()
    shutil.copytree(run, store / "runs/0fed")
    change(store / "runs/0fed/run.json", id="0fed", finished_at=None, results=None)
    (store / "runs/0fed/turns.jsonl").unlink()
    plan = json.loads((run / "run.json").read_text())
    change(run / "run.json", turns=[{**plan["turns"][0], "root": str(store), "session": "default"}])
    write(store / "interventions/stop.json", INTERVENTION)
    text = "name: fed\n"
    version = recipe_digest(text, {})
    kept = {
        "schema": "panda.recipe_version/1",
        "recipe": "pipeline/fed",
        "version": version,
        "first_seen": NOW,
    }
    write(store / f"logs/recipes/pipeline/fed/{version}.json", {**kept, "text": text, "prompts": {}})
    return store


def change(path: Path, **changes: Any) -> None:
    """Put other values into a JSON file."""
    write(path, {**json.loads(path.read_text()), **changes})


def write(path: Path, value: object) -> None:
    """Write a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


INTERVENTION = {
    "schema": "panda.intervention/1",
    "id": "stop",
    "created_at": NOW,
    "user_id": "demo",
    "turn": 816,
    "phase": 5,
    "recipe": "pipeline/phase5_synthesizer_chat",
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


@dataclass(frozen=True)
class Fed:
    """One record of the store in which a text is replaced."""

    file: str
    line: int | None  # of a .jsonl file, from 0
    leaf: Leaf

    def put(self, store: Path, value: str) -> None:
        """Replace the text."""
        path = store / self.file
        lines = path.read_text().split("\n") if self.line is not None else [path.read_text()]
        record = json.loads(lines[self.line or 0])
        at: Any = record
        for key in self.leaf.place[:-1]:
            at = at[key]
        at[self.leaf.place[-1]] = value
        record.pop("seal", None)
        lines[self.line or 0] = json.dumps(record)
        path.write_text("\n".join(lines))


def fields_of(store: Path) -> dict[tuple[str, str], list[Fed]]:
    """Every text of every record of a store, by type and field."""
    found: dict[tuple[str, str], list[Fed]] = {}
    for path in sorted(store.rglob("*.json*")):
        name = path.relative_to(store).as_posix()
        record = RUN_FILES.get(path.name) if name.startswith("runs/") else None
        record = record or format_of(name if "logs/recipes" not in name else "recipe_version.json")
        if record is None or not path.is_file():
            continue
        is_lines = path.suffix == ".jsonl"
        texts = path.read_text().split("\n") if is_lines else [path.read_text()]
        for n, text in enumerate(texts):
            for leaf in leaves(record, json.loads(text)) if text.strip() else ():
                found.setdefault((leaf.record, leaf.field), []).append(
                    Fed(name, n if is_lines else None, leaf)
                )
    return found


class Eaten:
    """A copy of the store that is fed, with links to a tree outside, and what commands made of it."""

    def __init__(self, place: Path, store: Path, outside: Outside) -> None:
        self.outside = outside
        self.panda = Panda(place, store, user="demo", PANDA_TRUST="", XDG_STATE_HOME=str(place.parent))
        for name in ("users/demo/linked", "users/demo/turns/turn_000811/linked", "linked", "runs/linked"):
            link(self.panda.store / name, outside.place)

    def check(self, lines: Sequence[str], about: str) -> None:
        """Run commands: none is a bug, none tells or touches what is outside."""
        for line in lines:
            words, _, query = line.partition(" -- ")
            ended = self.panda(*words.split(), *(["--", query] if query else []))
            assert ended.code != 1, f"{about}: panda {line}\n{ended.err}"
            assert SECRET not in ended.out + ended.err, f"{about}: panda {line}"
        assert leaks(self.panda) == [], about
        assert self.outside.changes() == [], about
        shutil.rmtree(self.panda.home)


def test_every_path_of_a_record_leads_nowhere_else(fed: Path, tmp_path: Path) -> None:
    """No command reads, tells, writes or removes anything outside, whatever stands in place of a path."""
    outside = Outside(tmp_path / "outside", fed)
    cases = {key: one[0] for key, one in fields_of(fed).items() if one[0].leaf.is_path}
    assert {record for record, _ in cases} >= {"Metadata", "Step", "SealedSession", "PlannedTurn"}
    for (record, field), case in cases.items():
        for n, value in enumerate(VALUES):
            eaten = Eaten(tmp_path / "project", fed, outside)
            case.put(eaten.panda.store, value.format(outside=outside.place))
            lines = (*MORE.get(record, ()), *COMMANDS, *((*LONG.get(record, ()), *WHOLE) if n == 0 else ()))
            eaten.check(lines, f"{record}.{field} = {value!r}")


def test_words_are_no_paths(fed: Path, tmp_path: Path) -> None:
    """Texts that are no paths by their type are none to any command, even if all of them look like one."""
    outside = Outside(tmp_path / "outside", fed)
    for value in (f"{outside.place}/secret.md", "../../../../../outside/secret.md"):
        eaten = Eaten(tmp_path / "project", fed, outside)
        for found in fields_of(fed).values():
            for one in found:
                if not one.leaf.is_path:
                    one.put(eaten.panda.store, value)
        lines = dict.fromkeys(
            line for group in (MORE, LONG) for several in group.values() for line in several
        )
        eaten.check((*lines, *COMMANDS), value)
