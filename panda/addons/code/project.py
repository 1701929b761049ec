"""
The files of a project as code mode may touch them.

Nothing outside its directory and no symlink. Only files that are there, or that the query names, are written,
and none that git, pip, make, direnv or panda obey.
"""

import hashlib
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from msgspec import structs

from panda.addons.code.obeyed import is_obeyed
from panda.documents.safe_text import visible
from panda.errors import UsageError
from panda.settings import Settings, process_environment
from panda.store.files import (
    is_temporary,
    look_beneath,
    open_beneath,
    read_beneath,
    store_errors,
    write_beneath,
)
from panda.store.records import Step
from panda.tools.tool_contract import ToolContext

_VERSION_CONTROL = frozenset({".git", "git~1", ".hg", ".svn", ".bzr", ".jj"})
_GIT_FILES = frozenset({".gitattributes", ".gitmodules", ".gitconfig"})
_IN_GIT_DIRECTORY = frozenset(
    {
        *("branches", "commondir", "config", "config.worktree", "description", "gitdir", "hooks", "index"),
        *("info", "logs", "modules", "objects", "packed-refs", "refs", "shallow", "worktrees"),
    }
)
_STORE = "panda-system-docs"
_PANDA_FILES = frozenset({"panda.toml", "models.yaml"})
_PANDA_DIRECTORIES = frozenset({"recipes", "prompts"})
_READ_BY_PANDA = frozenset({"", ".yaml", ".yml", ".json", ".md", ".txt"})
_TRAILING = ". "
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_STREAM = re.compile(r":.*", re.DOTALL)
MOST_BYTES = 1_000_000
"""The largest file that is read, edited or written."""
_HIDDEN = frozenset(
    {".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"}
)


def why_guarded(parts: Sequence[str], has: Callable[[Sequence[str]], bool]) -> str | None:
    """
    Return the program that obeys a file which may be read but not changed, as the end of "it belongs to";
    None if there is none. Names are compared as the most forgiving file system would: without regard to case,
    to other ways of writing the same characters, to invisible ones, to dots and spaces at the end, and to
    what follows a colon. *has* says whether the project has something at a path.

    >>> why_guarded(["src", "app.py"], lambda parts: False)
    >>> why_guarded(["sub", ".GIT ", "config"], lambda parts: False)
    'git'
    """
    names = [plain_name(part) for part in parts]
    last = names[-1]
    suffix = names[-1][names[-1].rfind(".") :] if "." in names[-1][1:] else ""
    if not _VERSION_CONTROL.isdisjoint(names):
        return "version control" if ".git" not in names else "git"
    # a directory with HEAD, objects and refs is a repository to git, whatever it is called
    if last == "head" or last in _GIT_FILES:
        return "git"
    if any(name in _IN_GIT_DIRECTORY and has([*parts[:number], "HEAD"]) for number, name in enumerate(names)):
        return "git"
    if last in _PANDA_FILES or names[0] in _PANDA_DIRECTORIES or _STORE in names:
        return "panda"
    if not _PANDA_DIRECTORIES.isdisjoint(names[:-1]) and suffix in _READ_BY_PANDA:
        return "panda"
    if any(has([*parts[:number], "pyvenv.cfg"]) for number in range(len(parts))):
        return "a virtual environment"
    return None


def plain_name(name: str) -> str:
    """
    Return a part of a path as the most forgiving file system would compare it.

    >>> plain_name("Makefile. "), plain_name(".g\u200cit"), plain_name("a.txt::$DATA")
    ('makefile', '.git', 'a.txt')
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    seen = "".join(char for char in folded if unicodedata.category(char) not in ("Cf", "Mn", "Cc"))
    return _STREAM.sub("", seen).rstrip(_TRAILING) or seen


def is_named(path: str, query: str) -> bool:
    """
    Return whether a query names a file: by its path, or by its name alone if that has an ending.

    >>> is_named("src/app.py", "Write src/app.py."), is_named("src/app.py", "an app.py please")
    (True, True)
    >>> is_named("app.py", "Fix my-app.py and lib/app.py"), is_named("build", "Fix the builds")
    (False, False)
    """
    name = path.rpartition("/")[2]
    candidates = [path]
    if "." in name.strip("."):
        candidates.append(name)
    text = unicodedata.normalize("NFC", query)
    patterns = (re.escape(unicodedata.normalize("NFC", candidate)) for candidate in candidates)
    return any(re.search(rf"(?<![\w./\\~-])(?:\./)?{pattern}(?![\w/~-]|\.\w)", text) for pattern in patterns)


@dataclass(frozen=True)
class Project:
    """One project directory; in a dry run its changes stay in memory."""

    root: Path  # the project directory
    guarded: tuple[Path, ...] = ()
    """Files and directories that panda uses, wherever they are; those of it can be read, not changed."""
    commands: Mapping[str, Sequence[str]] = field(default_factory=dict)  # what test.run may run, by name
    command_seconds: float = 600.0  # how long such a command may take
    environ: Mapping[str, str] = field(default_factory=dict)  # environment of what is run
    query: str = ""  # what the user asked: files that it names may be made
    trusted: bool = False  # whether files that programs look for may be changed too, and any be made
    dry: bool = False  # whether changes are only shown
    overlay: dict[str, bytes] = field(default_factory=dict)  # what a dry run has changed so far, by path

    @cached_property
    def top(self) -> Path:
        return self.root.resolve()

    def locate(self, path: str) -> tuple[str, ...]:
        """The names of a relative path; UsageError if it leads outside, passes a symlink or names no file."""
        pure = PurePosixPath(path)
        if pure.is_absolute() or path.startswith("~") or "\\" in path:
            raise UsageError(f"{path!r} is not a path below the project", fix="give a relative path")
        if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in path):
            raise UsageError(f"{path!r} holds characters that no file name should", fix="rename the file")
        if ".." in pure.parts:
            raise UsageError(f"{path!r} leads outside the project", fix="leave out ..")
        look_beneath(self.top, pure.parts)
        return pure.parts

    def read(self, path: str) -> str:
        """The text of a file; UsageError if it is not there, or no text of ordinary size."""
        parts = self.locate(path)
        data = self.overlay.get("/".join(parts))
        if data is None and parts:
            data = read_beneath(self.top, parts, most_bytes=MOST_BYTES + 1)
        if data is None:
            raise UsageError(f"there is no file {path!r}", fix="see file.list")
        if len(data) > MOST_BYTES:
            raise UsageError(f"{path!r} has more than {MOST_BYTES:,} bytes")
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as exc:
            raise UsageError(f"{path!r} is not UTF-8 text") from exc
        if "\0" in text:
            raise UsageError(f"{path!r} is not text")
        return text

    def settle_change(self, step: Step) -> Step | None:
        """Return the finished step of a change that a killed run had announced; None: it is to be made."""
        data = step.data
        path = data["path"]
        now = fingerprint(self.read(path)) if self.has(path) else None
        if now == data["after"]:
            return structs.replace(step, status="success")
        if now == data["before"]:
            return None
        fault = f"{path} was changed by somebody else while the turn was interrupted"
        return structs.replace(step, status="error", error=fault, data=None, claims=(), entities=(), text="")

    def has(self, path: str) -> bool:
        parts = self.locate(path)
        return "/".join(parts) in self.overlay or self._is(parts, stat.S_ISREG)

    def check_writable(self, path: str) -> str:
        """
        Return the name of a file that may be written.

        Raises:
            UsageError: Other programs, panda among them, obey it; or it is new, and the query does not name
                it.
        """
        parts = self.locate(path)
        entry = look_beneath(self.top, parts)
        if entry is not None and not stat.S_ISREG(entry.st_mode):
            what = "a directory" if stat.S_ISDIR(entry.st_mode) else "no regular file"
            raise UsageError(f"{path!r} is {what}", fix="name a file")
        why = why_guarded(parts, lambda names: look_beneath(self.top, names) is not None)
        place = self.top.joinpath(*parts)
        if any(
            place == guarded or guarded in place.parents for guarded in (g.resolve() for g in self.guarded)
        ):
            why = "panda"
        if why is not None:
            raise UsageError(f"{path!r} belongs to {why}", fix="change it by hand")
        name = "/".join(parts)
        if not self.trusted and is_obeyed([plain_name(part) for part in parts]):
            message = f"{path!r} was not written: programs look for a file of that name and obey it unasked"
            raise UsageError(message, fix="change it by hand, or run the command with --trust")
        is_new = entry is None and name not in self.overlay
        if is_new and not self.trusted and not is_named(name, self.query):
            message = f"{path!r} was not written: it is no file yet, and the query does not name it"
            raise UsageError(message, fix="name the file in the query, or run the command with --trust")
        return name

    def write(self, path: str, text: str) -> None:
        """Replace a file in one step, keeping its permissions; in a dry run only in memory."""
        name = self.check_writable(path)
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as exc:
            raise UsageError(f"the text for {path!r} holds halves of characters") from exc
        if len(data) > MOST_BYTES:
            raise UsageError(f"{path!r} would have more than {MOST_BYTES:,} bytes")
        if self.dry:
            self.overlay[name] = data
        else:
            write_beneath(self.top, name.split("/"), data)

    def files(self, below: str = ".") -> Iterator[str]:
        """The regular files below a directory, sorted; hidden trees, symlinks and the store are left out."""
        parts = self.locate(below)
        if not self._is(parts, stat.S_ISDIR):
            raise UsageError(f"there is no directory {below!r}", fix="see file.list")
        prefix = "".join(f"{part}/" for part in parts)
        names = {written_name(os.fsencode(prefix + name)) for name in self._walk(parts)}
        yield from sorted(names | {name for name in self.overlay if name.startswith(prefix)})

    def store_names(self) -> list[str]:
        stores = [store.resolve() for store in self.guarded if (store / "users").is_dir()]
        return [store.relative_to(self.top).as_posix() for store in stores if self.top in store.parents]

    def _is(self, parts: Sequence[str], kind: Callable[[int], bool]) -> bool:
        entry = look_beneath(self.top, parts)
        return entry is not None and kind(entry.st_mode)

    def _walk(self, parts: Sequence[str]) -> Iterator[str]:
        stores = {self.top / name for name in self.store_names()}
        with store_errors(self.top.joinpath(*parts), "list"), open_beneath(self.top, parts) as opened:
            for directory, names, files, here in os.fwalk(".", dir_fd=opened):
                inside = PurePosixPath(directory)
                place = self.top.joinpath(*parts, inside)
                names[:] = sorted(n for n in names if n not in _HIDDEN and place / n not in stores)
                for name in files:
                    with suppress(FileNotFoundError):
                        kind = os.stat(name, dir_fd=here, follow_symlinks=False).st_mode
                        if stat.S_ISREG(kind) and not is_temporary(Path(name)):
                            yield str(inside / name)


def written_name(name: bytes) -> str:
    r"""
    The name of a file as text of one line; what is no text in it is written out.

    >>> written_name(b"caf\xe9.txt"), written_name("café\n.txt".encode())
    ('caf\\xe9.txt', 'café\\x0a.txt')
    """
    return visible(name.decode("utf-8", "backslashreplace")).replace("\t", "\\x09").replace("\n", "\\x0a")


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


def open_project(settings: Settings, guarded: tuple[Path, ...], *, query: str, dry: bool) -> Project:
    """
    Return the project's files for a turn; files that its query names may be made.

    Args:
        guarded: Files and directories that panda uses, which are not changed.
        query: What the user asked.
        dry: Whether changes stay in memory.
    """
    return Project(
        settings.project_dir.resolve(),
        guarded=guarded,
        commands=settings.test_commands,
        command_seconds=settings.test_seconds,
        environ=process_environment(),
        query=query,
        trusted=settings.trust,
        dry=dry,
    )


def project_of(context: ToolContext) -> Project:
    """Return the project that a tool of code mode works on. UsageError: the mode is another."""
    if not isinstance(context.workspace, Project):
        raise UsageError("only code mode may see the project's files", fix="use --mode code")
    return context.workspace


def suggest_paths(query: str, context: ToolContext) -> list[str]:
    """Return the files of the project that a query names, by path or by name; [] outside of code mode."""
    project = context.workspace
    if not isinstance(project, Project):
        return []
    files = list(project.files())
    known_files = set(files)
    named = [word.rstrip(".") for word in _PATH.findall(query)]
    exact = [word for word in named if word in known_files]
    by_name = [path for word in named if "." in word for path in files if path.endswith(f"/{word}")]
    return list(dict.fromkeys([*exact, *by_name]))
