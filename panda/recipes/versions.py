"""The versions of a recipe: its file and every prompt it names, by the hash of their content (S3 §28)."""

from collections.abc import Mapping
from dataclasses import dataclass

from panda.recipes.book import RecipeBook
from panda.recipes.journal import recipe_digest

SHORT = 12
"""Characters of a version's hash that are shown; any unambiguous beginning is understood."""


@dataclass(frozen=True)
class RecipeVersion:
    """A recipe as it was at one time."""

    key: str
    """Recipe name, e.g. "pipeline/phase1_reflection"."""
    text: str
    """Its file."""
    prompts: Mapping[str, str]
    """Each prompt file that it names, those of its choices included, with its text."""

    @property
    def digest(self) -> str:
        """sha256 of file and prompts, hex: the same for the same content, whatever the machine."""
        return recipe_digest(self.text, self.prompts)

    @property
    def short(self) -> str:
        """The digest as it is shown."""
        return self.digest[:SHORT]


def version_in_force(book: RecipeBook, key: str) -> RecipeVersion:
    """
    The version of a recipe that a turn of now would run.

    Raises:
        RecipeError: The recipe is broken or not there.
    """
    return RecipeVersion(key, book.load_recipe(key).text, book.prompts_of(key))
