"""Where the files that come with panda lie: recipes, prompts, models.yaml, the encoder and the demo store."""

from pathlib import Path
from typing import Literal

from panda.errors import StoreError

AssetName = Literal["recipes", "prompts", "models.yaml", "encoder", "panda-system-docs"]

_PACKAGE = Path(__file__).resolve().parent.parent


def asset(name: AssetName) -> Path:
    """
    The packaged file or directory of that name.

    Args:
        name: What is looked for.

    Returns:
        Its path below `panda/_data` of an installed wheel, else below the checkout.

    Raises:
        StoreError: It is in neither place: the installation is incomplete.
    """
    for place in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if place.exists():
            return place
    raise StoreError(
        f"the packaged {name} is missing",
        where=str(_PACKAGE / "_data" / name),
        fix="install panda again: pip install --force-reinstall panda-turns",
    )


def search_path(name: Literal["recipes", "prompts"], *, project_dir: Path) -> tuple[Path, ...]:
    """
    Directories to look in for a recipe or prompt, the project's own first.

    Args:
        name: Which kind of file.
        project_dir: The directory of panda.toml, or where the command runs.

    Returns:
        One or two existing directories; a file in the first hides the same file in the second.
    """
    packaged = asset(name)
    own = project_dir / name
    if own.is_dir() and not own.samefile(packaged):
        return (own, packaged)
    return (packaged,)
