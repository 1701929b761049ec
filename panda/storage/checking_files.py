"""What is wrong with single files of the store."""

from pathlib import Path
from typing import Any

from panda.documents.context import find_context_problems
from panda.documents.memory_file import parse_memory_file
from panda.documents.problems import Problem
from panda.errors import PandaError
from panda.storage.files import parse_json, read_text
from panda.storage.layout import CONTEXT_MD, FACTS_MD, PREFERENCES_MD
from panda.storage.schemas import json_problems

_TEXT_SUFFIXES = {".md", ".json", ".jsonl"}


def problem_of(error: PandaError, path: Path) -> Problem:
    """
    An error met while reading a file, as a problem with its line and key.

    Args:
        error: What was raised; its place is "path", "path:line" or either with " (key)".
        path: The file.
    """
    place, _, key = (error.where or "").removeprefix(str(path)).partition(" (")
    line = place.removeprefix(":")
    return Problem(
        str(path),
        error.message,
        line=int(line) if line.isascii() and line.isdigit() else None,
        key=key.removesuffix(")") or None,
        fix=error.fix,
    )


def load_checked(path: Path, problems: list[Problem]) -> Any:
    """
    The value of a JSON file; whatever is wrong with it is added to *problems*.

    Returns:
        The value if it fits its schema, else None.
    """
    try:
        value = parse_json(read_text(path), where=str(path))
    except PandaError as exc:
        problems.append(problem_of(exc, path))
        return None
    found = json_problems(_place(path), value, path=str(path))
    problems += found
    return None if found else value


def _place(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def check_file(path: Path) -> list[Problem]:
    """
    What is wrong with one file, seen alone: its syntax, its schema, its encoding.

    Args:
        path: Any file; one whose name the store does not know has no problems.
    """
    problems: list[Problem] = []
    if path.suffix == ".json":
        load_checked(path, problems)
    elif path.suffix in _TEXT_SUFFIXES:
        try:
            text = read_text(path)
            if path.suffix == ".jsonl":
                problems += _check_lines(path, text)
            elif path.name == CONTEXT_MD:
                problems += find_context_problems(text, path=str(path))
            elif path.name in (PREFERENCES_MD, FACTS_MD):
                parse_memory_file(text, where=str(path))
        except PandaError as exc:
            problems.append(problem_of(exc, path))
    return problems


def _check_lines(path: Path, text: str) -> list[Problem]:
    problems: list[Problem] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line, where=str(path), line=number)
        except PandaError as exc:
            problem = problem_of(exc, path)
            if number == len(lines):
                fix = "a write was cut short; the next one removes this line"
                problem = Problem(str(path), problem.message, line=number, fix=fix)
            problems.append(problem)
        else:
            problems += json_problems(_place(path), value, path=str(path), line=number)
    return problems
