"""Settings: precedence, origins and errors."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from panda.errors import SettingError
from panda.settings import Settings, load_settings


def load(
    tmp_path: Path,
    *,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: str = ".",
) -> Settings:
    """Settings of a project in tmp_path/project, with a home of its own."""
    directory = tmp_path / "project" / cwd
    directory.mkdir(parents=True, exist_ok=True)
    return load_settings(
        flags or {}, {"HOME": str(tmp_path / "home"), **(environ or {})}, directory.resolve()
    )


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults(tmp_path: Path) -> None:
    """Without any setting the store is ./panda-system-docs, the user `default`, and no session."""
    settings = load(tmp_path)
    assert settings.root == tmp_path / "project" / "panda-system-docs"
    assert (settings.user, settings.session, settings.wait_seconds) == ("default", None, 600)
    assert settings.cache_dir == tmp_path / "home" / ".cache" / "panda"
    assert settings.origin("root") == "default"


def test_precedence(tmp_path: Path) -> None:
    """A flag beats a variable, a variable panda.toml, panda.toml the user file."""
    user_file = write(
        tmp_path / "home/.config/panda/config.toml", 'user = "e"\nsession = "e"\nseed = 1\nroot = "r"\n'
    )
    project_file = write(tmp_path / "project/panda.toml", 'user = "d"\nsession = "d"\nseed = 2\n')
    settings = load(tmp_path, flags={"user": "a"}, environ={"PANDA_USER": "b", "PANDA_SESSION": "b"})
    assert (settings.user, settings.session, settings.seed) == ("a", "b", 2)
    assert settings.root == user_file.parent / "r"
    origins = [settings.origin(name) for name in ("user", "session", "seed", "root")]
    assert origins == ["--user", "PANDA_SESSION", str(project_file), str(user_file)]


def test_project_file_of_a_parent(tmp_path: Path) -> None:
    """panda.toml is found in a parent, and its paths are relative to it."""
    write(tmp_path / "project/panda.toml", 'root = "store"\n')
    settings = load(tmp_path, cwd="deep/er")
    assert settings.root == tmp_path / "project/store"
    assert settings.project_dir == tmp_path / "project"


def test_own_files_come_first(tmp_path: Path) -> None:
    """A project's own recipes and models.yaml come before the packaged ones."""
    own = write(tmp_path / "project/recipes/pipeline/x.yaml", "").parent.parent
    models = write(tmp_path / "project/models.yaml", "")
    settings = load(tmp_path)
    assert settings.recipe_dirs[0] == own
    assert len(settings.recipe_dirs) == 2
    assert len(settings.prompt_dirs) == 1
    assert settings.models_file == models


def test_unknown_key(tmp_path: Path) -> None:
    """An unknown key is an error that names the file, the key and the nearest valid key."""
    path = write(tmp_path / "project/panda.toml", 'usr = "x"\n')
    with pytest.raises(SettingError) as caught:
        load(tmp_path)
    assert caught.value.where == f"{path}:1 (usr)"
    assert caught.value.fix == "did you mean user?"


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
def test_wrong_value(tmp_path: Path, line: str) -> None:
    """A value of the wrong type or range is an error that names the file and the key."""
    path = write(tmp_path / "project/panda.toml", line)
    with pytest.raises(SettingError) as caught:
        load(tmp_path)
    assert caught.value.where == f"{path}:1 ({line.split()[0]})"


@pytest.mark.parametrize("content", [b"user = ", b'user = "\xff"'])
def test_not_toml(tmp_path: Path, content: bytes) -> None:
    """A panda.toml that is not TOML is a SettingError, not a traceback."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project/panda.toml").write_bytes(content)
    with pytest.raises(SettingError, match=r"not (valid TOML|UTF-8)"):
        load(tmp_path)


def test_fixed_clock(tmp_path: Path) -> None:
    """PANDA_NOW stops the clock at that instant."""
    settings = load(tmp_path, environ={"PANDA_NOW": "2026-01-04T15:30:00+01:00"})
    assert settings.clock() == datetime(2026, 1, 4, 14, 30, tzinfo=UTC)


def test_real_clock(tmp_path: Path) -> None:
    """Without PANDA_NOW the clock is the real one, with time zone."""
    assert abs((load(tmp_path).clock() - datetime.now(UTC)).total_seconds()) < 60


def test_empty_variable_is_unset(tmp_path: Path) -> None:
    """An empty variable counts as not given."""
    assert load(tmp_path, environ={"PANDA_USER": ""}).user == "default"


def test_home_directory(tmp_path: Path) -> None:
    """A path that starts with ~/ is below the home directory."""
    assert load(tmp_path, flags={"root": "~/notes"}).root == tmp_path / "home" / "notes"
