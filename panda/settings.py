"""What the user can set: flags > PANDA_… > panda.toml > user file > defaults; their table is Settings."""

import os
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from panda.compression.budgets import Limits
from panda.documents.record_codec import decode
from panda.documents.safe_text import ID_PATTERN, nearest
from panda.documents.secrets import has_userinfo, hide_userinfo
from panda.documents.times import parse_time
from panda.errors import FileFormatError, Location, SettingError, UsageError
from panda.store.layout import DEFAULT_USER, UserStore, asset, search_path

PROJECT_FILE = "panda.toml"
STORE_NAME = "panda-system-docs"
"""What a store is called that nobody named."""
_MAX_FILE_BYTES = 1_000_000
_MOST = sys.float_info.max
_Path = Annotated[Path, Meta(description="a path")]
_Seconds = Annotated[float, Meta(ge=0, le=_MOST, description="a number of seconds, 0 or more")]
_Limit = Annotated[float, Meta(gt=0, le=_MOST, description="a number of seconds above 0")]
_Share = Annotated[float, Meta(ge=0, le=1, description="a share from 0 to 1, such as 0.9")]
_Seed = Annotated[int, Meta(ge=0, le=2**32 - 1, description="a whole number from 0 to 4294967295")]
_Tokens = Annotated[int, Meta(ge=0, description="a whole number of tokens, 0 or more")]
_Flag = Annotated[bool, Meta(description="true or false")]
_Time = Annotated[datetime, Meta(description="a time such as 2026-01-04T14:30:00Z")]
_Id = Annotated[str, Meta(pattern=ID_PATTERN, description="an id of 1 to 64 characters of a-z, 0-9, _ and -")]
_Layer = Annotated[
    str,
    Meta(
        pattern="^(REFLEX|NERVES|MIND|VOICE|EYES)$",
        description="a layer: REFLEX, NERVES, MIND, VOICE, EYES",
    ),
]
_Provider = Annotated[
    str, Meta(pattern=r"^(file:[^\x00]+|searxng:https?://.*)$", description="searxng:URL or file:DIRECTORY")
]
_Commands = Annotated[
    dict[str, Annotated[tuple[str, ...], Meta(min_length=1)]],
    Meta(description='a table of commands, such as [test_commands] with unit = "python -m pytest -q"'),
]
_Places = Annotated[tuple[str, ...], Meta(description="a list of hosts, addresses and networks")]


@dataclass(frozen=True)
class GivenSetting:
    """A value as somebody gave it."""

    value: object  # as it stands in the flag, variable or file
    origin: str  # flag, variable or file
    place: str  # the same for an error: of a file with line and key
    directory: Path  # what a relative path is relative to
    home: Path  # what ~ stands for

    def path(self, value: object) -> Path:
        """The path that a text names; ValueError if it names none."""
        text = str(value) if isinstance(value, str | Path) else ""
        if not text or "\0" in text:
            raise ValueError("no path")
        return self.home / text[2:] if text == "~" or text.startswith("~/") else self.directory / text


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting."""

    root: _Path  # the store: the directory `panda-system-docs`
    user: _Id = DEFAULT_USER  # whose turns and memory
    session: _Id | None = None  # what a new turn joins; None gives it one of its own
    now: _Time | None = None  # a fixed present for every time; None is the real clock
    seed: _Seed | None = None  # of every model call; None derives one for each
    wait_seconds: _Seconds = 600.0  # how long to wait for a lock
    models_file: _Path  # the models.yaml in force
    recipe_dirs: tuple[Path, ...]  # where recipes are looked for, the project's own directory first
    prompt_dirs: tuple[Path, ...]  # the same for prompts
    cache_dir: _Path  # files that can be made again, and reports of bugs
    web_allow: _Places = ()  # to contact beside public hosts: names, IPs, CIDR
    web_timeout_seconds: _Seconds = 20.0  # of one page, with names, redirects, robots.txt
    web_browser: _Flag = False  # on: internet.navigate opens pages that need scripts in Chromium
    search_provider: _Provider | None = None  # "searxng:URL" or "file:DIRECTORY"
    compression_model_layer: _Layer = "NERVES"  # weighs and words anew what is compressed
    compression_enabled: _Flag = Limits.enabled  # off: what is over its budget is an error
    compression_threshold: _Share = Limits.threshold  # over this share of a budget
    min_compression_savings: _Tokens = Limits.least_saving_tokens  # where it could be left
    compression_cache_ttl: _Seconds = 300.0  # seconds that results of panda compress are kept
    default_context_budget: _Tokens = Limits.call_tokens  # most of a call, output included
    response_token_reserve: _Tokens = Limits.reserve_tokens  # free beside a recipe's output
    tool_seconds: _Limit = 60.0  # how long git may take for one question
    test_seconds: _Limit = 600.0  # how long a command of test_commands may take
    test_commands: _Commands = field(default_factory=dict)
    """What test.run may run in the project's directory, by name."""
    project_dir: Path  # the directory of panda.toml, or the current one
    trust: bool = False  # whether all that the project's files and the store's links name counts, this once
    state_dir: Path  # where `panda trust` records what counts
    models_by_layer: Mapping[str, str] = field(default_factory=dict)
    """What serves layers in place of models.yaml, for the turns of one command or of one replay."""
    project_text: bytes = b""  # panda.toml as read; empty without one
    sudo_uid: int | None = None  # the user who called sudo, whose files are root's own then
    entries: Mapping[str, GivenSetting] = field(default_factory=dict)  # what is not in here has its default

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
        """Return the settings of how sections and inputs are kept within their budgets."""
        budgets = self.default_context_budget, self.response_token_reserve
        return Limits(
            self.compression_enabled, *budgets, self.compression_threshold, self.min_compression_savings
        )

    def on_store(self, root: Path, **others: object) -> "Settings":
        """
        Return the settings for another store, which no file of the project has named, with *others* changed
        too.
        """
        entries = {**self.entries, "root": GivenSetting(root, "command", "command", root, root)}
        return replace(self, root=root, entries=entries, **others)  # type: ignore[arg-type]  # fields of this class

    @property
    def store(self) -> UserStore:
        """The store, as the user who is set works on it; it need not be there."""
        return UserStore(self.root, self.user, self.clock, self.wait_seconds)

    def clock(self) -> datetime:
        """The present: the fixed one if one is set."""
        return self.now or datetime.now(UTC)

    def origin(self, name: str) -> str:
        """
        Return where a field's value came from: "--root", "PANDA_ROOT", the path of a file, or "default".
        """
        return self.entries[name].origin if name in self.entries else "default"

    def place(self, name: str) -> str:
        """Return where a field's value came from, for an error: with line and key of a file."""
        return self.entries[name].place if name in self.entries else "default"


SETTABLE: Mapping[str, Any] = {
    name: part
    for name, hint in get_type_hints(Settings, include_extras=True).items()
    for part in (hint, *get_args(hint))
    if get_origin(part) is Annotated
}
"""What can be set in a file, as a variable or by a flag, with its type."""
_WORDS = {"on": True, "yes": True, "off": False, "no": False}


def _read(name: str, entry: GivenSetting) -> Any:
    """The value of a setting, which may stand there as text. Raises SettingError: it is none."""
    kind = SETTABLE.get(name, _Flag)
    value = entry.value
    try:
        if kind == _Path:
            value = entry.path(value)
        elif name == "search_provider" and str(value).startswith("file:"):
            value = f"file:{entry.path(str(value).removeprefix('file:'))}"
        elif name == "search_provider" and has_userinfo(str(value)):
            message = "the address of search_provider holds a user name or password"
            raise UsageError(message, fix="take it out: such a server cannot be asked")
        elif name == "now":
            value = parse_time(value.isoformat() if isinstance(value, datetime) else str(value))
        elif name == "web_allow":
            from panda.web.addresses import parse_places  # only if it is wanted

            value = parse_places(value)
        elif name == "test_commands":  # one line is split as a shell would; no shell runs it
            table = msgspec.convert(value, dict[str, str | tuple[str, ...]])
            value = {key: tuple(shlex.split(v)) if isinstance(v, str) else v for key, v in table.items()}
        else:
            word = _WORDS.get(str(value).lower(), value) if kind == _Flag else value
            value = msgspec.convert(word, kind, strict=False)
    except UsageError as exc:
        raise SettingError(hide_userinfo(exc.message), where=entry.place, fix=exc.fix) from exc
    except ValueError:
        value = entry.value  # told below
    try:
        return decode(kind, value, where="", key=name)
    except FileFormatError as exc:
        raise SettingError(hide_userinfo(exc.message), where=entry.place, fix=exc.fix) from exc


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
            If it lies in a store and nobody named one, that is the store, and its parent the project.

    Raises:
        SettingError: An unknown key, a value of the wrong type, or a file that is not TOML.
    """
    home = Path(environ.get("HOME") or "/")
    project_text = b""
    entries: dict[str, GivenSetting] = {}
    user_file = _home(environ, "XDG_CONFIG_HOME", ".config") / "config.toml"
    if user_file.is_file():
        entries |= _read_file(user_file, home)[1]
    project_dir = next(
        (directory for directory in (cwd, *cwd.parents) if (directory / PROJECT_FILE).is_file()), None
    )
    if project_dir is not None:
        project_text, own = _read_file(project_dir / PROJECT_FILE, home)
        entries |= own
    for key in (*SETTABLE, "trust"):  # which no file can give
        variable = f"PANDA_{key.upper()}"
        flag = f"--{key.replace('_', '-').removesuffix('-seconds').removeprefix('web-')}"
        if environ.get(variable):
            entries[key] = GivenSetting(environ[variable], variable, variable, cwd, home)
        if flags.get(key) is not None:
            entries[key] = GivenSetting(flags[key], flag, flag, cwd, home)
    around = _store_around(cwd)
    project_dir = project_dir or (around.parent if around else cwd)
    own_models = project_dir / "models.yaml"
    sudo_uid = environ.get("SUDO_UID", "")
    values: dict[str, Any] = {
        "root": around or cwd / STORE_NAME,
        "models_file": own_models if own_models.is_file() else asset("models.yaml"),
        "cache_dir": default_cache_dir(environ),
        **{key: _read(key, value) for key, value in entries.items()},
    }
    return Settings(
        **values,
        recipe_dirs=search_path("recipes", project_dir=project_dir),
        prompt_dirs=search_path("prompts", project_dir=project_dir),
        project_dir=project_dir,
        project_text=project_text,
        state_dir=_home(environ, "XDG_STATE_HOME", ".local/state"),
        sudo_uid=int(sudo_uid) if sudo_uid.isascii() and sudo_uid.isdecimal() else None,
        entries=entries,
    )


def _store_around(cwd: Path) -> Path | None:
    """Return the store that a directory is, or lies in, unless it has one of its own; None if it is none."""
    if (cwd / STORE_NAME).is_dir():
        return None
    places = (cwd, *cwd.parents)
    return next((place for place in places if place.name == STORE_NAME and (place / "users").is_dir()), None)


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """Return the cache directory for when nobody has set it, or no settings could be loaded."""
    return _home(environ, "XDG_CACHE_HOME", ".cache")


def _home(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    is_set = environ.get(variable, "").startswith("/")
    base = Path(environ[variable]) if is_set else Path(environ.get("HOME") or "/") / below_home
    return base / "panda"


def _read_file(path: Path, home: Path) -> tuple[bytes, dict[str, GivenSetting]]:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
        if len(content) > _MAX_FILE_BYTES:
            message = f"larger than {_MAX_FILE_BYTES / 1e6:g} MB, the most that settings may take"
            raise SettingError(message, where=str(path), fix="keep settings alone in it")
        table = tomllib.loads(content.decode("utf-8-sig"))
    except OSError as exc:
        raise SettingError(f"cannot be read: {exc.strerror}", where=str(path)) from exc
    except RecursionError as exc:
        fix = "write lists within lists no deeper than a setting wants"
        raise SettingError("not valid TOML: nested too deeply", where=str(path), fix=fix) from exc
    except ValueError as exc:
        line = re.search(r"at line (\d+)", str(exc))
        fix = 'a line is a key, one = and a value, texts in quotes, as in user = "ann"'
        message = f"not valid TOML: {exc}"
        at = int(line[1]) if line else None
        if isinstance(exc, UnicodeDecodeError):
            message = f"not UTF-8 from byte {exc.start} on"
            at = content.count(b"\n", 0, exc.start) + 1
            fix = "save it as UTF-8"
        raise SettingError(message, where=str(path), line=at, fix=fix) from exc
    lines = content.decode("utf-8-sig").splitlines()
    entries = dict[str, GivenSetting]()
    for key, value in table.items():
        at = next((n for n, text in enumerate(lines, 1) if text.lstrip(" \t\"'[").startswith(key)), None)
        entries[key] = GivenSetting(value, str(path), Location(path, line=at, key=key), path.parent, home)
        if key not in SETTABLE:
            fix = nearest(key, SETTABLE, f"valid keys: {', '.join(SETTABLE)}")
            raise SettingError(f"unknown setting {key!r}", where=entries[key].place, fix=fix)
    return content, entries
