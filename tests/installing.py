"""Archives of packages, and environments in which pip installs them without the network."""

import subprocess
import sys
import tarfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.api import ROOT, Panda

_SEAL = str(ROOT / "tests" / "sealed")
"""The directory that keeps a process of the tests from other machines; see tests/sealing.py."""


class InstalledPanda(Panda):
    """The program that pip has installed into an environment, where the checkout is not on the path."""

    def __init__(self, home: Path, environment: Path, store: Path | None = None, *, user: str) -> None:
        super().__init__(home, store, user=user, PYTHONPATH=_SEAL, PYTHONNOUSERSITE="1")
        self.program = (str(environment / "bin" / "panda"),)

    def data(self, *words: str) -> dict[str, Any]:
        """Return the `data` of a command that succeeds, in a process of its own."""
        ended = self.process(*words, "--json")
        assert ended.code == 0, ended.out + ended.err
        data = ended.data
        assert isinstance(data, dict)
        return data


def run(command: Sequence[str], *, directory: Path) -> str:
    """Return what a program prints that must end with 0."""
    ended = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def build(source: Path, target: Path, *, kind: str) -> Path:
    """Build an archive of a directory of source, of the kind `wheel` or `sdist`."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(target)]
    run(command, directory=source)
    (archive,) = target.iterdir()
    return archive


def unpack(sdist: Path, target: Path) -> Path:
    """Return the directory of source that an archive holds, unpacked."""
    with tarfile.open(sdist) as archive:
        archive.extractall(target, filter="data")
    (source,) = target.iterdir()
    return source


def make_environment(directory: Path, wheels: Sequence[Path]) -> Path:
    """
    Make an environment with wheels, and with the libraries that the tests use; nothing is downloaded.

    The checkout is not among these: a path in a .pth file brings no editable install along.
    """
    venv.create(directory, symlinks=True)
    python = directory / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--isolated", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--no-index", "--no-deps", *map(str, wheels)], directory=directory)
    (packages,) = directory.glob("lib/python*/site-packages")
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "libraries.pth").write_text("".join(f"{path}\n" for path in libraries), encoding="utf-8")
    return directory
