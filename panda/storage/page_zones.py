"""The zones of a visited page as values."""

from dataclasses import dataclass
from pathlib import Path

from panda.errors import FileFormatError


@dataclass(frozen=True)
class PageZone:
    """One part of a visited page."""

    type: str
    """pricing, product_info, reviews, navigation or other."""
    confidence: float
    """How sure that is, and that it belongs to the page's own subject."""
    items: tuple[str, ...]
    """Its lines."""

    @property
    def is_quotable(self) -> bool:
        """Whether its lines may be quoted: no menus, nothing that is likely about something else."""
        return self.type != "navigation" and self.confidence >= 0.5


def read_zones(value: object, path: Path) -> tuple[PageZone, ...]:
    """
    The zones that extracted.json holds; none if it holds none.

    Args:
        value: Of its key zones.
        path: The file, for errors.

    Raises:
        FileFormatError: A zone is no object with items and a confidence from 0 to 1.
    """
    if not isinstance(value, list):
        return ()
    zones = []
    for zone in value:
        if not isinstance(zone, dict) or not isinstance(zone.get("items"), list):
            raise FileFormatError("a zone is no object with items", where=f"{path} (zones)")
        confidence = zone.get("confidence", 0.5)
        if not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
            raise FileFormatError("confidence is no number from 0 to 1", where=f"{path} (zones)")
        items = tuple(item for item in zone["items"] if isinstance(item, str))
        zones.append(PageZone(str(zone.get("type") or "other"), float(confidence), items))
    return tuple(zones)
