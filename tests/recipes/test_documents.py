"""The documents of a call: what of them is never cut away, however much there is."""

from pathlib import Path

from panda.compression.pieces import MARK
from panda.documents.context import ContextDocument, FrontMatter, Meta, Section, Text
from panda.models.cl100k import count_tokens
from panda.recipes.messages import recipe_documents
from tests.builders import still_clock
from tests.recipes.books import Runner, parsed, write_book
from tests.scripted_model import ScriptedModel, in_order

SAID = '{"why": "So.", "verdict": "yes"}'
OLDER = "\n".join(f"- The ferry {n} leaves at {n % 24}:15 from pier {n}." for n in range(300))
NEWEST = "\n".join(f"- The tent {n} costs ${n}.50 in shop {n}." for n in range(40))
RESULTS = f"## Step 1: doc.search (success)\n\n{OLDER}\n\n## Step 2: web.fetch (success)\n\n{NEWEST}\n"
PROGRESS = "G1: open\nweb.fetch was called like that in step 2; see what it gave"
FRONT = FrontMatter("context/1", 1, "ann", "default", "chat", still_clock())


def sent(tmp_path: Path, texts: dict[str, str], sections: tuple[Section, ...] = (), **given: object) -> str:
    """What a model is sent of these documents, by a recipe with room for 1,500 tokens."""
    budget = {"total": 2400, "prompt": 300, "input": 1500, "output": 100}
    changes = {"token_budget": budget, "input_docs": list(texts), **given}
    run = Runner(write_book(tmp_path, **changes), ScriptedModel(in_order(SAID, [-0.1]), n_ctx=9000))
    context = ContextDocument(FRONT, sections)
    documents = recipe_documents(parsed(**changes), context, file_text=lambda name: "", extra=texts)
    run.run(query=texts.get("raw_query", "Is it so?"), documents=documents)
    assert isinstance(run.model, ScriptedModel)
    return run.model.asked[0].text


def test_the_newest_result_and_the_progress_stay(tmp_path: Path) -> None:
    """Of many results the earlier ones are cut; the newest and the state of the goals stay whole."""
    text = sent(tmp_path, {"toolresults.md": RESULTS, "progress": PROGRESS})
    assert all(line in text for line in [*NEWEST.splitlines(), *PROGRESS.splitlines()])
    assert MARK in text
    assert 0 < text.count("The ferry") < 80


def test_a_newest_result_that_is_too_long_keeps_half_of_the_room(tmp_path: Path) -> None:
    """It shrinks, but other documents make way before less than half is left to it."""
    text = sent(tmp_path, {"plan.json": OLDER, "toolresults.md": f"## Step 1: a (success)\n\n{OLDER}\n"})
    plan, _, result = text.partition("===== toolresults.md =====")
    assert 630 <= count_tokens(result.partition("User query")[0]) <= 950
    assert "The ferry" in plan


def test_the_newest_result_of_section_4_stays(tmp_path: Path) -> None:
    """§4 is cut from its earlier results on as well."""
    blocks = (Meta({"step": 1}), Text(OLDER), Meta({"step": 2}), Text(NEWEST))
    text = sent(tmp_path, {}, (Section(4, blocks),), input_sections=["§4"])
    assert all(line in text for line in NEWEST.splitlines())
    assert 0 < text.count("The ferry") < 80


def test_the_newest_section_stays(tmp_path: Path) -> None:
    """The newest section that a recipe reads is cut after all other documents."""
    sections = (Section(2, (Text(OLDER),)), Section(5, (Text(NEWEST),)))
    text = sent(tmp_path, {"carry": OLDER}, sections, input_sections=["§2", "§5"])
    assert all(line in text for line in NEWEST.splitlines())
    assert 0 < text.count("The ferry") < 80


def test_the_query_and_what_it_says_stay_in_a_small_budget(tmp_path: Path) -> None:
    """With room for 1,500 tokens, a query of 1,200 stays word for word, and summaries lose what they must."""
    query = "Which of the tents below is the lightest? " * 120
    texts = {"turn_summaries": OLDER, "progress": PROGRESS, "raw_query": query}
    text = sent(tmp_path, texts)
    assert f"===== raw_query =====\n{query}" in text
    assert f"===== progress =====\n{PROGRESS}" in text
    assert text.count("The ferry") > 5
