"""What "the second one" and its like mean, on lists of several forms."""

import pytest

from panda.documents.listings import listed_items
from panda.session.carrying import carry_over
from panda.session.references import find_references, replace_references
from panda.session.turn_files import TurnFiles
from panda.session.values import EMPTY, Carry

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


@pytest.mark.parametrize(("reply", "query", "names"), ORDINALS)
def test_ordinals_count_the_list(reply: str, query: str, names: str) -> None:
    """An ordinal means the item of the last list that stands there, whatever the form of the list."""
    assert meant(query, said(("What is there?", reply))) == names


def test_other_references() -> None:
    """Of names, prices and plurals at least four in five mean what a person would take them for."""
    wrong = [
        (q, found) for reply, q, n in OTHERS if (found := meant(q, said(("What is there?", reply)))) != n
    ]
    assert len(wrong) <= len(OTHERS) // 5, wrong


LATER = ("And the price of the LOQ?", "The Lenovo LOQ 15 costs $697.00 and has 16GB DDR5, 512GB SSD.")


@pytest.mark.parametrize(
    ("query", "names"),
    [("the second one", TUF), ("the last one", VICTUS), ("the first two", f"{LOQ} and {TUF}"), ("it", LOQ)],
)
def test_a_list_outlives_an_answer(query: str, names: str) -> None:
    """After an answer on one item the list still counts; a single thing is what was spoken of last."""
    assert meant(query, said(("Which?", PARAGRAPHS), LATER)) == names


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
    assert listed_items(reply, [reply]) == []


@pytest.mark.parametrize(
    "query", ["What happened in the last two weeks?", "the top speed", "What is the last day?", "at first"]
)
def test_words_that_count_nothing(query: str) -> None:
    """Ordinals of time and manner mean no item."""
    assert meant(query, said(("Which?", NUMBERED))) == ""


def test_names_replace_references() -> None:
    """The resolved query has the names in the place of the words."""
    carry = said(("Which?", NUMBERED))
    query = "How much is the second one, and is the first one lighter?"
    resolved = replace_references(query, find_references(query, carry), carry)
    assert resolved == f"How much is {TUF}, and is {LOQ} lighter?"
