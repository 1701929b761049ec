"""What `panda validate` checks of a store: each file is loaded as its record, then the rules across files."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Any

from msgspec import UNSET

from panda.documents.context import SECTIONS, ContextDocument, ContextScan, Phase, heading, parse_context
from panda.documents.memory_file import parse_memory_file
from panda.documents.note import parse_note
from panda.documents.progress import progress
from panda.documents.times import render_time
from panda.documents.yaml_text import load_yaml
from panda.errors import Location, NotFoundError, Problem, Verdict
from panda.store.files import (
    is_abandoned,
    is_temporary,
    may_pass,
    read_bytes,
    read_json,
    read_text,
    store_errors,
)
from panda.store.forgetting_mark import FORGETTING_JSON, read_cut_short
from panda.store.layout import (
    CONFLICTS_JSONL,
    CONTEXT_MD,
    FACTS_MD,
    MEMORY_JSONL,
    PREFERENCES_MD,
    PROPOSED_FACTS_JSONL,
    RESEARCH_MD,
    RESPONSE_MD,
    Layout,
    TurnPaths,
    UserStore,
    check_id,
    count_turns,
    turn_number,
    users_of,
)
from panda.store.lines import LineTail
from panda.store.records import (
    Extracted,
    Image,
    Intervention,
    Manifest,
    Metadata,
    Research,
    Session,
    Step,
    Summary,
    TurnDocuments,
    format_of,
    load,
    parse,
)
from panda.store.seals import SEAL, check_seal, seal_value
from panda.store.turn_documents import check_documents
from panda.store.turns import load_picture
from panda.store.visit_records import named_visits

_LAST_SECTION = SECTIONS[-1].number
_OF_USER = (PREFERENCES_MD, FACTS_MD, MEMORY_JSONL, CONFLICTS_JSONL, PROPOSED_FACTS_JSONL)


def check_store(layout: Layout, paths: Sequence[Path] = ()) -> list[Problem]:
    """
    Everything that is wrong with a store, or with the roots, users, turns, other directories and files at
    *paths*. Raises NotFoundError: a path does not exist.
    """
    for path in paths:
        if not path.exists():
            raise NotFoundError(f"no such file or directory: {path}", where=str(path), fix="check the path")
    check = _Check()
    with store_errors(paths[0] if paths else layout.root, "check"):
        for path in paths:
            check.place(path.absolute())
        if not paths:  # of a part it is not known how much it is
            with progress("checking", count_turns(layout)) as check.advance:
                check.root(layout.root)
    return list(dict.fromkeys(check.problems))


def expected_sections(status: str, route: Sequence[int], next_phase: int | None) -> set[int]:
    """
    Numbers of the sections that a turn's context.md must hold; a phase passed again has thrown away what came
    after it.

    >>> sorted(expected_sections("approved", [0, 1, 2, 3, 5, 6, 5, 6, 7], None))
    [0, 1, 2, 3, 5, 6]
    >>> sorted(expected_sections("running", [0, 1, 2, 3, 5, 6], 5))
    [0, 1, 2, 3]
    """
    if status == "imported":
        return {0, 5}
    held: set[int] = set()
    for phase in route:
        if phase <= _LAST_SECTION:
            held = {number for number in held if number < phase} | {phase}
    return held if next_phase is None else {number for number in held if number < next_phase}


MODE = "mode"
"""Key of what is told of the permissions of a file or directory."""


def readable_by_others(layout: Layout, places: Sequence[Path]) -> list[Problem]:
    """
    The memories of all users, or of those at *places*, that others on this machine may read, as information:
    panda writes them for their user alone, and earlier versions did not.
    """
    homes = [layout.of(user).home.absolute() for user in users_of(layout)]
    within = [place.absolute() for place in places]
    wanted = (home for home in homes if not within or any(home.is_relative_to(place) for place in within))
    return [problem for home in wanted for problem in _readable_by_others(home)]


def _readable_by_others(home: Path) -> list[Problem]:
    above = (home.parent.parent, home.parent, home)
    if any(not _mode_for_others(path) for path in above):
        return []
    files = [name for name in (*_OF_USER, "turns", "sessions") if _mode_for_others(home / name)]
    if not files:
        return []
    message = f"others can read what it remembers: {', '.join(files)}"
    fix = f"chmod -R go-rwx {quote(str(home))}"
    return [Problem(message, str(home), key=MODE, fix=fix, verdict=Verdict.SOUND)]


def _mode_for_others(path: Path) -> int:
    """The bits of a path's mode that are for others than its owner; 0 if it is not there."""
    with suppress(OSError):
        return path.stat().st_mode & 0o077
    return 0


def _visit_ids_below(turns: Path) -> set[str]:
    """The ids of all visits of a user, of manifests that can be read."""
    visit_ids = set[str]()
    for path in turns.glob(f"turn_*/webpage_cache/*/{Manifest.FILE}"):
        with suppress(Problem):
            visit_ids.add(load(Manifest, path).visit_id)
    return visit_ids


def stray_notes(directory: Path) -> list[Problem]:
    """Notes in a user's own directory, where nothing reads them, as information."""
    notes = sorted(directory.glob("*.md")) if directory.is_dir() else []
    message = "it is not read: notes stand in knowledge/"
    fix = f"move it to {directory / 'knowledge'}"
    return [
        Problem(message, str(path), fix=fix, verdict=Verdict.SOUND)
        for path in notes
        if path.name not in _OF_USER and path.is_file() and not is_temporary(path)
    ]


class _Check:
    """What is wrong, as it is found."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._visits_below: dict[Path, set[str]] = {}
        self.advance: Callable[[], None] = lambda: None

    def _say(self, message: str, path: Path, **more: Any) -> None:
        self.problems.append(Problem(message, str(path), **more))

    def _need(self, *paths: Path) -> None:
        for path in paths:
            if not path.is_file():
                self._say(f"{path.name} is missing", path)

    def _sweep(self, paths: Iterable[Path]) -> list[Path]:
        """The paths but for temporary ones, of which those that were left behind are told."""
        all_paths = list(paths)
        for path in filter(is_abandoned, all_paths):
            message = "temporary file left by a write that was cut short"
            self._say(message, path, fix="`panda index rebuild` removes it")
        return [path for path in all_paths if not is_temporary(path)]

    def place(self, path: Path) -> None:
        """A file or directory, by what it is."""
        if path.is_file():
            self.file(path)
        elif turn_number(path.name) is not None:
            self._visit_ids([self.turn(path)])
        elif (path / "users").is_dir():
            self.root(path)
        elif path.parent.name == "users":
            self._user(path)
        elif path.name == "users":
            self._users(path)
        elif path.name == "turns":
            self._turns(path)
        else:
            for inner in self._sweep(sorted(path.iterdir())):
                if inner.is_file() or not inner.is_symlink() or turn_number(inner.name) is not None:
                    self.place(inner)

    def file(self, path: Path) -> Any:
        """The record of a file; None if it has none, or a fault, which is told."""
        kind = format_of(f"{path.parent.name}/{path.name}")
        where = str(path)
        try:
            if path.suffix == ".json":
                return parse(kind, read_bytes(path), where=where) if kind else read_json(path)
            if path.suffix == ".jsonl":
                parts = LineTail(path, kind or Any).read()[1]
                self.problems += [part for part in parts if isinstance(part, Problem)]
            elif path.name == CONTEXT_MD:
                self.problems += ContextScan(read_text(path), where).problems
            elif path.name in (PREFERENCES_MD, FACTS_MD):
                parse_memory_file(read_text(path), where=where)
            elif path.suffix in (".yaml", ".yml"):
                load_yaml(read_text(path), where=where)
            elif path.suffix == ".md":
                text = read_text(path)
                if not any(turn_number(above.name) is not None for above in path.absolute().parents):
                    self.problems += parse_note(text, where=where).faults
        except Problem as exc:
            self.problems.append(exc)
        return None

    def turn(self, directory: Path) -> dict[Path, str]:
        """A turn; gives the visit_id of each manifest that it holds."""
        before = len(self.problems)
        paths = TurnPaths(directory)
        number = turn_number(directory.name)
        below: list[Path] = []
        with suppress(FileNotFoundError):  # it goes away while it is read
            below = [path for path in self._sweep(sorted(directory.rglob("*"))) if path.is_file()]
        inside = [p for p in below if not any(map(is_temporary, p.relative_to(directory).parents))]
        records = {path: self.file(path) for path in inside}
        self._need(paths / Metadata.FILE, paths / CONTEXT_MD)
        metadata = records.get(paths / Metadata.FILE)
        if isinstance(metadata, Metadata):
            self._metadata(paths, metadata, number)
        for path, record in records.items():
            if isinstance(record, Summary) and path == paths / Summary.FILE and record.turn != number:
                self._say(f"is of turn {record.turn}, its directory of {number}", path, key="turn")
            if isinstance(record, Step) and path != paths.step(record.step):
                self._say(f"is of step {record.step}, its name is another", path, key="step")
        visits = sorted(paths.webpage_cache.iterdir()) if paths.webpage_cache.is_dir() else []
        for visit in visits:
            if visit.is_dir() and not is_temporary(visit):
                self._need(visit / Manifest.FILE, visit / Extracted.FILE)
        visit_ids = {
            path: record.visit_id for path, record in records.items() if isinstance(record, Manifest)
        }
        research = records.get(paths / Research.FILE)
        named = research.webpage_cache if isinstance(research, Research) else ()
        self._researched(paths, named, set(visit_ids.values()))
        if isinstance(metadata, Metadata):
            self._seal(paths, metadata, self.problems[before:])
        if not directory.is_dir():  # a turn that has gone meanwhile has no problems
            del self.problems[before:]
        return visit_ids

    def _researched(self, paths: TurnPaths, named: Sequence[str], here: set[str]) -> None:
        """The visits that research names must be there, in its turn or in another one of the user."""
        places: dict[str, Location] = {}
        for n, visit_id in enumerate(named):
            places.setdefault(visit_id, Location(paths / Research.FILE, key=f"webpage_cache[{n}]"))
        with suppress(Problem):  # missing, or told with the file itself
            for line, visit_id in named_visits(read_text(paths / RESEARCH_MD)):
                places.setdefault(visit_id, Location(paths / RESEARCH_MD, line=line))
        turns = paths.directory.parent
        if not here.issuperset(places) and turns not in self._visits_below:
            self._visits_below[turns] = _visit_ids_below(turns)
        for visit_id, place in places.items():
            if visit_id not in here and visit_id not in self._visits_below[turns]:
                message = f"it names the visit {visit_id}, which is not there"
                command = f"panda forget visit:{visit_id} --user {turns.parent.name}"
                fix = f"restore its directory in webpage_cache/, or take its name out: {command}"
                self.problems.append(Problem(message, place, fix=fix))

    def _seal(self, paths: TurnPaths, metadata: Metadata, known_problems: Sequence[Problem]) -> None:
        """Hold a saved turn against its seal; one in which something was forgotten has to have one."""
        path = paths / Metadata.FILE
        forgotten_at = metadata.forgotten_at
        user = paths.directory.parent.parent
        cut_short = read_cut_short(user.parent.parent) if forgotten_at is not None else None
        if cut_short is not None and cut_short.at == forgotten_at:
            return  # told with forgetting.json
        if metadata.seal is not None:
            try:
                self.problems += check_seal(paths.directory, read_json(path), known_problems)
            except Problem as exc:  # a file that cannot be read
                self.problems.append(exc)
        elif forgotten_at is not None and metadata.next is None:
            message = "something was forgotten in it, but it has no seal, so that no other change can be seen"
            command = f"panda forget --seal {metadata.turn} --user {user.name}"
            fix = f"if an earlier version of panda forgot it, `{command}` seals it as it is now"
            self._say(message, path, key="forgotten_at", fix=fix)

    def _metadata(self, paths: TurnPaths, metadata: Metadata, number: int | None) -> None:
        path = paths / Metadata.FILE
        turns = paths.directory.parent
        user = turns.parent.name
        if metadata.turn != number:
            self._say(f"is of turn {metadata.turn}, its directory of {number}", path, key="turn")
        if turns.name == "turns" and metadata.user_id != user:
            self._say(f"is of user {metadata.user_id}, its directory of {user}", path, key="user_id")
        if metadata.status in ("approved", "imported"):
            self._need(paths / RESPONSE_MD)
        if (name := metadata.image) is not None:
            try:
                if (is_of := load_picture(paths / name).file_name) != PurePosixPath(name).name:
                    self._say(f"has changed: its content is that of {is_of}", paths / name)
            except Problem as exc:
                self._say(exc.message, paths / name, fix=exc.fix)
            if Phase.QUERY_ANALYZER in metadata.route:
                self._need(paths / Image.FILE)
        try:
            check_documents(paths, metadata.document_count)
        except Problem as exc:
            is_there = (paths / TurnDocuments.FILE).is_file()
            if exc.path != str(paths / TurnDocuments.FILE) or not is_there:  # else told with the file itself
                self.problems.append(exc)
        with suppress(Problem):  # told with the file itself
            context = paths / CONTEXT_MD
            self._context(context, parse_context(read_text(context), where=str(context)), metadata)

    def _context(self, path: Path, document: ContextDocument, metadata: Metadata) -> None:
        for key in ("turn", "user_id", "session_id", "mode"):
            ours = getattr(document.front, key)
            theirs = getattr(metadata, key)
            if ours != theirs:
                message = f"{key} is {ours!r} here and {theirs!r} in {Metadata.FILE}"
                self._say(message, path, line=1, key=key)
        next_phase = metadata.next.phase if metadata.next else None
        expected = expected_sections(metadata.status, metadata.route, next_phase)
        there = {section.number for section in document.sections}
        why = f"status {metadata.status} and route {list(metadata.route)}"
        for n in sorted(expected - there):
            self._say(f"`{heading(n)}` is missing; {why} imply it", path)
        # A process that died between the renames of context.md and metadata.json leaves one section too many.
        spare = {next_phase} if metadata.status in ("running", "interrupted", "halted") else set()
        for n in sorted(there - expected - spare):
            self._say(f"`{heading(n)}` is one too many; {why} do not imply it", path)

    def _visit_ids(self, turns: Iterable[dict[Path, str]]) -> None:
        seen: dict[str, Path] = {}
        for visits in turns:
            for path, visit_id in visits.items():
                if (first := seen.setdefault(visit_id, path)) != path:
                    self._say(f"visit_id {visit_id} is that of {first.parent} too", path, key="visit_id")

    def root(self, root: Path) -> None:
        layout = Layout(root)
        if (cut_short := read_cut_short(root)) is not None:
            began = render_time(cut_short.at)
            message = f"a forgetting that began at {began} was cut short: some files may still hold it"
            self._say(message, root / FORGETTING_JSON, key="at", fix=cut_short.again)
        self._users(root / "users")
        for directory in (root, root / "users", layout.interventions, layout.executions_log.parent):
            if directory.is_dir():
                self._sweep(sorted(directory.iterdir()))
        for path in sorted(layout.interventions.glob("*.json")):
            record = self.file(path)
            if isinstance(record, Intervention) and record.id != path.stem:
                self._say(f"its id {record.id!r} is not its file name", path, key="id")
        runs = [path for path in sorted(layout.runs.glob("*/*.json*")) if may_pass(path.parent)]
        for path in [layout.executions_log, *runs]:
            if path.is_file():
                self.file(path)

    def _users(self, directory: Path) -> None:
        if not directory.is_dir():
            return
        for path in sorted(directory.iterdir()):
            if path.is_dir() and not is_temporary(path) and may_pass(path):
                self._user(path)

    def _user(self, directory: Path) -> None:
        self._sweep(sorted(directory.iterdir()))
        self.problems += stray_notes(directory)
        for name in _OF_USER:
            if (directory / name).is_file():
                self.file(directory / name)
        for path in self._sweep(sorted((directory / "sessions").rglob("*"))):
            record = self.file(path) if path.is_file() else None
            seal = record.seal if isinstance(record, Session) else UNSET
            if seal is not UNSET and seal != seal_value(read_json(path)):
                fix = "delete it: it is made again from the turns"
                self._say("it has changed since its last turn was saved", path, key=SEAL, fix=fix)
        try:
            check_id(directory.name, what="user", where=str(directory))
            store = UserStore(directory.parent.parent, directory.name)
            counter = store.counter()
            highest = store.highest()
            if counter < highest:
                holds = f"holds {counter}" if store.turn_counter.exists() else "is missing"
                message = f"{holds}, but there is a turn {highest}"
                self._say(message, store.turn_counter, fix=f"write {highest} into it")
        except Problem as exc:
            self.problems.append(exc)
        if (directory / "turns").is_dir():
            self._turns(directory / "turns")

    def _turns(self, directory: Path) -> None:
        visits = []
        for path in (paths := self._sweep(sorted(directory.iterdir()))):
            if turn_number(path.name) is not None and not path.is_dir():
                self._say("no directory, but it has the name of a turn", path, fix="move it away")
            elif path.is_dir() and path.name.startswith("turn_") and turn_number(path.name) is None:
                self._say("not the name of a turn: six or more digits after turn_", path)
        for path in paths:
            if turn_number(path.name) is not None and path.is_dir():
                visits.append(self.turn(path))
                self.advance()
        self._visit_ids(visits)
