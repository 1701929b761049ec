"""Node ids: the kind of a source and its key there, as "turn:811", "memory:budget" or "knowledge:tea.md"."""

from enum import StrEnum


class NodeKind(StrEnum):
    """What kind of source a node is."""

    TURN = "turn"
    MEMORY = "memory"
    FACT = "fact"
    KNOWLEDGE = "knowledge"
    RESEARCH = "research"
    VISIT = "visit"
    DOCUMENT = "document"
    STEP = "step"
    """A step of the running turn: what a tool gave is no source that is kept by itself."""

    def id(self, value: object) -> str:
        """
        Return the id of the node of this kind with a key.

        >>> NodeKind.TURN.id(811)
        'turn:811'
        """
        return f"{self}:{value}"


_KINDS = {str(kind): kind for kind in NodeKind}


def kind_of(identifier: str) -> NodeKind | None:
    """
    Return the kind of a node, or None for a text that is no node id.

    >>> kind_of("visit:visit_loq"), kind_of("https://shop.example")
    (<NodeKind.VISIT: 'visit'>, None)
    """
    return _KINDS.get(identifier.partition(":")[0]) if ":" in identifier else None


def key_of(identifier: str) -> str:
    """
    Return the key of a node: what its id has after the kind.

    >>> key_of("knowledge:tea.md")
    'tea.md'
    """
    return identifier.partition(":")[2]
