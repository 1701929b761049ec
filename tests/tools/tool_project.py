"""A project whose tools are run by hand, with store and models.yaml beside it."""

import copy
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.api import ScriptedPanda

SOURCE = "def add_up(values):\n    return sum(values)\n"


class ToolProject(ScriptedPanda):
    """
    A directory `project`, which nothing is trusted in unless it is said.

    Args:
        root: Where `project`, `store` and `models.yaml` are made.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root / "project")
        self.store = self.store.rename(root / "store")
        models = (self.home / "models.yaml").rename(root / "models.yaml")
        del self.environ["PANDA_TRUST"]
        self.environ |= {"PANDA_ROOT": str(self.store), "PANDA_MODELS_FILE": str(models)}
        self.environ["PATH"] = os.environ["PATH"]

    def at(self, directory: Path) -> "ToolProject":
        """Return the same with another directory as the current one."""
        other = copy.copy(self)
        other.home = directory
        return other

    def use(self, tool: str, *words: str, environ: Any = None, **arguments: Any) -> Any:
        """Return what `panda tool run` gives: status, data, error, claims; words are options of it."""
        ended = self(
            "tool", "run", tool, "--args", json.dumps(arguments), "--json", *words, **(environ or {})
        )
        return ended.data

    def git(self, *words: str) -> str:
        """Return what git says."""
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
        return subprocess.run(command, cwd=self.home, check=True, capture_output=True, text=True).stdout

    def commit(self) -> None:
        """Commit everything, to a repository that is made if there is none."""
        if not (self.home / ".git").exists():
            self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", "a commit")
