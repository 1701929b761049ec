"""What `panda validate` checks of a store; recipes, prompts and models are checked elsewhere."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from panda.documents.context import SECTIONS, ContextDocument, find_context_problems, heading, parse_context
from panda.documents.memory_file import parse_memory_file
from panda.documents.records import decode
from panda.errors import FileFormatError, NotFoundError, Problem, UsageError, Verdict
from panda.store.files import is_abandoned, is_temporary, may_pass, parse_json, read_text, store_errors
from panda.store.layout import (
    CONFLICTS_JSONL,
    CONTEXT_MD,
    EXTRACTED_JSON,
    FACTS_MD,
    IMAGE_JSON,
    MANIFEST_JSON,
    MEMORY_JSONL,
    METADATA_JSON,
    PREFERENCES_MD,
    PROPOSED_FACTS_JSONL,
    RESPONSE_MD,
    SESSION_JSON,
    SUMMARY_JSON,
    Layout,
    TurnPaths,
    UserStore,
    check_id,
    turn_number,
)
from panda.store.records import Metadata, json_problems
from panda.store.seals import SEAL, check_seal, seal_value
from panda.store.turns import load_picture

_TEXT_SUFFIXES = {".md", ".json", ".jsonl"}


def load_checked(path: Path, problems: list[Problem]) -> Any:
    """
    The value of a JSON file; whatever is wrong with it is added to *problems*.

    Returns:
        The value if it fits its schema, else None.
    """
    try:
        value = parse_json(read_text(path), where=str(path))
    except Problem as exc:
        problems.append(exc)
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
        except Problem as exc:
            problems.append(exc)
    return problems


def _check_lines(path: Path, text: str) -> list[Problem]:
    problems: list[Problem] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line, where=str(path), line=number)
        except Problem as exc:
            problem: Problem = exc
            if number == len(lines):
                fix = "a write was cut short; the next one removes this line"
                problem = Problem(problem.message, str(path), line=number, fix=fix)
            problems.append(problem)
        else:
            problems += json_problems(_place(path), value, path=str(path), line=number)
    return problems


_LAST_SECTION = SECTIONS[-1].number
_ANSWERING = {"approved", "imported"}


def expected_sections(status: str, route: Sequence[int], next_phase: int | None) -> set[int]:
    """
    Numbers of the sections that a turn's context.md must hold.

    Args:
        status: As in metadata.json.
        route: Phases passed, in order. A phase passed again has thrown away what came after it.
        next_phase: Phase to go on with; None if the turn has ended.

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
        try:
            saved = decode(Metadata, metadata, where=str(paths / METADATA_JSON))
            problems += _check_metadata(paths, saved, number)
        except FileFormatError as exc:  # an instant that is none
            problems.append(exc)
    problems += _check_numbers(paths, number)
    problems += _check_visits(paths)
    if metadata is None:
        return problems
    try:
        return problems + check_seal(directory, metadata, problems)
    except Problem as exc:  # a file that cannot be read
        return [*problems, exc]


def _below(directory: Path) -> list[Path]:
    """Everything below a directory; nothing if it goes away while it is read."""
    try:
        return sorted(directory.rglob("*"))
    except FileNotFoundError:
        return []


def leftover(path: Path) -> Problem:
    """The problem that a temporary file or directory was left behind."""
    return Problem(
        "temporary file left by a write that was cut short", str(path), fix="`panda index rebuild` removes it"
    )


def _missing(path: Path) -> Problem:
    return Problem(f"{path.name} is missing", str(path))


def _check_metadata(paths: TurnPaths, metadata: Metadata, number: int | None) -> list[Problem]:
    path = paths / METADATA_JSON
    problems: list[Problem] = []
    if metadata.turn != number:
        problems.append(
            Problem(f"is of turn {metadata.turn}, its directory of {number}", str(path), key="turn")
        )
    turns = paths.directory.parent
    if turns.name == "turns" and metadata.user_id != turns.parent.name:
        message = f"is of user {metadata.user_id}, its directory of {turns.parent.name}"
        problems.append(Problem(message, str(path), key="user_id"))
    if metadata.status in _ANSWERING and not (paths / RESPONSE_MD).is_file():
        problems.append(_missing(paths / RESPONSE_MD))
    problems += _check_image(paths, metadata)
    return problems + _check_context(paths / CONTEXT_MD, metadata)


def _check_image(paths: TurnPaths, metadata: Metadata) -> list[Problem]:
    """The image that the turn was given, and once phase 0 has passed, what EYES said of it."""
    if (name := metadata.image) is None:
        return []
    problems: list[Problem] = []
    try:
        found = load_picture(paths / name).file_name
        if found != PurePosixPath(name).name:
            problems.append(Problem(f"has changed: its content is that of {found}", str(paths / name)))
    except Problem as exc:
        problems.append(Problem(exc.message, str(paths / name), fix=exc.fix))
    if 0 in metadata.route and not (paths / IMAGE_JSON).is_file():
        problems.append(_missing(paths / IMAGE_JSON))
    return problems


def _check_context(path: Path, metadata: Metadata) -> list[Problem]:
    try:
        document = parse_context(read_text(path), where=str(path))
    except Problem:
        return []  # reported with the file itself
    keys = ("turn", "user_id", "session_id", "mode")
    pairs = ((key, getattr(document.front, key), getattr(metadata, key)) for key in keys)
    problems = [
        Problem(f"{key} is {ours!r} here and {theirs!r} in {METADATA_JSON}", str(path), line=1, key=key)
        for key, ours, theirs in pairs
        if ours != theirs
    ]
    return problems + _check_sections(path, document, metadata)


def _check_sections(path: Path, document: ContextDocument, metadata: Metadata) -> list[Problem]:
    next_phase = metadata.next.phase if metadata.next else None
    expected = expected_sections(metadata.status, metadata.route, next_phase)
    found = {section.number for section in document.sections}
    # A process that died between the renames of context.md and metadata.json leaves one section too many.
    spare = {next_phase} if metadata.status in ("running", "interrupted", "halted") else set()
    why = f"status {metadata.status} and route {list(metadata.route)}"
    return [
        *(Problem(f"`{heading(n)}` is missing; {why} imply it", str(path)) for n in sorted(expected - found)),
        *(
            Problem(f"`{heading(n)}` is one too many; {why} do not imply it", str(path))
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
            problems.append(Problem(message, str(paths / SUMMARY_JSON), key="turn"))
    for path in sorted((paths / "steps").glob("step_*.json")):
        step = load_checked(path, [])
        if step is not None and path != paths.step(step["step"]):
            message = f"is of step {step['step']}, its name is another"
            problems.append(Problem(message, str(path), key="step"))
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
    """The visit_id of every readable manifest of a turn, by manifest."""
    found = {path: load_checked(path, []) for path in directory.glob(f"webpage_cache/*/{MANIFEST_JSON}")}
    return {path: manifest["visit_id"] for path, manifest in sorted(found.items()) if manifest is not None}


def check_store(
    layout: Layout, paths: Sequence[Path] = (), watch: Callable[[], None] = lambda: None
) -> list[Problem]:
    """
    Everything that is wrong with a store, or with parts of it.

    Args:
        paths: What to check: a root, a user's directory, a turn directory, any directory of these, or a file.
            Empty: the whole store.

    Returns:
        Problems, those of one file together; [] if all is well.

    Raises:
        NotFoundError: A path does not exist.
    """
    for path in paths:
        if not path.exists():
            raise NotFoundError(f"no such file or directory: {path}", where=str(path), fix="check the path")
    with store_errors(paths[0] if paths else layout.root, "check"):
        if not paths:
            return _check_root(layout.root, watch)
        found = (problem for path in paths for problem in _check_path(path.absolute(), watch))
        return list(dict.fromkeys(found))


def _check_path(path: Path, watch: Callable[[], None]) -> list[Problem]:
    if path.is_file():
        return check_file(path)
    if turn_number(path.name) is not None:
        return check_turn(path) + _check_visit_ids([path])
    if (path / "users").is_dir():
        return _check_root(path, watch)
    if path.parent.name == "users":
        return _check_user(path, watch)
    if path.name == "users":
        return [problem for user in _directories(path) for problem in _check_user(user, watch)]
    if path.name == "turns":
        return _check_turns(path, watch)
    return _check_loose(path, watch)


def _directories(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_dir() and not is_temporary(one) and may_pass(one))


def _check_loose(path: Path, watch: Callable[[], None]) -> list[Problem]:
    """Some other directory: all that it holds, each by itself."""
    problems: list[Problem] = []
    for one in sorted(path.iterdir()):
        if is_temporary(one):
            problems += [leftover(one)] if is_abandoned(one) else []
        elif one.is_file() or turn_number(one.name) is not None:
            problems += _check_path(one, watch)
        elif one.is_dir() and not one.is_symlink():
            problems += _check_loose(one, watch)
    return problems


def _check_root(root: Path, watch: Callable[[], None]) -> list[Problem]:
    layout = Layout(root)
    problems: list[Problem] = []
    if (root / "users").is_dir():
        for user in _directories(root / "users"):
            problems += _check_user(user, watch)
    for directory in (root, root / "users", layout.interventions, layout.executions_log.parent):
        problems += _leftovers(directory)
    for path in sorted(layout.interventions.glob("*.json")):
        value = load_checked(path, problems)
        if value is not None and value["id"] != path.stem:
            problems.append(Problem(f"its id {value['id']!r} is not its file name", str(path), key="id"))
    if layout.executions_log.is_file():
        problems += check_file(layout.executions_log)
    return problems


def _leftovers(directory: Path) -> list[Problem]:
    if not directory.is_dir():
        return []
    return [leftover(path) for path in sorted(directory.iterdir()) if is_abandoned(path)]


def _check_user(directory: Path, watch: Callable[[], None]) -> list[Problem]:
    problems = _leftovers(directory) + stray_notes(directory)
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
                problems.append(Problem(message, str(path), key=SEAL, fix=fix))
        elif path.is_file():
            problems += check_file(path)
    problems += _check_counter(directory)
    if (directory / "turns").is_dir():
        problems += _check_turns(directory / "turns", watch)
    return problems


def stray_notes(directory: Path) -> list[Problem]:
    """Notes in a user's own directory, where nothing reads them, as information."""
    known = {PREFERENCES_MD, FACTS_MD}
    notes = sorted(directory.glob("*.md")) if directory.is_dir() else []
    message, fix = "it is not read: notes stand in knowledge/", f"move it to {directory / 'knowledge'}"
    return [
        Problem(message, str(path), fix=fix, verdict=Verdict.SOUND)
        for path in notes
        if path.name not in known and path.is_file() and not is_temporary(path)
    ]


def _check_counter(directory: Path) -> list[Problem]:
    try:
        check_id(directory.name, what="user", where=str(directory))
    except UsageError as exc:
        return [exc]
    layout = Layout(directory.parent.parent)
    store = UserStore(layout.root, directory.name, _no_clock)
    path = layout.of(directory.name).turn_counter
    try:
        counter, highest = store.counter(), store.highest()
    except Problem as exc:
        return [exc]
    if counter >= highest:
        return []
    found = f"holds {counter}" if path.exists() else "is missing"
    return [Problem(f"{found}, but there is a turn {highest}", str(path), fix=f"write {highest} into it")]


def _no_clock() -> NoReturn:
    raise AssertionError("a check needs no clock")


def _check_turns(directory: Path, watch: Callable[[], None]) -> list[Problem]:
    problems = _leftovers(directory)
    turns: list[Path] = []
    for path in sorted(directory.iterdir()):
        if turn_number(path.name) is not None and not path.is_dir():
            problems.append(
                Problem("no directory, but it has the name of a turn", str(path), fix="move it away")
            )
        elif not path.is_dir() or is_temporary(path):
            continue
        elif turn_number(path.name) is not None:
            turns.append(path)
        elif path.name.startswith("turn_"):
            problems.append(Problem("not the name of a turn: six or more digits after turn_", str(path)))
    for path in turns:
        found = check_turn(path)
        problems += found if path.is_dir() else []  # a turn that has gone meanwhile has no problems
        watch()
    return problems + _check_visit_ids(turns)


def _check_visit_ids(turns: Iterable[Path]) -> list[Problem]:
    problems: list[Problem] = []
    seen: dict[str, Path] = {}
    for turn in turns:
        for path, visit_id in visit_ids(turn).items():
            first = seen.setdefault(visit_id, path)
            if first != path:
                message = f"visit_id {visit_id} is that of {first.parent} too"
                problems.append(Problem(message, str(path), key="visit_id"))
    return problems
