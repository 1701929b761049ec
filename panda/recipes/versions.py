"""The versions of a recipe: its file and every prompt it names, by the hash of their content (S3 §28)."""

from pathlib import Path

from msgspec import structs

from panda.documents.times import Clock, parse_time, render_time
from panda.errors import FileFormatError, NotFoundError, UsageError
from panda.recipes.book import RecipeBook, place_within
from panda.recipes.calls import recipe_digest
from panda.store.files import write_output
from panda.store.records import RecipeVersion, load, save

SHORT = 12
"""Characters of a version's digest that are shown; any unambiguous beginning is understood."""


def version_in_force(book: RecipeBook, key: str) -> RecipeVersion:
    """The version of a recipe that a turn of now would run, not yet seen; raises as book.load_recipe."""
    text = book.load_recipe(key).text
    prompts = book.prompts_of(key)
    return RecipeVersion(
        recipe=key, version=recipe_digest(text, prompts), first_seen=None, text=text, prompts=prompts
    )


class VersionStore:
    """Every version of a recipe that ever ran in a store, each in a file of its own that never changes."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._kept_versions: set[tuple[str, str]] = set()

    def keep_in_force(self, book: RecipeBook, key: str, digest: str) -> None:
        """
        Keep the version of a recipe that has just run; of one that this process has kept, nothing is read.
        """
        if (key, digest) not in self._kept_versions:
            self.keep(version_in_force(book, key))

    def keep(self, version: RecipeVersion) -> None:
        """Keep a version, unless it is there already; raises StoreError where it cannot be written."""
        path = self._directory / version.recipe / f"{version.version}.json"
        if not path.is_file():
            save(structs.replace(version, first_seen=render_time(self._clock())), path)
        self._kept_versions.add((version.recipe, version.version))

    def versions(self, key: str) -> list[RecipeVersion]:
        """The versions of a recipe that ran, oldest first; FileFormatError: a file is damaged."""
        versions = [load(RecipeVersion, path) for path in (self._directory / key).glob("*.json")]
        for version in versions:
            if recipe_digest(version.text, version.prompts) != version.version:
                path = str(self._directory / key / f"{version.version}.json")
                message = "its content is not that of its hash"
                raise FileFormatError(message, where=path, fix="delete the file")
        return sorted(versions, key=lambda version: (parse_time(version.first_seen or ""), version.version))

    def find(self, key: str, start: str) -> RecipeVersion:
        """The version of a recipe whose digest begins so; UsageError if there are several."""
        matches = [version for version in self.versions(key) if version.version.startswith(start)]
        if not matches or not start:
            raise NotFoundError(
                f"no version {start!r} of {key} ever ran in this store",
                where=str(self._directory / key),
                fix=f"panda recipe history {key} lists those that did",
            )
        if len(matches) > 1:
            names = ", ".join(version.version[: SHORT + 4] for version in matches)
            raise UsageError(f"{start!r} is the beginning of several versions", where="HASH", fix=names)
        return matches[0]


def write_version(
    version: RecipeVersion, *, recipes: Path, prompts: Path, overwrites: bool = True
) -> list[Path]:
    """
    Write a version's files into a project's folders of recipes and prompts, where they hide packaged ones.
    Gives the files that had another content or were not there; the others are left alone. Nothing is written
    where a name or link leads out of its folder, or another file is there and *overwrites* is not set.
    """
    wanted = {place_within(recipes, f"{version.recipe}.yaml", version.recipe): version.text}
    for name, text in version.prompts.items():
        wanted[place_within(prompts, name.removeprefix("prompts/"), f"{version.recipe} ({name})")] = text
    changed = [
        path for path, text in wanted.items() if not path.is_file() or path.read_bytes() != text.encode()
    ]
    there = [str(path) for path in changed if path.exists()]
    if there and not overwrites:
        fix = "--force overwrites it; or move it away"
        raise UsageError(f"{', '.join(there)}: not as in that version", where=there[0], fix=fix)
    for path in changed:
        write_output(path, wanted[path])
    return changed
