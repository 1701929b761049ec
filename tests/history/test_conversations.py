"""What of an export becomes turns: ChatGPT's tree, Claude's list, and what neither can give."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.api import Panda
from tests.history.exports import chatgpt, claude, exchanges, said, saved_turns, write_export

UNTIMED: dict[str, Any] = {"untimed": True}
PICTURE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "width": 1}
ATTACHMENTS = [{"name": "a.pdf", "mime_type": "application/pdf"}, {"name": "b.png", "mime_type": "image/png"}]
SPOKEN = {"content_type": "audio_transcription", "text": "Hello there", "direction": "in"}
SOUND = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://1"}
CODE = {"content_type": "code", "language": "python", "text": "print(1)"}
CITATION = "\ue200cite\ue202turn0search3\ue201"
REFERENCES = [
    {"matched_text": CITATION, "alt": "([Shop](https://shop.example))"},
    {"matched_text": " ", "alt": "x"},
]
BLOCKS = [
    {"type": "thinking", "thinking": "hm"},
    {"type": "text", "text": "It is"},
    {"type": "tool_use", "name": "search"},
    {"type": "tool_result", "content": []},
    {"type": "text", "text": "seven."},
    5,
]


def edited() -> dict[str, Any]:
    """Return a talk of ChatGPT with an edited question, whose branch is current."""
    value = chatgpt(
        said("user", "First"), said("assistant", "One"), said("user", "Old"), said("assistant", "No")
    )
    for key, parent, message in (
        ("edit", "node-2", said("user", "New", create_time=1.8e9)),
        ("again", "edit", said("assistant", "Yes", create_time=1.8e9)),
    ):
        value["mapping"][key] = {"message": message, "parent": parent, "children": []}
    return {**value, "current_node": "again"}


def without_current(current: str | None) -> dict[str, Any]:
    """Return a talk with a newer reply, whose current node is not there."""
    value = chatgpt(said("user", "A"), said("assistant", "old"), current_node=current)
    value["mapping"]["new"] = {"message": said("assistant", "new", create_time=1.9e9), "parent": "node-1"}
    return value


def circular() -> dict[str, Any]:
    """Return a talk whose parents go round."""
    value = chatgpt(said("user", "A"), said("assistant", "B"))
    value["mapping"]["node-1"]["parent"] = "node-2"
    return value


def in_text_alone() -> dict[str, Any]:
    """Return a talk as an older Claude wrote it."""
    talk = claude(("human", "How many?"), ("assistant", "Seven."))
    for message in talk["chat_messages"]:
        del message["content"]
    return talk


def branched(current: int | None = None) -> dict[str, Any]:
    """Return a talk of Claude whose third message was said anew: two branches."""
    talk = claude(("human", "A"), ("assistant", "a"), ("human", "old"), ("assistant", "no"), ("human", "new"))
    talk["chat_messages"] += claude(("assistant", "yes"), number=2)["chat_messages"]
    ids = [message["uuid"] for message in talk["chat_messages"]]
    for message, parent in zip(talk["chat_messages"], (None, 0, 1, 2, 1, 4), strict=True):
        root = "00000000-0000-4000-8000-000000000000"
        message["parent_message_uuid"] = root if parent is None else ids[parent]
    return talk if current is None else {**talk, "current_leaf_message_uuid": ids[current]}


def with_damage(at: int, damage: dict[str, Any] | None) -> dict[str, Any]:
    """Return the talk of two branches with a message that does not read."""
    talk = branched()
    message = talk["chat_messages"][at]
    talk["chat_messages"][at] = 5 if damage is None else {**message, **damage}
    return talk


def with_files() -> dict[str, Any]:
    """Return a talk of Claude with blocks and files."""
    talk = claude(("human", "How many?"), ("assistant", BLOCKS))
    attachments = [{"file_name": "a.txt", "extracted_content": "x"}]
    talk["chat_messages"][0] |= {"attachments": attachments, "files": [{}]}
    return talk


IMPORTS: Mapping[str, tuple[dict[str, Any], Sequence[tuple[str, str]], Mapping[str, int]]] = {
    "the branch that was shown last counts": (
        edited(),
        [("First", "One"), ("New", "Yes")],
        {"message of another branch": 2},
    ),
    "without a current node the newest branch counts": (
        without_current(None),
        [("A", "new")],
        {"message of another branch": 1},
    ),
    "a current node that is gone does not count": (
        without_current("gone"),
        [("A", "new")],
        {"message of another branch": 1},
    ),
    "a circle of parents ends": (circular(), [("A", "B")], {}),
    "what nobody saw is left out": (
        chatgpt(
            said("system", ""),
            said("user", content_type="user_editable_context", user_profile="I am Ann"),
            said("user", "secret", metadata={"is_visually_hidden_from_conversation": True}),
            said("user", "Plot it"),
            said("assistant", content_type="thoughts", thoughts=[]),
            said("assistant", "print(1)", content_type="code", recipient="python"),
            said("tool", "1", content_type="execution_output"),
            said("assistant", content_type="reasoning_recap"),
            said("assistant", "Done."),
        ),
        [("Plot it", "Done.")],
        {"thought": 2, "tool message": 2},
    ),
    "words beside a picture come in, a picture alone is no query": (
        chatgpt(
            said(
                "user",
                PICTURE,
                "What is this?",
                content_type="multimodal_text",
                metadata={"attachments": ATTACHMENTS},
            ),
            said("assistant", "A cat."),
            said("user", PICTURE, content_type="multimodal_text"),
            said("assistant", "A dog."),
            said("user", "Draw one"),
            said("assistant", PICTURE, content_type="multimodal_text"),
        ),
        [("What is this?", "A cat.")],
        {"picture": 3, "file": 1, "reply without a query": 1, "query without a reply": 1},
    ),
    "what was spoken is text": (
        chatgpt(said("user", SPOKEN, SOUND, content_type="multimodal_text"), said("assistant", "Hi!")),
        [("Hello there", "Hi!")],
        {"file": 1},
    ),
    "code that was shown is a fence": (
        chatgpt(said("user", "Code?"), {**said("assistant"), "content": CODE}),
        [("Code?", "```python\nprint(1)\n```")],
        {},
    ),
    "references are links, other marks are nothing": (
        chatgpt(
            said("user", "Price?"),
            said(
                "assistant",
                f"It costs $9 {CITATION} in \ue200entity\ue202[1]\ue201Rome.",
                metadata={"content_references": REFERENCES},
            ),
        ),
        [("Price?", "It costs $9 ([Shop](https://shop.example)) in Rome.")],
        {},
    ),
    "messages in a row are one, and nothing is invented": (
        chatgpt(
            said("assistant", "Welcome!"),
            said("user", "One"),
            said("user", "Two"),
            said("assistant", "A"),
            said("assistant", "B"),
            said("user", "Three"),
        ),
        [("One\n\nTwo", "A\n\nB")],
        {"reply without a query": 1, "query without a reply": 1},
    ),
    "a damaged message joins nothing": (
        chatgpt(
            said("user", "One"),
            {"author": 5},
            said("assistant", "?"),
            said("user", "Two"),
            said("assistant", "B"),
        ),
        [("Two", "B")],
        {"damaged message": 1, "query without a reply": 1, "reply without a query": 1},
    ),
    "halves of characters are replaced": (
        chatgpt(said("user", "a\ud83d"), said("assistant", "\udc00b"), title="\ud83d"),
        [("a\ufffd", "\ufffdb")],
        {},
    ),
    "Claude says it in blocks": (
        with_files(),
        [("How many?", "It is\n\nseven.")],
        {"thought": 1, "tool message": 2, "other content": 1, "file": 2},
    ),
    "an older Claude says it in text alone": (in_text_alone(), [("How many?", "Seven.")], {}),
    "Claude branches by parents": (
        branched(),
        [("A", "a"), ("new", "yes")],
        {"message of another branch": 2},
    ),
    "the current message says which branch": (
        branched(3),
        [("A", "a"), ("old", "no")],
        {"message of another branch": 2},
    ),
    "an unknown sender joins nothing": (
        claude(("human", "A"), ("robot", "beep"), ("assistant", "a")),
        [],
        {"damaged message": 1, "query without a reply": 1, "reply without a query": 1},
    ),
}


def take_in(panda: Panda, *conversations: object, source: str = "") -> dict[str, Any]:
    """Import an export of these conversations and return what the command says of it."""
    path = write_export(panda.home / "conversations.json", *conversations)
    words = ["--from", source] if source else []
    data = panda.json("import", str(path), *words)
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize(("value", "turns", "left_out"), IMPORTS.values(), ids=IMPORTS)
def test_conversations_become_turns(
    panda: Panda,
    value: dict[str, Any],
    turns: Sequence[tuple[str, str]],
    left_out: Mapping[str, int],
) -> None:
    """Each message of the user with its reply is a turn; what cannot be one is counted by its kind."""
    assert take_in(panda, value)["left_out"] == left_out
    assert exchanges(panda) == turns


@pytest.mark.parametrize(
    ("value", "session", "at"),
    [
        (
            chatgpt(said("user", "How deep?"), said("assistant", "20 cm.")),
            "chatgpt-00000001-0000-4000-8000-000000000000",
            ["2023-11-15T22:14:20Z"],
        ),
        (
            claude(("human", "How deep?"), ("assistant", "20 cm.")),
            "claude-00000001-1111-4000-8000-000000000000",
            ["2024-05-01T12:00:00Z"],
        ),
        (
            chatgpt(said("user", "A", **UNTIMED), said("assistant", "a", **UNTIMED)),
            "chatgpt-00000001-0000-4000-8000-000000000000",
            ["2023-11-15T22:13:20Z"],
        ),
        (
            chatgpt(
                *[said("user", "A", **UNTIMED), said("assistant", "a", **UNTIMED)] * 2, said("assistant", "b")
            ),
            "chatgpt-00000001-0000-4000-8000-000000000000",
            ["2023-11-15T22:13:20Z", "2023-11-15T22:18:20Z"],
        ),
    ],
)
def test_times_and_sessions(panda: Panda, value: dict[str, Any], session: str, at: list[str]) -> None:
    """The message's time, else the reply's, what was said before, the conversation's; its id is a session."""
    take_in(panda, value)
    assert [(turn.session, turn.at) for turn in saved_turns(panda)] == [(session, time) for time in at]


@pytest.mark.parametrize(("created", "updated"), [(None, None), (1e300, -1e300)])
def test_without_any_time_nothing_comes_in(
    panda: Panda, created: float | None, updated: float | None
) -> None:
    """An exchange of which nobody knows when it was is counted."""
    messages = (said("user", "A", **UNTIMED), said("assistant", "a", **UNTIMED))
    data = take_in(panda, chatgpt(*messages, create_time=created, update_time=updated))
    assert (exchanges(panda), data["left_out"]) == ([], {"exchange without a time": 1})


@pytest.mark.parametrize(
    ("source", "values"),
    [
        (
            "chatgpt",
            [
                {"mapping": []},
                {"mapping": {}},
                {"mapping": {"a": 1}},
                {**chatgpt(said("user", "A"), said("assistant", "b")), "title": 5},
                {**chatgpt(said("user", "A"), said("assistant", "b")), "create_time": [1]},
            ],
        ),
        ("claude", [{"chat_messages": 5}, {**claude(("human", "A"), ("assistant", "b")), "name": 5}]),
    ],
)
def test_what_is_no_conversation_is_counted(panda: Panda, source: str, values: list[object]) -> None:
    """Other values, and conversations with keys of other types."""
    data = take_in(panda, *values, None, [], "x", {}, source=source)
    assert (exchanges(panda), data["left_out"]) == ([], {"damaged conversation": len(values) + 4})


@pytest.mark.parametrize(
    ("at", "damage", "turns", "lost"),
    [
        (1, {"sender": 5}, [("new", "yes")], {"damaged message": 1, "message of another branch": 2}),
        (1, None, [("new", "yes")], {"damaged message": 1, "message of another branch": 2}),
        (3, {"text": 5}, [("A", "a"), ("new", "yes")], {"message of another branch": 2}),
        (3, None, [("A", "a"), ("new", "yes")], {"message of another branch": 2}),
    ],
)
def test_a_damaged_message_leaves_the_branches_apart(
    panda: Panda,
    at: int,
    damage: dict[str, Any] | None,
    turns: list[tuple[str, str]],
    lost: dict[str, int],
) -> None:
    """One message that does not read costs its own turn alone; what was said anew stays left out."""
    data = take_in(panda, with_damage(at, damage))
    assert exchanges(panda) == turns
    assert data["left_out"].items() >= lost.items()
