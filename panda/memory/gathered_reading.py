"""§2 of a context.md read back as values, the older form of S1 included."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from panda.documents.context import Meta, Section
from panda.documents.escaping import unescape_item
from panda.memory.gathered import CONSTRAINTS, TITLES, GatheredItem, GatheredSection

CUT_MARK = "[…]"
"""Stands where something was cut."""
_LINE = re.compile(
    r"^(?:- )?(?:Turn \d+: )?(?P<text>.*?)(?P<marks>(?: \[\d{1,3}\])+)(?: \([^()]*\))?$", re.DOTALL
)
_PLAIN = re.compile(r"^(?:- )?(?:Turn \d+: )?(.*)$", re.DOTALL)
_OLD_TITLES = {
    "Cached Research Intelligence": TITLES["research_cache"],
    "Visit Record Data": TITLES["visit_record"],
    "User Preferences": TITLES["preference"],
}
_OLD_TYPES = {
    "preferences": "preference",
    "turn_context": "turn_summary",
    "research_cache": "research_cache",
    "visit_data": "visit_record",
}
_WITHOUT_NODES = {"Source References", "Context Assessment"}
"""Parts of S1's form that cite nothing by themselves."""


@dataclass(frozen=True)
class ReadSection:
    """One titled part of §2 as it stands on disk."""

    section: GatheredSection
    """As values, titles and types in S0's names."""
    is_old: bool
    """Whether it is of S1's form, which names no nodes."""
    lines: tuple[str, ...]
    """The lines as they stand there, in the order of the section's items."""
    is_cut: bool
    """Whether something was cut from its lines."""
    faults: tuple[str, ...]
    """What of `_meta` has an impossible form."""


@dataclass
class _Part:
    title: str
    meta: Mapping[str, object] | None = None
    lines: list[str] = field(default_factory=list)


def read_gathered(section: Section) -> list[ReadSection]:
    """
    The parts of a §2.

    Args:
        section: §2 of a context.md.

    Returns:
        Its titled parts in order; lines before the first title are a part without a title. Parts of the
        older form that only list sources or judge the whole are left out.

    Source:
        S0 §4.1; S1 §5.2 for the older form.
    """
    return [_read(part) for part in _parts(section) if part.title not in _WITHOUT_NODES]


def _parts(section: Section) -> Iterator[_Part]:
    part = _Part("")
    for block in section.blocks:
        if isinstance(block, Meta):
            part.meta = block.values
            continue
        for line in block.text.split("\n"):
            if line.startswith("### "):
                if part.title or part.lines:
                    yield part
                part = _Part(line.removeprefix("### ").strip())
            elif line.strip() and line.strip() != "---":
                part.lines.append(line)
    if part.title or part.lines:
        yield part


def _read(part: _Part) -> ReadSection:
    meta = part.meta or {}
    is_old = "type" in meta and "source_type" not in meta
    faults: list[str] = []
    node_ids = _texts(meta, "node_ids", faults)
    given = meta.get("source_type") if not is_old else _OLD_TYPES.get(str(meta.get("type")))
    kinds = tuple(map(str, given)) if isinstance(given, list | tuple) else str(given or "")
    average = meta.get("confidence_avg")
    if average is not None and (isinstance(average, bool) or not isinstance(average, int | float)):
        faults.append(f"confidence_avg is {average!r}, no number")
        average = None
    title = _OLD_TITLES.get(part.title, part.title)
    if part.meta is None and not (title == CONSTRAINTS and part.lines == ["- none stated"]):
        faults.append("has no _meta")
    if title == CONSTRAINTS and isinstance(kinds, tuple) and len(kinds) == 1:
        kinds = kinds[0]
    said = [] if is_old else [(_item(line, node_ids, title), line) for line in part.lines if _says(line)]
    said = [(item, line) for item, line in said if item.text]
    return ReadSection(
        GatheredSection(
            title=title,
            source_type=kinds,
            items=tuple(item for item, _ in said),
            confidence_avg=None if average is None else float(average),
            node_ids=node_ids,
            provenance=_texts(meta, "provenance", faults),
        ),
        is_old,
        tuple(line for _, line in said),
        any(CUT_MARK in line for line in part.lines),
        tuple(faults),
    )


def _says(line: str) -> bool:
    return line.strip() not in ("- none stated", CUT_MARK, f"- {CUT_MARK}")


def _item(line: str, node_ids: tuple[str, ...], title: str) -> GatheredItem:
    """A line with the nodes of its marks; one without marks cites all of the part, a constraint nothing."""
    match = _LINE.match(line)
    numbers = [int(number) for number in re.findall(r"\d+", match["marks"])] if match else []
    if match and numbers and all(1 <= number <= len(node_ids) for number in numbers):
        return GatheredItem(_bare(match["text"]), tuple(node_ids[number - 1] for number in numbers))
    plain = _PLAIN.match(line)
    text = _bare(plain[1] if plain else line)
    return GatheredItem(text, () if title == CONSTRAINTS else node_ids)


def _bare(text: str) -> str:
    return unescape_item(" ".join(text.replace(CUT_MARK, " ").split()))


def _texts(meta: Mapping[str, object], key: str, faults: list[str]) -> tuple[str, ...]:
    value = meta.get(key) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        faults.append(f"{key} is no list of texts")
        return ()
    return tuple(map(str, value))
