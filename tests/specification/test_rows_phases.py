"""Rows of the specification about the phases of a turn: each test runs turns as a user would."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.api import LAPTOPS, ROOT, Panda, ScriptedPanda
from tests.script import APPROVED, Script, pick
from tests.store_files import NOW, write_research, write_visit
from tests.web.site import running_site

pytestmark = pytest.mark.asks_for("www.bestbuy.com", "www.amazon.com")
"""The hosts of the demo's visits; none of them answers."""
CHEAPEST = "what's the cheapest laptop with nvidia gpu"
OWN_PROPERTIES = """
    entities: {type: array, maxItems: 8, items: {type: string, maxLength: 80}}
    reasoning: {type: string, maxLength: 200}
    user_purpose: {type: string, maxLength: 120}
    freshness: {type: string, maxLength: 40}"""
"""What the packaged recipe of phase 0 does not ask for."""
OFFER = {"@type": "Offer", "priceCurrency": "USD", "availability": "https://schema.org/InStock"}


@pytest.fixture
def laptops(tmp_path: Path, demo: Path) -> Panda:
    """The demo store: research, visits and preferences about laptops, notes about other things."""
    return Panda(tmp_path / "project", demo, user="demo")


def read_turn_json(panda: Panda, number: int, name: str) -> Any:
    """A JSON file of a turn."""
    return json.loads(panda.turn_file(number, name).read_text(encoding="utf-8"))


def parts(panda: Panda, number: int) -> Mapping[str, str]:
    """§2 by the titles of its parts."""
    text = panda.turn_file(number, "context.md").read_text(encoding="utf-8")
    section = text.partition("\n## 2. ")[2].partition("\n## 3. ")[0]
    return {title: body for title, _, body in (part.partition("\n") for part in section.split("\n### ")[1:])}


def test_s1_3_1_the_example_keeps_its_words(laptops: Panda) -> None:
    """The query that S1 shows refers to nothing, is answered with the cheapest that fits and its price."""
    answer = laptops.turn(CHEAPEST).data["response"]
    assert answer.startswith("Lenovo LOQ 15 with RTX 4050 @ $697 ")
    analysis = read_turn_json(laptops, 813, "query_analysis.json")
    assert analysis["resolved_query"].casefold().endswith("cheapest laptop with nvidia gpu")
    assert analysis["reference_resolution"]["status"] == "not_needed"


def test_s1_3_1_entities_are_filled(laptops: Panda) -> None:
    """A model that only chooses gives the words that no common vocabulary has, and no reasons."""
    laptops.turn(CHEAPEST)
    analysis = read_turn_json(laptops, 813, "query_analysis.json")
    assert analysis["entities"] == ["nvidia", "gpu"]
    assert (analysis["user_purpose"], analysis["reasoning"]) == (None, None)


def test_s3_16_1_a_writer_fills_the_analysis(ann: ScriptedPanda) -> None:
    """
    Properties that a recipe of the project asks of the query stand in query_analysis.json, as a model writes
    it.
    """
    name = "recipes/pipeline/phase0_query_analyzer.yaml"
    recipe = (ROOT / name).read_text(encoding="utf-8")
    ann.write(name, recipe.replace("\n    resolved_query: {", f"{OWN_PROPERTIES}\n    resolved_query: {{"))
    written = {
        "entities": ["Lenovo LOQ 15"],
        "reasoning": "It names one laptop.",
        "user_purpose": "Compare prices",
    }
    turn = ann.turn(
        "How much is the Lenovo?",
        script=Script(analyzer={**APPROVED["analyzer"], **written, "freshness": "today"}),
    )
    analysis = turn.file("query_analysis.json")
    assert {name: analysis[name] for name in written} == written
    assert analysis["data_requirements"]["freshness"] == "today"


@pytest.mark.parametrize(
    ("query", "freshness"),
    [
        ("How much does the ASUS TUF cost today?", "price"),
        ("Is the Lenovo LOQ 15 in stock at the moment?", "availability"),
        ("How deep must the bedding of a hamster be?", None),
    ],
)
def test_design_2_freshness_by_what_is_asked_for(laptops: Panda, query: str, freshness: str | None) -> None:
    """The content type that ages fastest of what the query needs."""
    laptops("turn", query)
    needs = read_turn_json(laptops, 813, "query_analysis.json")["data_requirements"]
    if freshness == "availability":  # a price may be needed, too
        assert needs["freshness"] in ("availability", "price")
    else:
        assert needs["freshness"] == freshness


def test_s1_5_3_the_planner_reads_quality_gaps_and_staleness(ann: ScriptedPanda) -> None:
    """A writer is given them, and the plan's reasoning names what is stale and what is missing."""
    write_research(
        ann.user_directory, 1, created_at="2026-01-03T13:00:00Z", expires_at="2026-01-03T14:00:00Z"
    )
    script = Script(
        retrieval={"relevant": pick("research:commerce.laptop")},
        synthesis={"lines": pick("Lenovo LOQ 15 @ $697")},
        answer={"items": [{"text": "Lenovo LOQ 15 @ $697", "node_ids": ["research:commerce.laptop"]}]},
    )
    turn = ann.turn(script=script)
    (asked,) = turn.asked("planner")
    assert f"Quality: {turn.file('gathered_context.json')['context_quality']:.2f}." in asked.text
    stale = "Stale: research:commerce.laptop."
    assert stale in asked.text
    assert turn.file("plan.json")["reasoning"] == stale
    assert f"**Reasoning:** {stale}" in turn.body(3)


def test_s1_5_3_the_assessment_is_never_cut(ann: ScriptedPanda) -> None:
    """However long §2 is, the planner is told how good it is, and how good and how old the research is."""
    claims = [
        {
            "claim": f"Shop {n} sells the Lenovo LOQ 15 with {'a long cable and ' * 36}a bag",
            "source": "a.example",
            "confidence": 0.9,
        }
        for n in range(12)
    ]
    write_research(ann.user_directory, 1, claims=claims)
    script = Script(
        retrieval={"relevant": pick("research:commerce.laptop")},
        synthesis={"lines": pick("Shop")},
        answer={"items": []},
    )
    turn = ann.turn(script=script)
    (asked,) = turn.asked("planner")
    assert any("cut from" in warning for warning in turn.warnings)
    quality = turn.file("gathered_context.json")["context_quality"]
    assert (
        f"Quality: {quality:.2f}.\nResearch commerce.laptop: quality 0.90, 1.5 hours old, reuse" in asked.text
    )


def test_s1_2_fresh_research_is_used_without_a_fetch(laptops: Panda) -> None:
    """A question is answered from research of this hour: no tool is called and nothing is blocked."""
    data = laptops.turn("What does the Lenovo LOQ 15 cost?").data
    assert data["response"].startswith("Lenovo LOQ 15 Gaming Laptop: price $697.00 [1]")
    plan = read_turn_json(laptops, 813, "retrieval_plan.json")
    match = plan["research_cache_match"]
    assert (match["quality"], match["reuse_recommendation"]) == (0.88, "full")
    assert plan["webpage_cache_needed"] == ["visit_abc123", "visit_def456"]
    assert read_turn_json(laptops, 813, "plan.json")["next_step"] == "synthesis"
    assert not laptops.turn_file(813, "steps").exists()


def test_s1_2_a_page_that_cannot_be_read_is_told_first(laptops: Panda) -> None:
    """If the page that the user wants read is away, the answer says so first, with what was known closest."""
    data = laptops.turn("Look up whether the Lenovo LOQ 15 is in stock now").data
    assert data["response"].startswith("Not looked up: web.fetch: no connection to www.bestbuy.com")
    assert data["outcome"] == "not_done"
    assert any("availability In Stock (last seen " in passage["text"] for passage in data["closest"])


def test_s1_10_a_price_seen_long_ago_is_marked(ann: ScriptedPanda) -> None:
    """In §2 and in gathered_context.json; what ages slowly is not marked."""
    write_old_price(ann)
    script = Script(
        retrieval={"relevant": pick("visit_old")},
        synthesis={"lines": pick("HP Victus: ")},
        answer={"items": []},
    )
    turn = ann.turn("What did the HP Victus cost?", script=script)
    assert "- HP Victus: price $799 [1] (20 days ago, stale: refresh before use)" in turn.body(2)
    assert "visit:visit_old" in turn.file("gathered_context.json")["stale"]
    assert "- HP Victus: gpu RTX 4050 [1] (20 days ago)" in turn.body(2)


@pytest.mark.asks_for("shop.example")
def test_an_answer_says_when_a_price_was_seen(tmp_path: Path) -> None:
    """A price that was seen long ago is quoted by the default models with its day."""
    panda = Panda(tmp_path / "project", LAPTOPS, user="ann")
    write_old_price(panda)
    turn = panda.turn("What did the HP Victus cost?")
    assert "HP Victus: price $799 (last seen 2025-12-15) [" in turn.response


def write_old_price(panda: Panda) -> None:
    """Put a visit of twenty days ago into the store."""
    fields = {"title": "HP Victus", "price": "$799", "specs": {"gpu": "RTX 4050"}}
    write_visit(panda.user_directory, 2, "visit_old", fields, quality=0.95, at=NOW - timedelta(days=20))


def test_s1_5_3_a_gap_is_named(laptops: Panda) -> None:
    """The embedded model's plan says what is missing."""
    laptops.turn("How tall is the tower of the town hall?")
    assert read_turn_json(laptops, 813, "plan.json")["reasoning"].startswith("Gap: ")


def test_s1_6_1_a_different_laptop_is_looked_for_anew(laptops: Panda) -> None:
    """An order to find something goes to the search, and its answer is what that found."""
    with running_site() as site:
        offer = {"@context": "https://schema.org", "@type": "Product", "name": "HP Victus 15"}
        data = json.dumps({**offer, "offers": {**OFFER, "price": "679.00"}})
        body = f'<title>HP Victus 15</title><script type="application/ld+json">{data}</script>'
        url = site.add(
            "/victus", f"<html>{body}<h1>HP Victus 15</h1><p>A laptop with an RTX 4050.</p></html>"
        )
        results = [{"url": url, "title": "HP Victus 15 laptop", "content": "A laptop for games, RTX 4050"}]
        laptops.write("results/saved.json", json.dumps({"results": results}))
        laptops.write("panda.toml", f'web_allow = ["{site.place}"]\nsearch_provider = "file:results"\n')
        answer = laptops.turn("Find me a different laptop").data["response"]
    assert "HP Victus 15" in answer
    assert "Lenovo" not in answer
    assert read_turn_json(laptops, 813, "plan.json")["next_step"] == "coordinator"


def test_s1_6_1_compared_values_stand_in_a_table(laptops: Panda) -> None:
    """ "Compare the specs" takes the visits as they are: a column for each thing, a row for each field."""
    answer = laptops.turn("compare the specs").data["response"].splitlines()
    assert answer[0] == "|  | Lenovo LOQ 15 Gaming Laptop [1] | ASUS TUF Gaming A15 [2] |"
    assert "| price | $697.00 | $749.99 |" in answer
    assert "| cpu | Intel Core i5-13420H | AMD Ryzen 7 7435HS |" in answer


@pytest.mark.parametrize(
    ("query", "knowledge", "preferences"),
    [
        ("Russian troll farms", "Internet Research Agent", False),
        ("Syrian hamsters", "Syrian hamster", False),
        ("cheap laptops", "gaming laptop", True),
    ],
)
def test_s1_13_2_only_what_is_relevant(laptops: Panda, query: str, knowledge: str, preferences: bool) -> None:
    """The notes on the topic, and the budget only where something is to be bought; other parts are absent."""
    laptops("turn", query)
    gathered = parts(laptops, 813)
    assert knowledge.split()[-1] in gathered["Forever Memory Knowledge"] or knowledge in str(gathered)
    assert ("Session Preferences" in gathered) == preferences
    assert ("budget: $500-800" in gathered.get("Session Preferences", "")) == preferences
    topics = {"hamster", "troll", "laptop"} - {
        word for word in ("hamster", "troll", "laptop") if word in query
    }
    assert not [topic for topic in topics if topic in str(gathered).replace("budget_gaming_laptops", "")]


def test_s0_5_2_the_level_stands_on_the_line(laptops: Panda) -> None:
    """A preference is shown with how far it is to be believed."""
    laptops("turn", "cheap laptops")
    preferences = parts(laptops, 813)["Session Preferences"]
    assert "- budget: $500-800 [2] (high confidence)" in preferences
    assert "- preferred_brands: Lenovo, ASUS [1] (medium confidence)" in preferences


def test_s3_14_what_is_not_measured_is_said(ann: ScriptedPanda) -> None:
    """A writer without scores passes both gates, and the log says that they were not measured."""
    assert ann.turn().status == "approved"
    log = (ann.store / "logs" / "executions.jsonl").read_text(encoding="utf-8").splitlines()
    gates = {line["recipe"]: line["gate"] for line in map(json.loads, log) if line.get("gate")}
    assert (gates["context_validator"], gates["validator"]) == ("not_measured", "not_measured")
