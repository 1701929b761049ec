"""Code mode: turns that work on the files of a project, and the tools `file.*`, `git.*` and `test.run`."""

from pathlib import Path

from panda.addon_registry import Addon

_DIRECTORY = Path(__file__).parent

ADDON = Addon(
    name="code",
    tools="panda.addons.code.code_tools:CODE_TOOLS",
    workspace="panda.addons.code.project:open_project",
    recipe_directory=_DIRECTORY / "recipes",
    prompt_directory=_DIRECTORY / "prompts",
)
