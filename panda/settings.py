"""What the user can set: flags > PANDA_… > panda.toml > user file > defaults; their table is Settings."""

import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from panda.compression.budgets import Limits
from panda.documents.times import parse_time
from panda.errors import SettingError, UsageError
from panda.storage.layout import DEFAULT_USER, asset, check_id, search_path

PROJECT_FILE = "panda.toml"


@dataclass(frozen=True)
class Given:
    """A value as somebody gave it."""

    value: object  # as it stands in the flag, variable or file
    origin: str  # flag, variable or file
    where: str  # for an error: file with key, or as *origin*
    directory: Path  # what a relative path is relative to
    home: Path  # what ~ stands for

    def wrong(self, wanted: str) -> SettingError:
        """The error of a value that is not what is wanted."""
        return SettingError(
            f"{str(self.value)[:80]!r} is not {wanted}", where=self.where, fix=f"give {wanted}"
        )


def _path(given: Given) -> Path:
    text = str(given.value) if isinstance(given.value, str | Path) else ""
    if not text or "\0" in text:
        raise given.wrong("a path")
    return given.home / text[2:] if text == "~" or text.startswith("~/") else given.directory / text


def _identifier(what: str) -> Callable[[Given], str]:
    def check(given: Given) -> str:
        if not isinstance(given.value, str):
            raise given.wrong(f"a {what} id")
        try:
            return check_id(given.value, what=what)
        except UsageError as exc:
            raise SettingError(exc.message, where=given.where, fix=exc.fix) from exc

    return check


def _now(given: Given) -> datetime:
    try:
        if isinstance(given.value, datetime):
            return parse_time(given.value.isoformat())
        return parse_time(given.value if isinstance(given.value, str) else "")
    except ValueError as exc:
        raise given.wrong("a time such as 2026-01-04T14:30:00Z") from exc


def _number(
    what: str, *, most: float = float("inf"), whole: bool = True, zero: bool = True
) -> Callable[[Given], float]:
    """A check for a number from 0 to *most*, 0 itself only if *zero*."""

    def check(given: Given) -> float:
        try:
            number = int(str(given.value)) if whole else float(str(given.value))
        except ValueError as exc:
            raise given.wrong(what) from exc
        if not 0 <= number <= most or number == float("inf") or (number == 0 and not zero):
            raise given.wrong(what)
        return number

    return check


def _flag(given: Given) -> bool:
    values = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False}
    found = {**values, "no": False}.get(str(given.value).lower())
    if found is None:
        raise given.wrong("true or false")
    return found


def _commands(given: Given) -> dict[str, tuple[str, ...]]:
    """Commands by name; each a list of words, or one line as a shell would split it. No shell runs it."""
    wanted = 'a table of commands, such as [test_commands] with unit = "python -m pytest -q"'
    table = given.value if isinstance(given.value, dict) else {"": None}
    commands = {}
    for name, value in table.items():
        try:
            words = shlex.split(value) if isinstance(value, str) else value
        except ValueError as exc:
            raise given.wrong(wanted) from exc
        if not isinstance(words, list) or not words or not all(isinstance(one, str) for one in words):
            raise given.wrong(wanted)
        commands[name] = tuple(words)
    return commands


def _layer(given: Given) -> str:
    from panda.models.models_file import LAYERS  # only if it is wanted: it loads yaml, and help must not

    if given.value not in LAYERS:
        raise given.wrong(f"a layer: {', '.join(LAYERS)}")
    return str(given.value)


def _places(given: Given) -> tuple[str, ...]:
    from panda.web.addresses import parse_places  # only if it is wanted

    try:
        return parse_places(given.value)
    except UsageError as exc:
        raise SettingError(exc.message, where=given.where, fix=exc.fix) from exc


def _search_provider(given: Given) -> str:
    kind, _, place = str(given.value).partition(":")
    if kind == "file" and place:
        return f"file:{_path(replace(given, value=place))}"
    if kind == "searxng" and place.startswith(("http://", "https://")):
        return f"searxng:{place}"
    raise given.wrong("searxng:URL or file:DIRECTORY")


_seconds = _number("a number of seconds, 0 or more", whole=False)
_limit = _number("a number of seconds above 0", whole=False, zero=False)
_seed = _number("a whole number from 0 to 4294967295", most=2**32 - 1)
_tokens = _number("a whole number of tokens, 0 or more")
_share = _number("a share from 0 to 1, such as 0.9", most=1, whole=False)
_LIMITS = Limits()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting, with the place that each came from."""

    root: Annotated[Path, _path]
    """The store: the directory `panda-system-docs`."""
    user: Annotated[str, _identifier("user")] = DEFAULT_USER
    """Whose turns and memory."""
    session: Annotated[str | None, _identifier("session")] = None
    """The session that a new turn joins; None gives it one of its own."""
    now: Annotated[datetime | None, _now] = None
    """A fixed present for every time that is read or written; None is the real clock."""
    seed: Annotated[int | None, _seed] = None
    """Seed of every model call; None derives one from user, turn, recipe and attempt."""
    wait_seconds: Annotated[float, _seconds] = 600.0
    """How long to wait for a lock."""
    models_file: Annotated[Path, _path]
    """The models.yaml in force."""
    recipe_dirs: tuple[Path, ...]
    """Where recipes are looked for, the project's own directory first."""
    prompt_dirs: tuple[Path, ...]
    """Where prompts are looked for, the project's own directory first."""
    cache_dir: Annotated[Path, _path]
    """Where files go that can be made again, and reports of bugs."""
    web_allow: Annotated[tuple[str, ...], _places] = ()
    """Hosts, addresses and CIDR blocks that may be contacted although they are not public."""
    web_timeout_seconds: Annotated[float, _seconds] = 20.0
    """How long one page may take, with names, redirects and robots.txt."""
    search_provider: Annotated[str | None, _search_provider] = None
    """Who searches the web: "searxng:URL" or "file:DIRECTORY"; None if nobody."""
    compression_model_layer: Annotated[str, _layer] = "NERVES"
    """Layer whose model weighs and words anew what is compressed."""
    compression_enabled: Annotated[bool, _flag] = _LIMITS.enabled
    """Off: inputs and sections over their budgets are an error."""
    compression_threshold: Annotated[float, _share] = _LIMITS.threshold
    """Share of a recipe's input budget above which inputs are compressed."""
    min_compression_savings: Annotated[int, _tokens] = _LIMITS.least_saving_tokens
    """Tokens that a compression of a section or of inputs saves at least, once it has started."""
    compression_cache_ttl: Annotated[float | None, _seconds] = None
    """Seconds after which a kept result of panda compress is made anew; None is never."""
    default_context_budget: Annotated[int, _tokens] = _LIMITS.call_tokens
    """Most tokens of one call, prompt and output together."""
    response_token_reserve: Annotated[int, _tokens] = _LIMITS.reserve_tokens
    """Tokens kept free beside the output of a recipe that states no response_reserve."""
    tool_seconds: Annotated[float, _limit] = 60.0
    """How long one call of a tool may take."""
    test_seconds: Annotated[float, _limit] = 600.0
    """How long a command of test_commands may take."""
    test_commands: Annotated[Mapping[str, tuple[str, ...]], _commands] = field(default_factory=dict)
    """What test.run may run in the project's directory, by name."""
    project_dir: Path
    """The directory of panda.toml, or the current one."""
    trust: bool = False
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
        """Where a field's value came from: "--root", "PANDA_ROOT", the path of a file, or "default"."""
        return self.origins.get(name, "default")

    def place(self, name: str) -> str:
        """The same for an error: with the line where a file sets it."""
        origin = self.origin(name)
        if not origin.endswith(".toml"):
            return origin
        lines = _read(Path(origin)).decode().splitlines()
        found = (f":{n}" for n, line in enumerate(lines, 1) if line.lstrip(" \t\"'").startswith(name))
        return f"{origin}{next(found, '')} ({name})"


CHECKS: Mapping[str, Callable[[Given], object]] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Settings, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}
"""What can be set in a file, as a variable or by a flag, with what reads it (SettingError if it cannot)."""


def process_environment() -> dict[str, str]:
    """The environment of this process."""
    return dict(os.environ)


def load_settings(flags: Mapping[str, object], environ: Mapping[str, str], cwd: Path) -> Settings:
    """
    The settings in force (design §3).

    Args:
        flags: Setting, or `trust`, to value as given on the command line; None stands for a flag not given.
        environ: Environment variables; an empty one counts as unset.
        cwd: The current directory.

    Returns:
        All settings. A relative path is relative to the file it stands in, or to *cwd*.

    Raises:
        SettingError: An unknown key, a value of the wrong type, or a file that is not TOML.
    """
    home = Path(environ.get("HOME") or "/")
    project_file = _find_upwards(cwd)
    project_text = _read(project_file) if project_file else b""
    user_file = _home(environ, "XDG_CONFIG_HOME", ".config") / "panda" / "config.toml"
    given: dict[str, Given] = {}
    if user_file.is_file():
        given |= _from_file(user_file, _read(user_file), home)
    if project_file:
        given |= _from_file(project_file, project_text, home)
    for key in (*CHECKS, "trust"):  # which no file can give
        variable = f"PANDA_{key.upper()}"
        if environ.get(variable):
            given[key] = Given(environ[variable], variable, variable, cwd, home)
    for key, value in flags.items():
        if value is not None:
            flag = "--wait" if key == "wait_seconds" else f"--{key.replace('_', '-')}"
            given[key] = Given(value, flag, flag, cwd, home)
    project_dir = project_file.parent if project_file else cwd
    own_models = project_dir / "models.yaml"
    values: dict[str, Any] = {
        "root": cwd / "panda-system-docs",
        "models_file": own_models if own_models.is_file() else asset("models.yaml"),
        "cache_dir": default_cache_dir(environ),
    }
    values |= {key: CHECKS[key](given[key]) for key in given if key in CHECKS}
    return Settings(
        **values,
        recipe_dirs=search_path("recipes", project_dir=project_dir),
        prompt_dirs=search_path("prompts", project_dir=project_dir),
        project_dir=project_dir,
        project_text=project_text,
        trust="trust" in given and _flag(given["trust"]),
        state_dir=_home(environ, "XDG_STATE_HOME", ".local/state") / "panda",
        origins={key: item.origin for key, item in given.items()},
    )


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """Where the cache is when nobody has set it, or no settings could be loaded."""
    return _home(environ, "XDG_CACHE_HOME", ".cache") / "panda"


def _home(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    if environ.get(variable, "").startswith("/"):
        return Path(environ[variable])
    return Path(environ.get("HOME") or "/") / below_home


def _find_upwards(cwd: Path) -> Path | None:
    paths = (directory / PROJECT_FILE for directory in (cwd, *cwd.parents))
    return next((path for path in paths if path.is_file()), None)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise SettingError(f"cannot be read: {exc.strerror}", where=str(path)) from exc


def _from_file(path: Path, content: bytes, home: Path) -> dict[str, Given]:
    try:
        table = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        line = re.search(r"at line (\d+)", str(exc))
        raise SettingError(
            f"not valid TOML: {exc}",
            where=f"{path}:{line[1]}" if line else str(path),
            fix='a line is a key, one = and a value, texts in quotes, as in user = "ann"',
        ) from exc
    for key in table:
        if key not in CHECKS:
            near = get_close_matches(key, CHECKS, n=1, cutoff=0.5)
            fix = f"did you mean {near[0]}?" if near else f"valid keys: {', '.join(CHECKS)}"
            raise SettingError(f"unknown setting {key!r}", where=f"{path} ({key})", fix=fix)
    return {
        key: Given(value, str(path), f"{path} ({key})", path.parent, home) for key, value in table.items()
    }
