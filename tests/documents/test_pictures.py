"""Which files are pictures that can be looked at."""

import struct
import tracemalloc
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
    png_picture = parse_picture(png(64, 48))
    jpeg_picture = parse_picture(JPEG)
    assert (png_picture.media_type, png_picture.width, png_picture.height) == ("image/png", 64, 48)
    assert (jpeg_picture.media_type, jpeg_picture.width, jpeg_picture.height) == ("image/jpeg", 64, 48)
    assert png_picture.file_name == f"{png_picture.sha256[:16]}.png"


def header_says(width: int, height: int) -> bytes:
    """A small PNG whose header tells of a large one."""
    body = struct.pack(">4sIIBBBBB", b"IHDR", width, height, 8, 2, 0, 0, 0)
    return png()[:12] + body + struct.pack(">I", zlib.crc32(body)) + png()[33:]


@pytest.mark.parametrize(
    ("data", "message_part"),
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
def test_what_is_no_picture(data: bytes, message_part: str) -> None:
    """A file that is empty, foreign, damaged, cut short or too large says so; a bomb is never unpacked."""
    with pytest.raises(PictureError, match=message_part):
        parse_picture(data)


def png_of(width: int, height: int, *, depth: int, colour: int, pixels: bytes, interlaced: int = 0) -> bytes:
    """A PNG whose pixels are given as they are packed."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    parts = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def zeros(count: int) -> bytes:
    """So many zero bytes, packed."""
    packer = zlib.compressobj(9)
    step = bytes(1_000_000)
    packed = [packer.compress(step) for _ in range(count // len(step))]
    return b"".join([*packed, packer.compress(bytes(count % len(step))), packer.flush()])


def test_bomb_takes_no_memory() -> None:
    """A small file that declares hundreds of megabytes, or unpacks to them, is refused, and never held."""
    declares = png_of(7000, 7000, depth=16, colour=6, pixels=zeros(7000 * (7000 * 8 + 1)))
    unpacks = png_of(8, 8, depth=8, colour=2, pixels=zeros(300_000_000))
    large = png_of(5000, 5000, depth=8, colour=2, pixels=zeros(5000 * 15_001))
    tracemalloc.start()
    with pytest.raises(PictureError, match="392,007,000 bytes"):
        parse_picture(declares)
    with pytest.raises(PictureError, match="more than the 200 bytes"):
        parse_picture(unpacks)
    assert parse_picture(large).width == 5000
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(("missing", "whole"), [(0, True), (1, False)])
def test_interlaced(missing: int, *, whole: bool) -> None:
    """An interlaced picture is complete if all lines of its seven passes are there."""
    lines = 1 * 4 + 1 * 4 + 1 * 7 + 2 * 7 + 2 * 13 + 4 * 13 + 4 * 25  # 8 × 8, three bytes a pixel
    data = png_of(8, 8, depth=8, colour=2, pixels=zeros(lines - missing), interlaced=1)
    if whole:
        assert parse_picture(data).height == 8
    else:
        with pytest.raises(PictureError, match="of 8 lines"):
            parse_picture(data)
