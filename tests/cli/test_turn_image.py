"""`panda turn --image`: an image described by EYES, as part of a whole turn."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from panda.documents.times import render_time
from panda.errors import HaltError
from panda.models.contract import GenerateParams, Message
from panda.runs.replay import simulate
from panda.store.turns import load_picture
from panda.store.validate import check_store
from tests.api import Ended, run_here
from tests.builders import NOW, file_of
from tests.loopback import Server, reply
from tests.models.projectors import png
from tests.script import Script, step_of
from tests.scripted_model import Asked, ScriptedModel
from tests.scripted_turns import OneModel, Ran, laptop_store, scripted_app

SEEN = "A laptop with the label Lenovo LOQ 15 and a price tag of $999."
QUERY = "How much is this one?"


class Seeing:
    """Describes images, and else replies as a script does."""

    def __init__(self) -> None:
        self.script = Script()
        self.shown: list[str] = []

    def __call__(self, asked: Asked) -> Any:
        pictures = [one for message in asked.messages for one in message.pictures]
        self.shown += [one.sha256 for one in pictures]
        return SEEN if pictures else self.script(asked)


def run(root: Path) -> tuple[Ran, Seeing]:
    """A turn with an image."""
    (root / "photo.png").write_bytes(png())
    layout, seeing = laptop_store(root / "store"), Seeing()
    model = ScriptedModel(seeing, writes=True, scores=False)
    app = scripted_app(layout, model)
    turn = app.start_turn(QUERY, "chat", picture=load_picture(root / "photo.png"))
    app.run_turn(turn)
    return Ran(app, turn, None, model), seeing


def asked_at(ran: Ran, step: str) -> list[Asked]:
    """What the text layers were asked at a step."""
    with_schema = [one for one in ran.model.asked if getattr(one.params, "schema", None)]
    return [asked for asked in with_schema if step_of(asked) == step]


def test_description_is_read_and_never_a_fact(tmp_path: Path) -> None:
    """Phases 0 and 2 read the description with whose words it is; no node, line or memory comes of it."""
    ran, seeing = run(tmp_path)
    image = file_of(ran.folder, "image.json")
    assert (image["description"], image["model"], image["layer"]) == (SEEN, "scripted", "EYES")
    assert (ran.folder.paths / image["file"]).read_bytes() == png()
    assert seeing.shown == [image["sha256"]]
    for step in ("analyzer", "retrieval", "synthesis", "planner"):
        (asked,) = asked_at(ran, step)
        assert f"describes it in its own words, which nobody has checked:\n\n{SEEN}" in asked.text
    assert "$999" not in ran.body(2) + ran.response
    assert "$999" not in ran.layout.of(ran.turn.user_id).memory_log.read_text(encoding="utf-8")
    assert ran.meta(0)["provenance"] == ["§0.raw_query", "image.json"]
    assert ran.metadata.status == "approved"
    assert ran.problems == []


def test_replay_uses_the_description(tmp_path: Path) -> None:
    """A simulation asks EYES nothing, misses nothing and gives the same turn."""
    ran, _ = run(tmp_path)
    silent = OneModel(ScriptedModel(lambda asked: None, writes=True, scores=False))
    found = simulate(ran.app.settings, ran.layout, silent, ran.turn.turn, work=tmp_path / "run")
    assert (found.misses, found.different, found.result) == ((), {}, "same")
    assert silent.scripted.asked == []


def test_resume_uses_the_description(tmp_path: Path) -> None:
    """A turn that halts after its image was described goes on without looking again."""
    (tmp_path / "photo.png").write_bytes(png())
    layout, seeing = laptop_store(tmp_path / "store"), Seeing()
    seeing.script = Script(reflection=[HaltError("stop"), {"decision": "PROCEED", "question": ""}])
    app = scripted_app(layout, ScriptedModel(seeing, writes=True, scores=False))
    turn = app.start_turn(QUERY, "chat", picture=load_picture(tmp_path / "photo.png"))
    with pytest.raises(HaltError, match="stop"):
        app.run_turn(turn)
    app.run_turn(app.resume_turn(turn.turn))
    assert turn.folder.read_metadata().status == "approved"
    assert len(seeing.shown) == 1


def test_changed_image_is_found(tmp_path: Path) -> None:
    """An image that was exchanged in the turn's directory is a finding of `panda validate`."""
    ran, _ = run(tmp_path)
    (ran.folder.paths / str(ran.metadata.image)).write_bytes(png(colour=(0, 0, 9)))
    assert ["has changed" in problem.message for problem in ran.problems] == [True]


def panda(root: Path, image: Path, *words: str, models: str = "") -> Ended:
    """`panda turn --image` on a store of its own."""
    environ = {
        "PANDA_ROOT": str(root / "store"),
        "PANDA_USER": "ann",
        "PANDA_CACHE_DIR": str(root / "cache"),
        "PANDA_NOW": render_time(NOW),
    }
    if models:
        (root / "models.yaml").write_text(models, encoding="utf-8")
        environ["PANDA_MODELS_FILE"] = str(root / "models.yaml")
    return run_here(["turn", QUERY, "--image", str(image), "--json", *words], environ)


@pytest.mark.parametrize(
    ("data", "code", "said"),
    [
        (png(), 2, "the layer EYES has no model"),
        (png()[:60], 2, "cut short"),
        (b"GIF89a", 2, "neither a PNG nor a JPEG"),
        (None, 74, "No such file"),
    ],
)
def test_no_number_is_claimed(data: bytes | None, code: int, said: str, tmp_path: Path) -> None:
    """EYES unset, and an image that is missing or damaged, end the command before a turn has a number."""
    layout = laptop_store(tmp_path / "store")
    image = tmp_path / "photo.png"
    if data is not None:
        image.write_bytes(data)
    ended = panda(tmp_path, image)
    assert ended.value["exit_code"] == code
    assert said in ended.value["error"]["message"]
    if "EYES" in said:
        assert ended.value["error"]["where"].endswith(" (layers.EYES)")
        assert "models.yaml" in ended.value["error"]["fix"]
    assert not layout.of("ann").turn(3).directory.exists()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def test_a_server_describes(tmp_path: Path, server: Server) -> None:
    """With EYES and every other layer on an OpenAI-compatible server, a whole turn with an image runs."""
    seeing = Seeing()
    layout = laptop_store(tmp_path / "store")
    (tmp_path / "photo.png").write_bytes(png())
    server.answer = lambda body: answer_of(body, seeing)
    entry = f"  s: {{backend: openai, location: '{server.url}', model: m, n_ctx: 16384, writes: true}}\n"
    layers = ", ".join(f"{layer}: s" for layer in ("REFLEX", "NERVES", "MIND", "VOICE", "EYES"))
    ended = panda(tmp_path, tmp_path / "photo.png", models=f"models:\n{entry}layers: {{{layers}}}\n")
    assert ended.code == 0, ended.out
    assert ended.value["data"]["image"]["description"] == SEEN
    shown = [one for body in server.asked for one in body["messages"] if isinstance(one["content"], list)]
    assert [part["type"] for part in shown[0]["content"]] == ["image_url", "text"]
    assert len(shown) == 1
    assert check_store(layout) == []


def answer_of(body: dict[str, Any], seeing: Seeing) -> tuple[int, bytes]:
    """What the server says: the description of an image, else the script's reply."""
    if any(isinstance(message["content"], list) for message in body["messages"]):
        return reply(SEEN)
    schema = body["response_format"]["json_schema"]["schema"]
    asked = Asked(
        messages=tuple(Message(one["role"], one["content"]) for one in body["messages"]),
        params=GenerateParams(0, 1, 0, 1, schema),
    )
    assert step_of(asked)
    return reply(str(seeing.script(asked)))
