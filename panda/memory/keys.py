"""Keys and values of preferences.md and facts.md, and what they are in the log. Pure."""

from collections.abc import Mapping

from panda.documents.memory_file import render_value
from panda.documents.yaml_entries import as_read
from panda.memory.staging import Kind, SaidKind
from panda.memory.value import FactValue, entity_name, parse_value


def memory_key(entity: str, relation: str, user: str) -> str:
    """
    Key of a memory file: the relation, with the entity in front if it is not the user.

    >>> memory_key("user:ann", "budget", "ann"), memory_key("acme", "ceo", "ann")
    ('budget', 'acme#ceo')
    """
    return relation if entity == f"user:{user}" else f"{entity}#{relation}"


def split_key(key: str, kind: Kind, user: str) -> tuple[str, str]:
    """
    Entity and relation of a key that somebody typed.

    >>> split_key("Acme Corp#ceo", "fact", "ann"), split_key("c#", "fact", "ann")
    (('acme-corp', 'ceo'), ('user:ann', 'c#'))
    >>> split_key("a#b", "preference", "ann")
    ('user:ann', 'a#b')
    """
    entity, _, relation = key.partition("#")
    if kind == "preference" or not entity.strip() or not relation.strip():
        return f"user:{user}", key
    return entity_name(entity), relation


def canonical_key(key: str, kind: Kind, user: str) -> str | None:
    """
    The key that panda writes where somebody typed a key; None for one that no memory can have.

    >>> canonical_key("Acme Corp#ceo", "fact", "ann"), canonical_key(" ", "fact", "ann")
    ('acme-corp#ceo', None)
    """
    entity, relation = split_key(key, kind, user)
    if not relation.strip() or is_system(entity) or is_system(relation):
        return None
    return memory_key(entity, relation, user)


def is_system(name: str) -> bool:
    """Whether an entity or relation is one of panda's own, which are never shown."""
    return name.startswith("panda:") and not name.startswith("panda://")


def shown_in(kind: SaidKind, entity: str, user: str) -> Kind:
    """Which file shows an assertion: preferences.md holds the user's own preferences only."""
    return "preference" if kind == "preference" and entity == f"user:{user}" else "fact"


def typed_value(raw: object) -> FactValue:
    """
    The value that somebody typed into a memory file.

    Args:
        raw: From YAML. A mapping, which is no value of a fact, counts as the text that it is shown as.

    >>> typed_value(900).to_json(), typed_value({"min": 5, "max": 8}).to_json()
    ({'type': 'number', 'v': 900}, {'type': 'string', 'v': 'min 5, max 8'})
    """
    if raw is None:
        return parse_value({"type": "null"})
    if isinstance(raw, list | tuple):
        return parse_value({"type": "list", "v": [_scalar(one) for one in raw]})
    value = _scalar(raw)
    kind = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
    return parse_value({"type": kind, "v": value})


def _scalar(raw: object) -> str | bool | int | float | None:
    return raw if raw is None or isinstance(raw, str | bool | int | float) else render_value(raw)


def file_value(value: FactValue) -> object:
    """The value as a memory file holds it: a scalar or a list."""
    return list(value.v) if isinstance(value.v, tuple) else value.v


def says(raw: object, value: FactValue) -> bool:
    """
    Whether what a memory file holds is what it shows for a value.

    >>> says("1e+300", parse_value({"type": "number", "v": 1e300}))
    True
    >>> says(1, parse_value({"type": "boolean", "v": True}))
    False
    """
    shown = as_read(file_value(value))
    if isinstance(raw, Mapping):
        raw = render_value(raw)
    return typed_value(raw).key == typed_value(shown).key
