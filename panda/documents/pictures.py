"""Pictures that a user gives: PNG and JPEG files, checked without decoding them to the last pixel. Pure."""

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

MOST_BYTES = 20 * 2**20
MOST_PIXELS = 50_000_000
_PNG = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_SUFFIXES = {"image/png": "png", "image/jpeg": "jpg"}
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = (0x01, *range(0xD0, 0xD9))


class PictureError(ValueError):
    """The bytes are no picture that can be looked at; says why."""


@dataclass(frozen=True)
class Picture:
    """A picture as it lies in its file."""

    data: bytes
    """The bytes of the file."""
    media_type: str
    """image/png or image/jpeg."""
    width: int
    """In pixels."""
    height: int
    """In pixels."""

    @cached_property
    def sha256(self) -> str:
        """Digest of the bytes, hex."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def file_name(self) -> str:
        """What a copy of it is called: by its content."""
        return f"{self.sha256[:16]}.{_SUFFIXES[self.media_type]}"


def parse_picture(data: bytes) -> Picture:
    """
    The picture that a file holds.

    Args:
        data: All bytes of the file.

    Raises:
        PictureError: It is empty, too large, neither PNG nor JPEG, damaged or cut short.

    >>> parse_picture(b"GIF89a")
    Traceback (most recent call last):
    panda.documents.pictures.PictureError: it is neither a PNG nor a JPEG file
    """
    if len(data) > MOST_BYTES:
        raise PictureError(f"it has {len(data):,} bytes, more than the {MOST_BYTES:,} that it may have")
    if data.startswith(_PNG):
        media_type, (width, height) = "image/png", _png_size(data)
    elif data.startswith(b"\xff\xd8\xff"):
        media_type, (width, height) = "image/jpeg", _jpeg_size(data)
    else:
        raise PictureError("it is neither a PNG nor a JPEG file" if data else "it is empty")
    _check_pixels(width, height)
    return Picture(data, media_type, width, height)


def _check_pixels(width: int, height: int) -> None:
    if not width or not height:
        raise PictureError("it has no pixels")
    if width * height > MOST_PIXELS:
        raise PictureError(f"it has {width:,} × {height:,} pixels, more than {MOST_PIXELS:,} in all")


def _png_size(data: bytes) -> tuple[int, int]:
    """Width and height; every chunk's checksum is right and the pixels unpack to what the header says."""
    chunks = list(_png_chunks(data))
    kind, header = chunks[0]
    if kind != b"IHDR" or len(header) != 13:
        raise PictureError("it is damaged: a PNG begins with a header")
    width, height = int.from_bytes(header[:4]), int.from_bytes(header[4:8])
    depth, colour, interlaced = header[8], header[9], header[12]
    if colour not in _CHANNELS:
        raise PictureError(f"it is damaged: PNG has no colour type {colour}")
    _check_pixels(width, height)
    line = (width * depth * _CHANNELS[colour] + 7) // 8 + 1
    unpacker = zlib.decompressobj()
    try:
        pixels = len(
            unpacker.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"), line * height)
        )
    except zlib.error as exc:
        raise PictureError(f"it is damaged: its pixels do not unpack ({exc})") from exc
    if not interlaced and pixels < line * height:
        raise PictureError(f"it is damaged: it holds {pixels // line:,} of {height:,} lines")
    return width, height


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_PNG)
    kind = b""
    while kind != b"IEND":
        length, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        end = at + 8 + length
        if len(data) < end + 4:
            raise PictureError("it is cut short")
        if zlib.crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4]):
            raise PictureError(f"it is damaged: the checksum of the part at byte {at:,} is wrong")
        yield kind, data[at + 8 : end]
        at = end + 4


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Width and height, from the first frame header; the file runs to its end mark."""
    at, size = 2, None
    while at + 4 <= len(data) and size is None:
        if data[at] != 0xFF:
            raise PictureError(f"it is damaged: there is no JPEG marker at byte {at:,}")
        marker = data[at + 1]
        if marker == 0xFF or marker in _BARE_MARKERS:
            at += 1 if marker == 0xFF else 2
            continue
        length = int.from_bytes(data[at + 2 : at + 4])
        if marker in _FRAMES and at + 9 <= len(data):
            size = int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        if marker == 0xDA or length < 2:
            raise PictureError("it is damaged: it says no size before its pixels")
        at += 2 + length
    if size is None or b"\xff\xd9" not in data[at:]:
        raise PictureError("it is cut short")
    return size
