"""Which files of a project no tool may change: those that git, pip, make, direnv or panda obey. Pure."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

_VERSION_CONTROL = frozenset({".git", "git~1", ".hg", ".svn", ".bzr", ".jj"})
_GIT_FILES = frozenset({".gitattributes", ".gitmodules", ".gitconfig"})
_IN_GIT_DIRECTORY = frozenset(
    {
        *("branches", "commondir", "config", "config.worktree", "description", "gitdir", "hooks", "index"),
        *("info", "logs", "modules", "objects", "packed-refs", "refs", "shallow", "worktrees"),
    }
)
_HOOKS = frozenset({".husky", ".pre-commit-config.yaml"})
_STORE = "panda-system-docs"
_PANDA_FILES = frozenset({"panda.toml", "models.yaml"})
_PANDA_DIRECTORIES = frozenset({"recipes", "prompts"})
_READ_BY_PANDA = frozenset({"", ".yaml", ".yml", ".json", ".md", ".txt"})
_BUILD_FILES = (
    *("makefile", "gnumakefile", "*.mk"),
    *(
        "setup.py",
        "setup.cfg",
        "pyproject.toml",
        "pip.conf",
        "pip.ini",
        "requirements*.txt",
        "constraints*.txt",
    ),
    *(".envrc", ".env", ".direnvrc"),
    *("pyvenv.cfg", "*.pth", "sitecustomize.py", "usercustomize.py"),
)
_BUILD_DIRECTORIES = frozenset({".venv", ".direnv"})
_TRAILING = ". "
_STREAM = re.compile(r":.*", re.DOTALL)


def why_guarded(parts: Sequence[str], has: Callable[[Sequence[str]], bool]) -> str | None:
    """
    Why a file may be read but not changed; None if it may be changed.

    Names are compared as the most forgiving file system would: without regard to case, to other ways of
    writing the same characters, to invisible characters, to dots and spaces at the end, and to what follows a
    colon.

    Args:
        parts: The names of its path below the project, at least one.
        has: Whether the project has something at such a path.

    Returns:
        What obeys the file, as the end of "it belongs to".

    >>> why_guarded(["src", "app.py"], lambda parts: False)
    >>> why_guarded(["sub", ".GIT ", "config"], lambda parts: False)
    'git'
    """
    names = [_plain(part) for part in parts]
    last, suffix = names[-1], names[-1][names[-1].rfind(".") :] if "." in names[-1][1:] else ""
    if not _VERSION_CONTROL.isdisjoint(names):
        return "version control" if ".git" not in names else "git"
    # a directory with HEAD, objects and refs is a repository to git, whatever it is called
    if last == "head" or last in _GIT_FILES or not _HOOKS.isdisjoint(names):
        return "git"
    if any(name in _IN_GIT_DIRECTORY and has([*parts[:number], "HEAD"]) for number, name in enumerate(names)):
        return "git"
    if last in _PANDA_FILES or names[0] in _PANDA_DIRECTORIES or _STORE in names:
        return "panda"
    if not _PANDA_DIRECTORIES.isdisjoint(names[:-1]) and suffix in _READ_BY_PANDA:
        return "panda"
    if any(fnmatchcase(last, pattern) for pattern in _BUILD_FILES) or not _BUILD_DIRECTORIES.isdisjoint(
        names
    ):
        return "the programs that build and run the project"
    if any(has([*parts[:number], "pyvenv.cfg"]) for number in range(len(parts))):
        return "a virtual environment"
    return None


def _plain(name: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    seen = "".join(char for char in folded if unicodedata.category(char) not in ("Cf", "Mn", "Cc"))
    return _STREAM.sub("", seen).rstrip(_TRAILING) or seen
