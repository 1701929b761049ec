"""A models.yaml of an earlier version as today's: edited as text, so that all else stays byte for byte."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from panda.documents.yaml_text import YamlNode, read_yaml
from panda.errors import ModelFileError
from panda.models.models_file import OBSOLETE_KEYS, ModelsFile, parse_models_file

_BLANKS = " \t"


@dataclass(frozen=True)
class KeyChange:
    """One key that is rewritten or goes."""

    key: str  # dotted
    line: int  # from 1, in the file as it was
    before: Any  # its value
    after: Any  # the value that takes its place; None where the key goes, and of EYES
    is_removed: bool  # whether the key goes


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int  # behind the last character that goes
    text: str  # what stands there instead


def migrate_models(models: ModelsFile) -> tuple[str, list[KeyChange]]:
    """
    Return the text of a models.yaml without keys of earlier versions, and what changes, in order; the text
    as it is where nothing does. The layers of a model with `writes: false` become offline, and EYES unset.

    Raises:
        ModelFileError: The file is written in a way that cannot be edited so; nothing is lost by doing it by
            hand.
    """
    root = read_yaml(models.text)
    if root is None or not models.obsolete:
        return models.text, []
    edits: list[_Edit] = []
    changes: list[KeyChange] = []
    for name, entry in _pairs_of(root, "models"):
        for place, (key, value) in enumerate(entry.pairs):
            if key.value in OBSOLETE_KEYS:
                dotted = f"models.{name.value}.{key.value}"
                changes.append(KeyChange(dotted, key.line, before=value.value, after=None, is_removed=True))
                edits.append(_removal(models.text, entry, place))
    for layer, value in _pairs_of(root, "layers"):
        served_by = models.layers[layer.value]
        if value.value != served_by:
            change = KeyChange(
                f"layers.{layer.value}", value.line, before=value.value, after=served_by, is_removed=False
            )
            changes.append(change)
            quote = models.text[value.start] if models.text[value.start] in "\"'" else ""
            edits.append(_Edit(value.start, value.end, f"{quote}{served_by}{quote}" if served_by else "null"))
    text = _apply(models.text, edits)
    _check_same(models, text)
    return text, sorted(changes, key=lambda change: change.line)


def _pairs_of(top_node: YamlNode, name: str) -> Sequence[tuple[YamlNode, YamlNode]]:
    return next((value.pairs for key, value in top_node.pairs if key.value == name), ())


def _removal(text: str, mapping: YamlNode, place: int) -> _Edit:
    """
    Return the edit that removes one key of a mapping: its lines, or of a mapping in braces the key with its
    comma.
    """
    key, value = mapping.pairs[place]
    end = max(key.end, value.end)
    if not text.startswith("{", mapping.start):
        start = text.rfind("\n", 0, key.start) + 1
        line_end = text.find("\n", end)
        return _Edit(start, len(text) if line_end < 0 else line_end + 1, "")
    stays = [other for other, (name, _) in enumerate(mapping.pairs) if name.value not in OBSOLETE_KEYS]
    if any(other > place for other in stays):
        end = text.index(",", end) + 1
        behind = len(text) - len(text[end:].lstrip(_BLANKS))
        if text[behind : behind + 1] in ("\r", "\n"):
            return _Edit(len(text[: key.start].rstrip(_BLANKS)), end, "")
        return _Edit(key.start, behind, "")
    last_end = max((node.end for other in stays for node in mapping.pairs[other]), default=key.start)
    return _Edit(key.start if "#" in text[last_end : key.start] else last_end, end, "")


def _apply(text: str, edits: Sequence[_Edit]) -> str:
    """Return the text after all edits; those that remove neighbours may touch, and none overlaps."""
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts.append(text[position : max(position, edit.start)])
        parts.append(edit.text)
        position = max(position, edit.end)
    return "".join([*parts, text[position:]])


def _check_same(models: ModelsFile, text: str) -> None:
    """Raises ModelFileError where a rewritten text does not say the same as the file."""
    try:
        after = parse_models_file(text, path=models.path)
    except ModelFileError:
        after = None
    before = (models.models, models.layers, models.encoder)
    if after is None or (after.models, after.layers, after.encoder) != before or after.obsolete:
        message = "it cannot be rewritten line by line"
        fix = f"take out {', '.join(models.obsolete)} by hand"
        raise ModelFileError(message, str(models.path), fix=fix)
