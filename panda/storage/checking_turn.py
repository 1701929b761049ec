"""What is wrong with a turn directory."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from panda.documents.context import ContextDocument, parse_context
from panda.documents.problems import Problem
from panda.documents.sections import SECTIONS, heading
from panda.errors import PandaError
from panda.storage.checking_files import check_file, load_checked, problem_of
from panda.storage.files import read_text
from panda.storage.layout import (
    CONTEXT_MD,
    EXTRACTED_JSON,
    IMAGE_JSON,
    MANIFEST_JSON,
    METADATA_JSON,
    RESPONSE_MD,
    SUMMARY_JSON,
    TurnPaths,
)
from panda.storage.names import turn_number
from panda.storage.sealing import check_seal
from panda.storage.temporaries import is_abandoned, is_temporary
from panda.storage.turn_images import load_picture

_LAST_SECTION = SECTIONS[-1].number
_ANSWERING = {"approved", "imported"}


def expected_sections(status: str, route: Sequence[int], next_phase: int | None) -> set[int]:
    """
    Numbers of the sections that a turn's context.md must hold.

    Args:
        status: As in metadata.json.
        route: Phases passed, in order. A phase passed again has thrown away what came after it.
        next_phase: Phase to go on with; None if the turn has ended.

    Source:
        design, phases and files.

    >>> sorted(expected_sections("approved", [0, 1, 2, 3, 5, 6, 5, 6, 7], None))
    [0, 1, 2, 3, 5, 6]
    >>> sorted(expected_sections("running", [0, 1, 2, 3, 5, 6], 5))
    [0, 1, 2, 3]
    >>> sorted(expected_sections("imported", [], None))
    [0, 5]
    """
    if status == "imported":
        return {0, 5}
    held: set[int] = set()
    for phase in route:
        if phase <= _LAST_SECTION:
            held = {number for number in held if number < phase} | {phase}
    return held if next_phase is None else {number for number in held if number < next_phase}


def check_turn(directory: Path) -> list[Problem]:
    """
    Everything that is wrong with one turn directory.

    Args:
        directory: A directory whose name carries a turn number.

    Returns:
        Files missing, files that do not read or do not fit their schemas, sections other than status and
        route imply, numbers that disagree with the directory's, visits without manifest, leftover temporary
        files.
    """
    number = turn_number(directory.name)
    problems: list[Problem] = []
    metadata: Any = None
    paths = TurnPaths(directory)
    for path in _below(directory):
        if is_temporary(path):
            problems += [leftover(path)] if is_abandoned(path) else []
        elif path.is_file() and path == paths / METADATA_JSON:
            metadata = load_checked(path, problems)
        elif path.is_file() and not any(map(is_temporary, path.relative_to(directory).parents)):
            problems += check_file(path)
    problems += [
        _missing(paths / name) for name in (METADATA_JSON, CONTEXT_MD) if not (paths / name).is_file()
    ]
    if metadata is not None:
        problems += _check_metadata(paths, metadata, number)
    problems += _check_numbers(paths, number)
    problems += _check_visits(paths)
    if metadata is None:
        return problems
    try:
        return problems + check_seal(directory, metadata, problems)
    except PandaError as exc:  # a file that cannot be read
        return [*problems, problem_of(exc, directory)]


def _below(directory: Path) -> list[Path]:
    """Everything below a directory; nothing if it goes away while it is read."""
    try:
        return sorted(directory.rglob("*"))
    except FileNotFoundError:
        return []


def leftover(path: Path) -> Problem:
    """The problem that a temporary file or directory was left behind."""
    return Problem(
        str(path),
        "temporary file left by a write that was cut short",
        fix="`panda index rebuild` removes it",
    )


def _missing(path: Path) -> Problem:
    return Problem(str(path), f"{path.name} is missing")


def _check_metadata(paths: TurnPaths, metadata: dict[str, Any], number: int | None) -> list[Problem]:
    path = paths / METADATA_JSON
    problems: list[Problem] = []
    if metadata["turn"] != number:
        problems.append(
            Problem(str(path), f"is of turn {metadata['turn']}, its directory of {number}", key="turn")
        )
    turns = paths.directory.parent
    if turns.name == "turns" and metadata["user_id"] != turns.parent.name:
        message = f"is of user {metadata['user_id']}, its directory of {turns.parent.name}"
        problems.append(Problem(str(path), message, key="user_id"))
    if metadata["status"] in _ANSWERING and not (paths / RESPONSE_MD).is_file():
        problems.append(_missing(paths / RESPONSE_MD))
    problems += _check_image(paths, metadata)
    return problems + _check_context(paths / CONTEXT_MD, metadata)


def _check_image(paths: TurnPaths, metadata: dict[str, Any]) -> list[Problem]:
    """The image that the turn was given, and once phase 0 has passed, what EYES said of it."""
    if (name := metadata.get("image")) is None:
        return []
    problems: list[Problem] = []
    try:
        found = load_picture(paths / name).file_name
        if found != PurePosixPath(name).name:
            problems.append(Problem(str(paths / name), f"has changed: its content is that of {found}"))
    except PandaError as exc:
        problems.append(Problem(str(paths / name), exc.message, fix=exc.fix))
    if 0 in metadata["route"] and not (paths / IMAGE_JSON).is_file():
        problems.append(_missing(paths / IMAGE_JSON))
    return problems


def _check_context(path: Path, metadata: dict[str, Any]) -> list[Problem]:
    try:
        document = parse_context(read_text(path), where=str(path))
    except PandaError:
        return []  # reported with the file itself
    problems = [
        Problem(
            str(path), f"{key} is {ours!r} here and {metadata[key]!r} in {METADATA_JSON}", line=1, key=key
        )
        for key, ours in (
            ("turn", document.front.turn),
            ("user_id", document.front.user_id),
            ("session_id", document.front.session_id),
            ("mode", document.front.mode),
        )
        if ours != metadata[key]
    ]
    return problems + _check_sections(path, document, metadata)


def _check_sections(path: Path, document: ContextDocument, metadata: dict[str, Any]) -> list[Problem]:
    next_phase = metadata["next"]["phase"] if metadata["next"] else None
    expected = expected_sections(metadata["status"], metadata["route"], next_phase)
    found = {section.number for section in document.sections}
    # A process that died between the renames of context.md and metadata.json leaves one section too many.
    spare = {next_phase} if metadata["status"] in ("running", "interrupted", "halted") else set()
    why = f"status {metadata['status']} and route {metadata['route']}"
    return [
        *(Problem(str(path), f"`{heading(n)}` is missing; {why} imply it") for n in sorted(expected - found)),
        *(
            Problem(str(path), f"`{heading(n)}` is one too many; {why} do not imply it")
            for n in sorted(found - expected - spare)
        ),
    ]


def _check_numbers(paths: TurnPaths, number: int | None) -> list[Problem]:
    """Numbers inside of files against those in their names; files that do not read are reported elsewhere."""
    problems: list[Problem] = []
    if (paths / SUMMARY_JSON).is_file():
        summary = load_checked(paths / SUMMARY_JSON, [])
        if summary is not None and summary["turn"] != number:
            message = f"is of turn {summary['turn']}, its directory of {number}"
            problems.append(Problem(str(paths / SUMMARY_JSON), message, key="turn"))
    for path in sorted((paths / "steps").glob("step_*.json")):
        step = load_checked(path, [])
        if step is not None and path != paths.step(step["step"]):
            message = f"is of step {step['step']}, its name is another"
            problems.append(Problem(str(path), message, key="step"))
    return problems


def _check_visits(paths: TurnPaths) -> list[Problem]:
    if not paths.webpage_cache.is_dir():
        return []
    visits = sorted(
        path for path in paths.webpage_cache.iterdir() if path.is_dir() and not is_temporary(path)
    )
    names = (MANIFEST_JSON, EXTRACTED_JSON)
    return [_missing(visit / name) for visit in visits for name in names if not (visit / name).is_file()]


def visit_ids(directory: Path) -> dict[Path, str]:
    """
    The visit_id of every readable manifest of a turn, by manifest.

    Args:
        directory: Turn directory.
    """
    found = {path: load_checked(path, []) for path in directory.glob(f"webpage_cache/*/{MANIFEST_JSON}")}
    return {path: manifest["visit_id"] for path, manifest in sorted(found.items()) if manifest is not None}
