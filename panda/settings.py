"""What the user can set: flags > PANDA_… > panda.toml > user file > defaults."""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

from panda.documents.times import parse_time
from panda.errors import SettingError, UsageError
from panda.storage.assets import asset, search_path
from panda.storage.names import check_id

PROJECT_FILE = "panda.toml"


@dataclass(frozen=True)
class Settings:
    """Every setting, with the place that each came from."""

    root: Path
    """The store: the directory `panda-system-docs`."""
    user: str
    """Whose turns and memory."""
    session: str
    """The session that a new turn joins."""
    now: datetime | None
    """A fixed present for every time that is read or written; None is the real clock."""
    seed: int | None
    """Seed of every model call; None derives one from user, turn, recipe and attempt."""
    wait_seconds: float
    """How long to wait for a lock."""
    models_file: Path
    """The models.yaml in force."""
    recipe_dirs: tuple[Path, ...]
    """Where recipes are looked for, the project's own directory first."""
    prompt_dirs: tuple[Path, ...]
    """Where prompts are looked for, the project's own directory first."""
    cache_dir: Path
    """Where files go that can be made again, and reports of bugs."""
    web_allow: tuple[str, ...]
    """Hosts, addresses and CIDR blocks that may be contacted although they are not public."""
    web_timeout_seconds: float
    """How long one page may take, with names, redirects and robots.txt."""
    search_provider: str | None
    """Who searches the web: "searxng:URL" or "file:DIRECTORY"; None if nobody."""
    compression_model_layer: str
    """Layer whose model weighs and words anew what is compressed."""
    project_dir: Path
    """The directory of panda.toml, or the current one."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Setting to the place its value came from; a setting not in here has its default."""

    def clock(self) -> datetime:
        """The present: the fixed one if one is set."""
        return self.now or datetime.now(UTC)

    def origin(self, name: str) -> str:
        """
        Where a setting's value came from.

        Args:
            name: A field of this class.

        Returns:
            "--root", "PANDA_ROOT", the path of a file, or "default".
        """
        return self.origins.get(name, "default")


@dataclass(frozen=True)
class _Given:
    """A value as somebody gave it."""

    value: object
    """As it stands in the flag, variable or file."""
    origin: str
    """Flag, variable or file."""
    where: str
    """For an error: file with key, or as *origin*."""
    directory: Path
    """What a relative path is relative to."""


def process_environment() -> dict[str, str]:
    """The environment of this process."""
    return dict(os.environ)


def load_settings(flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> Settings:
    """
    The settings in force.

    Args:
        flags: Setting to value as given on the command line; None stands for a flag not given.
        environ: Environment variables; an empty one counts as unset.
        cwd: The current directory.

    Returns:
        All settings. A relative path is relative to the file it stands in, or to *cwd*.

    Raises:
        SettingError: An unknown key, a value of the wrong type, or a file that is not TOML.

    Source:
        Precedence: design §3.
    """
    project_file = _find_upwards(cwd)
    user_file = _config_home(environ) / "panda" / "config.toml"
    given: dict[str, _Given] = {}
    for layer in (
        _from_file(user_file) if user_file.is_file() else {},
        _from_file(project_file) if project_file else {},
        _from_environment(environ, cwd),
        _from_flags(flags, cwd),
    ):
        given.update(layer)
    values = {key: _CHECKS[key](given[key], environ) for key in given}
    project_dir = project_file.parent if project_file else cwd
    own_models = project_dir / "models.yaml"
    defaults: dict[str, object] = {
        "root": cwd / "panda-system-docs",
        "user": "default",
        "session": "default",
        "now": None,
        "seed": None,
        "wait_seconds": 600.0,
        "compression_model_layer": "NERVES",
        "web_allow": (),
        "web_timeout_seconds": 20.0,
        "search_provider": None,
        "models_file": own_models if own_models.is_file() else asset("models.yaml"),
        "cache_dir": _home(environ, "XDG_CACHE_HOME", ".cache") / "panda",
    }
    return Settings(
        **{**defaults, **values},  # type: ignore[arg-type]  # _CHECKS gives each key its field's type
        recipe_dirs=search_path("recipes", project_dir=project_dir),
        prompt_dirs=search_path("prompts", project_dir=project_dir),
        project_dir=project_dir,
        origins={key: item.origin for key, item in given.items()},
    )


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """Where the cache is when no settings could be loaded."""
    return _home(environ, "XDG_CACHE_HOME", ".cache") / "panda"


def _home(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    if environ.get(variable, "").startswith("/"):
        return Path(environ[variable])
    return Path(environ.get("HOME") or "/") / below_home


def _config_home(environ: Mapping[str, str]) -> Path:
    return _home(environ, "XDG_CONFIG_HOME", ".config")


def _find_upwards(cwd: Path) -> Path | None:
    for directory in (cwd, *cwd.parents):
        if (directory / PROJECT_FILE).is_file():
            return directory / PROJECT_FILE
    return None


def _from_flags(flags: Mapping[str, object], cwd: Path) -> dict[str, _Given]:
    options = {key: "--wait" if key == "wait_seconds" else f"--{key.replace('_', '-')}" for key in flags}
    return {
        key: _Given(flags[key], options[key], options[key], cwd) for key in flags if flags[key] is not None
    }


def _from_environment(environ: Mapping[str, str], cwd: Path) -> dict[str, _Given]:
    found = {}
    for key in _CHECKS:
        variable = f"PANDA_{key.upper()}"
        if environ.get(variable):
            found[key] = _Given(environ[variable], variable, variable, cwd)
    return found


def _from_file(path: Path) -> dict[str, _Given]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise SettingError(f"not valid TOML: {exc}", where=str(path)) from exc
    except OSError as exc:
        raise SettingError(f"cannot be read: {exc.strerror}", where=str(path)) from exc
    for key in table:
        if key not in _CHECKS:
            near = get_close_matches(key, _CHECKS, n=1, cutoff=0.5)
            fix = f"did you mean {near[0]}?" if near else f"valid keys: {', '.join(_CHECKS)}"
            raise SettingError(f"unknown setting {key!r}", where=f"{path} ({key})", fix=fix)
    return {key: _Given(value, str(path), f"{path} ({key})", path.parent) for key, value in table.items()}


def _wrong(given: _Given, wanted: str) -> SettingError:
    return SettingError(f"{str(given.value)[:80]!r} is not {wanted}", where=given.where, fix=f"give {wanted}")


def _path(given: _Given, environ: Mapping[str, str]) -> Path:
    text = str(given.value) if isinstance(given.value, str | Path) else ""
    if not text or "\0" in text:
        raise _wrong(given, "a path")
    if text == "~" or text.startswith("~/"):
        return Path(environ.get("HOME") or "/") / text[2:]
    return given.directory / text


def _identifier(what: str) -> Callable[[_Given, Mapping[str, str]], str]:
    def check(given: _Given, environ: Mapping[str, str]) -> str:
        if not isinstance(given.value, str):
            raise _wrong(given, f"a {what} id")
        try:
            return check_id(given.value, what=what)
        except UsageError as exc:
            raise SettingError(exc.message, where=given.where, fix=exc.fix) from exc

    return check


def _now(given: _Given, environ: Mapping[str, str]) -> datetime:
    try:
        if isinstance(given.value, datetime):
            return parse_time(given.value.isoformat())
        return parse_time(given.value if isinstance(given.value, str) else "")
    except ValueError as exc:
        raise _wrong(given, "a time such as 2026-01-04T14:30:00Z") from exc


def _seed(given: _Given, environ: Mapping[str, str]) -> int:
    try:
        number = given.value if type(given.value) is int else int(str(given.value))
    except ValueError as exc:
        raise _wrong(given, "a whole number from 0 to 4294967295") from exc
    if not 0 <= number < 2**32:
        raise _wrong(given, "a whole number from 0 to 4294967295")
    return number


def _seconds(given: _Given, environ: Mapping[str, str]) -> float:
    try:
        number = float(str(given.value))
    except ValueError as exc:
        raise _wrong(given, "a number of seconds, 0 or more") from exc
    if not 0 <= number < float("inf"):
        raise _wrong(given, "a number of seconds, 0 or more")
    return number


def _layer(given: _Given, environ: Mapping[str, str]) -> str:
    from panda.models.models_file import LAYERS  # only if it is wanted: it loads yaml, and help must not

    if given.value not in LAYERS:
        raise _wrong(given, f"a layer: {', '.join(LAYERS)}")
    return str(given.value)


def _places(given: _Given, environ: Mapping[str, str]) -> tuple[str, ...]:
    from panda.web.addresses import parse_places  # only if it is wanted

    try:
        return parse_places(given.value)
    except UsageError as exc:
        raise SettingError(exc.message, where=given.where, fix=exc.fix) from exc


def _search_provider(given: _Given, environ: Mapping[str, str]) -> str:
    kind, _, place = str(given.value).partition(":")
    if kind == "file" and place:
        return f"file:{_path(_Given(place, given.origin, given.where, given.directory), environ)}"
    if kind == "searxng" and place.startswith(("http://", "https://")):
        return f"searxng:{place}"
    raise _wrong(given, "searxng:URL or file:DIRECTORY")


_CHECKS: Mapping[str, Callable[[_Given, Mapping[str, str]], object]] = {
    "root": _path,
    "user": _identifier("user"),
    "session": _identifier("session"),
    "now": _now,
    "seed": _seed,
    "wait_seconds": _seconds,
    "models_file": _path,
    "cache_dir": _path,
    "web_allow": _places,
    "web_timeout_seconds": _seconds,
    "search_provider": _search_provider,
    "compression_model_layer": _layer,
}

SETTING_NAMES = tuple(_CHECKS)
"""What can be set in a file, as a variable or by a flag."""
