"""Turn directories: numbers are claimed once, files are checked against their schemas."""

import json
import threading
from pathlib import Path

import pytest
from msgspec import structs

from panda.documents.context import Section, Text
from panda.documents.records import encode
from panda.errors import DocumentError, FileFormatError, NotFoundError, UsageError
from panda.store.layout import UserStore
from panda.store.records import (
    ChoiceCall,
    Claim,
    ForgottenCall,
    Metadata,
    Next,
    Option,
    Prefix,
    Reflection,
    Step,
    Usage,
)
from panda.store.turns import claim_turn
from tests.builders import NOW, still_clock

CALL = ChoiceCall(
    n=1,
    phase=0,
    recipe="pipeline/phase0_query_analyzer",
    attempt=0,
    hashes={"recipe": "ab", "prompts": "cd", "schema": "ef", "model": "01"},
    property="intent",
    prefix=Prefix("ab", "Message: hello"),
    options=(Option("", " query", -1.5, 1),),
    usage=Usage(10, None, 1),
    seconds=0.1,
)


@pytest.fixture
def store(tmp_path: Path) -> UserStore:
    return UserStore(tmp_path, "demo", still_clock)


def test_a_claimed_turn_has_an_empty_document_and_a_running_status(store: UserStore) -> None:
    """The first turn is 1; context.md has front matter alone; metadata says what comes next."""
    folder = claim_turn(store, "default", "chat", "hi\n", seed=7)
    document = folder.read_context()
    assert (folder.number, document.sections, document.front.session_id) == (1, (), "default")
    assert folder.read_metadata() == Metadata(
        turn=1,
        user_id="demo",
        session_id="default",
        mode="chat",
        query="hi\n",
        status="running",
        route=(),
        next=Next(phase=0, round=0, attempt=0),
        created_at=NOW,
        updated_at=NOW,
        saved_at=None,
        answered=None,
        seed=7,
    )


def test_numbers_go_on_after_counter_and_highest_and_are_not_reused(store: UserStore) -> None:
    """A removed turn's number stays used; a directory beyond the counter counts."""
    folder = claim_turn(store, "default", "chat", "a")
    for path in folder.paths.directory.iterdir():
        path.unlink()
    folder.paths.directory.rmdir()
    assert claim_turn(store, "default", "chat", "b").number == 2
    store.turn(41).directory.mkdir()
    (store.turns / "notes").mkdir()
    assert claim_turn(store, "default", "chat", "c").number == 42
    assert (store.numbers(), store.highest(), store.counter()) == ([2, 41, 42], 42, 42)


def test_claims_at_the_same_time_get_different_numbers(store: UserStore) -> None:
    """Eight threads claim three turns each: 24 numbers without a gap."""
    numbers: list[int] = []

    def claim_three() -> None:
        numbers.extend(claim_turn(store, "default", "chat", "x").number for _ in range(3))

    threads = [threading.Thread(target=claim_three) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 25))
    assert store.counter() == 24


def test_names_that_are_no_ids_are_refused(store: UserStore) -> None:
    """User and session ids are 1 to 64 of a-z, 0-9, _ and -."""
    for name in ("", "..", "A", "a/b", "x" * 65, "ä", "a\n"):
        with pytest.raises(UsageError, match="user id"):
            UserStore(store.root, name, still_clock)
        with pytest.raises(UsageError, match="session id"):
            claim_turn(store, name, "chat", "q")
    assert store.numbers() == []


def test_a_missing_turn_and_a_broken_counter_are_named(store: UserStore) -> None:
    """NotFoundError for the turn, FileFormatError with a fix for the counter."""
    with pytest.raises(NotFoundError, match="no turn 5"):
        store.open(5)
    claim_turn(store, "default", "chat", "a")
    store.turn_counter.write_text("many")
    with pytest.raises(FileFormatError, match="no number: 'many'"):
        store.counter()


def test_json_files_are_checked_before_they_are_written_and_after_they_are_read(store: UserStore) -> None:
    """A value that does not fit is refused with its key and line, and the former file stays."""
    folder = claim_turn(store, "default", "chat", "a")
    good = Reflection("PROCEED", 0.9, None, None)
    folder.save(good)
    with pytest.raises(FileFormatError, match="from 0 to 1") as caught:
        folder.save(structs.replace(good, confidence=1.5))
    assert caught.value.where == f"{folder.paths / 'reflection.json'} (confidence)"
    assert folder.load(Reflection) == folder.find(Reflection) == good
    path = folder.paths / "reflection.json"
    path.write_text('{\n  "decision": "PROCEED"\n}')
    with pytest.raises(FileFormatError, match="confidence is missing") as caught:
        folder.load(Reflection)
    assert caught.value.where == f"{path}:1 (confidence)"
    path.write_text(json.dumps({**good.to_json(), "reasonning": "x"}, indent=2))
    with pytest.raises(FileFormatError, match="unknown key 'reasonning'") as caught:
        folder.load(Reflection)
    assert (caught.value.where, caught.value.fix) == (f"{path}:6 (reasonning)", "did you mean reasoning?")
    path.unlink()
    assert folder.find(Reflection) is None


def test_steps_are_read_in_order(store: UserStore) -> None:
    """Each is the file of its number; a value deep inside that does not fit is named with its line."""
    folder = claim_turn(store, "default", "chat", "a")
    assert folder.load_steps() == []
    claims = (Claim("a", 0.5, "s", None, None), Claim("b", 0.5, "s", None, None))
    step = Step(1, 0, 1, None, "t", None, {}, None, None, "success", None, None, claims, (), (), "", None)
    for number in (2, 1):
        folder.save(structs.replace(step, step=number))
    assert [step.step for step in folder.load_steps()] == [1, 2]
    path = folder.paths / "steps/step_02.json"
    text = path.read_text()
    path.write_text(text.replace('"text": "b"', '"text": 7'))
    with pytest.raises(FileFormatError, match="text must be a text, but is 7") as caught:
        folder.load_steps()
    line = text.split("\n").index('      "text": "b",') + 1
    assert caught.value.where == f"{path}:{line} (claims[1].text)"


def test_calls_are_appended_one_a_line(store: UserStore) -> None:
    """They are read in order; one that would not be read is refused, one that was cut short is left out."""
    folder = claim_turn(store, "default", "chat", "a")
    assert folder.load_calls() == []
    folder.append_call(encode(CALL))
    folder.append_call(encode(structs.replace(CALL, n=2)))
    with pytest.raises(FileFormatError, match="n must be a whole number of at least 1"):
        folder.append_call(encode(structs.replace(CALL, n=0)))
    with (folder.paths / "calls.jsonl").open("a") as file:
        file.write('{"n": 3')
    assert folder.load_calls() == [CALL, structs.replace(CALL, n=2)]


def test_a_damaged_call_is_named_with_its_line(store: UserStore) -> None:
    """A line that lacks what a replay needs is refused; what was forgotten is passed over."""
    folder = claim_turn(store, "default", "chat", "a")
    folder.append_call(encode(ForgottenCall(1, "a/b", CALL.usage, 0.1, "2026-01-04T14:30:00Z")))
    folder.append_call(encode(CALL))
    assert folder.load_calls() == [CALL]
    path = folder.paths / "calls.jsonl"
    path.write_text(path.read_text().replace('"logprob"', '"x"'))
    with pytest.raises(FileFormatError, match="logprob is missing") as caught:
        folder.load_calls()
    assert caught.value.where == f"{path}:2 (options[0].logprob)"


def test_superseded_sections_are_copied_and_the_document_stays(store: UserStore) -> None:
    """attempts/1/context.md holds just the sections asked for, with the same front matter."""
    folder = claim_turn(store, "default", "chat", "a")
    document = (
        folder.read_context().with_section(Section(0, (Text("a"),))).with_section(Section(5, (Text("b"),)))
    )
    folder.write_context(document)
    folder.supersede([5, 6], 1)
    (folder.paths / "attempts" / "1 copy").mkdir()  # somebody's own
    assert "## 5. Synthesis\n\nb\n" in (folder.paths.attempt(1) / "context.md").read_text()
    assert "## 0." not in (folder.paths.attempt(1) / "context.md").read_text()
    assert folder.read_context() == document
    assert len(folder.superseded()) == 1


def test_a_damaged_document_is_named_with_its_line(store: UserStore) -> None:
    """read_context raises DocumentError with file and line."""
    folder = claim_turn(store, "default", "chat", "a")
    with (folder.paths / "context.md").open("a") as file:
        file.write("\n## 9. Nothing\n")
    with pytest.raises(DocumentError, match="unknown section") as caught:
        folder.read_context()
    assert caught.value.where == f"{folder.paths / 'context.md'}:10"


def test_claiming_clears_what_killed_claims_left(tmp_path: Path) -> None:
    """What a killed process was building is gone after the next claim, and no number is lost to it."""
    store = UserStore(tmp_path, "ann", still_clock)
    claim_turn(store, "default", "chat", "hello")
    left = store.turns / ".turn_000002.0123456789ab.tmp"
    left.mkdir()
    (left / "context.md").write_text("half", encoding="utf-8")
    assert claim_turn(store, "default", "chat", "hello").number == 2
    assert not left.exists()
