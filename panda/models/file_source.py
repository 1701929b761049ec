"""A model file of this machine, as it can be added to models.yaml."""

import os
from pathlib import Path

from panda.errors import ModelFileError, NotFoundError
from panda.models.llama.gguf import GgufFile
from panda.models.llama.trial import describe_model
from panda.models.offered_model import USUAL_WINDOW_TOKENS, OfferedModel


def describe_file(path: Path, *, cache_dir: Path, relative_to: Path) -> OfferedModel:
    """
    Return what the header of a GGUF says, read in a worker process once the file has loaded there.

    Args:
        path: The file.
        cache_dir: Where its digest is kept, and that it loads.
        relative_to: The directory of models.yaml: a file below it is named by its relative path.

    Raises:
        NotFoundError: There is no such file.
        ModelFileError: It is no model, or cannot be loaded.
    """
    if not path.is_file():
        raise NotFoundError(
            f"there is no model file {path.name}", where=str(path), fix="check how it is spelt"
        )
    description = describe_model(GgufFile(path, cache_dir))
    window = min(description.n_ctx_train, USUAL_WINDOW_TOKENS)
    if window < 1:
        raise ModelFileError("the model file tells no window", str(path), fix="get a complete copy of it")
    return OfferedModel(
        backend="llama_cpp",
        location=locate_file(path, relative_to=relative_to),
        model=path.stem,
        n_ctx=window,
        n_ctx_trained=description.n_ctx_train,
        is_encoder=description.is_encoder,
        architecture=description.architecture,
        has_chat_template=description.has_chat_template,
        size_bytes=path.stat().st_size,
    )


def locate_file(path: Path, *, relative_to: Path) -> str:
    """Return the path of a file as it stands in a models.yaml of that directory."""
    place = Path(os.path.abspath(path))  # noqa: PTH100 - a link stays the name of what it leads to
    directory = Path(os.path.abspath(relative_to))  # noqa: PTH100
    if place.is_relative_to(directory):
        return place.relative_to(directory).as_posix()
    return str(place)
