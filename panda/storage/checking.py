"""What `panda validate` checks of a store; recipes, prompts and models are checked elsewhere."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from panda.documents.problems import Problem
from panda.errors import NotFoundError, PandaError, UsageError
from panda.storage.checking_files import check_file, load_checked, problem_of
from panda.storage.checking_turn import check_turn, leftover, visit_ids
from panda.storage.files import store_errors
from panda.storage.layout import (
    CONFLICTS_JSONL,
    FACTS_MD,
    MEMORY_JSONL,
    PREFERENCES_MD,
    PROPOSED_FACTS_JSONL,
    SESSION_JSON,
    Layout,
)
from panda.storage.links import may_pass
from panda.storage.names import check_id, turn_number
from panda.storage.sealing import SEAL, seal_value
from panda.storage.temporaries import is_abandoned, is_temporary
from panda.storage.turns import TurnStore


def check_store(layout: Layout, paths: Sequence[Path] = ()) -> list[Problem]:
    """
    Everything that is wrong with a store, or with parts of it.

    Args:
        layout: The store.
        paths: What to check: a root, a user's directory, a turn directory, any directory of these, or a file.
            Empty: the whole store.

    Returns:
        Problems, those of one file together; [] if all is well.

    Raises:
        NotFoundError: A path does not exist.
        StoreError: A directory cannot be listed.

    Source:
        design, files; issue 2, validate.
    """
    for path in paths:
        if not path.exists():
            raise NotFoundError(f"no such file or directory: {path}", where=str(path), fix="check the path")
    with store_errors(paths[0] if paths else layout.root, "check"):
        if not paths:
            return _check_root(layout.root)
        return list(dict.fromkeys(problem for path in paths for problem in _check_path(path.absolute())))


def _check_path(path: Path) -> list[Problem]:
    if path.is_file():
        return check_file(path)
    if turn_number(path.name) is not None:
        return check_turn(path) + _check_visit_ids([path])
    if (path / "users").is_dir():
        return _check_root(path)
    if path.parent.name == "users":
        return _check_user(path)
    if path.name == "users":
        return [problem for user in _directories(path) for problem in _check_user(user)]
    if path.name == "turns":
        return _check_turns(path)
    return _check_loose(path)


def _directories(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_dir() and not is_temporary(one) and may_pass(one))


def _check_loose(path: Path) -> list[Problem]:
    """Some other directory: all that it holds, each by itself."""
    problems: list[Problem] = []
    for one in sorted(path.iterdir()):
        if is_temporary(one):
            problems += [leftover(one)] if is_abandoned(one) else []
        elif one.is_file() or turn_number(one.name) is not None:
            problems += _check_path(one)
        elif one.is_dir() and not one.is_symlink():
            problems += _check_loose(one)
    return problems


def _check_root(root: Path) -> list[Problem]:
    layout = Layout(root)
    problems: list[Problem] = []
    if (root / "users").is_dir():
        for user in _directories(root / "users"):
            problems += _check_user(user)
    for directory in (root, root / "users", layout.interventions, layout.executions_log.parent):
        problems += _leftovers(directory)
    for path in sorted(layout.interventions.glob("*.json")):
        value = load_checked(path, problems)
        if value is not None and value["id"] != path.stem:
            problems.append(Problem(str(path), f"its id {value['id']!r} is not its file name", key="id"))
    if layout.executions_log.is_file():
        problems += check_file(layout.executions_log)
    return problems


def _leftovers(directory: Path) -> list[Problem]:
    if not directory.is_dir():
        return []
    return [leftover(path) for path in sorted(directory.iterdir()) if is_abandoned(path)]


def _check_user(directory: Path) -> list[Problem]:
    problems = _leftovers(directory)
    for name in (PREFERENCES_MD, FACTS_MD, MEMORY_JSONL, CONFLICTS_JSONL, PROPOSED_FACTS_JSONL):
        if (directory / name).is_file():
            problems += check_file(directory / name)
    sessions = directory / "sessions"
    for path in sorted(sessions.rglob("*")) if sessions.is_dir() else []:
        if is_temporary(path):
            problems += [leftover(path)] if is_abandoned(path) else []
        elif path.is_file() and path.name == SESSION_JSON:
            value = load_checked(path, problems)
            if value is not None and value.get(SEAL, seal_value(value)) != seal_value(value):
                message = "it has changed since its last turn was saved"
                fix = "delete it: it is made again from the turns"
                problems.append(Problem(str(path), message, key=SEAL, fix=fix))
        elif path.is_file():
            problems += check_file(path)
    problems += _check_counter(directory)
    if (directory / "turns").is_dir():
        problems += _check_turns(directory / "turns")
    return problems


def _check_counter(directory: Path) -> list[Problem]:
    try:
        check_id(directory.name, what="user", where=str(directory))
    except UsageError as exc:
        return [problem_of(exc, directory)]
    layout = Layout(directory.parent.parent)
    store = TurnStore(layout, directory.name, _no_clock)
    path = layout.turn_counter(directory.name)
    try:
        counter, highest = store.counter(), store.highest()
    except PandaError as exc:
        return [problem_of(exc, path)]
    if counter >= highest:
        return []
    found = f"holds {counter}" if path.exists() else "is missing"
    return [Problem(str(path), f"{found}, but there is a turn {highest}", fix=f"write {highest} into it")]


def _no_clock() -> NoReturn:
    raise AssertionError("a check needs no clock")


def _check_turns(directory: Path) -> list[Problem]:
    problems = _leftovers(directory)
    turns: list[Path] = []
    for path in sorted(directory.iterdir()):
        if turn_number(path.name) is not None and not path.is_dir():
            problems.append(
                Problem(str(path), "no directory, but it has the name of a turn", fix="move it away")
            )
        elif not path.is_dir() or is_temporary(path):
            continue
        elif turn_number(path.name) is not None:
            turns.append(path)
        elif path.name.startswith("turn_"):
            problems.append(Problem(str(path), "not the name of a turn: six or more digits after turn_"))
    for path in turns:
        found = check_turn(path)
        problems += found if path.is_dir() else []  # a turn that has gone meanwhile has no problems
    return problems + _check_visit_ids(turns)


def _check_visit_ids(turns: Iterable[Path]) -> list[Problem]:
    problems: list[Problem] = []
    seen: dict[str, Path] = {}
    for turn in turns:
        for path, visit_id in visit_ids(turn).items():
            first = seen.setdefault(visit_id, path)
            if first != path:
                message = f"visit_id {visit_id} is that of {first.parent} too"
                problems.append(Problem(str(path), message, key="visit_id"))
    return problems
