"""What a reader needs of tickets, mails, minutes, lists of changes, settings, manuals and pages."""

import json

import pytest

from panda.compression.compressor import compress
from panda.compression.plans import detect_format
from panda.models.cl100k import count_tokens

TALK = "It was good to see that so many people had come, and there was a lot of talk about how it used to be."
TICKET = f"""\
Ticket 771: Scans do not arrive
Opened by: Helena

Since Monday our scanners cannot put anything into the archive. {TALK}

    08:14:03 upload begins
    08:14:05 ingest refused: HTTP 413 payload too large
    08:14:05 upload moved to retry queue

--- Comment by Support, 12.10.2026 09:20 ---

Dear Helena, thank you for your message. {TALK} {TALK}

--- Comment by Helena, 12.10.2026 10:41 ---

{TALK} His scanner shows this:

    [scan01] tls handshake
    [scan01] SSLError: certificate verify failed
    [scan01] giving up

--- Comment by Oskar, 13.10.2026 08:30 ---

{TALK} Both scanners have firmware 5.2 now. {TALK}
"""
MAIL = f"""\
From: Tobias <tobias@werkhof.example>
To: Sanne <sanne@werkhof.example>
Date: Thu, 5 Nov 2026 17:22:40 +0100
Subject: What we found in the laser cutter

Hi all,

I hope that this finds you well. {TALK} {TALK}

Mirek and I opened the laser cutter yesterday. The old 80 W tube gives 51 W at the head. {TALK} {TALK}

What I need from you:

- a yes or no to the new tube by Tuesday 10 November, since the shop holds it for us only until Wednesday
- the number of the insurance policy, as they want to know about the switch

{TALK} Let me know if there are any questions.
"""
MINUTES = f"""\
# Meeting of the school board

## Lunch

{TALK} {TALK}

## Way to school

{TALK} The vote on the "school street" came out 7 in favour and 1 against. {TALK}

## Who does what

| What | Who | Until |
|---|---|---|
| Apply for the school street | Jens | 15 October |
| Order ropes | Paul | 1 October |
"""
CHANGES = "\n".join(
    f"tea (1.{20 - n}.0) stable; urgency=low\n\n  * Brew {20 - n} degrees hotter than before.\n"
    f"  * Fix a leak that came with the kettle of 19{20 + n}.\n\n -- Ann <ann@tea.example>  Mon, 7 Apr 2025\n"
    for n in range(20)
)
SETTINGS = "# This file says how tea is made.\n\n" + "\n".join(
    f"# {TALK}\n# {TALK}\n\n[kettle{n}]\nwater = {n + 1} l\n# colour = green\n" for n in range(8)
)
PLAIN_SETTINGS = "\n".join(f"#\n# {TALK}\n# {TALK}\n#\nWATER_{n}\t{n + 10}" for n in range(8))
MANUAL = f"""\
TEA(1)                    User Commands                    TEA(1)

NAME
       tea - make tea

SYNOPSIS
       tea [options] CUP

DESCRIPTION
       {TALK} {TALK} {TALK}

OPTIONS
""" + "\n".join(
    f"       -{letter}, --{word}\n           Make the {word} of the tea so much more. {TALK}\n"
    for letter, word in zip("abcdef", ("aroma", "bite", "colour", "depth", "edge", "foam"), strict=True)
)
QUESTIONS = "Tea FAQ\n=======\n\n" + "\n".join(
    f"Q:  How is {name} tea made?\n\nA:  Heat the water for the {name} leaves to {70 + 2 * n} degrees.\n"
    f"    {TALK} {TALK}\n"
    for n, name in enumerate(("green", "black", "white", "yellow", "red", "dark"))
)
LIST = f"""\
# Members

There are three groups:

- Growers, who have a garden of their own and come to the meeting in spring with their seedlings.
- Buyers, who take at least one box of vegetables a week and pay for it before the season begins.
- Helpers, who give two days a year, most of them in the week in which the potatoes are dug out.

{TALK} {TALK} {TALK} {TALK}
"""
PAGE = f"""\
<html><head><title>Tea server</title></head><body><h1>Tea server</h1>
<p>The tea server keeps water hot and makes tea at the time that you want. {TALK} {TALK}</p>
<figure><pre>tea --strong</pre><figcaption>How it is called.</figcaption></figure>
<h2>Options</h2><dl><dt><code>--sugar
   <var>N</var></code></dt><dd>Adds N pieces of sugar.</dd>
<dt>--milk</dt><dd>Adds milk.</dd></dl><p>{TALK} {TALK}</p></body></html>
"""


@pytest.mark.parametrize(
    ("name", "text", "document_format", "share", "stays", "goes"),
    [
        ("ticket.txt", TICKET, "messages", 0.4, ["HTTP 413", "SSLError: certificate"], ["Dear Helena"]),
        (
            "mail.txt",
            MAIL,
            "messages",
            0.5,
            ["opened the laser cutter", "51 W", "by Tuesday 10 November", "- the number of the insurance"],
            ["I hope that", "any questions"],
        ),
        ("minutes.md", MINUTES, "text", 0.65, ["7 in favour", "| Jens | 15 Oct", "| Paul | 1 Oct"], []),
        (
            "changelog",
            CHANGES,
            "text",
            0.25,
            ["tea (1.20.0)", "Brew 20", "kettle of 1920", "tea (1.19.0)", "Brew 19"],
            ["tea (1.5.0)", "Brew 2 "],
        ),
        ("tea.cnf", SETTINGS, "settings", 0.3, [f"[kettle{n}]\nwater = {n + 1} l" for n in range(8)], []),
        ("tea.defs", PLAIN_SETTINGS, "settings", 0.3, [f"WATER_{n}\t{n + 10}" for n in range(8)], []),
        (
            "tea.1.txt",
            MANUAL,
            "text",
            0.3,
            [
                "tea [options] CUP",
                "-b, --bite\n           Make the bite",
                "-d, --depth\n           Make the",
            ],
            [],
        ),
        (
            "faq.txt",
            QUESTIONS,
            "text",
            0.5,
            ["How is green tea made?\n\nA:  Heat the water for the green"],
            [],
        ),
        (
            "tea.html",
            PAGE,
            "html",
            0.5,
            ["tea --strong", "Adds N pieces", "--milk: Adds milk."],
            ["<", "```"],
        ),
    ],
)
def test_what_a_reader_keeps_of_each_kind(
    name: str, text: str, document_format: str, share: float, stays: list[str], goes: list[str]
) -> None:
    """Errors, requests, tasks, new versions, keys, options and answers stay; greetings and talk go."""
    assert detect_format(name, text, "generic") == document_format
    budget = int(share * count_tokens(text))
    compressed = compress(text, kind="generic", budget_tokens=budget, name=name).text
    assert count_tokens(compressed) <= budget
    assert [part for part in stays if part not in compressed] == []
    assert [part for part in goes if part in compressed] == []


def test_no_answer_stands_without_its_question() -> None:
    """At any budget each question stands with the beginning of its answer, and no answer without it."""
    size = count_tokens(QUESTIONS)
    for budget in range(size // 8, size, size // 16):
        compressed = compress(QUESTIONS, kind="generic", budget_tokens=budget).text
        for name in ("green", "black", "white", "yellow", "red", "dark"):
            assert (f"How is {name} tea made?" in compressed) == (f"for the {name} leaves" in compressed)


def test_a_lead_in_stands_with_each_of_its_items() -> None:
    """A line that ends with a colon goes, or keeps the first words of each item of a short list."""
    size = count_tokens(LIST)
    for budget in range(size // 8, size, size // 16):
        compressed = compress(LIST, kind="generic", budget_tokens=budget).text
        items = [item in compressed for item in ("- Growers, who", "- Buyers, who", "- Helpers, who")]
        assert all(items) or "There are three groups:" not in compressed


def test_an_object_tells_how_many_of_its_keys_are_left_out() -> None:
    """The mark within an object of JSON counts its members that went."""
    text = json.dumps({"name": "west", "limits": {f"limit_{n}": f"value {n} of many" for n in range(30)}})
    compressed = json.loads(compress(text, kind="generic", budget_tokens=100).text)
    (mark,) = [key for key in compressed["limits"] if key.startswith("[…")]
    assert mark == f"[… {31 - len(compressed['limits'])} more]"


def test_an_error_in_settings_comes_first() -> None:
    """A line that tells of an error is kept first, whatever format the document is read as."""
    text = SETTINGS + "\nERROR: kettle 9 cannot be read\n"
    budget = count_tokens(text) // 12
    assert "ERROR: kettle 9" in compress(text, kind="generic", budget_tokens=budget, name="tea.cnf").text
