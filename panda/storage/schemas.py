"""Which record each JSON file of the store holds, and what is wrong with a value."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

from panda.documents.json_schema import surely_fits
from panda.documents.problems import Problem
from panda.documents.records import schema_of
from panda.errors import FileFormatError
from panda.storage import formats, layout
from panda.storage.snapshot import Snapshot

if TYPE_CHECKING:  # takes a while to import
    from jsonschema.exceptions import ValidationError

BY_NAME: Mapping[str, Any] = {
    layout.METADATA_JSON: formats.Metadata,
    layout.METRICS_JSON: formats.Metrics,
    layout.SNAPSHOT_JSON: Snapshot,
    layout.CALLS_JSONL: formats.ChoiceCall | formats.GeneratedCall,
    layout.IMAGE_JSON: formats.Image,
    layout.QUERY_ANALYSIS_JSON: formats.QueryAnalysis,
    layout.REFLECTION_JSON: formats.Reflection,
    layout.RETRIEVAL_PLAN_JSON: formats.RetrievalPlan,
    layout.GATHERED_CONTEXT_JSON: formats.GatheredContext,
    layout.PLAN_JSON: formats.Plan,
    layout.SUMMARY_JSON: formats.Summary,
    layout.INDEX_SUMMARY_JSON: formats.IndexSummary,
    layout.STAGED_MEMORY_JSON: formats.StagedMemory,
    layout.RESEARCH_JSON: formats.Research,
    layout.MANIFEST_JSON: formats.Manifest,
    layout.EXTRACTED_JSON: formats.Extracted,
    layout.MEMORY_JSONL: formats.MemoryLine,
    layout.CONFLICTS_JSONL: Annotated[formats.ConflictLine, formats.RESOLVED],
    layout.PROPOSED_FACTS_JSONL: formats.ProposedFactLine,
    layout.SESSION_JSON: formats.SealedSession,
    layout.CLOSED_JSON: formats.ClosedSession,
    "recipe_version.json": formats.RecipeVersion,
    layout.RUN_JSON: formats.Run,
    layout.RUN_TURNS_JSONL: formats.RunTurn,
    "import.jsonl": formats.ImportLine,
}
BY_DIRECTORY: Mapping[str, Any] = {"steps": formats.Step, "interventions": formats.Intervention}
_MESSAGE_CHARS = 300


def format_of(path: str) -> Any:
    """
    The record that a file of the store holds; for a .jsonl file, each of its lines.

    Args:
        path: File name, or a path of which the last directory counts too.

    Returns:
        The type, or None for a file without one.

    >>> format_of("metadata.json").__name__, format_of("steps/step_01.json").__name__, format_of("notes.json")
    ('Metadata', 'Step', None)
    """
    pure = PurePath(path)
    if pure.suffix == ".json" and pure.parent.name in BY_DIRECTORY:
        return BY_DIRECTORY[pure.parent.name]
    return BY_NAME.get(pure.name)


_schema = cache(schema_of)


def json_problems(name: str, value: object, *, path: str, line: int | None = None) -> list[Problem]:
    """
    What is wrong with a value that a file holds, or is about to hold.

    Args:
        name: File name in the store, as for format_of.
        value: The parsed value; of a .jsonl file, one line's.
        path: Path of the file, for the problems.
        line: Line of the value, for .jsonl files.

    Returns:
        One problem for each place, in the order of the keys; none if the file has no record.
    """
    record = format_of(name)
    found = _faults(_schema(record), value) if record else []
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
    Raises unless a value fits the record of its file; a file without one takes any value.

    Args:
        name: File name in the store, as for format_of.
        value: The parsed value.
        where: Path of the file, for the error.

    Raises:
        FileFormatError: It does not fit; names the first key that is wrong.
    """
    for problem in json_problems(name, value, path=where):
        raise FileFormatError(problem.message, where=problem.where)
