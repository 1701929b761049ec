"""Every file and directory name of the store, once, and where the files lie that come with panda."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from panda.documents.safe_text import ID_PATTERN, PATH_FIX, shorten
from panda.documents.times import Clock, present
from panda.errors import FileFormatError, NotFoundError, StoreError, UsageError
from panda.store.files import (
    held_lock,
    make_directory,
    may_pass,
    read_text,
    store_errors,
    sweep,
    write_atomic,
)

if TYPE_CHECKING:
    from panda.store.turns import TurnFolder

DEFAULT_USER = "default"
"""The one user who is made unasked."""
CONTEXT_MD = "context.md"
IMAGE_JSON = "image.json"
DOCUMENTS_JSON = "documents.json"
DOCUMENTS = "documents"
"""Directory of a turn with the texts of its documents."""
RESPONSE_MD = "response.md"
METADATA_JSON = "metadata.json"
METRICS_JSON = "metrics.json"
SNAPSHOT_JSON = "snapshot.json"
CALLS_JSONL = "calls.jsonl"
EXECUTIONS_JSONL = "executions.jsonl"
QUERY_ANALYSIS_JSON = "query_analysis.json"
REFLECTION_JSON = "reflection.json"
RETRIEVAL_PLAN_JSON = "retrieval_plan.json"
GATHERED_CONTEXT_JSON = "gathered_context.json"
EVIDENCE_JSON = "evidence.json"
PLAN_JSON = "plan.json"
TOOLRESULTS_MD = "toolresults.md"
SUMMARY_JSON = "summary.json"
INDEX_SUMMARY_JSON = "index_summary.json"
STAGED_MEMORY_JSON = "staged_memory.json"
RESEARCH_JSON = "research.json"
RESEARCH_MD = "research.md"
MANIFEST_JSON = "manifest.json"
CONTENT_MD = "content.md"
EXTRACTED_JSON = "extracted.json"
PREFERENCES_MD = "preferences.md"
FACTS_MD = "facts.md"
MEMORY_JSONL = "memory.jsonl"
SESSION_JSON = "session.json"
CLOSED_JSON = "closed.json"
RUN_JSON = "run.json"
RUN_TURNS_JSONL = "turns.jsonl"
QUERIES_JSONL = "queries.jsonl"
CONFLICTS_JSONL = "conflicts.jsonl"
PROPOSED_FACTS_JSONL = "proposed_facts.jsonl"
CLAIM_WAIT_SECONDS = 60.0


LAST = "last"
"""What a user types for the newest turn, or the newest run."""


def turn_name(number: int) -> str:
    """
    >>> turn_name(12)
    'turn_000012'
    """
    return f"turn_{number:06d}"


def step_name(number: int) -> str:
    """
    >>> step_name(3)
    'steps/step_03.json'
    """
    return f"steps/step_{number:02d}.json"


def below(directory: Path, name: str, *, deep: bool = True) -> Path:
    """
    A file below a directory, by a path that may come out of a file; without *deep* in the directory itself.

    >>> below(Path("/store"), "a/../b")
    Traceback (most recent call last):
    panda.errors.FileFormatError: 'a/../b' leads out of its directory
    """
    parts = name.split("/")
    is_flat = len(parts) == 1 and name not in ("", ".")
    if "\0" in name or name.startswith("/") or ".." in parts or not (deep or is_flat):
        message = f"{shorten(repr(name), 80)} leads out of its directory"
        raise FileFormatError(message, where=str(directory), fix=PATH_FIX)
    return directory / name


@dataclass(frozen=True)
class TurnPaths:
    """The files of one turn directory."""

    directory: Path  # the turn directory itself

    def __truediv__(self, name: str) -> Path:
        return below(self.directory, name)

    def step(self, number: int) -> Path:
        """Result file of tool step *number*, counted from 1."""
        return self / step_name(number)

    @property
    def webpage_cache(self) -> Path:
        return self.directory / "webpage_cache"

    def attempt(self, number: int) -> Path:
        """Return the directory for superseded sections of attempt *number* (from 1) go."""
        return self.directory / "attempts" / str(number)


@dataclass(frozen=True)
class Apart:
    """Where a turn of a run lies, that reads a store and writes nothing into it."""

    work: Path  # gets its log, interventions and versions of recipes
    turns: Mapping[int, Path]  # it and the turns before it that do not lie in the store either, by number
    knowledge: Path | None = None  # the notes as they were; None reads them as they are


class _Below:
    """A path below a directory that a layout names."""

    def __init__(self, directory: str, *names: str) -> None:
        self._directory = directory
        self._names = names

    def __get__(self, layout: "Layout", owner: type) -> Path:
        top: Path = getattr(layout, self._directory)
        return top.joinpath(*self._names)


@dataclass(frozen=True)
class Layout:
    """Paths below a store's root."""

    root: Path  # the directory `panda-system-docs`
    apart: Apart | None = field(default=None, compare=False, kw_only=True)  # of a turn that writes elsewhere

    users = _Below("root", "users")
    indexes = _Below("root", "indexes")
    turn_index = _Below("indexes", "turn_index.db")
    index_lock = _Below("indexes", "index.lock")  # of who writes the index
    vectors = _Below("indexes", "vectors.db")  # kept vectors of texts
    summaries_lock = _Below("indexes", "summaries.lock")  # of who writes summaries of saved turns
    last_rebuild = _Below("indexes", "rebuild.json")  # when `panda index rebuild` last ran
    runs = _Below("root", "runs")  # one directory for each replay and batch
    read_only_mark = _Below("root", ".read-only")  # where it is, writing commands refuse this root
    interventions = _Below("_written", "interventions")
    interventions_lock = _Below("interventions", "lock")
    recipe_versions = _Below("_written", "logs", "recipes")  # `{category}/{name}/{hash}.json`, all that ran
    executions_log = _Below("_written", "logs", EXECUTIONS_JSONL)

    @property
    def _written(self) -> Path:
        return self.apart.work if self.apart else self.root

    def of(self, user: str) -> "UserStore":
        """The store of a user who need not be there. Raises UsageError: it is no user id."""
        return UserStore(self.root, user, apart=self.apart)


_TURN_NAME = re.compile(r"turn_(\d{6}|[1-9]\d{6,14})", re.ASCII)


def check_id(value: str, *, what: str, where: str | None = None) -> str:
    """The user or session id itself. Raises UsageError: it is not 1 to 64 of a-z, 0-9, _ and -."""
    if not is_id(value):
        raise UsageError(
            f"the {what} id {value[:80]!r} is not 1 to 64 characters of a-z, 0-9, _ and -",
            where=where,
            fix="use small letters, digits, _ and -",
        )
    return value


def is_id(value: str) -> bool:
    """Return whether a text is a user or session id."""
    return re.match(ID_PATTERN, value) is not None


def turn_number(name: str) -> int | None:
    """
    The number that a turn's directory name carries, or None if it is no such name.

    >>> turn_number("turn_000012"), turn_number("turn_12"), turn_number("turn_0000012")
    (12, None, None)
    """
    match = _TURN_NAME.fullmatch(name)
    return int(match[1]) or None if match else None


_COUNTER_DIGITS = 15


@dataclass(frozen=True)
class UserStore(Layout):
    """The store as code that works for one user is given it: paths of the user's files, numbers of turns."""

    user: str  # user id
    clock: Clock = present  # gives the time of what is written
    wait_seconds: float = 600.0  # how long to wait for a lock

    def __post_init__(self) -> None:
        check_id(self.user, what="user")

    def of(self, user: str) -> "UserStore":
        """Return the same store for another user."""
        return replace(self, user=user)

    def at(self, clock: Clock) -> "UserStore":
        """Return the same store by another clock."""
        return replace(self, clock=clock)

    @property
    def home(self) -> Path:
        """The user's directory."""
        return self.users / self.user

    preferences = _Below("home", PREFERENCES_MD)
    facts = _Below("home", FACTS_MD)
    memory_log = _Below("home", MEMORY_JSONL)
    conflicts_log = _Below("home", CONFLICTS_JSONL)
    proposed_facts = _Below("home", PROPOSED_FACTS_JSONL)
    memory_shown = _Below("home", "memory.shown.json")  # how much of the log the files showed when last seen
    memory_lock = _Below("home", "memory.lock")
    sessions = _Below("home", "sessions")
    turns = _Below("home", "turns")
    turn_counter = _Below("home", "turn_counter")

    @property
    def knowledge(self) -> Path:
        return (self.apart and self.apart.knowledge) or self.home / "knowledge"

    def session(self, session: str) -> Path:
        return below(self.sessions, session, deep=False) / SESSION_JSON

    def session_closed(self, session: str) -> Path:
        """A file that is there when the session is closed."""
        return self.session(session).with_name(CLOSED_JSON)

    def session_lock(self, session: str) -> Path:
        return self.session(session).with_name("lock")

    def turn(self, number: int) -> TurnPaths:
        elsewhere = self.apart.turns.get(number) if self.apart else None
        return TurnPaths(elsewhere or self.turns / turn_name(number))

    def place(self, name: str) -> Path:
        """A file by its path relative to the user's directory (FileFormatError if it leads elsewhere)."""
        first, *rest = name.split("/")
        if first == "turns" and rest and (number := turn_number(rest[0])) is not None:
            return self.turn(number) / "/".join(rest[1:])
        return below(self.knowledge, "/".join(rest)) if first == "knowledge" else below(self.home, name)

    def name_of(self, path: Path) -> str:
        """The path of a file relative to the user's directory."""
        turns = self.apart.turns if self.apart else {}
        for number, directory in turns.items():
            if path.is_relative_to(directory):
                return f"turns/{turn_name(number)}/{path.relative_to(directory).as_posix()}"
        return path.relative_to(self.home).as_posix()

    def has(self, number: int) -> bool:
        """Return whether there is a directory of that turn."""
        return self.turn(number).directory.is_dir()

    def open(self, number: int) -> "TurnFolder":
        """A turn of the user. Raises NotFoundError: there is none."""
        from panda.store.turns import TurnFolder  # only if it is wanted: it loads the records

        paths = self.turn(number)
        if not self.has(number):
            message = f"user {self.user} has no turn {number}"
            raise NotFoundError(message, where=str(paths.directory), fix="`panda list` shows the turns")
        return TurnFolder(number, paths, self.clock)

    def listed_numbers(self) -> Iterator[int]:
        """Numbers of all turn directories, in no order; none where the directory cannot be listed."""
        with suppress(OSError), os.scandir(self.turns) as entries:
            yield from filter(None, (turn_number(entry.name) for entry in entries))

    def numbers(self) -> list[int]:
        """
        Numbers of all turn directories, ascending; [] for a user without turns. Raises StoreError: they
        cannot be listed.
        """
        if not self.turns.is_dir():
            return []
        with store_errors(self.turns, "list"), os.scandir(self.turns) as entries:
            names = (entry.name for entry in entries if entry.is_dir())
            return sorted(filter(None, map(turn_number, names)))

    def highest(self) -> int:
        """Highest number of a turn directory; 0 if there is none."""
        return max(self.numbers(), default=0)

    def counter(self) -> int:
        """The highest number ever claimed; 0 if there is none. Raises FileFormatError: it is no number."""
        if not self.turn_counter.exists():
            return 0
        text = read_text(self.turn_counter).strip()
        if not (text.isascii() and text.isdigit() and len(text) <= _COUNTER_DIGITS):
            raise FileFormatError(
                f"the turn counter is no number: {text[:80]!r}",
                where=str(self.turn_counter),
                fix=f"write the highest turn number into it, at least {self.highest()}",
            )
        return int(text)

    @contextmanager
    def numbering(self, holder: str) -> Iterator[None]:
        """The lock under which numbers are given and turn_counter is written; leftovers are swept."""
        lock = self.turn_counter.with_name("turn_counter.lock")
        with held_lock(lock, holder=holder, wait_seconds=CLAIM_WAIT_SECONDS):
            sweep(self.turns)
            yield

    def reserve(self, count: int) -> int:
        """The first of so many numbers in a row that no other turn will be given."""
        make_directory(self.turns)
        with self.numbering(f"panda (pid {os.getpid()})"):
            first = max(self.counter(), self.highest()) + 1
            self.raise_counter(first + count - 1)
        return first

    def raise_counter(self, number: int) -> None:
        """Sets turn_counter to *number*, unless it is higher already. Only under the lock of numbering()."""
        if number > self.counter():
            write_atomic(self.turn_counter, f"{number}\n")


def users_of(layout: Layout) -> list[str]:
    """Ids of all users of the store, sorted; directories that no user can have are left out."""
    return [name for name in directory_names(str(layout.users)) if is_id(name)]


def count_turns(layout: Layout) -> int:
    """Number of turn directories of all users."""
    return sum(1 for user in users_of(layout) for _ in layout.of(user).listed_numbers())


def directory_names(path: str) -> list[str]:
    """Names of the directories in a directory that may be looked into, sorted; [] if there is none."""
    try:
        with os.scandir(path) as entries:
            return sorted(
                entry.name
                for entry in entries
                if is_directory(entry) and not entry.name.startswith(".")
                if not entry.is_symlink() or may_pass(entry.path)
            )
    except OSError:
        return []


def is_directory(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a directory or leads to one."""
    try:
        return entry.is_dir()
    except OSError:  # a circle of links
        return False


AssetName = Literal["recipes", "prompts", "models.yaml", "encoder", "panda-system-docs", "tests/evals"]

_PACKAGE = Path(__file__).resolve().parent.parent


@cache
def asset(name: AssetName) -> Path:
    """
    Return the packaged file or directory of that name: below `panda/_data` of an installed wheel, else below
    the checkout.
    """
    for place in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if place.exists():
            return place
    raise StoreError(
        f"the packaged {name} is missing",
        where=str(_PACKAGE / "_data" / name),
        fix="install panda again: pip install --force-reinstall panda-turns",
    )


def search_path(name: Literal["recipes", "prompts"], *, project_dir: Path) -> tuple[Path, ...]:
    """
    Return the directories in which recipes or prompts are looked for: the project's own, if it has some, then
    the packaged ones.
    """
    packaged = asset(name)
    own = project_dir / name
    return (own, packaged) if own.is_dir() and not own.samefile(packaged) else (packaged,)
