"""Every file and directory name of the store, once, and where the files lie that come with panda."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from panda.documents.text import ID_PATTERN, PATH_FIX, shorten
from panda.errors import FileFormatError, StoreError, UsageError
from panda.store.links import may_pass

DEFAULT_USER = "default"
"""The one user who is made unasked."""
CONTEXT_MD = "context.md"
IMAGE_JSON = "image.json"
RESPONSE_MD = "response.md"
METADATA_JSON = "metadata.json"
METRICS_JSON = "metrics.json"
SNAPSHOT_JSON = "snapshot.json"
CALLS_JSONL = "calls.jsonl"
QUERY_ANALYSIS_JSON = "query_analysis.json"
REFLECTION_JSON = "reflection.json"
RETRIEVAL_PLAN_JSON = "retrieval_plan.json"
GATHERED_CONTEXT_JSON = "gathered_context.json"
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
CONFLICTS_JSONL = "conflicts.jsonl"
PROPOSED_FACTS_JSONL = "proposed_facts.jsonl"


def turn_name(number: int) -> str:
    """
    Directory name of a turn.

    >>> turn_name(12)
    'turn_000012'
    """
    return f"turn_{number:06d}"


def step_name(number: int) -> str:
    """
    Result file of tool step *number*, counted from 1, within the turn's directory.

    >>> step_name(3)
    'steps/step_03.json'
    """
    return f"steps/step_{number:02d}.json"


def below(directory: Path, name: str, *, deep: bool = True) -> Path:
    """
    A file below a directory, by a path that may come out of a file.

    Args:
        deep: Whether it may lie deeper than in the directory itself.

    Raises:
        FileFormatError: The path leads elsewhere.

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
        """Where superseded sections of attempt *number* (from 1) go."""
        return self.directory / "attempts" / str(number)


@dataclass(frozen=True)
class Layout:
    """Paths below a store's root."""

    root: Path  # the directory `panda-system-docs`

    @property
    def users(self) -> Path:
        return self.root / "users"

    def user(self, user: str) -> Path:
        return below(self.users, user, deep=False)

    def turns(self, user: str) -> Path:
        return self.user(user) / "turns"

    def turn(self, user: str, number: int) -> TurnPaths:
        return TurnPaths(self.turns(user) / turn_name(number))

    def turn_counter(self, user: str) -> Path:
        return self.user(user) / "turn_counter"

    def preferences(self, user: str) -> Path:
        return self.user(user) / PREFERENCES_MD

    def facts(self, user: str) -> Path:
        return self.user(user) / FACTS_MD

    def memory_log(self, user: str) -> Path:
        return self.user(user) / MEMORY_JSONL

    def conflicts_log(self, user: str) -> Path:
        return self.user(user) / CONFLICTS_JSONL

    def proposed_facts(self, user: str) -> Path:
        return self.user(user) / PROPOSED_FACTS_JSONL

    def memory_shown(self, user: str) -> Path:
        """How much of the log the memory files showed when panda last looked at them."""
        return self.user(user) / "memory.shown.json"

    def knowledge(self, user: str) -> Path:
        return self.user(user) / "knowledge"

    def session(self, user: str, session: str) -> Path:
        return below(self.user(user) / "sessions", session, deep=False) / SESSION_JSON

    def session_closed(self, user: str, session: str) -> Path:
        """A file that is there when the session is closed."""
        return self.session(user, session).with_name(CLOSED_JSON)

    def session_lock(self, user: str, session: str) -> Path:
        return self.session(user, session).with_name("lock")

    def memory_lock(self, user: str) -> Path:
        return self.user(user) / "memory.lock"

    @property
    def indexes(self) -> Path:
        return self.root / "indexes"

    @property
    def turn_index(self) -> Path:
        return self.indexes / "turn_index.db"

    @property
    def index_lock(self) -> Path:
        """Lock of who writes the index."""
        return self.indexes / "index.lock"

    @property
    def vectors(self) -> Path:
        """Kept vectors of texts."""
        return self.indexes / "vectors.db"

    @property
    def summaries_lock(self) -> Path:
        """Lock under which summaries of saved turns are written."""
        return self.indexes / "summaries.lock"

    @property
    def last_rebuild(self) -> Path:
        """When `panda index rebuild` last ran."""
        return self.indexes / "rebuild.json"

    @property
    def interventions(self) -> Path:
        return self.root / "interventions"

    @property
    def interventions_lock(self) -> Path:
        return self.interventions / "lock"

    @property
    def runs(self) -> Path:
        """One directory for each `panda replay`."""
        return self.root / "runs"

    @property
    def recipe_versions(self) -> Path:
        """Every version of a recipe that ever ran, `{category}/{name}/{hash}.json`."""
        return self.root / "logs" / "recipes"

    @property
    def executions_log(self) -> Path:
        return self.root / "logs" / "executions.jsonl"

    @property
    def read_only_mark(self) -> Path:
        """A file that, when present, makes writing commands refuse this root (the checkout's demo)."""
        return self.root / ".read-only"


_TURN_NAME = re.compile(r"turn_(\d{6}|[1-9]\d{6,14})", re.ASCII)


def check_id(value: str, *, what: str, where: str | None = None) -> str:
    """
    The user or session id itself, if it may be a directory name.

    Args:
        what: "user" or "session", for the error.
        where: Option or file with line, for the error.

    Raises:
        UsageError: It is not 1 to 64 of a-z, 0-9, _ and -.

    >>> check_id("demo", what="user")
    'demo'
    """
    if not is_id(value):
        raise UsageError(
            f"the {what} id {value[:80]!r} is not 1 to 64 characters of a-z, 0-9, _ and -",
            where=where,
            fix="use small letters, digits, _ and -",
        )
    return value


def is_id(value: str) -> bool:
    """Whether a text is a user or session id."""
    return re.match(ID_PATTERN, value) is not None


def turn_number(name: str) -> int | None:
    """
    The number that a turn's directory name carries, or None if it is no such name.

    >>> turn_number("turn_000012"), turn_number("turn_12"), turn_number("turn_0000012")
    (12, None, None)
    """
    match = _TURN_NAME.fullmatch(name)
    return int(match[1]) or None if match else None


def turn_numbers(layout: Layout, user: str) -> Iterator[int]:
    """Numbers of all turn directories, in no order."""
    with suppress(OSError), os.scandir(layout.turns(user)) as entries:
        yield from filter(None, (turn_number(entry.name) for entry in entries))


def users_of(layout: Layout) -> list[str]:
    """Ids of all users of the store, sorted; directories that no user can have are left out."""
    return [name for name in directory_names(str(layout.users)) if is_id(name)]


def count_turns(layout: Layout) -> int:
    """Number of turn directories of all users."""
    return sum(1 for user in users_of(layout) for _ in turn_numbers(layout, user))


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
    """Whether an entry is a directory or leads to one."""
    try:
        return entry.is_dir()
    except OSError:  # a circle of links
        return False


AssetName = Literal["recipes", "prompts", "models.yaml", "encoder", "panda-system-docs", "tests/evals"]

_PACKAGE = Path(__file__).resolve().parent.parent


def asset(name: AssetName) -> Path:
    """
    The packaged file or directory of that name.

    Returns:
        Its path below `panda/_data` of an installed wheel, else below the checkout.

    Raises:
        StoreError: It is in neither place: the installation is incomplete.
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
    Directories to look in for a recipe or prompt, the project's own first.

    Args:
        name: Which kind of file.
        project_dir: The directory of panda.toml, or where the command runs.

    Returns:
        One or two existing directories; a file in the first hides the same file in the second.
    """
    packaged = asset(name)
    own = project_dir / name
    if own.is_dir() and not own.samefile(packaged):
        return (own, packaged)
    return (packaged,)
