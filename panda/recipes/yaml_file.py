"""YAML files of recipes: plain values, no aliases, no doubled keys, every fault with its line."""

from pathlib import Path
from typing import Any

import yaml

from panda.documents.yaml_text import plain_value
from panda.errors import FileFormatError, RecipeError
from panda.storage.files import read_text

_TEXT = "tag:yaml.org,2002:str"
_MOST_DEPTH = 60
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(path: Path) -> tuple[object, str]:
    """
    What a YAML file says, and its text.

    Args:
        path: The file; dates in it become text.

    Raises:
        RecipeError: It is not YAML, not UTF-8, holds more than plain values, or has an alias or a doubled
            key; `where` has the line.
        StoreError: It cannot be read.
    """
    text = read_own_text(path)
    return parse_yaml_text(text, path=path), text


def read_own_text(path: Path) -> str:
    """
    Text of a recipe or prompt file.

    Raises:
        RecipeError: It is not UTF-8.
        StoreError: It cannot be read.
    """
    try:
        return read_text(path)
    except FileFormatError as exc:
        raise RecipeError(exc.message, where=exc.where, fix=exc.fix) from exc


def parse_yaml_text(text: str, *, path: Path) -> object:
    """
    What a YAML text says.

    Raises:
        RecipeError: As load_yaml.

    >>> parse_yaml_text("a: [1, x]", path=Path("r.yaml"))
    {'a': [1, 'x']}
    """
    loader = None
    try:
        _check_shape(text, path)
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check_keys(node, path)
        return plain_value(loader.construct_document(node))
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        raise _fault(path, mark, f"not readable as YAML: {exc.problem or exc.context}") from exc
    except yaml.YAMLError as exc:
        raise _fault(path, None, f"not readable as YAML: {str(exc).splitlines()[0]}") from exc
    except RecursionError as exc:
        raise _fault(path, None, "not readable as YAML: nested too deeply") from exc
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        # An explicit tag on a wrong value (`!!bool x`) ends in any of these inside the library.
        raise _fault(path, None, f"not readable as YAML: {exc}") from exc
    finally:
        if loader is not None:
            loader.dispose()


def _check_shape(text: str, path: Path) -> None:
    """Refuse aliases and deep nesting before a tree is built, where they crash the library or never end."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent):
            raise _fault(path, event.start_mark, "an alias (*name) is not allowed here")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MOST_DEPTH:
            raise _fault(path, event.start_mark, f"nested more than {_MOST_DEPTH} deep")


def _check_keys(node: yaml.Node, path: Path) -> None:
    """Refuse keys that are no text or stand twice; a date becomes the text that stands there."""
    if node.tag == "tag:yaml.org,2002:timestamp":
        node.tag = _TEXT
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check_keys(item, path)
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag != _TEXT:
                shown = key.value if isinstance(key, yaml.ScalarNode) else "[…]"
                raise _fault(path, key.start_mark, f"the key {shown} is no text; put it in quotes")
            if key.value in keys:
                raise _fault(path, key.start_mark, f"the key {key.value!r} stands twice")
            keys.add(key.value)
            _check_keys(value, path)


def _fault(path: Path, mark: Any, message: str) -> RecipeError:
    where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
    return RecipeError(
        message, where=where, fix="correct the line" if mark is not None else "correct the file"
    )
