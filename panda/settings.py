"""What the user can set: flags > PANDA_… > panda.toml > user file > defaults; their table is Settings."""

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from msgspec import Meta, convert

from panda.compression.budgets import Limits
from panda.documents.text import ID_PATTERN, nearest
from panda.documents.times import parse_time
from panda.errors import Location, SettingError, UsageError
from panda.store.layout import DEFAULT_USER, UserStore, asset, search_path

PROJECT_FILE = "panda.toml"


@dataclass(frozen=True)
class Given:
    """A value as somebody gave it."""

    value: object  # as it stands in the flag, variable or file
    origin: str  # flag, variable or file
    place: str  # the same for an error: of a file with line and key
    directory: Path  # what a relative path is relative to
    home: Path  # what ~ stands for

    def wrong(self, wanted: str) -> SettingError:
        """The error of a value that is not what is wanted."""
        message = f"{str(self.value)[:80]!r} is not {wanted}"
        return SettingError(message, where=self.place, fix=f"give {wanted}")


def _reads(wanted: str, type_: Any) -> Callable[[Given], Any]:
    def read(given: Given) -> Any:
        try:
            return convert(given.value, type_, strict=False)
        except ValueError as exc:
            raise given.wrong(wanted) from exc

    return read


_MOST = sys.float_info.max
_seconds = _reads("a number of seconds, 0 or more", Annotated[float, Meta(ge=0, le=_MOST)])
_limit = _reads("a number of seconds above 0", Annotated[float, Meta(gt=0, le=_MOST)])
_share = _reads("a share from 0 to 1, such as 0.9", Annotated[float, Meta(ge=0, le=1)])
_seed = _reads("a whole number from 0 to 4294967295", Annotated[int, Meta(ge=0, le=2**32 - 1)])
_tokens = _reads("a whole number of tokens, 0 or more", Annotated[int, Meta(ge=0)])
_id = _reads("an id of 1 to 64 characters of a-z, 0-9, _ and -", Annotated[str, Meta(pattern=ID_PATTERN)])


def _path(given: Given) -> Path:
    text = str(given.value) if isinstance(given.value, str | Path) else ""
    if not text or "\0" in text:
        raise given.wrong("a path")
    return given.home / text[2:] if text == "~" or text.startswith("~/") else given.directory / text


def _now(given: Given) -> datetime:
    try:
        return parse_time(given.value.isoformat() if isinstance(given.value, datetime) else str(given.value))
    except ValueError as exc:
        raise given.wrong("a time such as 2026-01-04T14:30:00Z") from exc


def _flag(given: Given) -> bool:
    words = {"on": True, "yes": True, "off": False, "no": False}
    value = words.get(str(given.value).lower(), given.value)
    return bool(_reads("true or false", bool)(replace(given, value=value)))


def _commands(given: Given) -> dict[str, tuple[str, ...]]:
    """Commands by name; each a list of words, or one line as a shell would split it. No shell runs it."""
    try:
        table = convert(given.value, dict[str, str | Annotated[tuple[str, ...], Meta(min_length=1)]])
        words = {name: tuple(shlex.split(v)) if isinstance(v, str) else v for name, v in table.items()}
        return convert(words, dict[str, Annotated[tuple[str, ...], Meta(min_length=1)]])
    except ValueError as exc:
        wanted = 'a table of commands, such as [test_commands] with unit = "python -m pytest -q"'
        raise given.wrong(wanted) from exc


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
        raise SettingError(exc.message, where=given.place, fix=exc.fix) from exc


def _search_provider(given: Given) -> str:
    kind, _, place = str(given.value).partition(":")
    if kind == "file" and place:
        return f"file:{_path(replace(given, value=place))}"
    if kind == "searxng" and place.startswith(("http://", "https://")):
        return f"searxng:{place}"
    raise given.wrong("searxng:URL or file:DIRECTORY")


_LIMITS = Limits()


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting."""

    root: Annotated[Path, _path]  # the store: the directory `panda-system-docs`
    user: Annotated[str, _id] = DEFAULT_USER  # whose turns and memory
    session: Annotated[str | None, _id] = None  # what a new turn joins; None gives it one of its own
    now: Annotated[datetime | None, _now] = None  # a fixed present for every time; None is the real clock
    seed: Annotated[int | None, _seed] = None  # of every model call; None derives one for each
    wait_seconds: Annotated[float, _seconds] = 600.0  # how long to wait for a lock
    models_file: Annotated[Path, _path]  # the models.yaml in force
    recipe_dirs: tuple[Path, ...]  # where recipes are looked for, the project's own directory first
    prompt_dirs: tuple[Path, ...]  # the same for prompts
    cache_dir: Annotated[Path, _path]  # files that can be made again, and reports of bugs
    web_allow: Annotated[tuple[str, ...], _places] = ()  # to contact beside public hosts: names, IPs, CIDR
    web_timeout_seconds: Annotated[float, _seconds] = 20.0  # of one page, with names, redirects, robots.txt
    search_provider: Annotated[str | None, _search_provider] = None  # "searxng:URL" or "file:DIRECTORY"
    compression_model_layer: Annotated[str, _layer] = "NERVES"  # weighs and words anew what is compressed
    compression_enabled: Annotated[bool, _flag] = _LIMITS.enabled  # off: what is over its budget is an error
    compression_threshold: Annotated[float, _share] = _LIMITS.threshold  # from this share of a budget on
    min_compression_savings: Annotated[int, _tokens] = _LIMITS.least_saving_tokens  # least, once it starts
    compression_cache_ttl: Annotated[float | None, _seconds] = None  # seconds, of panda compress; None: ever
    default_context_budget: Annotated[int, _tokens] = _LIMITS.call_tokens  # most of a call, output included
    response_token_reserve: Annotated[int, _tokens] = _LIMITS.reserve_tokens  # free beside a recipe's output
    tool_seconds: Annotated[float, _limit] = 60.0  # how long git may take for one question
    test_seconds: Annotated[float, _limit] = 600.0  # how long a command of test_commands may take
    test_commands: Annotated[Mapping[str, tuple[str, ...]], _commands] = field(default_factory=dict)
    """What test.run may run in the project's directory, by name."""
    project_dir: Path  # the directory of panda.toml, or the current one
    trust: bool = False  # whether all that the project's files and the store's links name counts, this once
    state_dir: Path  # where `panda trust` records what counts
    project_text: bytes = b""  # panda.toml as read; empty without one
    given: Mapping[str, Given] = field(default_factory=dict)  # what is not in here has its default

    @property
    def project_file(self) -> Path:
        """The panda.toml in force, or where one would be."""
        return self.project_dir / PROJECT_FILE

    @property
    def trust_file(self) -> Path:
        """The record of what counts."""
        return self.state_dir / "trust.json"

    @property
    def compression(self) -> Limits:
        """What is set of how sections and inputs are kept within their budgets."""
        budgets = self.default_context_budget, self.response_token_reserve
        return Limits(
            self.compression_enabled, *budgets, self.compression_threshold, self.min_compression_savings
        )

    def on_store(self, root: Path, **others: object) -> "Settings":
        """The same for another store, which no file of the project has named, with *others* changed too."""
        given = {**self.given, "root": Given(root, "command", "command", root, root)}
        return replace(self, root=root, given=given, **others)  # type: ignore[arg-type]  # fields of this class

    @property
    def store(self) -> UserStore:
        """The store, as the user who is set works on it; it need not be there."""
        return UserStore(self.root, self.user, self.clock, self.wait_seconds)

    def clock(self) -> datetime:
        """The present: the fixed one if one is set."""
        return self.now or datetime.now(UTC)

    def origin(self, name: str) -> str:
        """Where a field's value came from: "--root", "PANDA_ROOT", the path of a file, or "default"."""
        return self.given[name].origin if name in self.given else "default"

    def place(self, name: str) -> str:
        """The same for an error: with line and key of a file."""
        return self.given[name].place if name in self.given else "default"


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
        cwd: What relative paths of flags and variables are relative to; those of a file are to the file.

    Raises:
        SettingError: An unknown key, a value of the wrong type, or a file that is not TOML.
    """
    home, project_text = Path(environ.get("HOME") or "/"), b""
    given: dict[str, Given] = {}
    user_file = _home(environ, "XDG_CONFIG_HOME", ".config") / "config.toml"
    if user_file.is_file():
        given |= _read_file(user_file, home)[1]
    project_dir = next((one for one in (cwd, *cwd.parents) if (one / PROJECT_FILE).is_file()), None)
    if project_dir is not None:
        project_text, own = _read_file(project_dir / PROJECT_FILE, home)
        given |= own
    for key in (*CHECKS, "trust"):  # which no file can give
        variable = f"PANDA_{key.upper()}"
        if environ.get(variable):
            given[key] = Given(environ[variable], variable, variable, cwd, home)
    for key, value in flags.items():
        if value is not None:
            flag = "--wait" if key == "wait_seconds" else f"--{key.replace('_', '-')}"
            given[key] = Given(value, flag, flag, cwd, home)
    project_dir = project_dir or cwd
    own_models = project_dir / "models.yaml"
    values: dict[str, Any] = {
        "root": cwd / "panda-system-docs",
        "models_file": own_models if own_models.is_file() else asset("models.yaml"),
        "cache_dir": default_cache_dir(environ),
        **{key: check(given[key]) for key, check in CHECKS.items() if key in given},
    }
    return Settings(
        **values,
        recipe_dirs=search_path("recipes", project_dir=project_dir),
        prompt_dirs=search_path("prompts", project_dir=project_dir),
        project_dir=project_dir,
        project_text=project_text,
        trust="trust" in given and _flag(given["trust"]),
        state_dir=_home(environ, "XDG_STATE_HOME", ".local/state"),
        given=given,
    )


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """Where the cache is when nobody has set it, or no settings could be loaded."""
    return _home(environ, "XDG_CACHE_HOME", ".cache")


def _home(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    is_set = environ.get(variable, "").startswith("/")
    base = Path(environ[variable]) if is_set else Path(environ.get("HOME") or "/") / below_home
    return base / "panda"


def _read_file(path: Path, home: Path) -> tuple[bytes, dict[str, Given]]:
    try:
        content = path.read_bytes()
        table = tomllib.loads(content.decode())
    except OSError as exc:
        raise SettingError(f"cannot be read: {exc.strerror}", where=str(path)) from exc
    except ValueError as exc:
        line = re.search(r"at line (\d+)", str(exc))
        where = Location(path, line=int(line[1]) if line else None)
        fix = 'a line is a key, one = and a value, texts in quotes, as in user = "ann"'
        raise SettingError(f"not valid TOML: {exc}", where=where, fix=fix) from exc
    lines, given = content.decode().splitlines(), dict[str, Given]()
    for key, value in table.items():
        found = (n for n, text in enumerate(lines, 1) if text.lstrip(" \t\"'[").startswith(key))
        place = Location(path, line=next(found, None), key=key)
        given[key] = Given(value, str(path), place, path.parent, home)
        if key not in CHECKS:
            fix = nearest(key, CHECKS, f"valid keys: {', '.join(CHECKS)}")
            raise SettingError(f"unknown setting {key!r}", where=given[key].place, fix=fix)
    return content, given
