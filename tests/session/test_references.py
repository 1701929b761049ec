"""What "the second one" and its like mean, on lists of several forms."""

import pytest

from panda.messages.list_items import listed_things
from panda.session.fold import carry_over
from panda.session.registry import find_references, follow_up, replace_references
from panda.session.turn_files import TurnFiles
from panda.store.carry import EMPTY, Carry

NUMBERED = """I found three laptops:

1. **Lenovo LOQ 15** - $697, RTX 4050, 16GB DDR5
   - thin bezels
   - in stock
2. **ASUS TUF Gaming A15**: $749.99
3. HP Victus 15 ($799)

All of them have an RTX 4050, 16GB DDR5 and 512GB SSD."""
BULLETED = """These shops have it:

- Best Buy: price $697.00, in stock
- Newegg: price $689.00
- Micro Center: price $720.00

Shipping: Best Buy, Newegg and Micro Center."""
TABLE = """| Laptop | Price | Weight |
|---|---|---|
| Lenovo LOQ 15 | $697 | 2.4 kg |
| ASUS TUF Gaming A15 | $749.99 | 2.2 kg |
| HP Victus 15 | $799 | 2.3 kg |
| Acer Nitro V | $849 | 2.1 kg |"""
SERIES = "You could cook. I found these dishes: Baked cod, Lentil soup, Fried rice and Pad thai."
NAMES = "We saw the Lenovo LOQ 15 for $697, which has 16GB DDR5. Options: the HP Victus and the Acer Nitro."
PARAGRAPHS = """The Lenovo LOQ 15 is the top pick at $697: NVIDIA RTX 4050, 16GB DDR5, 512GB SSD, thin bezels.

The ASUS TUF Gaming A15 has the same GPU, memory and storage for $749.99.

The HP Victus 15 at $799 is the third laptop with an RTX 4050."""
HEADED = """## Where to stay

### Hotel Sacher
Old, central, and dear: marble, gold and cake.

### Motel One
Cheap.

### Pension Nossek
Quiet."""
COLUMNS = """| | MacBook Air | Dell XPS 13 |
|---|---|---|
| Price | $999 | $1,099 |
| Weight | 1.24 kg | 1.19 kg |"""

BIKES = """Here are four e-bikes that fit:

1. **Cube Touring Hybrid** – €2,299, 500 Wh battery, rear rack included
2. **Riese & Müller Charger** – €4,799, 625 Wh battery, belt drive
3. **Decathlon Elops** – €999, 418 Wh battery, single speed
4. **Specialized Vado** – €3,500, 710 Wh battery, suspension fork

All of them have lights."""
HOTELS = """Friends recommended these hotels:

- Avenida Palace: $310 a night, rooftop bar, five stars
- Casa do Jasmim: $95 a night, garden, breakfast included
- My Story Rossio: $140 a night, next to the station
- Selina Secret Garden: $60 a night, no lift, dormitory beds"""
FILMS = """You might like these films:
* "Paddington 2" (2017), a comedy, 103 minutes
* "Arrival" (2016), science fiction, 116 minutes
* "Parasite" (2019), a thriller from Korea, 132 minutes"""
PLANS = """| Plan | Data | Price per month |
|---|---|---|
| Blue S | 10 GB | $15 |
| Red Plus | 40 GB | $25 |
| Giga Max | unlimited | $45 |"""
SHRUBS = (
    "For a shady corner I would take Hydrangea, Japanese Skimmia and Mahonia. The hydrangea flowers from "
    "June to "
    "September, the Skimmia has red berries in winter, and the Mahonia grows 2 m high."
)
FLIGHTS = """### TAP 1350
Departs 06:40, EUR 89, no bag.

### Ryanair 882
Departs 11:15, EUR 39, one bag."""
CARDS = "Pass: Trenitalia Pass; Price: EUR 139\n\nPass: Interrail Italy; Price: EUR 203"

LOQ, TUF, VICTUS = "Lenovo LOQ 15", "ASUS TUF Gaming A15", "HP Victus 15"
ORDINALS = [
    (NUMBERED, "What about the second one?", TUF),
    (NUMBERED, "How much is the third?", VICTUS),
    (NUMBERED, "Compare the first two.", f"{LOQ} and {TUF}"),
    (NUMBERED, "the last two", f"{TUF} and {VICTUS}"),
    (NUMBERED, "Tell me more about number 2", TUF),
    (NUMBERED, "Is #3 in stock?", VICTUS),
    (NUMBERED, "the 2nd one please", TUF),
    (NUMBERED, "Is the last one any good?", VICTUS),
    (NUMBERED, "the first and the third", f"{LOQ} and {VICTUS}"),
    (NUMBERED, "Take the middle one.", TUF),
    (NUMBERED, "option 1, please", LOQ),
    (NUMBERED, "How heavy is the second laptop?", TUF),
    (BULLETED, "Is the second one open on Sunday?", "Newegg"),
    (BULLETED, "the last 2", "Newegg and Micro Center"),
    (BULLETED, "And the second to last?", "Newegg"),
    (TABLE, "How much is the fourth one?", "Acer Nitro V"),
    (TABLE, "What about the second to last one?", VICTUS),
    (TABLE, "The first three: which is lightest?", f"{LOQ}, {TUF} and {VICTUS}"),
    (SERIES, "How do I make the second one?", "Lentil soup"),
    (SERIES, "and the last one?", "Pad thai"),
    (SERIES, "the first two", "Baked cod and Lentil soup"),
    (NAMES, "Is the latter any good?", "Acer Nitro"),
    (NAMES, "I prefer the former", "HP Victus"),
    (PARAGRAPHS, "What about the second one?", TUF),
    (PARAGRAPHS, "the last two", f"{TUF} and {VICTUS}"),
    (HEADED, "Has the second one a pool?", "Motel One"),
    (HEADED, "the last one", "Pension Nossek"),
    (COLUMNS, "How heavy is the second one?", "Dell XPS 13"),
    (COLUMNS, "And the first one?", "MacBook Air"),
    (BIKES, "What battery does the third have?", "Decathlon Elops"),
    (BIKES, "Which of the first two is cheaper?", "Cube Touring Hybrid and Riese & Müller Charger"),
    (BIKES, "the second last one", "Decathlon Elops"),
    (HOTELS, "Is the last hotel far away?", "Selina Secret Garden"),
    (FILMS, "How long is the third film?", "Parasite"),
    (PLANS, "the top two", "Blue S and Red Plus"),
    (SHRUBS, "When does the first one flower?", "Hydrangea"),
    (FLIGHTS, "When does the second one leave?", "Ryanair 882"),
    (CARDS, "How much is the second one?", "Interrail Italy"),
]
OTHERS = [
    (NUMBERED, "How heavy is that Lenovo?", LOQ),
    (NUMBERED, "Is the HP any good?", VICTUS),
    (NUMBERED, "Take the cheapest one.", LOQ),
    (NUMBERED, "And the ASUS one?", TUF),
    (NUMBERED, "Are they in stock?", f"{LOQ}, {TUF} and {VICTUS}"),
    (NUMBERED, "Compare them.", f"{LOQ}, {TUF} and {VICTUS}"),
    (BULLETED, "Is the cheapest one open?", "Newegg"),
    (BULLETED, "And the most expensive?", "Micro Center"),
    (TABLE, "that Acer", "Acer Nitro V"),
    (TABLE, "the most expensive one", "Acer Nitro V"),
    (SERIES, "How do I make that soup?", "Lentil soup"),
    (SERIES, "Are these hard to cook?", "Baked cod, Lentil soup, Fried rice and Pad thai"),
    (NAMES, "Are both in stock?", "HP Victus and Acer Nitro"),
    (NAMES, "that Acer, is it light?", "Acer Nitro"),
    (PARAGRAPHS, "Is the cheaper one in stock?", LOQ),
    (PARAGRAPHS, "the ASUS", TUF),
    (COLUMNS, "Are both of them light?", "MacBook Air and Dell XPS 13"),
    (COLUMNS, "the cheaper one", "MacBook Air"),
    (HEADED, "Is that motel clean?", "Motel One"),
    (BIKES, "How much is the one with the belt drive?", "Riese & Müller Charger"),
    (BIKES, "the one with 710 Wh", "Specialized Vado"),
    (BIKES, "the single speed one", "Decathlon Elops"),
    (HOTELS, "the one next to the station", "My Story Rossio"),
    (HOTELS, "the one without a lift", "Selina Secret Garden"),
    (HOTELS, "the five-star one", "Avenida Palace"),
    (HOTELS, "the hotel with breakfast", "Casa do Jasmim"),
    (HOTELS, "the hotel under $90", "Selina Secret Garden"),
    (FILMS, "Where does the Korean one play?", "Parasite"),
    (FILMS, "the comedy", "Paddington 2"),
    (FILMS, "the one from 2016", "Arrival"),
    (FILMS, "the longest one", "Parasite"),
    (PLANS, "the 40 GB plan", "Red Plus"),
    (PLANS, "the unlimited one", "Giga Max"),
    (FLIGHTS, "the one at 11:15", "Ryanair 882"),
    (
        HOTELS,
        "Which one has a garden?",
        "Avenida Palace, Casa do Jasmim, My Story Rossio and Selina Secret Garden",
    ),
]
ON_OTHER_MATTERS = [
    ("What is my budget?", "Your budget is $500."),
    ("Is Rome warm in May?", "Nothing that is saved answers this."),
    ("And who am I?", "You are Eva."),
    ("Thanks.", "You are welcome."),
]


def said(*turns: tuple[str, str]) -> Carry:
    """What a session carries after queries and their replies."""
    carry = EMPTY
    for number, (query, reply) in enumerate(turns, 1):
        at = f"2026-01-0{number}T10:00:00Z"
        files = TurnFiles(turn=number, session_id="s", at=at, query=query, reply=reply)
        carry = carry_over(carry, files)
    return carry


def meant(query: str, carry: Carry) -> str:
    """The names that the references of a query stand for."""
    labels = {one.ref: one.label for one in carry.registry.records}
    refs = list(dict.fromkeys(ref for one in find_references(query, carry) for ref in one.refs))
    names = [labels[ref] for ref in refs]
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


COACHES = (
    "1. Coach A: $9.45, leaves 14:30\n2. Coach B: $12.50, leaves 08:15\n3. Coach C: $11.00, leaves 22:05"
)
RANKED = [
    ("the earliest one", "Coach B"),
    ("the latest one", "Coach C"),
    ("the second-cheapest", "Coach C"),
    ("the third of them", "Coach C"),
    ("the second last", "Coach B"),
    ("What was the result a friend got?", ""),
]


@pytest.mark.parametrize(("query", "names"), RANKED)
def test_ranks_go_by_what_they_compare(query: str, names: str) -> None:
    """Early and late go by the time in the items, cheap and dear by the price."""
    assert meant(query, said(("Which?", COACHES))) == names


@pytest.mark.parametrize(("reply", "query", "names"), ORDINALS)
def test_ordinals_count_the_list(reply: str, query: str, names: str) -> None:
    """An ordinal means the item of the last list that stands there, whatever the form of the list."""
    assert meant(query, said(("What is there?", reply))) == names


@pytest.mark.parametrize(("reply", "query", "names"), ORDINALS)
def test_ordinals_count_the_list_long_after(reply: str, query: str, names: str) -> None:
    """The last list is counted however many turns have spoken of other things since."""
    assert meant(query, said(("What is there?", reply), *ON_OTHER_MATTERS)) == names


@pytest.mark.parametrize(("reply", "query", "names"), OTHERS)
def test_other_references(reply: str, query: str, names: str) -> None:
    """Names, prices, properties and plurals mean what a person would take them for."""
    assert meant(query, said(("What is there?", reply))) == names


LATER = ("And the price of the LOQ?", "The Lenovo LOQ 15 costs $697.00 and has 16GB DDR5, 512GB SSD.")


@pytest.mark.parametrize(
    ("query", "names"),
    [("the second one", TUF), ("the last one", VICTUS), ("the first two", f"{LOQ} and {TUF}"), ("it", LOQ)],
)
def test_a_list_outlives_an_answer(query: str, names: str) -> None:
    """After an answer on one item the list still counts; a single thing is what was spoken of last."""
    assert meant(query, said(("Which?", PARAGRAPHS), LATER)) == names


def test_a_kind_with_that_is_what_was_spoken_of() -> None:
    """ "that laptop" is the one thing that the last reply told of, be it a row of a table."""
    row = "laptop: HP Pavilion 14; gpu: Intel Iris Xe; price: $519; weight: 1.4 kg"
    files = TurnFiles(
        turn=1,
        session_id="s",
        at="2026-01-01T10:00:00Z",
        query="how much is the HP Pavilion 14?",
        reply=row,
        statements=((row, ("knowledge:a.md",)),),
    )
    carry = carry_over(EMPTY, files)
    assert meant("how heavy is that Laptop", carry) == "HP Pavilion 14"
    assert meant("how heavy is that kettle", carry) == ""


def test_the_newest_list_counts() -> None:
    """Of two lists the later one is counted."""
    assert meant("the second one", said(("Which?", NUMBERED), ("Where?", BULLETED))) == "Newegg"


def test_the_other_one() -> None:
    """Of two things the other one is that which was not spoken of since."""
    carry = said(("Which?", NAMES), ("Is the HP Victus in stock?", "The HP Victus is in stock."))
    assert meant("And the other one?", carry) == "Acer Nitro"


def test_items_with_nearly_the_same_name() -> None:
    """Items of one list are different things, though one's name stands in the other's."""
    reply = "1. Lenovo LOQ 15\n2. Lenovo LOQ 15 Pro\n3. Lenovo LOQ"
    assert meant("the second one", said(("Which?", reply))) == "Lenovo LOQ 15 Pro"


def test_a_thing_that_is_listed_again_is_that_of_just_the_name() -> None:
    """A thing of an earlier list whose name is a part of it is another one."""
    first = "1. Lenovo LOQ 15\n2. Lenovo LOQ 15 Pro\n3. HP Victus"
    again = "1. Lenovo LOQ 15 Pro\n2. HP Victus"
    carry = said(("Which?", first), ("Which are light?", again))
    assert meant("the first one", carry) == "Lenovo LOQ 15 Pro"


@pytest.mark.parametrize(
    "reply",
    [
        "Lenovo LOQ 15: NVIDIA RTX 4050, 16GB DDR5 and 512GB SSD.",
        "The Lenovo LOQ 15 is the top pick at $697: NVIDIA RTX 4050, thin bezels, In Stock at Best Buy.",
        "The Lenovo LOQ 15:\n- Price: $697\n- Memory: 16GB\n- GPU: RTX 4050",
        "It costs $697.",
    ],
)
def test_traits_are_no_list(reply: str) -> None:
    """What is said of one thing is no list of things."""
    assert listed_things(reply, [reply]) == []


@pytest.mark.parametrize(
    "query",
    [
        "What happened in the last two weeks?",
        "the top speed",
        "What is the last day?",
        "at first",
        "What is the first law of thermodynamics?",
        "When was the second World War?",
        "Find me the cheapest flight to Rome.",
        "What is the longest river?",
        "what's the cheapest laptop with nvidia gpu",
        "Which laptop is the cheapest?",
        "what is the cheapest laptop",
        "can we arrive on the 2nd?",
        "a second opinion would be good",
        "my first choice is a desktop",
        "last week it rained",
        "the best laptop that money can buy",
    ],
)
def test_words_that_count_nothing(query: str) -> None:
    """Ordinals of time and manner mean no item."""
    assert meant(query, said(("Which?", NUMBERED))) == ""


def test_what_it_means_after_an_ordinal() -> None:
    """ "It" is what the last query was about, though that named it only by its place."""
    carry = said(
        ("Which?", SHRUBS), ("And the last one?", "The Mahonia has holly-like leaves. So has Skimmia.")
    )
    assert meant("How high does it grow?", carry) == "Mahonia"


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("And the last one?", "When does Mahonia flower?"),
        ("What about the Skimmia?", "When does Japanese Skimmia flower?"),
        ("And how high is the last one?", None),
        ("And then?", None),
    ],
)
def test_a_follow_up_asks_the_same(query: str, asks: str | None) -> None:
    """A query that only names another thing asks of it what was asked before, also two turns before."""
    first = ("When does the first one flower?", "The hydrangea flowers from June to September.")
    for turns in ([first], [first, ("And the second one?", "In winter.")]):
        carry = said(("Which?", SHRUBS), *turns)
        assert follow_up(query, find_references(query, carry), carry) == asks


def test_names_replace_references() -> None:
    """The resolved query has the names in the place of the words."""
    carry = said(("Which?", NUMBERED))
    query = "How much is the second one, and is the first one lighter?"
    resolved = replace_references(query, find_references(query, carry), carry)
    assert resolved == f"How much is {TUF}, and is {LOQ} lighter?"


@pytest.mark.parametrize("between", ["", "\n", "\nAnd the tents:\n\n"])
def test_two_tables_are_two_lists(between: str) -> None:
    """A table ends where its lines end, or above the head of the next: rows are told by their own head."""
    one = "| laptop | price |\n|---|---|\n| LOQ | $697 |\n| Victus | $749 |\n"
    other = "| tent | weight |\n|---|---|\n| Nallo | 2 kg |\n| Hubba | 1 kg |\n"
    assert [text for _, text in listed_things(one + between + other)] == [
        "LOQ: price $697",
        "Victus: price $749",
    ]
