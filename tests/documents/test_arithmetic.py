"""Which computed numbers are proved by what the same text states, and which are not."""

import pytest

from panda.documents.evidence import check_evidence, find_proofs

LOQ = "Lenovo LOQ 15: price $697.00, 2.38 kg"
TUF = "ASUS TUF A15: price $749.99, 2.2 kg"
SHOPPING = "- milk $1\n- eggs $2\n- ham $4"
FRUIT = "- apples\n- pears\n- plums"

PROVED = [
    ("The LOQ 15 costs $697.00, $52.99 less than the TUF A15 at $749.99.", [LOQ, TUF], "$749.99 − $697.00"),
    ("The difference between 2.38 kg and 2.2 kg is 0.18 kg.", [LOQ, TUF], "2.38 kg − 2.2 kg"),
    ("$749.99 − $697.00 = $52.99", [LOQ, TUF], "$749.99 − $697.00"),
    ("Together $697 and $749.99 come to $1,446.99.", [LOQ, TUF], "$697 + $749.99"),
    ("The LOQ ($697) is 7.1 % cheaper than the TUF ($749.99).", [LOQ, TUF], "($697 − $749.99) / $749.99"),
    ("The LOQ ($697) is about 7 % cheaper than the TUF ($749.99).", [LOQ, TUF], "($697 − $749.99) / $749.99"),
    ("3 nights at $80 a night come to $240.", ["3 nights booked", "$80 per night"], "3 × $80"),
    ("$240 for 3 nights is $80 per night.", ["3 nights: $240"], "$240 / 3"),
    ("With 10 % off $200 you pay $180.", ["Tent: $200", "10 % off everything"], "$200 − 10 %"),
    ("The total is $7: $1, $2 and $4.", [SHOPPING], "$1 + $2 + $4"),
    ("On average they cost $2.33 ($1, $2, $4).", [SHOPPING], "($1 + $2 + $4) / 3"),
    ("There are three fruits: apples, pears and plums.", [FRUIT], "apples, pears, plums"),
    (
        "You like two brands, Lenovo and ASUS.",
        ["Lenovo and ASUS are the brands that I like."],
        "Lenovo, ASUS",
    ),
]
NOT_PROVED = [
    ("The LOQ 15 costs $697.00, $52.98 less than the TUF A15 at $749.99.", [LOQ, TUF]),
    ("The LOQ 15 costs $697.00, $52.99 more than the TUF A15 at $749.99.", [LOQ, TUF]),
    ("The LOQ 15 is $52.99 less than the TUF A15.", [LOQ, TUF]),
    ("The LOQ 15 costs $697.00, $52.99 less than another at $749.99.", [LOQ]),
    ("The LOQ 15 costs $697, the TUF A15 $749.99, a keyboard $52.99.", [LOQ, TUF]),
    ("The LOQ 15 costs $697.00, 52.99 kg less than $749.99.", [LOQ, TUF]),
    ("Together $697 and $749.99 come to $1,445.99.", [LOQ, TUF]),
    ("The LOQ ($697) is 9 % cheaper than the TUF ($749.99).", [LOQ, TUF]),
    ("3 nights at $80 a night come to $250.", ["3 nights booked", "$80 per night"]),
    ("4 nights at $80 a night come to $320.", ["3 nights booked", "$80 per night"]),
    ("With 10 % off $200 you pay $190.", ["Tent: $200", "10 % off everything"]),
    ("The total is $5: $1 and $4.", [SHOPPING]),
    ("On average they cost $1.50 ($1, $2).", [SHOPPING]),
    ("There are two fruits: apples and pears.", [FRUIT]),
    ("There are four fruits: apples, pears and plums.", [FRUIT]),
    ("There are four fruits: apples, pears, plums and figs.", [FRUIT]),
    ("You like two brands, Lenovo and ASUS.", ["Lenovo, HP and ASUS are the brands that I like."]),
    ("It weighs about 2.5 kg.", [LOQ]),
    ("It costs about $1,000.", [LOQ]),
    ("It costs $700.", [LOQ]),
]


@pytest.mark.parametrize(("text", "sources", "steps"), PROVED)
def test_a_stated_operation_is_proved(text: str, sources: list[str], steps: str) -> None:
    """A number that no source holds counts if the text states its operands, and the proof shows them."""
    assert check_evidence(text, sources) == []
    assert [proof.steps for proof in find_proofs(text, sources)] == [steps]


@pytest.mark.parametrize(("text", "sources"), NOT_PROVED)
def test_anything_else_is_not(text: str, sources: list[str]) -> None:
    """False arithmetic, operands that are not stated or not held, and parts of a list prove nothing."""
    assert check_evidence(text, sources)


@pytest.mark.parametrize("text", ["It weighs about 2.4 kg.", "It costs around $700.", "Roughly $750"])
def test_what_says_that_it_is_rounded_may_be(text: str) -> None:
    """A number after "about" stands for a held one that rounds to it, within a twentieth."""
    assert check_evidence(text, [LOQ, TUF]) == []
