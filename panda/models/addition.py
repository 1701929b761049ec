"""A model added to a models.yaml: edited as text, so that all else stays byte for byte."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from panda.documents.yaml_text import YAML_WORDS, YamlNode, read_yaml, render_yaml_value
from panda.errors import ModelFileError, UsageError
from panda.models.llama.gguf import find_gguf
from panda.models.models_file import (
    OFFLINE,
    ModelsFile,
    ModelSpec,
    parse_models_file,
    server_place,
)
from panda.models.offered_model import THINKING_TOKENS, USUAL_WINDOW_TOKENS, OfferedModel

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_UNUSED_CHARS = re.compile(r"[^a-z0-9._-]+")
_PLAIN_KEY = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
_MIN_THINKING_SHARE = 4
"""At most this part of a window is for reasoning."""

Entry = Mapping[str, object]
"""Keys of one entry under `models`, with their values."""


@dataclass(frozen=True, kw_only=True)
class Addition:
    """What adding a model makes of a models.yaml."""

    name: str  # key of the model
    entry: Entry | None  # what is added; None where the file has the model
    layers: Mapping[str, str | None]  # what layers get another model, each with what it had before
    text: str  # the whole file

    @property
    def changes_nothing(self) -> bool:
        """Say whether the file says all of it already."""
        return self.entry is None and not self.layers


def check_name(name: str) -> None:
    """Raises UsageError for a text that is no name of a model."""
    if not _NAME.fullmatch(name) or name == OFFLINE:
        fix = "use up to 64 letters, digits, '.', '_' and '-', and not the word offline"
        raise UsageError(f"{name!r:.80} is no name for a model", where="--name", fix=fix)


def check_free(models: ModelsFile, name: str) -> None:
    """Raises UsageError where a file has a model of that name."""
    if name in models.models:
        fix = "give another --name, or take that model out of the file first"
        raise UsageError(f"there is a model {name} already, and it is another one", where="--name", fix=fix)


def make_entry(offer: OfferedModel, *, n_ctx: int | None, api_key_env: str | None) -> Entry:
    """
    Return the keys of an offer's entry, in the order in which they are written; without a window its server
    is asked for it.
    """
    entry: dict[str, object] = {"backend": offer.backend, "location": offer.location}
    if offer.is_served:
        entry["model"] = offer.model
    if offer.projector is not None:
        entry["projector"] = offer.projector
    if n_ctx is not None:
        entry["n_ctx"] = n_ctx
    if offer.thinks:
        window = n_ctx or USUAL_WINDOW_TOKENS
        entry["thinking_tokens"] = min(THINKING_TOKENS, window // _MIN_THINKING_SHARE)
    if offer.parallel > 1:
        entry["parallel"] = offer.parallel
    if api_key_env:
        entry["api_key_env"] = api_key_env
    return entry


def find_same(models: ModelsFile, offer: OfferedModel) -> ModelSpec | None:
    """Return the model of a file that is an offer: the same file, or the same name on the same server."""
    for spec in models.models.values():
        if offer.is_served and offer.model == spec.model:
            places = [server_place(url) for url in spec.servers]
            if server_place(offer.location) in places:
                return spec
        elif not offer.is_served and not spec.servers:
            directory = models.path.parent
            own = find_gguf(spec.location, relative_to=directory).resolve()
            is_same_file = own == find_gguf(offer.location, relative_to=directory).resolve()
            if is_same_file and offer.projector in (None, spec.projector):
                return spec
    return None


def choose_name(models: ModelsFile, offer: OfferedModel) -> str:
    """Return a name for an offer that no model of the file has, made of what the server calls it."""
    stem = offer.model.replace("\\", "/").rstrip("/").rpartition("/")[2]
    stem = stem.removesuffix(".gguf").removesuffix(":latest")
    base = _UNUSED_CHARS.sub("-", stem.lower()).strip("-._")[:60] or "model"
    name = base
    number = 1
    while name in models.models or name == OFFLINE:
        number += 1
        name = f"{base}-{number}"
    return name


def plan_addition(models: ModelsFile, *, name: str, entry: Entry | None, layers: Sequence[str]) -> Addition:
    """
    Return what a models.yaml becomes.

    Args:
        models: The file as it is.
        name: The model; without an *entry* one that the file has.
        entry: What is written of a new model.
        layers: They get the model.

    Raises:
        UsageError: A model of that name is there already.
        ModelFileError: The file is written in a way that cannot be edited so.
    """
    if entry is not None:
        check_free(models, name)
        _check_entry(models, name, entry)
    changed = {layer: models.layers[layer] for layer in layers if models.layers[layer] != name}
    root = read_yaml(models.text)
    assert root is not None, models.path
    editor = _Editor(models.text)
    for key, mapping in root.pairs:
        if key.value == "models" and entry is not None:
            editor.append_pairs(mapping, {name: entry})
        elif key.value == "layers":
            editor.set_pairs(mapping, dict.fromkeys(changed, name))
    addition = Addition(name=name, entry=entry, layers=changed, text=editor.text())
    _check_says_it(models, addition)
    return addition


class _Editor:
    """Collects what is put into a YAML text, and where."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._edits: list[tuple[int, int, str]] = []  # start, end and what stands there instead

    def set_pairs(self, mapping: YamlNode, values: Mapping[str, str]) -> None:
        """Give keys of a mapping other values; those that it lacks come last."""
        missing = dict(values)
        for key, value in mapping.pairs:
            if key.value in missing:
                text = missing.pop(key.value)
                quote = (
                    self._text[value.start] if self._text[value.start : value.start + 1] in ('"', "'") else ""
                )
                self._edits.append(
                    (value.start, value.end, f"{quote}{text}{quote}" if quote else _render_name(text))
                )
        if missing:
            self.append_pairs(mapping, missing)

    def append_pairs(self, mapping: YamlNode, values: Mapping[str, object]) -> None:
        """Put pairs behind the last one of a mapping."""
        if self._text.startswith("{", mapping.start):
            self._append_in_braces(mapping, values)
            return
        first_key = mapping.pairs[0][0]
        indent = " " * (first_key.start - self._line_start(first_key.start))
        lines = [line for key, value in values.items() for line in _render_lines(key, value, indent)]
        place = self._end_of_block(mapping, indent)
        added = "".join(f"{line}{self._newline}" for line in lines)
        if place and self._text[place - 1] != "\n":
            added = self._newline + added.removesuffix(self._newline)
        self._edits.append((place, place, added))

    def text(self) -> str:
        """Return the text with all that was put in."""
        parts: list[str] = []
        position = 0
        for start, end, new in sorted(self._edits):
            parts += [self._text[position:start], new]
            position = end
        return "".join([*parts, self._text[position:]])

    def _append_in_braces(self, mapping: YamlNode, values: Mapping[str, object]) -> None:
        is_json = mapping.pairs and self._text[mapping.pairs[0][0].start] == '"'
        rendered = json.dumps(dict(values))[1:-1] if is_json else _render_in_braces(values)[1:-1]
        if mapping.pairs:
            place = mapping.pairs[-1][1].end
            self._edits.append((place, place, f", {rendered}"))
        else:
            place = mapping.start + 1
            self._edits.append((place, place, rendered))

    def _line_start(self, place: int) -> int:
        return self._text.rfind("\n", 0, place) + 1

    def _line_end(self, place: int) -> int:
        end = self._text.find("\n", place)
        return len(self._text) if end < 0 else end + 1

    def _end_of_block(self, mapping: YamlNode, indent: str) -> int:
        """Return where the lines of a mapping end, with the comments that are further in than its keys."""
        place = self._line_end(max(mapping.pairs[-1][0].end, mapping.pairs[-1][1].end))
        while place < len(self._text):
            line = self._text[place : self._line_end(place)]
            bare = line.lstrip(" ")
            if not bare.startswith("#") or len(line) - len(bare) <= len(indent):
                break
            place = self._line_end(place)
        return place


def _render_lines(key: str, value: object, indent: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{indent}{_render_name(key)}: {_render(value)}"]
    inner = [f"{indent}  {_render_name(name)}: {_render(part)}" for name, part in value.items()]
    return [f"{indent}{_render_name(key)}:", *inner]


def _render_in_braces(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{_render_name(key)}: {_render_in_braces(part)}" for key, part in value.items())
        return f"{{{', '.join(pairs)}}}"
    return _render(value)


def _render(value: object) -> str:
    return _render_name(value) if isinstance(value, str) else render_yaml_value(value)


def _render_name(name: str) -> str:
    """Return a text as it is written in models.yaml: bare where it can only be read as a text."""
    is_plain = _PLAIN_KEY.fullmatch(name) and name.lower() not in YAML_WORDS
    return name if is_plain else render_yaml_value(name)


def _check_entry(models: ModelsFile, name: str, entry: Entry) -> None:
    """Raises ModelFileError for a value that no models.yaml may have."""
    text = json.dumps({"models": {name: entry}, "layers": {}, "encoder": None})
    parse_models_file(text, path=models.path)


def _check_says_it(models: ModelsFile, addition: Addition) -> None:
    """Raises ModelFileError where the text does not say what the file said, and the addition."""
    layers = {**models.layers, **dict.fromkeys(addition.layers, addition.name)}
    try:
        after = parse_models_file(addition.text, path=models.path)
    except ModelFileError as exc:
        raise _not_editable(models.path, addition) from exc
    others = {name: spec for name, spec in after.models.items() if name != addition.name}
    before = {name: spec for name, spec in models.models.items() if name != addition.name}
    if (others, after.layers, after.encoder) != (before, layers, models.encoder):
        raise _not_editable(models.path, addition)


def _not_editable(path: Path, addition: Addition) -> ModelFileError:
    entry = (
        f"under models {addition.name}: {render_yaml_value(dict(addition.entry or {}))}, and "
        if addition.entry
        else ""
    )
    layers = ", ".join(f"{layer}: {addition.name}" for layer in addition.layers)
    fix = f"write {entry}under layers {layers}"
    return ModelFileError("it cannot be edited line by line", str(path), fix=fix)
