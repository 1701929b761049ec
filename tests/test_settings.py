"""Settings: precedence, origins and errors, as `panda config show` tells them."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.api import Panda


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project without any setting, and a home directory of its own."""
    return open_project(tmp_path, "project")


def open_project(root: Path, directory: str) -> Panda:
    """Return what runs commands in a directory, with no variable but HOME."""
    panda = Panda(root / directory)
    panda.environ = {"HOME": str(root / "home")}
    return panda


def values_of(panda: Panda, *words: str, **environ: str) -> dict[str, Any]:
    """Return the settings in force."""
    settings = panda.json("config", "show", *words, **environ)["settings"]
    return {name: setting["value"] for name, setting in settings.items()}


def test_defaults(panda: Panda, tmp_path: Path) -> None:
    """Without any setting the store is ./panda-system-docs, the user `default`, and no session."""
    settings = panda.json("config", "show")["settings"]
    assert settings["root"] == {"value": str(panda.home / "panda-system-docs"), "origin": "default"}
    values = [settings[name]["value"] for name in ("user", "session", "wait_seconds", "now")]
    assert values == ["default", None, 600, None]
    assert settings["cache_dir"]["value"] == str(tmp_path / "home" / ".cache" / "panda")


def test_precedence(panda: Panda) -> None:
    """A flag beats a variable, a variable panda.toml, panda.toml the user file; its paths are its own."""
    user_file = panda.write(
        "../home/.config/panda/config.toml", 'user = "e"\nsession = "e"\nseed = 1\nroot = "r"\n'
    ).resolve()
    project_file = panda.write("panda.toml", 'user = "d"\nsession = "d"\nseed = 2\n')
    environ = {"PANDA_USER": "b", "PANDA_SESSION": "b"}
    settings = panda.json("config", "show", "--user", "a", **environ)["settings"]
    assert [settings[name] for name in ("user", "session", "seed", "root")] == [
        {"value": "a", "origin": "--user"},
        {"value": "b", "origin": "PANDA_SESSION"},
        {"value": 2, "origin": str(project_file)},
        {"value": str(user_file.parent / "r"), "origin": str(user_file)},
    ]


def test_project_file_of_a_parent(panda: Panda, tmp_path: Path) -> None:
    """panda.toml is found in a parent, and its paths are relative to it."""
    panda.write("panda.toml", 'root = "store"\n')
    values = values_of(open_project(tmp_path, "project/deep/er"))
    assert values["root"] == str(panda.home / "store")
    assert values["project_dir"] == str(panda.home)


def test_own_files_come_first(panda: Panda) -> None:
    """A project's own recipes and models.yaml come before the packaged ones."""
    recipes = panda.write("recipes/pipeline/x.yaml", "").parent.parent
    models = panda.write("models.yaml", "")
    values = values_of(panda)
    assert values["recipe_dirs"][0] == str(recipes)
    assert len(values["recipe_dirs"]) == 2
    assert len(values["prompt_dirs"]) == 1
    assert values["models_file"] == str(models)


def test_unknown_key(panda: Panda) -> None:
    """An unknown key is an error that names the file, the key and the nearest valid key."""
    path = panda.write("panda.toml", 'usr = "x"\n')
    refused = panda("config", "show", "--json")
    assert refused.code == 2
    assert refused.error["where"] == f"{path}:1 (usr)"
    assert refused.error["fix"] == "did you mean user?"


@pytest.mark.parametrize(
    "line",
    [
        "user = 3",
        'user = "Ann"',
        'session = "a/b"',
        "seed = true",
        "seed = -1",
        'seed = "x"',
        "root = 5",
        'root = ""',
        'wait_seconds = "soon"',
        "wait_seconds = inf",
        "wait_seconds = -1",
        'now = "yesterday"',
    ],
)
def test_wrong_value(panda: Panda, line: str) -> None:
    """A value of the wrong type or range is an error that names the file and the key."""
    path = panda.write("panda.toml", line)
    refused = panda("config", "show", "--json")
    assert refused.code == 2
    assert refused.error["where"] == f"{path}:1 ({line.split()[0]})"


@pytest.mark.parametrize("content", [b"user = ", b'user = "\xff"'])
def test_not_toml(panda: Panda, content: bytes) -> None:
    """A panda.toml that is not TOML is an error in a sentence, not a traceback."""
    panda.write("panda.toml", content)
    refused = panda("config", "show", "--json")
    assert refused.code == 2
    assert re.search("not (valid TOML|UTF-8)", refused.error["message"])


def test_fixed_clock(panda: Panda) -> None:
    """PANDA_NOW stops the clock at that instant."""
    assert values_of(panda, PANDA_NOW="2026-01-04T15:30:00+01:00")["now"] == "2026-01-04T14:30:00Z"


def test_real_clock(panda: Panda) -> None:
    """Without PANDA_NOW what is written has the real time."""
    environ = {"PANDA_ROOT": "store"}
    panda.json("init", **environ)
    panda.json("memory", "set", "budget", "$500", **environ)
    text = (panda.store / "users" / "default" / "preferences.md").read_text(encoding="utf-8")
    instants = re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
    assert abs((datetime.fromisoformat(instants[0]) - datetime.now(UTC)).total_seconds()) < 60


def test_empty_variable_is_unset(panda: Panda) -> None:
    """An empty variable counts as not given."""
    assert values_of(panda, PANDA_USER="")["user"] == "default"


def test_home_directory(panda: Panda, tmp_path: Path) -> None:
    """A path that starts with ~/ is below the home directory."""
    assert values_of(panda, "--root", "~/notes")["root"] == str(tmp_path / "home" / "notes")
