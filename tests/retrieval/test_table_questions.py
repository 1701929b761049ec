"""What questions ask of the tables and lists of notes: commands over a store, with the embedded encoder."""

import pytest

from tests.api import Panda
from tests.store_files import write_note

SPENDING = """# Boat spending

We share the boat with Ruth. All receipts are in the blue folder.

| Date | What | Category | Cost | Paid |
|---|---|---|---|---|
| 2025-03-04 | Antifouling | paint | £96.00 | yes |
| 2025-03-18 | Masking tape and rollers | paint | £18.40 | yes |
| 2025-04-02 | New halyard | rigging | £74.25 | no |
| 2025-04-20 | Shackles | rigging | £22.10 | yes |
| 2025-05-11 | Berth for the summer | harbour | £640.00 | no |
"""
CREW = """# Crew

| Name | Born | Weight | Swims |
|---|---|---|---|
| Ruth | 3 May 1958 | 64 kg | yes |
| Ola | 17 August 1994 | 81.5 kg | yes |
| Finn | 9 January 2012 | 43 kg | no |
"""
LOCKER = """# Sail locker

- [x] Storm jib
- [ ] Spinnaker pole
- [x] Mainsail cover
- [ ] Fog horn
"""
LAUNCHES = """# Launches at the slipway, by Saturday

- 2025-10-04: 31
- 2025-10-11: 12 (gale)
- 2025-11-01: 29
- 2025-11-08: 26
"""
BERTHS = """# Nights at the visitors' pontoon

| Boat | June | July | August |
|---|---|---|---|
| Curlew | 4 | 9 | 2 |
| Dunlin | 11 | 0 | 5 |
| Plover | 0 | 3 | 6 |
"""
LIFTS = """# Lifts booked with the crane

| No | Owner | Boat | Day | Fee |
|---|---|---|---|---|
| 41 | Nesta | Curlew | Tue | £38 |
| 42 | Idris | Dunlin | Wed | £55 |
| 43 | Hywel | Plover | Tue | £22 |
"""
LENDING = """What the rowing club lends out

Thing            Out           Due           Borrower      Fee
oar bag          2025-12-01    2025-12-20    Nesta         3.50
boat trolley     2025-12-28    2026-01-12    Idris         8.00
life jacket                                                2.00
roof rack        2025-11-03    2026-01-02    Hywel         5.00
"""


@pytest.fixture(scope="module")
def club(tmp_path_factory: pytest.TempPathFactory) -> Panda:
    """A store with a note whose cells stand below each other, some of them empty."""
    panda = Panda(tmp_path_factory.mktemp("club") / "project")
    assert panda("init").code == 0
    write_note(panda.user_directory, "lending.txt", LENDING)
    return panda


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Panda:
    """A store with a list of days, a table of months and a table of bookings."""
    panda = Panda(tmp_path_factory.mktemp("harbour") / "project")
    assert panda("init").code == 0
    for name, text in (("launches.md", LAUNCHES), ("berths.md", BERTHS), ("lifts.md", LIFTS)):
        write_note(panda.user_directory, name, text)
    return panda


@pytest.fixture(scope="module")
def boat(tmp_path_factory: pytest.TempPathFactory) -> Panda:
    """A store with two tables and a list of things to tick off."""
    panda = Panda(tmp_path_factory.mktemp("boat") / "project")
    assert panda("init").code == 0
    for name, text in (("spending.md", SPENDING), ("crew.md", CREW), ("locker.md", LOCKER)):
        write_note(panda.user_directory, name, text)
    return panda


def ask(panda: Panda, query: str) -> str:
    """Return the answer to one query, without its sources."""
    return panda.turn(query).response.partition("\n\nSources:")[0]


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("How much did we spend on paint for the boat in total?", "£114.40"),
        ("what did the rigging of the boat cost altogether", "£96.35"),
        ("What is the average weight of the crew?", "62.83 kg"),
        ("how many of the boat purchases are not paid yet", "Count: 2"),
        ("How many boat purchases cost more than £70?", "Count: 3"),
    ],
)
def test_counts_and_sums(boat: Panda, query: str, value: str) -> None:
    """Rows that a question leaves are counted, added or averaged, and the figure stands first."""
    assert value in ask(boat, query).partition("\n")[0]


@pytest.mark.parametrize(
    ("query", "row", "other"),
    [
        ("who is the heaviest of the crew", "Ola", "Finn"),
        ("Which boat purchase was the cheapest?", "rollers", "Berth"),
        ("what was the last thing we bought for the boat", "Berth", "Antifouling"),
        ("what is still missing in the sail locker", "Fog horn", "Storm jib"),
        ("which of the crew can't swim", "Finn", "Ruth"),
    ],
)
def test_rows_by_their_values(boat: Panda, query: str, row: str, other: str) -> None:
    """A question for the first by a value, or for rows with a property, is answered with these alone."""
    answer = ask(boat, query)
    assert row in answer
    assert other not in answer


def test_an_age_counts_from_today(boat: Panda) -> None:
    """An age is worked out from the day of birth and the day of the turn, and both are told."""
    turn = boat.turn("how old is Ruth")
    assert "Ruth: 67 years" in turn.response
    assert "years between 1958-05-03 and 2026-01-04" in turn.response


def test_days_until_a_birthday(boat: Panda) -> None:
    """Days left are counted to the next return of a day whose year is past."""
    assert "Finn: 5 days" in ask(boat, "How many days are there until Finn's birthday?")


def test_what_a_table_lacks_is_not_answered(boat: Panda) -> None:
    """A sum over a time of which the table has no row is no answer; what is closest is shown."""
    turn = boat.turn("How much did we spend on paint for the boat in total in 2019?")
    assert turn.data["outcome"] == "unsure"
    assert "£114.40" not in turn.response


def test_figures_are_checked_like_a_writers(boat: Panda) -> None:
    """A sum is recorded with its expression and the lines of its operands."""
    turn = boat.turn("How much did we spend on paint for the boat in total?")
    assert "- £114.40 = £96.00 + £18.40" in turn.response
    lines = turn.file("evidence.json")["offered"]
    (figure,) = next(line["computed"] for line in lines if line.get("computed"))
    operands = [
        line["text"] for line in lines if line["text"] and "paint" in line["text"] and "Cost" in line["text"]
    ]
    assert len(figure["lines"]) == len(operands) == 2


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("How many launches were there in November altogether?", "29 + 26 = 55"),
        ("how many saturdays had fewer than 30 launches", "Count: 3"),
        ("how many nights was Curlew at the pontoon in total", "4 + 9 + 2 = 15"),
        ("which crane lifts are on tuesday", "Nesta"),
        ("what do all the crane lifts bring in together?", "£115"),
    ],
)
def test_series_months_and_weekdays(harbour: Panda, query: str, value: str) -> None:
    """Numbers of days are added, months are one value, and a weekday is the same in every spelling."""
    assert value in ask(harbour, query)


def test_rows_whose_cell_is_named(harbour: Panda) -> None:
    """A question for rows is answered by those of which a whole cell is named."""
    answer = ask(harbour, "which crane lifts are on tuesday")
    assert [owner for owner in ("Nesta", "Idris", "Hywel") if owner in answer] == ["Nesta", "Hywel"]


def test_a_month_that_a_table_lacks(harbour: Panda) -> None:
    """A month of which a list of days has none is not answered from the others."""
    assert harbour.turn("how many launches were there in December").data["outcome"] == "unsure"


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("which things of the rowing club are overdue?", ["oar bag", "roof rack"]),
        ("what does the rowing club lend that is not out", ["life jacket"]),
        ("which thing of the rowing club has the dearest fee", ["boat trolley"]),
        ("total fee of the rowing club's things", ["18.50"]),
    ],
)
def test_columns_without_lines(club: Panda, query: str, rows: list[str]) -> None:
    """Cells below each other are a table; empty ones and days that are over tell rows apart."""
    answer = ask(club, query)
    names = ["oar bag", "boat trolley", "life jacket", "roof rack", "18.50"]
    asked = names if rows != ["18.50"] else names[-1:]
    assert [name for name in asked if name in answer] == rows


PARTS = """item,brand,in_stock,price_eur,supplier
Chain 11-speed,Kettle,14,28.90,Velodis
Inner tube 28,Swale,41,6.50,Radhandel
Tyre Marathon 28,Swale,9,38.00,Radhandel
Cassette 11-34,Pike,2,89.00,Velodis
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Panda:
    """A store with a table whose names hold numbers."""
    panda = Panda(tmp_path_factory.mktemp("shop") / "project")
    assert panda("init").code == 0
    write_note(panda.user_directory, "stock.csv", PARTS)
    return panda


@pytest.mark.parametrize(
    ("query", "figure"),
    [
        ("average price of a Swale item", "(6.50 + 38.00) / 2 = 22.25"),
        ("how many suppliers do we have", "Count: 2"),
        ("how many items do we get from Velodis", "Count: 2"),
    ],
    ids=["a number in a name is no value", "different texts of a column", "rows"],
)
def test_what_is_added_and_counted(shop: Panda, query: str, figure: str) -> None:
    """Values are whole cells; of a column that is named each text counts once."""
    assert figure in shop.turn(query).response
