"""Whose value it is, what is denied and what follows: values of other things, denials, work that is shown."""

import time
from pathlib import Path

import pytest

from panda.documents.evidence import check_each, check_evidence, tell_claims, told_claims
from panda.evals.cases import load_cases

CASES = load_cases(Path(__file__).with_name("evidence_things.jsonl"))
"""Answers about recipes, sport, bills, medicine and more in four languages, written before the check was."""
MOST_FALSE_APPROVED = 24
MOST_TRUE_REFUSED = 29
MUSEUM = "Maritime Museum: Tue–Sun 10–18, closed Mondays. Adults 14 €, reduced 9 €."
BOARD = "Offer Dachbau 38,400 €, offer Kessler 41,150 €. Kessler was not chosen. Fees are at most 300 €."
CHOIR = "Altos: Grete, Noor, Pauline. Tenors: Emil, Hasan. Standings: Holm 3.5, Kranz 3. Runs: 6 × 800 m."
MOST_SECONDS = 3.0  # of CPU


def reasons(text: str, *sources: str) -> list[str]:
    """Return what the sources say instead of each claim that they do not support."""
    return [claim.reason for claim in check_evidence(text, sources)]


def test_few_pairs_are_judged_wrongly() -> None:
    """Of 117 false pairs at most a fifth is left to the judge; of 458 true ones few are refused."""
    approved = []
    refused = []
    for case in CASES:
        is_refused = bool(check_evidence(case.query, [option.text for option in case.options]))
        if case.label == "unsupported" and not is_refused:
            approved.append(case.query)
        if case.label == "supported" and is_refused:
            refused.append(case.query)
    assert len(approved) <= MOST_FALSE_APPROVED, approved
    assert len(refused) <= MOST_TRUE_REFUSED, refused


@pytest.mark.parametrize(
    ("text", "source", "reason"),
    [
        ("Adults pay 9 €.", MUSEUM, "9 € stands beside 'reduced', not beside 'Adults'"),
        ("Dachbau asks 41,150 €.", BOARD, "41,150 € stands beside 'offer Kessler', not beside 'Dachbau'"),
        ("Noor is a tenor.", CHOIR, "Noor stands beside 'Altos', not beside 'tenor'"),
        ("Hive 4 was seen.", "Hive 3: 4 mites", "the lines speak of Hive 3, not of Hive 4"),
        ("Kessler was chosen.", BOARD, "the line says 'not chosen'"),
        ("The museum is open on Mondays.", MUSEUM, "the line says 'closed Mondays.'"),
        ("The fee is at least 300 €.", BOARD, "the line says 'Fees are at most 300 €.'"),
        ("Grillen ist erlaubt.", "Grillen ist nicht erlaubt.", "the line says 'nicht erlaubt'"),
        ("Le bassin est chauffé.", "Le bassin n'est pas chauffé.", "the line says 'pas chauffé'"),
        ("Se aceptan tarjetas.", "No se aceptan tarjetas.", "the line says 'No se aceptan'"),
    ],
)
def test_a_refusal_tells_what_the_lines_say(text: str, source: str, reason: str) -> None:
    """A value of another thing is told with both things, a denial with its words."""
    assert reasons(text, source) == [reason]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("Adults pay 14 €, others 9 €.", MUSEUM),
        ("At 38,400 € Dachbau is cheaper than Kessler (41,150 €).", BOARD),
        ("Not Kessler was chosen, although the offer was 41,150 €.", BOARD),
        ("Unlike Kessler, Dachbau asks 38,400 €.", BOARD),
        ("The museum isn't open on Mondays.", MUSEUM),
        ("The luggage is free in any case.", "Cabin luggage is not free before May."),
        (
            "The pump costs 30 €. It runs for 8 h.",
            "The pump costs 30 €. It runs for 8 h. The boiler runs for 9 h.",
        ),
        ("Kessler is €2,750 more (41,150 − 38,400).", BOARD),
        ("half of 14 €, 7 €", MUSEUM),
        ("There are three altos and two tenors.", CHOIR),
        ("Kranz has 3 points.", CHOIR),
        ("You ran 6 times 800 m.", CHOIR),
        ("Three are listed: bread, milk and oil.", "## Listed\n- bread\n- milk\n- oil"),
    ],
)
def test_what_may_be_so_is_approved(text: str, source: str) -> None:
    """Comparisons, several values, denials of both, shown work and lengths of lists are supported."""
    assert check_evidence(text, [source]) == []


@pytest.mark.parametrize(
    "text",
    [
        "Kessler is €2,700 more (41,150 − 38,400).",
        "Kessler is €2,750 more (41,250 − 38,500).",
        "There are two altos.",
        "There are three basses.",
        "Holm has 3 points.",
        "You ran 7 times 800 m.",
    ],
)
def test_what_does_not_follow_is_refused(text: str) -> None:
    """A result that is off, an operand that no line has, and a count of something else are not supported."""
    assert check_evidence(text, [BOARD, CHOIR])


def test_a_message_is_read_back_as_the_claims_that_it_names() -> None:
    """The message quotes a long item up to a word, and names its claims first."""
    item = f"Adults pay 9 € for a ticket to the Maritime Museum, {'which is open ' * 4}to everybody."
    claims = check_evidence(item, [MUSEUM])
    message = tell_claims(claims, item, ["note:museum"])
    assert message.startswith("9 € in 'Adults pay 9 €")
    assert "which is…' is not what note:museum says: 9 € stands beside 'reduced'" in message
    assert told_claims(message, item) == ["9 €"]
    assert told_claims(message, "Another item.") is None


def test_many_items_are_held_against_many_lines_quickly() -> None:
    """Sixty items against sixty lines take a few milliseconds each."""
    lines = [f"Rider {at}: paid {at * 7} € on {at % 28 + 1} May, {at + 2} km by bus" for at in range(60)]
    items = [f"Rider {at} paid {at * 7} € and rode {at + 2} km." for at in range(60)]
    started = time.process_time()
    assert check_each(items, ["\n".join(lines)]) == [[]] * len(items)
    assert time.process_time() - started < MOST_SECONDS
