"""Sentences and passages keep the text that they are cut from."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panda.documents.markdown import split_units
from panda.documents.safe_text import strip_citations
from panda.language.text import split_sentences

PROSE = st.text(st.sampled_from("abIE.!?,;: $€0197\n\t()[]\"'…-"), max_size=80)


@given(PROSE)
def test_no_character_is_lost(text: str) -> None:
    """Sentences joined again are the text, white space apart."""
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@given(st.text(max_size=200))
def test_passages_are_single_lines_with_true_numbers(text: str) -> None:
    """Any text gives single-line passages whose first word stands on the line named."""
    lines = text.split("\n")
    for passage in split_units(text):
        assert passage.text == " ".join(passage.text.split()) != ""
        assert 1 <= passage.line <= len(lines)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Dr. J. Smith lives in the U.S. and likes it.", "So do I"],
        ["The ceiling is 2,51 m.", "The window is 1,20 m wide.", "Am 3. Oktober kommt Dr. A. Lang."],
        ["Wir treffen uns am 5. November; danach ist Pause.", "Gut."],
        ["Am **5. November** ist zu.", "Vom 3.–5. November auch.", "(5. November)."],
        ["I paid 2.15.", "November was cold."],
        ["Termin am Di. 17.3. im Saal, le 24 avr. 2026.", "Danach Pause."],
        ["It ended 3 days ago.", "5 people stayed.", "The light was dim.", "7 left."],
        ['He said "no."', "Then he left."],
        [],
    ],
    ids=lambda sentences: sentences[0] if sentences else "none",
)
def test_dots_within_sentences(sentences: list[str]) -> None:
    """Dots of abbreviations, initials, numbers and German dates end no sentence; marks within quotes do."""
    assert split_sentences(" ".join(sentences)) == sentences


@given(st.floats(0, 10**6), st.sampled_from(["GB", "hours", "USD", "percent"]))
def test_numbers_are_never_cut(number: float, unit: str) -> None:
    """A decimal number stays in one sentence."""
    sentence = f"It has ${number:.2f} or {number:.1f} {unit} left."
    assert split_sentences(f"{sentence} Then more.") == [sentence, "Then more."]


@given(PROSE.filter(lambda text: not re.search(r"\[", text)))
def test_text_without_marks_stays(text: str) -> None:
    """Text with neither marks nor a list of sources comes back as it was, but for final line breaks."""
    assert strip_citations(text).rstrip("\n") == text.rstrip("\n")


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("5. November is the day", [("5. November is the day", None)]),
        (
            "5. November: dentist\n6. November: cinema",
            [("5. November: dentist", None), ("6. November: cinema", None)],
        ),
        ("1. Whisk.\n2. March on.\n3. End.", [("Whisk.", 1), ("March on.", 2), ("End.", 3)]),
        ("1. May I ask?\n2. Then go.", [("May I ask?", 1), ("Then go.", 2)]),
    ],
)
def test_a_day_at_the_start_of_a_line_is_no_number_of_a_list(
    text: str, units: list[tuple[str, int | None]]
) -> None:
    """A line that begins with a day keeps it, unless a numbered list goes on there."""
    assert [(unit.text, unit.number) for unit in split_units(text)] == units


def test_nested_structure() -> None:
    """Headings are kept with what is below, code lines and table rows are passages of their own."""
    text = "# A\n## B\nOne.\n```\n# no heading\n```\n## C\n1. first\n   goes on\n2. second"
    text += "\n\n| a | b |\n|-|-|\n| 1 | 2 |"
    passages = [(passage.text, passage.headings, passage.line) for passage in split_units(text)]
    assert passages == [
        ("One.", ("A", "B"), 3),
        ("# no heading", ("A", "B"), 5),
        ("first goes on", ("A", "C"), 8),
        ("second", ("A", "C"), 10),
        ("a: 1; b: 2", ("A", "C"), 14),
    ]
