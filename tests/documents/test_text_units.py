"""Notes as people write them: what of them is one line, and which list it belongs to."""

import pytest

from panda.documents.markdown import split_units


def lists(text: str) -> list[tuple[str, int | None]]:
    """Each passage with the line where its list begins."""
    return [(unit.text, unit.list_line) for unit in split_units(text)]


def test_lines_stay_lines() -> None:
    """Appointments one a line are a line each, whatever they begin with, and know their list."""
    text = "May 12: dentist at 9:30\nWill's evening on 3 June\nDo the tax. Bring form C\nWhen in town: shoes"
    assert lists(text) == [(line, 1) for line in text.split("\n")]


@pytest.mark.parametrize(
    "text",
    [
        "We walked along the river for the whole afternoon and\nsaw nobody at all. Then it rained.",
        "We walked along the river for the whole afternoon, Anna\nran ahead. Then it rained.",
        "The hut is open from June until the end of September and has\nTwenty beds and one kitchen with a "
        "stove that we may use when\nNobody cooks there. Then it rained.",
        "It was late. We walked to\nthe hut. Then it rained.",
    ],
)
def test_broken_lines_are_joined(text: str) -> None:
    """Running text that was broken for lack of room is cut into sentences."""
    passages = lists(text)
    assert passages[-1] == ("Then it rained.", None)
    assert " ".join(passage for passage, _ in passages) == " ".join(text.split())


def test_a_head_introduces_the_lines_below() -> None:
    """A short line above a list, and a line with a colon above lines, introduce it."""
    for text in ("Guests\n\nNoor\nMika", "Guests:\nNoor\nMika", "Guests\n- Noor\n- Mika"):
        head, *others = split_units(text)
        assert head.heads_line is not None
        assert [unit.list_line for unit in others] == [head.heads_line] * 2


def test_tables_and_lists_that_follow_each_other_are_two() -> None:
    """A rule below a row begins another table, and so does a blank line; the number 1 begins another list."""
    rows = "| a | b |\n|-|-|\n| 1 | 2 |\n"
    assert [at for _, at in lists(f"{rows}{rows}\n{rows}")] == [1, 4, 8]
    assert lists("a | b\n--|--\n1 | 2") == [("a: 1; b: 2", 1)]
    assert [at for _, at in lists("1. one\n2. two\n\n1. three\n2. four")] == [1, 1, 4, 4]


def test_steps_go_on_below_code() -> None:
    """Code between two steps belongs to them, and steps know their numbers."""
    units = split_units("1. Pull\n2. Run:\n```\nmake\n```\n3. Tell")
    assert [(unit.text, unit.list_line, unit.number) for unit in units] == [
        ("Pull", 1, 1),
        ("Run:", 1, 2),
        ("make", 1, None),
        ("Tell", 1, 3),
    ]


def test_a_line_below_a_list_is_none_of_it() -> None:
    """A line that continues an item is indented or begins small."""
    assert lists("- milk\nCall Anna") == [("milk", 1), ("Call Anna", None)]


def test_an_underlined_line_is_a_heading() -> None:
    """As markdown has it; a rule below a sentence is a rule."""
    assert [(unit.text, unit.headings) for unit in split_units("Tea\n===\nGreen.\n---\nBlack.")] == [
        ("Green.", ("Tea",)),
        ("Black.", ("Tea",)),
    ]


def test_a_single_word_stays_with_what_it_is_about() -> None:
    """ "Vegan." alone says nothing."""
    assert lists("Café Nord has cake. Vegan. Closed on Mondays.")[0][0] == "Café Nord has cake. Vegan."


@pytest.mark.parametrize(
    "text",
    [
        "Pack  for the  trip\nsocks  and a  hat\na map  with the  route",
        "Monday   gym    18:00\nTuesday   pool   19:00\nFriday   gym   17:30",
        "Thing  Shop  Price\nKettle  Marlin  45",
    ],
)
def test_what_is_no_table_of_columns(text: str) -> None:
    """Gaps within lines make no table where no line is a head, no column has numbers, or a line is alone."""
    assert "row" not in {unit.form for unit in split_units(text)}


def test_columns_end_where_a_line_does_not_fit() -> None:
    """Numbers may stand right-aligned and cells be empty; the sentence below is a sentence."""
    rows = ["Thing       Shop     Price", "Kettle      Marlin      45", "Bike light           1,062"]
    text = "\n".join([*rows, "All  with receipts."])
    texts = [unit.text for unit in split_units(text) if unit.form == "row"]
    assert texts == ["Thing: Kettle; Shop: Marlin; Price: 45", "Thing: Bike light; Price: 1,062"]
    assert split_units(text)[-1].text == "All with receipts."
