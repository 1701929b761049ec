"""A projector file for the embedded model, with random weights: it runs like a real one, and sees nothing."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

_UINT32 = 4
_FLOAT32 = 6
_BOOL = 7
_STRING = 8
_ARRAY = 9
_EMBD = 32
_FF = 64
_PATCH = 8
_SIZE = 32
_SCALE = 2
_ALIGN = 32
_TEXT_EMBD = 576


def write_projector(path: Path, *, kind: str = "mlp", text_embd: int = _TEXT_EMBD) -> Path:
    """
    Write a tiny vision encoder as GGUF.

    Args:
        path: Where to.
        kind: mlp, that of LLaVA, or idefics3, which needs control tokens that the embedded model lacks.
        text_embd: Width of the language model that it is for.
    """
    rng = np.random.default_rng(7)
    keys: dict[str, Any] = {
        "general.architecture": "clip",
        "clip.has_vision_encoder": True,
        "clip.projector_type": kind,
        "clip.use_gelu": True,
        "clip.vision.image_size": _SIZE,
        "clip.vision.preproc_image_size": _SIZE,
        "clip.vision.patch_size": _PATCH,
        "clip.vision.embedding_length": _EMBD,
        "clip.vision.feed_forward_length": _FF,
        "clip.vision.block_count": 1,
        "clip.vision.projection_dim": text_embd,
        "clip.vision.attention.head_count": 2,
        "clip.vision.attention.layer_norm_epsilon": 1e-6,
        "clip.vision.projector.scale_factor": _SCALE,
        "clip.vision.image_mean": [0.5, 0.5, 0.5],
        "clip.vision.image_std": [0.5, 0.5, 0.5],
    }
    shapes: dict[str, tuple[int, ...]] = {
        "v.patch_embd.weight": (_EMBD, 3, _PATCH, _PATCH),
        "v.patch_embd.bias": (_EMBD,),
        "v.position_embd.weight": ((_SIZE // _PATCH) ** 2, _EMBD),
        "v.post_ln.weight": (_EMBD,),
        "v.post_ln.bias": (_EMBD,),
        "mm.model.fc.weight": (text_embd, _EMBD * _SCALE**2),
        "mm.0.weight": (text_embd, _EMBD),
        "mm.0.bias": (text_embd,),
        "mm.2.weight": (text_embd, text_embd),
        "mm.2.bias": (text_embd,),
    }
    for name, rows, columns in (
        *((part, _EMBD, _EMBD) for part in ("attn_q", "attn_k", "attn_v", "attn_out")),
        ("ffn_down", _FF, _EMBD),
        ("ffn_up", _EMBD, _FF),
    ):
        shapes |= {f"v.blk.0.{name}.weight": (rows, columns), f"v.blk.0.{name}.bias": (rows,)}
    for name in ("ln1", "ln2"):
        shapes |= {f"v.blk.0.{name}.weight": (_EMBD,), f"v.blk.0.{name}.bias": (_EMBD,)}
    head = bytearray()
    body = bytearray()
    for name, shape in shapes.items():
        body += bytes(-len(body) % _ALIGN)
        head += _text(name) + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}QIQ", *reversed(shape), 0, len(body))
        body += rng.normal(0, 0.1, shape).astype("<f4").tobytes()
    start = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(keys))
    start += b"".join(_text(key) + _value(value) for key, value in keys.items()) + head
    path.write_bytes(start + bytes(-len(start) % _ALIGN) + body)
    return path


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _value(value: object) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _UINT32, value)
        case float():
            return struct.pack("<If", _FLOAT32, value)
        case list():
            return struct.pack(f"<IIQ{len(value)}f", _ARRAY, _FLOAT32, len(value), *value)
    return struct.pack("<I", _STRING) + _text(str(value))


def png(width: int = 64, height: int = 48, colour: tuple[int, int, int] = (200, 30, 30)) -> bytes:
    """A PNG of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    lines = (b"\0" + bytes(colour) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts
