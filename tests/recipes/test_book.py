"""Recipes and prompts by name."""

from pathlib import Path

import pytest

from panda.documents.yaml_text import load_yaml
from panda.errors import (
    Problem,
    PromptNotFoundError,
    RecipeError,
    RecipeKeyError,
    RecipeNotFoundError,
)
from panda.recipes.book import RecipeBook
from panda.recipes.versions import write_version
from panda.store.records import RecipeVersion
from tests.recipes.books import schema_of, write_book, write_recipe

REGISTRY = "judge:\n  recipes: {chat: tests/judge}\n  purpose: judge\n  risk: low\n"


def test_own_recipe_hides_the_packaged_one(tmp_path: Path) -> None:
    """File by file, the first folder that has it counts."""
    write_book(tmp_path / "packaged")
    write_recipe(tmp_path / "packaged", "other", name="other")
    write_recipe(tmp_path / "own", description="My own.")
    folders = [tmp_path / place / "recipes" for place in ("own", "packaged")]
    book = RecipeBook(folders, [tmp_path / "packaged" / "prompts"])
    assert book.load_recipe("tests/judge").description == "My own."
    assert book.recipe_keys() == ["tests/judge", "tests/other"]
    assert book.load_recipe("tests/other").path == folders[1] / "tests" / "other.yaml"


def test_missing_recipe(tmp_path: Path) -> None:
    """A recipe that is not there is an error that names the nearest one."""
    with pytest.raises(RecipeNotFoundError) as caught:
        write_book(tmp_path).load_recipe("tests/jugde")
    assert caught.value.fix == "did you mean tests/judge?"


def test_missing_prompt(tmp_path: Path) -> None:
    """A prompt file that is not there is named, with recipe and key."""
    book = write_book(tmp_path, prompt_files=["prompts/tests/judge.md", "tests/gone.md"])
    with pytest.raises(PromptNotFoundError, match=r"tests/gone\.md") as caught:
        book.load_recipe("tests/judge")
    assert caught.value.where == f"{tmp_path}/recipes/tests/judge.yaml (prompt_files)"


def test_missing_scorer_prompt(tmp_path: Path) -> None:
    """So is one that a choice's step names."""
    schema = schema_of(ok={"type": "boolean", "x-decide": [{"scorer": "cosine", "prompt": "tests/no.md"}]})
    with pytest.raises(PromptNotFoundError) as caught:
        write_book(tmp_path, output_schema=schema).load_recipe("tests/judge")
    assert str(caught.value.where).endswith("(output_schema.properties.ok.x-decide)")


OUTSIDE = (
    "../secret.md",
    "tests/../../secret.md",
    "{root}/secret.md",
    "prompts//{root}/secret.md",
    "a\0b",
    "../" * 50,
)


@pytest.mark.parametrize("name", OUTSIDE)
def test_prompts_stay_inside_the_prompt_folders(tmp_path: Path, name: str) -> None:
    """A name that leads out of them is an error of the recipe that names its key, though a file is there."""
    (tmp_path / "secret.md").write_text("secret", encoding="utf-8")
    name = name.format(root=tmp_path)
    with pytest.raises(RecipeKeyError, match="leads out of prompts/") as caught:
        write_book(tmp_path, prompt_files=[name]).load_recipe("tests/judge")
    assert str(caught.value.where).endswith("tests/judge.yaml (prompt_files)")
    step = {"scorer": "cosine", "prompt": name}
    schema = schema_of(ok={"type": "boolean", "x-decide": [step]})
    with pytest.raises(RecipeError):
        write_book(tmp_path, output_schema=schema).load_recipe("tests/judge")


def test_links_out_of_the_folders_are_refused(tmp_path: Path) -> None:
    """A linked prompt, recipe or registry, and a folder that is a link, are errors; links within may stay."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("secret", encoding="utf-8")
    project = tmp_path / "project"
    book = write_book(project)
    prompts = project / "prompts/tests"
    (prompts / "out.md").symlink_to(outside / "x.md")
    (project / "prompts/linked").symlink_to(outside)
    (prompts / "within.md").symlink_to("judge.md")
    for name in ("tests/out.md", "linked/x.md"):
        with pytest.raises(RecipeKeyError, match="is a link that leads out of prompts/"):
            book.load_prompt(name, where="here")
    assert book.load_prompt("tests/within.md", where="here") == book.load_prompt("tests/judge.md", where="")
    (project / "recipes/tests/out.yaml").symlink_to(outside / "x.md")
    (project / "recipes/registry.yaml").symlink_to(outside / "x.md")
    with pytest.raises(RecipeKeyError):
        book.load_recipe("tests/out")
    with pytest.raises(RecipeKeyError):
        book.registry()
    (project / "prompts").rename(outside / "prompts")
    (project / "prompts").symlink_to(outside / "prompts")
    with pytest.raises(RecipeKeyError):
        RecipeBook([project / "recipes"], [project / "prompts"]).load_prompt("tests/judge.md", where="here")


@pytest.mark.parametrize("key", ["../other", "tests/../../other", "/etc/other"])
def test_recipe_names_stay_inside(tmp_path: Path, key: str) -> None:
    """So does the name of a recipe, given by hand or in the registry."""
    book = write_book(tmp_path)
    (tmp_path / "other.yaml").write_bytes((tmp_path / "recipes/tests/judge.yaml").read_bytes())
    with pytest.raises(RecipeKeyError, match="leads out of recipes/"):
        book.load_recipe(key)


@pytest.mark.parametrize("key", ["../other", "/{root}/other", "tests/judge"])
def test_a_kept_version_is_written_inside(tmp_path: Path, key: str) -> None:
    """A version from a store that names files outside of the folders is refused as a whole."""
    prompts = {"prompts/tests/judge.md": "x", "../x.md" if key == "tests/judge" else "tests/y.md": "x"}
    name = key.format(root=tmp_path)
    version = RecipeVersion(recipe=name, version="", first_seen=None, text="text", prompts=prompts)
    with pytest.raises(RecipeKeyError):
        write_version(version, recipes=tmp_path / "project/recipes", prompts=tmp_path / "project/prompts")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "x" * 5000, "tests"])
def test_impossible_prompt_name(tmp_path: Path, name: str) -> None:
    """A name that no file can have is a prompt that is not there."""
    with pytest.raises(PromptNotFoundError):
        write_book(tmp_path).load_prompt(name, where="here")


def test_router(tmp_path: Path) -> None:
    """Step and mode lead to the recipe; a mode without one and an unknown step are errors."""
    book = write_book(tmp_path)
    (tmp_path / "recipes" / "registry.yaml").write_text(REGISTRY, encoding="utf-8")
    assert book.recipe_for("judge", "chat").key == "tests/judge"
    with pytest.raises(RecipeNotFoundError, match="no recipe for judge in code mode"):
        book.recipe_for("judge", "code")
    with pytest.raises(RecipeNotFoundError, match="no step guess"):
        book.recipe_for("guess", "chat")


def test_no_registry(tmp_path: Path) -> None:
    """A missing registry is an error with its place."""
    with pytest.raises(RecipeNotFoundError) as caught:
        RecipeBook([tmp_path / "recipes"], []).registry()
    assert caught.value.where == str(tmp_path / "recipes" / "registry.yaml")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[]", "top level"),
        ("judge: 1", "judge"),
        (REGISTRY + "  extra: 1\n", "judge.extra"),
        (REGISTRY.replace("low", "none"), "judge.risk"),
        (REGISTRY.replace("chat:", "talk:"), "judge.recipes.talk"),
        (REGISTRY.replace("tests/judge", "[a]"), "judge.recipes.chat"),
    ],
)
def test_broken_registry(tmp_path: Path, text: str, key: str) -> None:
    """A fault of the registry is named by its key."""
    book = write_book(tmp_path)
    (tmp_path / "recipes" / "registry.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RecipeKeyError) as caught:
        book.registry()
    assert (caught.value.path, caught.value.key) == (str(book.registry_path), key)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: [", None, "not valid YAML"),
        ("a: 1\n\tb: 2", 2, "not valid YAML"),
        ("a: 1\na: 2", 2, "the key 'a' stands in line 1 and again in line 2"),
        ("a: &x [1]\nb: *x", 2, "alias"),
        ("a: &x [*x]", 1, "alias"),
        ("? [a]\n: b", 1, "is no text"),
        ("a: 1\n---\nb: 2", 2, "a second document"),
        ("a: !!python/object:os.system x", 1, "the tag"),
        ("a: !!bool x", 1, "the tag"),
        ("a: !!binary aGk=", 1, "the tag"),
        ("a: 1e999", 1, "not a finite number"),
        ("a: \x01", None, "not valid YAML"),
        ("[" * 101 + "]" * 101, 1, "nested too deeply"),
        ("[" * 100_000, 1, "nested too deeply"),
        ("a: " + "9" * 5000, 1, "too large"),
    ],
)
def test_broken_yaml(text: str, line: int | None, says: str) -> None:
    """YAML that is broken, clever or endless is one error, with its line where that is known."""
    with pytest.raises(RecipeError, match=says) as caught:
        load_yaml(text, where="r.yaml", fault=RecipeError)
    assert line is None or caught.value.where == f"r.yaml:{line}"


def test_dates_stay_text() -> None:
    """A date in a recipe is the text that stands there."""
    assert load_yaml("a: 2026-13-45\nb: 2026-01-04", where="r") == {
        "a": "2026-13-45",
        "b": "2026-01-04",
    }


def test_not_utf8(tmp_path: Path) -> None:
    """A recipe or prompt that is not UTF-8 is a recipe error with its line."""
    book = write_book(tmp_path)
    (tmp_path / "prompts" / "tests" / "judge.md").write_bytes(b"You\n\xff")
    with pytest.raises(RecipeError, match="not UTF-8") as caught:
        book.load_recipe("tests/judge")
    assert str(caught.value.where).endswith("judge.md:2")
    (tmp_path / "recipes" / "tests" / "x.yaml").write_bytes(b"\xff")
    with pytest.raises(RecipeError, match="not UTF-8"):
        book.load_recipe("tests/x")


def test_unreadable_recipe(tmp_path: Path) -> None:
    """A recipe that is a directory is not there."""
    (tmp_path / "recipes" / "tests" / "judge.yaml").mkdir(parents=True)
    with pytest.raises(Problem):
        RecipeBook([tmp_path / "recipes"], [tmp_path]).load_recipe("tests/judge")
