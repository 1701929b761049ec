"""
What the files of a project would reach outside of it, and whether the user has said that it counts.

A checkout can come from anybody. Its panda.toml and models.yaml, and the links of its store, may name
servers, keys, commands and paths outside: these count once `panda trust` has recorded their digest where no
checkout can write. Flags, PANDA_… variables, the user's own file and what comes with panda need no trust.
"""

import hashlib
import json
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from panda.errors import FileFormatError, StoreError, UntrustedError
from panda.settings import Settings
from panda.storage.files import held_lock, read_json, write_json
from panda.storage.layout import RUN_JSON, Layout, asset
from panda.storage.links import FIX, leaving_links, named_place, watch_store

if TYPE_CHECKING:  # imported where they are read: it loads yaml, and help must not
    from panda.models.layers import Layers
    from panda.models.models_file import ModelsFile, ModelSpec

TRUST_JSON = "trust.json"
SCHEMA = "panda.trust/1"


@dataclass(frozen=True)
class Reach:
    """One thing that a file would do outside of the project."""

    key: str  # key of the file, dotted; "" for a link
    effect: str  # what would happen, as "contacts https://…"; paths without links
    line: int | None = None  # line of the file where its value first stands in so many words, if it does


@dataclass(frozen=True)
class Claim:
    """A file or link of a project with all that it would reach."""

    path: str  # absolute, without links before its last part
    content: bytes  # the file as it was read, which is what is used; empty for a link
    reaches: tuple[Reach, ...]  # in the order of the file; empty if there is nothing to trust

    @property
    def digest(self) -> str:
        """sha256 of the content and of where its paths lead now, hex."""
        text = json.dumps([(reach.key, reach.effect) for reach in self.reaches])
        return hashlib.sha256(self.content + b"\0" + text.encode()).hexdigest()

    def where(self, reach: Reach) -> str:
        """A place of it, for an error."""
        line = f":{reach.line}" if reach.line else ""
        return f"{self.path}{line}" + (f" ({reach.key})" if reach.key else "")


class TrustFile:
    """What is recorded, in the user's state directory."""

    def __init__(self, settings: Settings) -> None:
        self.path = settings.state_dir / TRUST_JSON
        self._places = (settings.project_dir, settings.root)

    def read(self) -> Mapping[str, str]:
        """
        Digest by path of what is trusted.

        Raises:
            FileFormatError: The file is damaged.
            StoreError: It cannot be read.
            UntrustedError: It lies where the project could write it.
        """
        for place in self._places:
            if Path(os.path.realpath(self.path)).is_relative_to(os.path.realpath(place)):
                message = f"what is recorded in {self.path} would lie within the project itself"
                fix = "set XDG_STATE_HOME to a directory outside, or give --trust"
                raise UntrustedError(message, where=str(place), fix=fix)
        if not self.path.exists():
            return {}
        value = read_json(self.path)
        trusted = value.get("trusted") if isinstance(value, dict) and value.get("schema") == SCHEMA else None
        if not isinstance(trusted, dict) or not all(isinstance(digest, str) for digest in trusted.values()):
            raise FileFormatError("no record of panda trust", where=str(self.path), fix="delete the file")
        return trusted

    def holds(self, claim: Claim) -> bool:
        """Whether a claim is recorded as it is now (raises as read)."""
        return self.read().get(claim.path) == claim.digest

    def record(self, claims: Iterable[Claim]) -> None:
        """Trust claims as they are (raises as read; StoreError if it cannot be written)."""
        self._change(lambda trusted: {**trusted, **{claim.path: claim.digest for claim in claims}})

    def revoke(self, settings: Settings) -> list[str]:
        """The paths that were trusted of the project and its store, which are trusted no more."""
        own = {claim.path for claim in claims_of(settings)}
        places = [os.path.realpath(place) for place in self._places]
        gone = [p for p in self.read() if p in own or any(Path(p).is_relative_to(one) for one in places)]
        self._change(lambda trusted: {path: trusted[path] for path in trusted if path not in gone})
        return gone

    def _change(self, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        lock = self.path.with_name("trust.lock")
        with held_lock(lock, holder=f"panda trust (process {os.getpid()})", wait_seconds=10):
            write_json(self.path, {"schema": SCHEMA, "trusted": dict(sorted(change(self.read()).items()))})


def require_trust(settings: Settings, *names: str) -> None:
    """
    Go on only if what some settings reach outside of the project is trusted; asked before they are used.

    Args:
        names: Fields of Settings; none asks for all.

    Raises:
        UntrustedError: One comes from the project, reaches out, and is not trusted.
    """
    for claim in (_settings_claim(settings), _root_claim(settings)):
        wanted = [reach for reach in claim.reaches if not names or reach.key.partition(".")[0] in names]
        if wanted:
            _require(settings, claim, wanted)


def load_models(settings: Settings) -> "ModelsFile":
    """
    The models.yaml in force, once it may reach what it names.

    Raises:
        UntrustedError: It is the project's, reaches out, and is not trusted.
        ModelFileError: It is broken.
        StoreError: It cannot be read.
    """
    from panda.models.models_file import load_models_file

    require_trust(settings, "models_file", "cache_dir")
    models = load_models_file(settings.models_file)
    claim = _models_claim(settings, models)
    if claim.reaches:
        _require(settings, claim, claim.reaches)
    return models


def open_layers(settings: Settings, environ: Mapping[str, str]) -> "Layers":
    """
    The models by layer, none loaded yet; to be closed.

    Args:
        environ: For the API keys that models.yaml names.

    Raises:
        UntrustedError, ModelFileError, StoreError: As load_models.
    """
    from panda.models.layers import Layers

    return Layers(load_models(settings), cache_dir=settings.cache_dir, environ=environ)


def guard_links(settings: Settings) -> None:
    """From now on no path of the store leads out of it by a link that is not trusted."""
    watch_store(settings.root, _allows(settings), fix_of(settings))


def fix_of(settings: Settings) -> str:
    """What to do about a link of the store that is not trusted."""
    if settings.origin("root") in ("default", str(settings.project_file)):
        return FIX
    named = f"panda trust --root {shlex.quote(str(settings.root))}"
    return f"look at it with {named} --dry-run, then {named}"


def untrusted_claims(settings: Settings) -> list[Claim]:
    """The claims that are not recorded as they are now (raises as TrustFile.read)."""
    trusted = TrustFile(settings)
    return [claim for claim in claims_of(settings) if not trusted.holds(claim)]


def claims_of(settings: Settings) -> list[Claim]:
    """
    All that reaches out: of panda.toml, models.yaml, and the links of the store. What lies behind something
    is not trusted yet is not looked at.
    """
    from panda.models.models_file import load_models_file

    claims = [_settings_claim(settings), _root_claim(settings)]
    if is_trusted(settings, "models_file"):
        with suppress(FileFormatError, StoreError):  # nothing is reached by a file that does not read
            claims.append(_models_claim(settings, load_models_file(settings.models_file)))
    if is_trusted(settings, "root"):
        leaving = [*leaving_links(settings.root, _allows(settings)), *_stores_of_runs(settings.root)]
        claims += [_link_claim(*link) for link in leaving]
    return [claim for claim in claims if claim.reaches]


def _stores_of_runs(root: Path) -> Iterator[tuple[str, str]]:
    """Each other store that a run names, as the link that it amounts to, and where that leads."""
    own = os.path.realpath(root)
    for path in sorted(Layout(Path(own)).runs.glob(f"*/{RUN_JSON}")):
        with suppress(FileFormatError, StoreError, UntrustedError, KeyError, TypeError, ValueError):
            named = {one.get("root") for one in read_json(path)["turns"]} - {None}
            for target in sorted({os.path.realpath(one) for one in named} - {own}):
                yield named_place(os.path.realpath(path), target), target


def is_trusted(settings: Settings, name: str) -> bool:
    """Whether require_trust lets a setting pass."""
    try:
        require_trust(settings, name)
    except UntrustedError:
        return False
    return True


def _require(settings: Settings, claim: Claim, wanted: Iterable[Reach]) -> None:
    if settings.trust or TrustFile(settings).holds(claim):
        return
    first, *others = wanted
    more = f", and {len(others)} more" if others else ""
    name = Path(claim.path).name
    raise UntrustedError(f"{name} is not trusted: it {first.effect}{more}", where=claim.where(first), fix=FIX)


def _allows(settings: Settings) -> Callable[[str, str], bool]:
    return lambda link, target: settings.trust or TrustFile(settings).holds(_link_claim(link, target))


def _link_claim(link: str, target: str) -> Claim:
    return Claim(link, b"", (Reach("", f"leads to {target}"),))


def _settings_claim(settings: Settings) -> Claim:
    """What panda.toml reaches."""
    path = settings.project_file
    own = [name for name in OUTWARD if settings.origin(name) == str(path)]
    text = settings.project_text.decode(errors="replace")
    reaches = [
        Reach(key, effect, _line_of(text, key.rpartition(".")[2]))
        for name in own
        for key, effect in OUTWARD[name](settings, name)
    ]
    return Claim(_own_path(path), settings.project_text, tuple(reaches))


def _root_claim(settings: Settings) -> Claim:
    """Where the store lies that nobody named, if it is a link."""
    path = _own_path(settings.root)
    effects = OUTWARD["root"](settings, "root") if settings.origin("root") == "default" else ()
    return Claim(path, b"", tuple(Reach(key, effect) for key, effect in effects))


def _models_claim(settings: Settings, models: "ModelsFile") -> Claim:
    """What a models.yaml of the project reaches; nothing for one that the user named, or the packaged one."""
    path = models.path
    is_own = settings.origin("models_file") in ("default", str(settings.project_file))
    if not is_own or path.samefile(asset("models.yaml")):
        return Claim(_own_path(path), b"", ())
    reaches = [
        Reach(f"models.{spec.name}.{key}", effect, _line_of(models.text, value))
        for spec in models.models.values()
        for key, value, effect in _model_effects(settings, spec, path.parent)
    ]
    return Claim(_own_path(path), models.text.encode(), tuple(reaches))


def _model_effects(settings: Settings, spec: "ModelSpec", start: Path) -> Iterator[tuple[str, str, str]]:
    """Key, value and effect of what a model reaches outside of the project."""
    from panda.models.llama.gguf import BUILTIN_PREFIX, find_gguf

    if spec.backend == "openai":
        secret = f" with the secret in ${spec.api_key_env}" if spec.api_key_env else ""
        for url in spec.servers:
            yield "location", url, f"contacts {url}{secret}"
            for key, names in (("extra_body", spec.extra_body), ("headers", spec.headers)):
                if names:
                    yield key, key, f"sends the {key} {', '.join(names)} to {url}"
        return
    for key, value in (("location", spec.location), ("projector", spec.projector)):
        if value is not None and not value.startswith(BUILTIN_PREFIX):
            real = os.path.realpath(find_gguf(value, relative_to=start))
            if not _is_inside(settings, real):
                yield key, value, f"reads {real}"


def _path_effect(verb: str) -> Callable[[Settings, str], list[tuple[str, str]]]:
    def effect(settings: Settings, name: str) -> list[tuple[str, str]]:
        real = os.path.realpath(getattr(settings, name))
        return [] if _is_inside(settings, real) else [(name, f"{verb} {real}")]

    return effect


def _cache_effect(settings: Settings, name: str) -> list[tuple[str, str]]:
    """Inside of the project too: what lies in a cache is taken for what panda has made itself."""
    return [(name, f"writes into {os.path.realpath(settings.cache_dir)}, and runs the models kept there")]


def _search_effect(settings: Settings, name: str) -> list[tuple[str, str]]:
    kind, _, place = str(settings.search_provider).partition(":")
    if kind != "file":
        return [(name, f"sends searches to {place}")]
    real = os.path.realpath(place)
    return [] if _is_inside(settings, real) else [(name, f"reads {real}")]


OUTWARD: Mapping[str, Callable[[Settings, str], list[tuple[str, str]]]] = {
    "root": _path_effect("reads and writes the store"),
    "models_file": _path_effect("reads the models of"),
    "cache_dir": _cache_effect,
    "test_commands": lambda settings, name: [
        (f"{name}.{key}", f"runs {shlex.join(words)}") for key, words in settings.test_commands.items()
    ],
    "web_allow": lambda settings, name: [
        (name, f"lets web pages be read at {place}") for place in settings.web_allow
    ],
    "search_provider": _search_effect,
}
"""Settings that can reach out of a project, each to the keys and effects of its value."""

OUTWARD_MODEL_KEYS = ("location", "further_servers", "projector", "api_key_env", "extra_body", "headers")
"""Fields of a model that can reach out of a project: see _model_effects."""


def _is_inside(settings: Settings, real: str) -> bool:
    return Path(real).is_relative_to(os.path.realpath(settings.project_dir))


def _own_path(path: Path) -> str:
    return str(Path(os.path.realpath(path.parent)) / path.name)


def _line_of(text: str, value: str) -> int | None:
    return next((number for number, line in enumerate(text.split("\n"), 1) if value in line), None)
