"""Pictures that a user gives: PNG and JPEG files, checked without decoding them to the last pixel. Pure."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

MOST_BYTES = 20 * 2**20
MOST_PIXELS = 50_000_000
MOST_UNPACKED_BYTES = 3 * MOST_PIXELS
_PNG = b"\x89PNG\r\n\x1a\n"
_UNPACKED_STEP_BYTES = 65_536
_DEPTHS = (1, 2, 4, 8, 16)
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = (0x01, *range(0xD0, 0xD9))


class PictureError(ValueError):
    """The bytes are no picture that can be looked at; says why."""


@dataclass(frozen=True)
class Picture:
    """A picture as it lies in its file."""

    data: bytes  # the bytes of the file
    media_type: Literal["image/png", "image/jpeg"]
    width: int  # in pixels
    height: int  # in pixels

    @cached_property
    def sha256(self) -> str:
        """Digest of the bytes, hex."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def file_name(self) -> str:
        """Return the name of a copy, made of its content."""
        return f"{self.sha256[:16]}.{'png' if self.media_type == 'image/png' else 'jpg'}"


def parse_picture(data: bytes) -> Picture:
    """Raises PictureError: the file is empty, too large, neither PNG nor JPEG, damaged or cut short."""
    if len(data) > MOST_BYTES:
        raise PictureError(f"it has {len(data):,} bytes, more than the {MOST_BYTES:,} that it may have")
    if data.startswith(_PNG):
        return Picture(data, "image/png", *_png_size(data))
    if data.startswith(b"\xff\xd8\xff"):
        return Picture(data, "image/jpeg", *_jpeg_size(data))
    raise PictureError("it is neither a PNG nor a JPEG file" if data else "it is empty")


def _checked(width: int, height: int) -> tuple[int, int]:
    if not width or not height:
        raise PictureError("it has no pixels")
    if width * height > MOST_PIXELS:
        raise PictureError(f"it has {width:,} × {height:,} pixels, more than {MOST_PIXELS:,} in all")
    return width, height


def _png_size(data: bytes) -> tuple[int, int]:
    """Width and height; every chunk's checksum is right and the pixels unpack to what the header says."""
    chunks = list(_png_chunks(data))
    kind, header = chunks[0]
    if kind != b"IHDR" or len(header) != 13:
        raise PictureError("it is damaged: a PNG begins with a header")
    width, height = _checked(int.from_bytes(header[:4]), int.from_bytes(header[4:8]))
    depth = header[8]
    colour = header[9]
    interlaced = header[12]
    if colour not in _CHANNELS or depth not in _DEPTHS:
        raise PictureError(f"it is damaged: PNG has no colour type {colour} of {depth} bits")
    declared = 0
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    for x, y, step_x, step_y in passes:
        columns = (width - x + step_x - 1) // step_x
        lines = (height - y + step_y - 1) // step_y
        if columns and lines:
            declared += lines * ((columns * depth * _CHANNELS[colour] + 7) // 8 + 1)  # 1 names the filter
    declared_size = f"{declared:,} bytes"
    most = f"{MOST_UNPACKED_BYTES:,}"
    if declared > MOST_UNPACKED_BYTES:
        raise PictureError(f"its pixels take {declared_size}, more than the {most} they may")
    unpacked = _unpacked_bytes((body for kind, body in chunks if kind == b"IDAT"), declared)
    if unpacked > declared:
        raise PictureError(f"it is damaged: its pixels unpack to more than the {declared_size} it declares")
    if unpacked < declared:
        raise PictureError(f"it is damaged: it holds {height * unpacked // declared:,} of {height:,} lines")
    return width, height


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_PNG)
    kind = b""
    while kind != b"IEND":
        kind = data[at + 4 : at + 8]
        end = at + 8 + int.from_bytes(data[at : at + 4])
        if len(data) < end + 4:
            raise PictureError("it is cut short")
        if zlib.crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4]):
            raise PictureError(f"it is damaged: the checksum of the part at byte {at:,} is wrong")
        yield kind, data[at + 8 : end]
        at = end + 4


def _unpacked_bytes(parts: Iterable[bytes], most: int) -> int:
    """Return how many bytes zlib data unpacks to, keeping none of them; it stops soon after *most*."""
    unpacker = zlib.decompressobj()
    count = 0
    try:
        for part in parts:
            while part and count <= most:
                count += len(unpacker.decompress(part, _UNPACKED_STEP_BYTES))
                part = unpacker.unconsumed_tail
        return count + len(unpacker.flush()) if count <= most else count
    except zlib.error as exc:
        raise PictureError(f"it is damaged: its pixels do not unpack ({exc})") from exc


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Width and height, from the first frame header; the file runs to its end mark."""
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            raise PictureError(f"it is damaged: there is no JPEG marker at byte {at:,}")
        marker = data[at + 1]
        length = int.from_bytes(data[at + 2 : at + 4])
        if marker == 0xFF or marker in _BARE_MARKERS:
            at += 1 if marker == 0xFF else 2
        elif marker == 0xDA or length < 2:
            raise PictureError("it is damaged: it says no size before its pixels")
        elif marker in _FRAMES and at + 9 <= len(data):
            if data.find(b"\xff\xd9", at + 2 + length) < 0:
                break
            return _checked(int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7]))
        else:
            at += 2 + length
    raise PictureError("it is cut short")
