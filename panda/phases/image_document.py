"""The image of a turn: described once by the layer EYES, and what the phases read of that description."""

from panda.errors import HaltError
from panda.phases.asking import ask
from panda.phases.turn import Turn
from panda.recipes.executor import RecipeExecutor
from panda.storage.layout import IMAGE_JSON
from panda.storage.turns import load_picture


def describe_image(executor: RecipeExecutor, turn: Turn) -> None:
    """
    Write image.json: what the model of EYES says it sees. A turn without an image has none, and a description
    that is there already stays.

    Raises:
        HaltError: The image of the turn is not the one that was given, or the model gave no description.
    """
    if turn.image is None:
        return
    if turn.folder.has(IMAGE_JSON):
        turn.count_execution(executor.book.key_for("phase0_describe_image", turn.mode))
        return
    path = turn.folder.paths / turn.image
    picture = load_picture(path)
    if picture.file_name != path.name:
        raise HaltError(
            "the image of the turn has changed since it was given",
            where=str(path),
            fix="ask it as a new turn",
            expected=f"bytes with the digest in its name, {path.name}",
            received=picture.sha256,
        )
    reply = ask(executor, "phase0_describe_image", turn, pictures=(picture,))
    call = turn.calls[-1]
    turn.folder.write_json(
        IMAGE_JSON,
        {
            "file": turn.image,
            "sha256": picture.sha256,
            "media_type": picture.media_type,
            "bytes": len(picture.data),
            "width": picture.width,
            "height": picture.height,
            "description": str(reply.values["text"]).strip(),
            "recipe": reply.recipe.key,
            "layer": reply.recipe.model_layer,
            "model": call["model"],
            "model_digest": call["hashes"]["model"],
        },
    )
