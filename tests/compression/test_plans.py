"""A plan for each format: what stays at a quarter of their tokens of documents that people write."""

import json
import re
from pathlib import Path

import pytest

from tests.api import ROOT, Panda, ScriptedPanda
from tests.compression.faults import MARK
from tests.script import Asked, Script

DOCUMENTS = ROOT / "bench" / "documents"


@pytest.fixture
def panda(tmp_path: Path) -> Panda:
    """A project without a store, with a cache of its own."""
    return Panda(tmp_path / "project", XDG_CACHE_HOME=str(tmp_path / "cache"))


def quarter(panda: Panda, path: Path) -> tuple[str, str]:
    """Return a document at a quarter of its tokens, and what it was read as."""
    size = panda.json("compress", str(path), "--budget", "1000000")["before_tokens"]
    data = panda.json("compress", str(path), "--budget", str(size // 4))
    assert data["after_tokens"] <= size // 4
    return data["text"], data["format"]


@pytest.mark.parametrize(
    ("path", "document_format", "stays", "goes"),
    [
        (
            DOCUMENTS / "server.log",
            "log",
            [
                "KeyError: 'CHF'",
                "refused by gateway: card expired",
                "WHERE user_id = 199 [… 2 more like it, last 09:13:33]",
                "cannot send receipt: connection to smtp.example:25 timed out after 30 s",
                "served 150 requests, 6 errors, uptime 1 h 22 min",
            ],
            [],
        ),
        (
            DOCUMENTS / "build.log",
            "log",
            [
                "error: implicit declaration of function 'accept4'",
                "too few arguments",
                "2 errors and 3 warnings",
            ],
            [],
        ),
        (
            DOCUMENTS / "images.jsonl",
            "log",
            [
                "image is larger than 40 megapixels",
                "ConnectionRefusedError: [Errno 111]",
                "disk is 91 % full",
            ],
            [],
        ),
        (
            DOCUMENTS / "orders.csv",
            "table",
            [
                "order,date,customer,city,product,quantity,unit_price,status",
                "quantity 1 to 9",
                "payment failed",
                "refunded: arrived broken",
            ],
            [],
        ),
        (
            DOCUMENTS / "hosts.json",
            "json",
            [
                "out of memory: killed process 4121 (proxy)",
                '"proxy": "stopped"',
                "5.10.0-28",
                '"cluster": "west"',
            ],
            [],
        ),
        (
            DOCUMENTS / "manual.html",
            "html",
            ["# Cleaning the K-20 coffee machine", "descaled every two months", "| Code | Meaning |"],
            ["<", "svg", "cookies", "My account", "Sunrise blend"],
        ),
        (
            DOCUMENTS / "ticket.txt",
            "messages",
            [
                "Export to PDF cuts off",
                "LayoutError: table of 10 columns",
                "Status: resolved",
                "Decision: we wait for the fonts",
            ],
            ["Kind regards", "Which paper size"],
        ),
        (
            DOCUMENTS / "mail.txt",
            "messages",
            ["Subject: Re: Re: Where do we sing in December?", "We decided for the fish market"],
            ["Message-ID", "Quay Street", "> > Hi Tomas"],
        ),
        (
            ROOT / "models.yaml",
            "settings",
            ["layers:", "REFLEX: offline"],
            [],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else None,
)
def test_what_a_reader_needs_stays(
    panda: Panda, path: Path, document_format: str, stays: list[str], goes: list[str]
) -> None:
    """Errors, totals, titles, headers, decisions and what differs stay; markup, quotations and repeats go."""
    text, read_as = quarter(panda, path)
    assert read_as == document_format
    assert [part for part in stays if part not in text] == []
    assert [part for part in goes if part in text] == []


def test_a_ticket_keeps_what_was_decided(panda: Panda) -> None:
    """Of a ticket question, error, workaround, decision and end stay, each with who wrote it."""
    text = panda.json("compress", str(DOCUMENTS / "ticket.txt"), "--budget", "230")["text"]
    assert "Maren Vogt wrote on 2026-02-03 09:12:" in text
    assert "Jon Reyes wrote on 2026-02-04 09:02:\nAs a workaround, export in landscape" in text
    assert "Priya Nair wrote on 2026-02-05 14:15:\n[…] Decision: we wait for the fonts" in text


def test_code_keeps_signatures_and_docstrings_whole(panda: Panda) -> None:
    """Of a program each signature stands whole, and no docstring is cut within a paragraph."""
    path = ROOT / "panda" / "store" / "seals.py"
    source = path.read_text(encoding="utf-8")
    text, read_as = quarter(panda, path)
    assert read_as == "code"
    assert text.startswith(source.split("\n\n", 1)[0])
    functions = re.findall(r"(?m)^def \w+\((?:[^()]|\([^()]*\))*\)[^:]*:$", source)
    assert len(functions) > 3
    assert sum(function in text for function in functions) > len(functions) / 2
    assert [
        line for line in text.split("\n") if line not in source and not MARK.fullmatch(line.strip())
    ] == []


def test_a_page_says_what_it_said(panda: Panda) -> None:
    """Each word that is kept of a page stands in it, outside of its markup."""
    page = re.sub(r"<[^>]+>", " ", (DOCUMENTS / "manual.html").read_text(encoding="utf-8"))
    words = set(re.findall(r"\w+", page))
    text, _ = quarter(panda, DOCUMENTS / "manual.html")
    without_numbers = re.sub(r"(?m)^\d+\. ", "", MARK.sub("", text))  # of a list, as a browser shows them
    assert set(re.findall(r"\w+", without_numbers)) <= words


def test_badges_and_link_targets_go_before_what_is_said(panda: Panda) -> None:
    """A README keeps what it is and its commands; a list of badges and addresses goes."""
    badges = "\n".join(
        f"[![Badge {n}](https://img.example/{n}.svg)](https://ci.example/{n})" for n in range(12)
    )
    targets = "\n".join(f"[target{n}]: https://docs.example/{n}" for n in range(12))
    talk = " ".join(
        f"In the year {year} somebody rewrote a part of it for the {year}th time." for year in range(30)
    )
    panda.write(
        "README.md",
        f"# Sieve\n\n{badges}\n\nSieve sorts mail by rules.\n\n## Install\n\nInstall it with pip:\n\n"
        f"```sh\npip install sieve\n```\n\n## History\n\n{talk}\n\n{targets}\n",
    )
    text, _ = quarter(panda, panda.home / "README.md")
    assert "Sieve sorts mail by rules." in text
    assert "Install it with pip:\n\n```sh\npip install sieve\n```" in text
    assert "https://" not in text


def test_a_line_that_introduces_nothing_goes(panda: Panda) -> None:
    """A line that ends with a colon stands only with the first of what it introduces."""
    items = "\n".join(
        f"- Rule {n} is about the colour of hats and of the ribbons on them." for n in range(30)
    )
    panda.write("rules.md", f"# Rules\n\nThe rules are these:\n\n{items}\n")
    text, _ = quarter(panda, panda.home / "rules.md")
    assert "The rules are these:\n\n- Rule 0" in text
    panda.write("rules.md", f"# Rules\n\nNobody keeps them.\n\nThe rules are these:\n\n{items}\n")
    data = panda.json("compress", "rules.md", "--budget", "16")
    assert "these:" not in data["text"]


def test_the_type_that_is_given_counts(panda: Panda) -> None:
    """--type says how a document is read where its name and lines would say otherwise."""
    panda.write("rows.txt", "name,size\n" + "\n".join(f"part {n},{n}" for n in range(60)) + "\n")
    size = panda.json("compress", "rows.txt", "--budget", "100000")["before_tokens"]
    words = ("compress", "rows.txt", "--budget", str(size // 4), "--type", "table")
    data = panda.json(*words)
    assert data["format"] == "table"
    assert data["text"].startswith("name,size\n[… 60 rows: size 0 to 59]\n")
    assert data["kept"]["row"]["before"] == 60
    assert 0 < data["kept"]["row"]["after"] < 60


def test_claims_of_research_keep_their_sources(panda: Panda) -> None:
    """Each claim of research.md that stays has its address with it."""
    path = str(DOCUMENTS / "research.md")
    words = ("compress", path, "--budget", "240", "--query", "What does the Norda DW 420 cost?")
    text = panda.json(*words)["text"]
    claims = [line for line in text.split("\n") if line.startswith(("- The ", "- It "))]
    assert len(claims) > 1
    assert [line for line in claims if "Source: https://" not in line and "basket" not in line] == []
    assert (
        "It costs €629.00 at Haushalt24 and is in stock. Source: https://haushalt24.example/p/77120" in text
    )


class ShorterParagraphs(Script):
    """Words each passage of a call anew, by its first five words."""

    def __init__(self) -> None:
        super().__init__()
        self.passages_by_call: list[int] = []

    def __call__(self, asked: Asked) -> str | Exception:
        text = asked.text.partition("_to_compress =====\n")[2].partition("\n\nUser query: ")[0]
        passages = text.split("\n\n")
        self.passages_by_call.append(len(passages))
        return "\n\n".join(" ".join(passage.split()[:5]) + "." for passage in passages)


def test_several_passages_are_worded_in_one_call(ann: ScriptedPanda) -> None:
    """As many paragraphs as fit go into one call of NERVES, and each wording stands in its own paragraph."""
    script = ShorterParagraphs()
    ann.server.script = script
    names = ("Ada", "Bea", "Cleo", "Dora", "Edna", "Fay")
    paragraphs = [
        f"{name} walks along the river each morning before work begins. The dog of {name} runs ahead and "
        f"waits at every bridge for a while. In the evening both of them rest by the old mill."
        for name in names
    ]
    ann.write("documents/walks.md", "\n\n".join(paragraphs) + "\n")
    data = ann.json("compress", "documents/walks.md", "--budget", "130")
    assert data["method"] == "rewrite"
    assert max(script.passages_by_call) > 1
    assert sum(f"{name} walks along the river." in data["text"] for name in names) > 1


def test_json_lists_tell_how_many_are_left_out(panda: Panda) -> None:
    """A list keeps one full example and what differs from it; a mark counts the others."""
    records = [{"id": n, "kind": "cat", "tail": {"length_cm": 30, "colour": "grey"}} for n in range(40)]
    records[23]["kind"] = "dog"
    panda.write("pets.json", json.dumps(records))
    data = panda.json("compress", "pets.json", "--budget", "180")
    pets = json.loads(data["text"])
    assert pets[0] == records[0]
    assert any(isinstance(pet, dict) and pet.get("kind") == "dog" for pet in pets)
    assert any(isinstance(pet, str) and re.fullmatch(r"\[… \d+ more\]", pet) for pet in pets)
