"""What the user can set: flags > PANDA_… > panda.toml > user file > defaults; what each setting may be."""

import os
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

from panda.compression.budgets import Limits
from panda.documents.times import parse_time
from panda.errors import SettingError, UsageError
from panda.storage.layout import asset, check_id, search_path


@dataclass(frozen=True)
class Given:
    """A value as somebody gave it."""

    value: object
    """As it stands in the flag, variable or file."""
    origin: str
    """Flag, variable or file."""
    where: str
    """For an error: file with key, or as *origin*."""
    directory: Path
    """What a relative path is relative to."""


def _wrong(given: Given, wanted: str) -> SettingError:
    return SettingError(f"{str(given.value)[:80]!r} is not {wanted}", where=given.where, fix=f"give {wanted}")


def _path(given: Given, environ: Mapping[str, str]) -> Path:
    text = str(given.value) if isinstance(given.value, str | Path) else ""
    if not text or "\0" in text:
        raise _wrong(given, "a path")
    if text == "~" or text.startswith("~/"):
        return Path(environ.get("HOME") or "/") / text[2:]
    return given.directory / text


def _identifier(what: str) -> Callable[[Given, Mapping[str, str]], str]:
    def check(given: Given, environ: Mapping[str, str]) -> str:
        if not isinstance(given.value, str):
            raise _wrong(given, f"a {what} id")
        try:
            return check_id(given.value, what=what)
        except UsageError as exc:
            raise SettingError(exc.message, where=given.where, fix=exc.fix) from exc

    return check


def _now(given: Given, environ: Mapping[str, str]) -> datetime:
    try:
        if isinstance(given.value, datetime):
            return parse_time(given.value.isoformat())
        return parse_time(given.value if isinstance(given.value, str) else "")
    except ValueError as exc:
        raise _wrong(given, "a time such as 2026-01-04T14:30:00Z") from exc


def _seed(given: Given, environ: Mapping[str, str]) -> int:
    try:
        number = given.value if type(given.value) is int else int(str(given.value))
    except ValueError as exc:
        raise _wrong(given, "a whole number from 0 to 4294967295") from exc
    if not 0 <= number < 2**32:
        raise _wrong(given, "a whole number from 0 to 4294967295")
    return number


def _number(
    what: str, *, most: float = float("inf"), whole: bool = True
) -> Callable[[Given, Mapping[str, str]], float]:
    """A check for a number from 0 to *most*."""

    def check(given: Given, environ: Mapping[str, str]) -> float:
        try:
            number = int(str(given.value)) if whole else float(str(given.value))
        except ValueError as exc:
            raise _wrong(given, what) from exc
        if not 0 <= number <= most or number == float("inf"):
            raise _wrong(given, what)
        return number

    return check


def check_flag(given: Given, environ: Mapping[str, str]) -> bool:
    """True or false, as files and variables say it (SettingError for anything else)."""
    values = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False}
    found = {**values, "no": False}.get(str(given.value).lower())
    if found is None:
        raise _wrong(given, "true or false")
    return found


_seconds = _number("a number of seconds, 0 or more", whole=False)


def _limit(given: Given, environ: Mapping[str, str]) -> float:
    seconds = _seconds(given, environ)
    if seconds == 0:
        raise _wrong(given, "a number of seconds above 0")
    return seconds


def _commands(given: Given, environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Commands by name; each a list of words, or one line as a shell would split it. No shell runs it."""
    wanted = 'a table of commands, such as [test_commands] with unit = "python -m pytest -q"'
    table = given.value if isinstance(given.value, dict) else {"": None}
    commands = {}
    for name, value in table.items():
        try:
            words = shlex.split(value) if isinstance(value, str) else value
        except ValueError as exc:
            raise _wrong(given, wanted) from exc
        if not isinstance(words, list) or not words or not all(isinstance(one, str) for one in words):
            raise _wrong(given, wanted)
        commands[name] = tuple(words)
    return commands


def _layer(given: Given, environ: Mapping[str, str]) -> str:
    from panda.models.models_file import LAYERS  # only if it is wanted: it loads yaml, and help must not

    if given.value not in LAYERS:
        raise _wrong(given, f"a layer: {', '.join(LAYERS)}")
    return str(given.value)


def _places(given: Given, environ: Mapping[str, str]) -> tuple[str, ...]:
    from panda.web.addresses import parse_places  # only if it is wanted

    try:
        return parse_places(given.value)
    except UsageError as exc:
        raise SettingError(exc.message, where=given.where, fix=exc.fix) from exc


def _search_provider(given: Given, environ: Mapping[str, str]) -> str:
    kind, _, place = str(given.value).partition(":")
    if kind == "file" and place:
        return f"file:{_path(Given(place, given.origin, given.where, given.directory), environ)}"
    if kind == "searxng" and place.startswith(("http://", "https://")):
        return f"searxng:{place}"
    raise _wrong(given, "searxng:URL or file:DIRECTORY")


CHECKS: Mapping[str, Callable[[Given, Mapping[str, str]], object]] = {
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
    "tool_seconds": _limit,
    "test_seconds": _limit,
    "test_commands": _commands,
    "compression_enabled": check_flag,
    "compression_threshold": _number("a share from 0 to 1, such as 0.9", most=1, whole=False),
    "min_compression_savings": _number("a whole number of tokens, 0 or more"),
    "compression_cache_ttl": _seconds,
    "default_context_budget": _number("a whole number of tokens, 0 or more"),
    "response_token_reserve": _number("a whole number of tokens, 0 or more"),
}
"""Setting to what turns a given value into it, raising SettingError for one that it cannot be."""


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
    compression_enabled: bool
    """Off: inputs and sections over their budgets are an error."""
    compression_threshold: float
    """Share of a recipe's input budget above which inputs are compressed."""
    min_compression_savings: int
    """Tokens that a compression of a section or of inputs saves at least, once it has started."""
    compression_cache_ttl: float | None
    """Seconds after which a kept result of panda compress is made anew; None is never."""
    default_context_budget: int
    """Most tokens of one call, prompt and output together."""
    response_token_reserve: int
    """Tokens kept free beside the output of a recipe that states no response_reserve."""
    tool_seconds: float
    """How long one call of a tool may take."""
    test_seconds: float
    """How long a command of test_commands may take."""
    test_commands: Mapping[str, tuple[str, ...]]
    """What test.run may run in the project's directory, by name."""
    project_dir: Path
    """The directory of panda.toml, or the current one."""
    trust: bool
    """Whether all that the project's files and the store's links name counts, for this run alone."""
    state_dir: Path
    """Where `panda trust` records what counts."""
    project_text: bytes = b""
    """panda.toml as read; empty without one."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Setting to the place its value came from; a setting not in here has its default."""

    @property
    def project_file(self) -> Path:
        """The panda.toml in force, or where one would be."""
        return self.project_dir / PROJECT_FILE

    @property
    def compression(self) -> Limits:
        """What is set of how sections and inputs are kept within their budgets."""
        return Limits(
            self.compression_enabled,
            self.default_context_budget,
            self.response_token_reserve,
            self.compression_threshold,
            self.min_compression_savings,
        )

    def on_store(self, root: Path, **others: object) -> "Settings":
        """The same for another store, which no file of the project has named, with *others* changed too."""
        origins = {**self.origins, "root": "command"}
        return replace(self, root=root, origins=origins, **others)  # type: ignore[arg-type]  # fields of this class

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


def process_environment() -> dict[str, str]:
    """The environment of this process."""
    return dict(os.environ)


def load_settings(flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> Settings:
    """
    The settings in force.

    Args:
        flags: Setting, or `trust`, to value as given on the command line; None stands for a flag not given.
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
    project_text = _read(project_file) if project_file else b""
    user_file = _config_home(environ) / "panda" / "config.toml"
    given: dict[str, Given] = {}
    for layer in (
        _from_file(user_file, _read(user_file)) if user_file.is_file() else {},
        _from_file(project_file, project_text) if project_file else {},
        _from_environment(environ, cwd),
        _from_flags(flags, cwd),
    ):
        given.update(layer)
    values = {key: CHECKS[key](given[key], environ) for key in given if key in CHECKS}
    project_dir = project_file.parent if project_file else cwd
    own_models = project_dir / "models.yaml"
    limits = Limits()
    defaults: dict[str, object] = {
        "root": cwd / "panda-system-docs",
        "user": "default",
        "session": "default",
        "now": None,
        "seed": None,
        "wait_seconds": 600.0,
        "compression_model_layer": "NERVES",
        "compression_enabled": limits.enabled,
        "compression_threshold": limits.threshold,
        "min_compression_savings": limits.least_saving_tokens,
        "compression_cache_ttl": None,
        "default_context_budget": limits.call_tokens,
        "response_token_reserve": limits.reserve_tokens,
        "tool_seconds": 60.0,
        "test_seconds": 600.0,
        "test_commands": {},
        "web_allow": (),
        "web_timeout_seconds": 20.0,
        "search_provider": None,
        "models_file": own_models if own_models.is_file() else asset("models.yaml"),
        "cache_dir": _home(environ, "XDG_CACHE_HOME", ".cache") / "panda",
    }
    return Settings(
        **{**defaults, **values},  # type: ignore[arg-type]  # CHECKS gives each key its field's type
        recipe_dirs=search_path("recipes", project_dir=project_dir),
        prompt_dirs=search_path("prompts", project_dir=project_dir),
        project_dir=project_dir,
        project_text=project_text,
        trust="trust" in given and check_flag(given["trust"], environ),
        state_dir=_home(environ, "XDG_STATE_HOME", ".local/state") / "panda",
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


def _from_flags(flags: Mapping[str, object], cwd: Path) -> dict[str, Given]:
    options = {key: "--wait" if key == "wait_seconds" else f"--{key.replace('_', '-')}" for key in flags}
    return {
        key: Given(flags[key], options[key], options[key], cwd) for key in flags if flags[key] is not None
    }


def _from_environment(environ: Mapping[str, str], cwd: Path) -> dict[str, Given]:
    found = {}
    for key in (*CHECKS, "trust"):  # which no file can give
        variable = f"PANDA_{key.upper()}"
        if environ.get(variable):
            found[key] = Given(environ[variable], variable, variable, cwd)
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise SettingError(f"cannot be read: {exc.strerror}", where=str(path)) from exc


def _from_file(path: Path, content: bytes) -> dict[str, Given]:
    try:
        table = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise SettingError(f"not valid TOML: {exc}", where=str(path)) from exc
    for key in table:
        if key not in CHECKS:
            near = get_close_matches(key, CHECKS, n=1, cutoff=0.5)
            fix = f"did you mean {near[0]}?" if near else f"valid keys: {', '.join(CHECKS)}"
            raise SettingError(f"unknown setting {key!r}", where=f"{path} ({key})", fix=fix)
    return {key: Given(value, str(path), f"{path} ({key})", path.parent) for key, value in table.items()}


SETTING_NAMES = tuple(CHECKS)
"""What can be set in a file, as a variable or by a flag."""
