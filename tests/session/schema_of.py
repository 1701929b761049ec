"""The JSON Schema of session.json, made of its dataclasses: `python -m tests.session.schema_of`."""

import json
import types
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from panda.session.file import Session
from panda.storage import schemas
from panda.storage.sealing import SEAL

FILE = Path(schemas.__file__).parent / "schemas" / "session.json"
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def schema_of(hint: Any) -> dict[str, Any]:
    """The schema of a type that a session may hold."""
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        required = [f.name for f in fields(hint) if f.default is MISSING and f.default_factory is MISSING]
        properties = {name: schema_of(one) for name, one in hints.items()}
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }
    if get_origin(hint) is tuple:
        return {"type": "array", "items": schema_of(get_args(hint)[0])}
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    assert get_origin(hint) in (Union, types.UnionType), hint
    return {"anyOf": [schema_of(one) for one in get_args(hint)]}


def session_schema() -> dict[str, Any]:
    """The schema of session.json."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "session"}
    schema = schema_of(Session)
    schema["properties"][SEAL] = {"type": "string"}
    return {**head, **schema}


if __name__ == "__main__":
    FILE.write_text(json.dumps(session_schema(), indent=2) + "\n", encoding="utf-8")
