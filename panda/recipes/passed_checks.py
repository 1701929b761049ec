"""Which recipes have passed their check, so that a turn parses only those that it asks."""

import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from panda.errors import Problem
from panda.recipes.book import RecipeBook
from panda.recipes.checks import LayerModel, check_recipes_of_mode
from panda.store.files import read_cache_file, stamp_file, write_cache_file

_CODE = [Path(__file__).parents[1] / name for name in ("recipes", "steps", "offline")]
"""Packages on whose code it hangs what passes."""


class _CheckedLayer(msgspec.Struct, frozen=True):
    model: str  # digest of what is known of the layer's model
    is_asked: bool  # whether its language model may be asked


class _PassedCheck(msgspec.Struct, frozen=True):
    sources: str  # digest of the tools, and of the stamps of all files that were checked
    layers: dict[str, _CheckedLayer]


def check_mode_once(
    book: RecipeBook,
    mode: str,
    *,
    model_of: Callable[[str], LayerModel | None],
    models_file: Path,
    tools: Collection[str],
    with_image: bool,
    cache_dir: Path,
) -> dict[str, bool]:
    """
    Return what `check_recipes_of_mode` returns, and raise what it raises.

    Recipes that passed are checked again only once a file of the book, the code that checks it, a tool or the
    model of a layer is another; a directory keeps what passed, for each *models_file* by itself.
    """
    folders = (*book.folders, *_CODE)
    slot = _digest("\n".join([mode, str(with_image), str(models_file), *map(str, folders)]))
    note = cache_dir / "checks" / slot
    sources = _digest("\n".join([*sorted(tools), *_stamps(folders)]))
    before = _load_check(note)
    if before is not None and before.sources == sources:
        layers = before.layers
        if all(_digest(repr(model_of(name))) == layer.model for name, layer in layers.items()):
            return {name: layer.is_asked for name, layer in layers.items()}
    asked = check_recipes_of_mode(
        book, mode, model_of=model_of, tools=tools, with_image=with_image, cache_dir=cache_dir
    )
    layers = {
        name: _CheckedLayer(_digest(repr(model_of(name))), is_asked) for name, is_asked in asked.items()
    }
    write_cache_file(note, msgspec.json.encode(_PassedCheck(sources, layers)))
    return asked


def _load_check(note: Path) -> _PassedCheck | None:
    try:
        return msgspec.json.decode(read_cache_file(note), type=_PassedCheck)
    except ValueError:  # also where it is not UTF-8
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:40]


def _stamps(folders: Sequence[Path]) -> Iterator[str]:
    """Yield path and stamp of every file below some folders."""
    for folder in folders:
        for directory, inner, names in os.walk(folder):
            inner[:] = sorted(name for name in inner if name != "__pycache__")
            for path in (Path(directory, name) for name in sorted(names)):
                with suppress(Problem):  # a link to nothing, as editors make them: no recipe is read from it
                    yield f"{str(path)!r} {stamp_file(path)}"
