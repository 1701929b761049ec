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
from panda.models.llama.gguf import SEQUENCE, Weights, load_library, load_multimodal, take_error


class Projector:
    """
    A loaded projector of that language model; *threads* None means all cores. ModelFileError where llama.cpp
    cannot load it, or it is not for this model, or not for pictures.
    """

    def __init__(self, path: Path, weights: Weights, *, threads: int | None = None) -> None:
        lib = load_library()
        self._mtmd = load_multimodal()
        self.path = path
        params = self._mtmd.mtmd_context_params_default()
        params.use_gpu = params.print_timings = params.warmup = False
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
            message = f"the picture cannot be decoded: {take_error()}"
            fix = "save it again as PNG or JPEG"
            raise ModelFileError(message, picture.file_name, fix=fix)
        chunks = mtmd.mtmd_input_chunks_init()
        try:
            marker = mtmd.mtmd_default_marker()
            text = mtmd.mtmd_input_text(marker, len(marker), False, True)
            bitmaps = (mtmd.mtmd_bitmap_p_ctypes * 1)(bitmap)
            code = mtmd.mtmd_tokenize(self._ctx, chunks, ctypes.byref(text), bitmaps, 1)
            if code != 0:
                raise self._error(f"the picture cannot be prepared for the model ({code}): {take_error()}")
            seen = Seen(mtmd, self._ctx, chunks)
            if any(token < 0 for part in seen.parts() for token in seen.frame_tokens(part)):
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
        fix = "name the projector file (mmproj-….gguf) that comes with the model, under models.…projector"
        return ModelFileError(message, str(self.path), fix=fix)


class Seen:
    """A picture cut into what a context takes in: tokens that frame it, and parts of the picture."""

    def __init__(self, mtmd: Any, ctx: Any, chunks: Any) -> None:
        self._mtmd = mtmd
        self._ctx = ctx
        self._chunks = chunks

    @property
    def tokens(self) -> int:
        return int(self._mtmd.mtmd_helper_get_n_tokens(self._chunks))

    def parts(self) -> Iterator[Any]:
        for index in range(self._mtmd.mtmd_input_chunks_size(self._chunks)):
            yield self._mtmd.mtmd_input_chunks_get(self._chunks, index)

    def frame_tokens(self, part: Any) -> list[int]:
        """Those of a part that frames the picture; none of a part of the picture."""
        if self._mtmd.mtmd_input_chunk_get_type(part) != self._mtmd.MTMD_INPUT_CHUNK_TYPE_TEXT:
            return []
        count = ctypes.c_size_t()
        tokens = self._mtmd.mtmd_input_chunk_get_tokens_text(part, ctypes.byref(count))
        return list(tokens[: count.value])

    def decode_into(self, llama: Any, part: Any, position: int, n_batch: int) -> tuple[int, int]:
        """Compute one part; llama.cpp's code, 0 for success, and the position behind it."""
        behind = load_library().llama_pos(position)
        code = self._mtmd.mtmd_helper_eval_chunk_single(
            self._ctx, llama, part, position, SEQUENCE, n_batch, False, ctypes.byref(behind)
        )
        return int(code), int(behind.value)
