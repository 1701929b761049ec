"""One loaded GGUF: its weights, its tokenizer, and the grammar tokenizer made from it."""

import ctypes
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from panda.errors import ModelFileError
from panda.models.llama.library import load_library, take_error

_SPECIAL_BYTE = b"\xff"  # how llguidance tells control tokens from text


class Weights:
    """
    A GGUF in memory.

    Args:
        path: The file to load.

    Raises:
        ModelFileError: llama.cpp cannot load it.
    """

    def __init__(self, path: Path) -> None:
        lib = self._lib = load_library()
        self.path = path
        take_error()
        params = lib.llama_model_default_params()
        # Repacked weights go through code of one kind of processor (AMX): other sums than elsewhere, and with
        # some compilers a crash.
        params.use_extra_bufts = False
        self.model: Any = lib.llama_model_load_from_file(os.fsencode(path), params)
        if not self.model:
            raise ModelFileError(
                f"the model file cannot be loaded: {take_error()}",
                where=str(path),
                fix="get a complete copy of the file, or name another model in models.yaml",
            )
        self.vocab: Any = lib.llama_model_get_vocab(self.model)
        self.n_vocab = int(lib.llama_vocab_n_tokens(self.vocab))
        self.n_params = int(lib.llama_model_n_params(self.model))
        self.n_embd = int(lib.llama_model_n_embd(self.model))
        self.n_ctx_train = int(lib.llama_model_n_ctx_train(self.model))
        self.bos = int(lib.llama_vocab_bos(self.vocab))
        self.eos = int(lib.llama_vocab_eos(self.vocab))
        self.adds_bos = bool(lib.llama_vocab_get_add_bos(self.vocab))
        template = lib.llama_model_chat_template(self.model, None)
        self.chat_template: str | None = template.decode("utf-8", "replace") if template else None

    @property
    def depends_on_window(self) -> bool:
        """Whether values depend on the size of the window: such a model turns positions in two ways."""
        kind = self._read_text("general.architecture")
        return bool(self._read_text(f"{kind}.rope.scaling.original_context_length"))

    def _read_text(self, key: str) -> str:
        """One entry of the file's head; empty if there is none."""
        buffer = ctypes.create_string_buffer(64)
        count = self._lib.llama_model_meta_val_str(self.model, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if count > 0 else ""

    def tokenise(self, text: str, *, special: bool = False, with_ends: bool = False) -> list[int]:
        """
        Tokens of a text.

        Args:
            text: Any text; lone surrogates count as "?".
            special: Whether `<|…|>` and the like are control tokens rather than plain text.
            with_ends: Whether the tokens that begin and end a text for this model are added.
        """
        data = text.encode("utf-8", "replace")
        if not data and not with_ends:
            return []
        room = len(data) + 8
        buffer = (self._lib.llama_token * room)()
        count = self._lib.llama_tokenize(self.vocab, data, len(data), buffer, room, with_ends, special)
        if count < 0:
            room = -count
            buffer = (self._lib.llama_token * room)()
            count = self._lib.llama_tokenize(self.vocab, data, len(data), buffer, room, with_ends, special)
        return list(buffer[:count])

    def piece(self, token: int, *, special: bool = False) -> bytes:
        """The bytes of one token; control tokens are empty unless *special*."""
        buffer = ctypes.create_string_buffer(256)
        count = self._lib.llama_token_to_piece(self.vocab, token, buffer, len(buffer), 0, special)
        if count < 0:
            buffer = ctypes.create_string_buffer(-count)
            count = self._lib.llama_token_to_piece(self.vocab, token, buffer, len(buffer), 0, special)
        return bytes(buffer.raw[:count])

    def ends(self, token: int) -> bool:
        """Whether the token ends a reply (end of text, of turn, …)."""
        return bool(self._lib.llama_vocab_is_eog(self.vocab, token))

    @cached_property
    def grammar_tokenizer(self) -> Any:
        """The vocabulary as llguidance needs it; takes about a second, so it is made once."""
        # As llguidance.llamacpp.lltokenizer_from_vocab does, but without llama.cpp's deprecated calls.
        from llguidance import LLTokenizer

        lib = self._lib
        control, user = lib.LLAMA_TOKEN_ATTR_CONTROL, lib.LLAMA_TOKEN_ATTR_USER_DEFINED
        pieces, ends = [], []
        for token in range(self.n_vocab):
            piece = self.piece(token, special=True)
            kind = lib.llama_vocab_get_attr(self.vocab, token)
            is_marked = piece.startswith(b"<") and piece.endswith(b">")
            is_special = kind & control or (kind & user and is_marked)
            pieces.append(_SPECIAL_BYTE + piece if is_special else piece)
            if self.ends(token):
                ends.append(token)
        function = ctypes.cast(lib._lib.llama_tokenize, ctypes.c_void_p).value
        return LLTokenizer.from_llamacpp(  # type: ignore[attr-defined] # missing in its stubs
            tokens=pieces,
            vocab_ptr=self.vocab,
            tokenize_fptr=function,
            eos_token=ends or [self.eos],
            slices=LLTokenizer.json_slices(),
        )

    def close(self) -> None:
        """Free the memory. Contexts made from it must be closed before."""
        if self.model:
            self._lib.llama_model_free(self.model)
            self.model = None
