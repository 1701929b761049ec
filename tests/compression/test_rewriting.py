"""Rung 4: wordings of a model that writes are used only if they are true and short enough."""

import json

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
        lambda passage, tokens: "Ada is $297, Bea $397, Cleo $497, Edna $697.",
        lambda passage, tokens: "# Ada\n\nAda is $297.",
        lambda passage, tokens: "```\nAda",
        fails,
    ],
    ids=["nothing", "no words", "twice", "price", "date", "url", "name", "lost", "heading", "fence", "error"],
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


TALK = (
    "There is much to say about the keys. Some find the fans loud in summer. The hinge feels firm to most. "
    "Nobody in the shop had a word against the screen. Its lid collects every print of a thumb."
)
FACTS = (
    "It is $697 now.",
    "See https://a.example/loq for it.",
    "It came on 4 May 2024.",
    'They call it "Blue Whale".',
)


@pytest.mark.parametrize("fact", FACTS)
def test_nothing_is_lost(fact: str) -> None:
    """A wording that leaves out a price, URL, date or quoted name is refused, one that keeps it is used."""

    def made(wording: str) -> Compression:
        text = f"{fact} {TALK}"
        budget = count_tokens(text) // 2
        return compress(text, kind="generic", budget_tokens=budget, rewrite=lambda passage, tokens: wording)

    assert made(f"{fact} Fans are loud, hinge and screen good.").method == "rewrite"
    refused = made("Fans are loud, hinge and screen good.")
    assert refused.method != "rewrite"
    assert "is lost" in (refused.note or "")


def test_texts_of_json_are_worded_anew() -> None:
    """A long text of a page is worded anew, and the page stays JSON."""
    zone = {"name": "reviews", "price": "$697", "raw_text": TALK}
    text = json.dumps({"zones": [zone]})
    made = compress(
        text,
        kind="page_doc",
        budget_tokens=3 * count_tokens(text) // 4,
        rewrite=lambda passage, tokens: "Fans are loud, hinge and screen good.",
    )
    assert made.method == "rewrite"
    wording = "Fans are loud, hinge and screen good."
    assert json.loads(made.text) == {"zones": [{**zone, "raw_text": wording}]}
