"""
The shape of what every command gives: `python -m tests.record_shapes`, after a change of it that is meant.

What is run stands in cases/commands.yaml and in FAILURES; what came of it goes to cases/shapes.jsonl: exit
code, whether stdout has anything, what kinds of lines stderr has, keys and types of `--json`. No values,
no wording. A changed line is a line of CHANGELOG.md.
"""

import json
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.api import CASES, COMMANDS, LAPTOPS, Ended, ModelServer, Panda
from tests.script import Asked, Script, step_of

SHAPES = CASES / "shapes.jsonl"
USER = "ann"
QUESTION = "How much is the Lenovo LOQ 15?"
IMPORTED = '"user": "ann", "session": "s", "at": "2026-01-01", "query": "q", "response": "r"'
ENVELOPE = {"ok", "exit_code", "command", "data", "error"}
NO_SUCCESS = {"serve", "mcp"}
"""They run until they are stopped (tests/serving)."""
CONFLICT = {
    "id": "fact-other",
    "entity": "boat",
    "relation": "pace",
    "value": {"type": "number", "v": 9},
    "source": "user:cli",
    "confidence": 0.95,
    "scope": "local",
    "hlc": "1767537000000.001",
    "valid_until": None,
    "kind": "fact",
    "source_turn": None,
    "content_type": "general_fact",
    "asserted_at": "2026-01-04T14:30:00Z",
}
"""What another machine was told of the boat, as a line of its memory.jsonl."""
FAILURES: Mapping[str, str] = {
    "wrong flag": "--nope",
    "no store": "@ none",
    "unknown user": "--user nobody",
    "user is no id": "--user ../ann",
    "files are broken": "@ broken",
    "demo store of the checkout": "@ checkout",
}
"""Common to all commands: what is added to the words of `usual`, else to those of the command alone."""
KINDS = ("warning", "error", "where", "fix", "Traceback")
SLOW = {"batch"}
"""They start processes."""
BEFORE = ("wrong flag", "user is no id")
"""What is found before a command without end, or a slow one, would begin."""
FILES: Mapping[str, str] = {
    "notes.md": "# Boats\n\n- The ferry leaves at 7:45 from pier 9.\n- It costs $12.\n" * 20,
    "broken.jsonl": "{\n",
    "broken.yaml": "name: [\n",
    "facts.json": '{"facts": [], "conflicts": []}',
    "queries.jsonl": f'{{"id": "a", "query": "{QUESTION}"}}\n',
    "turns.jsonl": f"{{{IMPORTED}}}\n",
    "imported.jsonl": f'{{"turn": 1, {IMPORTED}}}\n',
    "cases.jsonl": '{"kind": "recap", "query": "What did we talk about?", "label": "recap"}\n',
    "conflict.jsonl": f"{json.dumps(CONFLICT)}\n",
    "other/letter.txt": "Dear Ann\n",
}
"""Beside the store."""


class Moods(Script):
    """The script of an approved turn, unless a word of the query says otherwise."""

    def __call__(self, asked: Asked) -> str | Exception:
        text, step = asked.text, step_of(asked)
        if step in ("rewording", "another program"):
            return '{"colour": "blue"}'
        if "NONSENSE" in text and step == "planner":
            return "nonsense"
        if "WHICH" in text and step == "reflection":
            return json.dumps({"decision": "CLARIFY", "question": "Which one do you mean?"})
        if "REFUSE" in text and step == "validator":
            return json.dumps({"verdict": "FAIL", "reason": "It is not so."})
        return super().__call__(asked)


@dataclass(frozen=True)
class Case:
    """One way to run a command."""

    command: str
    """As the user types it."""
    name: str
    """Of the case."""
    words: tuple[str, ...]
    """After the command."""
    on: tuple[str, ...] = ()
    """What is special about its store."""
    stdin: str = ""
    """What it reads."""


def read_cases() -> dict[str, list[Case]]:
    """All cases by command."""
    found: dict[str, list[Case]] = {}
    for command, ways in yaml.safe_load((CASES / "commands.yaml").read_text(encoding="utf-8")).items():
        usual = ways.get("usual", "")
        common = FAILURES if command not in NO_SUCCESS | SLOW else {name: FAILURES[name] for name in BEFORE}
        rows = {**ways, **{name: f"{added} {usual}" for name, added in common.items()}}
        found[command] = [parse_case(command, name, said) for name, said in rows.items()]
    return found


def parse_case(command: str, name: str, said: str) -> Case:
    """
    A case from its text: words, "@ STORE", "< STDIN".

    >>> parse_case("turn", "locked", '"How much?" @ locked a/lock')
    Case(command='turn', name='locked', words=('How much?',), on=('locked', 'a/lock'), stdin='')
    """
    said, _, stdin = said.partition(" < ")
    if said.startswith("@ ") and " @ " not in said:  # a common failure stands before the words
        kind, _, said = said[2:].partition(" ")
        if kind == "server":
            return Case(command, name, (), ("server", "away"))
        return Case(command, name, tuple(shlex.split(said)), (kind,), stdin)
    words, _, on = said.partition(" @ ")
    return Case(command, name, tuple(shlex.split(words)), tuple(on.split()), stdin)


def make_home(home: Path, server: ModelServer) -> Path:
    """A project whose store has an approved, a halted and a clarified turn, memory in conflict, and a run."""
    panda = Panda(home, LAPTOPS, user=USER)
    panda.write("models.yaml", server.models())
    for name, text in FILES.items():
        panda.write(name, text)
    panda.write("store/users/ann/knowledge/boats.md", FILES["notes.md"])
    panda.turn(QUESTION, "--session", "talk")
    panda.turn("NONSENSE please", "--session", "bad")
    panda.turn("WHICH boat was it?", "--session", "boats")
    for words in (
        *(("memory", "set", "colour", "red"), ("memory", "set", "colour", "blue"), ("replay", "3")),
        *(("memory", "set", "boat#pace", "7"), ("memory", "merge", "conflict.jsonl")),
    ):
        ended = panda(*words)
        assert ended.code == 0, ended.err
    return home


def run_case(case: Case, home: Path, place: Path, *more: str) -> Ended:
    """Run a case on a copy of the project; one that the case before has left as it was will do."""
    shutil.rmtree(place.with_name(f"{place.name}-state"), ignore_errors=True)
    if not place.exists() or stamps(place) != stamps(home):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(home, place, symlinks=True)
    panda = Panda(place, user="" if case.name == "unknown user" else USER)
    runs = sorted(path.name for path in (panda.store / "runs").iterdir())
    halts = sorted(path.stem for path in (panda.store / "interventions").glob("*.json"))
    versions = sorted((panda.store / "logs/recipes").rglob("*.json"))
    url = re.search(r"http://[^,]+", (place / "models.yaml").read_text(encoding="utf-8"))
    known = {"{run}": runs[-1], "{intervention}": halts[-1], "{version}": ""}
    known["{server}"] = url[0] if url else ""
    for path in versions:
        if "phase1_reflection" in str(path):
            known["{version}"] = path.stem
    words = [known.get(word, word) for word in case.words]
    held: Any = nullcontext()
    if case.on[:1] == ("none",):
        shutil.rmtree(panda.store)
    elif case.on[:1] == ("checkout",):
        panda.environ["PANDA_ROOT"] = str(Path(__file__).parent.parent / "panda-system-docs")
        panda.environ["PANDA_USER"] = "demo"
    elif case.on[:1] == ("broken",):
        for path in (*panda.store.rglob("metadata.json"), *panda.store.rglob("session.json")):
            path.write_text("{", encoding="utf-8")
        panda.write("store/users/ann/memory.jsonl", "{\n")
    elif case.on[:1] == ("locked",):
        held = panda.lock(case.on[1])
    elif case.on[:1] == ("server",):
        models = (place / "models.yaml").read_text(encoding="utf-8")
        panda.write("models.yaml", re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:9", models))
    with held:
        return panda(*case.command.split(), *more, *words, stdin=case.stdin)


def stamps(root: Path) -> list[tuple[str, int, int]]:
    """Path, size and time of change of every file below a directory."""
    files = [(path, path.stat()) for path in sorted(root.rglob("*")) if path.is_file()]
    return [(str(path.relative_to(root)), found.st_size, found.st_mtime_ns) for path, found in files]


def shape_of(value: Any) -> Any:
    """
    Keys and types of a JSON value; a list has the shape of all its items in one.

    >>> shape_of({"a": [1, None], "b": [{"c": "x"}, {"d": True}], "e": []})
    {'a': ['null|number'], 'b': [{'c?': 'text', 'd?': 'truth'}], 'e': []}
    """
    if isinstance(value, dict):
        return {key: shape_of(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        shapes = [shape_of(one) for one in value]
        return [merge(shapes)] if shapes else []
    if value is None:
        return "null"
    return "truth" if isinstance(value, bool) else "number" if isinstance(value, int | float) else "text"


def merge(shapes: list[Any]) -> Any:
    """One shape that fits all of these; a key that not all of them have gets a question mark."""
    tables = [one for one in shapes if isinstance(one, dict)]
    lists = [part for one in shapes if isinstance(one, list) for part in one]
    if len(tables) == len(shapes):
        keys = sorted({key.rstrip("?") for one in tables for key in one})
        merged = {}
        for key in keys:
            held = [one[name] for one in tables for name in (key, f"{key}?") if name in one]
            merged[key if all(key in one for one in tables) else f"{key}?"] = merge(held)
        return merged
    if all(isinstance(one, list) for one in shapes):
        return [merge(lists)] if lists else []
    plain = {part for one in shapes if isinstance(one, str) for part in one.split("|")}
    whole = [merge(tables)] if tables else []
    whole += [[merge(lists)] if lists else []] if any(isinstance(one, list) for one in shapes) else []
    return "|".join(sorted(plain | {json.dumps(one) for one in whole}))


def lines_of(text: str) -> list[str]:
    """
    What kinds of lines stderr has, each kind once. Of the work that is told, time decides how much it is.

    >>> lines_of("phase 0\\nphase 1\\nerror: no\\nwhere: here\\n")
    ['error', 'where']
    """
    heads = (line.partition(":")[0] for line in text.splitlines())
    return list(dict.fromkeys(head for head in heads if head in KINDS))


def shape_of_case(case: Case, home: Path, place: Path) -> dict[str, Any]:
    """What the command gives, once for people and once as JSON."""
    plain, asked = run_case(case, home, place), run_case(case, home, place, "--json")
    error = asked.value["error"]
    assert set(asked.value) == ENVELOPE, case
    return {
        "command": case.command,
        "case": case.name,
        "code": plain.code if plain.code == asked.code else [plain.code, asked.code],
        "stdout": bool(plain.out),
        "stderr": lines_of(plain.err),
        "error": error and error["type"],
        "data": shape_of(asked.value["data"]),
    }


def shapes_of(command: str, home: Path, place: Path) -> Iterator[dict[str, Any]]:
    """The shapes of all cases of a command."""
    for case in read_cases()[command]:
        yield shape_of_case(case, home, place)


def differences(before: Mapping[str, Any], now: Mapping[str, Any], at: str = "") -> list[str]:
    """
    What differs between two shapes, a line each, with the path of its key.

    >>> differences({"data": {"turn": "number", "gone": "text"}}, {"data": {"turn": "text", "new": "text"}})
    ['data.gone: text → absent', 'data.new: absent → text', 'data.turn: number → text']
    """
    found = []
    for key in sorted({*before, *now}):
        was, is_now, place = before.get(key, "absent"), now.get(key, "absent"), f"{at}{key}"
        while isinstance(was, list) and isinstance(is_now, list) and len(was) == len(is_now) == 1:
            was, is_now, place = was[0], is_now[0], f"{place}[]"
        if isinstance(was, dict) and isinstance(is_now, dict):
            found += differences(was, is_now, f"{place}.")
        elif was != is_now:
            found.append(f"{place}: {was} → {is_now}")
    return found


def read_shapes() -> dict[str, list[dict[str, Any]]]:
    """What is recorded, by command."""
    found: dict[str, list[dict[str, Any]]] = {}
    for line in SHAPES.read_text(encoding="utf-8").splitlines():
        found.setdefault(json.loads(line)["command"], []).append(json.loads(line))
    return found


def main() -> int:
    """Record the shapes of the commands given, of all if none is; the exit code."""
    kept = read_shapes() if SHAPES.exists() else {}
    with tempfile.TemporaryDirectory() as directory, closing(ModelServer(Moods())) as server:
        home = make_home(Path(directory) / "home", server)
        for command in sys.argv[1:] or COMMANDS:
            place = Path(directory) / command.replace(" ", "_")
            kept[command] = list(shapes_of(command, home, place))
            rows = [row for command in COMMANDS for row in kept.get(command, ())]
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            SHAPES.write_text("".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
