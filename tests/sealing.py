"""The network of all tests and recordings: their own machine, in every process that they start."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.sealed import sitecustomize
from tests.sealed.sitecustomize import CONTACTS

_DIRECTORY = Path(sitecustomize.__file__).parent


def sealed_environ(environ: Mapping[str, str], contacts: Path) -> dict[str, str]:
    """
    The environment of a Python process that reaches nothing but its own machine.

    Args:
        environ: What else it gets.
        contacts: A file to which each host is added that the process asks for in vain.
    """
    paths = [str(_DIRECTORY), *filter(None, [environ.get("PYTHONPATH")])]
    return {**environ, "PYTHONPATH": os.pathsep.join(paths), CONTACTS: str(contacts)}


def read_contacts(path: Path) -> Sequence[str]:
    """The hosts that were asked for in vain, in order."""
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []


def _seal_what_starts() -> Path:
    """Seal the processes that this one starts; gives where they write down whom they asked for."""
    directory = Path(tempfile.mkdtemp(prefix="panda-contacts-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ.update(sealed_environ(os.environ, directory / "contacts"))
    return directory / "contacts"


MADE = _seal_what_starts()
"""Contacts of this process and of those that it starts, set up before a test module reads the environment."""


@pytest.fixture(autouse=True)
def sealed_network(request: pytest.FixtureRequest) -> Iterator[None]:
    """
    A test that asks for a host of another machine fails, also where a process that it started did.

    One that is about such a host names it: `@pytest.mark.asks_for("shop.example")`. It gets no answer.
    """
    before = len(read_contacts(MADE))
    yield
    marker = request.node.get_closest_marker("asks_for")
    others = set(read_contacts(MADE)[before:]) - set(marker.args if marker else ())
    assert not others, f"hosts of other machines: {', '.join(sorted(others))}"
