"""The version of the program as it runs here."""

import subprocess
from pathlib import Path

import panda

_SECONDS = 5


def describe_version() -> str:
    """
    Return the version, and from a checkout the commit too, as `0.4.0 (commit 2499cd16, changed)`.

    "changed" stands there when tracked files differ from the commit.
    """
    commit = read_commit(Path(panda.__file__).resolve().parents[1])
    if commit is None:
        return panda.__version__
    name, _, changed = commit.partition("-")
    return f"{panda.__version__} (commit {name}{', changed' if changed else ''})"


def read_commit(directory: Path) -> str | None:
    """
    Return what git calls the commit of a checkout, with "-dirty" where tracked files differ from it.

    None is returned for a directory that is not the top of a checkout, and where git cannot say.
    """
    repository = directory / ".git"
    if not repository.exists():
        return None
    places = (f"--git-dir={repository}", f"--work-tree={directory}")
    command = ("git", *places, "describe", "--always", "--dirty", "--abbrev=8", "--exclude=*")
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
