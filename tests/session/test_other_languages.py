"""German, French and Spanish messages tell, ask, go on and forget; nothing of them is taken for an order."""

from pathlib import Path

import pytest

from tests.api import LAPTOPS, Panda


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """Ann's laptops, with the models that come with panda."""
    return Panda(tmp_path / "project", LAPTOPS, user="ann")


TOLD = [
    ("Annikas Pferd heißt Sturmwind.", "wie heißt Annikas Pferd", "Sturmwind"),
    ("die neue Fritteuse hat 649 Euro gekostet", "was hat die Fritteuse gekostet", "649"),
    ("Le chien de Maïwenn s'appelle Gribouille.", "comment s'appelle le chien de Maïwenn", "Gribouille"),
    ("le taille-haie est chez le voisin", "où est le taille-haie", "voisin"),
    ("Mi abuelo nació en Soria.", "dónde nació mi abuelo", "Soria"),
    ("la llave del trastero está en el cajón", "¿dónde está la llave del trastero?", "cajón"),
]


@pytest.mark.parametrize(("statement", "query", "value"), TOLD)
def test_what_is_told_is_noted_and_answers(panda: Panda, statement: str, query: str, value: str) -> None:
    """A statement is noted word for word, and a question without a mark is asked."""
    noted = panda.turn(statement).data["noted"]
    assert [entry["text"] for entry in noted] == [statement]
    answer = panda.turn(query)
    assert answer.data["outcome"] == "answered"
    assert value in answer.response
    assert answer.data["noted"] == []


@pytest.mark.parametrize("query", ["wann war die Heizung zuletzt dran", "y la cerradura", "qui arrive lundi"])
def test_a_question_without_a_mark_tells_nothing(panda: Panda, query: str) -> None:
    """Nothing is noted of what begins with a question word, or goes on in a few words."""
    assert panda.turn(query).data["noted"] == []


@pytest.mark.parametrize("query", ["Danke dir!", "merci beaucoup", "Muchas gracias"])
def test_thanks_are_not_noted(panda: Panda, query: str) -> None:
    """Small talk of common words is only answered."""
    ended = panda.turn(query)
    assert (ended.data["noted"], ended.data["outcome"]) == ([], "talk")


@pytest.mark.parametrize(
    ("statement", "order"),
    [
        (
            "Frau Bollmann hat ihren Keller an Cetin abgegeben.",
            "vergiss bitte das mit dem Keller von Bollmann",
        ),
        ("La chambre de Paul est au premier étage.", "oublie ce que je t'ai dit sur la chambre de Paul"),
        ("El código de la taquilla es 8813.", "olvida lo que te dije del código de la taquilla"),
    ],
)
def test_an_order_to_forget_is_carried_out(panda: Panda, statement: str, order: str) -> None:
    """Nothing of the statement is left in the memory."""
    panda.turn(statement)
    assert panda.turn(order).data["outcome"] == "forgotten"
    assert statement not in (panda.user_directory / "facts.md").read_text(encoding="utf-8")
    assert statement not in (panda.user_directory / "memory.jsonl").read_text(encoding="utf-8")


def test_not_to_forget_is_no_order(panda: Panda) -> None:
    """Who asks not to forget something has nothing removed."""
    panda.turn("Der Schornsteinfeger kommt am Montag.")
    assert panda.turn("vergiss nicht: der Schornsteinfeger kommt am Montag").data["outcome"] != "forgotten"
    assert "Schornsteinfeger" in (panda.user_directory / "facts.md").read_text(encoding="utf-8")


def test_a_follow_up_asks_anew_of_another_thing(panda: Panda) -> None:
    """Both names of a pair take the place of the pair that the last question named."""
    panda.turn("For Kit and Rosalind the flowers are tulips.", "--session", "talk")
    panda.turn("For Farah and Toby the flowers are dahlias.", "--session", "talk")
    assert "tulips" in panda.turn("which flowers for Kit and Rosalind?", "--session", "talk").response
    assert "dahlias" in panda.turn("and for Farah and Toby", "--session", "talk").response
