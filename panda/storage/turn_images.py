"""The image of a turn: read from where the user has it, kept in the turn by its content."""

from pathlib import Path

from panda.documents.pictures import MOST_BYTES, Picture, PictureError, parse_picture
from panda.errors import FileFormatError
from panda.storage.files import read_bytes, store_errors

IMAGES = "images"
"""Directory of a turn."""


def image_name(picture: Picture) -> str:
    """Where a turn keeps a picture, as a path in its directory."""
    return f"{IMAGES}/{picture.file_name}"


def load_picture(path: Path) -> Picture:
    """
    A picture from its file.

    Raises:
        StoreError: It is missing or cannot be read.
        FileFormatError: It is too large, damaged, or neither PNG nor JPEG.
    """
    with store_errors(path, "read"):
        size = path.stat().st_size
    try:
        if size > MOST_BYTES:
            raise PictureError(f"it has {size:,} bytes, more than the {MOST_BYTES:,} that it may have")
        return parse_picture(read_bytes(path))
    except PictureError as exc:
        raise FileFormatError(
            f"{path.name} cannot be looked at: {exc}",
            where=str(path),
            fix="give a complete PNG or JPEG file, saved smaller if it is too large",
        ) from exc
