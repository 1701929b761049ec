"""JSON Schemas in files of strangers: judging by one retrieves nothing, ends soon and spares other files."""

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api import LAPTOPS, ROOT, ModelServer, Panda

SECONDS = 30.0
"""More than judging any of these takes on a busy machine; what hangs takes forever."""
QUERY = "How much does the Lenovo LOQ 15 cost?"
TEXT = {"type": "string"}


def nested(levels: int, key: str = "items") -> Any:
    """A schema of so many levels."""
    schema: Any = TEXT
    for _ in range(levels):
        schema = {key: [schema] if key.endswith("Of") else schema}
    return schema


def branching(levels: int, key: str) -> dict[str, Any]:
    """A schema whose references double at each level."""
    names = [f"level{number}" for number in range(levels + 1)]
    pairs = pairwise(names)
    schemas = {name: {key: [{"$ref": f"#/$defs/{below}"}] * 2} for name, below in pairs}
    return {"$ref": f"#/$defs/{names[0]}", "$defs": {**schemas, names[-1]: {"minProperties": 0}}}


HOSTILE: dict[str, tuple[Any, Any, str]] = {
    "file": ({"$ref": "file:///etc/passwd"}, {}, "leads out of the schema"),
    "relative file": ({"$ref": "../../preferences.md"}, {}, "leads out of the schema"),
    "dynamic": ({"$dynamicRef": "http://127.0.0.1:9/x"}, {}, "$dynamicRef is not supported"),
    "id": ({"$id": "http://127.0.0.1:9/", "$ref": "x"}, {}, "leads out of the schema"),
    "nothing": ({"$ref": "#/$defs/none"}, {}, "leads to nothing"),
    "no schema": ({"enum": [5], "$ref": "#/enum/0"}, {}, "a schema is a mapping"),
    "to itself": ({"$ref": "#"}, {}, "without end"),
    "to itself in a list": ({"allOf": [{"anyOf": [{"$ref": "#"}]}]}, {}, "without end"),
    "to each other": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {},
        "without end",
    ),
    "deep": (nested(400), {}, "nested deeper than 100 levels"),
    "deep alternatives": (nested(300, "anyOf"), {}, "nested deeper than 100 levels"),
    "doubling all": (branching(40, "allOf"), {}, "takes more than"),
    "doubling alternatives": (branching(40, "oneOf"), {}, "takes more than"),
    "pattern": ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 60 + "!"}, "does not match"),
    "other dialect": (
        {"properties": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "^(a|a)*$"}}},
        {"a": "a" * 60 + "!"},
        "$schema is not supported",
    ),
    "other dialect above": (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"$ref": "#"}},
            "pattern": "^(a|a)*$",
        },
        {"a": "a" * 60 + "!"},
        "does not match",
    ),
    "other base": (
        {"$id": "http://127.0.0.1:9/", "properties": {"a": {"$id": "x", "$ref": "#/properties"}}},
        {},
        "$id is not supported",
    ),
    "name like a keyword": (
        {"properties": {"$id": TEXT, "$schema": TEXT}, "additionalProperties": {"$ref": "#/properties/$id"}},
        {"$id": "x", "$schema": "y", "a": 1},
        "is not of type",
    ),
    "names": ({"patternProperties": {"^(a|aa)+$": False}}, {"a" * 60 + "!": 1}, ""),
    "names beside": (
        {"patternProperties": {"^(.*a){30}$": {}}, "additionalProperties": False},
        {"a" * 25 + "b" * 5_000: 1},
        "fails its gate",
    ),
    "look-around": ({"properties": {"a": {"pattern": "^(?=a)"}}}, {"a": "b"}, "linear time"),
    "repetitions": ({"properties": {"a": {"pattern": "(x{1000}){1000}"}}}, {"a": "b"}, "linear time"),
    "no pattern": ({"properties": {"a": {"pattern": "("}}}, {"a": "b"}, "linear time"),
    "unique": (
        {"properties": {"a": {"uniqueItems": True}}},
        {"a": [{"n": number} for number in range(20_000)]},
        "takes more than",
    ),
    "unique numbers": (
        {"properties": {"a": {"uniqueItems": True}}},
        {"a": [number * (2**61 - 1) for number in range(20_000)]},
        "",
    ),
    "wide": (
        {"properties": {"a": {"items": {"required": [f"p{number}" for number in range(5_000)]}}}},
        {"a": [{}] * 5_000},
        "takes more than",
    ),
    "long texts": (
        {"properties": {"a": {"allOf": [{"type": "null"}] * 20_000}}},
        {"a": "x" * 200_000},
        "takes more than",
    ),
    "many texts": (
        {"properties": {"a": {"items": {"enum": ["x" * 1_000] * 20_000}}}},
        {"a": ["x" * 999] * 5_000},
        "takes more than",
    ),
    "any items": ({"allOf": [{"items": {}}] * 1_000}, {}, ""),
    "any items of many": (
        {"properties": {"a": {"allOf": [{"items": {}}] * 1_000}}},
        {"a": [1] * 30_000},
        "takes more than",
    ),
    "many patterns": (
        {"patternProperties": {f"(x{{900}}){number}": {} for number in range(3_000)}},
        {},
        "more than 100 patterns",
    ),
    "large pattern": (
        {"properties": {"a": {"pattern": "^[ab]*a[ab]{900}c$"}}},
        {"a": "abaab" * 100_000},
        "takes more than",
    ),
    "large": ({"enum": [0] * 60_000}, {}, "more than 50,000 values"),
    "deep value": ({"examples": nested(400)}, {}, "nested deeper than 100 levels"),
    "no number": ({"properties": {"a": {"multipleOf": 0.5}}}, {"a": float("nan")}, "cannot be held against"),
    "large number": ({"properties": {"a": {"multipleOf": 0.5}}}, {"a": 10**400}, "cannot be held against"),
    "odd paths": ({"title": "x", "allOf": [{"$ref": "#/allOf/x"}]}, {}, "leads to nothing"),
    "path into a text": ({"title": "x", "allOf": [{"$ref": "#/title/0/1"}]}, {}, "leads to nothing"),
    "path into a number": (
        {"allOf": [{"$ref": "#/allOf/0/maxItems/1", "maxItems": 5}]},
        {},
        "leads to nothing",
    ),
    "properties": ({"properties": 5}, {}, "properties is not valid: Expected `object`, got `int`"),
    "required": ({"required": 5}, {}, "required is not valid: Expected `array`, got `int`"),
    "type": ({"type": ["strng"]}, {}, "type is not valid"),
    "multiple": ({"properties": {"a": {"multipleOf": 0}}}, {"a": 1}, "multipleOf is not valid"),
    "fraction": ({"properties": {"a": {"multipleOf": 2.0**-1000}}}, {"a": 2.0**1000}, ""),
    "bound": ({"properties": {"a": {"minimum": "1"}}}, {"a": 1}, "minimum is not valid"),
    "list": ([], {}, "a schema is a mapping"),
    "text": ("x", {}, "a schema is a mapping"),
}
"""By name: a schema, a reply, and part of what is told; empty where the reply is of the schema."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Panda:
    """A project with a turn of a model that writes, whose calls have schemas."""
    server = ModelServer()
    panda = Panda(tmp_path_factory.mktemp("asked") / "project", store=LAPTOPS, user="ann")
    panda.write("models.yaml", server.models())
    ended = panda.turn(QUERY)
    server.close()
    assert ended.data["status"] == "approved", ended.out
    return panda


def copy_store(panda: Panda, name: str, schema: object, reply: object) -> tuple[Path, int]:
    """Copy the store, with another schema and reply of a call of its last turn; returns turn and line."""
    store = Path(shutil.copytree(panda.store, panda.home / "others" / name))
    turn = store / panda.turn_file(3, "").relative_to(panda.store)
    path = turn / "calls.jsonl"
    calls = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    line = next(n for n, call in enumerate(calls, 1) if call.get("parameters", {}).get("schema"))
    calls[line - 1]["parameters"]["schema"] = schema
    calls[line - 1]["output"] = json.dumps(reply)
    path.write_text("".join(f"{json.dumps(call)}\n" for call in calls), encoding="utf-8")
    metadata = json.loads((turn / "metadata.json").read_text(encoding="utf-8"))
    del metadata["seal"]
    (turn / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    return turn, line


def test_validate_judges_replies_by_any_schema(asked: Panda) -> None:
    """A schema of a saved call is at worst a finding of its line, and the other turns are judged as well."""
    places = {name: copy_store(asked, name, *HOSTILE[name][:2]) for name in HOSTILE}
    turns = [str(turn) for turn, _ in places.values()]
    with asked.start("validate", *turns, str(asked.turn_file(3, "")), "--json") as process:
        out, err = process.communicate(timeout=SECONDS * 4)
    assert process.returncode == 3, out + err
    findings = [
        (problem["path"], problem["line"], problem["message"])
        for problem in json.loads(out)["data"]["problems"]
    ]
    for name, (turn, line) in places.items():
        message_part = HOSTILE[name][2]
        own = [(at, message) for path, at, message in findings if path == str(turn / "calls.jsonl")]
        if message_part:
            assert [message for at, message in own if at == line and message_part in message], (name, own)
        else:
            assert own == [], name
    assert not [path for path, _, _ in findings if not path.endswith("calls.jsonl")]


REFLECTION = "pipeline/phase1_reflection"
FAULTS: dict[str, tuple[Any, str, str]] = {
    "address": ({"$ref": "http://127.0.0.1:9/x"}, ".$ref", "leads out of the schema"),
    "file": ({"$ref": "file:///etc/passwd"}, ".$ref", "leads out of the schema"),
    "pattern": ({"type": "string", "pattern": "^(?=(a+)+$)"}, ".pattern", "linear time"),
    "grammar": (
        {"allOf": [{"type": "string", "pattern": f"^.*a.{{{n}}}b.*$"} for n in range(2, 40)]},
        "",
        "reading it",
    ),
    "type": ({"type": "strng"}, ".type", "'strng'"),
}
"""By name: the schema of a property of a reply, the key below it that is told, and part of what is told."""


def put_recipe(panda: Panda, schema: object) -> Path:
    """Give the project a recipe of its own in which a property has this schema."""
    recipe = yaml.safe_load((ROOT / "recipes" / f"{REFLECTION}.yaml").read_text(encoding="utf-8"))
    recipe["output_schema"]["properties"]["question"] = schema
    return panda.write(f"recipes/{REFLECTION}.yaml", yaml.safe_dump(recipe, sort_keys=False))


@pytest.mark.parametrize("name", FAULTS)
def test_a_recipe_with_a_hostile_schema_is_refused(name: str, tmp_path: Path) -> None:
    """A turn does not begin (2), and `validate` names file and key (3); nothing hangs."""
    schema, below, message_part = FAULTS[name]
    panda = Panda(tmp_path / "project", store=LAPTOPS, user="ann")
    path = put_recipe(panda, schema)
    with panda.start("turn", "--json", "--", QUERY) as process:
        out, err = process.communicate(timeout=SECONDS * 2)
    error = json.loads(out)["error"]
    assert (process.returncode, error["type"]) == (2, "RecipeSchemaError"), err
    assert str(path) in error["where"]
    assert message_part in error["message"]
    with panda.start("validate", "--json") as process:
        out, err = process.communicate(timeout=SECONDS * 2)
    assert process.returncode == 3, err
    problems = [problem for problem in json.loads(out)["data"]["problems"] if problem["path"] == str(path)]
    assert [problem["message"] for problem in problems if message_part in problem["message"]], [
        problem["message"] for problem in problems
    ]
    if below:
        assert [problem["key"] for problem in problems] == [f"output_schema.properties.question{below}"]


@pytest.mark.parametrize("words", [("recipe", "show", REFLECTION), ("recipe", "list")])
def test_recipes_are_shown_without_judging_by_them(words: tuple[str, ...], tmp_path: Path) -> None:
    """Commands that only read recipes retrieve nothing and end soon, with an error of that file at worst."""
    panda = Panda(tmp_path / "project", store=LAPTOPS, user="ann")
    put_recipe(panda, {"$ref": "http://127.0.0.1:9/x"})
    with panda.start(*words) as process:
        _, err = process.communicate(timeout=SECONDS)
    assert process.returncode in (0, 2, 3), err
