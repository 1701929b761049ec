"""Rung 4: wordings of a model that writes are used only if they are true and short enough."""

import pytest

from panda.compression.compress import Compression, compress
from panda.compression.fit import Rewrite
from panda.errors import ReplyError
from panda.models.cl100k import count_tokens

TEXT = "# Laptops\n\n" + " ".join(
    f"The laptop called {name} has a price of ${n}97 in shops these days, which many people find quite fair."
    for n, name in enumerate(("Ada", "Bea", "Cleo", "Dora", "Edna"), 2)
)


def with_model(rewrite: Rewrite | None) -> Compression:
    """The text at half its size."""
    budget = count_tokens(TEXT) // 2
    return compress(TEXT, kind="generic", budget_tokens=budget, rewrite=rewrite)


def test_a_good_wording_is_used() -> None:
    """A shorter wording of what the text says stands in its place, under its heading."""
    made = with_model(lambda passage, tokens: "Ada is $297, Bea $397, Cleo $497, Dora $597, Edna $697.")
    assert made.text == "# Laptops\n\nAda is $297, Bea $397, Cleo $497, Dora $597, Edna $697."
    assert (made.rung, made.method, made.note) == (4, "rewrite", None)


def fails(passage: str, tokens: int) -> str:
    raise ReplyError("no valid reply in 1 attempts")


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda passage, tokens: "",
        lambda passage, tokens: " … ",
        lambda passage, tokens: passage + " " + passage,
        lambda passage, tokens: "Ada is $298.",
        lambda passage, tokens: "Ada was found on 4 May 2024.",
        lambda passage, tokens: "See https://ada.example for Ada.",
        lambda passage, tokens: 'Ada is called "the Great One".',
        lambda passage, tokens: "# Ada\n\nAda is $297.",
        lambda passage, tokens: "```\nAda",
        fails,
    ],
    ids=["nothing", "no words", "twice", "price", "date", "url", "name", "heading", "fence", "error"],
)
def test_a_bad_wording_is_thrown_away(rewrite: Rewrite) -> None:
    """Nothing, too much, a changed value or a forged structure: the extract stands, and the note says why."""
    made = with_model(rewrite)
    assert made.text == with_model(None).text
    assert made.rung == 3
    assert made.note


def test_protected_text_is_not_given_away() -> None:
    """Error messages are not sent to be worded anew."""
    seen: list[str] = []

    def rewrite(passage: str, tokens: int) -> str:
        seen.append(passage)
        return ""

    text = "ValueError: no such thing\n\n" + TEXT
    compress(text, kind="generic", budget_tokens=60, rewrite=rewrite)
    assert seen
    assert not any("ValueError" in passage for passage in seen)
