"""What of an export becomes turns: ChatGPT's tree, Claude's list, and what neither can give."""

from pathlib import Path
from typing import Any

import pytest

from panda.exchange.chatgpt import parse_chatgpt
from panda.exchange.claude import parse_claude
from panda.exchange.conversation import Conversation, ConversationError, Kind, exchanges_of
from panda.exchange.files import ExportFile, find_source
from tests.history.exports import chatgpt, claude, said, write_export


def turns(conversation: Conversation) -> list[tuple[str, str]]:
    return [(one.query, one.response) for one in exchanges_of(conversation)[0]]


def left(conversation: Conversation) -> dict[Kind, int]:
    return dict(exchanges_of(conversation)[1])


def test_a_message_and_its_reply_are_a_turn() -> None:
    """Time in whole seconds of the message; the session is the conversation's id."""
    found = parse_chatgpt(chatgpt(said("user", "How deep?"), said("assistant", "20 cm.")))
    assert found.session == "chatgpt-00000001-0000-4000-8000-000000000000"
    (exchange,) = exchanges_of(found)[0]
    assert (exchange.query, exchange.response) == ("How deep?", "20 cm.")
    assert exchange.at.isoformat() == "2023-11-15T22:14:20+00:00"
    assert left(found) == {}


def test_the_branch_that_was_shown_last_counts() -> None:
    """An edited question and a reply made anew: what is not on the way to current_node is counted."""
    value = chatgpt(
        said("user", "First"), said("assistant", "One"), said("user", "Old"), said("assistant", "No")
    )
    nodes = value["mapping"]
    nodes["edit"] = {
        "message": said("user", "New", create_time=1.8e9),
        "parent": "node-2",
        "children": ["again"],
    }
    nodes["again"] = {
        "message": said("assistant", "Yes", create_time=1.8e9),
        "parent": "edit",
        "children": [],
    }
    found = parse_chatgpt({**value, "current_node": "again"})
    assert turns(found) == [("First", "One"), ("New", "Yes")]
    assert left(found) == {"message of another branch": 2}


@pytest.mark.parametrize("current", [None, "gone"])
def test_without_a_current_node_the_newest_branch_counts(current: str | None) -> None:
    value = chatgpt(said("user", "A"), said("assistant", "old"), current_node=current)
    value["mapping"]["new"] = {"message": said("assistant", "new", create_time=1.9e9), "parent": "node-1"}
    assert turns(parse_chatgpt(value)) == [("A", "new")]


def test_a_circle_of_parents_ends() -> None:
    value = chatgpt(said("user", "A"), said("assistant", "B"))
    value["mapping"]["node-1"]["parent"] = "node-2"
    assert turns(parse_chatgpt(value)) == [("A", "B")]


def test_what_nobody_saw_is_left_out() -> None:
    """System and hidden messages, custom instructions, thoughts, calls of tools and what they gave."""
    found = parse_chatgpt(
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
        )
    )
    assert turns(found) == [("Plot it", "Done.")]
    assert left(found) == {"thought": 2, "tool message": 2}


def test_pictures_and_files_are_counted() -> None:
    """The words beside a picture come in; a message that is a picture alone is no query."""
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "width": 1}
    attachments = [
        {"name": "a.pdf", "mime_type": "application/pdf"},
        {"name": "b.png", "mime_type": "image/png"},
    ]
    found = parse_chatgpt(
        chatgpt(
            said(
                "user",
                picture,
                "What is this?",
                content_type="multimodal_text",
                metadata={"attachments": attachments},
            ),
            said("assistant", "A cat."),
            said("user", picture, content_type="multimodal_text"),
            said("assistant", "A dog."),
            said("user", "Draw one"),
            said("assistant", picture, content_type="multimodal_text"),
        )
    )
    assert turns(found) == [("What is this?", "A cat.")]
    assert left(found) == {"picture": 3, "file": 1, "reply without a query": 1, "query without a reply": 1}


def test_what_was_spoken_is_text() -> None:
    spoken = {"content_type": "audio_transcription", "text": "Hello there", "direction": "in"}
    sound = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://1"}
    talk = chatgpt(said("user", spoken, sound, content_type="multimodal_text"), said("assistant", "Hi!"))
    assert turns(parse_chatgpt(talk)) == [("Hello there", "Hi!")]


def test_code_that_was_shown_is_a_fence() -> None:
    code = {"content_type": "code", "language": "python", "text": "print(1)"}
    talk = chatgpt(said("user", "Code?"), {**said("assistant"), "content": code})
    assert turns(parse_chatgpt(talk)) == [("Code?", "```python\nprint(1)\n```")]


def test_marks_give_way_to_what_they_stand_for() -> None:
    """References to sources are links in the reply that was shown; others are nothing there."""
    cite, name = "\ue200cite\ue202turn0search3\ue201", "\ue200entity\ue202[1]\ue201"
    refs = [
        {"matched_text": cite, "alt": "([Shop](https://shop.example))"},
        {"matched_text": " ", "alt": "x"},
    ]
    reply = said("assistant", f"It costs $9 {cite} in {name}Rome.", metadata={"content_references": refs})
    ((_, text),) = turns(parse_chatgpt(chatgpt(said("user", "Price?"), reply)))
    assert text == "It costs $9 ([Shop](https://shop.example)) in Rome."


def test_nothing_is_invented() -> None:
    """Messages in a row are one; a query without a reply, and a reply without a query, are no turn."""
    found = parse_chatgpt(
        chatgpt(
            said("assistant", "Welcome!"),
            said("user", "One"),
            said("user", "Two"),
            said("assistant", "A"),
            said("assistant", "B"),
            said("user", "Three"),
        )
    )
    assert turns(found) == [("One\n\nTwo", "A\n\nB")]
    assert left(found) == {"reply without a query": 1, "query without a reply": 1}


def test_a_damaged_message_joins_nothing() -> None:
    """Its neighbours are not made one: who asked what is not known there."""
    found = parse_chatgpt(
        chatgpt(
            said("user", "One"),
            {"author": 5},
            said("assistant", "?"),
            said("user", "Two"),
            said("assistant", "B"),
        )
    )
    assert turns(found) == [("Two", "B")]
    assert left(found) == {
        "damaged message": 1,
        "query without a reply": 1,
        "reply without a query": 1,
    }


def test_times_that_are_missing() -> None:
    """The reply's, else what was said before, else the conversation's; none at all is no turn."""
    none: dict[str, Any] = {"untimed": True}
    messages = (said("user", "A", **none), said("assistant", "a", **none))
    first = exchanges_of(parse_chatgpt(chatgpt(*messages)))[0]
    assert [one.at.isoformat() for one in first] == ["2023-11-15T22:13:20+00:00"]
    late = exchanges_of(parse_chatgpt(chatgpt(*messages, *messages, said("assistant", "b"))))[0]
    assert [one.at.isoformat() for one in late] == ["2023-11-15T22:13:20+00:00", "2023-11-15T22:18:20+00:00"]
    nowhen = parse_chatgpt(chatgpt(*messages, create_time=None, update_time=None))
    assert (turns(nowhen), left(nowhen)) == ([], {"exchange without a time": 1})
    never = parse_chatgpt(chatgpt(*messages, create_time=1e300, update_time=-1e300))
    assert left(never) == {"exchange without a time": 1}


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "x",
        {},
        {"mapping": []},
        {"mapping": {}},
        {"mapping": {"a": 1}},
        {**chatgpt(said("user", "A")), "title": 5},
        {**chatgpt(said("user", "A")), "create_time": [10**400]},
    ],
)
def test_what_is_no_conversation_is_told(value: object) -> None:
    with pytest.raises(ConversationError):
        parse_chatgpt(value)
    with pytest.raises(ConversationError):
        parse_claude(value)


def test_halves_of_characters_are_replaced() -> None:
    found = parse_chatgpt(chatgpt(said("user", "a\ud83d"), said("assistant", "\udc00b"), title="\ud83d"))
    assert (turns(found), found.title) == ([("a\ufffd", "\ufffdb")], "\ufffd")


def test_claude_says_it_in_blocks() -> None:
    """Blocks of text come in; tools and thoughts do not, nor what stands in their place in `text`."""
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "It is"},
        {"type": "tool_use", "name": "search"},
        {"type": "tool_result", "content": []},
        {"type": "text", "text": "seven."},
        5,
    ]
    talk = claude(("human", "How many?"), ("assistant", blocks))
    talk["chat_messages"][0] |= {
        "attachments": [{"file_name": "a.txt", "extracted_content": "x"}],
        "files": [{}],
    }
    found = parse_claude(talk)
    assert found.session == "claude-00000001-1111-4000-8000-000000000000"
    assert turns(found) == [("How many?", "It is\n\nseven.")]
    assert left(found) == {"thought": 1, "tool message": 2, "other content": 1, "file": 2}
    assert exchanges_of(found)[0][0].at.isoformat() == "2024-05-01T12:00:00+00:00"


def test_an_older_claude_says_it_in_text_alone() -> None:
    talk = claude(("human", "How many?"), ("assistant", "Seven."))
    for message in talk["chat_messages"]:
        del message["content"]
    assert turns(parse_claude(talk)) == [("How many?", "Seven.")]


def branched() -> dict[str, Any]:
    """A talk of Claude whose third message was said anew: two branches."""
    talk = claude(("human", "A"), ("assistant", "a"), ("human", "old"), ("assistant", "no"), ("human", "new"))
    talk["chat_messages"] += claude(("assistant", "yes"), number=2)["chat_messages"]
    parents = (None, 0, 1, 2, 1, 4)
    ids = [one["uuid"] for one in talk["chat_messages"]]
    for message, parent in zip(talk["chat_messages"], parents, strict=True):
        message["parent_message_uuid"] = (
            "00000000-0000-4000-8000-000000000000" if parent is None else ids[parent]
        )
    return talk


def test_claude_branches_by_parents() -> None:
    """The branch that ends with the current message, or with the last one, is followed."""
    talk = branched()
    found = parse_claude(talk)
    assert turns(found) == [("A", "a"), ("new", "yes")]
    assert left(found) == {"message of another branch": 2}
    back = parse_claude({**talk, "current_leaf_message_uuid": talk["chat_messages"][3]["uuid"]})
    assert turns(back) == [("A", "a"), ("old", "no")]


@pytest.mark.parametrize(
    ("at", "damage", "said", "lost"),
    [
        (1, {"sender": 5}, [("new", "yes")], {"damaged message": 1, "message of another branch": 2}),
        (1, None, [("new", "yes")], {"damaged message": 1, "message of another branch": 2}),
        (3, {"text": 5}, [("A", "a"), ("new", "yes")], {"message of another branch": 2}),
        (3, None, [("A", "a"), ("new", "yes")], {"message of another branch": 2}),
    ],
)
def test_a_damaged_message_leaves_the_branches_apart(
    at: int, damage: dict[str, Any] | None, said: list[tuple[str, str]], lost: dict[str, int], tmp_path: Path
) -> None:
    """One message that does not read costs its own turn alone; what was said anew stays left out."""
    talk = branched()
    message = talk["chat_messages"][at]
    talk["chat_messages"][at] = 5 if damage is None else {**message, **damage}
    path = write_export(tmp_path / "conversations.json", talk)
    (found,) = ExportFile(path, path.name, find_source(path, path.name)).conversations()
    assert isinstance(found, Conversation)
    assert turns(found) == said
    assert left(found).items() >= lost.items()


def test_an_unknown_sender_joins_nothing() -> None:
    found = parse_claude(claude(("human", "A"), ("robot", "beep"), ("assistant", "a")))
    assert (turns(found), left(found)["damaged message"]) == ([], 1)
