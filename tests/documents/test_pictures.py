"""Which files are pictures that can be looked at."""

import struct
import zlib

import pytest

from panda.documents.pictures import MOST_BYTES, PictureError, parse_picture
from tests.models.projectors import png

JPEG = (
    b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x00\x30\x00\x40\x01\x01\x11\x00"
    b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\x12\x34\xff\xd9"
)


def test_sizes() -> None:
    """PNG and JPEG are told by their content, with width and height, and are named by it."""
    one, two = parse_picture(png(64, 48)), parse_picture(JPEG)
    assert (one.media_type, one.width, one.height) == ("image/png", 64, 48)
    assert (two.media_type, two.width, two.height) == ("image/jpeg", 64, 48)
    assert one.file_name == f"{one.sha256[:16]}.png"


def header_says(width: int, height: int) -> bytes:
    """A small PNG whose header tells of a large one."""
    body = struct.pack(">4sIIBBBBB", b"IHDR", width, height, 8, 2, 0, 0, 0)
    return png()[:12] + body + struct.pack(">I", zlib.crc32(body)) + png()[33:]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"%PDF-1.7", "neither"),
        (png()[:-1], "cut short"),
        (png()[:20], "cut short"),
        (png().replace(b"IDAT", b"IDAX"), "checksum"),
        (header_says(64, 480), "48 of 480 lines"),
        (header_says(100_000, 100_000), "100,000 × 100,000"),
        (header_says(0, 5), "no pixels"),
        (JPEG[:-2], "cut short"),
        (JPEG[:10], "cut short"),
        (JPEG[:2] + b"\xff\xda\x00\x08" + JPEG[4:], "no size"),
        (bytes(MOST_BYTES + 1), "bytes"),
    ],
)
def test_what_is_no_picture(data: bytes, said: str) -> None:
    """What is empty, foreign, damaged, cut short or too large says so; a bomb is never unpacked."""
    with pytest.raises(PictureError, match=said):
        parse_picture(data)
