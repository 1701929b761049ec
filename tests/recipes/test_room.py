"""What fits a call and what a reply must link to: triggers, preserved text, limits, the evidence gate."""

import json
from pathlib import Path

import pytest

from panda.choosing.decision import Option
from panda.compression.budgets import Limits
from panda.compression.fit import InputDocument
from panda.errors import BudgetExceededError
from tests.recipes.books import Runner, schema_of, write_book
from tests.scripted_model import Asked, Reply, ScriptedModel, in_order

SAID = '{"why": "So.", "verdict": "yes"}'
"""A reply that is right."""
LONG = " ".join(f"Thing {n} is here." for n in range(50))
"""200 words in sentences of four."""


def runner(tmp_path: Path, *replies: Reply, n_ctx: int = 900, **changes: object) -> Runner:
    """An executor of tests/judge whose model gives these replies in order."""
    return Runner(write_book(tmp_path, **changes), ScriptedModel(in_order(*replies), n_ctx=n_ctx))


def asked(run: Runner) -> list[Asked]:
    """What the model was asked."""
    assert isinstance(run.model, ScriptedModel)
    return run.model.asked


def test_what_a_recipe_preserves(tmp_path: Path) -> None:
    """compression.preserve keeps a document, a section, or the sentences with prices whole."""
    budget = {"total": 1000, "prompt": 300, "input": 150, "output": 100}
    fan = LONG.replace("Thing 20 is here.", "The fan is $5 here.")
    run = runner(
        tmp_path,
        *(SAID, [-0.1]),
        token_budget=budget,
        input_docs=["plan.json"],
        compression={"preserve": ["plan", "section_3", "prices"]},
    )
    plan, section = InputDocument("plan.json", "w " * 40), InputDocument("§3 Task Plan", "v " * 40)
    run.run(documents=[InputDocument("notes.md", fan), plan, section])
    text = asked(run)[0].text
    assert plan.text in text
    assert section.text in text
    assert "The fan is $5 here." in text
    assert text.count("is here.") < 20


def test_a_call_has_a_limit_of_its_own(tmp_path: Path) -> None:
    """A prompt over 11,000 tokens is brought down whatever the recipe allows; the log says why."""
    budget = {"total": 15000, "prompt": 300, "input": 14000, "output": 100}
    run = runner(tmp_path, SAID, [-0.1], n_ctx=40_000, token_budget=budget)
    (cut,) = run.run(documents=[InputDocument("notes.md", (LONG + "\n\n") * 60)]).cuts
    assert cut.trigger == "call"
    assert cut.after_tokens <= 11_000
    assert [line.get("trigger") for line in run.log] == ["call", None]


def test_reserve_and_least_saving(tmp_path: Path) -> None:
    """What the user sets: a reserve beside the output, and what makes a compression of what fits worth it."""
    budget = {"total": 1000, "prompt": 300, "input": 220, "output": 100}
    notes = InputDocument("notes.md", LONG.partition(" Thing 34")[0])  # 204 tokens, over nine tenths
    run = runner(tmp_path, SAID, [-0.1], token_budget=budget)
    assert run.run(documents=[notes]).cuts == ()
    again = runner(tmp_path / "b", SAID, [-0.1], token_budget=budget)
    again.executor.limits = Limits(least_saving_tokens=10)
    (cut,) = again.run(documents=[notes]).cuts
    assert 174 <= cut.after_tokens <= 198
    tight = runner(tmp_path / "c", SAID, [-0.1], n_ctx=300, token_budget=budget)
    tight.executor.limits = Limits(reserve_tokens=100)
    (cut,) = tight.run(documents=[InputDocument("notes.md", LONG)]).cuts
    assert cut.trigger == "window"


def test_compression_off_is_an_error(tmp_path: Path) -> None:
    """With the setting off, inputs over their room are an error, and the log counts an overflow."""
    budget = {"total": 1000, "prompt": 300, "input": 150, "output": 100}
    run = runner(tmp_path, '{"why": "So."}', token_budget=budget)
    run.executor.limits = Limits(enabled=False)
    with pytest.raises(BudgetExceededError, match="compression is off"):
        run.run(documents=[InputDocument("notes.md", LONG)])
    assert [line.get("event") for line in run.log] == ["overflow", None]


def test_an_item_without_a_node_is_refused(tmp_path: Path) -> None:
    """With evidence_required each item has to cite a node that was offered; the next attempt is told so."""
    properties = {"text": {"type": "string"}, "node_ids": {"type": "array", "items": {"type": "string"}}}
    item = {"type": "object", "required": ["text", "node_ids"], "properties": properties}
    replies = [
        json.dumps({"items": [{"text": "It is.", "node_ids": ids}]}) for ids in ([], ["x"], ["turn:1"])
    ]
    run = runner(
        tmp_path,
        *replies,
        output_schema=schema_of(items={"type": "array", "items": item}),
        templates=None,
        quality_gates={"evidence_required": True},
    )
    reply = run.run(options={"sources": [Option("turn:1", "turn 1")]})
    assert reply.attempts == 3
    assert "cites no node" in asked(run)[1].text
    assert "cites x, which was not offered" in asked(run)[2].text


def test_a_number_from_nowhere_is_refused(tmp_path: Path) -> None:
    """With evidence_required a plain text says no number, date or URL that the call was not given."""
    run = runner(
        tmp_path,
        *("It is $6.", "It is $5."),
        output_format="markdown",
        output_schema=None,
        templates=None,
        quality_gates={"evidence_required": True},
    )
    reply = run.run(documents=[InputDocument("notes.md", "The price is $5.")])
    assert reply.values["text"] == "It is $5."
    assert "price $6 is in no document" in asked(run)[1].text
