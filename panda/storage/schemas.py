"""The JSON Schemas of the store's files: which schema a file has, and what is wrong with a value."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from panda.documents.json_schema import surely_fits
from panda.documents.problems import Problem
from panda.errors import FileFormatError
from panda.storage import layout

if TYPE_CHECKING:  # takes a while to import
    from jsonschema.exceptions import ValidationError

_BY_NAME = {
    layout.METADATA_JSON: "metadata",
    layout.METRICS_JSON: "metrics",
    layout.SNAPSHOT_JSON: "snapshot",
    layout.CALLS_JSONL: "call_line",
    layout.IMAGE_JSON: "image",
    layout.QUERY_ANALYSIS_JSON: "query_analysis",
    layout.REFLECTION_JSON: "reflection",
    layout.RETRIEVAL_PLAN_JSON: "retrieval_plan",
    layout.GATHERED_CONTEXT_JSON: "gathered_context",
    layout.PLAN_JSON: "plan",
    layout.SUMMARY_JSON: "summary",
    layout.INDEX_SUMMARY_JSON: "index_summary",
    layout.STAGED_MEMORY_JSON: "staged_memory",
    layout.RESEARCH_JSON: "research",
    layout.MANIFEST_JSON: "manifest",
    layout.EXTRACTED_JSON: "extracted",
    layout.MEMORY_JSONL: "memory_line",
    layout.CONFLICTS_JSONL: "conflict_line",
    layout.PROPOSED_FACTS_JSONL: "proposed_fact_line",
    layout.SESSION_JSON: "session",
    layout.CLOSED_JSON: "closed_session",
    "recipe_version.json": "recipe_version",
    layout.RUN_JSON: "run",
    layout.RUN_TURNS_JSONL: "run_turn",
    "import.jsonl": "import_line",
}
_BY_DIRECTORY = {"steps": "step", "interventions": "intervention"}
_MESSAGE_CHARS = 300


def schema_name(path: str) -> str | None:
    """
    Name of the schema that a file of the store follows; for a .jsonl file, each of its lines.

    Args:
        path: File name, or a path of which the last directory counts too.

    Returns:
        The name, or None for a file without a schema.

    >>> schema_name("metadata.json"), schema_name("steps/step_01.json"), schema_name("notes.json")
    ('metadata', 'step', None)
    """
    pure = PurePath(path)
    if pure.suffix == ".json" and pure.parent.name in _BY_DIRECTORY:
        return _BY_DIRECTORY[pure.parent.name]
    return _BY_NAME.get(pure.name)


@cache
def _load_schema(schema: str) -> Mapping[str, Any]:
    text = (files("panda.storage") / "schemas" / f"{schema}.json").read_text(encoding="utf-8")
    value: Mapping[str, Any] = json.loads(text)
    return value


def json_problems(name: str, value: object, *, path: str, line: int | None = None) -> list[Problem]:
    """
    What is wrong with a value that a file holds, or is about to hold.

    Args:
        name: File name in the store, as for schema_name.
        value: The parsed value; of a .jsonl file, one line's.
        path: Path of the file, for the problems.
        line: Line of the value, for .jsonl files.

    Returns:
        One problem for each place, in the order of the keys; none if the file has no schema.
    """
    schema = schema_name(name)
    if schema is None:
        return []
    found = _faults(_load_schema(schema), value)
    return [Problem(path, message, line=line, key=key or None) for key, message in found]


def _faults(schema: Mapping[str, Any], value: object) -> list[tuple[str, str]]:
    """Key and message of each fault."""
    if surely_fits(schema, value):
        return []
    written = json.loads(json.dumps(value))  # what is about to be written may hold tuples
    if surely_fits(schema, written):
        return []
    from jsonschema import Draft202012Validator

    errors = sorted(Draft202012Validator(schema).iter_errors(written), key=_key)
    return [(_key(error), _message(error)) for error in errors]


def _key(error: "ValidationError") -> str:
    return ".".join(str(part) for part in error.absolute_path)


def _message(error: "ValidationError") -> str:
    message = error.message
    if len(message) > _MESSAGE_CHARS:
        message = f"{message[:_MESSAGE_CHARS]} … ({len(message)} characters)"
    return message


def check_json(name: str, value: object, where: str) -> None:
    """
    Raises unless a value fits the schema of its file; a file without a schema takes any value.

    Args:
        name: File name in the store, as for schema_name.
        value: The parsed value.
        where: Path of the file, for the error.

    Raises:
        FileFormatError: It does not fit; names the first key that is wrong.
    """
    for problem in json_problems(name, value, path=where):
        raise FileFormatError(problem.message, where=problem.where)
