"""Pictures for a language model: a projector file (mmproj) beside the weights, run by llama.cpp's mtmd."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from panda.documents.pictures import Picture
from panda.errors import ModelFileError
from panda.models.cores import usable_cores
from panda.models.llama.gguf import Weights, load_library, load_multimodal, take_error


class Projector:
    """
    A loaded projector of that language model; *threads* None means all cores. ModelFileError where llama.cpp
    cannot load it, or it is not for this model, or not for pictures.
    """

    def __init__(self, path: Path, weights: Weights, *, threads: int | None = None) -> None:
        lib, self._mtmd = load_library(), load_multimodal()
        self.path = path
        params = self._mtmd.mtmd_context_params_default()
        params.use_gpu = False
        params.print_timings = False
        params.warmup = False
        params.n_threads = threads or len(usable_cores())
        params.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_DISABLED  # repeatable, as for text
        take_error()
        self._ctx: Any = self._mtmd.mtmd_init_from_file(os.fsencode(path), weights.model, params)
        if not self._ctx:
            raise self._error(f"the projector file cannot be used with {weights.path.name}: {take_error()}")
        if not self._mtmd.mtmd_support_vision(self._ctx):
            self.close()
            raise self._error("the projector file is not for pictures")

    @contextmanager
    def seen(self, picture: Picture) -> Iterator["Seen"]:
        """A picture as the model will read it, as long as the context lasts."""
        mtmd = self._mtmd
        data = (ctypes.c_uint8 * len(picture.data)).from_buffer_copy(picture.data)
        take_error()
        bitmap = mtmd.mtmd_helper_bitmap_init_from_buf(self._ctx, data, len(picture.data), False)
        if not bitmap:
            raise ModelFileError(
                f"the picture cannot be decoded: {take_error()}",
                where=picture.file_name,
                fix="save it again as PNG or JPEG",
            )
        chunks = mtmd.mtmd_input_chunks_init()
        try:
            marker = mtmd.mtmd_default_marker()
            text = mtmd.mtmd_input_text(marker, len(marker), False, True)
            bitmaps = (mtmd.mtmd_bitmap_p_ctypes * 1)(bitmap)
            code = mtmd.mtmd_tokenize(self._ctx, chunks, ctypes.byref(text), bitmaps, 1)
            if code != 0:
                raise self._error(f"the picture cannot be prepared for the model ({code}): {take_error()}")
            seen = Seen(mtmd, self._ctx, chunks)
            if any(token < 0 for part in seen.stretches() if isinstance(part, list) for token in part):
                raise self._error("the model has no tokens for what the projector puts around a picture")
            yield seen
        finally:
            mtmd.mtmd_input_chunks_free(chunks)
            mtmd.mtmd_bitmap_free(bitmap)

    def close(self) -> None:
        if self._ctx:
            self._mtmd.mtmd_free(self._ctx)
            self._ctx = None

    def _error(self, message: str) -> ModelFileError:
        return ModelFileError(
            message,
            where=str(self.path),
            fix="name the projector file (mmproj-….gguf) that comes with the model, under models.…projector",
        )


class Seen:
    """A picture cut into what a context takes in."""

    def __init__(self, mtmd: Any, ctx: Any, chunks: Any) -> None:
        self._mtmd, self._ctx, self._chunks = mtmd, ctx, chunks

    @property
    def tokens(self) -> int:
        return int(self._mtmd.mtmd_helper_get_n_tokens(self._chunks))

    def stretches(self) -> Iterator[list[int] | Any]:
        """What the window takes in, in order: tokens that frame the picture, and parts of the picture."""
        mtmd = self._mtmd
        for index in range(mtmd.mtmd_input_chunks_size(self._chunks)):
            chunk = mtmd.mtmd_input_chunks_get(self._chunks, index)
            if mtmd.mtmd_input_chunk_get_type(chunk) == mtmd.MTMD_INPUT_CHUNK_TYPE_TEXT:
                count = ctypes.c_size_t()
                tokens = mtmd.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(count))
                yield list(tokens[: count.value])
            else:
                yield chunk

    def decode_into(self, llama: Any, chunk: Any, position: int, n_batch: int) -> tuple[int, int]:
        """Compute one part of the picture; llama.cpp's code, 0 for success, and the position behind it."""
        mtmd = self._mtmd
        code = int(mtmd.mtmd_encode_chunk(self._ctx, chunk))
        if code != 0:
            return code, position
        found = mtmd.mtmd_get_output_embd(self._ctx)
        no_callback = mtmd.mtmd_helper_post_decode_callback()
        behind = load_library().llama_pos(position)
        code = mtmd.mtmd_helper_decode_image_chunk(
            self._ctx, llama, chunk, found, position, 0, n_batch, ctypes.byref(behind), no_callback, None
        )
        return int(code), int(behind.value)
