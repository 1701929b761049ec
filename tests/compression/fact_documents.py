"""Documents of many kinds that hold prices, URLs, dates and error messages, made from a seed."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUBJECTS = (
    "the seller",
    "the fan",
    "this keyboard",
    "our team",
    "the second reviewer",
    "a colleague",
    "the battery",
    "the panel",
    "the older model",
    "the support desk",
    "the update",
    "the hinge",
    "the customer",
    "the invoice",
    "the warehouse",
)
VERBS = (
    "explains",
    "replaces",
    "ignores",
    "prefers",
    "shows",
    "measures",
    "compares",
    "leaves out",
    "mentions",
    "keeps",
    "loses",
    "supports",
)
OBJECTS = (
    "a brighter screen",
    "the loud cooling",
    "what the others said",
    "the return policy",
    "several small parts",
    "the cable in the box",
    "the driver from last spring",
    "a longer warranty",
    "most of the games",
    "the colours near the edge",
    "a cheaper charger",
    "the long wait",
)
ENDS = (
    "and nobody objected",
    "although it was late",
    "because the old one broke",
    "while the others waited",
    "as far as we could tell",
    "which surprised everyone",
    "so the plan changed",
    "without a further word",
)
SHOPS = ("bestbuy", "newegg", "amazon", "walmart", "microcenter", "costco", "lenovo", "adorama")
MODELS = ("LOQ 15", "TUF A15", "Nitro V", "Victus 16", "Katana 17", "Legion 5", "Cyborg 15", "Aspire 7")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "October")


class Writer:
    """Writes sentences and facts, the same ones for a seed."""

    def __init__(self, seed: str, talk: float) -> None:
        self.random = random.Random(seed)
        self._talk = talk

    def said(self, sentences: int = 1) -> str:
        """So many sentences without a fact, times how much talk there is."""
        pick = self.random.choice
        sentences = max(1, round(sentences * self._talk))
        found = [
            f"{pick(SUBJECTS).capitalize()} {pick(VERBS)} {pick(OBJECTS)} {pick(ENDS)}."
            for _ in range(sentences)
        ]
        return " ".join(found)

    def price(self) -> str:
        """A price in dollars."""
        return f"${self.random.randint(2, 2999):,}.{self.random.choice(('00', '99', '49'))}"

    def url(self) -> str:
        """An address of a page of a shop."""
        pick = self.random.choice
        model = pick(MODELS).lower().replace(" ", "-")
        return f"https://www.{pick(SHOPS)}.com/{model}/p/{self.random.randint(10_000, 999_999)}"

    def day(self) -> str:
        """A date in ISO form."""
        pick = self.random.randint
        return f"{pick(2021, 2026)}-{pick(1, 12):02d}-{pick(1, 28):02d}"

    def written_day(self) -> str:
        """A date in words."""
        pick = self.random.randint
        return f"{self.random.choice(MONTHS)} {pick(1, 28)}, {pick(2021, 2026)}"

    def lines(self, number: int, line: Callable[[int], str], between: str = "\n") -> str:
        """So many lines."""
        return between.join(line(n) for n in range(number)) + "\n"

    def zone(self, n: int) -> dict[str, object]:
        """A zone of a page, with one product."""
        pick = self.random.choice
        return {
            "zone": ("product_card", "pricing", "reviews", "description")[n % 4],
            "confidence": self.random.randint(80, 99) / 100,
            "items": [
                {
                    "title": f"{pick(MODELS)} {n}",
                    "price": self.price(),
                    "url": self.url(),
                    "availability": pick(("In Stock", "Sold out")),
                    "released": self.day(),
                    "description": self.said(9),
                }
            ],
            "raw_text": self.said(8),
        }


def _trace(w: Writer, n: int) -> str:
    kind = w.random.choice(("ValueError", "TimeoutError", "KeyError", "requests.exceptions.HTTPError"))
    frames = "".join(f'  File "/srv/app/part_{k}.py", line {n + k}, in run\n    step(k)\n' for k in range(4))
    return f"Traceback (most recent call last):\n{frames}{kind}: no answer for order {n} of {w.url()}"


def _log_line(w: Writer, n: int) -> str:
    if n % 40 == 17:
        return _trace(w, n)
    if n % 40 == 31:
        return f"ERROR worker-{n % 5}: connection to {w.random.choice(SHOPS)}.com refused after {n} tries"
    return f"INFO worker-{n % 5}: {w.said()}"


def _research(w: Writer, n: int) -> str:
    pick = w.random.choice
    return (
        f"### {pick(MODELS)} at {pick(SHOPS)}\n\n{w.said(3)} The listing at {w.url()} "
        f"asks {w.price()}, down from "
        f"{w.price()} on {w.written_day()}. {w.said(3)}\n\n- {w.said(2)}\n- Seen {w.day()}: {w.said()}\n"
    )


def _mail(w: Writer, n: int) -> str:
    return (
        f"From: ann@example.com\nTo: bob@example.com\nDate: {w.day()}\nSubject: Order {n}"
        f"\n\nHello Bob,\n\n{w.said(5)}\n"
        f"{w.said(2)} The total is {w.price()} and it should be here by {w.written_day()}, "
        f"which {w.said().lower()}\n{w.said(5)}\n\nBest,\nAnn\n"
    )


def _dense(w: Writer) -> str:
    return (
        f"{w.said(2)} It went from {w.price()} to {w.price()} between {w.written_day()} "
        f"and {w.written_day()}, "
        f"when {w.said().lower()} {w.said(4)}"
    )


MAKERS: Mapping[str, Callable[[Writer], str]] = {
    "shop page.md": lambda w: (
        "# Gaming laptops\n\nHome | Laptops | Sign in\n\n"
        + w.lines(
            14,
            lambda n: (
                f"## {w.random.choice(MODELS)} ({n})\n\n[Details]({w.url()})\n\n**{w.price()}** "
                f"was ~~{w.price()}~~\n\n"
                f"{w.said(6)}\n\n{w.said(3)} Delivery by {w.written_day()}.\n\n- {w.said()}\n- {w.said()}\n"
            ),
        )
    ),
    "page_doc.json": lambda w: json.dumps(
        {"url": w.url(), "captured_at": f"{w.day()}T13:20:00Z", "zones": [w.zone(n) for n in range(12)]},
        indent=2,
    ),
    "page_doc one line.json": lambda w: json.dumps(
        {"url": w.url(), "title": "Laptops", "zones": {f"zone {n}": w.zone(n) for n in range(15)}}
    ),
    "page_doc raw text.json": lambda w: json.dumps(
        {
            "url": w.url(),
            "zones": [
                {
                    "name": name,
                    "confidence": 0.9,
                    "raw_text": " ".join(
                        f"{w.random.choice(MODELS)} {n} {w.price()} {w.said(3)}" for n in range(12)
                    ),
                    "bbox": [0, n, 1280, 400],
                }
                for n, name in enumerate(("product_list", "description", "reviews"))
            ],
        }
    ),
    "page_doc dense.json": lambda w: json.dumps(
        {
            "url": w.url(),
            "zones": [
                {
                    "zone_type": "product_grid",
                    "confidence": 0.93,
                    "entities": {"price": w.price(), "link": w.url(), "seen": w.day()},
                    "ocr_items": [
                        {"text": w.said(), "x": w.random.randint(1, 999), "y": n} for n in range(5)
                    ],
                }
                for n in range(12)
            ],
        }
    ),
    "tool_result.json": lambda w: json.dumps(
        {
            "status": "ok",
            "results": [
                {
                    "title": w.said(),
                    "url": w.url(),
                    "snippet": (
                        f"{w.said(4)} {w.random.choice(MODELS)} for {w.price()} since {w.written_day()}, "
                        f"{w.said(2)}"
                    ),
                    "published": f"{w.day()}T08:00:00Z",
                    "score": n / 7,
                }
                for n in range(12)
            ],
            "errors": [f"HTTP 503 from {shop}.com: service unavailable" for shop in SHOPS[:3]],
        },
        indent=1,
    ),
    "tool_result log.txt": lambda w: w.lines(200, lambda n: _log_line(w, n)),
    "tool_result test run.txt": lambda w: w.lines(
        90,
        lambda n: (
            f"tests/test_part.py::test_{n} FAILED\nE   AssertionError: expected {n}, got {w.price()}"
            if n % 30 == 7
            else f"tests/test_part.py::test_{n} passes: {w.said()}"
        ),
    ),
    "research.md": lambda w: (
        "# Research\n\n## Research Findings\n\n" + w.lines(12, lambda n: _research(w, n))
    ),
    "notes.md": lambda w: "# Notes\n\n" + w.lines(14, lambda n: _dense(w), "\n\n"),
    "mail.txt": lambda w: w.lines(10, lambda n: _mail(w, n), "\n-----\n\n"),
    "table.md": lambda w: (
        "# Prices\n\n"
        + w.said(30)
        + "\n\n| model | price | note | seen |\n|---|---:|---|---|\n"
        + w.lines(14, lambda n: f"| {w.random.choice(MODELS)} {n} | {w.price()} | {w.said(2)} | {w.day()} |")
        + "\n"
        + w.said(40)
    ),
    "list of links.md": lambda w: (
        "# Sources\n\n"
        + w.lines(
            16, lambda n: f"{n + 1}. [{w.random.choice(MODELS)} review]({w.url()}) - {w.said(3)} ({w.day()})"
        )
    ),
    "long sentences.md": lambda w: w.lines(
        12,
        lambda n: (
            f"{w.said(3)[:-1]}, and when {w.said().lower()[:-1]} the shop at {w.url()} "
            f"lowered it to {w.price()} because "
            f"{w.said().lower()[:-1]}, until {w.written_day()}, when {w.said().lower()}"
        ),
        "\n\n",
    ),
    "facts in code.md": lambda w: (
        "# Setup\n\n"
        + w.lines(
            8,
            lambda n: (
                f"{w.said(4)}\n\n```sh\n# {w.said()}\ncurl -sSL {w.url()} -o part{n}.json\nmake "
                f"part{n}\n```\n\n{w.said(3)}\n"
            ),
        )
    ),
    "chat.md": lambda w: (
        "# Previous Turn\n\n"
        + w.lines(
            24,
            lambda n: (
                f"{('User', 'Panda')[n % 2]}: {w.said(4)} I paid {w.price()} on {w.written_day()}"
                f". {w.said(2)}"
            ),
        )
    ),
    "german.md": lambda w: w.lines(
        14,
        lambda n: (
            f"{w.said(3)} "
            "Der Verkäufer hat lange nichts gesagt und die Ware kam später als gedacht. "
            "Niemand wusste davon, auch "
            f"der Kundendienst nicht. Am {w.random.randint(1, 28)}. Mai {2015 + n % 11} kostete das Gerät "
            f"{w.random.randint(100, 999)},{w.random.randint(10, 99)} € bei uns. Die Lüfter "
            f"sind laut, die Tasten "
            f"weich, und Seite {n} ist leer."
        ),
        "\n\n",
    ),
    "french.md": lambda w: w.lines(
        14,
        lambda n: (
            f"{w.said(3)} "
            "Le vendeur n'a rien dit pendant longtemps et le colis est arrivé plus tard que "
            "prévu. Personne ne le "
            f"savait. Le {w.random.randint(1, 28)} mars {2012 + n}, l'appareil coûtait "
            f"{w.random.randint(100, 999)} € "
            f"sur {w.url()}. Les touches sont molles et le ventilateur fait du bruit tout le temps."
        ),
        "\n\n",
    ),
    "japanese.md": lambda w: w.lines(
        14,
        lambda n: (
            "販売店はしばらく返事をしなかったので、荷物は予定より遅く届いた。誰もそのことを知らなかった。"
            f"{2012 + n}年{n % 12 + 1}月{w.random.randint(1, 28)}"
            f"日に価格は{w.random.randint(10, 99)},800円だった。"
            "ファンの音が大きくて、キーは柔らかい。画面はとても明るいと思う。"
        ),
        "\n\n",
    ),
    "russian.md": lambda w: w.lines(
        14,
        lambda n: (
            "Продавец долго молчал, и посылка пришла позже, чем мы думали. Никто об этом не знал. "
            f"{w.random.randint(1, 28)} мая {2012 + n} года цена была "
            f"{w.random.randint(100, 999)} руб. за штуку. "
            "Вентиляторы шумят, а клавиши мягкие, и экран яркий."
        ),
        "\n\n",
    ),
    "records.json": lambda w: json.dumps(
        [
            {"id": n, "comment": w.said(6), "price": w.price(), "at": w.day(), "link": w.url()}
            for n in range(14)
        ]
    ),
    "values.csv": lambda w: (
        "id,comment,price,date\n" + w.lines(40, lambda n: f"{n},{w.said(2)},{w.price()},{w.day()}")
    ),
    "context.md": lambda w: (
        "## 0. User Query\n\nWhich laptop is the cheapest?\n\n## 2. Gathered Context\n\n"
        + w.said(30)
        + f" Earlier limit: {w.price()}.\n\n## 4. Tool Execution\n\n"
        + w.lines(
            5,
            lambda n: (
                f"### Step {n}\n\n```yaml\n_meta:\n  step: {n}\n  tool: web.fetch\n  url: "
                f"{w.url()}\n```\n\n{w.said(8)} "
                f"{w.random.choice(MODELS)} costs {w.price()} there, as of {w.day()}. {w.said(6)}\n"
            ),
        )
    ),
}


def fact_document(name: str, *, seed: int = 0, talk: float = 1.0) -> str:
    """
    One of the documents of MAKERS.

    Args:
        name: Its name, which also says its type.
        seed: Another one gives another document.
        talk: How much is said around the facts; 2 gives about twice as many sentences.
    """
    return MAKERS[name](Writer(f"{name} {seed}", talk))
