"""The files of a project as code mode may touch them: nothing outside its directory, and no symlink."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from panda.errors import UsageError
from panda.storage.files import is_temporary, read_bytes, store_errors, write_atomic

MOST_BYTES = 1_000_000
"""The largest file that is read, edited or written."""

_HIDDEN = frozenset(
    {".git", ".hg", ".svn", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache"}
)


@dataclass(frozen=True)
class Project:
    """One project directory; in a dry run its changes stay in memory."""

    root: Path
    """The project directory."""
    guarded: tuple[Path, ...] = ()
    """Files and directories of it that decide what panda itself may do; they can be read, not changed."""
    commands: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What test.run may run, by name."""
    command_seconds: float = 600.0
    """How long such a command may take."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Environment of what is run."""
    dry: bool = False
    """Whether changes are only shown."""
    overlay: dict[str, bytes] = field(default_factory=dict)
    """What a dry run has changed so far, by path."""

    @cached_property
    def _top(self) -> Path:
        """The root without symlinks."""
        return self.root.resolve()

    def locate(self, path: str) -> Path:
        """
        The file that a relative path names.

        Args:
            path: As a tool's argument, with / between its parts; "." is the project.

        Raises:
            UsageError: It is absolute, leads outside, or passes a symlink.
        """
        pure = PurePosixPath(path)
        if pure.is_absolute() or "\0" in path or path.startswith("~") or "\\" in path:
            raise UsageError(f"{path!r} is not a path below the project", fix="give a relative path")
        if ".." in pure.parts:
            raise UsageError(f"{path!r} leads outside the project", fix="leave out ..")
        place = self._top
        for part in pure.parts:
            place /= part
            if place.is_symlink():
                raise UsageError(f"{path!r} passes a symlink, {part!r}", fix="name the file itself")
        return place

    def read(self, path: str) -> str:
        """
        The text of a file.

        Raises:
            UsageError: There is no such file, or it is no text of ordinary size.
            StoreError: It cannot be read.
        """
        place = self.locate(path)
        key = self.name_of(place)
        if key in self.overlay:
            return self.overlay[key].decode()
        if not place.is_file() or not stat.S_ISREG(place.stat().st_mode):
            raise UsageError(f"there is no file {path!r}", fix="see file.list")
        if place.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path!r} has more than {MOST_BYTES:,} bytes")
        try:
            text = read_bytes(place).decode("utf-8")
        except UnicodeDecodeError as exc:
            raise UsageError(f"{path!r} is not UTF-8 text") from exc
        if "\0" in text:
            raise UsageError(f"{path!r} is not text")
        return text

    def has(self, path: str) -> bool:
        """Whether there is a file of that name."""
        place = self.locate(path)
        return self.name_of(place) in self.overlay or place.is_file()

    def check_writable(self, path: str) -> Path:
        """
        The file that a path names, if it may be changed.

        Raises:
            UsageError: It may not: panda obeys it, or it belongs to the version control or the store.
        """
        place = self.locate(path)
        if ".git" in (part.lower() for part in place.relative_to(self._top).parts):
            raise UsageError(f"{path!r} belongs to git", fix="change it by hand")
        if any(place == one or one in place.parents for one in (g.resolve() for g in self.guarded)):
            raise UsageError(f"{path!r} decides what panda may do", fix="change it by hand")
        if place.is_dir() or place == self._top:
            raise UsageError(f"{path!r} is a directory", fix="name a file")
        return place

    def write(self, path: str, text: str) -> None:
        """
        Replace a file in one step, keeping its permissions; in a dry run only in memory.

        Raises:
            UsageError: It may not be changed, or the text is too long.
            StoreError: It cannot be written.
        """
        place = self.check_writable(path)
        data = text.encode("utf-8")
        if len(data) > MOST_BYTES:
            raise UsageError(f"{path!r} would have more than {MOST_BYTES:,} bytes")
        if self.dry:
            self.overlay[self.name_of(place)] = data
            return
        mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else None
        write_atomic(place, data)
        if mode is not None:
            with store_errors(place, "write"):
                place.chmod(mode)

    def name_of(self, place: Path) -> str:
        """A file's path as tools name it."""
        return place.relative_to(self._top).as_posix()

    def files(self, below: str = ".") -> Iterator[str]:
        """
        The regular files below a directory, sorted; hidden trees, symlinks and the store are left out.

        Raises:
            UsageError: There is no such directory.
        """
        top = self.locate(below)
        if not top.is_dir():
            raise UsageError(f"there is no directory {below!r}", fix="see file.list")
        found = {self.name_of(place) for place in self._walk(top)}
        prefix = "" if top == self._top else self.name_of(top) + "/"
        yield from sorted(found | {name for name in self.overlay if name.startswith(prefix)})

    def store_names(self) -> list[str]:
        """The store, if it lies in the project, as a path of it."""
        root = self._top
        stores = [one.resolve() for one in self.guarded if (one / "users").is_dir()]
        return [self.name_of(one) for one in stores if root in one.parents]

    def _walk(self, top: Path) -> Iterator[Path]:
        stores = {self._top / name for name in self.store_names()}
        for directory, names, files in os.walk(top):
            here = Path(directory)
            names[:] = sorted(n for n in names if n not in _HIDDEN and here / n not in stores)
            names[:] = [n for n in names if not (here / n).is_symlink()]
            for name in sorted(files):
                place = here / name
                if not place.is_symlink() and place.is_file() and not is_temporary(place):
                    yield place


def fingerprint(text: str) -> str:
    """
    What a text is told from another by.

    >>> fingerprint("a") == fingerprint("a"), fingerprint("a") == fingerprint("b")
    (True, False)
    """
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


def guarded_files(root: Path) -> tuple[Path, ...]:
    """What in a project panda itself obeys."""
    return tuple(root / name for name in ("panda.toml", "models.yaml", "recipes", "prompts"))
