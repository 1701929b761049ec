"""The embedded default answers with passages, and shows the closest where nothing surely answers."""

from pathlib import Path

import pytest

from tests.api import Panda
from tests.store_files import write_note

HOME = """# Home

The wifi password is kolibri-77. The router is in the hall.

## Retro

- what went wrong: the restore test failed twice
- root cause: expired certificate

The vet is Dr. Yilmaz, 0172 555.
"""
PEOPLE = """---
aliases: [Bob, Robert]
phone: "+47 555 0199"
---
# Robert Smith

Born on 4 May 1980.
"""


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A store with notes of a household."""
    panda = Panda(tmp_path / "project")
    assert panda("init").code == 0
    write_note(panda.user_directory, "home.md", HOME)
    write_note(
        panda.user_directory, "tour.md", "# Tour\n\nDay 2: Colmar to Dijon by train.\n\nTea: Darjeeling.\n"
    )
    return panda


def test_an_answer_is_a_passage_with_its_sources(panda: Panda) -> None:
    """The sentence that answers stands with its paragraph, cited line by line."""
    turn = panda.turn("whats the wifi password")
    assert turn.data["outcome"] == "answered"
    assert turn.response.startswith("The wifi password is kolibri-77. [1]\n\nThe router is in the hall. [1]")
    assert turn.data["closest"] == []
    assert turn.metadata["outcome"] == "answered"


def test_what_is_closest_is_shown_and_is_no_answer(panda: Panda) -> None:
    """A passage is no part of the answer or of a later turn, and names file, line and the closest line."""
    turn = panda.turn("Which airline flies to Reykjavik in winter?")
    assert (turn.code, turn.data["outcome"], turn.data["answered"]) == (0, "unsure", False)
    assert turn.response == "Nothing surely answers this."
    assert turn.data["sources"] == []
    passages = turn.data["closest"]
    assert 1 <= len(passages) <= 3
    for passage in passages:
        lines = (panda.user_directory / passage["provenance"]).read_text("utf-8").splitlines()
        assert passage["text"].splitlines()[0] in lines[passage["line"] - 1]
        assert passage["best"] in passage["text"].splitlines()
    later = panda.turn("What did turn 1 say?").response
    assert not [passage["text"] for passage in passages if passage["text"] in later]
    assert panda("validate", "1-2", "--strict").code == 0


def test_the_terminal_shows_the_closest_passages(panda: Panda) -> None:
    """Below the answer, the closest line in bold, with file and line."""
    texts = panda("turn", "Which airline flies to Reykjavik in winter?").out
    assert texts.startswith("Nothing surely answers this.\n\nClosest:\n\n- ")
    assert "(knowledge/" in texts


@pytest.mark.parametrize(
    "query",
    [
        "did luca reply?",
        "what happens tomorrow",
        "is dan ok?",
        "what do you know about me?",
        "How deep?",
        "Can two live together?",
        "Which tea?",
    ],
)
def test_a_question_is_never_small_talk(panda: Panda, query: str) -> None:
    """Short questions are looked for like others."""
    assert panda.turn(query).data["outcome"] in ("answered", "unsure", "nothing", "asked")


@pytest.mark.parametrize(
    "statement",
    [
        "My name is Rafael.",
        "I hate coriander",
        "I'm vegetarian",
        "I like green tea",
        "I moved to Bergen last month.",
        "Меня зовут Иван.",
        "मुझे चाय पसंद है।",
        "Меня зовут Иван; живу в Киле.",
        "ሻይ እወዳለሁ።",
    ],
)
def test_likes_names_and_moves_are_kept(panda: Panda, statement: str) -> None:
    """In any script; where the encoder does not know it, it is looked for as well."""
    data = panda.turn(statement).data
    assert [noted["text"] for noted in data["noted"]] == [statement]
    assert data["outcome"] in ("noted", "unsure", "answered")
    assert "Nothing that is saved" not in data["response"]


@pytest.mark.parametrize("message", ["good morning", "Thanks, looks good!", "ok great, bye"])
def test_small_talk_is_answered_as_such(panda: Panda, message: str) -> None:
    """Nothing of it is noted or cited, and it is no evidence later."""
    turn = panda.turn(message)
    assert (turn.data["outcome"], turn.data["noted"], turn.data["sources"]) == ("talk", [], [])


def test_a_question_in_another_script_is_looked_for_by_its_words(panda: Panda) -> None:
    """A script that the encoder cannot read is not compared by meaning."""
    write_note(panda.user_directory, "москва.md", "# Москва\n\nРейс в Москву вылетает в 9:40.\n")
    turn = panda.turn("Когда вылетает рейс в Москву?")
    texts = [turn.response, *(passage["text"] for passage in turn.data["closest"])]
    assert any("Рейс в Москву вылетает в 9:40." in text for text in texts)
    unknown = panda.turn("छाता कहाँ है?").data
    assert (unknown["outcome"], unknown["closest"]) == ("nothing", [])


def test_a_note_is_found_by_its_aliases_and_properties(panda: Panda) -> None:
    """An alias is a name of the whole note; a property is a passage of it."""
    write_note(panda.user_directory, "people/smith.md", PEOPLE)
    assert "Born on 4 May 1980." in panda.turn("When was Bob born?").response
    assert "+47 555 0199" in panda.turn("What is Robert's phone number?").response


def test_a_row_of_a_long_table_can_be_asked_for(panda: Panda) -> None:
    """By the id that it alone has, although each row of the table says the same kind of thing."""
    rows = "\n".join(f"| K-{n:03} | {n % 83 + 7} kg |" for n in range(1, 161))
    write_note(panda.user_directory, "crates.md", f"# Crates\n\n| crate | weight |\n|---|---|\n{rows}\n")
    answer = panda.turn("How much does crate K-042 weigh?").response
    assert "K-042 | 49 kg" in answer or "crate: K-042; weight: 49 kg" in answer


@pytest.mark.asks_for("shop.example")
def test_what_could_not_be_done_is_said_first(panda: Panda) -> None:
    """An order that reaches out and fails has no answer; what is at hand does not pass for one."""
    turn = panda.turn("Open https://shop.example/hours and find the opening hours")
    assert turn.data["outcome"] == "not_done"
    assert turn.response.startswith("Not looked up: ")
    assert turn.data["sources"] == []


def test_what_somebody_else_likes_corrects_nothing(panda: Panda) -> None:
    """Of two owners each keeps his own; the newer statement is not told as what holds now."""
    panda.turn("My favourite cyclist is Lotte Kopecky.", "--session", "s")
    panda.turn("My brother's favourite cyclist is Wout van Aert.", "--session", "s")
    answer = panda.turn("Who is my favourite cyclist?", "--session", "s").response
    assert "Lotte Kopecky" in answer
    assert "Before:" not in answer


SHIFTS = """# Staff

- Yusuf: nights, Sunday to Thursday
- Mel: Friday and Saturday night, and holiday cover
- Tobi, the apprentice, may not start before 4
"""
LOCK = """# Repairs

- top gate: left paddle stiff, greased 14 November
- bottom gate: stoppage on 8 February, for the leaking cill
"""
RATES = "# {name}\n\nHeike Brandl at the desk.\n\n{rate} per word.\n"


def test_of_a_list_the_close_items_are_quoted(panda: Panda) -> None:
    """Items that are far behind the closest are left out, unless the list is asked for as a whole."""
    write_note(panda.user_directory, "staff.md", SHIFTS)
    turn = panda.turn("who covers holidays")
    assert turn.response.startswith("Mel: Friday and Saturday night, and holiday cover [1]\n\nSources:")
    whole = panda.turn("list all the staff").response
    assert all(name in whole for name in ("Yusuf", "Mel", "Tobi"))


def test_a_passage_with_fewer_words_of_the_question_is_left_out(panda: Panda) -> None:
    """Another customer's rate stands not beside the one that is asked for."""
    write_note(panda.user_directory, "aldermann.md", RATES.format(name="Aldermann", rate="0.14"))
    write_note(panda.user_directory, "corvo.md", RATES.format(name="Corvo", rate="0.11"))
    turn = panda.turn("what does aldermann pay per word")
    assert "0.14" in turn.response
    assert "0.11" not in turn.response


def test_a_question_without_a_subject_goes_on_with_the_last(panda: Panda) -> None:
    """The last question, and the line that answered it, say what "it" is."""
    write_note(panda.user_directory, "lock.md", LOCK)
    assert "8 February" in panda.turn("when is the bottom gate stoppage", "--session", "lock").response
    assert "cill" in panda.turn("and what's it for?", "--session", "lock").response


@pytest.mark.parametrize(
    "remark",
    [
        "phew, what a day",
        "haha fair enough",
        "oh well, they're finally asleep",
        "what a lovely evening",
        "bye",
        "thanks, that helped",
    ],
)
def test_a_remark_is_neither_noted_nor_looked_for(panda: Panda, remark: str) -> None:
    """Nothing is noted and no source is named, though some sound like questions or statements."""
    turn = panda.turn(remark)
    assert (turn.data["outcome"], turn.data["noted"], turn.data["sources"]) == ("talk", [], [])


@pytest.mark.parametrize("order", ["now as a table", "bin day", "more like this", "play something calm"])
def test_what_is_short_and_no_remark_is_no_small_talk(panda: Panda, order: str) -> None:
    """Orders, references and things that are looked for are never answered as a greeting."""
    assert panda.turn(order).data["outcome"] != "talk"


def test_a_message_that_begins_with_its_verb_asks(panda: Panda) -> None:
    """A question without its mark is looked for and not noted."""
    write_note(panda.user_directory, "shop.md", "Greta is at school every Monday and Tuesday.\n")
    turn = panda.turn("is greta at work on tuesdays")
    assert turn.data["noted"] == []
    assert "every Monday and Tuesday" in turn.response


def test_a_short_question_is_read_with_the_words_of_the_last(panda: Panda) -> None:
    """The way to read it is the one that is answered most likely."""
    write_note(panda.user_directory, "concert.md", "# Spring concert\n\nTickets 12, under-18s 5.\n")
    write_note(panda.user_directory, "kids.md", "# Camp\n\nThe kids sleep in the big tent.\n")
    assert "12" in panda.turn("what are tickets for the spring concert", "--session", "s").response
    assert "under-18s 5" in panda.turn("for under-18s?", "--session", "s").response
