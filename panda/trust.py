"""
What the files of a project would reach outside of it, and whether the user has said that it counts.

A checkout can come from anybody. Its panda.toml and models.yaml, and the links of its store, may name
servers, keys, commands and paths outside: these count once `panda trust` has recorded their digest where no
checkout can write. Flags, PANDA_… variables, the user's own file and what comes with panda need no trust.

Files that belong to another user count for nothing before that, as git's safe.directory has it: a directory
that others can write into, such as /tmp, may hold a panda.toml of anybody.
"""

import hashlib
import json
import logging
import os
import pwd
import re
import shlex
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import MsgspecError, Struct
from msgspec.json import decode

from panda.errors import FileFormatError, Location, StoreError, UntrustedError
from panda.settings import Settings
from panda.store.files import (
    TRUST_FIX,
    held_lock,
    is_below,
    named_place,
    read_bytes,
    read_json,
    watch_store,
    why_unread,
    write_json,
)
from panda.store.layout import RUN_JSON, Layout, asset

if TYPE_CHECKING:  # imported where they are read: it loads yaml, and help must not
    from panda.models.layers import LoadedLayers
    from panda.models.models_file import ModelsFile, ModelSpec

_log = logging.getLogger(__name__)

OUTWARD: Mapping[str, str] = {
    "root": "reads and writes the store {}",
    "models_file": "reads the models of {}",
    "cache_dir": "writes into {}, and reads what is kept there",
    "test_commands": "runs {}",
    "web_allow": "lets web pages be read at {}",
    "web_browser": "runs the scripts of web pages in a browser",
    "search_provider": "sends searches to {}",
}
"""Settings that can reach out of a project, each with what its value does there."""


_SPLIT_NAME = re.compile(r"(?P<name>.+)-\d{5}-of-(?P<count>\d{5})\.gguf", re.DOTALL)


class Reach(Struct, frozen=True):
    """One thing that a file would do outside of the project."""

    key: str  # key of the file, dotted; "" for a link
    effect: str  # what would happen, as "contacts https://…"; paths without links
    line: int | None = None  # line of the file where its value first stands in so many words, if it does


class TrustCandidate(Struct, frozen=True):
    """A file or link of a project with all that it would reach."""

    path: str  # absolute, without links before its last part
    content: bytes  # the file as it was read, which is what is used; empty for a link
    reaches: tuple[Reach, ...]  # in the order of the file; empty if there is nothing to trust

    @property
    def digest(self) -> str:
        """sha256 of the content and of where its paths lead now, hex."""
        text = json.dumps([(reach.key, reach.effect) for reach in self.reaches])
        return hashlib.sha256(self.content + b"\0" + text.encode()).hexdigest()


class TrustRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """trust.json in the user's state directory: digest by path of what is trusted."""

    schema: Literal["panda.trust/1"]
    trusted: dict[str, str]


def read_trust(settings: Settings) -> dict[str, str]:
    """Digest by path of what is trusted. UntrustedError: the record lies where the project could write."""
    path = settings.trust_file
    for place in (settings.project_dir, settings.root):
        if _is_inside(path, place):
            message = f"what is recorded in {path} would lie within the project itself"
            fix = "set XDG_STATE_HOME to a directory outside, or give --trust"
            raise UntrustedError(message, where=str(place), fix=fix)
    try:
        return decode(read_bytes(path), type=TrustRecord).trusted if path.exists() else {}
    except (MsgspecError, UnicodeDecodeError) as exc:
        message = f"no record of panda trust: {exc}"
        raise FileFormatError(message, where=str(path), fix="delete the file") from exc


def record_trust(settings: Settings, claims: Iterable[TrustCandidate], revoked: Collection[str] = ()) -> None:
    """Trust claims as they are now, and some paths no more."""
    path = settings.trust_file
    holder = f"panda trust (process {os.getpid()})"
    with held_lock(path.with_name("trust.lock"), holder=holder, wait_seconds=10):
        trusted = {place: digest for place, digest in read_trust(settings).items() if place not in revoked}
        trusted |= {claim.path: claim.digest for claim in claims}
        write_json(path, {"schema": "panda.trust/1", "trusted": dict(sorted(trusted.items()))})


def revoke_trust(settings: Settings) -> list[str]:
    """The paths that were trusted of the project and its store, which are trusted no more."""
    own = {claim.path for claim in claims_of(settings)}
    places = [os.path.realpath(place) for place in (settings.project_dir, settings.root)]
    trusted = read_trust(settings)
    gone = [path for path in trusted if path in own or any(is_below(path, place) for place in places)]
    record_trust(settings, (), gone)
    return gone


def require_trust(settings: Settings, *names: str) -> None:
    """Raises UntrustedError if one of the settings (none named: any) is the project's, and reaches out."""
    for claim in _claims_of_settings(settings):
        _require(settings, claim, names)


def require_owners(settings: Settings) -> None:
    """
    Raises UntrustedError if a file that counts unasked belongs to another user and is not trusted:
    panda.toml, models.yaml, recipes/ and prompts/ of the project, and a store that nobody named.
    """
    if settings.trust or not _foreign_places(settings):
        return
    trusted: dict[str, str] = {}
    with suppress(UntrustedError):  # a record within the directory that belongs to others counts for nothing
        trusted = read_trust(settings)
    for claim in _claims_of_files(settings):
        for reach in claim.reaches:
            if reach.effect.startswith(_BELONGS) and trusted.get(claim.path) != claim.digest:
                message = f"{Path(claim.path).name} is not trusted: it {reach.effect}"
                raise UntrustedError(message, where=claim.path, fix=TRUST_FIX)


_BELONGS = "belongs to another user"
_UNREADABLE_RUN = (FileFormatError, StoreError, UntrustedError, KeyError, TypeError, ValueError)
"""What reading the run file of another program or version raises."""


def _foreign_places(settings: Settings) -> dict[Path, str]:
    """Return what counts unasked and belongs to another user, each with the words that say so."""
    is_own = settings.origin("models_file") in ("default", str(settings.project_file))
    places = [settings.project_file]
    if is_own and settings.models_file != asset("models.yaml"):
        places.append(settings.models_file)
    if settings.origin("root") in ("default", str(settings.project_file)):
        places.append(settings.root)
    foreign: dict[Path, str] = {}
    for place in places:
        if effect := _foreign_effect(settings, place):
            foreign[place] = effect
    for directory in _own_directories(settings):
        for place in (directory, *_files_below(directory)):
            if effect := _foreign_effect(settings, place):
                foreign[directory] = effect if place == directory else f"{effect}: {place}"
                break
    return foreign


def _foreign_effect(settings: Settings, place: Path) -> str:
    """Say that a file, or the link that it is, belongs to another user; "" if it does not."""
    own_uids = {0, os.geteuid()}
    if os.geteuid() == 0 and settings.sudo_uid is not None:
        own_uids.add(settings.sudo_uid)
    with suppress(OSError):
        for status in (place.lstat(), place.stat()):
            if status.st_uid not in own_uids:
                return f"{_BELONGS}, {_name_user(status.st_uid)}"
    return ""


def _name_user(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def _own_directories(settings: Settings) -> list[Path]:
    """Return the project's directories of recipes and prompts, if it has some."""
    directories = (*settings.recipe_dirs, *settings.prompt_dirs)
    return [directory for directory in directories if directory.parent == settings.project_dir]


def _files_below(directory: Path) -> Iterator[Path]:
    """Yield all directories and files below a directory, in order; links are not followed."""
    for place, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted([*directories, *names]):
            yield Path(place) / name


def _claim_of_directory(directory: Path, effect: str) -> TrustCandidate:
    """Return the claim of recipes or prompts of another user, which holds for what their files hold now."""
    whole = hashlib.sha256()
    for path in _files_below(directory):
        whole.update(f"{path.relative_to(directory)}\0".encode("utf-8", "surrogateescape"))
        with suppress(OSError):
            if stat.S_ISREG(path.stat().st_mode):
                with path.open("rb") as file:
                    whole.update(hashlib.file_digest(file, "sha256").digest())
    claim = _claim(directory, b"", [("", "", effect)])
    return TrustCandidate(claim.path, whole.digest(), claim.reaches)


def is_trusted(settings: Settings, name: str) -> bool:
    """Return whether require_trust lets a setting pass."""
    try:
        require_trust(settings, name)
    except UntrustedError:
        return False
    return True


def load_models(settings: Settings) -> "ModelsFile":
    """The models.yaml in force. UntrustedError: it is the project's, reaches out, and is not trusted."""
    from panda.models.models_file import load_models_file

    require_trust(settings, "models_file", "cache_dir")
    models = load_models_file(settings.models_file)
    _require(settings, _claim_of_models(settings, models))
    obsolete = models.find_obsolete()
    if obsolete is not None:
        from multiprocessing import parent_process  # loads too slowly for every command

        if parent_process() is None:  # else the process that began this one has warned
            _warn_once(f"{obsolete.where}: {obsolete.message}; {obsolete.fix}")
    return models


@cache
def _warn_once(message: str) -> None:
    _log.warning(message)


def open_layers(settings: Settings, environ: Mapping[str, str]) -> "LoadedLayers":
    """The models by layer, none loaded yet, to be closed; *environ* holds the API keys."""
    from panda.models.layers import LoadedLayers

    return LoadedLayers(load_models(settings), cache_dir=settings.cache_dir, environ=environ)


def guard_links(settings: Settings) -> None:
    """From now on no path of the store leads out of it by a link that is not trusted."""
    watch_store(settings.root, partial(_allows, settings), fix_of(settings))


def fix_of(settings: Settings) -> str:
    """Return what to do about a link of the store that is not trusted."""
    if settings.origin("root") in ("default", str(settings.project_file)):
        return TRUST_FIX
    named = f"panda trust --root {shlex.quote(str(settings.root))}"
    return f"look at it with {named} --dry-run, then {named}"


def untrusted_claims(settings: Settings) -> list[TrustCandidate]:
    """The claims that are not recorded as they are now."""
    claims = claims_of(settings)
    trusted = read_trust(settings) if claims else {}
    return [claim for claim in claims if trusted.get(claim.path) != claim.digest]


def claims_of(settings: Settings) -> list[TrustCandidate]:
    """All that reaches out: panda.toml, models.yaml, links of the store; none behind what is not trusted."""
    claims = _claims_of_files(settings)
    if is_trusted(settings, "root"):
        claims += [_claim_of_link(link, target) for link, target in _leaving_links(settings)]
        root = os.path.realpath(settings.root)
        for run in sorted(Layout(Path(root)).runs.glob(f"*/{RUN_JSON}")):
            with suppress(*_UNREADABLE_RUN):
                place = os.path.realpath(run)
                turns = read_json(run)["turns"]
                others = {os.path.realpath(turn["root"]) for turn in turns if turn.get("root")} - {root}
                claims += [_claim_of_link(named_place(place, other), other) for other in sorted(others)]
    return [claim for claim in claims if claim.reaches]


def find_models_claim(settings: Settings) -> TrustCandidate | None:
    """Return what the models.yaml in force reaches; None if it reaches nothing."""
    from panda.models.models_file import load_models_file

    claim = _claim_of_models(settings, load_models_file(settings.models_file))
    return claim if claim.reaches else None


def _claims_of_files(settings: Settings) -> list[TrustCandidate]:
    """Return what the project's files reach and whose they are, but for the links of the store."""
    from panda.models.models_file import load_models_file

    claims = _claims_of_settings(settings)
    foreign = _foreign_places(settings)
    claims += [
        _claim_of_directory(place, foreign[place]) for place in _own_directories(settings) if place in foreign
    ]
    if is_trusted(settings, "models_file"):
        try:
            claims.append(_claim_of_models(settings, load_models_file(settings.models_file)))
        except (FileFormatError, StoreError):  # it reaches nothing, but may belong to somebody
            effect = _foreign_effect(settings, settings.models_file)
            if settings.models_file in foreign and settings.models_file.is_file():
                claims.append(
                    _claim(settings.models_file, settings.models_file.read_bytes(), [("", "", effect)])
                )
    return claims


def _leaving_links(settings: Settings) -> list[tuple[str, str]]:
    """Each link below the root that leads out, and where to; behind one that may not none is looked for."""
    root = os.path.realpath(settings.root)
    links: dict[str, str] = {}
    todo = [(root, root)]  # directories, and inside of what they lie
    for directory, inside in todo:
        with suppress(OSError), os.scandir(directory) as entries:  # whoever reads it will be told
            for entry in entries:
                target = os.path.realpath(entry.path) if entry.is_symlink() else ""
                if not target and entry.is_dir(follow_symlinks=False):
                    todo.append((entry.path, inside))
                elif target and not is_below(target, root) and not is_below(target, inside):
                    links[entry.path] = target
                    seen = any(target == place for place, _ in todo)
                    if not seen and Path(target).is_dir() and _allows(settings, entry.path, target):
                        todo.append((target, target))
    return sorted(links.items())


def _require(settings: Settings, claim: TrustCandidate, names: tuple[str, ...] = ()) -> None:
    wanted = [
        reach for reach in claim.reaches if not names or not reach.key or reach.key.partition(".")[0] in names
    ]
    if wanted and not settings.trust and read_trust(settings).get(claim.path) != claim.digest:
        more = f", and {len(wanted) - 1} more" if wanted[1:] else ""
        message = f"{Path(claim.path).name} is not trusted: it {wanted[0].effect}{more}"
        where = Location(claim.path, line=wanted[0].line, key=wanted[0].key)
        raise UntrustedError(message, where=where, fix=TRUST_FIX)


def _allows(settings: Settings, link: str, target: str) -> bool:
    return settings.trust or read_trust(settings).get(link) == _claim_of_link(link, target).digest


def _claim_of_link(link: str, target: str) -> TrustCandidate:
    return TrustCandidate(link, b"", (Reach("", f"leads to {target}"),))


def _claims_of_settings(settings: Settings) -> list[TrustCandidate]:
    """Return what panda.toml reaches, and where the store lies that nobody named, if it is a link."""
    file = settings.project_file
    own = [name for name in OUTWARD if settings.origin(name) == str(file)]
    effects = [effect for name in own for effect in _effects(settings, name)]
    unnamed = _effects(settings, "root") if settings.origin("root") == "default" else []
    if effect := _foreign_effect(settings, file):
        effects.append(("", "", effect))
    if settings.origin("root") in ("default", str(file)) and (
        effect := _foreign_effect(settings, settings.root)
    ):
        unnamed.append(("root", "", effect))
    return [_claim(file, settings.project_text, effects), _claim(settings.root, b"", unnamed)]


def _effects(settings: Settings, name: str) -> list[tuple[str, str, str]]:
    """
    Return what a setting reaches outside of the project: key, what its line in the file holds, and the
    effect.
    """
    value = getattr(settings, name)
    effect = OUTWARD[name]
    if name == "test_commands":
        return [(f"{name}.{key}", key, effect.format(shlex.join(words))) for key, words in value.items()]
    if name == "web_allow":
        return [(name, name, effect.format(place)) for place in value]
    if name == "web_browser":
        return [(name, name, effect)] if value else []
    if name == "search_provider":
        kind, _, value = value.partition(":")
        if kind != "file":
            return [(name, name, effect.format(value))]
        effect = "reads {}"
    if name != "cache_dir" and _is_inside(value, settings.project_dir):
        return []  # of a cache all is taken for what panda has made, wherever it lies
    return [(name, name, effect.format(os.path.realpath(value)))]


def _claim_of_models(settings: Settings, models: "ModelsFile") -> TrustCandidate:
    """
    Return what a models.yaml of the project reaches; nothing for one that the user named, or the packaged
    one.
    """
    from panda.models.llama.gguf import BUILTIN_PREFIX, find_gguf

    effects: list[tuple[str, str, str]] = []
    is_own = settings.origin("models_file") in ("default", str(settings.project_file))
    is_packaged = is_own and models.path.samefile(asset("models.yaml"))
    specs = list(models.models.values()) if is_own and not is_packaged else []
    for spec in specs:
        key = f"models.{spec.name}"
        secret = f" with the secret in ${spec.api_key_env}" if spec.api_key_env else ""
        for url in spec.servers:
            effects.append((f"{key}.location", url, f"contacts {url}{secret}"))
            for sent, name in _variables_of(spec, url):
                effects.append((f"{key}.{sent}", name, f"sends the value of ${name} to {url}"))
            for sent, names in (("extra_body", spec.extra_body), ("headers", spec.headers)):
                if names:
                    effects.append((f"{key}.{sent}", sent, f"sends the {sent} {', '.join(names)} to {url}"))
        if spec.proxy:
            effects.append((f"{key}.proxy", spec.proxy, f"sends all requests through {spec.proxy}"))
        if spec.ca_file:
            path = models.path.parent / Path(spec.ca_file).expanduser()
            if path.exists():  # else whoever loads it tells
                effect = f"trusts the certificates in {_tell_file(settings, path)}"
                effects.append((f"{key}.ca_file", spec.ca_file, effect))
        for name, place in (("location", spec.location), ("projector", spec.projector)):
            if not spec.servers and place is not None and not place.startswith(BUILTIN_PREFIX):
                for path in _parts_of(find_gguf(place, relative_to=models.path.parent)):
                    if not path.exists() and _is_inside(path, settings.project_dir):
                        continue  # whoever loads it tells
                    effects.append((f"{key}.{name}", place, f"runs the model {_tell_file(settings, path)}"))
    if (
        is_own
        and not models.path.samefile(asset("models.yaml"))
        and (effect := _foreign_effect(settings, models.path))
    ):
        effects.append(("", "", effect))
    return _claim(models.path, models.text.encode(), effects)


def _variables_of(spec: "ModelSpec", url: str) -> Iterator[tuple[str, str]]:
    """Yield each environment variable whose value goes to a server or proxy, behind the key that names it."""
    from panda.models.models_file import VARIABLES

    texts = [("location", url), ("proxy", spec.proxy or "")]
    texts += [("headers", value) for value in spec.headers.values()]
    for key, text in texts:
        for name in VARIABLES.findall(text):
            yield key, name


def _parts_of(gguf: Path) -> list[Path]:
    """Return the files of a model: llama.cpp loads all parts of one that is split, with the first."""
    split = _SPLIT_NAME.fullmatch(gguf.name)
    if split is None:
        return [gguf]
    count = int(split["count"])
    names = (f"{split['name']}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1))
    parts = [gguf.with_name(name) for name in names]
    return [part for part in parts if part == gguf or part.exists()]


def _tell_file(settings: Settings, path: Path) -> str:
    """Return path, size and digest of a model file, which is a program; kept where no project can write."""
    from panda.models.llama.gguf import GgufFile

    place = os.path.realpath(path)
    try:
        digest = GgufFile(path, settings.state_dir).sha256
        return f"{place} ({path.stat().st_size:,} bytes, sha256 {digest})"
    except (OSError, FileFormatError, StoreError) as exc:
        return f"{place} ({why_unread(exc)})"


def _claim(path: Path, content: bytes, effects: Iterable[tuple[str, str, str]]) -> TrustCandidate:
    lines = content.decode(errors="replace").split("\n")
    reaches = [
        Reach(key, effect, next((n for n, line in enumerate(lines, 1) if value and value in line), None))
        for key, value, effect in effects
    ]
    return TrustCandidate(str(Path(os.path.realpath(path.parent)) / path.name), content, tuple(reaches))


def _is_inside(path: Path | str, place: Path) -> bool:
    return is_below(os.path.realpath(path), os.path.realpath(place))
