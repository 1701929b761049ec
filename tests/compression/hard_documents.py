"""Sixty documents that are hard to compress, made from a seed, at any size."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

WORDS = Path(__file__).with_name("words.txt").read_text("utf-8").split()
FRONT = """---
schema: context/1
turn: 3
user_id: ann
session_id: default
mode: chat
created_at: 2026-01-04T13:20:00Z
---

"""
WIDE = "山水天地人日月风云雨雪花草木石金火土"


class Writer:
    """Writes words, sentences, prices and dates, the same ones for a seed."""

    def __init__(self, seed: str, scale: float) -> None:
        self.random = random.Random(seed)
        self._scale = scale

    def times(self, number: int) -> range:
        """0 to so many at full scale, at least 3."""
        return range(max(3, int(number * self._scale)))

    def words(self, number: int) -> str:
        """So many words."""
        return " ".join(self.random.choices(WORDS, k=number))

    def said(self, number: int = 12) -> str:
        """A sentence of so many words."""
        return self.words(number).capitalize() + "."

    def price(self) -> str:
        """A price in one of three currencies."""
        form = self.random.choice(["${}.{:02d}", "€{},{:02d}", "£{}.{:02d}"])
        return form.format(self.random.randint(1, 3000), self.random.randint(0, 99))

    def date(self) -> str:
        """A date in one of two forms."""
        year, day = 2020 + self.random.randint(0, 6), self.random.randint(1, 28)
        if self.random.random() < 0.5:
            return f"{year}-{self.random.randint(1, 12):02d}-{day:02d}"
        return f"{day} {self.random.choice(('May', 'June', 'March'))} {year}"

    def number(self, digits: int) -> str:
        """A number of so many digits."""
        return "".join(self.random.choices("123456789", k=digits))

    def lines(self, number: int, line: Callable[[int], str], between: str = "\n") -> str:
        """So many lines at full scale."""
        return between.join(line(n) for n in self.times(number)) + "\n"

    def meta(self, n: int) -> str:
        """A `_meta` block."""
        return f'```yaml\n_meta:\n  step: {n}\n  tool: web.fetch\n  node_ids: ["turn:{n}"]\n```\n\n'

    def zone(self, n: int) -> dict[str, object]:
        """A zone of a page."""
        names = ("pricing", "reviews", "navigation", "product_info", "other", "header")
        text = " ".join(self.said() for _ in range(20))
        return {
            "name": names[n % 6],
            "confidence": self.random.randint(0, 100) / 100,
            "price": self.price(),
            "raw_text": text,
        }


def _log(w: Writer, n: int) -> str:
    line = f"2026-01-{n % 28 + 1:02d} 12:{n % 60:02d}:07,{n % 1000:03d} INFO worker[{n % 9}] {w.said(9)}"
    trace = f'\nTraceback (most recent call last):\n  File "a.py", line {n}, in f\nValueError: bad value {n}'
    return line + trace * (n % 97 == 1)


def _code(w: Writer, n: int) -> str:
    return (
        f'def f{n}(a, b={n}):\n    """{w.said()}"""\n    x = [{n}, "{w.price()}"]\n    if a:\n'
        f'        raise ValueError("bad {n}")\n    return x\n'
    )


def _mixed(w: Writer, n: int) -> str:
    table = "| what | price |\n|---|---|\n" + "".join(
        f"| {w.words(2)} | {w.price()} |\n" for _ in range(n % 5 + 1)
    )
    code = f"```sh\n{w.words(6)}\n```\n"
    items = "".join(f"{'  ' * (k % 3)}- {w.said(9)} {w.said(20)}\n" for k in range(n % 4 + 1))
    parts = [
        f"## Part {n}\n",
        table,
        f"{w.said(25)} {w.said()}\n{w.said()}\n",
        code,
        items,
        f"> {w.said()}\n",
    ]
    w.random.shuffle(parts)
    return "\n".join(parts)


MAKERS: Mapping[str, Callable[[Writer], str]] = {
    "fence": lambda w: f"```python\n{w.lines(6250, lambda n: w.words(8))}```\n",
    "open fence": lambda w: f"# A\n\n```\n{w.lines(6250, lambda n: w.words(8))}",
    "fence of one line": lambda w: f"Before.\n\n```\n{w.words(len(w.times(50_000)))}\n```\n\nAfter.\n",
    "one line": lambda w: w.words(len(w.times(32_000))),
    "one line of numbers": lambda w: w.lines(28_000, lambda n: w.number(n % 9 + 1), " "),
    "one line of values": lambda w: w.lines(30_000, lambda n: w.number(n % 6 + 1), ","),
    "one line of prices": lambda w: w.lines(4000, lambda n: f"{w.said(5)} {w.price()}", " "),
    "one word": lambda w: "x" * len(w.times(200_000)),
    "one number": lambda w: w.number(len(w.times(200_000))),
    "hashes": lambda w: w.lines(3000, lambda n: f"{w.random.getrandbits(256):064x}"),
    "numbers of 6,000 digits.json": lambda w: f'{{"n": [{", ".join(w.number(6000) for _ in range(20))}]}}',
    "records.json": lambda w: json.dumps(
        [
            {"id": n, "name": w.words(3), "price": w.price(), "at": w.date(), "url": f"https://a.io/{n}"}
            for n in w.times(1500)
        ]
    ),
    "indented.json": lambda w: json.dumps(
        {"items": [{"id": n, "sum": n / 7, "deep": {"k": [1, 2, {"z": w.said()}]}} for n in w.times(500)]},
        indent=2,
    ),
    "nested.json": lambda w: "[" * 150 + "1" + "]" * 150,
    "text.json": lambda w: json.dumps({"text": w.lines(3000, lambda n: w.said(), " ")}),
    "letters.json": lambda w: json.dumps(
        {"t": [["日本語" * 50, "é\0\u2028" * 30, '\\"' * 40] for _ in w.times(40)]}
    ),
    "page_doc.json": lambda w: json.dumps(
        {
            "url": "https://a.io/l",
            "captured_at": "2026-01-04T13:20:00Z",
            "zones": [w.zone(n) for n in w.times(80)],
        }
    ),
    "page_doc with maps.json": lambda w: json.dumps(
        {
            "zones": {
                "pricing": {"items": [{"title": w.words(3), "price": w.price()} for _ in w.times(300)]},
                "narrative": {"raw_text": w.lines(400, lambda n: w.said(), " "), "confidence": 0.6},
            },
            "ocr_items": [{"text": w.said(4), "confidence": n % 10 / 10} for n in w.times(200)],
        },
        indent=1,
    ),
    "lines of json": lambda w: w.lines(2000, lambda n: json.dumps({"t": w.date(), "message": w.said()})),
    "log": lambda w: w.lines(1500, lambda n: _log(w, n)),
    "table": lambda w: (
        "# T\n\n| name | price | when |\n|---|---:|:-:|\n"
        + w.lines(1500, lambda n: f"| {w.words(2)} | {w.price()} | {w.date()} |")
        + "\nEnd.\n"
    ),
    "wide table": lambda w: (
        f"|{' c |' * 60}\n|{'---|' * 60}\n"
        + w.lines(200, lambda n: "|" + "".join(f" {w.number(3)} |" for _ in range(60)))
    ),
    "table with escapes": lambda w: (
        "a | b\n--|--\n" + w.lines(900, lambda n: f"x \\| {n} | `a|b` {w.price()}")
    ),
    "ragged table": lambda w: (
        "| a | b | c |\n|---|---|---|\n"
        + w.lines(900, lambda n: "|" + "".join(f" {w.words(1)} |" for _ in range(n % 5 + 1)))
    ),
    "list": lambda w: w.lines(1000, lambda n: "  " * (n % 7) + ("- ", "* ", "1. ")[n % 3] + w.said()),
    "fences in fences": lambda w: w.lines(
        150, lambda n: f"````md\n```py\n{w.said()}\n```\n````\n\n{w.said()}", "\n\n"
    ),
    "tildes": lambda w: w.lines(150, lambda n: f"~~~\n```\n{w.said()}\n~~~\n{w.said()}", "\n\n"),
    "fences in a list": lambda w: w.lines(
        200, lambda n: f"- item {w.said()}\n  ```sh\n  run {w.said()}\n  ```"
    ),
    "headings": lambda w: w.lines(600, lambda n: f"{'#' * (n % 6 + 1)} Part {n}\n\n{w.said()}", "\n\n"),
    "equal headings": lambda w: w.lines(
        600, lambda n: f"{('# A', '## B', '## A')[n % 3]}\n\n{w.said()}", "\n\n"
    ),
    "underlined headings": lambda w: w.lines(
        300, lambda n: f"Title {n}\n{'=-'[n % 2] * 5}\n\n{w.said()}", "\n\n"
    ),
    "carriage returns": lambda w: w.lines(
        500, lambda n: ("# A", "- b", w.said(), "", w.said())[n % 5], "\r\n"
    ),
    "russian": lambda w: w.lines(
        1500,
        lambda n: (
            ("Цена 5 000 руб.", "Встреча 5 мая 2024 года.", "Он ушёл, потому что устал.")[n % 3]
            + f" Дом {n} у реки в городе."
        ),
        " ",
    ),
    "chinese": lambda w: w.lines(
        2500,
        lambda n: (
            ("价格是￥12。", "会议在2024年5月3日举行。", "我们不知道，")[n % 3]
            + "".join(w.random.choices(WIDE, k=12))
            + "。"
        ),
        "",
    ),
    "japanese": lambda w: w.lines(
        1200, lambda n: f"これは{''.join(w.random.choices(WIDE, k=8))}です。値段は{n}円です。"
    ),
    "arabic": lambda w: w.lines(
        1500, lambda n: ("السعر ٥٠ دولار.", "ذهب إلى البيت.")[n % 2] + " كتاب ماء سماء.", " "
    ),
    "german": lambda w: w.lines(
        1500,
        lambda n: (
            ("Der Preis ist 1.299,00 €.", "Am 5. Mai 2024 nicht.", "Z.B. die Str. 5.")[n % 3] + f" Haus {n}."
        ),
        " ",
    ),
    "thai": lambda w: "สวัสดีครับราคา " * len(w.times(3000)),
    "emoji": lambda w: "👩‍👩‍👧‍👦🎉 " * len(w.times(5000)),
    "control characters": lambda w: "a\0b \x1b[31mred\x1b[0m " * len(w.times(4000)),
    "html": lambda w: w.lines(
        800,
        lambda n: f'<div class="x{n}"><a href="https://a.io/{n}">{w.said(4)}</a><p>{w.price()}</p></div>',
        "",
    ),
    "comments": lambda w: w.lines(500, lambda n: f"<!-- {w.said()} -->\n<p>{w.said()}</p>"),
    "context.md": lambda w: (
        f"{FRONT}## 0. User Query\n\nWhat is it?\n\n## 2. Gathered Context\n\n"
        + w.lines(60, lambda n: f"### Part {n}\n\n{w.meta(n)}{w.said(90)} {w.price()} on {w.date()}.\n")
        + "\n## 4. Tool Execution\n\n"
        + w.lines(40, lambda n: w.meta(n) + "".join(f"- {w.said()} {w.price()}\n" for _ in range(9)))
    ),
    "research.md": lambda w: (
        "# Research\n\n## Research Findings\n\n"
        + w.lines(
            900, lambda n: f"- {w.said()} ({w.price()}, seen {w.date()}) https://shop{n}.example/item?id={n}"
        )
    ),
    "notes": lambda w: w.lines(
        500,
        lambda n: (
            f"{w.said(20)} See https://en.example.org/wiki/A_(b)_{n}, cited {w.date()}; about {w.price()} "
            f'per unit, {n % 40} % more. "{w.said(3)}" he said.'
        ),
        "\n\n",
    ),
    "diff": lambda w: w.lines(
        3000, lambda n: f"{'+- '[n % 3]}    {w.words(7)}" if n % 20 else f"@@ -{n},7 +{n},9 @@"
    ),
    "values.csv": lambda w: (
        "id,name,price,date\n" + w.lines(3000, lambda n: f"{n},{w.words(2)},{w.price()},{w.date()}")
    ),
    "tabs": lambda w: w.lines(3000, lambda n: "\t".join(w.words(6).split())),
    "blank lines": lambda w: "\n" * len(w.times(50_000)) + "a b c. " * 100,
    "quotes": lambda w: w.lines(1000, lambda n: "> " * (n % 3 + 1) + w.said()),
    "marks": lambda w: w.lines(2000, lambda n: ("[…]", w.said(4), "…")[n % 3], " "),
    "many meta": lambda w: w.lines(200, lambda n: w.meta(n) + w.said()),
    "dialogue": lambda w: w.lines(
        900, lambda n: f"{('Ann', 'Bob Lee')[n % 2]}: {w.said(n % 11 + 3)} {w.said()}"
    ),
    "code.py": lambda w: w.lines(400, lambda n: _code(w, n)),
    "front matter": lambda w: (
        "---\ntitle: x\ndate: 2024-05-03\n---\n\n" + w.lines(300, lambda n: w.said(25), "\n\n")
    ),
    "formulas": lambda w: w.lines(
        500, lambda n: rf"\section{{{w.words(3)}}} Let $x_{{{n}}} = {n}.5 \times 10^{{{n}}}$."
    ),
    "mixed": lambda w: w.lines(150, lambda n: _mixed(w, n)),
    "mixed, close": lambda w: w.lines(150, lambda n: _mixed(w, n), ""),
    "specification": lambda w: (
        "# S\n\n"
        + w.lines(
            300,
            lambda n: (
                f"{chr(35) * (n % 3 + 2)} {n // 9}.{n % 9} {w.words(3)}\n\n{w.said(30)} It MUST be {n} ms.\n"
                f"\n1. {w.said()}\n2. {w.said()} ({w.date()})"
            ),
            "\n\n",
        )
    ),
    "doubled text": lambda w: (w.lines(400, lambda n: f"{w.said()} {n}") + "\n") * 2,
}


def hard_document(name: str, scale: float = 1.0) -> str:
    """
    One of the documents of MAKERS.

    Args:
        name: Its name, which also says its type.
        scale: 1 gives up to 250 kB, 0.1 about a tenth of that.
    """
    return MAKERS[name](Writer(name, scale))
