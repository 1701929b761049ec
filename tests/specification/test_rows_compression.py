"""Rows of the specification about compression: each test runs the tool."""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

import frontmatter
import pytest

from tests.api import LAPTOPS, ROOT, ModelServer, Panda, run_here
from tests.code_mode import CodeProject, call, code_script, replies
from tests.code_mode import project as project
from tests.script import Asked, Script, pick

PASSAGES = re.compile(r"===== (\w+_to_compress) =====\n(.*?)\n\nUser query: ", re.DOTALL)
WHOLE = r"Shop \1: $\g<1>99 until 2026-05-\1, https://shop\1.example/bike."


class Rewording(Script):
    """Replies as told by step; each passage that NERVES is to word anew comes back as *worded* gives it."""

    def __init__(self, worded: str, *, is_json: bool = True, **replies: Any) -> None:
        super().__init__(**replies)
        self.worded = worded
        self.is_json = is_json
        self.kinds = set[str]()
        self.calls = 0

    def __call__(self, asked: Asked) -> str | Exception:
        passages = PASSAGES.search(asked.text)
        if passages is None:
            return super().__call__(asked)
        self.kinds.add(passages[1])
        self.calls += 1
        texts = (" ".join(text.split()) for text in passages[2].split("\n\n"))
        reply = "\n\n".join(re.sub(r"Shop (\d+).*", self.worded, text) for text in texts)
        return json.dumps({"text": reply}) if "page_doc" in passages[1] and self.is_json else reply


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model that writes, on loopback."""
    running = ModelServer()
    yield running
    running.close()


@pytest.fixture
def by_words(tmp_path: Path) -> Panda:
    """A project without a language model: words alone decide what stays."""
    return Panda(tmp_path / "project")


def shop(n: int) -> str:
    """A sentence that is long enough to be cut, with a price, a day and an address."""
    return (
        f"Shop {n}, which stands behind the old market and closes early on days on which nobody comes, keeps "
        f"the bike of size {n} in its back room, where a bell and {n + 2} tubes lie beside a lamp that "
        f"nobody has asked for since the bridge was closed, for ${n}99 until 2026-05-{n:02}, says "
        f"https://shop{n}.example/bike to all who ask, whether they mean to buy it or only came for the tea."
    )


def count_tokens(text: str) -> int:
    """Tokens of a text, as `panda compress` counts them."""
    counted = run_here(("compress", "-", "--budget", "100000", "--json"), stdin=text)
    return int(counted.data["before_tokens"])


def compressions(panda: Panda) -> list[Mapping[str, Any]]:
    """The lines of the log that tell of a compression."""
    lines = map(json.loads, (panda.store / "logs" / "executions.jsonl").read_text().splitlines())
    return [line for line in lines if line.get("event") == "compressed"]


@pytest.mark.parametrize("worded", [WHOLE, WHOLE.replace("https://", "")], ids=["whole", "URL lost"])
def test_s3_15_3_nerves_compresses_inputs(tmp_path: Path, server: ModelServer, worded: str) -> None:
    """
    Inputs over their budget go through the recipe of their kind where NERVES writes; whole sentences stand
    where its wording fails the check.
    """
    item = {"text": "The bike of shop 19 is $1999.", "node_ids": ["knowledge:bikes.md"]}
    replies: dict[str, Any] = {"synthesis": {"lines": pick("Shop 1")}, "answer": {"items": [item]}}
    server.script = script = Rewording(worded, retrieval={"relevant": pick("bikes")}, **replies)
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    panda.write("models.yaml", server.models())
    note = "# Bikes\n\n" + "\n\n".join(map(shop, range(10, 20))) + "\n"
    panda.write("store/users/ann/knowledge/bikes.md", note)
    recipe = ROOT / "recipes" / "pipeline" / "phase2_5_context_validator.yaml"
    small = re.sub(r"input: \d+", "input: 700", recipe.read_text(encoding="utf-8"))
    panda.write("recipes/pipeline/phase2_5_context_validator.yaml", small)
    ended = panda.turn("How much is the bike of shop 19?")
    assert ended.code == 0, ended.out
    (line,) = [line for line in compressions(panda) if line["trigger"] == "input"]
    assert (line["document"], line["content_type"]) == ("gathered_context", "context.md")
    assert script.kinds == {"context_to_compress"}
    named = ("rewrite", "NERVES", "scripted") if worded is WHOLE else ("lexical", None, None)
    assert (line["method"], line["model_layer"], line["model"]) == named
    (sent,) = [body for body in server.asked if "guidance" in json.dumps(body.get("response_format"))]
    worded_shops = re.findall(r"Shop (1\d): \$1\d99 until 2026-05-\1, https://shop\1", json.dumps(sent))
    assert bool(worded_shops) is (worded is WHOLE)


@pytest.mark.parametrize("lost", ["", "$", "https://"], ids=["nothing", "price", "URL"])
def test_s3_22_a_rewording_keeps_prices_and_urls(tmp_path: Path, server: ModelServer, lost: str) -> None:
    """`panda compress` uses a rewording that keeps them, and says why it does not use one that lost one."""
    panda = Panda(tmp_path / "project", XDG_CACHE_HOME=str(tmp_path / "cache"))
    panda.write("models.yaml", server.models())
    panda.write("notes.md", "\n\n".join(map(shop, range(10, 20))) + "\n")
    server.script = Rewording(WHOLE.replace(lost, "") if lost else WHOLE)
    data = panda.json("compress", "notes.md", "--budget", "400")
    assert (data["method"] == "rewrite") is (not lost)
    assert bool(re.search(r"Shop \d+: ", data["text"])) is (not lost)
    assert ("is lost" in str(data["verification"]["refused_rewrites"])) is bool(lost)


def test_s3_configuration_defaults(tmp_path: Path) -> None:
    """The threshold is .9 and results are kept 300 seconds; `panda config show` names both."""
    panda = Panda(tmp_path / "project")
    rows = dict(row.split("\t", 1) for row in panda("config", "show").rows)
    assert rows["compression_threshold"] == "0.9\tdefault"
    assert rows["compression_cache_ttl"] == "300.0\tdefault"
    settings = panda.json("config", "show", PANDA_COMPRESSION_CACHE_TTL="60")["settings"]
    assert settings["compression_cache_ttl"] == {"value": 60.0, "origin": "PANDA_COMPRESSION_CACHE_TTL"}


def test_s3_configuration_cache_ttl(tmp_path: Path) -> None:
    """`panda compress` gives a result from the cache for 300 seconds, and makes an older one anew."""
    panda = Panda(tmp_path / "project", XDG_CACHE_HOME=str(tmp_path / "cache"))
    panda.write("notes.md", "\n\n".join(map(shop, range(10, 20))) + "\n")
    words = ("compress", "notes.md", "--budget", "200", "--query", "shop 12")
    panda.json(*words)
    (cache_file,) = (tmp_path / "cache" / "panda" / "compression").glob("*.json")
    for age, is_kept in ((290, True), (310, False)):
        then = time.time() - age
        os.utime(cache_file, (then, then))
        panda.json(*words)
        assert (abs(cache_file.stat().st_mtime - then) < 1) is is_kept


def test_s3_26_older_results_go_to_1500_tokens(project: CodeProject) -> None:
    """When §4 passes 2,500 tokens, older results take 1,500 of them and the newest stands whole."""
    for n, lines in enumerate((60, 60, 30)):
        rows = (f"day {n}.{i}: {i + 3} mm of rain, wind {i % 9} from the west\n" for i in range(lines))
        project.write(f"day_{n}.txt", "".join(rows))
    script = code_script(
        replies(*(call("file.read", path=f"day_{n}.txt") for n in range(3))),
        answer={"items": [{"text": "day 2.29: 32 mm of rain", "node_ids": ["step:3"]}]},
    )
    turn = project.work(script, "Which measurements stand in the files?")
    assert turn.code == 0
    older, _, newest = turn.section(4).partition("```yaml\n_meta:\n  step: 3\n")
    contents = [step["data"]["content"] for step in turn.steps]
    assert sum(map(count_tokens, contents)) > 2_500
    assert 1_200 < count_tokens(older) <= 1_500
    assert all(line in newest for line in contents[-1].splitlines())


@pytest.mark.parametrize("budget", [300, 800])
def test_s3_22_the_newest_section_is_kept(by_words: Panda, budget: int) -> None:
    """§0 stays as it is, then the newest section: whole where it fits, else before all others."""
    query = "## 0. User Query\n\nHow much is the bike of shop 3?"
    gathered = "## 2. Gathered Context\n\n" + "\n".join(f"- {shop(n)}" for n in range(10, 30))
    newest = "## 5. Synthesis\n\n" + " ".join(f"The tubes of rack {n} are {n} cm wide." for n in range(32))
    by_words.write("context.md", f"{query}\n\n{gathered}\n\n{newest}\n")
    text = by_words.json("compress", "context.md", "--budget", str(budget))["text"]
    assert text.startswith(f"{query}\n")
    assert (newest in text) is (budget > count_tokens(newest) + 60)
    assert text.count("The tubes of rack") > 20
    assert ("$" in text) is (newest in text)


def zone(name: str, confidence: float, **fields: str) -> dict[str, object]:
    """A zone of a page as it was read."""
    talk = (
        f"There is much to say about {name} here. Some of it is read in summer, the rest by nobody. Whoever"
    )
    talk = f"{talk} stays longer than an hour learns what {name} is good for, and comes back with a friend."
    return {"name": name, "confidence": confidence, **fields, "raw_text": talk}


PAGE = {
    "url": "https://shop.example/loq",
    "captured_at": "2026-01-04T13:20:00Z",
    "zones": [
        zone("navigation", 0.95, links="Home, Laptops, Phones, Tablets, Sale, Basket"),
        zone("banner", 0.3, price="$9", offer="two for one"),
        zone("reviews", 0.6, title="What buyers say", rating="4.5", helpful="61 of 80"),
        zone("pricing", 0.9, title="Lenovo LOQ 15", price="$697.00", stock="In Stock"),
    ],
}


@pytest.mark.parametrize("budget", [170, 200, 240, 280])
def test_s3_22_zones_stay_by_confidence(by_words: Panda, budget: int) -> None:
    """A sure zone stays whole, a middling one its key fields; a doubtful one is gone or says so."""
    by_words.write("page_doc.json", json.dumps(PAGE))
    compressed = json.loads(by_words.json("compress", "page_doc.json", "--budget", str(budget))["text"])
    zones = {zone_data["name"]: zone_data for zone_data in compressed["zones"] if isinstance(zone_data, dict)}
    assert (compressed["url"], compressed["captured_at"]) == (PAGE["url"], PAGE["captured_at"])
    assert zones["pricing"] == zone("pricing", 0.9, title="Lenovo LOQ 15", price="$697.00", stock="In Stock")
    if budget > 170:  # what the sure zone leaves
        assert (zones["reviews"]["title"], zones["reviews"]["rating"]) == ("What buyers say", "4.5")
    assert zones.get("banner", {"confidence": 0.3})["confidence"] == 0.3
    assert "navigation" not in zones or budget > 200


def test_s3_22_zones_go_in_their_order(by_words: Panda) -> None:
    """Of zones that are equally sure navigation goes first, then reviews, then products, and prices last."""
    names = ("navigation", "reviews", "product_info", "pricing")
    items = {
        name: [{"title": f"{name} {n}", "detail": f"said in {name}, line {n}"} for n in range(4)]
        for name in names
    }
    page = {"zones": [{"zone": name, "confidence": 0.9, "items": items[name]} for name in names]}
    by_words.write("page_doc.json", json.dumps(page))
    for budget in range(60, 400, 40):
        text = by_words.json("compress", "page_doc.json", "--budget", str(budget))["text"]
        counts = [sum(f"{name} {n}" in text for n in range(4)) for name in names]
        assert all(more == 4 for less, more in pairwise(counts) if less), (budget, counts)


@pytest.mark.parametrize("is_json", [True, False])
def test_s3_23_compress_page_doc_gives_json(tmp_path: Path, server: ModelServer, is_json: bool) -> None:
    """compress_page_doc replies with JSON that is held against its schema; the whole page stays JSON."""
    panda = Panda(tmp_path / "project", XDG_CACHE_HOME=str(tmp_path / "cache"))
    panda.write("models.yaml", server.models())
    zones = [{"name": f"shop {n}", "confidence": 0.9, "raw_text": shop(n)} for n in range(10, 16)]
    panda.write("page_doc.json", json.dumps({"zones": zones}))
    server.script = script = Rewording(WHOLE, is_json=is_json)
    data = panda.json("compress", "page_doc.json", "--budget", "400")
    assert script.kinds == {"page_doc_to_compress"}
    assert json.loads(data["text"])["zones"][-1]["name"] == "shop 15"
    assert (data["method"] == "rewrite") is is_json
    assert ("not JSON" in str(data["verification"]["refused_rewrites"])) is not is_json


@pytest.mark.parametrize(
    ("name", "share", "sentence"),
    [
        ("charset-normalizer", 0.5, "A library that helps you read text from an unknown charset encoding."),
        ("charset-normalizer", 0.25, "A library that helps you read text from an unknown charset encoding."),
        ("dateparser", 0.25, "pip install dateparser"),
    ],
)
def test_s3_28_critical_content_of_real_documents(
    tmp_path: Path, name: str, share: float, sentence: str
) -> None:
    """A real document keeps what it is about, and addresses with what is said; --json counts what is kept."""
    panda = Panda(tmp_path / "project")
    text = str(metadata(name).json["description"])
    panda.write("README.md", text)
    data = panda.json("compress", "README.md", "--budget", str(int(share * count_tokens(text))))
    assert sentence in data["text"].replace("<br /> <small>", " ").replace("**", "")
    counts_by_kind = {kind: (counts["before"], counts["after"]) for kind, counts in data["kept"].items()}
    addresses = set(re.findall(r"https?://[\w./-]+\w", data["text"]))
    assert counts_by_kind["url"][0] > len(addresses) >= counts_by_kind["url"][1] // 2
    assert all(address in text for address in addresses)
    assert counts_by_kind["heading"][1] > counts_by_kind["heading"][0] / 3


def test_packages_python_frontmatter_parses(tmp_path: Path) -> None:
    """Front matter is parsed by python-frontmatter, with panda's reader of YAML; edits are of text."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    written = "---\r\n\r\n# mine\r\ncolour:   'blue'   # not red\r\nbudget: $500-800\r\n---\r\nAs I said.\r\n"
    path = panda.write("store/users/ann/preferences.md", written)
    assert panda("memory", "set", "size", "15").code == 0
    text = path.read_bytes().decode("utf-8")
    added = next(line for line in text.splitlines(keepends=True) if line.startswith("size:"))
    assert text.replace(added, "") == written
    values: dict[str, Any] = frontmatter.loads(text).metadata
    assert (values["colour"], values["budget"], values["size"]["value"]) == ("blue", "$500-800", "15")
    assert panda.json("memory", "get", "colour")["value"] == "blue"
    path.write_text("---\ncolour: [blue\n---\n", encoding="utf-8")
    assert "preferences.md:2" in panda("memory", "get", "colour").err
