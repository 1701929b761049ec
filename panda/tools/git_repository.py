"""Questions to git about the project, with nothing of the repository's own configuration run."""

from panda.errors import UsageError
from panda.tools.processes import run_process
from panda.tools.project import Project

_QUIET = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"),
    "--no-optional-locks",
)


def ask_git(project: Project, *words: str, limit_seconds: float) -> str:
    """
    What git says of the project's own directory.

    Args:
        project: The project; its directory may be a part of a larger repository.
        words: Subcommand and options.
        limit_seconds: How long it may take.

    Raises:
        UsageError: There is no repository, or git refuses.
        LimitError: It took too long.
    """
    ran = run_process(
        ("git", *_QUIET, *words, "--", ".", *(f":(exclude){name}" for name in project.store_names())),
        project.root,
        project.environ,
        limit_seconds=limit_seconds,
    )
    if ran.exit_code != 0:
        last = (ran.output.strip().splitlines() or ["no output"])[0]
        raise UsageError(f"git {words[0]} ended with {ran.exit_code}: {last}")
    return ran.output
