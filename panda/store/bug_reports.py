"""Reports of bugs: where in the program something went wrong, and no value of anybody's data."""

import os
import platform
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from traceback import extract_tb

from panda import __version__

_FOLDER_PREFIX = "panda-reports-"
_PACKAGE_PARENT = Path(__file__).resolve().parents[2]
_MAX_EXCEPTIONS = 20


def write_report(exc: BaseException, cache_dir: Path) -> Path | None:
    """
    Write a report that its user alone can read, in the cache or else in a new directory for temporary files.
    Returns None where neither can be written.
    """
    text = render_report(exc)
    name = f"panda-bug-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}-{secrets.token_hex(4)}.txt"
    with suppress(OSError):
        directory = cache_dir / "reports"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _write_private(directory, name, text)
    with suppress(OSError):
        directory = Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getuid()}-"))
        return _write_private(directory, name, text)
    return None


def report_directories() -> list[Path]:
    """The directories outside of the cache in which this user's reports may lie."""
    pattern = f"{_FOLDER_PREFIX}{os.getuid()}-*"
    folders = sorted(Path(tempfile.gettempdir()).glob(pattern))
    return [
        folder
        for folder in folders
        if folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.getuid()
    ]


def render_report(exc: BaseException) -> str:
    """
    Versions, the type of each exception and where it went through. What exceptions say, arguments and values
    are left out: they may hold what the user typed, or a secret.
    """
    lines = [f"panda {__version__}, Python {platform.python_version()}, {platform.platform()}"]
    for relation, exception in _chain(exc):
        kind = type(exception)
        lines += ["", f"{relation}{kind.__module__}.{kind.__qualname__}"]
        for frame in extract_tb(exception.__traceback__):
            lines.append(f"  {program_path(frame.filename)}:{frame.lineno} in {frame.name}")
    return "\n".join(lines) + "\n"


def program_path(filename: str) -> str:
    """The path of a file of the program or of a library, without what lies above it."""
    path = Path(filename)
    if path.is_relative_to(_PACKAGE_PARENT / "panda"):
        return str(path.relative_to(_PACKAGE_PARENT))
    _, _, below = filename.rpartition("site-packages/")
    return below if below != filename else path.name


def _chain(exc: BaseException) -> Iterator[tuple[str, BaseException]]:
    """An exception and what led to it, each with how."""
    waiting: list[tuple[str, BaseException]] = [("", exc)]
    seen: set[int] = set()
    while waiting and len(seen) < _MAX_EXCEPTIONS:
        relation, exception = waiting.pop()
        if id(exception) in seen:
            continue
        seen.add(id(exception))
        yield relation, exception
        if isinstance(exception, BaseExceptionGroup):
            waiting += [("in the group: ", part) for part in exception.exceptions]
        if exception.__cause__ is not None:
            waiting.append(("caused by: ", exception.__cause__))
        elif exception.__context__ is not None and not exception.__suppress_context__:
            waiting.append(("while handling: ", exception.__context__))


def _write_private(directory: Path, name: str, text: str) -> Path:
    """Write a new file into a directory of this user alone; OSError where it is somebody else's."""
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(folder).st_uid != os.getuid():
            raise PermissionError(f"{directory} belongs to another user")
        os.fchmod(folder, 0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, 0o600, dir_fd=folder)
    finally:
        os.close(folder)
    with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as stream:
        stream.write(text)
    return directory / name
