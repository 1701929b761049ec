"""The text by which each line of a node is found by meaning: "title. heading. text". Pure."""

import re
from pathlib import PurePosixPath

from panda.documents.sentences import one_line
from panda.memory.items import Item
from panda.memory.node import Node

_PREFIX = re.compile(r"\A(?:preference|fact|memory):\s*")
_KEY = re.compile(r"\A[\w.-]+(?=: )")
_JOINTS = re.compile(r"[\s_-]+")
_NOTE = "knowledge:"


def line_text(above: str, text: str) -> str:
    """
    A line with what it stands below, as an encoder gets it: no ids, keys as words, nothing twice.

    Args:
        above: Its title and headings, as line_title gives them; may be empty.
        text: The line.

    >>> line_text("Bees. Spring", "They fly in May.")
    'Bees. Spring. They fly in May.'
    >>> line_text("", "preference: budget_laptop: $750"), line_text("Bees. Hive", "Hive: two frames")
    ('budget laptop: $750', 'Bees. Hive: two frames')
    """
    line = _KEY.sub(lambda key: key[0].replace("_", " "), _PREFIX.sub("", one_line(text)))
    parts = (part for part in above.split(". ") if part and not line.startswith(part))
    return ". ".join([*parts, line])


def line_title(node: Node, item: Item) -> str:
    """
    What a line stands below: of a note its folder, name and headings, of a page or research its title.

    Args:
        node: The node; what was said in turns and is remembered stands for itself.
        item: One of its lines.
    """
    parts = [item.heading]
    if node.id.startswith(_NOTE):
        folder = PurePosixPath(node.id.removeprefix(_NOTE)).parent.name
        parts = [_JOINTS.sub(" ", part) for part in (folder, node.title)] + parts
    elif node.source_type in ("visit_record", "research_cache"):
        parts = [node.title, *parts]
    seen = dict.fromkeys(piece for part in parts for piece in one_line(part).rstrip(".:").split(". "))
    pieces = (piece.strip() for piece in seen)
    return ". ".join(piece for piece in pieces if piece and not item.text.startswith(piece))


def node_lines(node: Node) -> list[tuple[Item, str]]:
    """Each line of a node that stands for itself, with its text for the encoder, in order."""
    return [
        (item, line_text(line_title(node, item), item.text)) for item in node.items if item.origin is None
    ]
