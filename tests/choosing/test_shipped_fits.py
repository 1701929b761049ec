"""The fits that come with panda are the ones that its recipes ask for, with the models that come with it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from panda.choosing.decision import ChoiceInputs, Question
from panda.choosing.fits import FITS_DIR, name_fit
from panda.models.layers import Layers
from panda.models.models_file import load_models_file
from panda.recipes.book import RecipeBook
from panda.recipes.schema import choice_specs
from panda.store.layout import asset
from tests.choosing.asks import asking


def asked_fits(layers: Layers) -> Iterator[str]:
    """The file of every fit that a step of a recipe looks for."""
    book = RecipeBook([asset("recipes")], [asset("prompts")])
    inputs = ChoiceInputs("x", {}, str)
    for key in book.recipe_keys():
        recipe = book.load_recipe(key)
        specs = choice_specs(recipe.output_schema, path=recipe.path)
        for spec, step in ((one, step) for one in specs for step in one.steps if step.fit is not None):
            model, encoder = layers.model(recipe.model_layer), layers.encoder()
            ask = replace(asking(lambda *_: [], book.prompts_of(key)), model=model, encoder=encoder)
            yield name_fit(Question(spec, step, (), inputs), ask)


def test_each_is_found(tmp_path: Path) -> None:
    """A layout, a prompt or a model that changes without its fits would make choices worse without a word."""
    models = load_models_file(asset("models.yaml"))
    with Layers(models, cache_dir=tmp_path, environ={}) as layers:
        asked = set(asked_fits(layers))
    assert asked == {path.name for path in (asset("recipes") / FITS_DIR).glob("*.json")}
