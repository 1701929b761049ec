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
    (
        "30 on the gallery × 12 € (14 € − 2 €) = 360 €, of 180 seats.",
        ["180 seats, 30 on the gallery. Full price 14 €, gallery seats 2 € less"],
        "14 € − 2 €, 30 × 12 €",
    ),
    ("With 10 % off $200 you pay $180.", ["Tent: $200", "10 % off everything"], "$200 − 10 %"),
    ("The total is $7: $1, $2 and $4.", [SHOPPING], "$1 + $2 + $4"),
    ("On average they cost $2.33 ($1, $2, $4).", [SHOPPING], "($1 + $2 + $4) / 3"),
    ("There are three fruits: apples, pears and plums.", [FRUIT], "apples, pears, plums"),
    (
        "You like two brands, Lenovo and ASUS.",
        ["Lenovo and ASUS are the brands that I like."],
        "Lenovo, ASUS",
    ),
    ("$749.99 is $52.99 more than $697.00.", [LOQ, TUF], "$749.99 − $697.00"),
    ("$697.00 is $52.99 less than $749.99.", [LOQ, TUF], "$749.99 − $697.00"),
    ("$240 for 3 people is $80 each.", ["3 people: $240"], "$240 / 3"),
    ("$1,000 for 3 nights is about $333 per night.", ["3 nights: $1,000"], "$1,000 / 3"),
    ("It costs $9. Together $1 and $2 come to $3.", ["$9", "$1, $2"], "$1 + $2"),
    ("Together $1 and $2 come to $3. It costs $9.", ["$9", "$1, $2"], "$1 + $2"),
    ("It takes 2 hours and then 3 hours, 5 hours in total.", ["2 hours", "3 hours"], "2 hours + 3 hours"),
    ("$50 is 25 % of $200.", ["$50 of $200"], "$50 / $200"),
    ("$50 is 33.3 % of $150.", ["$50 of $150"], "$50 / $150"),
    ("20 % of $50 is $10.", ["20 %", "$50"], "20 % of $50"),
    ("With 10 % tax on $200 you pay $220.", ["Tent: $200", "10 % tax"], "$200 + 10 %"),
    ("On average they cost $2.3 ($1, $2, $4).", [SHOPPING], "($1 + $2 + $4) / 3"),
    ("On average they cost $1.8 ($1, $2.50).", ["$1, $2.50"], "($1 + $2.50) / 2"),
    ("On average they cost $10 ($9.50, $9.56).", ["$9.50, $9.56"], "($9.50 + $9.56) / 2"),
    ("It makes $3: $1 and $2.", [SHOPPING], "$1 + $2"),
    ("3 × 4 = 12", ["3 and 4"], "3 × 4"),
    ("It fell by 5 kg, from 80 kg to 75 kg.", ["80 kg, 75 kg"], "80 kg − 75 kg"),
    ("There are three fruits: apples, pears and plums.", [f"Today\n{FRUIT}"], "apples, pears, plums"),
    (f"There are three fruits:\n{FRUIT}", [FRUIT], "apples, pears, plums"),
    ("Apples, pears and plums are three fruits.", [FRUIT], "Apples, pears, plums"),
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
    ("With 10 kg off $200 you pay $180.", ["Tent: $200", "10 kg"]),
    ("In all it costs $80 a month: $80 a night.", ["$80 per night"]),
    ("On average it costs $80 a month: $80 a night.", ["$80 per night"]),
    ("It was $240 for 3 nights and $80 on top.", ["3 nights: $240"]),
    ("$100 for 0 nights is $50 per night.", ["0 nights: $100"]),
    ("$1,000 for 3 nights is about $300 per night.", ["3 nights: $1,000"]),
    ("Rated 2.5 by guests, at $80 it comes to $200.", ["rated 2.5: $80"]),
    ("The LOQ 15 at $80 each comes to $1,200.", ["LOQ 15: $80"]),
    ("3 kg times 4 kg = 12 kg", ["3 kg, 4 kg"]),
    ("$3 times $4 is $12.", ["$3, $4"]),
    ("The LOQ costs $697.00, $53 less than the TUF at $749.99.", [LOQ, TUF]),
    ("3 nights at $80.30 a night come to $241.", ["3 nights", "$80.30 per night"]),
    ("Together $1.40 and $2.20 come to $4.", ["$1.40, $2.20"]),
    ("33 % of $50 is $17.", ["33 %", "$50"]),
    ("With 33 % off $50 you pay $34.", ["33 %", "$50"]),
    ("With 33 % tax on $50 you pay $67.", ["33 %", "$50"]),
    ("3 rooms, 4 beds: 12 in total.", ["3 rooms, 4 beds"]),
    ("$749.99 is $52.99 less than $697.00.", [LOQ, TUF]),
    ("$697.00 is $52.99 more than $749.99.", [LOQ, TUF]),
    ("It rose from 75 kg to 80 kg: 5 lb more.", ["80 kg, 75 kg"]),
    ("It fell by 155 kg, from 80 kg to 75 kg.", ["80 kg, 75 kg"]),
    ("It rose by 2 %, from 3 % to 5 %.", ["3 % and 5 %"]),
    ("$50 is 34 % of $150.", ["$50 of $150"]),
    ("$50 is 25 % cheaper than $200.", ["$50 of $200"]),
    ("50 kg is 25 % of $200.", ["50 kg and $200"]),
    ("$0 is 5 % of $0.", ["$0"]),
    ("20 % of $50 is $12.", ["20 %", "$50"]),
    ("On average they cost $2.4 ($1, $2, $4).", [SHOPPING]),
    ("On average they cost $3 ($1, $2, $5).", ["$1, $2, $5"]),
    ("$1 and $2 come to $3 in total.", [SHOPPING]),
    ("$1 and $2 come to $3 in total.", ["Prices", SHOPPING]),
    ("$1 and $2 come to $3 in total.", ["- milk $1, eggs $2\n- ham $9"]),
    ("Counts of 3 and 4 make 12.", ["3 and 4"]),
    ("It costs $9! Together $1 and $2 come to $4.", ["$9", "$1, $2"]),
    ("Versions 1.2 and 2.1 make version 3.3.", ["1.2 and 2.1"]),
    ("Together 1 and 2 make the LOQ 3.", ["1 and 2, LOQ"]),
    ("The first 1 and 2 make the 3rd.", ["1 and 2, the first and second"]),
    ("There are $3: apples, pears and plums.", [FRUIT]),
    ("There are 3 kg: apples, pears and plums.", [FRUIT]),
    ("There is 1 fruit: apples.", ["apples"]),
    ("There are three fruits: apples, pears and the.", ["apples, pears"]),
    ("There are three fruits: apples, pears and plums.", ["apples, pears"]),
]


@pytest.mark.parametrize(("text", "sources", "steps"), PROVED)
def test_a_stated_operation_is_proved(text: str, sources: list[str], steps: str) -> None:
    """A number that no source holds counts if the text states its operands, and the proof shows them."""
    assert check_evidence(text, sources) == []
    assert ", ".join(proof.steps for proof in find_proofs(text, sources)) == steps


@pytest.mark.parametrize(("text", "sources"), NOT_PROVED)
def test_anything_else_is_not(text: str, sources: list[str]) -> None:
    """False arithmetic, operands that are not stated or not held, and parts of a list prove nothing."""
    assert check_evidence(text, sources)


@pytest.mark.parametrize("text", ["It weighs about 2.4 kg.", "It costs around $700.", "Roughly $750"])
def test_what_says_that_it_is_rounded_may_be(text: str) -> None:
    """A number after "about" stands for a held one that rounds to it, within a twentieth."""
    assert check_evidence(text, [LOQ, TUF]) == []
