"""A way to run one command line in this process."""

from collections.abc import Mapping, Sequence

import pytest
from typer.core import TyperGroup

from panda.cli.boundary import run
from tests.api import Ended as Ended


def run_words(
    program: TyperGroup,
    words: Sequence[str],
    capsys: pytest.CaptureFixture[str],
    environ: Mapping[str, str] | None = None,
) -> Ended:
    """Run one command line in this process."""
    code = run(program, words, {"HOME": "/nowhere", **(environ or {})})
    captured = capsys.readouterr()
    return Ended(code, captured.out, captured.err)
