"""`panda turn --image`: an image described by EYES, as part of a whole turn."""

from pathlib import Path
from typing import Any

import pytest

from tests.api import ScriptedPanda, Turn
from tests.loopback import reply
from tests.models.projectors import png
from tests.script import Request, Script, step_of

SEEN = "A laptop with the label Lenovo LOQ 15 and a price tag of $999."
QUERY = "How much is this one?"
IMAGE = ("--image", "photo.png")


@pytest.fixture
def seeing(ann: ScriptedPanda) -> ScriptedPanda:
    """Ann's laptops, whose server describes images, and an image."""
    ann.write("photo.png", png())
    ann.write("models.yaml", ann.server.models().replace("EYES: null", "EYES: scripted"))
    usual = ann.server.answer
    ann.server.answer = lambda body: reply(SEEN) if pictures([body]) else usual(body)
    return ann


def pictures(bodies: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The messages that show an image, each as its parts."""
    messages = [message["content"] for body in bodies for message in body["messages"]]
    return [content for content in messages if isinstance(content, list)]


def ask(seeing: ScriptedPanda, **replies: Any) -> Turn:
    """A turn with the image."""
    return seeing.turn(QUERY, *IMAGE, script=Script(**replies))


def test_description_is_read_and_never_a_fact(seeing: ScriptedPanda) -> None:
    """Phases 0 and 2 read the description with whose words it is; no node, line or memory comes of it."""
    turn = ask(seeing)
    image = turn.file("image.json")
    assert (image["description"], image["model"], image["layer"]) == (SEEN, "scripted", "EYES")
    assert (turn.directory / image["file"]).read_bytes() == png()
    assert turn.data["image"]["description"] == SEEN
    (image_parts,) = pictures(seeing.server.asked)
    assert [part["type"] for part in image_parts] == ["image_url", "text"]
    requests = [Request(body) for body in seeing.server.asked if not pictures([body])]
    for step in ("analyzer", "retrieval", "synthesis", "planner"):
        texts = [request.text for request in requests if step_of(request) == step]
        assert f"describes it in its own words, which nobody has checked:\n\n{SEEN}" in texts[0]
    assert "$999" not in turn.body(2) + turn.response
    assert "$999" not in (seeing.user_directory / "memory.jsonl").read_text(encoding="utf-8")
    assert turn.meta(0)["provenance"] == ["§0.raw_query", "image.json"]
    assert turn.status == "approved"
    assert seeing.problems() == []


def test_replay_uses_the_description(seeing: ScriptedPanda) -> None:
    """A simulation asks EYES nothing, misses nothing and gives the same turn."""
    ask(seeing)
    seeing.server.asked.clear()
    (replayed,) = seeing.json("replay", "3")["turns"]
    assert (replayed["result"], seeing.server.asked) == ("same", [])


def test_resume_uses_the_description(seeing: ScriptedPanda) -> None:
    """A turn that halts after its image was described goes on without looking again."""
    assert ask(seeing, planner="no JSON").code == 20
    seeing.resume(3)
    assert len(pictures(seeing.server.asked)) == 1


def test_changed_image_is_found(seeing: ScriptedPanda) -> None:
    """An image that was exchanged in the turn's directory is a finding of `panda validate`."""
    turn = ask(seeing)
    (turn.directory / turn.metadata["image"]).write_bytes(png(colour=(0, 0, 9)))
    assert ["has changed" in problem for problem in seeing.problems()] == [True]


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (png(), 2, "the layer EYES has no model"),
        (png()[:60], 2, "cut short"),
        (b"GIF89a", 2, "neither a PNG nor a JPEG"),
        (None, 74, "No such file"),
    ],
)
def test_no_number_is_claimed(data: bytes | None, code: int, message: str, ann: ScriptedPanda) -> None:
    """EYES unset, and an image that is missing or damaged, end the command before a turn has a number."""
    path: Path = ann.write("photo.png", data or b"")
    if data is None:
        path.unlink()
    ended = ann.turn(QUERY, *IMAGE)
    assert (ended.code, message in ended.error["message"]) == (code, True)
    if "EYES" in message:
        assert ended.error["where"].endswith(" (layers.EYES)")
        assert "models.yaml" in ended.error["fix"]
    assert not ann.turn_file(3, "").exists()
